"""Concept directions, and heads that see by them alone, under `strict`: nothing saw its test film.

CAVs are ridge regressions of a concept's presence, of which a movie can be left out in closed form. Their
penalty is set by the training features alone, one mean variance of their directions, as in the permutation
test (`obygaze_models.concepts.significance`): nothing of it is selected, so nothing can be selected unfairly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import VISUAL_CONCEPTS
from obygaze_models.concepts import (
    ConceptBottleneck,
    ConceptError,
    Hyperplanes,
    ridge_hyperplanes,
    ridge_leave_group_out,
)
from obygaze_models.concepts.bottleneck import ABOVE_ZERO
from obygaze_models.evaluation import Predictions
from obygaze_models.experiments.evaluate import seed_of
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.rows import gather, predicted
from obygaze_models.protocol import TASKS, Split, check_split, inner_folds
from obygaze_models.protocol.paper import Negatives

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def enough(material: Material) -> tuple[int, ...]:
    """List the numbers of the concepts that vary in whatever movies an inner loop may learn from."""
    present = presence(material)
    kept = np.ones(present.shape[1], dtype=np.bool_)
    for movie in np.unique(material.movies):
        train = material.movies != movie
        folds = inner_folds(material.y[train], material.movies[train])
        for fold in np.unique(folds):
            rest = present[train][folds != fold]
            kept &= rest.any(axis=0) & ~rest.all(axis=0)
    return tuple(np.flatnonzero(kept).tolist())


def presence(material: Material) -> Bools:
    """Say which clips are a concept's positives [N, 8]: the S and HN clips with it."""
    marked: Bools = material.present & (material.levels != "EN")[:, None]
    return marked


def used(material: Material, concept: int, negatives: Negatives) -> Bools:
    """Say which clips a concept's CAV is told from [N]: all, or its positives and the EN clips."""
    if negatives is Negatives.ALL:
        return np.ones(len(material.clip_ids), dtype=np.bool_)
    told_from: Bools = presence(material)[:, concept] | (material.levels == "EN")
    return told_from


def penalty_of(X: NDArray[np.float32]) -> float:
    """Give the C of a ridge penalty of one mean variance of the directions of X [N, D]."""
    centred: Floats = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    mean_variance = float(np.sum(centred * centred)) / int(min(X.shape))
    if mean_variance <= 0:
        raise ConceptError("the features are constant: no concept can be read from them")
    return float(1 / mean_variance)


def concept_predictions(material: Material, source: Source) -> Predictions:
    """Predict concepts in each movie by CAVs fitted on the others; tasks are ``concept|negatives``.

    Raises
    ------
    ConceptError
        Without some movie a concept has clips of one class only.
    """
    blocks = []
    labels = presence(material)
    for negatives in (Negatives.EN, Negatives.ALL):
        for concept in enough(material):
            rows = np.flatnonzero(used(material, concept, negatives))
            X, label, movies = source.X[rows], labels[rows][:, [concept]], material.movies[rows]
            names, planes = ridge_leave_group_out(X, label, movies, penalty_of(X))
            for fold, (name, plane) in enumerate(zip(names, planes, strict=True)):
                out = movies == name
                blocks.append(
                    predicted(
                        material,
                        source,
                        rows[out],
                        model="cav_ridge",
                        task=f"{VISUAL_CONCEPTS[concept]}|{negatives}",
                        fold=fold,
                        seed=0,
                        score=plane.distances(X[out])[:, 0],
                        threshold=ABOVE_ZERO,
                        label=label[out, 0].astype(np.int64),
                    )
                )
    return gather(blocks)


@dataclass(frozen=True, eq=False)
class Bank:
    """Concept values of training clips, cross-fitted, and of any others; both standardised on training.

    Attributes
    ----------
    planes : Hyperplanes
        Fitted on all training clips, for new ones.
    train_values : ndarray, shape [N, K]
        From CAVs fitted without each clip's inner fold of movies.
    mean, scale : ndarray, shape [K]
        Of the cross-fitted distances.
    """

    planes: Hyperplanes
    train_values: Floats
    mean: Floats
    scale: Floats

    def values(self, X: NDArray[np.float32]) -> Floats:
        """Compute the concept values [N, K] of new clips."""
        return (self.planes.distances(X) - self.mean) / self.scale


