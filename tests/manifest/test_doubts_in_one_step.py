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


LEVELS_BELOW_KNOWN_OR_OTHER_HEADING = pytest.mark.parametrize("heading_of_levels", ["level", "Stufe"])


@LEVELS_BELOW_KNOWN_OR_OTHER_HEADING
@pytest.mark.parametrize(
    ("yes", "no", "proposed_for_yes"),
    [
        pytest.param("是", "否", "ANSWER", id="Chinese words, of which nothing is guessed"),
        pytest.param("s", "n", "yes", id="initials of sí and no, of which s is guessed to mean yes"),
    ],
)
def test_a_level_with_a_question_mark_and_unknown_words_for_yes_are_asked_about_together(
    tmp_path, heading_of_levels, yes, no, proposed_for_yes
):
    """A table of three clips has the level EN? once, and below two concepts unknown words for yes and no.

    One refusal asks about both, so that nobody answers one question and is then refused for the other. It
    proposes options `--word WORD=MEANING`, with LABEL or ANSWER for a meaning that can't be guessed. The
    levels stand below "level", or below "Stufe" and are named by an option.
    """
    table = write_three_clips(tmp_path, yes=yes, no=no, heading=heading_of_levels)

    with pytest.raises(ManifestError) as refusal:
        labels_of(table, columns=columns_with_levels_below(heading_of_levels))

    meaning_proposed_for = proposed_words(refusal.value)
    assert meaning_proposed_for["EN?"] == "LABEL"
    assert meaning_proposed_for[yes] == proposed_for_yes


@LEVELS_BELOW_KNOWN_OR_OTHER_HEADING
@pytest.mark.parametrize(("yes", "no"), [("是", "否"), ("s", "n")])
def test_a_table_is_read_once_the_person_explains_its_level_with_a_question_mark_and_its_yes_and_no(
    tmp_path, heading_of_levels, yes, no
):
    """A table of three clips has the level EN? once, and below two concepts unknown words for yes and no.

    The person says with one command what all three words mean. The levels stand below "level", or below
    "Stufe" and are named by an option.
    """
    path = write_three_clips(tmp_path, yes=yes, no=no, heading=heading_of_levels)
    meaning_of_words = {"EN?": "EN", yes: "yes", no: "no"}

    labels = labels_of(path, columns=columns_with_levels_below(heading_of_levels), words=meaning_of_words)

    assert labels == [("HN", ("Body",)), ("EN", ("Look",)), ("S", ("Body",))]


def test_a_doubtful_level_is_refused_with_its_line_where_nothing_else_has_to_be_asked(tmp_path):
    """Line 3 has the level "EN?". The marks of the table are x and -, which are known to be yes and no.

    Marks in other words would be asked about, and the level with them. Here the error is of the one cell: it
    names the line, and the option to type.
    """
    path = write_three_clips(tmp_path)

    with pytest.raises(ManifestError, match=r"line 3, column level: unknown level 'EN\?'") as refusal:
        labels_of(path, columns=COLUMNS_OF_CONCEPTS)

    assert "--word 'EN?=LABEL'" in str(refusal.value)
