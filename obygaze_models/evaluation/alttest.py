"""Test whether a machine may stand in for an annotator (Calderon, Reichart & Dror, ACL 2025: the alt-test).

Each annotator is left out in turn. The machine and this annotator are then compared by how well they agree
with the other annotators. Clips of a film are not independent, so that films are the units of our test; the
published test, whose units are clips, is computed too. If one of two classes is rare, plain agreement is lax:
a machine that always answers no agrees with most labels. In balanced agreement each class of another
annotator's labels has the same weight.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from obygaze_features.manifest import Manifest, blind_labels, machines_of, why_unperceived
from obygaze_features.text import composed
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import Target, find_target
from obygaze_models.protocol.exchanges import rows_that_exchange
from obygaze_models.protocol.targets import NOT_ASKED, all_levels, labels_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Form = Literal["clips", "films", "balanced"]

FORMS: Final[tuple[Form, ...]] = ("clips", "films", "balanced")
"""Forms of the test: plain agreement with clips as units (as published), plain agreement with films as units,
and balanced agreement with films as units."""
MARGINS: Final = (0.0, 0.05, 0.1, 0.15, 0.2)
"""Margins (epsilon): by how much less than an annotator a machine may agree. The paper takes .2 for experts
and .1 for crowds."""
DECIDING_TEST: Final[tuple[Form, float]] = ("balanced", 0.1)
"""Form and margin of the test that decides whether a machine may stand in."""
MIN_WINNING_RATE: Final = 0.5
"""A machine may stand in if it is as good as at least this share of the annotators."""
FALSE_DISCOVERY_RATE: Final = 0.05
"""False discovery rate among the annotators whom a machine is reported to be as good as."""
FEWEST_CLIPS: Final = 30
"""Clips that an annotator must share with another and with the machine, as published."""
UNKNOWN: Final = NOT_ASKED
"""Label of a clip that an annotator or machine did not judge."""
CONTROLS: Final = ("constant", "shuffled")
"""Names of the controls that are compared like a machine, and know nothing of the clips."""
ROUNDING_ERROR: Final = 1e-9
"""Standard errors, and differences of shares, below it are 0 but for rounding."""
N_SHUFFLES: Final = 20
"""Number of shuffled controls. A single one could pass the test, or fail it, by chance."""


class MeanShortfalls(NamedTuple):
    """By how much a machine agrees less with the others than each of J annotators does, on average.

    Attributes
    ----------
    mean : ndarray, shape [J]
        Above 0 where the annotator agrees more than the machine.
    error : ndarray, shape [J]
        Standard error of the mean.
    degrees_of_freedom : ndarray, shape [J]
        Those of the error.
    """

    mean: Floats
    error: Floats
    degrees_of_freedom: Floats


@dataclass(frozen=True)
class MachineComparison:
    """Agreement of one machine, or control, with annotators, compared with each annotator's own agreement.

    Attributes
    ----------
    name : str
        The machine's name, or a control's: ``constant`` always gives the label that annotators give most
        often; ``shuffled`` has the machine's answers in another order within films (films of one clip
        exchange theirs).
    advantage : float
        Average advantage probability: the share of clips on which the machine agrees with the other
        annotators at least as well as the annotator who is left out, averaged over these annotators.
    by_form : dict of str to MeanShortfalls
        Form of the test -> the machine's shortfall against each of J annotators who were left out.
    """

    name: str
    advantage: float
    by_form: dict[Form, MeanShortfalls]

    def mean_shortfall(self, form: Form) -> float:
        """Return by how much the machine agrees less than annotators do, averaged over annotators."""
        return float(np.mean(self.by_form[form].mean))

    def p(self, form: Form, margin: float) -> Floats:
        """Compute a one-sided p-value for each annotator left out [J], by Student's t.

        The shortfall is by how much the machine agrees less with the other annotators than the annotator left
        out does, in the `form` of the test. The null hypothesis is that it is at least the margin; a small p
        shows that it is smaller. Where the shortfall has no error, p is 0 if it is below the margin, else 1.
        """
        shortfall = self.by_form[form]
        above_margin = shortfall.mean - margin
        # Where the error is 0, t is infinite or NaN, and not used.
        with np.errstate(divide="ignore", invalid="ignore"):
            t = above_margin / shortfall.error
            p_of_t = stdtr(shortfall.degrees_of_freedom, t)
        p_without_error = (above_margin >= 0).astype(np.float64)
        p: Floats = np.where(shortfall.error > 0, p_of_t, p_without_error)
        return p

    def winning_rate(self, form: Form, margin: float) -> float:
        """Return the share of annotators whom the machine is shown to be as good as, within the margin.

        It is shown for those whose p (`p`), adjusted for the number of annotators, is at most .05
        (`FALSE_DISCOVERY_RATE`). The method of Benjamini and Yekutieli (2001), which allows any dependence
        between annotators, keeps the false discovery rate at that.
        """
        adjusted = false_discovery_control(self.p(form, margin), method="by")
        return float((adjusted <= FALSE_DISCOVERY_RATE).mean())

    @property
    def passes(self) -> bool:
        """Whether the winning rate in the deciding test is at least a half (`MIN_WINNING_RATE`).

        That test is of balanced agreement with films as units, with a margin of .1 (`DECIDING_TEST`).
        """
        form, margin = DECIDING_TEST
        return self.winning_rate(form, margin) >= MIN_WINNING_RATE


@dataclass(frozen=True)
class Alternative:
    """Result of the alt-test of one machine.

    Attributes
    ----------
    comparisons : tuple of MachineComparison
        The machine's, then those of `CONTROLS`; of the shuffled controls only the first.
    annotators : dict of str to int
        Each annotator who was left out in turn -> number of clips compared.
    films : int
        Number of films.
    answer : str
        Whether the machine may stand in.
    in_sight : int
        Number of labels that do not count, as annotators gave them in sight of a model's score.
    clips : int
        Number of clips that two annotators or more judged.
    unanswered : int
        Of these, the clips that are not compared, as the machine has no label for them that is compared: it
        did not answer, or gave a level that is not in the task. The answer says nothing of them: a machine
        may leave out what is difficult.
    """

    comparisons: tuple[MachineComparison, ...]
    annotators: dict[str, int]
    films: int
    answer: str
    in_sight: int = 0
    clips: int = 0
    unanswered: int = 0

    def record(self) -> dict[str, Any]:
        """Describe the result as JSON values: the answer, and a row for each machine and form of the test.

        In a row, "by" is the form, and "below" by how much the machine agrees less than annotators do.
        "winning_rate" maps each margin, as text, to the share of annotators whom the machine is shown to be
        as good as, within that margin.
        """
        rows = []
        for comparison in self.comparisons:
            for form in FORMS:
                winning_rates = {f"{margin:g}": comparison.winning_rate(form, margin) for margin in MARGINS}
                row = {
                    "name": comparison.name,
                    "by": form,
                    "advantage_probability": comparison.advantage,
                    "below": comparison.mean_shortfall(form),
                    "winning_rate": winning_rates,
                }
                rows.append(row)
        return {
            "answer": self.answer,
            "annotators": self.annotators,
            "films": self.films,
            "in_sight": self.in_sight,
            "clips": self.clips,
            "unanswered": self.unanswered,
            "rows": rows,
        }


def alt_test(
    machine: Ints, annotators: Mapping[str, Ints], films: NDArray[np.str_] | Ints, name: str = ""
) -> Alternative:
    """Test whether a machine may stand in for human annotators, by its agreement with them on N clips.

    Each annotator who shares enough clips is left out in turn, and the machine is compared with this
    annotator. Two kinds of controls, which ignore the clips, are compared in the same way: a constant answer,
    and the machine's answers in random order within films.

    Parameters
    ----------
    machine : ndarray of int, shape [N]
        The machine's label of each clip; `UNKNOWN` where it has none.
    annotators : mapping of str to ndarray of int, shape [N]
        Name -> the annotator's labels.
    films : ndarray, shape [N]
        The film of each clip.
    name : str
        The machine's name.

    Raises
    ------
    ProtocolError
        Fewer than two annotators share `FEWEST_CLIPS` clips with the machine, or all labels of annotators are
        the same.
    """
    machine_name = name or "a machine"
    humans = np.array([*annotators.values()], dtype=np.int64).reshape(-1, len(machine))  # [J, N]

    # --- the clips that can be compared, and the annotators who have enough of them
    # A clip can be compared if the machine, the annotator who is left out and another one have judged it.
    is_judged = humans != UNKNOWN
    has_two_humans = is_judged.sum(axis=0) > 1
    is_shared = (machine != UNKNOWN) & has_two_humans
    n_shared_clips = (is_judged & is_shared).sum(axis=1).tolist()  # of each annotator
    n_shared = dict(zip(annotators, n_shared_clips, strict=True))
    _refuse_too_few(machine_name, n_shared)
    left_out_in_turn = [row for row, n in enumerate(n_shared_clips) if n >= FEWEST_CLIPS]

    # --- the machine and its controls
    labels = _sort_labels(machine[is_shared], humans[:, is_shared], films[is_shared])
    constant = _most_frequent_answer(labels, machine_name)
    shuffles = _shuffles(labels.machine, labels.film)

    def compare(compared_name: str, answers: Ints) -> MachineComparison:
        """Compare the answers of the machine or a control with the annotators."""
        return _compare_with_annotators(compared_name, labels._replace(machine=answers), left_out_in_turn)

    constant_name, shuffled_name = CONTROLS
    comparison = compare(name, labels.machine)
    reported_shuffle, *more_shuffles = shuffles
    controls = [compare(constant_name, constant), compare(shuffled_name, reported_shuffle)]
    # The other shuffles are not reported. Each is compared when `_answer` asks for it, which stops at the
    # first control that passes the test.
    more_controls = (compare(shuffled_name, shuffle) for shuffle in more_shuffles)
    return Alternative(
        comparisons=(comparison, *controls),
        annotators={annotator: n for annotator, n in n_shared.items() if n >= FEWEST_CLIPS},
        films=int(labels.film.max()) + 1,
        answer=_answer(comparison, chain(controls, more_controls)),
        clips=int(has_two_humans.sum()),
        unanswered=int((has_two_humans & (machine == UNKNOWN)).sum()),
    )


def _answer(comparison: MachineComparison, controls: Iterable[MachineComparison]) -> str:
    """Say whether a machine may stand in, given its comparison with the annotators and those of controls.

    If a control passes the test too, although it ignores the clips, then passing it shows nothing. No further
    control is then taken from the iterable.
    """
    if not comparison.passes:
        return "not shown that it may stand in"
    if any(control.passes for control in controls):
        return "these annotators agree too little to tell"
    return "may stand in"


def _most_frequent_answer(labels: "_LabelsOfClips", machine_name: str) -> Ints:
    """Return a constant answer to all clips [N]: the label that annotators give most often.

    Raises
    ------
    ProtocolError
        All labels of annotators are the same.
    """
    labels_of_humans = labels.humans[labels.humans != UNKNOWN]
    if labels_of_humans.min() == labels_of_humans.max():
        raise ProtocolError(f"{machine_name}: annotators call all clips alike, which tells nothing")
    return np.full_like(labels.machine, np.bincount(labels_of_humans).argmax())


def _refuse_too_few(machine_name: str, n_shared: Mapping[str, int]) -> None:
    """Raise unless two annotators share `FEWEST_CLIPS` clips with the machine and another annotator.

    `n_shared` is the number of such clips of each annotator.
    """
    if sum(n >= FEWEST_CLIPS for n in n_shared.values()) >= 2:
        return
    counts = ", ".join(f"{annotator} {n}" for annotator, n in n_shared.items())
    raise ProtocolError(
        f"{machine_name} is compared with two annotators or more who each judged {FEWEST_CLIPS} clips "
        f"that it and another one judged too: there are {counts or 'none'}"
    )


class _LabelsOfClips(NamedTuple):
    """Labels of N clips by a machine and by J annotators.

    Attributes
    ----------
    machine : ndarray of int, shape [N]
    humans : ndarray of int, shape [J, N]
        `UNKNOWN` where an annotator did not judge a clip.
    film : ndarray of int, shape [N]
        Number of each clip's film, from 0.
    """

    machine: Ints
    humans: Ints
    film: Ints


def _sort_labels(machine: Ints, humans: Ints, films: NDArray[Any]) -> _LabelsOfClips:
    """Sort clips by film and then by labels, so that shuffles do not depend on the order of the clips."""
    _, film = np.unique(films, return_inverse=True)
    # `lexsort` sorts by its last key first: by film, then by the machine's label, then by the humans'.
    order = np.lexsort((*humans, machine, film))
    return _LabelsOfClips(machine[order], humans[:, order], film[order])


def _shuffles(machine: Ints, film: Ints) -> list[Ints]:
    """Shuffle a machine's answers [N] within films [N], `N_SHUFFLES` times, always in the same way.

    Shuffled answers are as frequent in each film as the machine's, but ignore the clips: a control of the
    test. Films of one clip exchange their answers with each other (`rows_that_exchange`). Clips must be
    sorted by film.
    """
    # The clips of a film are a block, which exchange their answers. So are those of all films of one clip.
    block = np.empty_like(film)
    for number, rows in enumerate(rows_that_exchange(film)):
        block[rows] = number
    clips_by_block = np.argsort(block, kind="stable")
    rng = np.random.default_rng(0)
    shuffles = []
    for _ in range(N_SHUFFLES):
        random_numbers = rng.random(len(film))
        # Sorted by block, then by the random number. Both lists of clips have the same block at each place:
        # a clip of the first one gets the answer of the clip at its place in the second one.
        shuffled_by_block = np.lexsort((random_numbers, block))
        shuffled = np.empty_like(machine)
        shuffled[clips_by_block] = machine[shuffled_by_block]
        shuffles.append(shuffled)
    return shuffles


def compare_machines(
    labels: Manifest, common: Manifest, machines: Sequence[str] = (), task: str | None = None
) -> dict[str, Alternative]:
    """Run the alt-test for each machine among a manifest's annotators, against the people among them.

    Labels that were given in sight of a model's score are left out (`blind_labels`): whoever saw the score of
    a machine tends to agree with machines.

    Parameters
    ----------
    labels : Manifest
        Rows of annotators, people and machines, as imported: they state which annotators are machines, and
        what these perceive.
    common : Manifest
        The same labels on clips that annotators have in common (`on_common_clips`), which are compared.
    machines : sequence of str
        Annotators that are machines; by default those whose answers were imported.
    task : str, optional
        Task of levels, or concept:NAME; by default all levels are compared.

    Returns
    -------
    dict
        Name of a machine -> its result; empty if there are no machines.

    Raises
    ------
    ProtocolError
        A machine is none of the annotators, or cannot perceive the concept; or for a reason of `alt_test`.
    """
    requested = [composed(name) for name in machines]
    _refuse_unknown_annotators(requested, labels)
    imported = list(machines_of(labels))
    tested = requested or imported
    if not tested:
        return {}
    blind = blind_labels(common)
    clips = labels_of(blind.manifest)
    target = all_levels(labels.codebook) if task is None else find_target(task, labels.codebook)
    _refuse_unperceived(labels, target, tested)

    # Annotator -> class of each clip, of people and machines. Imported machines are no people, even if they
    # are not tested.
    answers_of_annotator = {name: target.of(own_labels) for name, own_labels in clips.experts.items()}
    names_of_machines = {*tested, *imported}
    people = {
        name: answers for name, answers in answers_of_annotator.items() if name not in names_of_machines
    }
    no_answers = np.full(len(clips.movies), UNKNOWN)
    results = {}
    for name in tested:
        answers = answers_of_annotator.get(name, no_answers)
        try:
            result = alt_test(answers, people, clips.movies, name)
        except ProtocolError as error:
            raise ProtocolError(f"{error}{blind.reason()}") from None
        results[name] = replace(result, in_sight=blind.n_left_out)
    return results


def _refuse_unknown_annotators(names: Sequence[str], labels: Manifest) -> None:
    """Raise if one of the names is no annotator of a manifest; the message lists those that there are."""
    annotators = {clip.annotator for clip in labels if clip.annotator}
    for name in names:
        if name not in annotators:
            known = ", ".join(sorted(annotators)) or "none"
            raise ProtocolError(f"no annotator {name!r}: there are {known}")


def _refuse_unperceived(labels: Manifest, target: Target, machines: Sequence[str]) -> None:
    """Raise if the target is a concept that one of the machines cannot perceive, such as sound.

    The column `perceives` of a machine's rows says what it perceives.
    """
    if not target.concept:
        return
    concept = labels.codebook.concept(target.concept)
    for clip in labels:
        if clip.annotator not in machines:
            continue
        perceives = [name for name in clip.extras.get("perceives", "").split(";") if name]
        reason = why_unperceived(concept, perceives)
        if reason:
            raise ProtocolError(f"{clip.annotator}: {reason}: its answers are none")


def _compare_with_annotators(
    name: str, labels: _LabelsOfClips, left_out_in_turn: Sequence[int]
) -> MachineComparison:
    """Compare a machine with each annotator who is left out in turn, in each form of the test.

    The question is which of the two, the machine or the annotator, agrees better with the other annotators.

    Parameters
    ----------
    name : str
        Name of the machine.
    labels : _LabelsOfClips
    left_out_in_turn : sequence of int
        The annotators to compare with: rows of `labels.humans`.
    """
    shares_as_good = []  # of clips, against each annotator
    means_of: dict[Form, list[_ClusteredMean]] = {form: [] for form in FORMS}
    for row in left_out_in_turn:
        is_judged = labels.humans[row] != UNKNOWN
        human = labels.humans[row, is_judged]
        others = np.delete(labels.humans, row, axis=0)[:, is_judged]
        shortfall = _shortfall(human, labels.machine[is_judged], others)
        # The shortfall of a clip is above 0 if the annotator agrees better with the others than the machine.
        is_as_good = shortfall.plain <= 0
        shares_as_good.append(is_as_good.mean())

        # The forms of the test differ in the shortfall: plain, or with all classes weighing the same; and in
        # what counts as independent: clips or films.
        clip = np.arange(len(human))
        film = labels.film[is_judged]
        means_of["clips"].append(_clustered_mean(shortfall.plain, clip))
        means_of["films"].append(_clustered_mean(shortfall.plain, film))
        means_of["balanced"].append(_clustered_mean(shortfall.balanced, film))
    by_form = {form: _as_arrays(means) for form, means in means_of.items()}
    return MachineComparison(name, advantage=float(np.mean(shares_as_good)), by_form=by_form)


def _as_arrays(means: Sequence["_ClusteredMean"]) -> MeanShortfalls:
    """Put the mean shortfalls of a machine against J annotators, with their errors, into arrays [J]."""
    return MeanShortfalls(
        mean=np.array([estimate.mean for estimate in means]),
        error=np.array([estimate.error for estimate in means]),
        degrees_of_freedom=np.array([estimate.degrees_of_freedom for estimate in means], np.float64),
    )


class _Shortfall(NamedTuple):
    """By how much a machine agrees with the other annotators less than a human does, clip by clip.

    Attributes
    ----------
    plain : ndarray, shape [N]
        1 where the human agrees with more of the others, -1 where the machine does, 0 where both do alike.
    balanced : ndarray, shape [N]
        Above 0 where the human agrees more, below 0 where the machine does: the mean over the others of 1, -1
        or 0, each weighted such that all classes in this other annotator's labels weigh the same.
    """

    plain: Floats
    balanced: Floats


def _shortfall(human: Ints, machine: Ints, others: Ints) -> _Shortfall:
    """Compute by how much a machine agrees with the other annotators less than a human does, in each clip.

    Parameters
    ----------
    human, machine : ndarray of int, shape [N]
        Labels of the annotator who is left out, and of the machine.
    others : ndarray of int, shape [K, N]
        Labels of the other annotators; `UNKNOWN` where one did not judge a clip.
    """
    is_known = others != UNKNOWN
    human_agrees = is_known & (others == human)  # [K, N]
    machine_agrees = is_known & (others == machine)
    # 1 where only the human agrees with this other annotator, -1 where only the machine does, else 0.
    lead_of_human = np.zeros(others.shape, np.int64)
    lead_of_human[human_agrees & ~machine_agrees] = 1
    lead_of_human[machine_agrees & ~human_agrees] = -1

    # Plain: who agrees with more of the others. Balanced: the mean lead, in which each class of another
    # annotator's labels weighs the same, so that a machine that always answers no gains nothing.
    plain = np.sign(lead_of_human.sum(axis=0)).astype(np.float64)
    weighted_leads = _balancing_weights(others) * lead_of_human
    n_others_of_clip = is_known.sum(axis=0)
    balanced = weighted_leads.sum(axis=0) / n_others_of_clip
    return _Shortfall(plain, balanced)


def _balancing_weights(others: Ints) -> Floats:
    """Weigh each label of each annotator [K, N] such that all classes in one's labels weigh the same.

    An annotator's weights have the mean 1. If one labelled 90 clips "no" and 10 "yes", each "no" has the
    weight 100 / 2 / 90 = .56, and each "yes" the weight 100 / 2 / 10 = 5. `UNKNOWN` labels have the weight 0.
    """
    weights = np.zeros(others.shape)
    for row, labels in enumerate(others):
        is_known = labels != UNKNOWN
        known_labels = labels[is_known]
        n_of_class = np.bincount(known_labels)
        n_classes = max((n_of_class > 0).sum(), 1)  # not 0 if nothing is labelled, to divide by it
        weights[row, is_known] = len(known_labels) / n_classes / n_of_class[known_labels]
    return weights


class _ClusteredMean(NamedTuple):
    """A mean of clustered values with its standard error and degrees of freedom."""

    mean: float
    error: float
    degrees_of_freedom: float


def _clustered_mean(values: Floats, clusters: Ints) -> _ClusteredMean:
    """Compute the mean of values [N] and its standard error, where values of one cluster may be correlated.

    `clusters` [N] is the cluster of each value. The error is that of the jackknife over clusters (the
    estimator CV3 of MacKinnon, Nielsen and Webb 2023, arXiv 2301.04527), which leaves out one cluster at a
    time. With the symbols

    - G: number of clusters,
    - h: share of the values that are in a cluster,
    - S: sum of the cluster's residuals, the values less the mean of all,

    the mean changes by -S / ((1 - h) N) when the cluster is left out. The variance is (G - 1) / G times the
    sum of the squares of these changes.

    The degrees of freedom are those that the sizes of the clusters leave (`_degrees_of_freedom`).

    If the means of all clusters are equal, this error is 0. With two or three small clusters that is often
    so by chance, as a few clips have only a few possible means, and does not make the mean certain. The error
    then is the one that independent values have.
    """
    mean = float(values.mean())
    sizes = np.bincount(clusters)
    residual_sums = np.bincount(clusters, values - mean)  # S of each cluster
    # A film of which the annotator judged no clip has no value, and is no cluster.
    has_values = sizes > 0
    sizes = sizes[has_values]
    residual_sums = residual_sums[has_values]
    n_values = len(values)
    n_clusters = len(sizes)
    if n_clusters < 2:
        # The error of one cluster is unknown: an infinite one makes p 1/2, so that nothing is shown.
        return _ClusteredMean(mean, error=np.inf, degrees_of_freedom=1)
    shares = sizes / n_values  # h of each cluster
    changes_times_n = residual_sums / (1 - shares)  # their sign does not count, as they are squared
    sum_of_squares = np.sum(changes_times_n**2)
    error = float(np.sqrt(sum_of_squares * (n_clusters - 1) / n_clusters)) / n_values
    has_equal_means = error < ROUNDING_ERROR
    if has_equal_means:
        error = float(values.std(ddof=1)) / np.sqrt(n_values)  # of independent values
    return _ClusteredMean(mean, error, _degrees_of_freedom(shares))


def _degrees_of_freedom(shares: Floats) -> float:
    """Compute the degrees of freedom of the error of a mean over G clusters, by the clusters' shares h [G].

    They are G - 1 if all clusters are of one size, and fewer otherwise: where one film has nearly all clips,
    the error is little more than the difference between this film and the rest, and has one.

    The approximation is Satterthwaite's: the estimated variance V of the mean has 2 E[V]^2 / Var[V] degrees
    of freedom. The means m [G] of clusters are taken to vary independently and equally. If a cluster is left
    out, the mean of all changes by an element of B m, and V is a multiple of the sum of their squares:

        B m = h / (1 - h) (m - h' m)            E[V] ~ trace(B B')        Var[V] ~ 2 trace(B B' B B')

    The second trace is the sum of the squares of all elements of the symmetric matrix B B'. With w the
    squares of h / (1 - h) and s the sum of h^2, the elements on the diagonal are w_i (1 + s - 2 h_i). The
    matrix itself is not made, as it has G x G elements (`_squares_beside_diagonal`).
    """
    if np.ptp(shares) < ROUNDING_ERROR:
        return float(len(shares) - 1)  # all clusters are of one size
    shares = np.sort(shares)
    weights = (shares / (1 - shares)) ** 2
    sum_of_squares = np.sum(shares**2)
    diagonal = weights * (1 + sum_of_squares - 2 * shares)
    squares_of_elements = np.sum(diagonal**2) + _squares_beside_diagonal(shares, weights, sum_of_squares)
    return float(np.sum(diagonal) ** 2 / squares_of_elements)


def _squares_beside_diagonal(shares: Floats, weights: Floats, s: float) -> float:
    """Sum the squares of the elements of B B' beside its diagonal, w_i w_j (s - h_i - h_j)^2 for i and j.

    Multiplied out, the sum over all i and j is made of sums over single clusters; the terms in which i is j
    are then subtracted. The pairs with the largest cluster are summed by themselves: if it has nearly all
    clips, its term in which i is j is so large that only rounding would be left after subtraction.

    Parameters
    ----------
    shares, weights : ndarray, shape [G]
        h and w of `_degrees_of_freedom`, in the order of shares: the largest is the last.
    s : float
        The sum of the squares of the shares.
    """
    h, largest_h = shares[:-1], shares[-1]
    w, largest_w = weights[:-1], weights[-1]
    with_largest = 2 * largest_w * np.sum(w * (s - largest_h - h) ** 2)  # [i, largest] and [largest, i]
    all_pairs_of_others = (
        s**2 * np.sum(w) ** 2
        - 4 * s * np.sum(w) * np.sum(w * h)
        + 2 * np.sum(w) * np.sum(w * h**2)
        + 2 * np.sum(w * h) ** 2
    )
    pairs_with_themselves = np.sum((w * (s - 2 * h)) ** 2)
    return float(with_largest + all_pairs_of_others - pairs_with_themselves)
