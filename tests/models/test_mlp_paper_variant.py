"""The paper's perceptron: the published model's arithmetic, and the published code's numbers."""

import gzip
import json

import numpy as np
import pytest

from obygaze_models.evaluation.metrics import f1_weighted
from obygaze_models.models import MLPProbe, fit_many
from tests.models.test_mlp_probe import y_of


@pytest.fixture(scope="module")
def learnable(make_planted):
    return make_planted(direction=3.0)


@pytest.fixture(scope="module")
def fitted(learnable):
    out = learnable.movies == learnable.movies[-1]
    probe = MLPProbe(variant="paper", learning_rate=0.01)
    return probe.fit(
        learnable.X[~out], y_of(learnable)[~out], X_val=learnable.X[out], y_val=y_of(learnable)[out]
    )


def test_the_last_epoch_is_kept_patience_past_the_best(fitted):
    losses = fitted.curve_.validation_loss
    assert fitted.n_epochs_ == len(losses) == np.argmin(losses) + 1 + 5


def test_features_are_taken_as_they_are_and_the_likelier_class_is_called(fitted, learnable):
    assert not fitted.mean_.any()
    assert (fitted.scale_ == 1).all()
    probabilities = fitted.predict_proba(learnable.X)
    assert np.array_equal(fitted.predict(learnable.X), (probabilities[:, 1] >= 0.5).astype(int))


TESTS = ("02_EN_S", "02_ENHN_S")
N_SEEDS = 6


def clips_of(side, row_of, y):
    """Return the rows of the clips of a side of a fold, and write their labels into y [N]."""
    rows = np.array([row_of[clip] for clip in side["ids"]])
    y[rows] = [int(label) for label in side["labels"]]
    return rows


def published_f1(run, trained_on, test, fold):
    """Look up the weighted F1 of a run of the original code."""
    (value,) = [
        result["f1_weighted"]
        for result in run["infer"]
        if result["trained_on"] == trained_on
        and result["test"] == f"{test}.csv"
        and result["fold"] == f"fold_{fold}"
    ]
    return value


@pytest.mark.long
@pytest.mark.parametrize("trained_on", ["02_HN_S", "02_EN_S"])
def test_f1_on_given_features_is_the_original_codes_within_its_spread(shared_data, trained_on):
    """Fold by fold, each seed of the original is within 3 SD (at least .015) of our seeds' mean."""
    folder = shared_data / "oracles"
    with np.load(folder / "synth_features.npz") as file:
        X = file["features"]
        row_of = {clip: row for row, clip in enumerate(file["ids"].tolist())}
    with gzip.open(folder / "splits.json.gz", "rt") as file:
        splits = json.load(file)["LinearProbing_KFold"]
    original = json.loads((folder / "original_results.json").read_text("utf-8"))["mlp"]
    y = np.zeros(len(X), dtype=np.int64)
    folds = splits[trained_on]["folds"]
    train = [clips_of(fold["train"], row_of, y) for fold in folds.values()]
    validation = [clips_of(fold["val"], row_of, y) for fold in folds.values()]
    probes = []
    for seed in range(N_SEEDS):
        seeds_of_folds = [seed * 8 + fold for fold in range(len(folds))]
        probes += [MLPProbe(variant="paper", random_state=seed) for seed in seeds_of_folds]
    fit_many(probes, X, y, train * N_SEEDS, validation=validation * N_SEEDS)
    for test in TESTS:
        first_fold = next(iter(splits[test]["folds"].values()))
        clips = clips_of(first_fold["test"], row_of, y)
        values = [f1_weighted(y[clips], probe.predict(X[clips])) for probe in probes]
        ours = np.array(values).reshape(N_SEEDS, len(folds))
        theirs = np.array(
            [[published_f1(run, trained_on, test, fold) for fold in folds] for run in original.values()]
        )
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.02)
        spread = np.maximum(ours.std(axis=0, ddof=1), 0.015)
        assert (np.abs(theirs - ours.mean(axis=0)) < 3 * spread).all()
