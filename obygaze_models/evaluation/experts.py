"""Train on the labels of several annotators, and test on the labels of each of them.

Models are compared with the other annotators' mean label.

How often each annotator is right is estimated with a model of the features (Raykar et al., JMLR 2010). An
annotator calls a positive clip positive with one probability and a negative clip negative with another (Dawid
and Skene, Applied Statistics 1979). Whether a clip is positive is unknown; a logistic model of its features
gives the prior probability, before the annotators' labels are counted. EM estimates all of this together. The
model scores only films that it was not fitted on, and the scale of its scores is fitted by EM: a model with
many features would otherwise repeat what annotators said. Without features this is Dawid and Skene's method.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.model_selection import GroupKFold

from obygaze_features.text import counted, first_few
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.texts import GivenScore
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.models.linear import PENALTIES, linear_probe, variables_probe
from obygaze_models.models.names import ANSWERS, LENGTH, STAGING
from obygaze_models.models.ridge_logistic import soft_logits
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import NOT_ASKED, Labels, Target, without_seen_scores

Experts = Literal["merged", "each", "soft", "noisy"]

N_COPIES = 4
"""Number of training rows of a clip whose label is a probability: at .75, three of its rows are positive."""

SHARES = ("negative", "positive", "dawid_skene_negative", "dawid_skene_positive")
"""Shares of negative and of positive clips that an annotator labels correctly, as `denoise_labels` estimates
them: with a model of the features, and without one (Dawid and Skene)."""

MAX_ANNOTATORS_SHOWN: Final = 4
"""Messages name at most so many annotators."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Tested(NamedTuple):
    """A target that models are tested on, with the labels of the clips.

    Attributes
    ----------
    target : Target
    labels : ndarray of int, shape [N]
        The label of each clip; `NOT_ASKED` for clips that are not tested.
    mean_of_others : ndarray, shape [N], optional
        For a test on one annotator's labels: the mean label of the other annotators, which is evaluated like
        a model's score. None for other tests, and if no clip was judged by two annotators.
    seen_score : ndarray of bool, shape [N], optional
        Marks clips whose label was given in sight of a model's score; for a test on one annotator's labels,
        also those that all others judged so. None if the manifest does not say.
    """

    target: Target
    labels: Ints
    mean_of_others: Floats | None = None
    seen_score: Bools | None = None


@dataclass(frozen=True)
class LabelPlan:
    """The labels that models are trained on and tested on.

    Attributes
    ----------
    training_labels : dict of str to list of ndarray
        Suffix of the models' names -> one or several arrays of labels [N] to train on. The suffix is
        "@ANNOTATOR" for labels of one annotator, otherwise "". With several arrays, a clip is a training row
        once for each of them.
    tests : list of Tested
    by_annotator : bool
        Whether there is a test on the labels of each annotator.
    noisy : dict of str to ndarray
        Annotator -> labels [N], if the true labels are to be estimated from them (`denoise_labels`);
        otherwise empty.
    """

    training_labels: dict[str, list[Ints]]
    tests: list[Tested]
    by_annotator: bool = False
    noisy: dict[str, Ints] = field(default_factory=dict)


