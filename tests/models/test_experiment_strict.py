"""Under `strict` planted truths come out, nothing comes out where nothing is, and the report says which."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import Clip, LabelPolicy, Manifest
from obygaze_models.concepts import tuned_ridge
from obygaze_models.concepts.ridge_tuning import PENALTIES
from obygaze_models.evaluation.metrics import auc
from obygaze_models.experiments import (
    figure3,
    figure5,
    figure6,
    strict_concepts,
    strict_protocol,
    table2,
    table4,
)
from obygaze_models.experiments.error_factors import error_factors
from obygaze_models.experiments.evaluate import evaluate
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.results import StrictResults
from obygaze_models.protocol import TASKS, VISUAL_CONCEPTS
from obygaze_models.report import markdown, write_report

N_MOVIES, N_PER_MOVIE, D = 8, 36, 32


def planted(*, direction=0.0, film=0.0, concept=0.0, seed=0, n_movies=N_MOVIES, marked=True):
    """Make clips of three levels whose S clips lie along one axis, films apart, and Body along another.

    Films differ in their share of S clips. Body is marked more often in S clips, and the other concepts in
    HN and S clips at random: they are in no feature.
    """
    rng = np.random.default_rng(seed)
    movie_of = np.repeat(np.arange(n_movies), N_PER_MOVIE)
    y = rng.random(movie_of.size) < np.linspace(0.15, 0.45, n_movies)[movie_of]
    levels = np.where(y, "S", np.where(rng.random(y.size) < 0.5, "EN", "HN"))
    present = rng.random((y.size, len(VISUAL_CONCEPTS))) < 0.35
    present[:, 2] = rng.random(y.size) < np.where(y, 0.7, 0.2)
    present[levels == "EN"] = False
    present &= marked
    axes = np.linalg.qr(rng.normal(size=(D, D)))[0]
    X = rng.normal(size=(y.size, D)) + direction * y[:, None] * axes[0]
    X += concept * present[:, [2]] * axes[1] + film * rng.normal(size=(n_movies, D))[movie_of]
    movies = np.array([f"tt{movie:07}" for movie in movie_of])
    names = np.array([f"{movie}-{place:03}" for place, movie in enumerate(movies)])
    clips = tuple(
        Clip(
            name,
            movie,
            level=str(level),
            concepts=tuple(np.array(VISUAL_CONCEPTS)[marks].tolist()),
        )
        for name, movie, level, marks in zip(
            names.tolist(), movies.tolist(), levels.tolist(), present, strict=True
        )
    )
    source = Source("planted", "planted", "f" * 64, "pooled", "as stored", False, X.astype(np.float32))
    return Material(
        Manifest(clips, Path()),
        LabelPolicy.RAW,
        "0" * 64,
        names,
        movies,
        levels,
        present,
        (source,),
        (),
    )


def results(material):
    return StrictResults(material, material.sources[0])


@pytest.fixture(scope="module")
def film_only():
    return results(planted(film=4.0, marked=False))


@pytest.fixture(scope="module")
def learnable():
    return results(planted(direction=2.0, film=0.5, concept=2.5))


def pooled(one, metric, task="hn_s>enhn_s"):
    rows = one.summary[(one.summary["metric"] == metric) & (one.summary["task"] == task)]
    return dict(zip(rows["model"], rows["pooled"], strict=True))


def test_of_films_alone_the_probe_knows_no_more_than_the_movie_prior_and_the_report_says_so(film_only):
    known = table2.film_knowledge([film_only])
    assert not known["told_apart"].any()
    assert (known["p_holm"] > 0.05).all()
    assert known["difference"].abs().max() < 0.1
    assert pooled(film_only, "within_movie_auc")["mlp"] == pytest.approx(0.5, abs=0.1)
    text = markdown(table2.strict_report([film_only]))
    assert text.count("NOT told apart from knowing the film alone") == 4


def test_of_a_planted_direction_the_report_says_that_the_probe_knows_more(learnable):
    known = table2.film_knowledge([learnable])
    assert known["told_apart"].all()
    assert "NOT told apart" not in markdown(table2.strict_report([learnable]))
    found = pooled(learnable, "average_precision")
    assert found["mlp"] > max(found["movie_prior"], found["random_prevalence"]) + 0.2


def test_shuffled_labels_are_at_chance():
    material = planted(direction=2.0, concept=2.5)
    rng = np.random.default_rng(1)
    order = np.arange(len(material.levels))
    for movie in np.unique(material.movies):
        own = np.flatnonzero(material.movies == movie)
        order[own] = rng.permutation(own)
    shuffled = dataclasses.replace(material, levels=material.levels[order], present=material.present[order])
    found = pooled(results(shuffled), "within_movie_auc")
    for model in ("mlp", "pcbm_lr", "pcbm_dt"):
        assert found[model] == pytest.approx(0.5, abs=0.1)


def test_heads_see_by_concepts_and_not_by_directions_that_know_none(learnable):
    """Body is in the features and goes with S; random directions and shuffled concepts see less of it."""
    found = pooled(learnable, "within_movie_auc", "en_s>enhn_s")
    for control in ("random directions", "shuffled concepts"):
        assert found["pcbm_lr"] > found[f"pcbm_lr, {control}"] + 0.03


def test_the_planted_concept_is_significant_and_the_absent_ones_are_not(learnable):
    report = figure3.strict_report([learnable])
    rows = report.data[report.data["negatives"] == "all"].set_index("concept")
    assert rows.loc["Body", "p_holm"] < 0.05
    assert rows.loc["Body", "f1_pos_low"] > rows.loc["Body", "all_positive"]
    others = rows.drop("Body")
    # Levels are in the features, and every concept is of HN and S clips alone: against EN they are seen.
    assert (others["f1_pos"] < rows.loc["Body", "f1_pos"]).all()
    assert (rows["f1_pos_low"] <= rows["f1_pos"]).all()
    assert (rows["f1_pos"] <= rows["f1_pos_high"]).all()


def test_cavs_never_see_the_film_they_are_tested_on():
    """Other features and labels in one film change no prediction of another film's clips by its own CAVs."""
    material = planted(direction=1.0, concept=1.0, n_movies=4)
    here = material.movies == material.movies[0]
    other = dataclasses.replace(
        material,
        present=np.where(
            here[:, None], ~material.present & (material.levels != "EN")[:, None], material.present
        ),
        sources=(
            dataclasses.replace(
                material.sources[0], X=np.where(here[:, None], 7.0, material.sources[0].X).astype(np.float32)
            ),
        ),
    )
    tables = [
        one.table[one.table["movie"] == material.movies[0]]
        for one in (results(material).heads, results(other).heads)
    ]
    fitted = [
        table[["model", "task", "threshold"]].drop_duplicates().reset_index(drop=True) for table in tables
    ]
    assert fitted[0].equals(fitted[1])
    assert not tables[0]["score"].reset_index(drop=True).equals(tables[1]["score"].reset_index(drop=True))


