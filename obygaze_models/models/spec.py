"""Describe a model before it is trained, and train it on two classes or on ordered levels."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import get_routing_for_object

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ObygazeError
from obygaze_models.dataset.dataset import Reads
from obygaze_models.errors import ModelError, ProtocolError
from obygaze_models.models.binary import encode_labels
from obygaze_models.models.choices import THRESHOLD, Choice, some_of
from obygaze_models.models.grouped_selection import GroupedSelection, refuse_without_scores, scores_of
from obygaze_models.models.probe_search import TrainingSide, is_probe_search, search_probes
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds
from obygaze_models.protocol.targets import NOT_ASKED, Kind

NEAREST_THRESHOLD = 0.5
"""The threshold of ordered levels: a score calls the level that it is nearest to, the higher of two."""

METADATA = ("groups", "present", "unlabelled")

FAILURES = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a foreign estimator may raise about clips that it can't use; torch's own errors are RuntimeErrors."""


@made_by("ModelSpec(NAME, TITLE, MAKE)")
@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model of the zoo: how it is made, and what it needs.

    Attributes
    ----------
    name : str
        What commands and tables of predictions call it.
    title : str
        What people read.
    make : callable
        Seed -> unfitted binary estimator: ``fit(X, y)``, and ``decision_function`` or ``predict_proba``.
    choose : Threshold, Grid, EarlyStopping or None
        What inner folds of movies choose for it (`GroupedSelection`); None for an estimator that sets
        ``threshold_`` itself.
    reads : {"pooled", "frames", "tokens", "seconds", "variables", "present", "answers"}
        What a clip's features are: a vector [D], one vector per sampled frame [F, D], or all tokens [T, D];
        or its length alone, numbers of a table, its annotated concepts, or a machine's answers.
    uses : tuple of str
        What ``fit`` takes beside X and y: "groups" (the movie of each clip), "present" (a data frame of the
        presence of each visual concept), "unlabelled" (clips of the training movies that are not in the task
        come along, with the label -1). What the estimator requests by scikit-learn's metadata routing is
        added.
    looks_at_features : bool
        False for baselines.
    kinds : tuple of str
        The kinds of target it is for by default: "levels", "concept", "ordinal".
    control : bool
        Whether it is shown to be beaten, though it looks at features.
    beside : tuple of str
        Models of the zoo that stand beside it in every table, asked for or not.
    streams : bool
        Whether ``fit`` and ``decision_function`` take `StoredClips` for X, which need not fit in memory.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import obygaze_models as om
    >>> spec = om.ModelSpec("bayes", "naive Bayes", make=lambda seed: GaussianNB())
    >>> spec.estimator(0)
    GroupedSelection(choose=Threshold(), estimator=GaussianNB())
    """

    name: str
    title: str
    make: Callable[[int], Any]
    choose: Choice | None = THRESHOLD
    reads: Reads = "pooled"
    uses: tuple[str, ...] = ()
    looks_at_features: bool = True
    kinds: tuple[Kind, ...] = ("levels", "concept", "ordinal")
    control: bool = False
    beside: tuple[str, ...] = ()
    streams: bool = False

    def estimator(self, seed: int) -> Any:
        """Make the estimator, with its selection around it."""
        made = self.make(seed)
        if self.choose is None:
            return made
        refuse_without_scores(made)
        return GroupedSelection(made, self.choose, pass_groups="groups" in self.requests())

    def requests(self, method: str = "fit") -> frozenset[str]:
        """Name what a method takes beside X and y."""
        return _routed(self.make, method).union(self.uses if method == "fit" else ())

    def draws(self) -> bool:
        """Whether a seed changes it."""
        made = self.make(0)
        return hasattr(made, "get_params") and any(
            name.rsplit("__", maxsplit=1)[-1] == "random_state" and value is not None
            for name, value in made.get_params().items()
        )

    def settings(self) -> dict[str, str]:
        """Return the estimator's parameters but seeds, as text, for records."""
        made = self.make(0)
        params = made.get_params(deep=True) if hasattr(made, "get_params") else {}
        plain = {
            # An object's address differs from run to run.
            name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
            for name, value in sorted(params.items())
            if not isinstance(value, BaseEstimator | list) and not name.endswith("random_state")
        }
        return {"title": self.title, "estimator": type(made).__name__, "choose": repr(self.choose), **plain}


