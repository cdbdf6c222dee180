"""The page on the leak says what the released files hold."""

import re
from pathlib import Path

import pytest

from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import classifier_folds, count_leaks

LEAK_PAGE = Path(__file__).parents[3] / "docs" / "leak.md"


def rows_of_page():
    """List training task, test task, number of test clips, and how many are trained on, as printed."""
    row = re.compile(r"^\| (.*vs S) \| (.*vs S) \| (\d+) \| (.*) \|$", re.MULTILINE)
    return row.findall(LEAK_PAGE.read_text("utf-8"))


def test_docs_leak_md_has_the_four_cells_of_table_2():
    assert len(rows_of_page()) == 4


@pytest.mark.parametrize(("train", "test", "n_test", "n_in_training"), rows_of_page())
def test_counts_of_test_clips_and_leaks_in_docs_leak_md_are_those_of_the_released_files(
    obygaze12, train, test, n_test, n_in_training
):
    """A row of the page has the titles of a training and a test task, such as "EN vs S", and two counts.

    Folds of the released files leak where test clips are trained on. The second count is of these, such as
    "12 to 19" where folds differ.
    """
    task_of_title = {task.title: task for task in TASKS.values()}
    folds = classifier_folds(obygaze12, task_of_title[train], task_of_title[test])

    for fold in folds:
        assert len(fold.test) == int(n_test)
    n_leaked_into_training = [count_leaks(fold)[0] for fold in folds]
    fewest = min(n_leaked_into_training)
    most = max(n_leaked_into_training)
    assert n_in_training == (str(most) if fewest == most else f"{fewest} to {most}")
