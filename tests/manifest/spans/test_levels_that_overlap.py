"""Levels of one annotator that overlap are noticed in files of every tool, but for judged windows."""

import pytest

ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2026-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0">
  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
  <TIME_ORDER>
    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="1000"/>
    <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="5000"/>
    <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="4000"/>
    <TIME_SLOT TIME_SLOT_ID="ts4" TIME_VALUE="9000"/>
  </TIME_ORDER>
  <TIER TIER_ID="level" LINGUISTIC_TYPE_REF="t" ANNOTATOR="AB">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
      <ANNOTATION_VALUE>S</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <TIER TIER_ID="levels" LINGUISTIC_TYPE_REF="t" ANNOTATOR="AB">
    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a2" TIME_SLOT_REF1="ts3" TIME_SLOT_REF2="ts4">
      <ANNOTATION_VALUE>HN</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
  </TIER>
  <LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" TIME_ALIGNABLE="true"/>
</ANNOTATION_DOCUMENT>
"""
"""A film in which AB marks 1 to 5 s as S on one tier, and 4 to 9 s as HN on another."""


def test_levels_that_overlap_in_a_file_of_elan_are_noticed(import_files):
    """AB marked 1 to 5 s of a film as S on one tier of ELAN, and 4 to 9 s as HN on another.

    From 4 to 5 s both are said, and as AB chose where spans begin and end, one is a slip.
    """
    clips, notices = import_files({"film.eaf": ELAN}, movie="film")

    assert {clip.level for clip in clips} == {"S", "HN"}
    assert "1 span overlaps an earlier one of another level" in notices
    assert "S 1-5 s and HN 4-9 s" in notices


@pytest.mark.parametrize("seen_score", ["0", "1"])
def test_spans_of_a_table_that_says_whether_a_score_was_seen_are_noticed(import_files, seen_score):
    """AB says S of 1 to 5 s of a film and HN of 4 to 9 s: of 4 to 5 s, one of the two is a slip.

    The table says whether AB saw a model's score (seen_score 1) or judged blindly (0): it's a slip either
    way.
    """
    table = (
        "movie,start_s,end_s,level,annotator,seen_score\n"
        f"film,1,5,S,AB,{seen_score}\n"
        f"film,4,9,HN,AB,{seen_score}\n"
    )

    _, notices = import_files({"spans.csv": table})

    assert "S 1-5 s and HN 4-9 s" in notices


@pytest.mark.parametrize(
    ("headings", "first", "second"),
    [
        ("seen_score,draw,place", "0,random,1", "0,random,2"),
        ("seen_score,place", "0,4", "0,2"),
        ("seen_score,draw,p", "1,random,0.31", "1,uncertain,0.49"),
        ("seen_score,judgement", "1,agree", "1,disagree"),
    ],
    ids=["film next --blind", "a table of places alone", "film next", "the mode Read of film open"],
)
def test_judged_windows_may_overlap(import_files, headings, first, second):
    """AB judged two windows of a film, 1 to 5 s as S and 4 to 9 s as HN, whose tables have these columns.

    The columns say that windows were drawn, or shown one after the other. AB did not choose where they begin
    or end, so that no level is a slip.
    """
    table = (
        f"movie,start_s,end_s,level,annotator,{headings}\nfilm,1,5,S,AB,{first}\nfilm,4,9,HN,AB,{second}\n"
    )

    clips, notices = import_files({"judgements.csv": table})

    assert len(clips) == 2
    assert "overlap" not in notices


def test_judgements_of_windows_that_overlap_are_not_noticed_as_slips(import_files):
    """AB judged S from 1 to 5 s and HN from 4 to 9 s, and both were exported to tiers of ELAN.

    Two levels of one person that overlap are mostly a slip, and a notice says so. But the names of these
    tiers say that they hold blind judgements: these are of windows that were drawn, which may overlap.
    """
    exported = ELAN.replace('TIER_ID="level"', 'TIER_ID="human: level, blind@AB"')
    exported = exported.replace('TIER_ID="levels"', 'TIER_ID="human: level, blind (2)@AB"')

    clips, notices = import_files({"film.eaf": exported}, movie="film")

    assert len(clips) == 2
    assert "overlap" not in notices
