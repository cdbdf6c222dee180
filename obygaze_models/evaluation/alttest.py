"""Test whether a machine may stand in for an annotator (Calderon, Reichart & Dror, ACL 2025: the alt-test).

Each annotator is left out in turn. The machine and this annotator are then compared by how well they agree
with the other annotators. Clips of a film are not independent, so that films are the units of our test; the
published test, whose units are clips, is computed too. If one of two classes is rare, plain agreement is lax:
a machine that always answers no agrees with most labels. In balanced agreement each class of another
annotator's labels has the same weight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr
from scipy.stats import false_discovery_control

from obygaze_features.manifest import Manifest, why_unperceived
from obygaze_features.text import composed
from obygaze_models.errors import ProtocolError
from obygaze_models.protocol import Target, find_target
from obygaze_models.protocol.targets import NOT_ASKED, all_levels, labels_of

Codes = NDArray[np.int64]
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
LEAST_WINNING_RATE: Final = 0.5
"""A machine may stand in if it is as good as at least this share of the annotators."""
FALSE_DISCOVERY_RATE: Final = 0.05
"""False discovery rate among the annotators whom a machine is reported to be as good as."""
FEWEST_CLIPS: Final = 30
"""Clips that an annotator must share with another and with the machine, as published."""
UNKNOWN: Final = NOT_ASKED
"""Label of a clip that an annotator or machine did not judge."""
CONTROLS: Final = ("constant", "shuffled")
"""Names of the controls that are compared like a machine, and know nothing of the clips."""
N_SHUFFLES: Final = 20
"""Number of shuffled controls. A single one could pass the test, or fail it, by chance."""


@dataclass(frozen=True)
class MachineComparison:
    """Agreement of one machine, or control, with annotators, compared with each annotator's own agreement.

    Attributes
    ----------
    name : str
        The machine's name, or a control's: ``constant`` always gives the label that annotators give most
        often; ``shuffled`` has the machine's answers in another order within films.
    advantage : float
        Average advantage probability: the share of clips on which the machine agrees with the other
        annotators at least as well as the annotator who is left out, averaged over these annotators.
    by_form : dict of str to ndarray, shape [3, J]
        Form of the test -> three rows, with a column for each of J annotators who were left out: by how much
        the machine agrees less than this annotator (its shortfall), the standard error, and the error's
        degrees of freedom.
    """

    name: str
    advantage: float
    by_form: dict[Form, Floats]

    def mean_shortfall(self, form: Form) -> float:
        """Return by how much the machine agrees less than annotators do, averaged over annotators."""
        shortfall, _, _ = self.by_form[form]
        return float(shortfall.mean())

    def p(self, form: Form, margin: float) -> Floats:
        """Compute a one-sided p-value for each annotator left out [J], by Student's t.

        The null hypothesis is that the machine agrees with the others less than this annotator does, by the
        margin or more.
        """
        shortfall, error, degrees_of_freedom = self.by_form[form]
        gap = shortfall - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            # The distribution function of Student's t: small if the gap is far below 0.
            p_of_t = stdtr(degrees_of_freedom, gap / error)
        # With an error of 0 there is no doubt on which side of the margin the machine is.
        p: Floats = np.where(error > 0, p_of_t, (gap >= 0).astype(np.float64))
        return p

    def winning_rate(self, form: Form, margin: float) -> float:
        """Return the share of annotators whom the machine is shown to be as good as, within the margin.

        The method of Benjamini and Yekutieli (2001), which allows any dependence between annotators, keeps
        the false discovery rate at `FALSE_DISCOVERY_RATE`.
        """
        adjusted = false_discovery_control(self.p(form, margin), method="by")
        return float((adjusted <= FALSE_DISCOVERY_RATE).mean())

    @property
    def passes(self) -> bool:
        """Whether the machine is as good as half of the annotators in the `DECIDING_TEST`."""
        form, margin = DECIDING_TEST
        return self.winning_rate(form, margin) >= LEAST_WINNING_RATE


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
    """

    comparisons: tuple[MachineComparison, ...]
    annotators: dict[str, int]
    films: int
    answer: str

    def record(self) -> dict[str, Any]:
        """Describe the result as JSON values: the answer, and a row for each machine and form of the test."""
        rows = []
        for comparison in self.comparisons:
            for form in FORMS:
                winning_rates = {f"{margin:g}": comparison.winning_rate(form, margin) for margin in MARGINS}
                rows.append(
                    {
                        "name": comparison.name,
                        "by": form,
                        "advantage_probability": comparison.advantage,
                        "below": comparison.mean_shortfall(form),
                        "winning_rate": winning_rates,
                    }
                )
        return {"answer": self.answer, "annotators": self.annotators, "films": self.films, "rows": rows}


