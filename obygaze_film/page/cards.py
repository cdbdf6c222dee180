"""Build the cards of a film's segments: time, probability, contributions, and the surrounding curve."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from obygaze_film.page import charts
from obygaze_film.page.words import Words, clock

NEAR, NEAR_NARROW = 0.022, 0.065
"""Shares of the timeline's width below which two numbers overlap, on wide and narrow screens."""

HALF = 48.0
"""Longest bar of a contribution to one side of the middle, in percent of the available width."""

Parts = Sequence[tuple[str, float]]
"""Concepts and their contributions, the largest first."""


def cards(
    segments: pd.DataFrame,
    rows: pd.DataFrame,
    frames: pd.DataFrame,
    whole_s: float,
    words: Words,
    *,
    unfound: Container[str],
    stills: Mapping[int, str],
) -> list[dict[str, Any]]:
    """Return the template values of each segment.

    Parameters
    ----------
    segments : DataFrame
        As `Timeline.segments` gives them.
    rows : DataFrame
        The rows of their model.
    frames : DataFrame
        What it says of frames (`Timeline.frames`).
    whole_s : float
        Length of the film in seconds.
    words : Words
    unfound : container of str
        Concepts that the model finds no better than chance; they are marked as such.
    stills : mapping of int to str
        Data URLs of pictures, by rank.
    """
    records = segments.to_dict(orient="records")
    parts = [_parts(row) for row in records]
    largest = max((abs(value) for found in parts for _, value in found), default=1.0) or 1.0
    shown = []
    for row, found in zip(records, parts, strict=True):
        start, end, rank = float(row["start_s"]), float(row["end_s"]), int(row["rank"])
        p, low, high = (words.number(row[name]) for name in ("p", "p_low", "p_high"))
        probability = words["probability_band"].replace("{0}", p).replace("{1}", low).replace("{2}", high)
        shown.append(
            {
                "rank": rank,
                **place(start, end, whole_s),
                "from": clock(start),
                "to": clock(end),
                "seconds": words["seconds"].format(round(end - start)),
                "jump": f"{words.say('jump', n=rank, start=clock(start))}; {probability}",
                "p": p,
                "p_low": low,
                "p_high": high,
                "reaches": bool(row["reaches"]),
                "spark": _spark(rows, start, end, whole_s),
                "sentence": sentence(found, words),
                "traces": _traces(frames, [name for name, _ in found], start, end, words),
                "parts": [
                    {**_bar(name, value, largest, words), "doubt": name in unfound} for name, value in found
                ],
                "flags": words.flags(str(row["flags"])),
                "judgement": words.say("judgement", n=rank),
                "picture": stills.get(rank, ""),
            }
        )
    _number(shown, whole_s)
    return shown


def place(start: float, end: float, whole_s: float) -> dict[str, Any]:
    """Place a span on the timeline, in seconds for the script and in percent for the page."""
    return {
        "start": round(start, 3),
        "end": round(end, 3),
        "x": charts.percent(start, whole_s),
        "w": charts.percent(end - start, whole_s),
        "middle": charts.percent((start + end) / 2, whole_s),
    }


def sentence(parts: Parts, words: Words) -> str:
    """Name the concepts that contributed most: at least half as much as the largest."""
    if not parts:
        return ""
    most = max(abs(value) for _, value in parts)
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


def _parts(row: Mapping[Any, Any]) -> Parts:
    """Read a segment's concepts and contributions."""
    names, values = str(row["concepts"]), str(row["contributions"])
    if not names or not values:
        return []
    return list(zip(names.split(";"), map(float, values.split(";")), strict=True))


def _spark(rows: pd.DataFrame, start: float, end: float, whole_s: float) -> dict[str, Any]:
    """Draw the curve of a segment with half its length around it."""
    around = max((end - start) / 2, 15.0)
    left, right = max(start - around, 0.0), min(end + around, whole_s)
    shown = rows[(rows["end_s"] > left) & (rows["start_s"] < right)]
    return {
        "width": charts.tenths(right - left),
        "x": charts.tenths(start - left),
        "w": charts.tenths(end - start),
        "path": charts.line(shown, left),
    }


def _traces(
    frames: pd.DataFrame, concepts: Sequence[str], start: float, end: float, words: Words
) -> list[dict[str, Any]]:
    """Draw attention's weight and the concepts inside a segment, with the time at which each is highest."""
    shown = frames[(frames["end_s"] > start) & (frames["start_s"] < end)]
    columns = {name: f"{name}_p" for name in concepts}
    if frames["weight"].notna().any():
        columns = {words["weight"]: "weight", **columns}
    rows = []
    for name, column in columns.items():
        if column not in shown or not shown[column].notna().any():
            continue
        values = shown[column].to_numpy(dtype=np.float64)
        # Weights add up to 1 over a clip: the largest of the film has the darkest colour.
        height = values / float(frames[column].max()) if column == "weight" else values
        edges = shown[["start_s", "end_s"]].to_numpy(dtype=np.float64).clip(start, end) - start
        best = float(np.clip(shown["start_s"].to_numpy()[np.nanargmax(values)], start, end))
        rows.append(
            {
                "name": name,
                "width": charts.tenths(end - start),
                "paths": charts.strip(edges[:, 0], edges[:, 1], height),
                "best": clock(best),
            }
        )
    return rows


def _bar(name: str, value: float, largest: float, words: Words) -> dict[str, Any]:
    """Place a positive contribution to the right of the middle, a negative one to the left."""
    width = HALF * abs(value) / largest
    return {
        "name": name,
        "value": words.signed(value),
        "side": "for" if value >= 0 else "against",
        "x": f"{50.0 if value >= 0 else 50 - width:.1f}%",
        "w": f"{width:.1f}%",
    }


def _number(segments: Sequence[dict[str, Any]], whole_s: float) -> None:
    """Choose the numbers shown above the timeline: best segments first, without overlap."""
    taken: dict[float, list[float]] = {NEAR: [], NEAR_NARROW: []}
    for one in segments:
        at = (one["start"] + one["end"]) / 2 / whole_s
        fits = {near: all(abs(at - other) >= near for other in places) for near, places in taken.items()}
        for near, places in taken.items():
            if fits[near]:
                places.append(at)
        one["number"] = "" if not fits[NEAR] else "on" if fits[NEAR_NARROW] else "odd"
