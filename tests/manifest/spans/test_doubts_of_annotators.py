"""An annotator's question mark is a doubt and no slip: no label is proposed for it."""

from dataclasses import replace

import pytest

from obygaze_features import builtin_codebook
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook_parts import Level
from obygaze_features.manifest.importers.unread_columns import _guesses_of_cells
from obygaze_features.manifest.spans.label_words import LabelWords


def own_table(doubtful_level):
    """Write a table with headings of its own, whose fourth clip has a level with a doubt."""
    levels = ["S", "HN", "EN", doubtful_level, "S", "HN", "EN"]
    lines = ["film;from;to;rating"]
    for number, level in enumerate(levels):
        lines.append(f"f;{number};{number + 1};{level}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("doubtful", ["S?", "EN?", "sure?", "Sure (?)", "S\uff1f"])
def test_a_level_with_a_question_mark_is_asked_about(import_files, doubtful):
    """The fourth of seven clips has a level with a question mark, such as "S?": its annotator had a doubt.

    Taken as S, a doubt would become the level of those who are sure. So the person is asked what it means.
    """
    with pytest.raises(ManifestError, match="in place of LABEL type which level") as refusal:
        import_files({"t.csv": own_table(doubtful)})

    assert f"--word '{doubtful}=LABEL'" in str(refusal.value)


@pytest.mark.parametrize("doubtful", ["EN?", "NS?", "Sure (?)"])
def test_a_row_with_a_doubt_names_all_levels_and_not_the_nearest(import_files, doubtful):
    """The second clip of a table has a level with a question mark, such as "EN?": its annotator had a doubt.

    The error of the row names all levels. To propose the nearest would turn a doubt into a level.
    """
    table = f"movie,start_s,end_s,level\nf,0,1,S\nf,1,2,{doubtful}\n"

    with pytest.raises(ManifestError, match="expected one of EN, HN, NS, S") as refusal:
        import_files({"t.csv": table})

    assert "did you mean" not in str(refusal.value)


def test_a_question_mark_that_a_label_has_itself_is_no_doubt():
    """Mostly "S?" says that an annotator doubts of S. This codebook has a level that is called so.

    The cells "1 - S?" and "2 - S" have codes in front, which are left out. Their guesses are the levels S?
    and S.
    """
    book = builtin_codebook("obygaze12")
    words = LabelWords(replace(book, levels=(*book.levels, Level("S?", position=9.0))))

    assert _guesses_of_cells(["1 - S?", "2 - S"], words) == {"1 - S?": "S?", "2 - S": "S"}


def test_a_slip_is_still_proposed_as_the_label_that_is_meant(import_files):
    """The fourth clip has the level "S!". An exclamation mark is no doubt, so S is proposed."""
    with pytest.raises(ManifestError, match="'S!' as S"):
        import_files({"t.csv": own_table("S!")})


def test_a_person_may_say_what_a_doubt_means(import_files):
    """The fourth of seven clips has the level "S?". The person says that it means NS, not sure."""
    columns = {"movie": ["film"], "start_s": ["from"], "end_s": ["to"], "level": ["rating"]}

    clips, _ = import_files({"t.csv": own_table("S?")}, columns=columns, words={"S?": "NS"})

    fourth = clips[3]
    assert fourth.level == "NS"