def test_nothing_that_chooses_a_penalty_or_a_head_is_handed_the_film_it_is_tested_on(monkeypatch):
    """Features and presences of one film that would break any fit break none of its own."""
    material = planted(direction=1.0, concept=1.0, n_movies=4)
    film = material.movies[0]
    seen = []

    def watched(X, present, movies):
        seen.append((frozenset(movies.tolist()), len(X), len(present)))
        return tuned_ridge(X, present, movies)

    monkeypatch.setattr(strict_concepts, "tuned_ridge", watched)
    banks = strict_concepts.film_banks(material, material.sources[0], 0)
    assert [movies for movies, *_ in seen] == [
        frozenset(material.movies.tolist()) - {movie} for movie in np.unique(material.movies)
    ]
    assert all(sizes == [3 * N_PER_MOVIE] * 2 for _, *sizes in seen)
    broken = np.where((material.movies == film)[:, None], np.nan, material.sources[0].X).astype(np.float32)
    kept = np.flatnonzero(material.movies != film)
    own = next(one for one in banks if one.movie == film)
    again = tuned_ridge(broken[kept], strict_concepts.presence(material)[kept], material.movies[kept])
    k = len(VISUAL_CONCEPTS)
    assert np.array_equal(own.tuned.losses[:, :k], again.losses)
    assert np.array_equal(own.tuned.planes.weights[:k], again.planes.weights)


def test_every_choice_is_listed_with_its_inner_losses(learnable):
    assert all(len(one.table) for one in (learnable.concepts, learnable.heads, learnable.classifiers))
    listed = learnable.selections
    losses = listed["inner-losses"]
    assert (losses.groupby(["model", "task", "movie"])["chosen"].sum() == 1).all()
    lowest = losses.groupby(["model", "task", "movie"])["inner_loss"].transform("min")
    assert (losses.loc[losses["chosen"] == 1, "inner_loss"] == lowest[losses["chosen"] == 1]).all()
    assert set(losses["model"]) == {
        "cav_ridge",
        "pcbm_dt",
        "pcbm_lr",
        "pcbm_lr, random directions",
        "pcbm_lr, shuffled concepts",
    }
    cavs = losses[losses["model"] == "cav_ridge"]
    assert len(cavs) == N_MOVIES * len(VISUAL_CONCEPTS) * len(PENALTIES)
    curves = listed["inner-curves"]
    assert set(curves["task"]) == {"en_s", "hn_s"}
    assert (curves.groupby(["task", "fold", "inner_fold"])["kept"].sum() == 1).all()


