"""Tables of the pages that follow from the code are those of now, and say something of each entry."""

import pytest

from obygaze_models.evaluation.metrics import LEVEL_METRICS, METRICS
from tests.page_tables import DOCS, TABLES, page_with_table

ALL_METRICS = METRICS | LEVEL_METRICS


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_a_table_of_a_page_is_the_one_that_the_code_makes_now(table):
    """Such as the table of metrics in docs/evaluation.md."""
    page = (DOCS / table.page).read_text(encoding="utf-8")

    page_with_table_of_now = page_with_table(page, table)

    assert page == page_with_table_of_now, "python -m tests.page_tables writes it"


@pytest.mark.parametrize("name", ALL_METRICS)
def test_a_metric_has_words_for_what_it_is_and_for_its_chance_level(name):
    """The two texts are its row in the table of docs/evaluation.md; neither may be empty."""
    metric = ALL_METRICS[name]

    assert metric.meaning
    assert metric.chance_meaning