@lru_cache(maxsize=64)
def _routed(make: Callable[[int], Any], method: str) -> frozenset[str]:
    """Name what a method of the estimators that `make` gives requests by scikit-learn's routing."""
    made = make(0)
    if not hasattr(made, "get_metadata_routing"):
        return frozenset()
    with config_context(enable_metadata_routing=True):
        return frozenset(get_routing_for_object(made).consumes(method, METADATA))


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained model that scores clips.

    Attributes
    ----------
    spec : ModelSpec
    estimator : estimator
    threshold : float
        The score from which on a clip is called positive.
    """

    spec: ModelSpec
    estimator: Any
    threshold: float

    def scores(self, X: NDArray[Any], movies: NDArray[np.str_]) -> NDArray[np.float64]:
        """Score clips [N]; movies are for estimators without a selection around them that request them.

        Raises
        ------
        ModelError
            The estimator refuses its input, or does not give one finite score a clip.
        """
        wanted = self.spec.choose is None and "groups" in self.spec.requests("decision_function")
        try:
            return scores_of(self.estimator, X, **({"groups": movies} if wanted else {}))
        except FAILURES as error:
            raise ModelError(f"model {self.spec.name} can't score clips: {error}") from error

    def mean_score(self, X: NDArray[Any], rows: NDArray[np.intp], movies: NDArray[np.str_]) -> float:
        """Average the scores of training clips, of many over some: all that is known of its intercept."""
        some = some_of(rows)
        return float(self.scores(X[some], movies[some]).mean())


@checked
def fit(
    spec: ModelSpec,
    seed: int,
    X: NDArray[Any],
    y: NDArray[np.int64],
    *,
    movies: NDArray[np.str_],
    present: Any = None,
) -> Fitted:
    """Fit a model on clips of several movies.

    Parameters
    ----------
    spec : ModelSpec
    seed : int
    X : ndarray, shape [N, ...]
        What the model reads.
    y : ndarray of int, shape [N]
        1 positive, 0 negative, -1 for a clip that is not in the task; such clips reach a model that uses
        "unlabelled" and no other.
    movies : ndarray of str, shape [N]
    present : DataFrame, shape [N, K], optional
        Presence of each concept, its names as columns.

    Raises
    ------
    ModelError
        The estimator refuses its input, or gives no scores.
    """
    requests = spec.requests()
    if "unlabelled" not in requests and (y < 0).any():
        kept = y >= 0
        X, y, movies = X[kept], y[kept], movies[kept]
        present = None if present is None else present.loc[kept]
    try:
        estimator = spec.estimator(seed)
        given: dict[str, Any] = {}
        if spec.choose is not None or "groups" in requests:
            given["groups"] = movies
        if "present" in requests:
            given["present"] = present
        with config_context(enable_metadata_routing=True):
            estimator.fit(X, y, **given)
    except ObygazeError:
        raise
    except FAILURES as error:
        raise ModelError(f"model {spec.name} can't be trained: {error}") from error
    return Fitted(spec, estimator, float(getattr(estimator, "threshold_", 0.0)))


# --- ordered levels
# ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class OrdinalModel:
    """A binary model for each step between two levels (Frank and Hall, ECML 2001).

    Attributes
    ----------
    steps : tuple of Fitted
        The k-th separates levels above k from the others.
    """

    steps: tuple[Fitted, ...]

    threshold = NEAREST_THRESHOLD

    def scores(self, X: NDArray[Any], movies: NDArray[np.str_]) -> NDArray[np.float64]:
        """Compute each clip's expected level [N], 0 to the number of steps."""
        return np.asarray(np.sum([expit(step.scores(X, movies)) for step in self.steps], axis=0))


@checked
def fit_ordinal(
    spec: ModelSpec,
    seed: int,
    X: NDArray[Any],
    y: NDArray[np.int64],
    *,
    n_levels: int,
    movies: NDArray[np.str_],
    present: Any = None,
) -> OrdinalModel | Fitted:
    """Fit a model on ordered levels y [N], 0 to `n_levels` - 1, as `fit` does on two classes.

    A baseline, which looks at no feature, is fitted on the levels themselves.

    Raises
    ------
    ModelError
        The estimator refuses its input.
    ProtocolError
        The movies don't hold clips on both sides of a step.
    """
    if not spec.looks_at_features:
        made = spec.make(seed).fit(X, y)
        return Fitted(spec, made, NEAREST_THRESHOLD)
    return OrdinalModel(
        tuple(
            fit(spec, seed, X, np.where(y < 0, -1, y > step), movies=movies, present=present)
            for step in range(n_levels - 1)
        )
    )


