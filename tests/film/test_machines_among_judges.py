"""A machine among the judges of a film is called one: nobody takes its share for a person's."""

from dataclasses import replace

import pytest

from obygaze_features.manifest import Manifest
from obygaze_film.judged_rate import correct_rates
from obygaze_film.windows_to_judge import choose_next
from tests.planted_models import codebook

PERSON = {"model": "", "prompt": ""}
MACHINE = {"model": "qwen-vl-7b", "prompt": "0123abcd"}


@pytest.fixture(scope="module")
def windows(planted_timeline):
    """The first 40 windows of a blind draw."""
    return choose_next([planted_timeline], 40, blind=True)


def judged(windows, folder, **extras_of_judge):
    """Let judges call the first 200 seconds violent; each judge's rows have these further columns."""
    clips = []
    for judge, extras in extras_of_judge.items():
        for clip in windows:
            level = "violent" if clip.start_s < 200 else "calm"
            more = {**clip.extras, **extras}
            clip_id = f"{clip.clip_id}@{judge}"
            clips.append(replace(clip, clip_id=clip_id, annotator=judge, level=level, extras=more))
    return Manifest(tuple(clips), folder, codebook(folder))


def machines_in(timeline, judgements):
    """Return the notices on machines that a film's rates have."""
    return [notice for notice in correct_rates(timeline, judgements).notices if "machine" in notice]


def test_a_machine_that_judged_beside_a_person_is_named(planted_timeline, windows, tmp_path):
    """AB, a person, and qwen, a machine, judged a film's windows. Their share is not one of people alone."""
    judgements = judged(windows, tmp_path, AB=PERSON, qwen=MACHINE)
    notice = "machine among the judges, which counts as one of them: qwen"
    assert machines_in(planted_timeline, judgements) == [notice]


def test_several_machines_are_counted(planted_timeline, windows, tmp_path):
    """AB, a person, and the machines qwen and gemma judged a film's windows. A notice names both machines."""
    judgements = judged(windows, tmp_path, AB=PERSON, qwen=MACHINE, gemma=MACHINE)
    notice = "2 machines among the judges, which count as the others do: gemma, qwen"
    assert machines_in(planted_timeline, judgements) == [notice]


def test_a_machine_that_judged_another_film_alone_is_no_judge_of_this_one(
    planted_timeline, windows, tmp_path
):
    """AB, a person, judged this film's windows; in the same table the machine qwen judged another film."""
    windows_of_another_film = [replace(clip, movie="another film") for clip in windows]
    by_ab = judged(windows, tmp_path, AB=PERSON)
    by_qwen = judged(windows_of_another_film, tmp_path, qwen=MACHINE)
    in_one_table = by_ab.with_clips([*by_ab, *by_qwen])
    assert machines_in(planted_timeline, in_one_table) == []


def test_judges_whose_judgements_are_all_by_people_are_not_listed_as_machines(
    planted_timeline, windows, tmp_path
):
    """AB and CD judged windows, and their rows say that they are people."""
    assert machines_in(planted_timeline, judged(windows, tmp_path, AB=PERSON, CD=PERSON)) == []
