"""Convert a scored film to the content of its page: texts, paths, and the numbers of the script."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from obygaze_features.manifest import BUILTIN, Codebook, builtin_codebook
from obygaze_film.page import charts
from obygaze_film.page.cards import cards, figures, timeline_position
from obygaze_film.page.phrases import Words, clock, first_sentence, heading, how_sure
from obygaze_film.schema import (
    FLAGS,
    FORMER,
    NO_CONTENT,
    UNRELIABLE,
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
        self.codebook = builtin_codebook(self.model.codebook) if self.model.codebook in BUILTIN else None
        self.concepts = self._concepts()

    # --- texts
    # -----------------------------------------------------------------------
    @property
    def heading(self) -> str:
        """The film's title with its most important warning, as `Timeline.heading`, in the page's language."""
        return heading(self.film.record, self.words)

    @property
    def positive(self) -> str:
        """Title of what the model finds, from the codebook."""
        names = [_level_text(self.codebook, name) for name in self.model.positive]
        return " / ".join(names) or self.model.task_title

    @property
    def sentence(self) -> str:
        """What the model marks in the film."""
        return first_sentence(self.model, self.segments, self.whole_s, self.words)

    @property
    def sure(self) -> str:
        """How sure that is."""
        return how_sure(self.model, self.film.record, self.words)

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The key figures."""
        return figures(self.model, self.segments, self.positive, self.words, self.corrected)

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """The cards of the segments."""
        frames = self.film.frames[self.film.frames["model"] == self.model.key]
        doubtful = {concept.name for concept, _ in self.concepts if not concept.is_found}
        return cards(self.segments, self.rows, frames, self.whole_s, self.words, unfound=doubtful)

    @property
    def said(self) -> list[dict[str, Any]]:
        """The subtitles, with where they begin."""
        lines = self.film.subtitles[["start_s", "text"]].itertuples(index=False, name=None)
        return [{"start": round(start, 3), "clock": clock(start), "text": text} for start, text in lines]

    @property
    def staging(self) -> list[dict[str, Any]]:
        """Draw how the film is staged, each variable between the values of `SCALES`, with its mean."""
        table, strips = self.film.variables, []
        starts = table["start_s"].to_numpy(dtype=np.float64)
        # Of windows that overlap each is drawn up to the next.
        ends = np.minimum(table["end_s"], np.append(starts[1:], np.inf)).to_numpy(dtype=np.float64)
        for name, (low, high, digits) in SCALES.items():
            if name in table and table[name].notna().any():
                values = table[name].to_numpy(dtype=np.float64)
                note = self.words.say(
                    f"{name}_mean", value=self.words.number(float(np.nanmean(values)), digits)
                )
                p = np.clip((values - low) / (high - low), 0, 1)
                strips.append(
                    {"name": self.words[name], "note": note, "paths": charts.strip(starts, ends, p)}
                )
        return strips

    @property
    def facts(self) -> list[str]:
        """What was scored, how and by which model."""
        words, record, model = self.words, self.film.record, self.model
        facts = [str(record.year)] if record.year else []
        facts.append(clock(self.whole_s))
        if model.construct:
            facts.append(words.say("construct", construct=model.construct, codebook=model.codebook))
        kind = record.rows.kind
        if kind != "windows":
            # Long shots are several rows.
            n_rows = record.shots.n if kind == "shots" and record.shots is not None else len(self.rows)
            facts.append(words.say("facts_rows", n=n_rows, kind=words[kind]))
        hop = {} if record.windows.hop_s is None else {"hop": words.seconds(record.windows.hop_s)}
        window = words.seconds(record.windows.window_s)
        facts.append(words.say("windows_hop" if hop else "windows", window=window, **hop))
        trained = "model_trained" if model.is_trained_on else "model"
        facts.append(words.say(trained, title=model.title, films=model.n_movies, clips=model.n_clips))
        return [*facts, f"{words['store']} {record.store.name} {record.store.fingerprint[:12]}"]

    @property
    def warnings(self) -> list[str]:
        """Warnings above the caveat."""
        words, model, warnings = self.words, self.model, []
        if model.is_trained_on:
            warnings.append(words["trained_on"])
        if model.calibration is None:
            warnings.append(words["uncalibrated"])
        elif model.rate.unreliable >= 1:
            warnings.append(words["none_reliable"])
        window, clip = self.film.record.windows.window_s, model.clip_s
        if clip and abs(window - clip) > 0.1 * clip:
            warnings.append(
                words.say("another_window", window=words.seconds(window), clip=words.seconds(clip))
            )
        return warnings

    @property
    def caveat(self) -> str:
        """How far the scores, and people, can be trusted."""
        words, human = self.words, self.film.record.human
        first = words.say("caveat", positive=self.positive)
        if human is None:
            return f"{first} {words['no_human']}"
        second = words.say(
            "human",
            corpus=human.corpus,
            kappa=words.number(human.kappa),
            rank=words.number(human.rank_correlation),
        )
        return f"{first} {second}"

    # --- the timeline
    # -----------------------------------------------------------------------
    @property
    def threshold(self) -> dict[str, str] | None:
        """Height and text of the threshold's line."""
        p = self.model.threshold_p
        if p is None or not self.rows["p"].notna().any():
            return None
        return {"y": f"{charts.level(p)}%", "text": self.words.say("threshold", value=self.words.number(p))}

    @cached_property
    def hatched(self) -> list[dict[str, Any]]:
        """Find spans without a probability or without content; adjacent spans are joined."""
        unreliable, without = has_flag(self.rows, *UNRELIABLE), has_flag(self.rows, *NO_CONTENT)
        unlike = unreliable | (self.rows["p"].isna().to_numpy() & ~without)
        nothing = without & ~unlike
        spans = []
        for kind, marked in (("unlike", unlike), ("nothing", nothing)):
            for first, after in runs(marked):
                start = float(self.rows["start_s"].iloc[first])
                end = float(self.rows["end_s"].iloc[after - 1])
                spans.append({"kind": kind, **timeline_position(start, end, self.whole_s)})
        return spans

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

    def strips(self, *, found: bool) -> list[dict[str, Any]]:
        """Draw the concepts that are found better than chance, or the others."""
        return [
            {
                "name": concept.name,
                "note": self._ap(concept),
                "paths": self._paths(p),
            }
            for concept, p in self.concepts
            if concept.is_found == found
        ]

    def _ap(self, concept: ConceptRecord) -> str:
        words = self.words
        if concept.ap is None or concept.chance is None:
            return words["unknown_ap"]
        return words.say("ap", ap=words.number(concept.ap), chance=words.number(concept.chance))

    def _paths(self, p: NDArray[np.float64]) -> dict[int, str]:
        return charts.strip(self.rows["start_s"].to_numpy(), self.rows["end_s"].to_numpy(), p)

    @property
    def others(self) -> list[dict[str, Any]]:
        """Draw the other models with logits."""
        strips = []
        for model in self.film.record.models:
            if model.key != self.model.key and model.decides:
                rate = model.rate.value
                note = self.words["withheld"] if rate is None else self.words.share(rate)
                p = self.film.rows(model.key)["p"].to_numpy(dtype=np.float64)
                strips.append(
                    {"name": f"{model.title}, {model.task_title}", "note": note, "paths": self._paths(p)}
                )
        return strips

    @cached_property
    def former(self) -> pd.DataFrame:
        """The rows of the model before it learnt; empty if it did not."""
        key = f"{self.model.key}{FORMER}"
        return self.film.rows(key) if key in self.film.keys else self.rows.iloc[:0]

    @property
    def moved(self) -> list[dict[str, Any]]:
        """Passages of either model whose probability learning changed by a tenth or more, the most first."""
        if self.former.empty:
            return []
        either = pd.concat([self.segments, self.film.segments(f"{self.model.key}{FORMER}")])
        spans = either.loc[either["reaches"] == 1, ["start_s", "end_s"]].drop_duplicates()
        found = []
        for start, end in spans.to_numpy(dtype=np.float64).tolist():
            inside = (self.rows["start_s"] < end) & (self.rows["end_s"] > start)
            before, after = (float(rows.loc[inside, "p"].mean()) for rows in (self.former, self.rows))
            if abs(after - before) >= LEAST_MOVED:
                said = f"{self.words.probability(before)} → {self.words.probability(after)}"
                text = f"{clock(start)}–{clock(end)}: {said}"
                found.append({"by": abs(after - before), "start": start, "end": end, "text": text})
        return sorted(found, key=lambda one: -one["by"])

    # --- minutes, and the numbers of the script
    # -----------------------------------------------------------------------
    @property
    def minutes(self) -> list[dict[str, Any]]:
        """Average by minute, weighted by duration; rows without a probability are left out."""
        starts, ends = self.rows["start_s"].to_numpy(), self.rows["end_s"].to_numpy()
        begins = np.arange(0.0, self.whole_s, MINUTE)
        overlap = np.minimum(ends, begins[:, None] + MINUTE) - np.maximum(starts, begins[:, None])
        overlap = np.maximum(overlap, 0.0)
        shown = [self.rows[name].to_numpy(dtype=np.float64) for name in ("p", "p_low", "p_high")]
        columns = np.column_stack([*shown, *(p for _, p in self.concepts)])
        with np.errstate(invalid="ignore"):
            means = (overlap @ np.nan_to_num(columns)) / (overlap @ ~np.isnan(columns))
        flags = [{flag for flag in cell.split(";") if flag} for cell in self.rows["flags"]]
        rows = []
        for minute, begin in enumerate(begins):
            p, low, high, *concepts = means[minute]
            cells = [self._cell(p), "" if np.isnan(p) else self.words.interval(low, high, "–")]
            cells += [self._cell(value) for value in concepts]
            present = set().union(*(flags[row] for row in np.flatnonzero(overlap[minute] > 0)))
            noted = self.words.flags(";".join(flag for flag in FLAGS if flag in present))
            rows.append({"time": clock(begin), "cells": cells, "flags": noted})
        return rows

    def _cell(self, value: float) -> str:
        return "" if np.isnan(value) else self.words.probability(value)

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


def _level_text(codebook: Codebook | None, name: str) -> str:
    """Write a level with its title, if they differ."""
    title = next((level.title for level in codebook.levels if level.name == name), "") if codebook else ""
    return f"{name} ({title})" if title and title != name else name


def _order(concept: ConceptRecord) -> tuple[bool, float]:
    """Order concepts by how much better than chance they are found; those not found come last."""
    known = concept.ap is not None and concept.chance is not None
    return not concept.is_found, (concept.chance or 0.0) - (concept.ap or 0.0) if known else 1.0


def _whole(values: NDArray[np.float64]) -> list[int]:
    """Write probabilities as integer percentages; -1 if missing."""
    return [
        int(percentage) for percentage in np.where(np.isnan(values), -1, np.rint(100 * np.nan_to_num(values)))
    ]