def test_the_same_film_task_and_seed_give_the_same_predictions_in_evaluate_and_table_2(wrap_arrays):
    """Also where a film has no clip of a task, so that its folds are numbered otherwise."""
    material = planted(direction=1.0, marked=False, n_movies=4)
    levels = np.where(material.movies == material.movies[0], "HN", material.levels)
    material = dataclasses.replace(material, levels=levels)
    whole = strict_protocol.classifiers(material, material.sources[0], 3).predictions.table
    for train, test in (("en_s", "en_s"), ("hn_s", "enhn_s")):
        rows = TASKS[train].holds(levels) | TASKS[test].holds(levels)
        data = wrap_arrays(material.sources[0].X[rows], levels[rows], material.movies[rows])
        data = dataclasses.replace(data, clip_ids=material.clip_ids[rows])
        alone = evaluate(data, TASKS[train], TASKS[test], seed=3).predictions.table
        compared = ["model", "clip_id", "movie", "label", "score", "threshold"]
        own = whole[whole["task"] == f"{train}>{test}"]
        pd.testing.assert_frame_equal(alone[compared], own[compared].reset_index(drop=True)[compared])


def test_table_4_tests_every_film_once(learnable):
    report = table4.strict_report([learnable])
    assert report.data["n_clips"].tolist() == [N_PER_MOVIE] * N_MOVIES
    table = learnable.classifiers.table
    part = table[(table["model"] == "mlp") & (table["task"] == table4.TASK)]
    for row in report.data.to_dict(orient="records"):
        own = part[part["movie"] == row["movie"]]
        assert row["auc"] == auc(own["label"].to_numpy(), own["score"].to_numpy())


def test_figure_5_draws_the_concept_that_matters_at_the_root(learnable):
    report = figure5.strict_report([learnable])
    assert report.data.loc[report.data["depth"] == 0, "concept"].item() == "Body"


def test_error_factors_find_the_planted_one_with_its_sign_and_leave_the_null_one():
    rng = np.random.default_rng(0)
    movies = np.repeat([f"m{movie:02}" for movie in range(12)], 60)
    factors = (rng.random((movies.size, 3)) < 0.4).astype(float)
    factors[:, 2] = 1.0
    shift = rng.normal(size=12)[np.repeat(np.arange(12), 60)]
    errors = rng.random(movies.size) < 1 / (1 + np.exp(1.5 - 2 * factors[:, 0] - shift))
    found = error_factors(factors, errors, movies)
    assert found.low[0] < 2 < found.high[0]
    assert found.low[0] > 1
    assert found.low[1] < 0 < found.high[1]
    assert found.p_holm[0] < 0.001
    assert found.p[1] > 0.05
    assert np.isnan([found.effects[2], found.low[2], found.p[2], found.p_holm[2]]).all()
    assert found.n_errors == errors.sum()


def test_error_factors_are_scikit_learns_with_the_same_penalty():
    from sklearn.linear_model import LogisticRegression

    from obygaze_models.experiments.error_factors import PRIOR_SD

    rng = np.random.default_rng(1)
    movies = np.repeat(["a", "b", "c"], 80)
    factors = (rng.random((240, 2)) < 0.5).astype(float)
    errors = rng.random(240) < 1 / (1 + np.exp(1 - factors[:, 0]))
    design = np.column_stack([factors, movies[:, None] == np.array(["a", "b", "c"])])
    model = LogisticRegression(C=PRIOR_SD**2, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(design, errors)
    np.testing.assert_allclose(error_factors(factors, errors, movies).effects, model.coef_[0, :2], atol=1e-6)


def test_error_factors_of_one_film_have_effects_and_no_interval():
    rng = np.random.default_rng(2)
    found = error_factors((rng.random((50, 1)) < 0.5).astype(float), rng.random(50) < 0.4, np.full(50, "a"))
    assert np.isfinite(found.effects[0])
    assert np.isnan([found.low[0], found.high[0], found.p[0]]).all()


def test_figure_6_takes_false_alarms_and_misses_apart(learnable):
    report = figure6.strict_report([learnable])
    kinds = report.data.groupby("errors")
    assert kinds["factor"].count().to_dict() == {"false alarms": 9, "misses": 8}
    table = learnable.classifiers.table
    part = table[(table["model"] == "mlp") & (table["task"] == figure6.TASK)]
    wrong = part["label"] != (part["score"] >= part["threshold"])
    assert kinds["n_errors"].first().sum() == wrong.sum()


def test_the_same_clips_give_the_same_bytes_with_one_thread_or_two(tmp_path):
    material = planted(direction=1.0, concept=1.0, n_movies=4)
    again = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            one = results(material)
            folder = tmp_path / str(threads)
            folder.mkdir()
            for module in (table2, table4, figure3, figure5, figure6):
                write_report(module.strict_report([one]), folder)
            one.predictions().write(folder / "predictions.csv")
        again.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert len(again[0]) == 5 * 4 + 3 * 2 + 1
    assert again[0] == again[1]
