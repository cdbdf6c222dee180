"""Tables of the pages that follow from the code are those of now, and say something of each entry."""

import pytest

from obygaze_models.evaluation.metrics import LEVEL_METRICS, METRICS
from tests.page_tables import DOCS, TABLES, page_with_table

ALL_METRICS = METRICS | LEVEL_METRICS


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_page_has_the_table_of_now(table):
    page = (DOCS / table.page).read_text(encoding="utf-8")
    assert page == page_with_table(page, table), "python -m tests.page_tables writes it"


@pytest.mark.parametrize("name", ALL_METRICS)
def test_a_metric_of_ours_says_what_it_is_and_what_its_chance_level_is(name):
    """Its words are its row of docs/evaluation.md."""
    assert ALL_METRICS[name].meaning
    assert ALL_METRICS[name].chance_meaning
