"""List the papers' printed numbers and their places; they are shown, never computed with.

000 is the preprint of Tores et al. (arXiv 2401.13296, version 1), 001 the same paper at CVPR 2024. Their
Table 2 differs in the two trivial rows alone: 000 prints positive-class F1, 001 support-weighted F1. Figure 3
is bars without numbers: nothing of it can be shown as a figure here.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

Average = Literal["f1_pos", "f1_weighted"]

BOTH, PREPRINT, CVPR = "arXiv and CVPR, Table 2", "arXiv, Table 2", "CVPR, Table 2"

Cell = tuple[str, str]
"""Task trained on and task tested on."""

CELLS: tuple[Cell, ...] = (
    ("en_s", "en_s"),
    ("hn_s", "en_s"),
    ("en_s", "enhn_s"),
    ("hn_s", "enhn_s"),
)
"""The cells of Tables 2 and 5, in the order of print."""

MOVIE_PAIRS: Cell = ("hn_s", "enhn_s")
"""The cell of Table 4 and Figure 6."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number in a paper: mean and, where there is one, standard deviation."""

    mean: float
    sd: float | None
    source: str

    def __str__(self) -> str:
        """Format the number as printed."""
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ({self.sd:.2f})"


def _row(source: str, *numbers: tuple[float, float] | float) -> dict[Cell, Printed]:
    pairs = [number if isinstance(number, tuple) else (number, None) for number in numbers]
    return {cell: Printed(mean, sd, source) for cell, (mean, sd) in zip(CELLS, pairs, strict=True)}


PROBES: Mapping[str, Mapping[Cell, Printed]] = {
    "ViViT-B/16": _row(BOTH, (0.53, 0.18), (0.62, 0.13), (0.54, 0.24), (0.73, 0.1)),
    "X-CLIP": _row(BOTH, (0.79, 0.05), (0.71, 0.05), (0.66, 0.05), (0.82, 0.03)),
    "X-CLIP, LSMDC": _row("arXiv, Table 5", (0.70, 0.08), (0.70, 0.10), (0.66, 0.06), (0.78, 0.11)),
}
"""The perceptron on each backbone, support-weighted F1 (the papers say F1; their code says which)."""

PROBE_OF: Mapping[str, str] = {"vivit": "ViViT-B/16", "xclip": "X-CLIP", "xclip-lsmdc": "X-CLIP, LSMDC"}
"""Our name of a backbone -> its printed row."""

BOTTLENECKS: Mapping[str, Mapping[Cell, Printed]] = {
    "PCBM-DT": _row(BOTH, 0.68, 0.44, 0.58, 0.38),
    "PCBM-LR": _row(BOTH, 0.64, 0.43, 0.50, 0.37),
}
"""On X-CLIP's features, positive-class F1."""


def printed_name(model: str) -> str:
    """Name the printed row of one of our bottlenecks."""
    return "PCBM-DT" if model.startswith("pcbm_dt") else "PCBM-LR"


PREVALENCE: Mapping[str, float] = {"en_s": 0.23, "enhn_s": 0.19}
"""Share of positive clips in the test task, as Appendix 8.2 of 000 prints it."""


@dataclass(frozen=True, slots=True)
class Trivial:
    """A trivial figure of Table 2: a classifier that calls a share of the clips positive, looking at none."""

    row: str
    called: float
    test: str
    average: Average
    printed: Printed

    @property
    def computed(self) -> float:
        """The figure at the printed prevalence."""
        return trivial_f1(PREVALENCE[self.test], self.called, self.average)

    @property
    def verdict(self) -> str:
        """Whether the printed digits are the computed ones: rounded, cut off, or neither."""
        if f"{self.computed:.2f}" == f"{self.printed.mean:.2f}":
            return "agrees"
        return "agrees, cut off" if int(self.computed * 100) == round(self.printed.mean * 100) else "DIFFERS"


_READINGS: tuple[tuple[Average, str, tuple[tuple[str, float, float, float], ...]], ...] = (
    ("f1_pos", PREPRINT, (("Random", 0.5, 0.32, 0.28), ("All positive", 1.0, 0.37, 0.33))),
    ("f1_weighted", CVPR, (("Random", 0.5, 0.54, 0.55), ("All positive", 1.0, 0.08, 0.06))),
)

TRIVIAL: tuple[Trivial, ...] = tuple(
    Trivial(row, called, test, average, Printed(number, None, source))
    for average, source, rows in _READINGS
    for row, called, *numbers in rows
    for test, number in zip(PREVALENCE, numbers, strict=True)
)
"""All eight trivial figures of both papers."""


def trivial_f1(prevalence: float, called: float, average: Average) -> float:
    """Compute the F1 of calling clips positive at random with probability `called`.

    Precision is the prevalence and recall is `called` (000, Appendix 8.2), and the same of the other class;
    the weighted average is over both classes by their clips.
    """
    positive = _harmonic(prevalence, called)
    if average == "f1_pos":
        return positive
    return prevalence * positive + (1 - prevalence) * _harmonic(1 - prevalence, 1 - called)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


_FILMS = tomllib.loads(files(__package__).joinpath("films.toml").read_text(encoding="utf-8"))

MOVIES: Mapping[str, str] = _FILMS["movies"]
"""Titles of ObyGaze12's films; the last two are never tested by the paper's movie set."""

TABLE4: Mapping[str, Printed] = {
    movie: Printed(mean, sd, "arXiv, Table 4") for movie, (mean, sd) in _FILMS["table4"].items()
}
TABLE4_MEAN = Printed(0.53, None, "arXiv, Table 4")

FIGURE6_MOVIES = ("tt0119822", "tt0822832", "tt1193138")
"""The films of Figure 6 of 000; Figure 4 of 001 shows the first and the last."""

FIGURE3_HARD = ("Type of shot", "Posture", "Look", "Appearance")
"""Concepts whose hatched bars in Figure 3 the papers call harder to separate; the bars have no numbers."""


def title_of(movie: str) -> str:
    """Return a film's title, or its id where we don't know it."""
    return MOVIES.get(movie, movie)
