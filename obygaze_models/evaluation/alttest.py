"""Test whether a machine may stand in for an annotator (Calderon, Reichart & Dror, ACL 2025: the alt-test).

Each annotator is left out in turn, and the machine is compared with them by agreement with the others.
Clips of a film are alike, so films are the units of our test; the published one, whose units are clips,
stands beside. On two unequal classes plain agreement is lax: whoever always says no agrees with most. In
balanced agreement each class of another annotator's calls weighs the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal

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
"""Of agreement, by clips as published or by films; and of balanced agreement, by films."""
MARGINS: Final = (0.0, 0.05, 0.1, 0.15, 0.2)
"""Epsilon: by how much a machine may be below an annotator; published for experts .2, for crowds .1."""
DECIDES: Final[tuple[Form, float]] = ("balanced", 0.1)
"""What the answer goes by."""
PASSES: Final = 0.5
"""Least share of annotators that a machine is as good as."""
LEVEL: Final = 0.05
FEWEST: Final = 30
"""Clips that an annotator shares with another and with the machine, as published."""
UNKNOWN: Final = NOT_ASKED
KNOW_NOTHING: Final = ("constant", "shuffled")
SHUFFLES: Final = 20
"""Orders of a machine's answers that are tried: one alone passes or not by chance."""


@dataclass(frozen=True)
class Standing:
    """How a machine does against annotators.

    Attributes
    ----------
    name : str
        The machine; ``constant`` always says what annotators say most often, ``shuffled`` has the machine's
        own answers in another order within films.
    advantage : float
        Average advantage probability: of agreeing with the others at least as well as the one left out.
    found : dict
        Form -> how far the machine is below each annotator left out, its standard error and the error's
        degrees of freedom, [3, J].
    """

    name: str
    advantage: float
    found: dict[Form, Floats]

    def below(self, form: Form) -> float:
        """Return how far the machine is below annotators, on average."""
        return float(self.found[form][0].mean())

    def p(self, form: Form, margin: float) -> Floats:
        """Return p of each annotator left out [J], of a machine that is the margin below them or more."""
        below, error, freedom = self.found[form]
        gap = below - margin
        with np.errstate(divide="ignore", invalid="ignore"):
            p: Floats = np.where(error > 0, stdtr(freedom, gap / error), (gap >= 0).astype(np.float64))
        return p

    def winning_rate(self, form: Form, margin: float) -> float:
        """Return the share of annotators that the machine is as good as, false discoveries held at .05.

        By Benjamini and Yekutieli (2001), however the annotators depend.
        """
        return float((false_discovery_control(self.p(form, margin), method="by") <= LEVEL).mean())

    @property
    def passes(self) -> bool:
        """Whether it does by films, balanced, at a margin of .1."""
        return self.winning_rate(*DECIDES) >= PASSES


@dataclass(frozen=True)
class Alternative:
    """What is known of one machine.

    Attributes
    ----------
    standings : tuple of Standing
        The machine's, and those of `KNOW_NOTHING`, whose shuffle is the first one.
    annotators : dict of str to int
        Who was left out in turn -> clips compared.
    films : int
    answer : str
        Whether the machine may stand in.
    """

    standings: tuple[Standing, ...]
    annotators: dict[str, int]
    films: int
    answer: str

    def record(self) -> dict[str, Any]:
        """Return JSON values: a row for each form of the test, also of those that know nothing."""
        rows = [
            {
                "name": each.name,
                "by": form,
                "advantage_probability": each.advantage,
                "below": each.below(form),
                "winning_rate": {f"{e:g}": each.winning_rate(form, e) for e in MARGINS},
            }
            for each in self.standings
            for form in FORMS
        ]
        return {"answer": self.answer, "annotators": self.annotators, "films": self.films, "rows": rows}


def alt_test(
    machine: Codes, annotators: Mapping[str, Codes], films: NDArray[np.str_] | Codes, name: str = ""
) -> Alternative:
    """Compare a machine with annotators.

    Parameters
    ----------
    machine : ndarray of int, shape [N]
        Its label of each clip; `UNKNOWN` where it has none.
    annotators : mapping of str to ndarray of int, shape [N]
        Theirs.
    films : ndarray, shape [N]
        The film of each clip.
    name : str
        The machine's.

    Raises
    ------
    ProtocolError
        Fewer than two annotators share `FEWEST` clips with the machine, or they call all clips alike.
    """
    humans = np.array([*annotators.values()], dtype=np.int64).reshape(-1, len(machine))
    kept = (machine != UNKNOWN) & ((humans != UNKNOWN).sum(axis=0) > 1)
    n = dict(zip(annotators, ((humans != UNKNOWN) & kept).sum(axis=1).tolist(), strict=True))
    compared = [place for place, shared in enumerate(n.values()) if shared >= FEWEST]
    if len(compared) < 2:
        told = ", ".join(f"{who} {count}" for who, count in n.items())
        raise ProtocolError(
            f"{name or 'a machine'} is compared with two annotators or more who each judged {FEWEST} clips "
            f"that it and another one judged too: there are {told or 'none'}"
        )
    humans, machine, film = humans[:, kept], machine[kept], np.unique(films[kept], return_inverse=True)[1]
    order = np.lexsort((*humans, machine, film))  # so that shuffles do not depend on that of the manifest
    humans, machine, film = humans[:, order], machine[order], film[order]
    known = humans[humans != UNKNOWN]
    if np.ptp(known) == 0:
        raise ProtocolError(f"{name or 'a machine'}: annotators call all clips alike, which tells nothing")
    constant = np.full_like(machine, np.bincount(known).argmax())
    rng = np.random.default_rng(0)
    first, *more = (machine[np.lexsort((rng.random(len(film)), film))] for _ in range(SHUFFLES))
    rows = zip((name, *KNOW_NOTHING), (machine, constant, first), strict=True)
    standings = tuple(_standing(who, codes, humans, film, compared) for who, codes in rows)
    answer = "not shown that it may stand in"
    if standings[0].passes:
        others = chain(standings[1:], (_standing("", row, humans, film, compared) for row in more))
        is_lax = any(each.passes for each in others)
        answer = "these annotators agree too little to tell" if is_lax else "may stand in"
    people = {who: n[who] for who in np.array([*n])[compared].tolist()}
    return Alternative(standings, people, int(film.max()) + 1, answer)


