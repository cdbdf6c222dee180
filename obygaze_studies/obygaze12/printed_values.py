"""Read the papers' printed numbers from published.toml; they are shown only, and no result uses them."""

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

MOVIE_PAIR_CELL: Cell = ("hn_s", "enhn_s")
"""The cell of Table 4 and Figure 6, whose folds are pairs of movies: training task and test task."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number printed in a paper.

    Attributes
    ----------
    source
        Paper and table.
    mean
        The number, or the mean of several.
    sd
        Their standard deviation, if it is printed.
    """

    source: str
    mean: float
    sd: float | None = None

    def __str__(self) -> str:
        """Format the number as printed: the mean, with the standard deviation in brackets if there is one."""
        if self.sd is None:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ({self.sd:.2f})"


def _printed_cells(row: Mapping[str, Any]) -> Mapping[Cell, Printed]:
    """Read a printed row of Table 2: (task trained on, task tested on) -> number.

    `row` is a record of published.toml, with the values in the order of print.
    """
    # A value is [mean], or [mean, SD].
    numbers = [Printed(row["source"], *value) for value in row["values"]]
    return dict(zip(CELLS, numbers, strict=True))


TABLE2: Mapping[tuple[str, str | None], Mapping[Cell, Printed]] = {
    (row["model"], row["features"]): _printed_cells(row) for row in PUBLISHED["table2"]["printed"]
}
"""Our name of a model and the papers' name of its features -> its F1 in each cell.

Of the perceptron it is the weighted F1, of all other models the F1 of S.
"""

PAPER_NAME_OF_BACKBONE: Mapping[str, str] = PUBLISHED["table2"]["backbones"]
"""Our name of a backbone -> the papers' name; only those whose numbers they print."""

PREVALENCE: Mapping[str, float] = PUBLISHED["trivial"]["prevalence"]
"""Test task -> share of positive clips, as printed in Appendix 8.2 of arXiv 2401.13296."""


def _compare_trivial(published: Sequence[Any]) -> Row:
    """Compare a printed number of a trivial model in Table 2 with its formula at the printed prevalence.

    A trivial model calls a share of the clips positive at random. The verdict says whether the printed digits
    agree with the computed ones when rounded, when cut off, or not at all.

    Parameters
    ----------
    published
        Name of the row, share of clips called positive, test task, kind of F1, printed number, source.
    """
    row, called, test, average, printed, source = published
    computed = trivial_f1(PREVALENCE[test], called, average)

    # Numbers are printed with two digits after the point.
    agrees_rounded = f"{computed:.2f}" == f"{printed:.2f}"
    agrees_cut_off = int(computed * 100) == round(printed * 100)
    if agrees_rounded:
        verdict = "agrees"
    elif agrees_cut_off:
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

    The precision of the positive class is the prevalence, and its recall is `called` (arXiv 2401.13296,
    Appendix 8.2); likewise for the other class. The weighted F1 weights both classes by their clips.

    Parameters
    ----------
    prevalence
        Share of clips that are positive.
    called
        Share of clips that are called positive.
    average
        "f1_pos" for the F1 of the positive class, or "f1_weighted".
    """
    positive = _harmonic_mean(prevalence, called)
    if average == "f1_pos":
        return positive
    negative = _harmonic_mean(1 - prevalence, 1 - called)
    return prevalence * positive + (1 - prevalence) * negative


def _harmonic_mean(precision: float, recall: float) -> float:
    """Compute the harmonic mean of precision and recall; 0 if both are 0."""
    total = precision + recall
    if not total:
        return 0.0
    return 2 * precision * recall / total


TRIVIAL = tuple(map(_compare_trivial, PUBLISHED["trivial"]["rows"]))
"""The eight printed numbers of trivial models in both papers."""

MOVIES: Mapping[str, str] = {movie: film["title"] for movie, film in PUBLISHED["films"].items()}
"""Id of a film of ObyGaze12 -> its title."""

TABLE4: Mapping[str, Printed] = {
    movie: Printed("arXiv, Table 4", *film["table4"])
    for movie, film in PUBLISHED["films"].items()
    if "table4" in film
}
TABLE4_MEAN = Printed("arXiv, Table 4", mean=0.53)


def title_of(movie: str) -> str:
    """Return a film's title, or its id if the film is not in ObyGaze12."""
    return MOVIES.get(movie, movie)
