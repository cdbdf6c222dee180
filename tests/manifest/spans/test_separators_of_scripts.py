"""People divide concepts by the comma and semicolon of their script: these divide a cell as , and ; do."""

import pytest

from obygaze_features.manifest import Codebook, Concept, Level, guess_codebook, import_spans


def codebook_of(*concepts):
    return Codebook("looks", "1", (Level("low"), Level("high")), tuple(map(Concept, concepts)))


def concepts_read(tmp_path, cell, codebook):
    """Import one row whose cell of concepts is `cell`, and return the concepts of its clip."""
    table = tmp_path / "table.csv"
    table.write_text(f'movie,start_s,end_s,level,concepts\nfilm,0,1,low,"{cell}"\n', encoding="utf-8")
    imported = import_spans([table], tmp_path, codebook=codebook)
    (clip,) = imported.manifest.clips
    return clip.concepts


@pytest.mark.parametrize("sign", ["،", "、", "，", "﹐", "؛", "；", "﹔"])
def test_a_sign_of_another_script_divides_concepts(tmp_path, sign):
    assert concepts_read(tmp_path, f"体{sign}視線", codebook_of("体", "視線")) == ("体", "視線")


def test_a_sign_that_a_concept_has_divides_nothing(tmp_path):
    codebook = codebook_of("体、顔", "視線")

    assert concepts_read(tmp_path, "体、顔；視線", codebook) == ("体、顔", "視線")


def test_signs_of_several_kinds_divide_one_cell(tmp_path):
    concepts = ("جسد", "نظرة", "وجه")

    assert concepts_read(tmp_path, "جسد، نظرة؛وجه", codebook_of(*concepts)) == concepts


def test_a_codebook_that_is_guessed_has_the_single_words(tmp_path):
    """In a table the first row has a list of two concepts, with a Japanese comma: 体、視線.

    The other rows have one of them each. So the words of the guessed codebook are 体 and 視線, in two rows each,
    and the list is no concept.
    """
    table = tmp_path / "table.csv"
    rows = "film,0,1,low,体、視線\nfilm,1,2,high,体\nfilm,2,3,high,視線\n"
    table.write_text("movie,start_s,end_s,level,concepts\n" + rows, encoding="utf-8")

    guessed = guess_codebook(table)

    n_rows_with_concept = {concept.name: concept.frequency for concept in guessed.concepts}
    assert n_rows_with_concept == {"体": 2, "視線": 2}