def plan_labels(
    data: Dataset,
    target: Target,
    tests: Sequence[Target],
    train_on: Experts | None,
    *,
    test_seen_scores: bool = False,
) -> LabelPlan:
    """Choose the labels that models are trained on, and those that they are tested on.

    With one annotator, both are the labels of the clips. With several annotators there are, for each target
    in `tests`:

    - a test on each annotator's labels, of the clips that another annotator judged too;
    - a test on the clips on which all annotators agree.

    If no clip was judged by two annotators, the test on an annotator's labels is of all clips that this
    annotator judged, and there is no test on agreement.

    Machines among annotators (`Labels.machines`) are trained on where `train_on` says so: by ``each``,
    ``soft`` and ``noisy``. Tests are on labels of people. If all annotators but one are machines, and
    `train_on` is not given, that person's labels are taken as those of one annotator.

    Parameters
    ----------
    data : Dataset
    target : Target
        The target that models learn.
    tests : sequence of Target
    train_on : {"merged", "each", "soft", "noisy"}, optional
        What models are trained on. ``merged``, the default: the merged labels. ``each``: one model for each
        annotator, on that annotator's labels. ``soft``: the labels of all annotators, so that a clip counts
        once for each annotator who judged it. ``noisy``: labels that are estimated in each fold, given how
        often each annotator is right.
    test_seen_scores : bool
        Whether the labels of others that were given in sight of a model's score count in their mean.

    Raises
    ------
    ProtocolError
        `train_on` is given and the labels are of one annotator; or the target is of ordered levels; or, for
        ``soft`` and ``noisy``, the annotators' labels cancel each other on every clip.
    """
    by_annotator = data.labels.experts
    is_of_one_person = len(by_annotator) > 1 and len(data.labels.people) == 1  # beside machines
    if train_on is None and (not by_annotator or is_of_one_person):
        no_suffix = ""  # of the models' names
        training_labels = {no_suffix: [target.of(data.labels)]}
        tested = [Tested(test, test.of(data.labels), seen_score=data.labels.seen_score) for test in tests]
        return LabelPlan(training_labels, tested)

    if target.kind == "ordinal":
        raise ProtocolError(f"annotators are compared on two classes, and {target.title} has more")
    if len(by_annotator) < 2:
        raise ProtocolError(
            "annotators are compared where two or more labelled, and the labels here are of one: "
            "'obygaze manifest project --per-annotator' writes a clip once for each; segments that each drew "
            "are read with the annotator's name (column 'annotator')"
        )

    tests_by_annotators: list[Tested] = []
    for test in tests:
        tests_by_annotators.extend(_tests_by_annotators(test, data.labels, test_seen_scores=test_seen_scores))
    labels_of_annotators = {name: target.of(labels) for name, labels in by_annotator.items()}
    if train_on in {"soft", "noisy"}:
        _refuse_cancelled_labels(target, labels_of_annotators, train_on)
    return LabelPlan(
        training_labels=_training_labels(target.of(data.labels), labels_of_annotators, train_on),
        tests=tests_by_annotators,
        by_annotator=True,
        noisy=labels_of_annotators if train_on == "noisy" else {},
    )


def _refuse_cancelled_labels(
    target: Target, labels_of_annotators: Mapping[str, Ints], train_on: Experts
) -> None:
    """Refuse labels that cancel each other: every judged clip has as many positive labels as negative ones.

    Then nothing tells one clip from another, and a model would repeat the rounding errors of its fit.

    Raises
    ------
    ProtocolError
        The labels cancel each other.
    """
    calls = np.stack(list(labels_of_annotators.values()))  # [J annotators, N clips]
    n_positive = (calls == 1).sum(axis=0)
    n_labels = (calls != NOT_ASKED).sum(axis=0)
    is_judged = n_labels > 0
    if not is_judged.any() or not np.array_equal(2 * n_positive, n_labels):
        return
    annotators = first_few([repr(name) for name in labels_of_annotators], MAX_ANNOTATORS_SHOWN)
    n_clips = int(is_judged.sum())
    raise ProtocolError(
        f"the labels of {annotators} cancel each other: on every judged clip ({n_clips}), as many say "
        f"positive as negative for {target.title}, which leaves --experts {train_on} nothing to learn; "
        "if one of them has the classes the other way round, mend that table; --experts each trains on each "
        "annotator alone"
    )


