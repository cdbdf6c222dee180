"""Invented scored films: timelines as `film score` writes them, of any length, with planted segments."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from msgspec import structs

from obygaze_film.schema import NO_TRACES, FilmRecord
from obygaze_film.timeline import Timeline

CONCEPTS = (
    ("Type of shot", 0.31, 0.24),
    ("Look", 0.28, 0.26),
    ("Body", 0.55, 0.21),
    ("Posture", 0.24, 0.22),
    ("Clothing", 0.49, 0.20),
    ("Appearance", 0.22, 0.20),
    ("Expression of emotion", 0.41, 0.25),
    ("Activity", 0.38, 0.22),
)
"""Name, average precision, chance."""

FOUND = {"Type of shot", "Body", "Clothing", "Expression of emotion", "Activity"}
PLANTED = ((0.087, 0.113), (0.25, 0.264), (0.458, 0.478), (0.698, 0.707), (0.86, 0.872))
"""Starts and ends of segments, as shares of the film."""

RECORD = json.loads(Path(__file__).with_name("film.json").read_text(encoding="utf-8"))
"""What `film score` writes of a film, to be filled."""

SLOPE, INTERCEPT = 0.9, -0.4


def invented_film(
    movie="tt0000042",
    title="The Planted Film",
    *,
    year=2003,
    duration_s=7212.0,
    n_rows=1532,
    seed=7,
    unlike_parts=((0.0, 0.008), (0.972, 1.0)),
    trained_on=False,
    concepts=CONCEPTS,
    codebook="obygaze12",
    levels=(("HN",), ("S",)),
    traced=False,
) -> Timeline:
    """Make a film whose level rises in `PLANTED` and whose concepts follow it in part.

    `unlike_parts` are unlike the model's training clips, from one share of the film's length to another:
    ((0.0, 0.5),) is the first half. Its last 4.5 % are credits, where they are not unlike too.
    """
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.sort(rng.uniform(0, duration_s, n_rows - 1)), [duration_s]]).round(3)
    start, end = edges[:-1], edges[1:]
    at = (start + end) / 2 / duration_s
    inside = np.zeros(n_rows)
    for number, (a, b) in enumerate(PLANTED):
        inside = np.maximum(
            inside, (1.1 - 0.12 * number) * np.clip(0.5 + 8 * np.minimum(at - a, b - at) / (b - a), 0, 1)
        )
    slow = np.convolve(rng.normal(size=n_rows + 80), np.ones(81) / 9, mode="valid") * 0.35
    values, parts = {}, {}
    logit = np.full(n_rows, -2.1)
    for number, (name, _, _) in enumerate(concepts):
        own = np.convolve(rng.normal(size=n_rows + 24), np.ones(25) / 5, mode="valid") * 0.6
        value = own + inside * (2.6 - 0.5 * (number % 4)) + 0.4 * slow
        weight = (0.62, 0.2, 0.55, -0.1)[number % 4] / max(len(concepts) / 8, 1)
        values[name], parts[name] = value, weight * value
        logit = logit + parts[name]
    logit = logit + (0 if concepts else 4 * inside)

    def probability(moved=0.0):
        return 1 / (1 + np.exp(-(SLOPE * logit + INTERCEPT + moved)))

    p = probability()
    far = np.zeros(n_rows, dtype=bool)
    for a, b in unlike_parts:
        far |= (at >= a) & (at < b)
    flags = np.where(far, "unlike", "").astype(object)
    flags[(at > 0.955) & ~far] = "credits"
    if trained_on:
        flags = np.array([";".join(filter(None, [one, "trained_on"])) for one in flags], dtype=object)
    undefined = far | (flags == "credits")
    spread = 0.25 + 0.15 * rng.uniform(size=n_rows)
    table = pd.DataFrame(
        {
            "movie": movie,
            "start_s": start,
            "end_s": end,
            "level_task": "hn_s",
            "model": "pcbm_lr",
            "logit": logit,
            "p": np.where(undefined, np.nan, p),
            "p_low": np.where(undefined, np.nan, probability(-spread)),
            "p_high": np.where(undefined, np.nan, probability(spread)),
            "called": pd.array(np.where(undefined, None, (logit > -0.5).astype(int)), dtype="Int64"),
            "unlike": np.where(far, 0.999, rng.uniform(0.1, 0.9, n_rows)),
            "flags": flags,
        }
    )
    extra = {}
    for name, *_ in concepts:
        extra[f"{name}_value"] = values[name]
        extra[f"{name}_p"] = np.where(undefined, np.nan, 1 / (1 + np.exp(-(2.2 * values[name] - 1.6))))
        extra[f"{name}_contribution"] = np.where(undefined, np.nan, parts[name])
    extra |= {"base_contribution": np.where(undefined, np.nan, -2.1), "n_windows": 3, "status": "ok"}
    table = pd.concat([table, pd.DataFrame(extra, index=table.index)], axis=1)
    counted = ~far & (flags != "credits")
    weight = (end - start)[counted]
    unreliable = float(((end - start) * far).sum() / (end - start)[flags != "credits"].sum())
    unreliable = min(unreliable, 1.0)  # sums of decimals exceed it by their last digit
    refused = unreliable > 0.2
    value = None if refused else float((weight * p[counted]).sum() / weight.sum())
    bounds = {"bracket_low": -0.17, "bracket_high": 0.17, "calibration_low": -0.07, "calibration_high": 0.1}
    rate = {name: None if refused else max(value + by, 0.0) for name, by in bounds.items()}
    rate |= {"value": value, "unreliable": unreliable, "counted_s": float(weight.sum())}
    rate["reason"] = "more than 20 % of the time is unlike training" if refused else ""
    model = RECORD["models"][0] | {"negative": levels[0], "positive": levels[1], "codebook": codebook}
    model |= {"is_trained_on": trained_on, "flags": {"unlike": unreliable * duration_s}, "rate": rate}
    model["levels"] = [*levels[0], *levels[1]]
    model["human"] = model["human"] | {"positive": levels[1]}
    model["by_concepts"], model["concepts"] = bool(concepts), []
    for name, ap, chance in concepts:
        low = chance + 0.02 if name in FOUND else chance - 0.03
        measured = {"threshold_p": 0.5, "ap": ap, "low": low, "high": ap + 0.06, "chance": chance}
        measured |= {"usual": 0.0, "usual_p": float(1 / (1 + np.exp(1.6)))}
        model["concepts"].append({"name": name} | measured)
    facts = {"movie": movie, "title": title, "year": year, "duration_s": duration_s}
    record = RECORD | facts | {"models": [model]}
    record |= {part: RECORD[part] | {"n": n_rows} for part in ("windows", "rows", "shots")}
    shots = pd.DataFrame({"movie": movie, "start_s": start, "end_s": end, "detector": "own", "flags": ""})
    traces = _traces(movie, duration_s, concepts) if traced else NO_TRACES
    return Timeline(msgspec.convert(record, FilmRecord), table, shots, traces)


def ten_minute_film(movie="tt0000042", title="The Planted Film", **options) -> Timeline:
    """Make an invented film of 600 seconds in 60 rows; options as for `invented_film`."""
    return invented_film(movie, title, n_rows=60, duration_s=600.0, **options)


def with_model(film, **fields) -> Timeline:
    """Change fields of the film's only model."""
    models = [structs.replace(film.model(), **fields)]
    return replace(film, record=structs.replace(film.record, models=models))


def with_columns(film, **columns) -> Timeline:
    """Set columns of the film's table of rows."""
    return replace(film, table=film.table.assign(**columns))


def _traces(movie, duration_s, concepts):
    """Make values of frames for every second."""
    rng = np.random.default_rng(0)
    starts = np.arange(0.0, duration_s)
    frames = pd.DataFrame({"movie": movie, "model": "pcbm_lr", "start_s": starts, "end_s": starts + 1})
    frames["n_frames"] = pd.array([2] * len(frames), dtype="Int64")
    frames["weight"], frames["contribution"] = rng.random((2, len(frames))) / 32
    for name, *_ in concepts:
        frames[f"{name}_p"] = rng.random(len(frames))
    return frames
