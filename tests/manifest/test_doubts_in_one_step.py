"""Whatever has to be asked about the words of a table is asked at once: one step, one answer."""

import re

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans

COLUMNS = {"concepts": ["Body", "Look"]}


def table(folder, *levels, yes="x", no="-", heading="level"):
    """Write a table with these levels; each clip has Body or Look by turns."""
    rows = [f"movie,start_s,end_s,{heading},Body,Look"]
    for number, level in enumerate(levels):
        marks = (yes, no) if number % 2 == 0 else (no, yes)
        rows.append(",".join(["m", str(5 * number), str(5 * number + 5), level, *marks]))
    path = folder / "ratings.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def labels_of(path, **options):
    """Import the table; return the level and concepts of each clip."""
    manifest = import_spans([path], path.parent, codebook=builtin_codebook("obygaze12"), **options).manifest
    return [(clip.level, clip.concepts) for clip in manifest]


@pytest.mark.parametrize("heading", ["level", "Stufe"])
@pytest.mark.parametrize(("yes", "no"), [("是", "否"), ("s", "n")])
def test_a_doubtful_level_is_asked_about_together_with_marks_in_other_words(tmp_path, heading, yes, no):
    columns = COLUMNS if heading == "level" else {**COLUMNS, "level": [heading]}
    path = table(tmp_path, "HN", "EN?", "S", yes=yes, no=no, heading=heading)

    with pytest.raises(ManifestError) as refusal:
        labels_of(path, columns=columns)

    # then the refusal names each word that it asks about, and one command answers it
    asked = dict(re.findall(r"--word '?([^=']+)=(\w*)", str(refusal.value)))
    assert asked["EN?"] == "LABEL"
    assert asked[yes] in ("yes", "ANSWER")
    words = {"EN?": "EN", yes: "yes", no: "no"}
    assert labels_of(path, columns=columns, words=words) == [
        ("HN", ("Body",)),
        ("EN", ("Look",)),
        ("S", ("Body",)),
    ]


def test_a_doubtful_level_alone_is_the_error_of_its_row(tmp_path):
    """Nothing else is asked: the row says what to type."""
    path = table(tmp_path, "HN", "EN?", "S")
    with pytest.raises(ManifestError, match=r"line 3, column level: unknown level 'EN\?'") as refusal:
        labels_of(path, columns=COLUMNS)
    assert "--word 'EN?=LABEL'" in str(refusal.value)
