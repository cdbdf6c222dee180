"""Time the penalties and the folds of the linear probe against scikit-learn, and `obygaze paper all`.

    python benchmarks/zoo.py [--annotations FOLDER]

The folder is that of the released annotations, whose folds `obygaze paper all` needs: without it that is left
out. CPU seconds of all threads, which a busy machine distorts little; the ratios mean something elsewhere.
"""

import pstats
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments, in_turn, obygaze, show
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.models import RidgeLogistic
from obygaze_models.models.linear import PENALTIES, linear_probe
from obygaze_models.models.probe_search import TrainingSet, search_probes
from obygaze_models.models.ridge_folds import FoldLogistic
from obygaze_models.models.scaling import CLIP, ClippedScaler
from obygaze_models.protocol.selection import inner_folds
from obygaze_studies.obygaze12 import import_obygaze12
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS

N_FEATURES = 512


def planted_features(manifest: Manifest) -> NDArray[np.float32]:
    """Draw features [N, D] of a manifest's clips that know of levels, concepts and films."""
    rng = np.random.default_rng(0)
    movies = np.unique([clip.movie for clip in manifest], return_inverse=True)[1]

    def marks_of(clip: Clip) -> list[bool]:
        levels = [clip.level == level for level in ("EN", "HN", "S")]
        return levels + [concept in clip.concepts for concept in VISUAL_CONCEPTS]

    marks = np.array([*map(marks_of, manifest)])
    X = 0.1 * marks @ rng.normal(size=(marks.shape[1], N_FEATURES))
    X += 0.3 * rng.normal(size=(movies.max() + 1, N_FEATURES))[movies] + rng.normal(size=X.shape)
    # About as long as embeddings are; the paper's perceptron takes them as they are.
    return (X / 6).astype(np.float32)


def penalties(n_clips: int, decay: float) -> dict[str, object]:
    """Fit the linear probe's penalties, together and by scikit-learn's solver that suits them best.

    The features' principal deviations fall as rank ** -decay.
    """
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(N_FEATURES, N_FEATURES)))[0]
    X = (rng.normal(size=(n_clips, N_FEATURES)) * np.arange(1.0, N_FEATURES + 1) ** -decay) @ turn
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (rng.random(n_clips) < expit(X @ rng.normal(size=N_FEATURES) / 20)).astype(np.int64)
    models = [RidgeLogistic(C) for C in PENALTIES.values]
    settings = {"solver": "newton-cholesky", "tol": 1e-6, "max_iter": 10_000}
    peers = [LogisticRegression(C=C, **settings) for C in PENALTIES.values]
    by_default = [LogisticRegression(C=C) for C in PENALTIES.values]

    def fit_by_default() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for peer in by_default:
                peer.fit(X, y)

    taken = in_turn(
        {
            "ours": lambda: RidgeLogistic.fit_together(models, X, y),
            "scikit-learn": lambda: [peer.fit(X, y) for peer in peers],
            "lbfgs": fit_by_default,
        },
        3,
        least=True,
    )
    losses = np.array([[_loss(model, X, y) for model in solver] for solver in (models, peers, by_default)])
    above = (losses / losses.min(axis=0) - 1).max(axis=1)
    ours = taken["ours"].cpu_s
    theirs = taken["scikit-learn"].cpu_s
    return {
        "clips": n_clips,
        "power": -decay,
        "ours, CPU s": ours,
        "newton-cholesky, CPU s": theirs,
        "ratio": theirs / ours,
        "lbfgs as by default, CPU s": taken["lbfgs"].cpu_s,
        "its ratio": taken["lbfgs"].cpu_s / ours,
        "our loss above": f"{above[0]:.0e}",
        "newton-cholesky": f"{above[1]:.0e}",
        "lbfgs": f"{above[2]:.0e}",
    }