def agree_by_chance(calls: Ints) -> bool:
    """Return whether annotators of the same clips agree no more often than by chance.

    Then their labels do not tell who of them is right: labels of annotators who are right more often than
    wrong go together. Whether two labels go together is their covariance over the clips that both judged,
    summed over all pairs of annotators. Annotators who share no clip are told apart by the features alone,
    and are not meant here.

    Parameters
    ----------
    calls : ndarray of int, shape [J, N]
        0 or 1; `NOT_ASKED` where an annotator did not judge a clip.
    """
    n_shared_clips = 0
    covariance = 0.0
    for first, second in combinations(calls, 2):
        is_shared = (first != NOT_ASKED) & (second != NOT_ASKED)
        n_shared = int(is_shared.sum())
        if n_shared:
            n_shared_clips += n_shared
            deviations = first[is_shared] - first[is_shared].mean()
            covariance += float(deviations @ second[is_shared])
    # A sum of rounding errors is 0.
    return n_shared_clips > 0 and covariance <= 1e-9 * n_shared_clips


def _training_labels(
    merged: Ints, labels_of_annotators: Mapping[str, Ints], train_on: Experts | None
) -> dict[str, list[Ints]]:
    """Choose the labels to train on: suffix of the models' names -> arrays of labels [N].

    A model that is trained on the labels of one annotator has the suffix "@ANNOTATOR" in its name, any other
    model has none. With several arrays, a clip is a training row once for each of them.

    Parameters
    ----------
    merged : ndarray of int, shape [N]
        The merged labels of the clips.
    labels_of_annotators : mapping of str to ndarray of int, shape [N]
    train_on : {"merged", "each", "soft", "noisy"}, optional
        As of `plan_labels`.
    """
    if train_on == "each":
        return {f"@{name}": [labels] for name, labels in labels_of_annotators.items()}
    if train_on in {"soft", "noisy"}:
        # One model, for which a clip is a training row once for each annotator.
        return {"": list(labels_of_annotators.values())}
    return {"": [merged]}


def uses_of_machines(labels: Labels, train_on: Experts | None) -> dict[str, str]:
    """Say what an evaluation does with the labels of each machine among the annotators.

    `train_on` is that of `plan_labels`: what models are trained on, None for the merged labels.

    Returns
    -------
    dict
        Name of the machine -> a text for reports.
    """
    # `people` leaves machines out, unless all annotators are machines.
    people_labelled = len(labels.people) < len(labels.experts)
    uses = {}
    for name, n_labels in labels.machines.items():
        if not people_labelled:
            use = "trained on and tested"
        elif train_on in {"each", "soft", "noisy"}:
            use = "trained on, not tested"
        else:
            use = "left out (--experts each, soft and noisy train on them)"
        uses[name] = f"{counted(n_labels, 'label')}, {use}"
    return uses


class DenoisedLabels(NamedTuple):
    """Estimated labels of training clips, and how often each of J annotators is right.

    Attributes
    ----------
    copies : list of ndarray of int, shape [N]
        `N_COPIES` arrays of labels, all of which are trained on. The share of copies in which a clip is
        positive is its probability of being positive, rounded to multiples of 1 / `N_COPIES`.
    shares : ndarray, shape [J, 4]
        The `SHARES` of each annotator.
    """

    copies: list[Ints]
    shares: Floats


def denoise_labels(label_plan: LabelPlan, data: Dataset, rows: NDArray[np.intp]) -> DenoisedLabels:
    """Estimate the true labels of training clips, and how often each annotator is right.

    The estimate uses a model of the clips' features (`annotators_noise`). It gives probabilities, while
    models are trained on labels of 0 and 1. There are therefore several copies of the labels: a clip that is
    positive with probability .6 is positive in about .6 of the copies.

    Parameters
    ----------
    label_plan : LabelPlan
        Its labels `noisy` are used.
    data : Dataset
        N clips.
    rows : ndarray of int
        The training clips.
    """
    # What each of J annotators called the training clips: 1, 0, or `NOT_ASKED` for no label.
    calls = np.stack(list(label_plan.noisy.values()))[:, rows]  # [J, training clips]
    is_judged = (calls != NOT_ASKED).any(axis=0)
    judged_rows = rows[is_judged]
    calls = calls[:, is_judged]

    # With a model of the features and, for comparison in the record, without one.
    movies = data.movies[judged_rows]
    accuracies, positive = annotators_noise(calls, movies, data.X[judged_rows].astype(np.float64))
    accuracies_without_features, _ = annotators_noise(calls, movies)

    copies = []
    for number in range(N_COPIES):
        # With four copies, the thresholds are .125, .375, .625 and .875: a clip of probability .6 is positive
        # in two of them.
        threshold = (number + 0.5) / N_COPIES
        labels = np.full(len(data), NOT_ASKED, dtype=np.int64)
        labels[judged_rows] = positive > threshold
        copies.append(labels)
    shares = np.column_stack([accuracies, accuracies_without_features])  # in the order of `SHARES`
    return DenoisedLabels(copies, shares)


