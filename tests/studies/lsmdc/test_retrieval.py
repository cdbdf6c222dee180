"""Retrieval measures: the published ones exactly (check 8), and those that ties cannot bend."""

import json

import numpy as np
import pytest

from obygaze_studies.errors import TrainError
from tests.later import later

retrieval = later("obygaze_studies.lsmdc.retrieval")

CASES = ("plain", "ties", "repeated_clips", "all_equal", "nan_row", "perfect")


@pytest.fixture(scope="module")
def scores(oracle):
    return dict(np.load(oracle.folder / "evaluation.npz"))


@pytest.mark.parametrize("case", CASES)
def test_published_ranks_and_measures_are_the_originals(oracle, scores, case):
    expected = json.loads((oracle.folder / "evaluation.json").read_text())[case]
    for direction, matrix in (("text_to_video", scores[case]), ("video_to_text", scores[case].T)):
        ranks = retrieval.published_ranks(matrix)
        direction_measures = expected[direction]
        assert ranks.tolist() == direction_measures["cols"]
        assert retrieval.summarise(ranks) == {
            "R@1": direction_measures["R1"],
            "R@5": direction_measures["R5"],
            "R@10": direction_measures["R10"],
            "median_rank": direction_measures["MedianR"],
            "mean_rank": direction_measures["MeanR"],
        }


def test_a_score_that_is_not_a_number_is_refused(scores):
    with pytest.raises(TrainError, match=r"sentence \d+ and clip \d+"):
        retrieval.measures(scores["nan_row"], np.arange(23))


def test_a_repeated_clip_is_one_column_and_no_tie(scores):
    matrix = scores["repeated_clips"]
    _, own = np.unique(matrix[0], return_inverse=True)
    columns = np.array([np.flatnonzero(own == clip)[0] for clip in range(own.max() + 1)])
    assert len(retrieval.published_ranks(matrix)) == 31, "31 ranks of 23 sentences, as the original counts"
    ranks = retrieval.text_to_video(matrix[:, columns], own)
    assert len(ranks["mean"]) == 23
    assert np.array_equal(ranks["optimistic"], ranks["pessimistic"])


def test_equal_scores_are_chance_in_the_mean_and_extremes_beside_it(scores):
    measured = retrieval.measures(scores["all_equal"], np.arange(12))["tie_safe"]["text_to_video"]
    assert [measured[order]["mean_rank"] for order in ("optimistic", "mean", "pessimistic")] == [1, 6.5, 12]
    assert measured["optimistic"]["R@1"] == 100
    assert measured["pessimistic"]["R@1"] == 0


def test_a_clip_with_two_sentences_is_found_by_its_better_one():
    matrix = np.array([[0.9, 0.1], [0.2, 0.3], [0.5, 0.4]])  # sentences 0 and 1 are of clip 0
    ranks = retrieval.video_to_text(matrix, np.array([0, 0, 1]))
    assert ranks["mean"].tolist() == [0, 0]
    worse = matrix.copy()
    worse[2, 0] = 1.0
    assert retrieval.video_to_text(worse, np.array([0, 0, 1]))["mean"].tolist() == [1, 0]
