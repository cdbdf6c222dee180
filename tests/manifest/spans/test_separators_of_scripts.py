"""People divide concepts by the comma and semicolon of their script: these divide a cell as , and ; do."""

import pytest

from obygaze_features.manifest import Codebook, Concept, Level, guess_codebook, import_spans


def codebook_of(*concepts):
    """Make a codebook with these concepts, and the levels low and high."""
    levels = (Level("low"), Level("high"))
    return Codebook("looks", version="1", levels=levels, concepts=tuple(map(Concept, concepts)))


def concepts_read(tmp_path, cell, codebook):
    """Import one row whose cell of concepts is `cell`, and return the concepts of its clip."""
    table = tmp_path / "table.csv"
    table.write_text(f'movie,start_s,end_s,level,concepts\nfilm,0,1,low,"{cell}"\n', encoding="utf-8")
    imported = import_spans([table], tmp_path, codebook=codebook)
    (clip,) = imported.manifest.clips
    return clip.concepts


@pytest.mark.parametrize("sign", ["،", "、", "，", "﹐", "؛", "；", "﹔"])
def test_a_sign_of_another_script_divides_concepts(tmp_path, sign):
    """A cell lists two concepts, with a comma or semicolon of Arabic or of East Asia between them."""
    two_concepts = ("体", "視線")
    cell = sign.join(two_concepts)

    assert concepts_read(tmp_path, cell, codebook_of(*two_concepts)) == two_concepts


def test_a_sign_that_a_concept_has_divides_nothing(tmp_path):
    """The codebook has a concept with a Japanese comma in its name. A semicolon divides it from the other."""
    codebook = codebook_of("体、顔", "視線")

    assert concepts_read(tmp_path, "体、顔；視線", codebook) == ("体、顔", "視線")


def test_signs_of_several_kinds_divide_one_cell(tmp_path):
    """A cell lists three concepts in Arabic, with a comma and then a semicolon of this script between."""
    concepts = ("جسد", "نظرة", "وجه")

    assert concepts_read(tmp_path, "جسد، نظرة؛وجه", codebook_of(*concepts)) == concepts


def test_a_codebook_that_is_guessed_has_the_single_words(tmp_path):
    """In a table the first row has a list of two concepts, with a Japanese comma between them.

    The other rows have one of them each. So the concepts of the guessed codebook are these two, in two rows
    each, and the list is none.
    """
    table = tmp_path / "table.csv"
    rows = "film,0,1,low,体、視線\nfilm,1,2,high,体\nfilm,2,3,high,視線\n"
    table.write_text("movie,start_s,end_s,level,concepts\n" + rows, encoding="utf-8")

    guessed = guess_codebook(table)

    n_rows_with_concept = {concept.name: concept.frequency for concept in guessed.concepts}
    assert n_rows_with_concept == {"体": 2, "視線": 2}
