"""Read the papers' printed numbers from published.toml; they are shown, never computed with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from obygaze_features.templates import packaged

Average = Literal["f1_pos", "f1_weighted"]

PUBLISHED: Mapping[str, Any] = packaged(__package__, "published.toml")

Row = dict[str, Any]

Cell = tuple[str, str]
"""Task trained on and task tested on."""

CELLS: tuple[Cell, ...] = tuple(map(tuple, PUBLISHED["table2"]["cells"]))
"""The cells of Tables 2 and 5, in the order of print."""

MOVIE_PAIRS: Cell = ("hn_s", "enhn_s")
"""The cell of Table 4 and Figure 6."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number in a paper: mean and, where there is one, standard deviation."""

    source: str
    mean: float
    sd: float | None = None

    def __str__(self) -> str:
        """Format the number as printed."""
        return f"{self.mean:.2f}" if self.sd is None else f"{self.mean:.2f} ({self.sd:.2f})"


def _printed(row: Mapping[str, Any]) -> Mapping[Cell, Printed]:
    """Read a printed row of the table by its cells."""
    values = [Printed(row["source"], *value) for value in row["values"]]
    return dict(zip(CELLS, values, strict=True))


TABLE2: Mapping[tuple[str, str | None], Mapping[Cell, Printed]] = {
    (row["model"], row["features"]): _printed(row) for row in PUBLISHED["table2"]["printed"]
}
"""Our name of a model, and the papers' of its features -> F1: of the perceptron weighted, else of S."""

PROBE_OF: Mapping[str, str] = PUBLISHED["table2"]["backbones"]
"""Our name of a backbone -> the papers'."""

PREVALENCE: Mapping[str, float] = PUBLISHED["trivial"]["prevalence"]
"""Share of positive clips in the test task, as Appendix 8.2 of 000 prints it."""


def _trivial(published: Sequence[Any]) -> Row:
    """Compute a trivial figure of Table 2 at the printed prevalence: a share of the clips called positive.

    Its verdict says whether the printed digits are the computed ones: rounded, cut off, or neither.
    """
    row, called, test, average, printed, source = published
    computed = trivial_f1(PREVALENCE[test], called, average)
    if f"{computed:.2f}" == f"{printed:.2f}":
        verdict = "agrees"
    elif int(computed * 100) == round(printed * 100):
        verdict = "agrees, cut off"
    else:
        verdict = "DIFFERS"
    return {
        "row": row,
        "called": called,
        "test": test,
        "average": average,
        "computed": computed,
        "printed": printed,
        "source": source,
        "verdict": verdict,
    }


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


TRIVIAL = tuple(map(_trivial, PUBLISHED["trivial"]["rows"]))
"""All eight trivial figures of both papers."""

MOVIES: Mapping[str, str] = {movie: film["title"] for movie, film in PUBLISHED["films"].items()}
"""Titles of ObyGaze12's films."""

TABLE4: Mapping[str, Printed] = {
    movie: Printed("arXiv, Table 4", *film["table4"])
    for movie, film in PUBLISHED["films"].items()
    if "table4" in film
}
TABLE4_MEAN = Printed("arXiv, Table 4", 0.53)


def title_of(movie: str) -> str:
    """Return a film's title, or its id where we don't know it."""
    return MOVIES.get(movie, movie)