def compare_machines(
    labels: Manifest, common: Manifest, machines: Sequence[str] = (), task: str | None = None
) -> dict[str, Alternative]:
    """Compare each machine among a manifest's annotators with the people among them.

    Parameters
    ----------
    common : Manifest
        The same on clips that annotators have in common (`on_common_clips`).
    machines : sequence of str
        Annotators that are machines; by default those that answers were imported of.
    task : str, optional
        Task of levels, or concept:NAME; by default all levels are compared.

    Raises
    ------
    ProtocolError
        A machine is none of the annotators, or cannot perceive the concept, or as `alt_test`.
    """
    machines = list(map(composed, machines))
    names = {clip.annotator for clip in labels if clip.annotator}
    if unknown := [name for name in machines if name not in names]:
        raise ProtocolError(f"no annotator {unknown[0]!r}: there are {', '.join(sorted(names)) or 'none'}")
    known = sorted({clip.annotator for clip in labels if clip.extras.get("model")})
    if not (chosen := machines or known):
        return {}
    clips = labels_of(common)
    target = all_levels(labels.codebook) if task is None else find_target(task, labels.codebook)
    _refuse_unperceived(labels, target, chosen)
    codes = {name: target.of(own) for name, own in clips.experts.items()}
    people = {name: own for name, own in codes.items() if name not in {*chosen, *known}}
    none = np.full(len(clips.movies), UNKNOWN)  # of one who has no clip in common with others
    return {name: alt_test(codes.get(name, none), people, clips.movies, name) for name in chosen}


def _refuse_unperceived(labels: Manifest, target: Target, machines: Sequence[str]) -> None:
    """Refuse to compare a machine on a concept that it cannot perceive, as its rows say what it perceives."""
    if not target.concept:
        return
    concept = labels.codebook.concept(target.concept)
    for clip in labels:
        if clip.annotator not in machines:
            continue
        perceives = [name for name in clip.extras.get("perceives", "").split(";") if name]
        if reason := why_unperceived(concept, perceives):
            raise ProtocolError(f"{clip.annotator}: {reason}: its answers are none")


def _standing(name: str, machine: Codes, humans: Codes, film: Codes, compared: Sequence[int]) -> Standing:
    """Leave annotators out in turn: how far is the machine below them in each clip, by each form's units."""
    found, advantages = [], []
    for place in compared:
        rows = humans[place] != UNKNOWN
        others = np.delete(humans, place, axis=0)[:, rows]
        plain, balanced = _below(humans[place, rows], machine[rows], others)
        advantages.append((plain <= 0).mean())
        forms = (plain, np.arange(len(plain))), (plain, film[rows]), (balanced, film[rows])
        found.append([_mean_and_error(below, units) for below, units in forms])
    by_form = dict(zip(FORMS, np.array(found).transpose(1, 2, 0), strict=True))
    return Standing(name, float(np.mean(advantages)), by_form)


def _below(own: Codes, machine: Codes, others: Codes) -> tuple[Floats, Floats]:
    """Say of each clip [N] how far the machine is below an annotator by agreement with the others [K, N].

    Plain: 1, 0 or -1 as the annotator, both or the machine agree with more of them. Balanced: the difference
    of agreements, each other annotator's classes weighing the same.
    """
    known = others != UNKNOWN
    difference = (others == own).astype(np.int64) - (others == machine)
    difference[~known] = 0
    weights = np.zeros(others.shape)
    for row, calls in zip(weights, others, strict=True):
        there = calls != UNKNOWN
        counts = np.bincount(calls[there])
        row[there] = there.sum() / max((counts > 0).sum(), 1) / counts[calls[there]]
    share = known.sum(axis=0)
    return np.sign(difference.sum(axis=0)).astype(np.float64), (weights * difference).sum(axis=0) / share


def _mean_and_error(below: Floats, units: Codes) -> tuple[float, float, int]:
    """Return a mean, its error and degrees of freedom: units are clusters, residuals go by their leverage."""
    mean = float(below.mean())
    sizes = np.bincount(units)
    sums, sizes = np.bincount(units, below - mean)[sizes > 0], sizes[sizes > 0]
    n, m = len(below), len(sizes)
    if m < 2:
        return mean, np.inf, 1
    return mean, float(np.sqrt(np.sum((sums / (1 - sizes / n)) ** 2) * (m - 1) / m)) / n, m - 1
