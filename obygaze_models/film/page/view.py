"""Turn a scored film into what its page shows: every text, every path, and the numbers of the script."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_models.film.page import charts
from obygaze_models.film.page.words import Words, clock
from obygaze_models.film.record import (
    BARS,
    BLACK,
    CREDITS,
    MISSING,
    MOST_UNRELIABLE,
    NO_CONTENT,
    PARTIAL,
    SHORT,
    TRAINED_ON,
    UNLIKE,
    UNRELIABLE,
    ConceptRecord,
    ModelRecord,
)
from obygaze_models.film.rows import has_flag
from obygaze_models.film.timeline import Timeline
from obygaze_models.report.pages import json_data

NUMBERED = 12
"""Segments whose number stands above the timeline; more would overlap."""

MINUTE = 60.0

FLAGS = (UNLIKE, MISSING, BLACK, CREDITS, BARS, PARTIAL, SHORT, TRAINED_ON)
"""In the order in which the page names them."""


class FilmView:
    """One film of a page.

    Parameters
    ----------
    film : Timeline
    anchor : str
        Prefix of the film's ids on the page.
    words : Words
    top : int
        Segments to list at least.
    corrected : mapping or None
        The rate from blind judgements (an entry of `rate.json`) of the model shown.
    stills : mapping of int to str
        Data URLs of pictures, by rank of segment; empty for a page without frames.
    """

    def __init__(
        self,
        film: Timeline,
        anchor: str,
        words: Words,
        top: int,
        corrected: Mapping[str, Any] | None = None,
        stills: Mapping[int, str] | None = None,
    ) -> None:
        self.film, self.words, self.anchor, self.corrected = film, words, anchor, corrected
        self.stills = stills or {}
        self.model = film.model()
        self.whole_s = film.record.duration_s
        self.rows = film.rows(self.model.key)
        self.segments = film.segments(self.model.key, top=top)
        self.codebook = builtin_codebook(self.model.codebook) if self.model.codebook in BUILTIN else None
        self.concepts = self._concepts()

    # --- what is said
    # -----------------------------------------------------------------------
    @property
    def positive(self) -> str:
        """What the model finds, by the codebook's titles."""
        names = [_level_text(self.codebook, name) for name in self.model.positive]
        return " / ".join(names) or self.model.task_title

    def values(self) -> dict[str, Any]:
        """Give what the template shows of the film."""
        words, record = self.words, self.film.record
        strips, unfound = self._strips()
        hatched = self._hatched()
        kinds = {one["kind"] for one in hatched}
        listed = self._segments()
        return {
            "id": self.anchor,
            "heading": self.film.heading,
            "year": record.year,
            "facts": self._facts(),
            "frames": bool(self.stills),
            "warnings": self._warnings(),
            "caveat": self._caveat(),
            "figures": self._figures(),
            "of_level": words.say("of_level", positive=self.positive),
            "seconds": round(self.whole_s),
            "width": charts.tenths(self.whole_s),
            "band": charts.band(self.rows),
            "line": charts.line(self.rows),
            "cuts": charts.cuts(self.film.shots["start_s"].tolist()),
            "half": words.number(0.5, 1),
            "threshold": self._threshold(),
            "ticks": [
                {"x": charts.percent(time, self.whole_s), "text": clock(time)} for time in charts.ticks(self.whole_s)
            ],
            "hatched": hatched,
            "has_unlike": "unlike" in kinds,
            "has_nothing": "nothing" in kinds,
            "segments": listed,
            "numbered": NUMBERED,
            "no_segments": words.say("segments_none", reason=words["no_probability"]),
            "strips": strips,
            "unfound": unfound,
            "unfound_title": words.say("unfound", n=len(unfound)),
            "others": self._others(),
            "levels": self._levels(),
            "codebook_concepts": self._codebook_concepts(),
            "own_codebook": self._own_codebook(),
            "concepts": [one.name for one, _ in self.concepts],
            "minutes": self._minutes(),
            "data": json_data(self._data()),
        }

    def _facts(self) -> list[str]:
        words, record = self.words, self.film.record
        window, hop = record.windows.window_s, record.windows.hop_s
        windows = (
            words.say("windows", window=words.seconds(window))
            if hop is None
            else words.say("windows_hop", window=words.seconds(window), hop=words.seconds(hop))
        )
        model = self.model
        return [
            *([str(record.year)] if record.year else []),
            clock(self.whole_s),
            words.say("facts_rows", n=len(self.rows), kind=words[record.rows.kind]),
            windows,
            words.say(
                "model_trained" if model.is_trained_on else "model",
                title=model.title,
                films=model.n_movies,
                clips=model.n_clips,
            ),
            f"{words['store']} {record.store.name} {record.store.fingerprint[:12]}",
        ]

    def _warnings(self) -> list[str]:
        words, model, found = self.words, self.model, []
        if model.is_trained_on:
            found.append(words["trained_on"])
        if model.calibration is None:
            found.append(words["uncalibrated"])
        elif model.rate.unreliable >= 1:
            found.append(words["none_reliable"])
        elif model.rate.unreliable > 0:
            found.append(words.say("flagged", share=words.share(model.rate.unreliable)))
        window, clip = self.film.record.windows.window_s, model.clip_s
        if clip and abs(window - clip) > 0.1 * clip:
            found.append(words.say("another_window", window=words.seconds(window), clip=words.seconds(clip)))
        return found

    def _caveat(self) -> str:
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

    # --- the three figures
    # -----------------------------------------------------------------------
    def _figures(self) -> list[dict[str, Any]]:
        return [self._share_figure(), self._segments_figure(), self._auc_figure()]

    def _share_figure(self) -> dict[str, Any]:
        words, rate, calibration = self.words, self.model.rate, self.model.calibration
        if self.corrected is not None:
            found = self.corrected
            note = words.say(
                "corrected_note",
                annotators=", ".join(found["annotators"]),
                expected="–" if found["expected"] is None else words.share(found["expected"]),
            )
            if found["worth"] is not None and found["worth"] > found["n"]:
                note += " " + words.say("worth", worth=round(found["worth"]))
            what = words.say("corrected", positive=self.positive, n=found["n"])
            return self._figure(found["value"], found["low"], found["high"], what, note, share=True)
        what = words.say("expected", positive=self.positive)
        if rate.value is None or rate.low is None or rate.high is None:
            return {"value": "–", "interval": "", "bar": None, "what": what, "note": self.why_no_rate()}
        note = words["expected_plain"]
        if calibration and calibration.film_error is not None and calibration.worst_film_error is not None:
            note = words.say(
                "expected_note",
                error=words.share(calibration.film_error),
                worst=words.share(calibration.worst_film_error),
            )
        return self._figure(rate.value, rate.low, rate.high, what, note, share=True)

    def why_no_rate(self) -> str:
        """Say why there is no rate."""
        words, rate = self.words, self.model.rate
        if self.model.calibration is None:
            return words["uncalibrated"]
        if rate.unreliable > MOST_UNRELIABLE:
            return words.say("flagged", share=words.share(rate.unreliable))
        return words.say("no_rate", reason=rate.reason)

    def _segments_figure(self) -> dict[str, Any]:
        words, threshold, found = self.words, self.model.threshold_p, self.segments
        what = words["segments_number"]
        if threshold is None or self.model.calibration is None:
            return {"value": "–", "interval": "", "bar": None, "what": what, "note": words["uncalibrated"]}
        n, low, high = (
            int((found[name] >= threshold).sum()) if name != "reaches" else int(found[name].sum())
            for name in ("reaches", "p_low", "p_high")
        )
        low, high = min(low, n), max(high, n)
        scale = max(len(found), 1)
        return {
            "value": str(n),
            "interval": f"{low}–{high}",
            "bar": _bar(n / scale, low / scale, high / scale),
            "what": what,
            "note": words.say("segments_note", low=low, high=high, n=len(found)),
        }

    def _auc_figure(self) -> dict[str, Any]:
        words = self.words
        rows = [row for row in self.model.metrics if row.get("metric") == "auc" and row.get("movie_mean") is not None]
        if not rows:
            return {
                "value": "–", "interval": "", "bar": None, "what": words["within_auc"], "note": words["no_figure"],
            }  # fmt: skip
        row = rows[0]
        note = words.say("auc_note", n=int(row["n_movies"]))
        low, high = row.get("movie_low"), row.get("movie_high")
        return self._figure(row["movie_mean"], low, high, words["within_auc"], note, share=False)

    def _figure(
        self, value: float, low: float | None, high: float | None, what: str, note: str, *, share: bool
    ) -> dict[str, Any]:
        write = self.words.share if share else self.words.number
        known = low is not None and high is not None
        return {
            "value": write(value),
            "interval": f"{write(low)}–{write(high)}" if low is not None and high is not None else "",
            "bar": _bar(value, low or 0.0, high or 0.0) if known else None,
            "what": what,
            "note": note,
        }

    # --- the timeline
    # -----------------------------------------------------------------------
    def _threshold(self) -> dict[str, str] | None:
        p = self.model.threshold_p
        if p is None or not self.rows["p"].notna().any():
            return None
        return {"y": f"{charts.level(p)}%", "text": self.words.say("threshold", value=self.words.number(p))}

    def _hatched(self) -> list[dict[str, Any]]:
        """Find the spans without a probability, and those without content; neighbours are one."""
        unlike = has_flag(self.rows, *UNRELIABLE) | self.rows["p"].isna().to_numpy()
        nothing = has_flag(self.rows, *NO_CONTENT) & ~unlike
        found = []
        for kind, marked in (("unlike", unlike), ("nothing", nothing)):
            edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
            for first, after in zip(edges[::2], edges[1::2], strict=True):
                start, end = float(self.rows["start_s"].iloc[first]), float(self.rows["end_s"].iloc[after - 1])
                found.append({"kind": kind, **self._place(start, end)})
        return found

    def _place(self, start: float, end: float) -> dict[str, Any]:
        return {
            "start": round(start, 3),
            "end": round(end, 3),
            "x": charts.percent(start, self.whole_s),
            "w": charts.percent(end - start, self.whole_s),
            "middle": charts.percent((start + end) / 2, self.whole_s),
        }

    def _concepts(self) -> list[tuple[ConceptRecord, ModelRecord]]:
        """Give the concepts of the first model that has any with probabilities, best found first."""
        for model in (self.model, *self.film.record.models):
            rows = self.film.rows(model.key)
            found = [one for one in model.concepts if rows.get(f"{one.name}_p") is not None]
            if found:
                return [(one, model) for one in sorted(found, key=_gain, reverse=True)]
        return []

    def _concept_p(self, concept: ConceptRecord, model: ModelRecord) -> NDArray[np.float64]:
        """Read a concept's probability on the rows shown; models of one film share them."""
        column = self.film.rows(model.key)[f"{concept.name}_p"]
        found: NDArray[np.float64] = column.to_numpy(dtype=np.float64)
        return found

    def _strips(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Draw the concepts: those that the model finds, and those that it does not."""
        found, unfound = [], []
        for concept, model in self.concepts:
            row = {"name": concept.name, "note": self._ap(concept), "paths": self._paths(self._concept_p(concept, model))}
            (found if concept.is_found else unfound).append(row)
        return found, unfound

    def _ap(self, concept: ConceptRecord) -> str:
        words = self.words
        if concept.ap is None or concept.chance is None:
            return words["unknown_ap"]
        return words.say("ap", ap=words.number(concept.ap), chance=words.number(concept.chance))

    def _paths(self, p: NDArray[np.float64]) -> dict[int, str]:
        return charts.strip(self.rows["start_s"].to_numpy(), self.rows["end_s"].to_numpy(), p)

    def _others(self) -> list[dict[str, Any]]:
        """Draw the other models that decide."""
        found = []
        for model in self.film.record.models:
            if model.key != self.model.key and model.decides:
                rate = model.rate.value
                note = self.words["withheld"] if rate is None else self.words.share(rate)
                p = self.film.rows(model.key)["p"].to_numpy(dtype=np.float64)
                found.append({"name": f"{model.title}, {model.task_title}", "note": note, "paths": self._paths(p)})
        return found

    # --- the segments
    # -----------------------------------------------------------------------
    def _segments(self) -> list[dict[str, Any]]:
        parts = [_parts(row) for row in self.segments.to_dict(orient="records")]
        largest = max((abs(value) for found in parts for _, value in found), default=1.0) or 1.0
        return [
            self._segment(row, found, largest)
            for row, found in zip(self.segments.to_dict(orient="records"), parts, strict=True)
        ]

    def _segment(
        self, row: Mapping[Any, Any], parts: Sequence[tuple[str, float]], largest: float
    ) -> dict[str, Any]:
        words = self.words
        start, end, rank = float(row["start_s"]), float(row["end_s"]), int(row["rank"])
        p, low, high = (words.number(row[name]) for name in ("p", "p_low", "p_high"))
        flags = [words[f"flag_{flag}"] for flag in str(row["flags"]).split(";") if flag in FLAGS]
        return {
            "rank": rank,
            **self._place(start, end),
            "from": clock(start),
            "to": clock(end),
            "seconds": words["seconds"].format(words.seconds(round(end - start))),
            "jump": f"{words.say('jump', n=rank, start=clock(start))}; "
            f"{words['probability_band'].replace('{0}', p).replace('{1}', low).replace('{2}', high)}",
            "p": p,
            "p_low": low,
            "p_high": high,
            "reaches": bool(row["reaches"]),
            "spark": self._spark(start, end),
            "sentence": self._sentence(parts),
            "parts": [_side(name, value, largest, words) for name, value in parts],
            "flags": ", ".join(flags),
            "judgement": words.say("judgement", n=rank),
            "picture": self.stills.get(rank, ""),
        }

    def _spark(self, start: float, end: float) -> dict[str, Any]:
        """Draw the curve of a segment with half its length around it."""
        around = max((end - start) / 2, 15.0)
        left, right = max(start - around, 0.0), min(end + around, self.whole_s)
        rows = self.rows[(self.rows["end_s"] > left) & (self.rows["start_s"] < right)]
        return {
            "width": charts.tenths(right - left),
            "x": charts.tenths(start - left),
            "w": charts.tenths(end - start),
            "path": charts.line(rows, left),
        }

    def _sentence(self, parts: Sequence[tuple[str, float]]) -> str:
        """Say which concepts moved the score: "mainly" those that gave at least half as much as the largest."""
        if not parts:
            return ""
        words, most = self.words, max(abs(value) for _, value in parts)
        main = [name for name, value in parts if value >= most / 2]
        rest = [name for name, value in parts if 0 < value < most / 2]
        against = [name for name, value in parts if value < 0]
        said = []
        if main:
            said.append(words.say("mainly", names=words.listed(main)))
        if rest:
            said.append(words.say("helps" if len(rest) == 1 else "help", names=words.listed(rest)))
        if against:
            said.append(words.say("against" if len(against) == 1 else "againsts", names=words.listed(against)))
        if not main:
            said.reverse()
        return "; ".join(said) + "."

    # --- judgements
    # -----------------------------------------------------------------------
    def _levels(self) -> list[tuple[str, str]]:
        if self.codebook is not None:
            return [(level.name, _level_text(self.codebook, level.name)) for level in self.codebook.levels]
        return [(name, name) for name in (*self.model.negative, *self.model.positive)]

    def _codebook_concepts(self) -> tuple[str, ...]:
        if self.codebook is not None:
            return self.codebook.concept_names
        return tuple(sorted({one.name for model in self.film.record.models for one in model.concepts}))

    def _own_codebook(self) -> str:
        """Say which codebook file must lie beside the manifest, if it is none of ours."""
        if self.codebook is not None:
            return ""
        return self.words["codebook_note"].replace("{0}", f"{self.model.codebook}.codebook.toml")

    def _unsure(self) -> str:
        """Name the level that stands for doubt: the only one that is no label."""
        doubts = [] if self.codebook is None else [one.name for one in self.codebook.levels if not one.label]
        return doubts[0] if len(doubts) == 1 else ""

    # --- minutes, and the numbers of the script
    # -----------------------------------------------------------------------
    def _minutes(self) -> list[dict[str, Any]]:
        """Average everything by minute, weighted by duration; rows without a probability count nowhere."""
        starts, ends = self.rows["start_s"].to_numpy(), self.rows["end_s"].to_numpy()
        begins = np.arange(0.0, self.whole_s, MINUTE)
        overlap = np.minimum(ends, begins[:, None] + MINUTE) - np.maximum(starts, begins[:, None])
        overlap = np.maximum(overlap, 0.0)
        columns = [self.rows[name].to_numpy(dtype=np.float64) for name in ("p", "p_low", "p_high")]
        columns += [self._concept_p(*one) for one in self.concepts]
        means = []
        for column in columns:
            weight = overlap * ~np.isnan(column)
            with np.errstate(invalid="ignore"):
                means.append((weight @ np.nan_to_num(column)) / weight.sum(axis=1))
        flags = [{flag for flag in cell.split(";") if flag} for cell in self.rows["flags"]]
        rows = []
        for minute, begin in enumerate(begins):
            p, low, high, *concepts = (column[minute] for column in means)
            cells = [self._cell(p), "" if np.isnan(p) else f"{self._cell(low)}–{self._cell(high)}"]
            cells += [self._cell(value) for value in concepts]
            said = set().union(*(flags[place] for place in np.flatnonzero(overlap[minute] > 0)))
            noted = [self.words[f"flag_{flag}"] for flag in FLAGS if flag in said]
            rows.append({"time": clock(begin), "cells": cells, "flags": ", ".join(noted)})
        return rows

    def _cell(self, value: float) -> str:
        return "" if np.isnan(value) else self.words.number(value)

    def _data(self) -> dict[str, Any]:
        kinds = list(dict.fromkeys(self.rows["flags"]))
        place = {flags: number for number, flags in enumerate(kinds)}
        own = [] if self.codebook is not None and self.model.codebook == BUILTIN[0] else ["codebook"]
        return {
            "d": round(self.whole_s, 3),
            "t": [round(start, 3) for start in self.rows["start_s"].tolist()],
            "p": _whole(self.rows["p"].to_numpy(dtype=np.float64)),
            "l": _whole(self.rows["p_low"].to_numpy(dtype=np.float64)),
            "h": _whole(self.rows["p_high"].to_numpy(dtype=np.float64)),
            "c": [_whole(self._concept_p(*one)) for one in self.concepts],
            "n": [one.name for one, _ in self.concepts],
            "f": [place[flags] for flags in self.rows["flags"]],
            "fl": [
                ", ".join(self.words[f"flag_{flag}"] for flag in flags.split(";") if flag in FLAGS) for flags in kinds
            ],
            "s": self.segments[["start_s", "end_s"]].to_numpy(dtype=np.float64).tolist(),
            "k": charts.TICKS_S,
            "movie": self.film.movie,
            "file": "".join(sign if sign.isalnum() else "-" for sign in self.film.movie).strip("-") or "film",
            "positive": self.model.positive,
            "unsure": self._unsure(),
            "codebook": self.model.codebook if own else "",
            "columns": [
                "clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator", *own, "seen_score",
                "judgement",
            ],
        }  # fmt: skip


def _level_text(codebook: Codebook | None, name: str) -> str:
    """Write a level with its title, where it has another one."""
    title = next((one.title for one in codebook.levels if one.name == name), "") if codebook else ""
    return f"{name} ({title})" if title and title != name else name


def _gain(concept: ConceptRecord) -> float:
    """Order concepts by how much better than chance they are found; those that nobody measured come last."""
    if concept.ap is None or concept.chance is None:
        return -1.0
    return concept.ap - concept.chance


def _bar(value: float, low: float, high: float) -> dict[str, str]:
    return {name: f"{100 * min(max(one, 0.0), 1.0):.1f}%" for name, one in (("value", value), ("low", low), ("high", high))}


def _parts(row: Mapping[Any, Any]) -> list[tuple[str, float]]:
    """Read a segment's concepts and contributions, the largest first."""
    names, values = str(row["concepts"]), str(row["contributions"])
    if not names or not values:
        return []
    return list(zip(names.split(";"), map(float, values.split(";")), strict=True))


def _side(name: str, value: float, largest: float, words: Words) -> dict[str, Any]:
    """Place a contribution to the right of the middle where it helps, to the left where it does not."""
    width = 48 * abs(value) / largest
    x = 50.0 if value >= 0 else 50 - width
    return {
        "name": name,
        "value": words.signed(value),
        "side": "for" if value >= 0 else "against",
        "x": f"{x:.1f}%",
        "w": f"{width:.1f}%",
    }


def _whole(values: NDArray[np.float64]) -> list[int]:
    """Write probabilities as whole hundredths; -1 where there is none."""
    return [int(one) for one in np.where(np.isnan(values), -1, np.rint(100 * np.nan_to_num(values)))]

