"""A lowest or highest level of a single movie cannot be learnt without that movie: said before training."""

import numpy as np
import pytest

from obygaze_models import evaluate
from obygaze_models.errors import ProtocolError
from tests.conftest import dataset

N_CLIPS = 30
"""Clips of each of five movies."""


def clips_of_levels(*, only_in_first_movie, in_its_place):
    """Make clips of the levels EN, HN and S in turn, of which one level is in the first movie alone."""
    rng = np.random.default_rng(0)
    movies = np.repeat([f"tt{number}" for number in range(5)], N_CLIPS)
    levels = np.tile(["EN", "HN", "S"], 5 * N_CLIPS // 3)
    is_elsewhere = (levels == only_in_first_movie) & (movies != "tt0")
    levels[is_elsewhere] = in_its_place
    features = rng.normal(size=(len(levels), 4))
    return dataset(features, levels, movies)


@pytest.mark.parametrize(("extreme", "in_its_place"), [("S", "HN"), ("EN", "HN")])
def test_the_refusal_of_a_level_that_is_in_one_movie_alone_names_the_level_and_the_movie(
    extreme, in_its_place
):
    """Five movies have clips of the three levels EN, HN and S, but one level, S or EN, is in tt0 alone.

    Elsewhere its clips have the level `in_its_place`. In the fold that tests tt0 there is no clip of it to
    learn from: a model of levels learns a border between EN and HN and one between HN and S, and one of them
    would have clips on one side only.
    """
    clips = clips_of_levels(only_in_first_movie=extreme, in_its_place=in_its_place)

    with pytest.raises(ProtocolError) as refused:
        evaluate(clips, ["linear"], task="levels")

    assert str(refused.value) == (
        f"without movie tt0 there is no {extreme} clip to learn from: EN and S, the lowest and the highest "
        "level, must be in at least 3 movies each"
    )


def test_a_level_between_the_lowest_and_the_highest_may_be_in_a_single_movie():
    """Of the levels EN, HN and S, clips of HN are in the movie tt0 alone; the other four have EN and S.

    A model of levels tells them in two steps: EN from all above, and S from all below. Where tt0 is left out,
    both tell EN from S, which can be learnt. So all five movies are tested.
    """
    clips = clips_of_levels(only_in_first_movie="HN", in_its_place="S")

    run = evaluate(clips, ["linear"], task="levels")

    assert set(run.predictions.table["movie"]) == {"tt0", "tt1", "tt2", "tt3", "tt4"}
