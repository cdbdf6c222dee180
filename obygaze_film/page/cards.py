"""Build the cards of a film's passages: what is said of each, the bars of its concepts, and its frames."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from obygaze_film.claims import phrases
from obygaze_film.claims.kinds import ConceptReason
from obygaze_film.claims.of_film import passage
from obygaze_film.claims.words import clock
from obygaze_film.page import charts

if TYPE_CHECKING:
    from obygaze_film.page.view import FilmView

NEAR, NEAR_NARROW = 0.022, 0.065
"""Shares of the timeline's width below which two numbers overlap, on wide and narrow screens."""

HALF = 48.0
"""Longest bar of a contribution to one side of the middle, in percent of the available width."""


def cards(view: "FilmView") -> list[dict[str, Any]]:
    """Return each passage's row with its sentences, the bars of its concepts, and what frames tell of it."""
    rows: Any = view.segments.to_dict(orient="records")
    claims = [passage(view.model, row, view.film.classes) for row in rows]
    largest = largest_contribution([reason for claim in claims for reason in claim.reasons])
    shown = []
    for row, claim in zip(rows, claims, strict=True):
        seen = [reason.what for reason in claim.reasons if reason.is_present]
        card = {
            **row,
            "length": phrases.passage_length(claim, view.words),
            "p_text": phrases.passage_value(claim, view.words),
            "band": phrases.passage_band(claim, view.words),
            "spoken": phrases.passage_spoken(claim, view.words),
            "sentence": phrases.reasons_sentence(claim.reasons, view.words),
            "classes": phrases.classes_sentence(claim.classes, view.words),
            "parts": [concept_bar(reason, largest, view) for reason in claim.reasons],
            "traces": traces(view, seen, row),
        }
        shown.append(card)
    place_numbers(shown, view.whole_s)
    return shown


def largest_contribution(reasons: Sequence[ConceptReason]) -> float:
    """Find the contribution that has the longest bar; 1 where there is none."""
    largest = max((abs(reason.contribution) for reason in reasons), default=0.0)
    return largest or 1.0


def concept_bar(reason: ConceptReason, largest: float, view: "FilmView") -> dict[str, Any]:
    """Place a positive contribution to the right of the middle, a negative one to the left."""
    width = HALF * abs(reason.contribution) / largest
    is_positive = reason.contribution >= 0
    start = 50.0 if is_positive else 50.0 - width
    return {
        "name": reason.what,
        "p": phrases.reason_p(reason, view.words),
        "value": phrases.reason_weight(reason, view.words),
        "side": "for" if is_positive else "against",
        "x": charts.in_percent(start),
        "w": charts.in_percent(width),
        "doubt": reason.what in view.doubtful,
    }


def traces(view: "FilmView", concepts: Sequence[str], row: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Draw attention's weight and the concepts inside a passage, with the time at which each is highest."""
    frames, start_s, end_s = view.frames, row["start_s"], row["end_s"]
    inside = frames[(frames["end_s"] > start_s) & (frames["start_s"] < end_s)]
    columns = {}
    if frames["weight"].notna().any():
        columns[view.words["weight"]] = "weight"
    for concept in concepts:
        columns[concept] = f"{concept}_p"
    rows = []
    for name, column in columns.items():
        if column in inside and inside[column].notna().any():
            # Weights add up to 1 over a clip: the largest of the film has the darkest colour.
            highest = float(frames[column].max()) if column == "weight" else 1.0
            rows.append({"name": name, **_trace(inside, column, highest, start_s, end_s)})
    return rows


def _trace(inside: pd.DataFrame, column: str, highest: float, start_s: float, end_s: float) -> dict[str, Any]:
    """Draw the values of a passage's frames, the darker the nearer to the highest."""
    values = inside[column].to_numpy(dtype=np.float64)
    edges = inside[["start_s", "end_s"]].to_numpy(dtype=np.float64).clip(start_s, end_s) - start_s
    best_s = edges[np.nanargmax(values), 0] + start_s
    return {"paths": charts.strip(edges[:, 0], edges[:, 1], values / highest), "best": clock(best_s)}


def place_numbers(shown: Sequence[dict[str, Any]], whole_s: float) -> None:
    """Choose the numbers that stand above the timeline: the strongest passages first, without overlap.

    A card's ``above`` is ``on`` where its number stands on wide and narrow screens, ``odd`` where on wide
    ones alone, and empty where on none.
    """
    used: dict[float, list[float]] = {NEAR: [], NEAR_NARROW: []}
    for card in sorted(shown, key=lambda card: int(card["rank"])):
        middle = (card["start_s"] + card["end_s"]) / 2 / whole_s
        fits = {}
        for near, places in used.items():
            fits[near] = all(abs(middle - place) >= near for place in places)
            if fits[near]:
                places.append(middle)
        card["above"] = ""
        if fits[NEAR]:
            card["above"] = "on" if fits[NEAR_NARROW] else "odd"
