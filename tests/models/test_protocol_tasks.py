"""Tasks are sets of levels; NS is in none."""

import numpy as np
import pytest

from obygaze_models.protocol import TASKS, ProtocolError, find_task

LEVELS = np.array(["EN", "HN", "NS", "S"])


@pytest.mark.parametrize(("name", "held"), [("en_s", "EN S"), ("hn_s", "HN S"), ("enhn_s", "EN HN S")])
def test_a_task_holds_its_levels_and_never_not_sure(name, held):
    assert " ".join(LEVELS[find_task(name).holds(LEVELS)]) == held


def test_sure_alone_is_positive_in_every_task():
    for task in TASKS.values():
        assert task.labels(LEVELS).tolist() == [0, 0, 0, 1]
        assert "NS" not in task.levels


def test_titles_are_written_as_in_the_papers():
    assert [task.title for task in TASKS.values()] == ["EN vs S", "HN vs S", "(EN u HN) vs S"]


def test_an_unknown_task_is_refused_with_the_known_ones_named():
    with pytest.raises(ProtocolError, match=r"unknown task 's_hn': expected one of en_s, hn_s, enhn_s"):
        find_task("s_hn")