def nested_folds(n_clips: int, n_movies: int, decay: float) -> dict[str, object]:
    """Leave out each movie, with penalties chosen by four inner folds: in one product, and by `lbfgs`.

    scikit-learn's solver is as it is by default, which ends with a looser tolerance; a sixteenth of its fits
    is timed.
    """
    rng = np.random.default_rng(0)
    movies = np.sort(np.arange(n_clips) % n_movies).astype(str)
    y = (rng.random(n_clips) < 0.4).astype(np.int64)
    X = rng.normal(size=(n_clips, N_FEATURES)) * np.arange(1.0, N_FEATURES + 1) ** -decay
    if decay:
        X = X @ np.linalg.qr(rng.normal(size=(N_FEATURES, N_FEATURES)))[0]
    X += 0.1 * X.std() * y[:, None] * rng.normal(size=N_FEATURES)
    sides = []
    for movie in np.unique(movies):
        rows = np.flatnonzero(movies != movie)
        sides.append(TrainingSet(rows, inner_folds(y[rows], movies[rows])))
    inner = [side.rows[side.inner != fold] for side in sides for fold in range(4)]
    every_16th = inner[::16]
    losses = []

    def by_lbfgs() -> None:
        losses.clear()
        for rows in every_16th:
            features = ClippedScaler().fit_transform(X[rows])
            models = [LogisticRegression(C=C) for C in PENALTIES.values]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                losses.append([_loss(model.fit(features, y[rows]), features, y[rows]) for model in models])

    def in_one_product() -> None:
        for _ in search_probes(linear_probe(), PENALTIES, X, y, sides):
            pass

    taken = in_turn({"ours": in_one_product, "lbfgs": by_lbfgs}, 1)
    masks = np.zeros((n_clips, len(every_16th)), dtype=np.bool_)
    for column, rows in enumerate(every_16th):
        masks[rows, column] = True
    ours = _losses_of_folds(X, y, masks)
    lbfgs = taken["lbfgs"].cpu_s * len(inner) / len(every_16th)
    theirs = np.array(losses)
    least = np.minimum(ours, theirs)
    return {
        "clips": n_clips,
        "movies": n_movies,
        "power": -decay,
        "ours, CPU s": taken["ours"].cpu_s,
        "lbfgs, inner folds alone": lbfgs,
        "ratio": lbfgs / taken["ours"].cpu_s,
        "our loss above": f"{(ours / least - 1).max():.0e}",
        "theirs": f"{(theirs / least - 1).max():.0e}",
    }


def one_movie_more(n_clips: int = 2_000, n_movies: int = 100, n_turns: int = 5) -> dict[str, object]:
    """Time the folds of some movies and of one movie more: leaving one out has no step in its cost.

    Medians of several turns: one alone differs from the next by more than a movie costs.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_clips, N_FEATURES))
    y = (rng.random(n_clips) < 0.4).astype(np.int64)

    def search(n: int) -> None:
        movies = np.sort(np.arange(n_clips) % n).astype(str)
        sides = []
        for movie in np.unique(movies):
            rows = np.flatnonzero(movies != movie)
            sides.append(TrainingSet(rows, inner_folds(y[rows], movies[rows])))
        for _ in search_probes(linear_probe(), PENALTIES, X, y, sides):
            pass

    taken = in_turn({"few": lambda: search(n_movies), "many": lambda: search(n_movies + 1)}, n_turns)
    few = taken["few"].cpu_s
    many = taken["many"].cpu_s
    return {f"{n_movies} movies, CPU s": few, "one more": many, "ratio": many / few, "goal": 1.1}


def _losses_of_folds(
    X: NDArray[np.float64], y: NDArray[np.int64], masks: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute the losses that fits of subsets [N, K] reach: [K, penalties]."""
    losses = np.empty((masks.shape[1], len(PENALTIES.values)))
    probes = FoldLogistic(X, y, CLIP)
    for penalty, C in enumerate(PENALTIES.values):
        for fits in probes.minima(masks, [C] * masks.shape[1]):
            misfit = np.logaddexp(0, (1 - 2 * y)[:, None] * fits.logits)
            inside = masks[:, fits.subsets]
            losses[fits.subsets, penalty] = C * (misfit * inside).sum(axis=0)
            losses[fits.subsets, penalty] += (fits.weights**2).sum(axis=0) / 2
    return losses


