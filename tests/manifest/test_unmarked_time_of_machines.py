"""Time that a machine was not asked about, or gave no answer to: nothing is known of it."""

from dataclasses import replace
from pathlib import Path

from obygaze_features.manifest import Clip, Manifest, builtin_codebook, marks_every_answer, project

FIRST = Clip("c0", "film", start_s=0.0, end_s=40.0)
SECOND = Clip("c1", "film", start_s=40.0, end_s=80.0)


def answer(clip, level):
    """Return a machine's answer to the question what level a clip has."""
    return replace(clip, level=level, annotator="vlm", extras={"model": "vlm"})


def free_segment(start_s, end_s):
    """Return a segment that AB, a person, delimited: S."""
    extras = {"model": ""}
    return Clip("segment", "film", start_s=start_s, end_s=end_s, level="S", annotator="AB", extras=extras)


def test_time_that_a_machine_did_not_mark_is_no_answer_of_the_machine():
    """A machine answered S about a clip from 0 to 40 s. Of time that it was not asked about it says nothing.

    So its marks are all of its answers, unlike those of a person who delimits what they find.
    """
    answers_of_machine = [answer(FIRST, "S")]

    assert marks_every_answer(answers_of_machine, builtin_codebook("obygaze12"))


def test_time_that_a_person_who_delimits_segments_did_not_mark_is_an_answer_as_well():
    """AB, a person, watched a film and delimited a segment of S, from 0 to 30 s.

    So AB also says that the rest of the film is not S, and the segment is not AB's only answer.
    """
    segments_of_person = [free_segment(start_s=0.0, end_s=30.0)]

    assert not marks_every_answer(segments_of_person, builtin_codebook("obygaze12"))


def test_a_clip_that_a_machine_refused_is_not_the_lowest_level():
    """A machine called the first of two clips S, and gave no answer about the second. AB found nothing in it.

    So AB's level of the second is the lowest, EN, and the machine has no row: taken for EN, its refusals
    would agree with AB wherever AB found nothing.
    """
    clips = Manifest((FIRST, SECOND), Path())
    annotations = clips.with_clips([free_segment(start_s=0.0, end_s=38.0), answer(FIRST, "S")])

    projected = project(annotations, clips, per_annotator=True)

    levels = {(row.annotator, row.clip_id): row.level for row in projected.manifest}
    assert levels == {("AB", "c0"): "S", ("AB", "c1"): "EN", ("vlm", "c0"): "S"}
    assert projected.without_row == {"vlm": 1}
