"""Invented scored films: timelines as `film score` writes them, of any length, with planted segments."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

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
"""Concepts whose average precision is surely above chance."""

PLANTED = ((0.087, 0.113), (0.25, 0.264), (0.458, 0.478), (0.698, 0.707), (0.86, 0.872))
"""Starts and ends of segments, as shares of the film."""

RECORD = json.loads(Path(__file__).with_name("film.json").read_text(encoding="utf-8"))
"""What `film score` writes of a film, to be filled."""

SLOPE, INTERCEPT = 0.9, -0.4


def fake_scored_film(
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

    Its last 4.5 % are credits, which have no probability.

    Parameters
    ----------
    movie, title, year, duration_s
        Facts about the film.
    n_rows
        Number of shots; each is a row of the timeline.
    seed
        Of the noise and of where the cuts are.
    unlike_parts
        Parts that are unlike all training clips and have no probability, from one share of the film's length
        to another: ((0.0, 0.5),) is the first half. Such rows do not count as credits.
    trained_on
        Whether the model was trained on clips of this film. Then its credits have a probability too.
    concepts
        Rows of the kind of `CONCEPTS`; () for a model without concepts.
    codebook, levels
        Name of the codebook, and the negative and the positive levels of the model's task.
    traced
        Whether the film has traces: what each person annotated along its time.
    """
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.uniform(0, duration_s, n_rows - 1))
    edges = np.concatenate([[0.0], cuts, [duration_s]]).round(3)
    start, end = edges[:-1], edges[1:]
    middle = (start + end) / 2 / duration_s  # of each row, as a share of the film's length
    curves = _curves(rng, middle, concepts)
    is_unlike = _is_within(middle, unlike_parts)
    is_credits = (middle > CREDITS_FROM) & ~is_unlike
    has_content = np.ones(n_rows, dtype=bool) if trained_on else ~is_credits
    has_p = has_content & ~is_unlike
    flags = _flags(is_unlike, is_credits, trained_on=trained_on)
    rows = pd.DataFrame({"movie": movie, "start_s": start, "end_s": end})
    table = _table(rng, rows, curves, is_unlike, has_p).assign(flags=flags)

    seconds = end - start
    unlike_share = float((seconds * is_unlike).sum() / seconds[has_content].sum())
    unlike_share = min(unlike_share, 1.0)  # sums of decimals exceed it by their last digit
    rate = _rate(seconds[has_p], curves.probability()[has_p], unlike_share)

    model = RECORD["models"][0] | {
        "negative": levels[0],
        "positive": levels[1],
        "levels": [*levels[0], *levels[1]],
        "codebook": codebook,
        "is_trained_on": trained_on,
        "flags": {"unlike": unlike_share * duration_s},
        "rate": rate,
        "by_concepts": bool(concepts),
        "concepts": [_concept_of_record(*concept) for concept in concepts],
    }
    model["human"] = model["human"] | {"positive": levels[1]}
    record = RECORD | {"movie": movie, "title": title, "year": year, "duration_s": duration_s}
    record["models"] = [model]
    for part in ("windows", "rows", "shots"):
        record[part] = RECORD[part] | {"n": n_rows}

    shots = rows.assign(detector="own", flags="")
    traces = _traces(movie, duration_s, concepts) if traced else NO_TRACES
    return Timeline(msgspec.convert(record, FilmRecord), table, shots, traces)


BASE = -2.1
"""Logit of a row in which no concept adds anything."""

CREDITS_FROM = 0.955
"""Share of the film's length from which on it is credits."""

MAX_UNLIKE = 0.2
"""Up to this share of the content may be unlike training if a share is to be expected."""


@dataclass(frozen=True)
class _Curves:
    """The value of each concept in each row, what it adds to the logit, and the logit; arrays are [N]."""

    values: dict[str, np.ndarray]
    contributions: dict[str, np.ndarray]
    logit: np.ndarray

    def probability(self, moved=0.0):
        """Return the calibrated probability, with `moved` added to the calibrated logit."""
        return _sigmoid(SLOPE * self.logit + INTERCEPT + moved)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


class _Concept(NamedTuple):
    """How much a concept's value rises with the planted level, and how much it adds to the logit."""

    follows: float
    weight: float


KINDS_OF_CONCEPTS = (
    _Concept(follows=2.6, weight=0.62),  # it is clearly there in the segments, and decides much
    _Concept(follows=2.1, weight=0.2),
    _Concept(follows=1.6, weight=0.55),
    _Concept(follows=1.1, weight=-0.1),  # it speaks a little against the level
)
"""The concepts of a film are of these kinds in turn."""


def _curves(rng, middle, concepts):
    """Plant a curve of each concept: noise of its own, noise that all share, and the planted segments."""
    n_rows = len(middle)
    level = _planted_level(middle)
    # Of more than eight concepts each weighs less, so that the logit has the same range.
    n_times_eight = max(len(concepts) / 8, 1)
    shared_noise = 0.35 * _smooth_noise(rng, n_rows, window=81)
    values, contributions = {}, {}
    logit = np.full(n_rows, BASE)
    for number, (name, _, _) in enumerate(concepts):
        kind = KINDS_OF_CONCEPTS[number % len(KINDS_OF_CONCEPTS)]
        own_noise = 0.6 * _smooth_noise(rng, n_rows, window=25)
        values[name] = own_noise + kind.follows * level + 0.4 * shared_noise
        contributions[name] = kind.weight / n_times_eight * values[name]
        logit = logit + contributions[name]
    if not concepts:
        logit = logit + 4 * level
    return _Curves(values, contributions, logit)


