"""Cronbach's alpha against the oracle, and where there is none."""

import numpy as np
import pytest

from obygaze_models.report import records
from obygaze_studies.alpha import audit_alpha, cronbach_alpha


def test_cronbachs_alpha_of_complete_ratings_is_that_of_the_oracle(oracle):
    """A case is a table of ratings, a row per item and a column per rater, and the alpha of an other program.

    Where alpha is defined, no reason is given, and no item is left out.
    """
    for case in oracle["cronbach"]["cases"]:
        result = cronbach_alpha(np.array(case["ratings"], float))

        assert result["alpha"] == pytest.approx(case["alpha"], rel=1e-9), case["name"]
        assert result["reason"] == ""
        assert result["n_incomplete"] == 0


def test_alphas_of_200_ratings_are_those_that_the_paper_prints_to_two_decimals(oracle):
    """Two persons, r1 and r2, and a model answered 200 questions with 0 or 1.

    The paper prints how often each of them said 1, but not which answers came together. The oracle made up a
    table of these that has the printed totals: "101" is the number of questions to which r1 and the model
    said 1 and r2 said 0. Of it the oracle computed the alphas, which agree with the paper's.
    """
    example = oracle["cronbach"]["consistent_contingency_example"]
    ratings = []
    for answers, n_questions in example["counts_r1_r2_model"].items():
        r1, r2, model = map(float, answers)
        ratings += [{"r1": r1, "r2": r2, "model": model}] * n_questions
    assert len(ratings) == 200

    rows = records(audit_alpha(ratings, pairs=True).data)

    alpha_of_raters = {row["raters"]: row["alpha"] for row in rows}
    assert set(alpha_of_raters) == {"r1+r2+model", "r1+r2", "r1+model", "r2+model"}
    alphas = [alpha_of_raters[raters] for raters in ("r1+r2+model", "r1+model", "r2+model")]
    assert alphas == pytest.approx(example["alphas"], rel=1e-9)
    printed = oracle["cronbach"]["paper_alphas"].values()
    assert [round(alpha, 2) for alpha in alphas] == list(printed)


RATINGS_OF_THREE_ITEMS = np.array([[1, 2], [2, 2], [3, 5.0]])
"""By two raters: a row per item, a column per rater."""


@pytest.mark.parametrize("unit", [2.0**-80, 2.0**80])
def test_the_unit_of_ratings_changes_no_alpha(unit):
    """Alpha is a ratio of variances. Powers of 2 are factors by which no digit of a float is lost."""
    assert cronbach_alpha(unit * RATINGS_OF_THREE_ITEMS) == cronbach_alpha(RATINGS_OF_THREE_ITEMS)


def test_items_with_a_missing_rating_are_left_out_and_counted():
    """Three items have ratings by both raters, and a fourth by the second rater alone."""
    ratings = np.vstack([RATINGS_OF_THREE_ITEMS, [[np.nan, 4]]])

    result = cronbach_alpha(ratings)

    assert result["alpha"] == cronbach_alpha(RATINGS_OF_THREE_ITEMS)["alpha"]
    assert result["n_items"] == 3
    assert result["n_incomplete"] == 1


@pytest.mark.parametrize(
    "ratings",
    [
        [[1.0], [2.0]],
        [[1.0, 2.0]],
        [[1.0, np.nan], [np.nan, 2.0]],
        [[0.1, 0.2], [0.1, 0.2], [0.2, 0.1]],
    ],
    ids=["one rater", "one item", "no complete item", "sums that do not vary"],
)
def test_an_alpha_that_is_undefined_has_a_reason(ratings):
    """Ratings have a row per item and a column per rater.

    Alpha compares how raters vary with how their sums vary, over the items that all of them rated.
    """
    result = cronbach_alpha(np.array(ratings))

    assert result["alpha"] is None
    assert result["reason"]