def _tests_by_annotators(test: Target, merged: Labels, *, test_seen_scores: bool) -> Iterator[Tested]:
    """Yield a test on the labels of each annotator, and a test on the clips on which annotators agree.

    If no clip was judged by two annotators, each test has all clips of the annotator, and there is no test on
    agreement.

    Parameters
    ----------
    test : Target
    merged : Labels
        The merged labels, which have those of each annotator; machines are left out.
    test_seen_scores : bool
        Whether labels that were given in sight of a model's score count in the mean of the others.
    """
    by_annotator = merged.people
    # The labels of J annotators of N clips, and what counts of them in the mean of an annotator's others.
    labels_of = {name: test.of(labels) for name, labels in by_annotator.items()}
    all_labels = np.stack(list(labels_of.values()))  # [J, N]
    counted_labels = all_labels
    if not test_seen_scores:
        counted_labels = np.stack(
            [without_seen_scores(labels, by_annotator[name].seen_score) for name, labels in labels_of.items()]
        )
    n_judges = (all_labels != NOT_ASKED).sum(axis=0)
    has_shared_clips = bool((n_judges > 1).any())

    # The tests on the labels of each annotator.
    for row, (name, labels) in enumerate(labels_of.items()):
        target = replace(test, name=f"{test.name}@{name}", title=f"{test.title}, by {name}")
        tested = Tested(target, labels, seen_score=by_annotator[name].seen_score)
        if has_shared_clips:
            others = np.delete(all_labels, row, axis=0)
            counted_others = np.delete(counted_labels, row, axis=0)
            tested = _on_shared_clips(tested, others, counted_others)
        yield tested

    # The test on the clips on which all annotators agree.
    if has_shared_clips:
        target = replace(test, name=f"{test.name}@agreed", title=f"{test.title}, where annotators agree")
        seen_score = _any_seen_score(all_labels, list(by_annotator.values()))
        yield Tested(target, _agreed_labels(all_labels), seen_score=seen_score)


def _any_seen_score(all_labels: Ints, labels_of_annotators: Sequence[Labels]) -> Bools | None:
    """Mark the clips [N] that at least one annotator labelled in sight of a model's score.

    None if the manifest does not say. `all_labels` [J, N] are the annotators' classes of the clips,
    `NOT_ASKED` where one gave no label.
    """
    seen_scores = [labels.seen_score for labels in labels_of_annotators if labels.seen_score is not None]
    if not seen_scores:
        return None
    is_labelled = all_labels != NOT_ASKED
    was_seen: Bools = np.any(np.stack(seen_scores) & is_labelled, axis=0)
    return was_seen


def _on_shared_clips(tested: Tested, others: Ints, counted_others: Ints) -> Tested:
    """Restrict the test on one annotator's labels [N] to clips which others judged too.

    On these clips, the mean label of the others can be evaluated like a model's score: it shows how well
    people do. If all others judged a clip in sight of a model's score, it may have no such mean. The clip is
    then marked by `seen_score`, as clips are that the annotator judged in sight of a score, and is not tested
    either.

    Parameters
    ----------
    tested : Tested
        The test on all clips of the annotator.
    others : ndarray of int, shape [J, N]
        Labels of the other annotators: 1, 0, or `NOT_ASKED` where one did not judge a clip.
    counted_others : ndarray of int, shape [J, N]
        Those of them that count in the mean.
    """
    is_judged_by_others = (others != NOT_ASKED).any(axis=0)
    n_counted = (counted_others != NOT_ASKED).sum(axis=0)
    n_positive = (counted_others == 1).sum(axis=0)
    mean_of_others = n_positive / np.maximum(n_counted, 1)  # 0 for clips without, which are not tested

    has_no_mean = is_judged_by_others & (n_counted == 0)
    seen_score = tested.seen_score
    if has_no_mean.any():
        seen_score = has_no_mean if seen_score is None else seen_score | has_no_mean
    return tested._replace(
        labels=np.where(is_judged_by_others, tested.labels, NOT_ASKED),
        mean_of_others=mean_of_others,
        seen_score=seen_score,
    )