def _planted_level(middle):
    """Return how strong the planted segments are in each row: 0 outside, about 1 in the middle of the first.

    Each segment rises and falls within a sixteenth of its length, and is a little weaker than the one before.
    """
    level = np.zeros(len(middle))
    for number, (start, end) in enumerate(PLANTED):
        strength = 1.1 - 0.12 * number
        distance_to_edge = np.minimum(middle - start, end - middle) / (end - start)  # below 0 outside
        level = np.maximum(level, strength * np.clip(0.5 + 8 * distance_to_edge, 0, 1))
    return level


def _smooth_noise(rng, n_rows, window):
    """Draw normal noise of about variance 1 that is a moving sum over a window of rows."""
    noise = rng.normal(size=n_rows + window - 1)
    return np.convolve(noise, np.ones(window) / int(np.sqrt(window)), mode="valid")


def _is_within(middle, parts):
    """Tell of each row whether it lies in one of some parts of the film, given as shares of its length."""
    is_within = np.zeros(len(middle), dtype=bool)
    for start, end in parts:
        is_within |= (middle >= start) & (middle < end)
    return is_within


def _table(rng, rows, curves, is_unlike, has_p):
    """Make the table of rows as `film score` writes it, without flags."""
    n_rows = len(rows)

    def where_judged(values):
        return np.where(has_p, values, np.nan)

    half_band = 0.25 + 0.15 * rng.uniform(size=n_rows)  # of the logit
    unlike = np.where(is_unlike, 0.999, rng.uniform(0.1, 0.9, n_rows))
    is_called = np.where(has_p, (curves.logit > -0.5).astype(int), None)
    columns = {
        "level_task": "hn_s",
        "model": "pcbm_lr",
        "logit": curves.logit,
        "p": where_judged(curves.probability()),
        "p_low": where_judged(curves.probability(-half_band)),
        "p_high": where_judged(curves.probability(half_band)),
        "called": pd.array(is_called, dtype="Int64"),
        "unlike": unlike,
        "flags": "",
    }
    for name, value in curves.values.items():
        columns[f"{name}_value"] = value
        columns[f"{name}_p"] = where_judged(_sigmoid(2.2 * value - USUAL))
        columns[f"{name}_contribution"] = where_judged(curves.contributions[name])
    columns |= {"base_contribution": where_judged(BASE), "n_windows": 3, "status": "ok"}
    return pd.concat([rows, pd.DataFrame(columns, index=rows.index)], axis=1)


def _flags(is_unlike, is_credits, *, trained_on):
    flags = np.select([is_unlike, is_credits], ["unlike", "credits"], default="").astype(object)
    if trained_on:
        flags = np.array([f"{flag};trained_on".strip(";") for flag in flags], dtype=object)
    return flags


def _rate(seconds, p, unlike_share):
    """Make the expected share of the rows that count; none if too much of the film is unlike training."""
    is_refused = unlike_share > MAX_UNLIKE
    value = None if is_refused else float((seconds * p).sum() / seconds.sum())
    distances = {
        "bracket_low": -0.17,
        "bracket_high": 0.17,
        "calibration_low": -0.07,
        "calibration_high": 0.1,
    }
    bounds = {}
    for name, distance in distances.items():
        bounds[name] = None if is_refused else max(value + distance, 0.0)
    return bounds | {
        "value": value,
        "unreliable": unlike_share,
        "counted_s": float(seconds.sum()),
        "reason": "more than 20 % of the time is unlike training" if is_refused else "",
    }


USUAL = 1.6
"""Logit of a concept's probability at its usual value, 0, with a minus before it."""


def _concept_of_record(name, ap, chance):
    """Make what a record says of a concept: its average precision with an interval, and chance."""
    low = chance + 0.02 if name in FOUND else chance - 0.03
    return {
        "name": name,
        "threshold_p": 0.5,
        "ap": ap,
        "low": low,
        "high": ap + 0.06,
        "chance": chance,
        "usual": 0.0,
        "usual_p": float(1 / (1 + np.exp(USUAL))),
    }


def ten_minute_film(movie="tt0000042", title="The Planted Film", **options) -> Timeline:
    """Make an invented film of 600 seconds in 60 rows; options as for `fake_scored_film`."""
    return fake_scored_film(movie, title, n_rows=60, duration_s=600.0, **options)


def with_model(film, **fields) -> Timeline:
    """Change fields of the film's only model."""
    models = [structs.replace(film.model(), **fields)]
    return replace(film, record=structs.replace(film.record, models=models))


def with_columns(film, **columns) -> Timeline:
    """Set columns of the film's table of rows."""
    return replace(film, table=film.table.assign(**columns))


def _traces(movie, duration_s, concepts):
    """Make the traces of a film: random weights and probabilities of two frames in every second."""
    rng = np.random.default_rng(0)
    starts = np.arange(0.0, duration_s)
    traces = pd.DataFrame({"movie": movie, "model": "pcbm_lr", "start_s": starts, "end_s": starts + 1})
    traces["n_frames"] = pd.array([2] * len(traces), dtype="Int64")
    largest = 1 / 32  # what a frame weighs and adds where 32 frames are read of a clip
    traces["weight"] = rng.random(len(traces)) * largest
    traces["contribution"] = rng.random(len(traces)) * largest
    for name, *_ in concepts:
        traces[f"{name}_p"] = rng.random(len(traces))
    return traces
