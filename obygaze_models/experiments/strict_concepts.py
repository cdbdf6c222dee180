"""Concept directions, and heads that see by them alone, under `strict`: nothing saw its test film.

CAVs are ridge regressions of a concept's presence. Each film left out has its own, and a penalty for each
concept chosen by leaving out one by one the films that remain (`obygaze_models.concepts.ridge_tuning`): all
that is fitted or chosen for a film is handed the clips of the others alone (`film_banks`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_models.concepts import ConceptBottleneck, Hyperplanes, Tuned, ridge_hyperplanes, tuned_ridge
from obygaze_models.concepts.bottleneck import ABOVE_ZERO
from obygaze_models.concepts.ridge_tuning import PENALTIES, mean_variance
from obygaze_models.evaluation import Predictions
from obygaze_models.experiments.evaluate import seed_of
from obygaze_models.experiments.material import Material, Source
from obygaze_models.experiments.rows import gather, predicted
from obygaze_models.protocol import TASKS, VISUAL_CONCEPTS, Split, check_split, inner_folds
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


@dataclass(frozen=True, eq=False)
class Bank:
    """Concept values of training clips, cross-fitted, and of any others; both standardised on training.

    Attributes
    ----------
    planes : Hyperplanes
        Fitted on all training clips, for new ones.
    train_values : ndarray, shape [N, K]
        From CAVs fitted without each clip's movie.
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


def _bank(planes: Hyperplanes, distances: Floats) -> Bank:
    mean, scale = distances.mean(axis=0), distances.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, 1.0)
    return Bank(planes, (distances - mean) / scale, mean, scale)


def _tuned_bank(tuned: Tuned, which: slice) -> Bank:
    planes = Hyperplanes(tuned.planes.weights[which], tuned.planes.intercepts[which])
    return _bank(planes, tuned.distances[:, which])


def random_bank(X: NDArray[np.float32], n: int, rng: np.random.Generator) -> Bank:
    """Take random directions for CAVs."""
    planes = Hyperplanes(rng.normal(size=(n, X.shape[1])), np.zeros(n))
    return _bank(planes, planes.distances(X))


def shuffled(present: Bools, movies: NDArray[np.str_], rng: np.random.Generator) -> Bools:
    """Exchange clips' whole rows of presences within movies: concepts keep company, not their clips."""
    rows = np.arange(len(present))
    for movie in np.unique(movies):
        own = np.flatnonzero(movies == movie)
        rows[own] = rng.permutation(own)
    return present[rows]


CONTROLS = ("random directions", "shuffled concepts")


@dataclass(frozen=True, eq=False)
class FilmBanks:
    """What a film left out is tested with: CAVs of the other films' clips, and controls that know nothing.

    Attributes
    ----------
    split : Split
        The film's clips, and the others'.
    movie : str
    tuned : Tuned
        The CAVs of the concepts that are `enough`.
    banks : mapping of str to Bank
        Those CAVs under "", and the `CONTROLS`.
    """

    split: Split
    movie: str
    tuned: Tuned
    banks: Mapping[str, Bank]


def film_banks(material: Material, source: Source, seed: int) -> list[FilmBanks]:
    """Fit each film's banks on the clips of the other films, of all three levels.

    Raises
    ------
    ConceptError
        Without some two movies a concept has clips of one class only.
    """
    kept = list(enough(material))
    present, k = presence(material)[:, kept], len(kept)
    found = []
    for fold, movie in enumerate(np.unique(material.movies)):
        train, out = np.flatnonzero(material.movies != movie), np.flatnonzero(material.movies == movie)
        split = Split(fold, train, np.empty(0, dtype=np.intp), out)
        check_split(split, material.clip_ids.tolist(), material.movies.tolist())
        rng = np.random.default_rng(seed_of(seed, str(movie)))
        X, movies = source.X[train], material.movies[train]
        control = shuffled(present[train], movies, rng)
        # Together: the decomposition is the same for any presences.
        tuned = tuned_ridge(X, np.column_stack([present[train], control]), movies)
        banks = {
            "": _tuned_bank(tuned, slice(0, k)),
            CONTROLS[0]: random_bank(X, k, rng),
            CONTROLS[1]: _tuned_bank(tuned, slice(k, 2 * k)),
        }
        found.append(FilmBanks(split, str(movie), tuned, banks))
    return found


