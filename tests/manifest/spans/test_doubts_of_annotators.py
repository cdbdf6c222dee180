"""An annotator's question mark is a doubt and no slip: no label is proposed for it."""

import pytest

from obygaze_features.errors import ManifestError


def own_table(doubtful_level):
    """Write a table with headings of its own, whose fourth clip has a level with a doubt."""
    levels = ["S", "HN", "EN", doubtful_level, "S", "HN", "EN"]
    lines = ["film;from;to;rating"]
    for number, level in enumerate(levels):
        lines.append(f"f;{number};{number + 1};{level}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("doubtful", ["S?", "EN?", "sure?", "Sure (?)", "S\uff1f"])
def test_a_level_with_a_question_mark_is_asked_about(import_files, doubtful):
    """Taken as `S`, a doubt would become the level of those who are sure."""
    with pytest.raises(ManifestError, match="in place of LABEL type which level") as refusal:
        import_files({"t.csv": own_table(doubtful)})

    assert f"--word '{doubtful}=LABEL'" in str(refusal.value)


def test_a_slip_is_still_proposed_as_the_label_that_is_meant(import_files):
    with pytest.raises(ManifestError, match="'S!' as S"):
        import_files({"t.csv": own_table("S!")})


def test_a_person_may_say_what_a_doubt_means(import_files):
    columns = {"movie": ["film"], "start_s": ["from"], "end_s": ["to"], "level": ["rating"]}

    clips, _ = import_files({"t.csv": own_table("S?")}, columns=columns, words={"S?": "NS"})

    assert clips[3].level == "NS"
