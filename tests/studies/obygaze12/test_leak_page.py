"""The page on the leak says what the released files hold."""

import re
from pathlib import Path

from obygaze_studies.obygaze12.corpus import TASKS
from obygaze_studies.obygaze12.paper_folds import classifier_folds, count_leaks

PAGE = Path(__file__).parents[3] / "docs" / "leak.md"


def test_the_pages_counts_are_those_of_the_released_files(obygaze12):
    tasks = {task.title: task for task in TASKS.values()}
    rows = re.findall(r"^\| (.*vs S) \| (.*vs S) \| (\d+) \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 4
    for train, test, n_test, in_training in rows:
        folds = classifier_folds(obygaze12, tasks[train], tasks[test])
        counts = sorted({count_leaks(fold)[0] for fold in folds})
        told = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
        assert (told, {int(n_test)}) == (in_training, {len(fold.test) for fold in folds})