def fit_bank(X: NDArray[np.float32], present: Bools, folds: NDArray[np.int64]) -> Bank:
    """Fit ridge CAVs on training clips, cross-fitted over folds of movies."""
    C = penalty_of(X)
    names, planes = ridge_leave_group_out(X, present, folds, C)
    distances = np.empty(present.shape)
    for name, plane in zip(names, planes, strict=True):
        distances[folds == name] = plane.distances(X[folds == name])
    return _bank(ridge_hyperplanes(X, present, C), distances)


def random_bank(X: NDArray[np.float32], n: int, rng: np.random.Generator) -> Bank:
    """Take random directions for CAVs."""
    planes = Hyperplanes(rng.normal(size=(n, X.shape[1])), np.zeros(n))
    return _bank(planes, planes.distances(X))


def _bank(planes: Hyperplanes, distances: Floats) -> Bank:
    mean, scale = distances.mean(axis=0), distances.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, 1.0)
    return Bank(planes, (distances - mean) / scale, mean, scale)


def shuffled(present: Bools, movies: NDArray[np.str_], rng: np.random.Generator) -> Bools:
    """Exchange clips' whole rows of presences within movies: concepts keep company, not their clips."""
    rows = np.arange(len(present))
    for movie in np.unique(movies):
        own = np.flatnonzero(movies == movie)
        rows[own] = rng.permutation(own)
    return present[rows]


CONTROLS = ("random directions", "shuffled concepts")


def head_predictions(material: Material, source: Source, seed: int) -> Predictions:
    """Fit PCBM-DT and PCBM-LR for each film left out, and PCBM-LR on two banks that know nothing.

    CAVs are fitted on the training clips of all three levels; each head on those of its task.
    """
    kept = list(enough(material))
    present = presence(material)[:, kept]
    blocks = []
    for fold, movie in enumerate(np.unique(material.movies)):
        train, out = np.flatnonzero(material.movies != movie), np.flatnonzero(material.movies == movie)
        cut = Split(fold, train, np.empty(0, dtype=np.intp), out)
        check_split(cut, material.clip_ids.tolist(), material.movies.tolist())
        rng = np.random.default_rng(seed_of(seed, fold))
        X, movies = source.X[train], material.movies[train]
        folds = inner_folds(material.y[train], movies)
        control = shuffled(present[train], movies, rng)
        # Together: the factorisation is the same for any presences.
        both = fit_bank(X, np.column_stack([present[train], control]), folds)
        k = len(kept)
        banks = {
            "": _part(both, slice(0, k)),
            CONTROLS[0]: random_bank(X, k, rng),
            CONTROLS[1]: _part(both, slice(k, 2 * k)),
        }
        for name, bank in banks.items():
            values = bank.values(source.X)
            for head in ("tree", "logistic") if not name else ("logistic",):
                for task in ("en_s", "hn_s"):
                    own = np.flatnonzero(TASKS[task].holds(material.levels[train]))
                    model = ConceptBottleneck(head, random_state=seed_of(seed, fold))
                    model.fit(bank.train_values[own], material.y[train][own], movies[own])
                    for test in ("en_s", "enhn_s"):
                        rows = out[TASKS[test].holds(material.levels[out])]
                        if not rows.size:
                            continue
                        short = "pcbm_dt" if head == "tree" else "pcbm_lr"
                        blocks.append(
                            predicted(
                                material,
                                source,
                                rows,
                                model=f"{short}, {name}" if name else short,
                                task=f"{task}>{test}",
                                fold=fold,
                                seed=seed,
                                score=model.decision_function(values[rows]),
                                threshold=model.threshold_,
                            )
                        )
    return gather(blocks)


def _part(bank: Bank, which: slice) -> Bank:
    planes = Hyperplanes(bank.planes.weights[which], bank.planes.intercepts[which])
    return Bank(planes, bank.train_values[:, which], bank.mean[which], bank.scale[which])


def final_tree(
    material: Material, source: Source, task: str, seed: int
) -> tuple[ConceptBottleneck, tuple[int, ...]]:
    """Fit the tree that is drawn: on all movies, its depth chosen by inner folds of movies.

    Returns
    -------
    model : ConceptBottleneck
    concepts : tuple of int
        The concepts that its columns are.
    """
    kept = enough(material)
    folds = inner_folds(material.y, material.movies)
    bank = fit_bank(source.X, presence(material)[:, list(kept)], folds)
    own = np.flatnonzero(TASKS[task].holds(material.levels))
    model = ConceptBottleneck("tree", random_state=seed)
    model.fit(bank.train_values[own], material.y[own], material.movies[own])
    return model, kept