def _agreed_labels(all_labels: Ints) -> Ints:
    """Return the label [N] of each clip that two annotators or more judged, all of them alike.

    It is `NOT_ASKED` for other clips. `all_labels` [J, N] are those of all annotators: 1, 0, or `NOT_ASKED`
    where one did not judge a clip.
    """
    n_judges = (all_labels != NOT_ASKED).sum(axis=0)
    n_positive = (all_labels == 1).sum(axis=0)
    is_judged_by_several = n_judges > 1
    is_unanimous = (n_positive == 0) | (n_positive == n_judges)
    is_agreed = is_judged_by_several & is_unanimous
    return np.where(is_agreed, n_positive > 0, NOT_ASKED).astype(np.int64)


class Variant(NamedTuple):
    """A model, and the labels that it is trained on.

    Attributes
    ----------
    suffix : str
        Key of the labels in `LabelPlan.training_labels`, which is the suffix of the model's name.
    spec : ModelSpec
    """

    suffix: str
    spec: ModelSpec


def make_variants(specs: Sequence[ModelSpec], label_plan: LabelPlan, data: Dataset) -> Iterator[Variant]:
    """Yield each model once for every set of training labels, such as those of each annotator.

    The name and title of a variant say whose labels it is trained on: "linear@AB" on those of AB. The suffix
    is "@" and the annotator, or empty for labels that are not of one annotator. Models that read no features,
    such as one that calls every clip positive, do not stand for an annotator: they are trained once, on the
    first set of labels. Baselines for which the dataset has data are added.
    """
    suffixes = list(label_plan.training_labels)
    first_suffix = suffixes[0]
    for spec in [*specs, *_baselines(label_plan, data)]:
        if not spec.looks_at_features:
            yield Variant(first_suffix, spec)
            continue
        for suffix in suffixes:
            title = spec.title
            if suffix:
                annotator = suffix.removeprefix("@")
                title += f", trained on {annotator}"
                if annotator in data.labels.machines:
                    title += " (a machine)"
            yield Variant(suffix, replace(spec, name=f"{spec.name}{suffix}", title=title))


def _baselines(label_plan: LabelPlan, data: Dataset) -> list[ModelSpec]:
    """List the baselines that a dataset has data for: clip lengths, variables of a table, or answers.

    They show how far labels can be told from what is no feature of a backbone: from the length of the clip
    alone, from measured variables of staging, and from a machine's answers to the codebook's questions.
    """
    length = ModelSpec(
        name=LENGTH,
        title="length of the clip alone",
        make=lambda _seed: linear_probe(),
        reads="seconds",
    )
    staging = ModelSpec(
        name=STAGING,
        title="variables of staging alone",
        make=lambda _seed: variables_probe(),
        choose=PENALTIES,
        reads="variables",
    )
    answers = ModelSpec(
        name=ANSWERS,
        title="answers of a machine",
        make=lambda _seed: GivenScore(),
        reads="answers",
    )
    baselines = []
    # If annotators delimited the clips, lengths may tell the labels, unless they vary by less than 1 %.
    if label_plan.by_annotator and data.seconds is not None:
        log_seconds = np.log(data.seconds)
        if log_seconds.max() - log_seconds.min() > np.log(1.01):
            baselines.append(length)
    if data.variables is not None:
        baselines.append(staging)
    if data.answers is not None:
        baselines.append(answers)
    return baselines


