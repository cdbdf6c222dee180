"""Retrieval measures: the published ones exactly (check 8), and those that ties cannot bend."""

import json

import numpy as np
import pytest

from obygaze_studies.errors import TrainError
from tests.lazy_import import lazy_import

retrieval = lazy_import("obygaze_studies.lsmdc.retrieval")

CASES = ("plain", "ties", "repeated_clips", "all_equal", "nan_row", "perfect")


@pytest.fixture(scope="module")
def scores(oracle):
    """Scores of sentences and clips, a matrix for each case."""
    return dict(np.load(oracle.folder / "evaluation.npz"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("direction", ["text_to_video", "video_to_text"])
def test_published_ranks_and_measures_are_the_originals(oracle, scores, case, direction):
    """A case has scores of sentences (rows) with clips (columns), by which clips are found, or sentences.

    The oracle has the ranks at which the right ones are found, and the measures that the original code makes
    of these: in which share of cases the rank is 1, or up to 5 or 10, and the median and mean rank.
    """
    matrix = scores[case] if direction == "text_to_video" else scores[case].T

    ranks = retrieval.published_ranks(matrix)

    expected = json.loads((oracle.folder / "evaluation.json").read_text())[case][direction]
    assert ranks.tolist() == expected["cols"]
    assert retrieval.summarise(ranks) == {
        "R@1": expected["R1"],
        "R@5": expected["R5"],
        "R@10": expected["R10"],
        "median_rank": expected["MedianR"],
        "mean_rank": expected["MeanR"],
    }


def test_a_score_that_is_not_a_number_is_refused_with_its_sentence_and_clip(scores):
    """In this case, all scores of a sentence with the clips are NaN. Sentence k is of clip k, of 23."""
    clip_of_sentence = np.arange(23)

    with pytest.raises(TrainError, match=r"sentence \d+ and clip \d+"):
        retrieval.measures(scores["nan_row"], clip_of_sentence)


def test_each_sentence_has_one_rank_if_a_clip_of_several_sentences_is_a_single_column_of_scores(scores):
    """A matrix has the score of each of 23 sentences (rows) with the clip of each sentence (columns).

    A clip that has several sentences is there several times, in equal columns. The published code counts a
    rank for each tie of a clip with itself: 31 ranks of 23 sentences. With one column for each clip, each
    sentence has one rank, and its clip is tied with no other: the rank is the same whether ties count in the
    sentence's favour ("optimistic") or against it.
    """
    column_of_each_sentence = scores["repeated_clips"]
    assert len(column_of_each_sentence) == 23
    assert len(retrieval.published_ranks(column_of_each_sentence)) == 31

    # Columns of one clip are equal, so that they have the same score in the first row too.
    _, first_column_of_clip, clip_of_sentence = np.unique(
        column_of_each_sentence[0], return_index=True, return_inverse=True
    )
    column_of_each_clip = column_of_each_sentence[:, first_column_of_clip]
    ranks = retrieval.text_to_video(column_of_each_clip, clip_of_sentence)

    assert len(ranks["mean"]) == 23
    assert np.array_equal(ranks["optimistic"], ranks["pessimistic"])


def test_where_all_scores_are_equal_the_rank_of_the_right_clip_lies_between_first_and_last_of_12(scores):
    """All scores of sentences with twelve clips are equal, so that the right clip has no rank of its own.

    Ties are counted in its favour ("optimistic", rank 1), against it ("pessimistic", rank 12), or half and
    half ("mean"), which is what chance gives. R@1 is the percentage of sentences whose clip has rank 1.
    """
    n_clips = 12
    measured = retrieval.measures(scores["all_equal"], np.arange(n_clips))["tie_safe"]["text_to_video"]

    assert measured["optimistic"]["mean_rank"] == 1
    assert measured["mean"]["mean_rank"] == (1 + n_clips) / 2
    assert measured["pessimistic"]["mean_rank"] == n_clips
    assert measured["optimistic"]["R@1"] == 100
    assert measured["pessimistic"]["R@1"] == 0


CLIP_OF_SENTENCE = np.array([0, 0, 1])


@pytest.mark.parametrize(
    ("score_of_sentence_2_and_clip_0", "ranks"),
    [(0.5, [0, 0]), (1.0, [1, 0])],  # from 0
    ids=["below that of sentence 0", "above those of its own sentences"],
)
def test_the_rank_of_a_clip_with_two_sentences_is_that_of_the_better_one(
    score_of_sentence_2_and_clip_0, ranks
):
    """Sentences 0 and 1 are of clip 0, and sentence 2 is of clip 1. Ranks are counted from 0.

    A row of the matrix has the scores of a sentence with both clips.
    """
    scores = np.array([[0.9, 0.1], [0.2, 0.3], [score_of_sentence_2_and_clip_0, 0.4]])

    ranks_of_clips = retrieval.video_to_text(scores, CLIP_OF_SENTENCE)["mean"]

    assert ranks_of_clips.tolist() == ranks
