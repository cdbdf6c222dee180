"""Build the cards of a film's page: three key figures with intervals, and its segments."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from obygaze_film.page import charts
from obygaze_film.page.phrases import Words, clock
from obygaze_film.schema import MOST_UNRELIABLE, CorrectedRate, ModelRecord
from obygaze_film.segments import Reason, reasons

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView

NONE = "–"
"""Shown if there is no figure."""

NEAR, NEAR_NARROW = 0.022, 0.065
"""Shares of the timeline's width below which two numbers overlap, on wide and narrow screens."""

HALF = 48.0
"""Longest bar of a contribution to one side of the middle, in percent of the available width."""


def figures(view: "FilmView") -> list[dict[str, Any]]:
    """Return the share of time, the number of segments, and the AUC within films left out of training."""
    model, words, rate = view.model, view.words, view.corrected
    share = _expected(model, view.positive, words) if rate is None else _corrected(rate, view.positive, words)
    return [share, _segments(model, view.segments, words), _auc(model, words)]


def bar(value: float, low: float, high: float, scale: float = 1.0) -> dict[str, str]:
    """Place a number and its interval on a scale from 0, in percent of its width."""
    ends = {"value": value, "low": low, "high": high}
    return {name: f"{100 * min(max(end / scale, 0.0), 1.0):.1f}%" for name, end in ends.items()}


def why_no_rate(model: ModelRecord, words: Words) -> str:
    """Explain why a model gives no rate."""
    if model.calibration is None:
        return words["uncalibrated"]
    if model.rate.unreliable > MOST_UNRELIABLE:
        return words.say("flagged", share=words.share(model.rate.unreliable))
    left_out = model.calibration.levels_left_out
    if left_out and not model.is_trained_on:
        return words.say("levels_left_out", levels=words.listed(left_out))
    return words.say("no_rate", reason=model.rate.reason)


def _expected(model: ModelRecord, positive: str, words: Words) -> dict[str, Any]:
    what, rate, calibration = words.say("expected", positive=positive), model.rate, model.calibration
    if rate.value is None or calibration is None:
        return _shown(what, why_no_rate(model, words))
    interval, drawn, notes = "", None, [words["no_bracket"]]
    low, high = rate.bracket_low, rate.bracket_high
    if low is not None and high is not None:
        interval = f"{words.share(low)}–{words.share(high)}"
        drawn, notes = bar(rate.value, low, high), [words["bracket"]]
    if calibration.film_error is not None and calibration.worst_film_error is not None:
        error, worst = words.share(calibration.film_error), words.share(calibration.worst_film_error)
        notes.append(words.say("expected_note", error=error, worst=worst))
    if calibration.slope == 0:
        notes.append(words["flat"])
    if calibration.clips:
        clips = words.listed([f"{n} {level}" for level, n in calibration.clips.items()])
        notes.append(words.say("calibrated_on", clips=clips))
    return _shown(what, " ".join(notes), words.share(rate.value), interval, drawn)


def _corrected(corrected: CorrectedRate, positive: str, words: Words) -> dict[str, Any]:
    expected = NONE if corrected.expected is None else words.share(corrected.expected)
    note = words.say("corrected_note", annotators=", ".join(corrected.annotators), expected=expected)
    if corrected.worth is not None and corrected.worth > corrected.n:
        note += " " + words.say("worth", worth=round(corrected.worth))
    what, drawn = words.say("corrected", positive=positive, n=corrected.n), (corrected.low, corrected.high)
    interval = "–".join(map(words.share, drawn))
    return _shown(what, note, words.share(corrected.value), interval, bar(corrected.value, *drawn))


def _segments(model: ModelRecord, segments: pd.DataFrame, words: Words) -> dict[str, Any]:
    """Count segments that reach the threshold; for the interval, with the edges of the band."""
    what, threshold = words["segments_number"], model.threshold_p
    if threshold is None or model.calibration is None:
        return _shown(what, words["uncalibrated"])
    n = int(segments["reaches"].sum())
    low = min(n, int((segments["p_low"] >= threshold).sum()))
    high = max(n, int((segments["p_high"] >= threshold).sum()))
    note = words.say("segments_note", low=low, high=high, n=len(segments))
    return _shown(what, note, str(n), f"{low}–{high}", bar(n, low, high, max(len(segments), 1)))


def _auc(model: ModelRecord, words: Words) -> dict[str, Any]:
    what = words["within_auc"]
    row = next((metric for metric in model.metrics if metric.get("metric") == "auc"), {})
    value, low, high = (row.get(f"movie_{name}") for name in ("mean", "low", "high"))
    if value is None:
        return _shown(what, words["no_figure"])
    interval, drawn, note = "", None, "auc_plain"
    if low is not None and high is not None:
        interval = f"{words.number(low)}–{words.number(high)}"
        drawn, note = bar(value, low, high), "auc_note"
    return _shown(what, words.say(note, n=int(row["n_movies"])), words.number(value), interval, drawn)