# --- how often annotators are right
# ---------------------------------------------------------------------------
N_FOLDS: Final = 5
"""Folds of films: the model that scores the films of a fold is fitted on those of the others."""
N_MODEL_FITS: Final = 4
"""How often the model is fitted, each time on the probabilities that EM gave before."""
N_EM_STEPS: Final = 30
"""Steps of EM after each fit of the model."""
PENALTY_STRENGTHS: Final = (10.0, 1.0, 0.1, 0.01)
"""Strengths of the model's penalty, of which the one with the least held-out loss is taken."""
NEGLIGIBLE_PENALTY: Final = 1e-6
"""Strength of a penalty that hardly changes the weights, but keeps them finite."""
N_PRIOR_LABELS: Final = 1.0
"""Number of correct labels, and of wrong ones, that are added to every annotator's labels of each class."""


def annotators_noise(calls: Ints, movies: NDArray[np.str_], X: Floats | None = None) -> tuple[Floats, Floats]:
    """Estimate by EM how often annotators are right, and how probable it is that each clip is positive.

    Each step of EM computes the accuracies from the clips' probabilities, and then the probabilities from the
    accuracies. With features, a model of them gives each clip a prior probability. It is fitted to the
    probabilities of the clips, and fitted anew when EM has changed them, `N_MODEL_FITS` times in all.

    Parameters
    ----------
    calls : ndarray of int, shape [J, N]
        0 or 1; `NOT_ASKED` where an annotator did not judge a clip.
    movies : ndarray, shape [N]
    X : ndarray, shape [N, D], optional
        Features; rows of NaN for clips without features. Without X all clips have the same prior probability.

    Returns
    -------
    accuracies : ndarray, shape [J, 2]
        Shares of negative and of positive clips that each annotator labels correctly.
    positive : ndarray, shape [N]
        Probability of each clip to be positive, given all labels and its features.
    """
    is_judged = calls != NOT_ASKED
    is_yes = calls == 1
    # EM begins with the share of annotators that called a clip positive. Half a label of each class is added,
    # so that no share is 0 or 1.
    n_yes = (is_yes & is_judged).sum(axis=0)
    n_judges = is_judged.sum(axis=0)
    positive = (n_yes + 0.5) / (n_judges + 1)
    n_model_fits = N_MODEL_FITS if X is not None else 1
    with one_blas_thread():
        for _ in range(n_model_fits):
            scores = None if X is None else _held_out_logits(X, positive, movies)
            for _ in range(N_EM_STEPS):
                # M step: the accuracies and the prior, given how probably each clip is positive.
                accuracies = _accuracies(is_yes, is_judged, positive)
                prior = _prior_log_odds(positive, scores)
                # E step: how probably each clip is positive, by Bayes' rule. Log-odds add up.
                evidence = _log_odds_of_calls(is_yes, is_judged, accuracies)
                positive = expit(prior + evidence)
    return _accuracies(is_yes, is_judged, positive), positive


def _accuracies(is_yes: Bools, is_judged: Bools, positive: Floats) -> Floats:
    """Estimate the shares of negative and of positive clips that each annotator labels correctly, [J, 2].

    `N_PRIOR_LABELS` correct and as many wrong labels of each class are added, so that no share is 0 or 1.

    Parameters
    ----------
    is_yes, is_judged : ndarray of bool, shape [J, N]
        Clips that each annotator called positive, and clips that each judged.
    positive : ndarray, shape [N]
        Probability of each clip to be positive.
    """
    negative = 1 - positive
    # Expected numbers for each annotator [J]: sums of the probabilities of clips.
    n_negatives = is_judged @ negative
    n_positives = is_judged @ positive
    n_right_noes = (is_judged & ~is_yes) @ negative
    n_right_yeses = (is_judged & is_yes) @ positive
    accuracy_on_negatives = (n_right_noes + N_PRIOR_LABELS) / (n_negatives + 2 * N_PRIOR_LABELS)
    accuracy_on_positives = (n_right_yeses + N_PRIOR_LABELS) / (n_positives + 2 * N_PRIOR_LABELS)
    return np.stack([accuracy_on_negatives, accuracy_on_positives], axis=1)


