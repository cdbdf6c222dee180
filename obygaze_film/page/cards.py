"""Build the cards of a film's segments, and the sentences of why."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from obygaze_film.page import charts
from obygaze_film.page.phrases import clock, why
from obygaze_film.segments import Reason, reasons

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView

NEAR, NEAR_NARROW = 0.022, 0.065
"""Shares of the timeline's width below which two numbers overlap, on wide and narrow screens."""

HALF = 48.0
"""Longest bar of a contribution to one side of the middle, in percent of the available width."""


def cards(view: "FilmView") -> list[dict[str, Any]]:
    """Return each segment's row with its sentences, the bars of its concepts, and what frames tell of it."""
    records: Any = view.segments.to_dict(orient="records")
    words = view.words
    parts = [reasons(row) for row in records]
    largest = max((abs(part.contribution) for of_row in parts for part in of_row), default=1.0) or 1.0
    shown = [
        {
            **row,
            "sentence": why(of_row, words, view.near_chance),
            "parts": [concept_bar(part, largest, view) for part in of_row],
            "traces": _traces(view, [part.concept for part in of_row if part.is_present], row),
        }
        for row, of_row in zip(records, parts, strict=True)
    ]
    _place_numbers(shown, view.whole_s)
    return shown


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


def _place_numbers(segments: Sequence[dict[str, Any]], whole_s: float) -> None:
    """Choose the numbers that stand above the timeline: best segments first, without overlap."""
    used: dict[float, list[float]] = {NEAR: [], NEAR_NARROW: []}
    for card in sorted(segments, key=lambda card: int(card["rank"])):
        at = (card["start_s"] + card["end_s"]) / 2 / whole_s
        fits = {near: all(abs(at - x) >= near for x in places) for near, places in used.items()}
        for near, places in used.items():
            if fits[near]:
                places.append(at)
        card["above"] = "" if not fits[NEAR] else "on" if fits[NEAR_NARROW] else "odd"