# --- the folds of an evaluation
# ---------------------------------------------------------------------------


class FoldTraining(NamedTuple):
    """What a model is trained on in one fold.

    Attributes
    ----------
    name : str
        What is left out, for messages.
    seed : int
    rows : ndarray of int, shape [n]
        Clips among all; more than once where several labels of a clip count.
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
    """Fit a model on the training clips of each fold: the one door of all folds.

    Linear probes are fitted in products that all folds share; their logits are those of a fold alone to 1e-6
    of the largest, and their penalties the same. Other models are fitted fold by fold.

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
        Of ordered levels; None for two classes.

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
    if labels is None or not shares_products(spec):
        for fold in folds:
            yield _fit_fold(spec, X, fold, movies=movies, present=present, n_levels=n_levels)
    elif n_levels is None:
        yield from _fit_probes(spec, X, labels, folds, movies)
    else:
        steps = []
        for step in range(n_levels - 1):
            above = np.where(labels < 0, NOT_ASKED, labels > step)
            steps.append(_fit_probes(spec, X, above, folds, movies))
        yield from map(OrdinalModel, zip(*steps, strict=True))


def _common_labels(folds: Sequence[FoldTraining], n_clips: int) -> NDArray[np.int64] | None:
    """Give the label [N] that a clip has in every fold; None where it has several."""
    labels = np.full(n_clips, NOT_ASKED, dtype=np.int64)
    for fold in folds:
        inside = fold.y >= 0
        rows = fold.rows[inside]
        if len(np.unique(rows)) < len(rows):
            return None
        known = labels[rows]
        if ((known >= 0) & (known != fold.y[inside])).any():
            return None
        labels[rows] = fold.y[inside]
    return labels


def shares_products(spec: ModelSpec) -> bool:
    """Tell whether a model's fits of all folds can share their products."""
    if spec.choose is None or spec.requests():
        return False
    return is_probe_search(spec.make(0), spec.choose)


def _fit_fold(
    spec: ModelSpec,
    X: NDArray[Any],
    fold: FoldTraining,
    *,
    movies: NDArray[np.str_],
    present: Any,
    n_levels: int | None,
) -> Fitted | OrdinalModel:
    """Fit a model on one fold alone."""
    given: dict[str, Any] = {"movies": movies[fold.rows]}
    if "present" in spec.requests():
        given["present"] = present.loc[fold.rows, list(fold.concepts)]
    try:
        if n_levels is None:
            return fit(spec, fold.seed, X[fold.rows], fold.y, **given)
        return fit_ordinal(spec, fold.seed, X[fold.rows], fold.y, n_levels=n_levels, **given)
    except ProtocolError as error:
        raise ProtocolError(f"model {spec.name}, without {fold.name}: {error}") from error


def _fit_probes(
    spec: ModelSpec,
    X: NDArray[Any],
    labels: NDArray[np.int64],
    folds: Sequence[FoldTraining],
    movies: NDArray[np.str_],
) -> Iterator[Fitted]:
    """Fit linear probes on the training clips of all folds; labels [N] are 0 or 1, or -1."""
    selections, sides = [], []
    for fold in folds:
        selection = spec.estimator(fold.seed)
        rows = fold.rows[fold.y >= 0]
        try:
            encode_labels(labels[rows], type(selection.estimator).__name__)
            inner = inner_folds(labels[rows], movies[rows], selection.inner_folds)
        except ProtocolError as error:
            raise ProtocolError(f"model {spec.name}, without {fold.name}: {error}") from error
        except ValueError as error:
            raise ModelError(f"model {spec.name} can't be trained: {error}") from error
        selections.append(selection)
        sides.append(TrainingSide(rows, inner))
    try:
        first = selections[0]
        found = search_probes(first.estimator, first.choose, X, labels, sides)
        for selection, side, chosen in zip(selections, sides, found, strict=True):
            y, own = labels[side.rows], movies[side.rows]
            selection.accept(
                chosen, np.array([0, 1]), HeldOut(chosen.scores, y, own, side.inner, chosen.zeros)
            )
            yield Fitted(spec, selection, selection.threshold_)
    except ObygazeError:
        raise
    except FAILURES as error:
        raise ModelError(f"model {spec.name} can't be trained: {error}") from error