def _log_odds_of_calls(is_yes: Bools, is_judged: Bools, accuracies: Floats) -> Floats:
    """Sum the evidence of the annotators' labels that a clip is positive, as log-odds [N].

    A label "yes" adds log(P(yes | positive) / P(yes | negative)), a label "no" adds
    log(P(no | positive) / P(no | negative)).

    Parameters
    ----------
    is_yes, is_judged : ndarray of bool, shape [J, N]
        Clips that each annotator called positive, and clips that each judged.
    accuracies : ndarray, shape [J, 2]
        Shares of negative and of positive clips that each annotator labels correctly.
    """
    no_if_negative = accuracies[:, :1]  # [J, 1]
    yes_if_positive = accuracies[:, 1:]  # [J, 1]
    evidence_of_yes = np.log(yes_if_positive / (1 - no_if_negative))
    evidence_of_no = np.log((1 - yes_if_positive) / no_if_negative)
    evidence = np.where(is_yes, evidence_of_yes, evidence_of_no)  # [J, N]
    return np.asarray((evidence * is_judged).sum(axis=0))


def _prior_log_odds(positive: Floats, scores: Floats | None) -> Floats:
    """Compute the prior log-odds [N] of each clip to be positive, before annotators' labels are counted.

    They are a model's scores [N], scaled by a logistic regression of the current probabilities `positive` [N]
    on the scores. Without scores, or if the probabilities fall as scores rise, all clips have the log-odds of
    the mean probability.
    """
    mean_log_odds = float(logit(positive.mean()))
    same_for_all = np.full(len(positive), mean_log_odds)
    if scores is None or scores.min() == scores.max():
        return same_for_all
    # The logistic regression on one feature, the score, is fitted on all clips and applied to the same clips.
    feature = scores[:, None]
    scaled_scores = soft_logits(feature, positive, feature, (NEGLIGIBLE_PENALTY,))[0]
    # Scaled scores are a linear function of the scores, which rises if their covariance is above 0.
    covariance = float((scores - scores.mean()) @ (scaled_scores - scaled_scores.mean()))
    return scaled_scores if covariance > 0 else same_for_all


def _held_out_logits(X: Floats, positive: Floats, movies: NDArray[np.str_]) -> Floats:
    """Score clips [N] by logistic regressions that are fitted on other movies.

    The soft labels `positive` [N] are the clips' probabilities to be positive. Of `PENALTY_STRENGTHS` the one
    with the lowest held-out loss is used.
    """
    # --- the folds: groups of movies or, if there is only one movie, of single clips
    standardised = _standardise(X)
    has_several_movies = len(np.unique(movies)) > 1
    groups = movies if has_several_movies else np.arange(len(movies))
    folds = GroupKFold(min(N_FOLDS, len(np.unique(groups))))

    # --- the logits by models with each strength of the penalty
    logits = np.zeros((len(PENALTY_STRENGTHS), len(X)))
    for train, test in folds.split(X, groups=groups):
        logits[:, test] = soft_logits(
            standardised[train], positive[train], standardised[test], PENALTY_STRENGTHS
        )

    # --- the best strength
    # The log loss of a soft label y at the logit z is log(1 + exp(z)) - y z.
    log_losses = (np.logaddexp(0, logits) - positive * logits).mean(axis=1)  # of each strength
    best: int = log_losses.argmin()
    return np.asarray(logits[best], dtype=np.float64)


def _standardise(X: Floats) -> Floats:
    """Standardise features [N, D]; clips without features (NaN) get 0, the mean after standardisation."""
    deviation = np.nanstd(X, axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    standardised: Floats = np.nan_to_num((X - np.nanmean(X, axis=0)) / scale)
    return standardised
