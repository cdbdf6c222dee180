"""Whatever has to be asked about the words of a table is asked at once: one step, one answer."""

import re

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans

COLUMNS_OF_CONCEPTS = {"concepts": ["Body", "Look"]}
"""The columns Body and Look hold marks: whether a clip has the concept that is in the heading."""


def write_three_clips(folder, *, yes="x", no="-", heading="level"):
    """Write a table of three clips: HN with Body, the doubtful EN? with Look, and S with Body.

    The marks `yes` and `no` say whether a clip has a concept, and `heading` is that of the column of levels.
    """
    path = folder / "ratings.csv"
    path.write_text(
        f"movie,start_s,end_s,{heading},Body,Look\n"
        f"m,0,5,HN,{yes},{no}\n"
        f"m,5,10,EN?,{no},{yes}\n"
        f"m,10,15,S,{yes},{no}\n",
        encoding="utf-8",
    )
    return path


def columns_with_levels_below(heading):
    """Say which columns hold concepts, and which one levels if it is not called "level"."""
    if heading == "level":
        return COLUMNS_OF_CONCEPTS
    return {**COLUMNS_OF_CONCEPTS, "level": [heading]}


def labels_of(path, **options):
    """Import the table; return the level and concepts of each clip."""
    manifest = import_spans([path], path.parent, codebook=builtin_codebook("obygaze12"), **options).manifest
    return [(clip.level, clip.concepts) for clip in manifest]


def proposed_words(refusal):
    """Return what the options `--word WORD=MEANING` of a refusal propose: word -> meaning."""
    return dict(re.findall(r"--word '?([^=']+)=(\w*)", str(refusal)))


KNOWN_AND_OTHER_HEADING = pytest.mark.parametrize("heading", ["level", "Stufe"])


@KNOWN_AND_OTHER_HEADING
@pytest.mark.parametrize(
    ("yes", "no", "proposed_for_yes"),
    [("是", "否", "ANSWER"), ("s", "n", "yes")],
    ids=["Chinese words: nothing is guessed", "initials: s is taken for yes"],
)
def test_a_doubtful_level_is_asked_about_together_with_marks_in_other_words(
    tmp_path, heading, yes, no, proposed_for_yes
):
    """A table of three clips has a doubtful level, `EN?`, and marks below two concepts that nobody explained.

    One refusal asks about both, so that nobody answers one and is refused for the other. It proposes options
    `--word WORD=MEANING`, with LABEL or ANSWER (yes or no) for a meaning that cannot be guessed.
    """
    table = write_three_clips(tmp_path, yes=yes, no=no, heading=heading)

    with pytest.raises(ManifestError) as refusal:
        labels_of(table, columns=columns_with_levels_below(heading))

    meaning_proposed_for = proposed_words(refusal.value)
    assert meaning_proposed_for["EN?"] == "LABEL"
    assert meaning_proposed_for[yes] == proposed_for_yes


@KNOWN_AND_OTHER_HEADING
@pytest.mark.parametrize(("yes", "no"), [("是", "否"), ("s", "n")])
def test_one_answer_serves_a_doubtful_level_and_marks_in_other_words(tmp_path, heading, yes, no):
    """The person says what the level `EN?` and both marks mean, and the three clips are read."""
    path = write_three_clips(tmp_path, yes=yes, no=no, heading=heading)
    meaning_of_words = {"EN?": "EN", yes: "yes", no: "no"}

    labels = labels_of(path, columns=columns_with_levels_below(heading), words=meaning_of_words)

    assert labels == [("HN", ("Body",)), ("EN", ("Look",)), ("S", ("Body",))]


def test_a_doubtful_level_alone_is_the_error_of_its_row(tmp_path):
    """The marks are `x` and `-`, about which nobody has to be asked: the row says what to type."""
    path = write_three_clips(tmp_path)

    with pytest.raises(ManifestError, match=r"line 3, column level: unknown level 'EN\?'") as refusal:
        labels_of(path, columns=COLUMNS_OF_CONCEPTS)

    assert "--word 'EN?=LABEL'" in str(refusal.value)
