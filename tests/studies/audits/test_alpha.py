"""Cronbach's alpha against the oracle, and where there is none."""

import numpy as np
import pytest

from obygaze_models.report import records
from obygaze_studies.alpha import audit_alpha, cronbach_alpha


def test_the_four_tables_come_out(oracle):
    for case in oracle["cronbach"]["cases"]:
        result = cronbach_alpha(np.array(case["ratings"], float))
        assert result["alpha"] == pytest.approx(case["alpha"], rel=1e-9), case["name"]
        assert (result["reason"], result["n_incomplete"]) == ("", 0)


def test_a_table_with_the_printed_totals_gives_the_printed_alphas(oracle):
    expected = oracle["cronbach"]["consistent_contingency_example"]
    raters = ("r1", "r2", "model")
    ratings = [
        dict(zip(raters, map(float, cell), strict=True))
        for cell, n in expected["counts_r1_r2_model"].items()
        for _ in range(n)
    ]
    assert len(ratings) == 200
    results = audit_alpha(ratings, pairs=True)
    alphas = {row["raters"]: row["alpha"] for row in records(results.data)}
    assert [alphas[one] for one in ("r1+r2+model", "r1+model", "r2+model")] == pytest.approx(
        expected["alphas"], rel=1e-9
    )
    printed = oracle["cronbach"]["paper_alphas"]
    assert [round(one, 2) for one in expected["alphas"]] == list(printed.values())
    assert len(alphas) == 4


def test_the_unit_of_ratings_changes_no_alpha():
    ratings = np.array([[1, 2], [2, 2], [3, 5.0]])
    for unit in (2.0**-80, 2.0**80):
        assert cronbach_alpha(unit * ratings) == cronbach_alpha(ratings)


def test_items_with_a_missing_rating_are_left_out_and_counted():
    whole = np.array([[1, 2], [2, 2], [3, 5.0]])
    holed = np.vstack([whole, [[np.nan, 4]]])
    result = cronbach_alpha(holed)
    assert result["alpha"] == cronbach_alpha(whole)["alpha"]
    assert (result["n_items"], result["n_incomplete"]) == (3, 1)


@pytest.mark.parametrize(
    "ratings",
    [
        [[1.0], [2.0]],
        [[1.0, 2.0]],
        [[1.0, np.nan], [np.nan, 2.0]],
        [[0.1, 0.2], [0.1, 0.2], [0.2, 0.1]],  # the sums do not vary
    ],
)
def test_where_there_is_no_alpha_there_is_a_reason(ratings):
    result = cronbach_alpha(np.array(ratings))
    assert result["alpha"] is None
    assert result["reason"]