def alt_test(
    machine: Codes, annotators: Mapping[str, Codes], films: NDArray[np.str_] | Codes, name: str = ""
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
        Fewer than two annotators share `FEWEST_CLIPS` clips with the machine, or they call all clips alike.
    """
    machine_name = name or "a machine"
    humans = np.array([*annotators.values()], dtype=np.int64).reshape(-1, len(machine))  # [J, N]
    has_two_humans = (humans != UNKNOWN).sum(axis=0) > 1
    is_comparable = (machine != UNKNOWN) & has_two_humans
    n_shared = ((humans != UNKNOWN) & is_comparable).sum(axis=1).tolist()
    left_out_in_turn = [index for index, shared in enumerate(n_shared) if shared >= FEWEST_CLIPS]
    names = list(annotators)
    if len(left_out_in_turn) < 2:
        counts = ", ".join(f"{annotator} {n}" for annotator, n in zip(names, n_shared, strict=True))
        raise ProtocolError(
            f"{machine_name} is compared with two annotators or more who each judged {FEWEST_CLIPS} clips "
            f"that it and another one judged too: there are {counts or 'none'}"
        )
    humans = humans[:, is_comparable]
    machine = machine[is_comparable]
    film = np.unique(films[is_comparable], return_inverse=True)[1]
    # Sorted by film and then by labels, so that the shuffles do not depend on the order of the clips.
    order = np.lexsort((*humans, machine, film))
    humans = humans[:, order]
    machine = machine[order]
    film = film[order]
    labels = humans[humans != UNKNOWN]
    if np.ptp(labels) == 0:
        raise ProtocolError(f"{machine_name}: annotators call all clips alike, which tells nothing")
    constant = np.full_like(machine, np.bincount(labels).argmax())
    first_shuffle, *more_shuffles = _shuffles(machine, film)
    comparisons = []
    for title, codes in zip((name, *CONTROLS), (machine, constant, first_shuffle), strict=True):
        comparisons.append(_compare_with_annotators(title, codes, humans, film, left_out_in_turn))
    if not comparisons[0].passes:
        answer = "not shown that it may stand in"
    else:
        answer = "may stand in"
        # If a control passes too, although it ignores the clips, then passing the test shows nothing. The
        # further shuffles are compared one by one, only until one passes.
        more_controls = (
            _compare_with_annotators("", codes, humans, film, left_out_in_turn) for codes in more_shuffles
        )
        if any(control.passes for control in chain(comparisons[1:], more_controls)):
            answer = "these annotators agree too little to tell"
    compared = {names[index]: n_shared[index] for index in left_out_in_turn}
    return Alternative(tuple(comparisons), compared, int(film.max()) + 1, answer)


def _shuffles(machine: Codes, film: Codes) -> list[Codes]:
    """Shuffle a machine's answers [N] within films [N], `N_SHUFFLES` times.

    Clips must be sorted by film.
    """
    rng = np.random.default_rng(0)
    # Sorting by film, then by a random number, keeps films in place and shuffles their clips.
    return [machine[np.lexsort((rng.random(len(film)), film))] for _ in range(N_SHUFFLES)]


def compare_machines(
    labels: Manifest, common: Manifest, machines: Sequence[str] = (), task: str | None = None
) -> dict[str, Alternative]:
    """Run the alt-test for each machine among a manifest's annotators, against the people among them.

    Parameters
    ----------
    labels : Manifest
        Rows of annotators, people and machines.
    common : Manifest
        The same labels on clips that annotators have in common (`on_common_clips`).
    machines : sequence of str
        Annotators that are machines; by default those whose answers were imported.
    task : str, optional
        Task of levels, or concept:NAME; by default all levels are compared.

    Raises
    ------
    ProtocolError
        A machine is none of the annotators, or cannot perceive the concept, or as `alt_test`.
    """
    wanted = [composed(name) for name in machines]
    names = {clip.annotator for clip in labels if clip.annotator}
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ProtocolError(f"no annotator {unknown[0]!r}: there are {', '.join(sorted(names)) or 'none'}")
    imported = sorted({clip.annotator for clip in labels if clip.extras.get("model")})
    compared = wanted or imported
    if not compared:
        return {}
    clips = labels_of(common)
    target = all_levels(labels.codebook) if task is None else find_target(task, labels.codebook)
    _refuse_unperceived(labels, target, compared)
    codes_of = {name: target.of(labels_of_one) for name, labels_of_one in clips.experts.items()}
    every_machine = {*compared, *imported}
    people = {name: codes for name, codes in codes_of.items() if name not in every_machine}
    no_labels = np.full(len(clips.movies), UNKNOWN)
    alternatives = {}
    for name in compared:
        codes = codes_of.get(name, no_labels)
        alternatives[name] = alt_test(codes, people, clips.movies, name)
    return alternatives


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
    name: str, machine: Codes, humans: Codes, film: Codes, left_out_in_turn: Sequence[int]
) -> MachineComparison:
    """Compare a machine with each annotator who is left out in turn, in each form of the test.

    Parameters
    ----------
    name : str
        Name of the machine.
    machine : ndarray of int, shape [N]
        The machine's label of each clip.
    humans : ndarray of int, shape [J, N]
        The annotators' labels, `UNKNOWN` where an annotator did not judge a clip.
    film : ndarray of int, shape [N]
        The film of each clip.
    left_out_in_turn : sequence of int
        The annotators to compare with: rows of `humans`.
    """
    advantages = []
    estimates = []
    for index in left_out_in_turn:
        clips = humans[index] != UNKNOWN
        others = np.delete(humans, index, axis=0)[:, clips]
        shortfall = _shortfall(humans[index, clips], machine[clips], others)
        advantages.append((shortfall.plain <= 0).mean())
        each_clip = np.arange(len(shortfall.plain))
        films = film[clips]
        # In the order of FORMS.
        estimates.append(
            [
                _clustered_mean(shortfall.plain, each_clip),
                _clustered_mean(shortfall.plain, films),
                _clustered_mean(shortfall.balanced, films),
            ]
        )
    estimates_of_forms = np.array(estimates).transpose(1, 2, 0)  # [forms, 3, J]
    by_form = dict(zip(FORMS, estimates_of_forms, strict=True))
    return MachineComparison(name, float(np.mean(advantages)), by_form)


class _Shortfall(NamedTuple):
    """By how much a machine agrees with the other annotators less than a human does, clip by clip.

    Attributes
    ----------
    plain : ndarray, shape [N]
        1 where the human agrees with more of the others, -1 where the machine does, 0 where both do alike.
    balanced : ndarray, shape [N]
        The share of the others that agree with the human less the share that agree with the machine, where
        each class that another annotator used weighs the same.
    """

    plain: Floats
    balanced: Floats


def _shortfall(human: Codes, machine: Codes, others: Codes) -> _Shortfall:
    """Compare the agreement of a human and of a machine with the other annotators, in each clip.

    Parameters
    ----------
    human, machine : ndarray of int, shape [N]
        Labels of the annotator who is left out, and of the machine.
    others : ndarray of int, shape [K, N]
        Labels of the other annotators; `UNKNOWN` where one did not judge a clip.
    """
    is_known = others != UNKNOWN
    difference = (others == human).astype(np.int64) - (others == machine)
    difference[~is_known] = 0
    plain = np.sign(difference.sum(axis=0)).astype(np.float64)
    # A clip weighs the less, the more clips of its class the other annotator has; the mean weight is 1.
    weights = np.zeros(others.shape)
    for row, codes in enumerate(others):
        judged = codes[is_known[row]]
        counts = np.bincount(judged)
        n_classes = max((counts > 0).sum(), 1)
        weights[row, is_known[row]] = len(judged) / n_classes / counts[judged]
    balanced = (weights * difference).sum(axis=0) / is_known.sum(axis=0)
    return _Shortfall(plain, balanced)


class _ClusteredMean(NamedTuple):
    """A mean of clustered values with its standard error and degrees of freedom."""

    mean: float
    error: float
    degrees_of_freedom: int


def _clustered_mean(values: Floats, clusters: Codes) -> _ClusteredMean:
    """Compute the mean of values [N] and its standard error, where values of one cluster may be correlated.

    `clusters` [N] is the cluster of each value. The residuals of a cluster are summed, and divided by 1 less
    the cluster's leverage, which is its share of the values.
    """
    mean = float(values.mean())
    sizes = np.bincount(clusters)
    residuals = np.bincount(clusters, values - mean)
    has_values = sizes > 0
    sizes = sizes[has_values]
    residuals = residuals[has_values]
    n_values = len(values)
    n_clusters = len(sizes)
    if n_clusters < 2:
        return _ClusteredMean(mean, error=np.inf, degrees_of_freedom=1)
    squares = np.sum((residuals / (1 - sizes / n_values)) ** 2)
    error = float(np.sqrt(squares * (n_clusters - 1) / n_clusters)) / n_values
    return _ClusteredMean(mean, error, n_clusters - 1)