def concept_predictions(material: Material, source: Source, fitted: Sequence[FilmBanks]) -> Predictions:
    """Predict concepts in each movie by CAVs fitted on the others; tasks are ``concept|negatives``.

    Against all, they are those of the banks; against EN they are fitted anew on fewer clips, at the penalty
    that was chosen against all.

    Raises
    ------
    ConceptError
        Without some movie a concept has clips of one class only.
    """
    blocks = []
    labels = presence(material)
    for negatives in (Negatives.EN, Negatives.ALL):
        for column, concept in enumerate(enough(material)):
            told = used(material, concept, negatives)
            for film in fitted:
                train, test = (side[told[side]] for side in (film.split.train, film.split.test))
                if not test.size:
                    continue
                plane = Hyperplanes(
                    film.tuned.planes.weights[[column]], film.tuned.planes.intercepts[[column]]
                )
                if negatives is Negatives.EN:
                    penalty = float(film.tuned.penalties[column]) * mean_variance(source.X[train])
                    plane = ridge_hyperplanes(source.X[train], labels[train][:, [concept]], 1 / penalty)
                blocks.append(
                    predicted(
                        material,
                        source,
                        test,
                        model="cav_ridge",
                        task=f"{VISUAL_CONCEPTS[concept]}|{negatives}",
                        fold=film.split.fold,
                        seed=0,
                        score=plane.distances(source.X[test])[:, 0],
                        threshold=ABOVE_ZERO,
                        label=labels[test, concept].astype(np.int64),
                    )
                )
    return gather(blocks)


@dataclass(frozen=True, eq=False)
class Heads:
    """Predictions of the PCBM heads and of their controls, and how each head was chosen.

    Attributes
    ----------
    predictions : Predictions
    selection : DataFrame
        As `selection` gives it.
    """

    predictions: Predictions
    selection: pd.DataFrame


def head_predictions(material: Material, source: Source, fitted: Sequence[FilmBanks], seed: int) -> Heads:
    """Fit PCBM-DT and PCBM-LR for each film left out, and PCBM-LR on two banks that know nothing.

    CAVs are fitted on the training clips of all three levels; each head on those of its task.
    """
    blocks, chosen = [], []
    for film in fitted:
        train, out = film.split.train, film.split.test
        for name, bank in film.banks.items():
            values = bank.values(source.X)
            for head in ("tree", "logistic") if not name else ("logistic",):
                for task in ("en_s", "hn_s"):
                    own = np.flatnonzero(TASKS[task].holds(material.levels[train]))
                    model = ConceptBottleneck(head, random_state=seed_of(seed, film.movie))
                    model.fit(bank.train_values[own], material.y[train][own], material.movies[train][own])
                    short = "pcbm_dt" if head == "tree" else "pcbm_lr"
                    called = f"{short}, {name}" if name else short
                    chosen.append(_selected(called, task, film, model.inner_losses_))
                    for test in ("en_s", "enhn_s"):
                        rows = out[TASKS[test].holds(material.levels[out])]
                        if not rows.size:
                            continue
                        blocks.append(
                            predicted(
                                material,
                                source,
                                rows,
                                model=called,
                                task=f"{task}>{test}",
                                fold=film.split.fold,
                                seed=seed,
                                score=model.decision_function(values[rows]),
                                threshold=model.threshold_,
                            )
                        )
    return Heads(gather(blocks), pd.concat(chosen, ignore_index=True))


def selection(material: Material, fitted: Sequence[FilmBanks]) -> pd.DataFrame:
    """List the inner losses of every penalty of every concept, film by film.

    Returns
    -------
    DataFrame
        Columns model, task (a concept, or what a head was trained on), fold, movie (the film left out),
        candidate, inner_loss and chosen (1 or 0).
    """
    return pd.concat(
        [
            _selected(
                "cav_ridge",
                VISUAL_CONCEPTS[concept],
                film,
                {
                    f"penalty={penalty:g}": float(loss)
                    for penalty, loss in zip(PENALTIES, film.tuned.losses[:, column], strict=True)
                },
            )
            for film in fitted
            for column, concept in enumerate(enough(material))
        ],
        ignore_index=True,
    )


def _selected(model: str, task: str, film: FilmBanks, losses: Mapping[str, float]) -> pd.DataFrame:
    """List candidates and their inner losses; the first of the lowest was chosen."""
    values = list(losses.values())
    return pd.DataFrame(
        {
            "model": model,
            "task": task,
            "fold": film.split.fold,
            "movie": film.movie,
            "candidate": list(losses),
            "inner_loss": values,
            "chosen": (np.arange(len(values)) == int(np.argmin(values))).astype(np.int64),
        }
    )


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
    tuned = tuned_ridge(source.X, presence(material)[:, list(kept)], material.movies)
    bank = _tuned_bank(tuned, slice(None))
    own = np.flatnonzero(TASKS[task].holds(material.levels))
    model = ConceptBottleneck("tree", random_state=seed)
    model.fit(bank.train_values[own], material.y[own], material.movies[own])
    return model, kept
