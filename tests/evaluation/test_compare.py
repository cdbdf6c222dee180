"""Two runs are compared film by film, and only when they were asked the same of the same clips."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from obygaze_models.evaluation import METRICS, Predictions
from obygaze_models.experiments.compare import CompareError, compare, side
from obygaze_models.experiments.comparison_table import caption, comparison_table, document
from obygaze_models.experiments.run_folder import RunError, SavedRun, read_run

RECORD = {"protocol": "strict", "label_policy": "paper"}


def rows(strength, *, seed=0, model="mlp", n_movies=12, n_clips=30, noise=1):
    """Predictions of a model that tells S clips apart by `strength` SDs in every movie alike."""
    movie_of = np.repeat(np.arange(n_movies), n_clips)
    y = (np.arange(movie_of.size) % 3 == 0).astype(np.int64)
    score = np.random.default_rng(noise).normal(size=y.size) + strength * y
    return pd.DataFrame(
        {
            "model": model,
            "task": "hn_s>hn_s",
            "fold": movie_of,
            "seed": seed,
            "clip_id": [f"m{movie:02}-{place}" for place, movie in enumerate(movie_of)],
            "movie": [f"m{movie:02}" for movie in movie_of],
            "label": y,
            "score": score,
            "threshold": strength / 2,
            "store": "f" * 64,
        }
    )


def saved(tmp_path, table, **record):
    return SavedRun(tmp_path, RECORD | record, Predictions(table))


@pytest.fixture
def strong(tmp_path):
    return saved(tmp_path / "strong", rows(3.0, noise=1))


@pytest.fixture
def weak(tmp_path):
    return saved(tmp_path / "weak", rows(0.5, noise=2))


def test_a_better_model_is_better_in_every_film_and_metric(strong, weak):
    found = compare(side(strong), side(weak))
    assert list(found.metrics["metric"]) == list(METRICS)
    assert (found.metrics["difference"] > 0).all()
    auc = found.metrics.set_index("metric").loc["auc"]
    assert auc["p"] == 2 / 4096
    assert auc["low"] > 0
    assert (found.metrics["p_holm"] >= found.metrics["p"]).all()
    assert auc["p_holm"] == pytest.approx(6 * 2 / 4096)


def test_the_difference_is_the_mean_over_films_of_the_films_differences(strong, weak):
    found = compare(side(strong), side(weak))
    for metric, part in found.films.groupby("metric"):
        row = found.metrics.set_index("metric").loc[metric]
        assert len(part) == 12
        assert row["difference"] == pytest.approx(part["difference"].mean())
        assert row["difference"] == pytest.approx(row["a"] - row["b"])


def test_a_run_equals_itself(strong):
    found = compare(side(strong), side(strong))
    assert (found.metrics["difference"] == 0).all()
    assert (found.metrics["p"] == 1).all()


def test_two_models_of_equal_strength_are_not_told_apart(tmp_path):
    low = 0
    for noise in range(20):
        a, b = (saved(tmp_path, rows(1.0, noise=noise + shift)) for shift in (100, 200))
        low += compare(side(a), side(b)).metrics["p_holm"].min() < 0.05
    assert low <= 3


def test_seeds_are_averaged_within_a_film(tmp_path, weak):
    two = pd.concat([rows(3.0, seed=0, noise=1), rows(3.0, seed=1, noise=3)], ignore_index=True)
    both = compare(side(saved(tmp_path, two)), side(weak)).films.set_index(["metric", "movie"])["a"]
    each = [
        compare(side(saved(tmp_path, rows(3.0, noise=noise))), side(weak)).films.set_index(
            ["metric", "movie"]
        )["a"]
        for noise in (1, 3)
    ]
    np.testing.assert_allclose(both, (each[0] + each[1]) / 2)


def test_a_film_without_positives_is_left_out_of_what_it_does_not_define(tmp_path):
    tables = []
    for strength, noise in ((3.0, 1), (0.5, 2)):
        table = rows(strength, noise=noise)
        table.loc[table["movie"] == "m00", "label"] = 0
        tables.append(saved(tmp_path, table))
    found = compare(side(tables[0]), side(tables[1]))
    assert (found.metrics["n_movies"] == 11).all()
    assert document(found)["smallest_p"] == 2 / 2048
    assert "11 films are few: no p can be below 0.00098" in "\n".join(caption(found))
    assert document(found)["films"][0]["a"] is None


@pytest.mark.parametrize(
    ("change", "record", "message"),
    [
        (lambda t: t.assign(task="en_s>en_s"), {}, r"their tasks differ, hn_s>hn_s and en_s>en_s"),
        (lambda t: t, {"label_policy": "raw"}, r"label_policy differs, 'paper' and 'raw'"),
        (lambda t: t, {"protocol": "paper"}, r"protocol differs, 'strict' and 'paper'"),
        (lambda t: t.iloc[:-3], {}, r"their clips differ, 3 are in .*strong alone, the first is m11-357"),
        (
            lambda t: t.assign(clip_id=t["clip_id"].replace("m00-0", "other")),
            {},
            r"their clips differ, 1 are in .*strong alone, the first is m00-0",
        ),
        (
            lambda t: t.assign(label=1 - t["label"]),
            {},
            r"the label of 360 clips differs, the first is m00-0: 1 and 0",
        ),
    ],
)
def test_runs_that_were_asked_different_things_are_refused_by_what_differs(
    strong, tmp_path, change, record, message
):
    other = saved(tmp_path / "other", change(rows(0.5)), **record)
    with pytest.raises(CompareError, match=message):
        compare(side(strong), side(other))


def test_models_are_chosen_by_name_and_the_first_is_the_default(tmp_path):
    run = saved(tmp_path, pd.concat([rows(2.0, model="mlp"), rows(0.0, model="prior")], ignore_index=True))
    assert side(run).model == "mlp"
    assert compare(side(run), side(run, "prior")).metrics["difference"].min() > 0
    with pytest.raises(CompareError, match="no model 'svm' in this run, but mlp, prior"):
        side(run, "svm")
    two = saved(tmp_path, pd.concat([rows(1.0), rows(1.0).assign(task="x>x")], ignore_index=True))
    with pytest.raises(CompareError, match=r"several tasks \(hn_s>hn_s, x>x\)"):
        side(two)


def test_the_table_and_its_caption_say_how_little_twelve_films_are(strong, weak):
    found = compare(side(strong), side(weak))
    lines = comparison_table(found).splitlines()
    assert lines[0].split()[:3] == ["metric", "A", "B"]
    assert [line.split()[0] for line in lines[2:]] == list(METRICS)
    text = "\n".join(caption(found))
    for said in (
        "12 films are few: no p can be below 0.00049",
        "must be 0.89 of its SD between films",
        "all 4096 patterns",
        "Holm over the 6 metrics",
        "labels: paper policy",
    ):
        assert said in text
    assert json.loads(json.dumps(document(found), allow_nan=False))["n_movies"] == 12


def test_a_folder_that_is_no_run_is_refused(tmp_path, strong):
    with pytest.raises(RunError, match=r"nowhere is not the folder of a run: it has no predictions.csv"):
        read_run(tmp_path / "nowhere")
    folder = tmp_path / "run"
    folder.mkdir()
    strong.predictions.write(folder / "predictions.csv")
    for text in ("{", "[]", '{"record": 3}', "[" * 100_000):
        (folder / "metrics.json").write_text(text, "utf-8")
        with pytest.raises(RunError, match=r"metrics\.json"):
            read_run(folder)
    (folder / "metrics.json").write_text(json.dumps({"record": RECORD}), "utf-8")
    found = read_run(folder)
    assert dataclasses.asdict(found)["record"] == RECORD
    pd.testing.assert_frame_equal(found.predictions.table, strong.predictions.table)
