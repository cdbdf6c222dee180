"""Train on the labels of several annotators, and test on each of them, beside the other annotators.

How often each annotator is right is estimated with a model of the features (Raykar et al., JMLR 2010). An
annotator calls a positive clip positive with one probability and a negative clip negative with another (Dawid
and Skene, Applied Statistics 1979). Whether a clip is positive is unknown; a logistic model of its features
says how probable that is before anybody is asked. EM estimates all together. The model speaks only of films
that it was not fitted on, on a scale that is fitted with the rest: one with many features would otherwise
repeat what annotators said. Without features this is Dawid and Skene's method.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.model_selection import GroupKFold

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.texts import GivenScore
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.models.linear import PENALTIES, linear_probe, variables_probe
from obygaze_models.models.names import ANSWERS, LENGTH, STAGING
from obygaze_models.models.ridge_logistic import soft_logits
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import NOT_ASKED, Labels, Target

Experts = Literal["merged", "each", "soft", "noisy"]

COPIES = 4
"""How often a clip counts whose label is a probability, in fourths."""

SHARES = ("negative", "positive", "dawid_skene_negative", "dawid_skene_positive")

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


class Tested(NamedTuple):
    """A test: its target and the label of each clip [N].

    Of a test by an annotator on clips that others judged too, also the mean label of the others [N]: the
    yardstick of the models.
    """

    target: Target
    codes: Codes
    others: Floats | None = None


@dataclass(frozen=True)
class Asked:
    """What models are trained on and tested on.

    Attributes
    ----------
    learnt : dict of str to list of ndarray
        End of the models' names -> labels to train on [N]; of several, a clip counts once for each.
    tests : list of Tested
    by_annotator : bool
        Whether tests are by annotators.
    noisy : dict of str to ndarray
        Annotator -> their labels [N], where how often each is right is to be estimated.
    """

    learnt: dict[str, list[Codes]]
    tests: list[Tested]
    by_annotator: bool = False
    noisy: dict[str, Codes] = field(default_factory=dict)


def asked_of(data: Dataset, train: Target, tests: Sequence[Target], experts: Experts | None) -> Asked:
    """Make the targets of an evaluation.

    Where clips are there once for each annotator, each test is made by each of them, on the clips that
    another one judged too, and on the clips on which all agree; or, where each judged clips of their own, on
    these. Models are trained on merged labels, on those
    of each annotator, or on all of them: then the share of annotators is the target, and a clip weighs as
    many as judged it; or, fold by fold, on what clips probably are, given how often each annotator is right.

    Raises
    ------
    ProtocolError
        `experts` is given and the labels are of one annotator; or the target is of ordered levels.
    """
    by_expert, learnt = data.labels.experts, {"": [train.of(data.labels)]}
    if not by_expert and experts is None:
        return Asked(learnt, [Tested(test, test.of(data.labels)) for test in tests])
    if train.kind == "ordinal":
        raise ProtocolError(f"annotators are compared on two classes, and {train.title} has more")
    if len(by_expert) < 2:
        raise ProtocolError(
            "annotators are compared where two or more labelled, and the labels here are of one: "
            "'obygaze manifest project --per-annotator' writes a clip once for each; segments that each drew "
            "are read with the annotator's name (column 'annotator')"
        )
    own = {name: train.of(labels) for name, labels in by_expert.items()}
    if experts == "each":
        learnt = {f"@{name}": [codes] for name, codes in own.items()}
    elif experts in {"soft", "noisy"}:
        learnt = {"": list(own.values())}
    made = [each for test in tests for each in _by_annotator(test, by_expert)]
    return Asked(learnt, made, by_annotator=True, noisy=own if experts == "noisy" else {})


def without_noise(asked: Asked, data: Dataset, rows: NDArray[np.intp]) -> tuple[list[Codes], Floats]:
    """Estimate what training clips are, and how often each annotator is right, with a model of the features.

    Returns
    -------
    labels : list of ndarray
        `COPIES` of labels [N], of which as many are positive as the clip is probable to be.
    shares : ndarray, shape [J, 4]
        `SHARES` of the clips that each annotator calls right: of negative and of positive ones, so estimated,
        and by Dawid and Skene's method, which knows no features.
    """
    calls = np.stack(list(asked.noisy.values()))[:, rows]
    kept = (calls != NOT_ASKED).any(axis=0)
    rows, calls = rows[kept], calls[:, kept]
    right, positive = annotators_noise(calls, data.movies[rows], data.X[rows].astype(np.float64))
    plain, _ = annotators_noise(calls, data.movies[rows])
    labels = []
    for copy in range(COPIES):
        codes = np.full(len(data), NOT_ASKED, dtype=np.int64)
        codes[rows] = positive > (copy + 0.5) / COPIES
        labels.append(codes)
    return labels, np.column_stack([right, plain])


def _by_annotator(test: Target, by_expert: Mapping[str, Labels]) -> Iterator[Tested]:
    """Make a test by each annotator, and on the clips on which all that judged them agree."""
    codes = {name: test.of(labels) for name, labels in by_expert.items()}
    rows = np.stack(list(codes.values())).astype(np.float64)
    rows[rows == NOT_ASKED] = np.nan
    judged = np.isfinite(rows)
    shared = bool((judged.sum(axis=0) > 1).any())
    for place, (name, own) in enumerate(codes.items()):
        rest = np.delete(judged, place, axis=0).sum(axis=0)
        target = replace(test, name=f"{test.name}@{name}", title=f"{test.title}, by {name}")
        others = np.nansum(np.delete(rows, place, axis=0), axis=0) / np.maximum(rest, 1)
        yield Tested(target, np.where((rest > 0) | (not shared), own, NOT_ASKED), others if shared else None)
    if shared:
        share = np.nansum(rows, axis=0) / np.maximum(judged.sum(axis=0), 1)
        alike = (judged.sum(axis=0) > 1) & ((share == 0) | (share == 1))
        target = replace(test, name=f"{test.name}@agreed", title=f"{test.title}, where annotators agree")
        yield Tested(target, np.where(alike, share, NOT_ASKED).astype(np.int64))


def variants(specs: Sequence[ModelSpec], asked: Asked, data: Dataset) -> Iterator[tuple[str, ModelSpec]]:
    """Yield each model for every set of labels it is trained on, with the end of its name.

    Where annotators drew the clips their length tells the label, so it stands beside the models as a
    baseline, unless all clips are about as long. Variables of a table and a machine's answers stand beside
    them where there are any.
    """
    every, seconds = list(specs), data.seconds
    if asked.by_annotator and seconds is not None and np.ptp(np.log(seconds)) > np.log(1.01):
        title = "length of the clip alone"
        every.append(ModelSpec(LENGTH, title, lambda _seed: linear_probe(), reads="seconds"))
    if data.variables is not None:
        title = "variables of staging alone"
        every.append(ModelSpec(STAGING, title, lambda _seed: variables_probe(), PENALTIES, reads="variables"))
    if data.answers is not None:
        every.append(ModelSpec(ANSWERS, "answers of a machine", lambda _seed: GivenScore(), reads="answers"))
    for spec in every:
        for end in asked.learnt if spec.looks_at_features else list(asked.learnt)[:1]:
            named = end if spec.looks_at_features else ""
            title = f"{spec.title}, trained on {end[1:]}" if named else spec.title
            yield end, replace(spec, name=f"{spec.name}{named}", title=title)


# --- how often annotators are right
# ---------------------------------------------------------------------------
PARTS: Final = 5
"""Of the films, each of which the model speaks of that was fitted on the others."""
MODELS: Final = 4
"""How often the model is fitted anew."""
STEPS: Final = 30
"""Of EM after each."""
STRENGTHS: Final = (10.0, 1.0, 0.1, 0.01)
"""Penalties of standardised features, of which held-out loss chooses."""
PRIOR: Final = 1.0
"""Calls of each kind that an annotator is given beforehand."""


def annotators_noise(
    calls: Codes, movies: NDArray[np.str_], X: Floats | None = None
) -> tuple[Floats, Floats]:
    """Estimate annotators' confusions.

    Parameters
    ----------
    calls : ndarray of int, shape [J, N]
        0 or 1; `NOT_ASKED` where an annotator did not judge a clip.
    movies : ndarray, shape [N]
    X : ndarray, shape [N, D], optional
        Features, NaN where there are none; without any a clip is as probable as another one before anybody
        is asked.

    Returns
    -------
    right : ndarray, shape [J, 2]
        Share of negative and of positive clips that each annotator calls as they are.
    positive : ndarray, shape [N]
        Probability of each clip to be positive, after all.
    """
    known, said = calls != NOT_ASKED, calls == 1
    positive = ((said & known).sum(axis=0) + 0.5) / (known.sum(axis=0) + 1)
    with one_blas_thread():
        for _ in range(MODELS if X is not None else 1):
            score = None if X is None else _held_out(X, positive, movies)
            for _ in range(STEPS):
                before = _before(positive, score)
                right = _right(said, known, positive)
                positive = expit(before + _evidence(said, known, right))
    return _right(said, known, positive), positive


def _right(said: NDArray[np.bool_], known: NDArray[np.bool_], positive: Floats) -> Floats:
    """Share of negatives and positives that each annotator calls right, [J, 2]."""
    sides = [
        ((known & call) @ weight + PRIOR) / (known @ weight + 2 * PRIOR)
        for weight, call in ((1 - positive, ~said), (positive, said))
    ]
    return np.stack(sides, axis=1)


def _evidence(said: NDArray[np.bool_], known: NDArray[np.bool_], right: Floats) -> Floats:
    """Log-odds of each clip by what annotators called it, [N]."""
    of_no, of_yes = right.T[:, :, None]
    odds: Floats = np.where(said, np.log(of_yes / (1 - of_no)), np.log((1 - of_yes) / of_no))
    return np.asarray((odds * known).sum(axis=0))


def _before(positive: Floats, score: Floats | None) -> Floats:
    """Log-odds of each clip before anybody is asked, [N]: by the share, or by a model's score."""
    share = float(logit(positive.mean()))
    if score is None or np.ptp(score) == 0:
        return np.full(len(positive), share)
    (found,) = soft_logits(score[:, None], positive, score[:, None], (1e-6,))
    rises = float((score - score.mean()) @ (found - found.mean())) > 0
    return found if rises else np.full(len(positive), share)


def _held_out(X: Floats, positive: Floats, movies: NDArray[np.str_]) -> Floats:
    """Score clips [N] by logistic models of other films; the penalty of least held-out loss."""
    scale = np.nanstd(X, axis=0)
    standard = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.where(scale > 0, scale, 1.0))
    logits = np.zeros((len(STRENGTHS), len(X)))
    groups = movies if len(np.unique(movies)) > 1 else np.arange(len(movies))
    for train, test in GroupKFold(min(PARTS, len(np.unique(groups)))).split(X, groups=groups):
        logits[:, test] = soft_logits(standard[train], positive[train], standard[test], STRENGTHS)
    loss = (np.logaddexp(0, logits) - positive * logits).mean(axis=1)
    return np.asarray(logits[int(loss.argmin())])
