"""Convert a scored film to the content of its page: texts, paths, and the numbers of the script."""

from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from obygaze_features.manifest import BUILTIN, builtin_codebook
from obygaze_film.film_time import NOTHING, UNLIKE, film_time, parts_of
from obygaze_film.page import charts
from obygaze_film.page.cards import cards
from obygaze_film.page.phrases import Words, evidence, first_sentence, heading
from obygaze_film.schema import (
    FLAGS,
    FORMER,
    ConceptRecord,
    CorrectedRate,
    has_flag,
    runs,
)
from obygaze_models.report import json_data

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

MINUTE = 60.0

LEAST_MOVED = 0.1
"""Change of a passage's probability that is told."""

SCALES = {
    "loudness": (-50.0, -10.0, 0),
    "speech": (0.0, 1.0, 2),
    "cuts": (0.0, 60.0, 1),
    "black": (0.0, 1.0, 2),
    "camera": (0.0, 0.3, 2),
}
"""Variable -> from and to where it is drawn, and decimals of its mean."""


class FilmView:
    """One film of a page.

    Parameters
    ----------
    film : Timeline
    anchor : str
        Prefix of the film's ids on the page.
    words : Words
    top : int
        Minimum number of segments to list.
    corrected : CorrectedRate or None
        The rate of the model shown, corrected by blind judgements.
    """

    def __init__(
        self,
        film: "Timeline",
        anchor: str,
        words: Words,
        *,
        top: int,
        corrected: CorrectedRate | None = None,
    ) -> None:
        self.film, self.words, self.anchor, self.corrected = film, words, anchor, corrected
        self.model = film.model()
        self.whole_s = film.record.duration_s
        self.rows = film.rows(self.model.key)
        best_first = film.segments(self.model.key, top=top)
        self.segments = best_first.sort_values(["reaches", "start_s"], ascending=[False, True])
        self.positive = " / ".join(map(self._level_text, self.model.positive)) or self.model.task_title
        self.heading = heading(film.record, words)
        self.evidence = evidence(self.model, words)
        self.time = film_time(self.rows)
        self.sentence = first_sentence(self.model, self.segments, self.time, words)
        self.concepts = self._concepts()
        self.near_chance = {concept.name for concept in self.model.concepts if concept.is_near_chance}
        self.doubtful = {concept.name for concept, _ in self.concepts if not concept.is_found}
        self.frames = film.frames[film.frames["model"] == self.model.key]

    # --- texts
    # -----------------------------------------------------------------------
    def _level_text(self, name: str) -> str:
        """Write a level with its title, if they differ."""
        book = self.model.codebook
        levels = builtin_codebook(book).levels if book in BUILTIN else ()
        title = next((level.title for level in levels if level.name == name), "")
        return f"{name} ({title})" if title and title != name else name

    def unlike_share(self, key: str | None = None) -> float:
        """Return the share of the film that a model, by default the one shown, cannot judge."""
        time = self.time if key is None else self.film.time(key)
        return time.share(time.unlike_s)

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """The cards of the segments."""
        return cards(self)

    def between(self, start_s: float, end_s: float) -> pd.DataFrame:
        """Return the rows shown that lie in a span, or in part."""
        return self.rows[(self.rows["end_s"] > start_s) & (self.rows["start_s"] < end_s)]

    @property
    def staging(self) -> list[tuple[str, str, tuple[ArrayLike, ...]]]:
        """How the film is staged: name and mean of each variable, and what `charts.strip` draws of it."""
        table = self.film.variables
        starts = table["start_s"].to_numpy(dtype=np.float64)
        # Of windows that overlap each is drawn up to the next.
        ends = np.minimum(table["end_s"], np.append(starts[1:], np.inf)).to_numpy(dtype=np.float64)
        return [
            (name, self.words.number(table[name].mean(), digits),
             (starts, ends, ((table[name] - low) / (high - low)).clip(0, 1)))
            for name, (low, high, digits) in SCALES.items()
            if name in table and table[name].notna().any()
        ]  # fmt: skip

    # --- the timeline
    # -----------------------------------------------------------------------
    @cached_property
    def hatched(self) -> list[dict[str, Any]]:
        """Find spans without a probability or without content; adjacent spans are joined."""
        parts = parts_of(self.rows)
        spans = self.rows[["start_s", "end_s"]].to_numpy(dtype=np.float64).tolist()
        return [
            {"kind": kind, "start": spans[first][0], "end": spans[after - 1][1]}
            for kind in (UNLIKE, NOTHING)
            for first, after in runs(parts == kind)
        ]

    def _concepts(self) -> list[tuple[ConceptRecord, NDArray[np.float64]]]:
        """Return the concepts of the first model that has probabilities for them, best found first.

        Each has its probabilities on the rows shown: models of one film share them.
        """
        for model in (self.model, *self.film.record.models):
            rows = self.film.rows(model.key)
            concepts = [concept for concept in model.concepts if f"{concept.name}_p" in rows]
            if concepts:
                return [
                    (concept, rows[f"{concept.name}_p"].to_numpy(dtype=np.float64))
                    for concept in sorted(concepts, key=_order)
                ]
        return []

    @cached_property
    def former(self) -> pd.DataFrame:
        """The rows of the model before it learnt; empty if it did not."""
        key = f"{self.model.key}{FORMER}"
        return self.film.rows(key) if key in self.film.keys else self.rows.iloc[:0]

    @property
    def moved(self) -> list[tuple[float, float, float, float]]:
        """Passages of either model whose probability learning changed by a tenth or more, the most first.

        Start, end, and the probability before and after.
        """
        if self.former.empty:
            return []
        either = pd.concat([self.segments, self.film.segments(f"{self.model.key}{FORMER}")])
        spans = either.loc[either["reaches"] == 1, ["start_s", "end_s"]].drop_duplicates()
        found = []
        for start, end in spans.to_numpy(dtype=np.float64).tolist():
            inside = self.between(start, end)
            # Averaged over time, as every passage is: the desk says the same of it where it is chosen.
            weights = inside["end_s"].clip(upper=end) - inside["start_s"].clip(lower=start)
            before, after = (
                _average(rows.loc[inside.index, "p"], weights) for rows in (self.former, self.rows)
            )
            if abs(after - before) >= LEAST_MOVED:
                found.append((start, end, before, after))
        return sorted(found, key=lambda one: -abs(one[3] - one[2]))

    # --- minutes, and the numbers of the script
    # -----------------------------------------------------------------------
    @property
    def minutes(self) -> list[tuple[float, list[float], str]]:
        """Average by minute, weighted by duration: p, band, concepts; of rows that have them. And flags."""
        starts, ends = self.rows["start_s"].to_numpy(), self.rows["end_s"].to_numpy()
        begins = np.arange(0.0, self.whole_s, MINUTE)
        overlap = np.minimum(ends, begins[:, None] + MINUTE) - np.maximum(starts, begins[:, None])
        overlap = np.maximum(overlap, 0.0)
        shown = [self.rows[name].to_numpy(dtype=np.float64) for name in ("p", "p_low", "p_high")]
        columns = np.column_stack([*shown, *(p for _, p in self.concepts)])
        with np.errstate(invalid="ignore"):
            means = (overlap @ np.nan_to_num(columns)) / (overlap @ ~np.isnan(columns))
        there = [(overlap[:, has_flag(self.rows, flag)] > 0).any(axis=1).tolist() for flag in FLAGS]
        flags = [";".join(compress(FLAGS, minute)) for minute in zip(*there, strict=True)]
        return [*zip(begins.tolist(), means.tolist(), flags, strict=True)]

    @property
    def data(self) -> Markup:
        """The numbers of the page's script."""
        kinds = list(dict.fromkeys(self.rows["flags"]))
        number_of = {flags: number for number, flags in enumerate(kinds)}
        numbers = {
            "d": round(self.whole_s, 3),
            "t": [round(start, 3) for start in self.rows["start_s"].tolist()],
            "p": _whole(self.rows["p"].to_numpy(dtype=np.float64)),
            "l": _whole(self.rows["p_low"].to_numpy(dtype=np.float64)),
            "h": _whole(self.rows["p_high"].to_numpy(dtype=np.float64)),
            "c": [_whole(p) for _, p in self.concepts],
            "n": [concept.name for concept, _ in self.concepts],
            # Rounded up: no rounded probability of a concept that is not seen reaches it.
            "m": [int(np.ceil(100 * concept.threshold_p + 0.5)) for concept, _ in self.concepts],
            "g": sum(concept.is_found for concept, _ in self.concepts),
            "f": [number_of[flags] for flags in self.rows["flags"]],
            "fl": [self.words.flags(flags) for flags in kinds],
            "s": self.segments[["start_s", "end_s"]].to_numpy(dtype=np.float64).tolist(),
            "k": charts.TICKS_S,
        }
        return json_data(numbers)


def _average(values: pd.Series, weights: pd.Series) -> float:
    """Average the values that are known; NaN if none is."""
    return float((values * weights).sum() / weights[values.notna()].sum(min_count=1))


def _order(concept: ConceptRecord) -> tuple[bool, float]:
    """Order concepts by how much better than chance they are found; those not found come last."""
    known = concept.ap is not None and concept.chance is not None
    return not concept.is_found, (concept.chance or 0.0) - (concept.ap or 0.0) if known else 1.0


def _whole(values: NDArray[np.float64]) -> list[int]:
    """Write probabilities as integer percentages; -1 if missing."""
    whole: list[int] = np.rint(np.nan_to_num(100 * values, nan=-1)).astype(int).tolist()
    return whole
