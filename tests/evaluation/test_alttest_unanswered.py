"""The alternative annotator test of a machine that answers some clips only: the others are counted."""

from dataclasses import replace

import numpy as np

from obygaze_features.manifest import Clip, Manifest
from obygaze_models.commands.annotation_tables import machines
from obygaze_models.evaluation.alttest import UNKNOWN, alt_test, compare_machines


def people_and_a_machine(tmp_path, level_of_difficult_clips):
    """Label 80 clips of four films: the people AB and CD agree on all, and a machine with them on 60.

    The other 20 clips, two of each eight, are difficult. To all of these the machine gives
    `level_of_difficult_clips`, or no label at all if that is None.
    """
    rows = []
    for number in range(80):
        film = f"film{number % 4}"
        clip = Clip(f"c{number}", film, "", 10.0 * number, 10.0 * number + 10, extras={"model": ""})
        level = "S" if number % 3 == 0 else "EN"
        is_difficult = number % 8 in (0, 1)
        rows += [replace(clip, annotator=name, level=level) for name in ("AB", "CD")]
        level_of_machine = level_of_difficult_clips if is_difficult else level
        if level_of_machine:
            machine = replace(clip, annotator="qwen-vl", level=level_of_machine, extras={"model": "qwen-vl"})
            rows.append(machine)
    return Manifest(tuple(rows), tmp_path)


def test_clips_without_an_answer_are_counted_and_shown(tmp_path):
    """Two people label 80 clips, and a machine only 60: it gives no level to every fourth clip.

    The result and its record must have the 20 clips without an answer, and the printed lines must say that
    these are not compared.
    """
    labels = people_and_a_machine(tmp_path, level_of_difficult_clips=None)

    results = compare_machines(labels, common=labels, task="en_s")

    result = results["qwen-vl"]
    assert (result.clips, result.unanswered) == (80, 20)
    assert result.record()["unanswered"] == 20
    assert any(line.startswith("not compared: 20 of 80 clips") for line in machines(results))


def test_a_machine_that_gives_a_level_outside_of_the_task_has_not_answered(tmp_path):
    """Of 80 clips a machine calls 60 as people do, EN or S, and the other 20, which are difficult, HN.

    The task compares EN with S, so HN is no answer to it: 20 clips are unanswered. If these were left out
    without a word, a machine that says HN whenever it is not sure would seem never to be wrong.
    """
    labels = people_and_a_machine(tmp_path, level_of_difficult_clips="HN")

    result = compare_machines(labels, labels, task="en_s")["qwen-vl"]

    assert result.unanswered == 20


def test_a_level_that_no_person_gives_is_an_answer_where_all_levels_are_compared(tmp_path):
    """Of 80 clips a machine calls 20 HN, which two people call EN or S. No task is named: all levels count.

    So the machine has answered all clips, if wrongly, and the printed lines do not speak of clips that are
    not compared.
    """
    labels = people_and_a_machine(tmp_path, level_of_difficult_clips="HN")

    results = compare_machines(labels, common=labels)

    assert results["qwen-vl"].unanswered == 0
    assert not any("not compared" in line for line in machines(results))


def test_a_clip_that_a_single_annotator_judged_does_not_count_as_unanswered_by_a_machine():
    """Of 40 clips AB judged all, CD all but the first five, and a machine all but the first seven.

    What a machine says of the first five would be compared with nobody: it is asked about 35, and has not
    answered two of these.
    """
    films = np.repeat(["one", "two"], 20)
    AB = np.tile([0, 1], 20)
    CD = AB.copy()
    CD[:5] = UNKNOWN
    machine = AB.copy()
    machine[:7] = UNKNOWN

    result = alt_test(machine, {"AB": AB, "CD": CD}, films)

    assert (result.clips, result.unanswered) == (35, 2)
