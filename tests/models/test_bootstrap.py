"""Bootstrap intervals by movie and clip: the same metrics, of draws that mean what they say."""

import numpy as np
import pytest

from obygaze_models.evaluation import METRICS, Predictions, metrics, summarise
from obygaze_models.evaluation import bootstrap as drawn


@pytest.fixture(scope="module")
def scored():
    """60 clips of 5 movies, one without a positive; scores have ties."""
    rng = np.random.default_rng(0)
    movies = np.repeat(np.array(["a", "b", "c", "d", "e"]), [6, 10, 12, 14, 18])
    y = (rng.random(60) < 0.35).astype(np.int64)
    y[movies == "a"] = 0
    scores = np.round(rng.normal(size=60) + y, 1)
    return y, scores, (scores > 0.4).astype(np.int64), movies


def test_a_draw_has_as_many_movies_and_clips_as_there_are_of_each():
    movies = np.repeat(np.array(["a", "b", "c"]), [5, 7, 11])
    draws = drawn.draw_clips(movies, 300, np.random.default_rng(0))
    assert (draws == np.round(draws)).all()
    times = np.stack(
        [draws[:, movies == name].sum(axis=1) / n for name, n in (("a", 5), ("b", 7), ("c", 11))]
    )
    assert (times == np.round(times)).all()
    assert (times.sum(axis=0) == 3).all()
    assert times.max() == 3
    # Both levels are drawn: of a movie that is drawn once, some clips are there twice and some not at all.
    assert {0.0, 1.0, 2.0} <= set(draws[times[0] == 1][:, movies == "a"].ravel())


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_of_a_draw_is_the_metric_of_its_clips(scored, name):
    y, scores, called, movies = scored
    draws = drawn.draw_clips(movies, 60, np.random.default_rng(1))
    draws[0], draws[1] = 1, y == 0  # every clip once; and no positive
    found = drawn.DRAWN_METRICS[name](y.astype(bool), scores, called.astype(bool), draws)
    expected = []
    for draw in draws.astype(int):
        rows = np.repeat(np.arange(60), draw)
        expected.append(METRICS[name](y[rows], scores[rows], called[rows]))
    np.testing.assert_allclose(found, expected, atol=1e-12, equal_nan=True)
    assert np.isnan(found[1])


def test_within_movie_auc_counts_a_movie_as_often_as_it_is_drawn(scored):
    y, scores, _, movies = scored
    once = drawn.within_movie_auc(y.astype(bool), scores, movies, np.ones((1, 60)))
    assert once[0] == pytest.approx(metrics.within_movie_auc(y, scores, movies))
    twice_b = np.where(movies == "b", 2.0, 0.0) + np.where(movies == "e", 1.0, 0.0)
    b, e = (metrics.auc(y[movies == name], scores[movies == name]) for name in "be")
    found = drawn.within_movie_auc(y.astype(bool), scores, movies, twice_b[None])
    assert found[0] == pytest.approx((2 * b + e) / 3)


def test_an_interval_is_undefined_when_too_many_draws_are():
    def mostly_nan(draws):
        return np.where(np.arange(len(draws)) % 10 == 0, np.nan, 1.0)

    assert np.isnan(drawn.bootstrap_interval(mostly_nan, np.ones((100, 1)))).all()


def table(film, n_movies=12, n_clips=60, seed=0):
    """Predictions whose scores vary from film to film by `film` SDs, which no clip of a film escapes."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    movie_of = np.repeat(np.arange(n_movies), n_clips)
    y = rng.integers(0, 2, movie_of.size)
    lean = rng.normal(size=n_movies)[movie_of] * film
    rows = {
        "model": "mlp",
        "task": "hn_s>hn_s",
        "fold": movie_of,
        "seed": 0,
        "clip_id": [f"m{movie}-{place}" for place, movie in enumerate(movie_of)],
        "movie": [f"m{movie}" for movie in movie_of],
        "label": y,
        "score": rng.normal(size=y.size) + y * (1 + lean),
        "threshold": 0.5,
        "store": "f" * 64,
    }
    return Predictions(pd.DataFrame(rows))


def width(predictions):
    row = summarise(predictions).set_index("metric").loc["auc"]
    assert row["pooled_low"] < row["pooled"] < row["pooled_high"]
    return row["pooled_high"] - row["pooled_low"]


def test_films_that_differ_widen_the_interval():
    assert width(table(film=1.0)) > 1.5 * width(table(film=0.0))


def test_rows_of_one_clip_tested_in_two_folds_are_drawn_together():
    import pandas as pd

    once = table(film=0.5)
    again = once.table.assign(fold=once.table["fold"] + 100)
    twice = Predictions(pd.concat([once.table, again], ignore_index=True))
    assert width(twice) == pytest.approx(width(once), rel=1e-9)


def test_the_interval_of_an_auc_covers_what_was_planted_about_as_often_as_it_says():
    """30 corpora of 12 films that differ by .3 SD; the truth is that of a corpus of many films."""
    truth = metrics.auc(
        *(table(0.3, 4000, 20, seed=99).table[name].to_numpy() for name in ("label", "score"))
    )
    covered = 0
    for seed in range(30):
        predictions = table(film=0.3, n_clips=40, seed=seed).table
        y, score, movies = (predictions[name].to_numpy() for name in ("label", "score", "movie"))
        draws = drawn.draw_clips(movies.astype(str), 300, np.random.default_rng(seed))
        low, high = drawn.bootstrap_interval(
            lambda part, y=y, score=score: drawn.DRAWN_METRICS["auc"](
                y.astype(bool), score, y.astype(bool), part
            ),
            draws,
        )
        covered += low <= truth <= high
    assert covered >= 25
