"""Frames that explain a clip (`localise`): scores that know nothing of segments, and scores that do.

Corpora of 12 films x 15 clips x 32 frames; scores are an autoregression along the frames.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_models.evaluation.localise import localise

N_MOVIES = 12
N_CLIPS = 15
N_FRAMES = 32

PLANTED = 0.1
"""By how many standard deviations the planted scores are higher inside segments."""


def corpus(
    rng: np.random.Generator, placed: str, correlation: float, share: float, planted: float = 0.0
) -> tuple[pd.DataFrame, dict[str, list[tuple[float, float]]]]:
    """Draw frames a second apart, with scores, and segments at random.

    Inside clips: one segment in each, and clips' scores that are independent of each other. Anywhere in
    films: as many segments of the same length, which may overlap and pass ends of clips, and scores that run
    on through the film.
    """
    n_runs = N_MOVIES * N_CLIPS if placed == "inside clips" else N_MOVIES
    length = N_MOVIES * N_CLIPS * N_FRAMES // n_runs
    drawn = rng.normal(size=(n_runs, length))
    drawn[:, 1:] *= np.sqrt(1 - correlation**2)
    scores = lfilter([1.0], [1.0, -correlation], drawn, axis=1).reshape(N_MOVIES, -1)
    size = round(share * N_FRAMES)
    starts = rng.integers(length - size + 1, size=(N_MOVIES, N_CLIPS))
    if n_runs > N_MOVIES:
        starts += N_FRAMES * np.arange(N_CLIPS)
    names = np.array([f"film{number:02}" for number in range(N_MOVIES)])
    segments = {}
    for name, scores_of_film, starts_of_film in zip(names, scores, starts, strict=True):
        segments[str(name)] = [(float(start), float(start + size)) for start in starts_of_film]
        scores_of_film[np.unique(starts_of_film[:, None] + np.arange(size))] += planted
    times = np.tile(np.arange(N_CLIPS * N_FRAMES), N_MOVIES)
    movies = np.repeat(names, N_CLIPS * N_FRAMES)
    clips = pd.Series(movies) + "-" + pd.Series(times // N_FRAMES).astype(str)
    return (
        pd.DataFrame({"movie": movies, "clip_id": clips, "time_s": times, "weight": scores.ravel()}),
        segments,
    )


def located(rng: np.random.Generator, *cell: Any) -> Draw:
    """Ask `localise` about scores that know nothing, and scores that are a little higher in segments."""
    null = localise(*corpus(rng, *cell, 0.0)).pooled.set_index("measure")
    planted = localise(*corpus(rng, *cell, PLANTED)).pooled.set_index("measure")
    results = {}
    for measure, name in (("average_precision", "AP"), ("pointing", "pointing")):
        row = null.loc[measure]
        found = planted.loc[measure]
        is_told = row["p"] <= 0.05
        is_above = row["value"] > row["chance"]
        results |= {
            f"{name} above chance": is_told and is_above,
            f"{name} below chance": is_told and not is_above,
            f"{name}'s interval above": row["low"] > row["chance"],
            f"planted: {name} above": found["p"] <= 0.05 and found["value"] > found["chance"],
        }
    return results


NULL = Column(high=0.05)
ROWS = [
    Row(
        "localise", "docs/when.md", "localise",
        "How often a difference from chance is found: for scores without information on the segments, and "
        "for *planted* scores, which are .1 SD higher inside.",
        ("segments", "correlation", "marked"),
        [Cell((placed, f"{rho:g}", f"{share:g}"), (placed, rho, share))
         for placed in ("inside clips", "anywhere in films") for rho in (0.9, 0.97) for share in (0.1, 0.3)],
        located,
        {f"{name} {what}": column for name in ("AP", "pointing")
         for what, column in (("above chance", NULL), ("below chance", NULL))}
        | {"AP's interval above": NULL, "pointing's interval above": NULL}
        | {f"planted: {name} above": Column(digits=2) for name in ("AP", "pointing")},
        full=60, small=2,
    ),
]  # fmt: skip
