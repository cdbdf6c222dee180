"""The page on predictions runs, and prints what it says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "predict.md"


def test_every_block_of_the_page_runs_and_prints_its_numbers():
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 30
    assert found.failed == 0