def _loss(model: RidgeLogistic | LogisticRegression, X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    misfit = np.logaddexp(0, (1 - 2 * y) * model.decision_function(X)).sum()
    return float(model.C * misfit + (model.coef_**2).sum() / 2)


def whole_paper(manifest: Manifest, X: NDArray[np.float32], folder: Path) -> None:
    """Redo the paper under both protocols."""
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "whole", movie_of, {"planted": {"pooled": X}})
    words = ["paper", "all", folder / "obygaze12.csv", store, "--out", folder / "paper"]
    profile_of_paper([*words, "--force"], folder / "profile")
    took = obygaze(*words, "--force")
    print(f"obygaze paper all, both protocols: {took.cpu_s:.0f} s of CPU, {took.wall_s:.0f} s wall")


KINDS = {
    "perceptrons": ("mlp.py", "training.py"),
    "probes of all folds": (
        "ridge_folds.py",
        "fold_descent.py",
        "fold_losses.py",
        "fold_scaling.py",
        "probe_search.py",
    ),
    "heads of all folds": ("few_features.py",),
    "other logistic regressions": ("ridge_logistic.py", "ridge_path.py", "_logistic.py", "_newton_solver.py"),
    "CAVs": ("cav_fitting.py", "ridge_tuning.py", "bank.py"),
    "heads and calibration": ("heads.py", "calibration.py", "slope.py"),
    "figures": ("figures.py", "backend_agg.py", "figure.py"),
}
"""Files whose functions take the time of each kind of work; what they call is theirs."""


PROFILED = """
import cProfile, sys, time
from obygaze.cli import main
file, *sys.argv[1:] = sys.argv[1:]
profile = cProfile.Profile(time.process_time)
try:
    profile.runcall(main)
finally:
    profile.dump_stats(file)
"""
"""Runs the command in a profile of CPU seconds, which a busy machine distorts little."""


def profile_of_paper(words: Sequence[object], file: Path) -> None:
    """Print where `obygaze paper all` spends its time: CPU seconds of each kind, with what it calls."""
    runner = [sys.executable, "-c", PROFILED, str(file), *map(str, words)]
    subprocess.run(runner, stdout=subprocess.DEVNULL, check=True)
    stats: Any = pstats.Stats(str(file))
    total = stats.total_tt
    rows = []
    for kind, names in KINDS.items():
        seconds = _seconds_below(stats, names)
        rows.append({"kind": kind, "s": seconds, "share": seconds / total})
    show(rows, title=f"paper all by a profile, {total:.0f} s with the profiler's own")


def _seconds_below(stats: pstats.Stats, names: Sequence[str]) -> float:
    """Add up what is spent in the functions of some files, and in what they call."""
    seconds = 0.0
    for (path, _, _), (_, _, _, _, callers) in stats.stats.items():
        if Path(path).name not in names:
            continue
        for (caller, _, _), (_, _, _, cumulative) in callers.items():
            if Path(caller).name not in names:
                seconds += cumulative
    return seconds


def main() -> None:
    """Print the figures."""
    options = arguments(__doc__, annotations=Path())
    with threadpool_limits(limits=1):
        show(nested_folds(2_000, 40, decay) for decay in (0.0, 1.0))
        show([one_movie_more()])
        show(penalties(n_clips, decay) for n_clips in (1_200, 14_000) for decay in (0.0, 0.5, 1.0))
    if options.annotations != Path():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            manifest = import_obygaze12(options.annotations, folder / "obygaze12.csv").manifest
            X = planted_features(manifest)
            write_manifest(manifest, folder / "obygaze12.csv")
            whole_paper(manifest, X, folder)


if __name__ == "__main__":
    main()
