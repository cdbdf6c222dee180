"""Fit a model on the training clips of every fold of an evaluation."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import ObygazeError
from obygaze_models.errors import ModelError, ProtocolError
from obygaze_models.models.binary import check_two_classes
from obygaze_models.models.fitted import ESTIMATOR_ERRORS, Fitted, fit
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.models.ordinal import OrdinalModel, fit_ordinal, labels_of_step
from obygaze_models.models.probe_search import TrainingSet, is_probe_search, search_probes
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds
from obygaze_models.protocol.targets import NOT_ASKED


class FoldTraining(NamedTuple):
    """What a model is trained on in one fold.

    Attributes
    ----------
    name : str
        What is left out, for messages.
    seed : int
    rows : ndarray of int, shape [n]
        Indices of the clips among all; a clip of which several labels count is repeated.
    y : ndarray of int, shape [n]
        Their labels; -1 for clips that are not in the task.
    concepts : sequence of str
        Those that can be learnt from the clips.
    """

    name: str
    seed: int
    rows: NDArray[np.intp]
    y: NDArray[np.int64]
    concepts: Sequence[str] = ()


def fit_folds(
    spec: ModelSpec,
    X: NDArray[Any],
    folds: Sequence[FoldTraining],
    *,
    movies: NDArray[np.str_],
    present: Any = None,
    n_levels: int | None = None,
) -> Iterator[Fitted | OrdinalModel]:
    """Fit a model on the training clips of each fold of an evaluation.

    Linear probes are fitted on all folds at once, in shared matrix products: they choose the same penalties
    as if fitted fold by fold, and their logits differ by at most 1e-6 of the largest. Other models are fitted
    fold by fold.

    Parameters
    ----------
    spec : ModelSpec
    X : ndarray, shape [N, ...]
        What the model reads, of all clips.
    folds : sequence of FoldTraining
    movies : ndarray of str, shape [N]
    present : DataFrame, shape [N, K], optional
        Presence of each concept.
    n_levels : int, optional
        Number of ordered levels; None for two classes.

    Yields
    ------
    Fitted or OrdinalModel
        In the order of the folds.

    Raises
    ------
    ModelError
        The estimator refuses its input, or gives no scores.
    ProtocolError
        A fold's movies don't allow an inner selection.
    """
    labels = _common_labels(folds, len(X))
    if labels is None or not can_fit_folds_together(spec):
        for fold in folds:
            yield _fit_fold(spec, X, fold, movies=movies, present=present, n_levels=n_levels)
    elif n_levels is None:
        yield from _fit_probes(spec, X, labels, folds, movies)
    else:
        yield from _fit_ordinal_probes(spec, X, labels, folds, movies, n_levels=n_levels)


def can_fit_folds_together(spec: ModelSpec) -> bool:
    """Tell whether a model is a linear probe, which can be fitted on all folds in shared matrix products."""
    takes_more_than_X_and_y = bool(spec.requests())
    if spec.choose is None or takes_more_than_X_and_y:
        return False
    return is_probe_search(spec.make(0), spec.choose)


def _common_labels(folds: Sequence[FoldTraining], n_clips: int) -> NDArray[np.int64] | None:
    """Return one label per clip [N] if each clip has the same label in all folds that train on it, else None.

    Without common labels, the folds cannot be fitted in shared products. `n_clips` is N. The label of a clip
    that no fold trains on is -1.
    """
    labels = np.full(n_clips, NOT_ASKED, dtype=np.int64)
    for fold in folds:
        is_in_task = fold.y != NOT_ASKED
        rows = fold.rows[is_in_task]
        labels_in_fold = fold.y[is_in_task]
        has_repeated_clips = len(np.unique(rows)) < len(rows)
        if has_repeated_clips:
            # They may have several labels, such as those of two annotators.
            return None

        earlier_labels = labels[rows]  # by the folds before
        was_labelled = earlier_labels != NOT_ASKED
        contradicts = was_labelled & (earlier_labels != labels_in_fold)
        if contradicts.any():
            return None

        labels[rows] = labels_in_fold
    return labels


# --- one fold after the other
# ---------------------------------------------------------------------------


def _fit_fold(
    spec: ModelSpec,
    X: NDArray[Any],
    fold: FoldTraining,
    *,
    movies: NDArray[np.str_],
    present: Any,
    n_levels: int | None,
) -> Fitted | OrdinalModel:
    """Fit a model on the training clips of one fold.

    Parameters
    ----------
    spec : ModelSpec
    X : ndarray, shape [N, ...]
        What the model reads, of all clips.
    fold : FoldTraining
    movies : ndarray of str, shape [N]
    present : DataFrame, shape [N, K], or None
        Presence of each concept in each clip.
    n_levels : int or None
        Number of ordered levels; None for two classes.
    """
    features = X[fold.rows]
    movies_of_fold = movies[fold.rows]
    present_in_fold = None
    if "present" in spec.requests():
        present_in_fold = present.loc[fold.rows, list(fold.concepts)]

    try:
        if n_levels is None:
            return fit(spec, fold.seed, features, fold.y, movies=movies_of_fold, present=present_in_fold)
        return fit_ordinal(
            spec,
            fold.seed,
            features,
            fold.y,
            n_levels=n_levels,
            movies=movies_of_fold,
            present=present_in_fold,
        )
    except ProtocolError as error:
        # The error is that movies do not allow inner folds: say of which model and fold.
        raise ProtocolError(f"model {spec.name}, without {fold.name}: {error}") from error


# --- linear probes of all folds at once
# ---------------------------------------------------------------------------


def _fit_ordinal_probes(
    spec: ModelSpec,
    X: NDArray[Any],
    levels: NDArray[np.int64],
    folds: Sequence[FoldTraining],
    movies: NDArray[np.str_],
    *,
    n_levels: int,
) -> Iterator[OrdinalModel]:
    """Fit linear probes on the training clips of each fold, one for each step between two ordered levels.

    The probe of a step tells clips above it from the others.

    Parameters
    ----------
    spec : ModelSpec
    X : ndarray, shape [N, ...]
        Features of all clips.
    levels : ndarray of int, shape [N]
        The clips' levels from 0, or -1 for clips that no fold trains on.
    folds : sequence of FoldTraining
    movies : ndarray of str, shape [N]
    n_levels : int

    Yields
    ------
    OrdinalModel
        The probes of all steps, fold by fold.
    """
    iterators = []  # for each step, over its probes, one for each fold
    for step in range(n_levels - 1):
        is_above = labels_of_step(levels, step)
        iterators.append(_fit_probes(spec, X, is_above, folds, movies))
    # The next probes of all iterators are those of all steps in one fold.
    for probes_of_fold in zip(*iterators, strict=True):
        yield OrdinalModel(probes_of_fold)


def _fit_probes(
    spec: ModelSpec,
    X: NDArray[Any],
    labels: NDArray[np.int64],
    folds: Sequence[FoldTraining],
    movies: NDArray[np.str_],
) -> Iterator[Fitted]:
    """Fit a linear probe on the training clips of each fold, in shared matrix products.

    Parameters
    ----------
    spec : ModelSpec
    X : ndarray, shape [N, ...]
        Features of all clips.
    labels : ndarray of int, shape [N]
        0 or 1, or -1 for clips that no fold trains on.
    folds : sequence of FoldTraining
    movies : ndarray of str, shape [N]
    """
    selections = [spec.estimator(fold.seed) for fold in folds]
    training_sets = [
        _training_set(spec, selection, fold, labels, movies)
        for selection, fold in zip(selections, folds, strict=True)
    ]

    try:
        # The selections differ in their seeds only, which a linear probe does not use.
        first = selections[0]
        fitted_probes = search_probes(first.estimator, first.choose, X, labels, training_sets)
        for selection, training_set, probe in zip(selections, training_sets, fitted_probes, strict=True):
            # A probe's scores are of the clips of its training set.
            rows = training_set.rows
            held_out = HeldOut(
                scores=probe.scores,
                y=labels[rows],
                movies=movies[rows],
                folds=training_set.inner,
                training_means=probe.training_means,
            )
            selection.set_chosen(probe, classes=np.array([0, 1]), held_out=held_out)
            yield Fitted(spec, selection, selection.threshold_)
    except ObygazeError:
        raise  # our own errors have their message already, also those that are ValueErrors
    except ESTIMATOR_ERRORS as error:
        raise ModelError(f"model {spec.name} can't be trained: {error}") from error


def _training_set(
    spec: ModelSpec,
    selection: GroupedSelection,
    fold: FoldTraining,
    labels: NDArray[np.int64],
    movies: NDArray[np.str_],
) -> TrainingSet:
    """Assign the training clips of a fold to inner folds of movies.

    `labels` and `movies` are of all clips. The labels in `fold.y` are those in `labels`, or -1 for clips that
    are not in the task.

    Raises
    ------
    ModelError
        The training clips are of one class.
    ProtocolError
        Their movies don't allow an inner selection.
    """
    rows = fold.rows[fold.y != NOT_ASKED]
    try:
        check_two_classes(labels[rows], type(selection.estimator).__name__)
        inner = inner_folds(labels[rows], movies[rows], selection.inner_folds)
    except ProtocolError as error:
        raise ProtocolError(f"model {spec.name}, without {fold.name}: {error}") from error
    except ValueError as error:
        raise ModelError(f"model {spec.name} can't be trained: {error}") from error
    return TrainingSet(rows, inner)
