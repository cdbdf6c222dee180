"""Scores that do not vary have an AUC of .5 in whatever films: pooled as by film."""

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation.predictions import Predictions
from obygaze_models.evaluation.summary import constant_models, summarise


def predictions_of(scores, *, n_films, fold_of_clip=None):
    """One model's scores of ten clips a film, every other one positive; a film is a fold unless said."""
    n_clips = 10 * n_films
    film_of_clip = np.repeat(np.arange(n_films), 10)
    table = pd.DataFrame(
        {
            "model": "constant",
            "task": "en_s",
            "fold": film_of_clip if fold_of_clip is None else fold_of_clip,
            "seed": 0,
            "clip_id": [f"c{clip}" for clip in range(n_clips)],
            "movie": [f"film{film}" for film in film_of_clip],
            "label": np.arange(n_clips) % 2,
            "score": scores,
            "threshold": 0.5,
            "store": "",
        }
    )
    return Predictions(table)


def summary_of(scores, *, n_films):
    """Summarise one model's scores of ten clips a film, every other one positive; a film is a fold."""
    return summarise(predictions_of(scores, n_films=n_films)).set_index("metric")


def test_the_auc_of_one_score_for_all_clips_is_certain_both_pooled_and_by_film():
    """All 40 clips of four films have the score .3. All are tied, so that the AUC is .5 in any film.

    So the mean over films and the pooled value are .5, and both ends of their intervals are .5 too.
    """
    same_score = np.full(40, 0.3)

    summary = summary_of(same_score, n_films=4)

    ends_by_film = summary.loc["auc", ["movie_mean", "movie_low", "movie_high"]]
    ends_pooled = summary.loc["auc", ["pooled", "pooled_low", "pooled_high"]]

    assert ends_by_film.tolist() == [0.5, 0.5, 0.5]
    assert ends_pooled.tolist() == [0.5, 0.5, 0.5]


def test_the_auc_of_one_score_for_each_film_is_certain_by_film_and_has_no_interval_pooled():
    """All clips of a film have one score: .1, .2, .3 or .4 in four films of ten clips, half of them positive.

    Within a film all scores are tied, so that its AUC is .5 by necessity: the interval by film is .5 to .5.
    Over the clips of all films, scores differ, and only the equal shares of positive clips make the AUC .5.
    So the pooled AUC is not certain, and how uncertain it is does not show.
    """
    score_of_clip = np.repeat([0.1, 0.2, 0.3, 0.4], 10)

    summary = summary_of(score_of_clip, n_films=4)

    assert summary.loc["auc", ["movie_low", "movie_high"]].tolist() == [0.5, 0.5]
    assert summary.loc["auc", ["pooled_low", "pooled_high"]].isna().all()


@pytest.mark.parametrize("n_films", [1, 2])
def test_the_auc_of_a_constant_has_no_interval_of_one_or_two_films(n_films):
    """All clips have the score .3. An interval over films, pooled as by film, needs three films."""
    same_score = np.full(10 * n_films, 0.3)

    summary = summary_of(same_score, n_films=n_films)

    ends = summary.loc["auc", ["pooled_low", "pooled_high", "movie_low", "movie_high"]]
    assert ends.isna().all()


def test_a_score_for_each_film_does_not_vary_within_films():
    """Comparisons with such a model know its AUC, .5, in advance."""
    predictions = predictions_of(np.repeat([0.1, 0.2, 0.3, 0.4], 10), n_films=4)

    assert constant_models(predictions, "en_s") == ["constant"]


def test_a_score_for_each_fold_varies_within_a_film_that_is_tested_in_several():
    """Each of four films of ten clips is tested in two folds: five clips in fold 0, then five in fold 1.

    A model scores all clips of fold 0 by .1 and those of fold 1 by .3, and so ranks the later clips of a film
    first. Three of these five are positive, and two of the five earlier ones: the AUC of a film is .6. So
    the model is not among those whose scores do not vary within films, with a known AUC of .5.
    """
    fold_of_clip = np.tile(np.repeat([0, 1], 5), 4)
    score_of_clip = 0.1 + 0.2 * fold_of_clip
    predictions = predictions_of(score_of_clip, n_films=4, fold_of_clip=fold_of_clip)

    auc = summarise(predictions).set_index("metric").loc["auc", "movie_mean"]

    assert auc == pytest.approx(0.6)
    assert constant_models(predictions, "en_s") == []