def _shown(
    what: str, note: str, value: str = NONE, interval: str = "", drawn: object = None
) -> dict[str, Any]:
    return {"value": value, "interval": interval, "bar": drawn, "what": what, "note": note}


def cards(view: "FilmView") -> list[dict[str, Any]]:
    """Return each segment's row with its sentences, the bars of its concepts, and what frames tell of it."""
    records: Any = view.segments.to_dict(orient="records")
    words = view.words
    parts = [reasons(row) for row in records]
    largest = max((abs(part.contribution) for of_row in parts for part in of_row), default=1.0) or 1.0
    shown = [
        {
            **row,
            "sentence": sentence(of_row, words),
            "absent": absent(of_row, words),
            "parts": [concept_bar(part, largest, view) for part in of_row],
            "traces": _traces(view, [part.concept for part in of_row if part.is_present], row),
        }
        for row, of_row in zip(records, parts, strict=True)
    ]
    _number(shown, view.whole_s)
    return shown


def sentence(parts: Sequence[Reason], words: Words) -> str:
    """Name the concepts that are seen; mainly those that weigh at least half as much as the heaviest."""
    if not parts:
        return ""
    present = [(part.concept, part.contribution) for part in parts if part.is_present]
    if not present:
        return words["none_seen"]
    most = max(abs(part.contribution) for part in parts)
    main = [name for name, value in present if value >= most / 2 > 0]
    rest = [name for name, value in present if 0 < value < most / 2]
    against = [name for name, value in present if value < 0]
    helps, speaks = "helps" if len(rest) == 1 else "help", "against" if len(against) == 1 else "againsts"
    parted = (("mainly", main), (helps, rest), (speaks, against))
    phrases = [words.say(key, names=words.listed(names)) for key, names in parted if names]
    if not main:
        phrases.reverse()
    if not phrases:  # a tree need not ask for what is seen
        phrases = [words.say("seen", names=words.listed([name for name, _ in present]))]
    return "; ".join(phrases) + "."


def absent(parts: Sequence[Reason], words: Words) -> str:
    """Name the concepts that are not seen and weigh, by their sign."""
    missing = [part for part in parts if not part.is_present]
    names = {
        "absent_for": [part.concept for part in missing if part.contribution > 0],
        "absent_against": [part.concept for part in missing if part.contribution < 0],
    }
    return " ".join(words.say(key, names=words.listed(named)) for key, named in names.items() if named)


def _traces(view: "FilmView", concepts: Sequence[str], row: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Draw attention's weight and the concepts inside a segment, with the time at which each is highest."""
    frames, start, end = view.frames, row["start_s"], row["end_s"]
    shown = frames[(frames["end_s"] > start) & (frames["start_s"] < end)]
    columns = {name: f"{name}_p" for name in concepts}
    if frames["weight"].notna().any():
        columns = {view.words["weight"]: "weight", **columns}
    rows = []
    for name, column in columns.items():
        if column not in shown or not shown[column].notna().any():
            continue
        values = shown[column].to_numpy(dtype=np.float64)
        # Weights add up to 1 over a clip: the largest of the film has the darkest colour.
        height = values / float(frames[column].max()) if column == "weight" else values
        edges = shown[["start_s", "end_s"]].to_numpy(dtype=np.float64).clip(start, end) - start
        best = clock(edges[np.nanargmax(values), 0] + start)
        rows.append({"name": name, "paths": charts.strip(edges[:, 0], edges[:, 1], height), "best": best})
    return rows


def concept_bar(part: Reason, largest: float, view: "FilmView") -> dict[str, Any]:
    """Place a positive contribution to the right of the middle, a negative one to the left."""
    words, value, p = view.words, part.contribution, view.words.probability(part.p)
    width = HALF * abs(value) / largest
    return {
        "name": part.concept,
        "p": p if part.is_present else words.say("absent", p=p),
        "value": words.signed(value),
        "side": "for" if value >= 0 else "against",
        "x": f"{50.0 if value >= 0 else 50 - width:.1f}%",
        "w": f"{width:.1f}%",
        "doubt": part.concept in view.doubtful,
    }


def _number(segments: Sequence[dict[str, Any]], whole_s: float) -> None:
    """Choose the numbers shown above the timeline: best segments first, without overlap."""
    used: dict[float, list[float]] = {NEAR: [], NEAR_NARROW: []}
    for card in sorted(segments, key=lambda card: int(card["rank"])):
        at = (card["start_s"] + card["end_s"]) / 2 / whole_s
        fits = {near: all(abs(at - x) >= near for x in places) for near, places in used.items()}
        for near, places in used.items():
            if fits[near]:
                places.append(at)
        card["number"] = "" if not fits[NEAR] else "on" if fits[NEAR_NARROW] else "odd"
