"""Measure how often `localise` calls scores that know nothing above chance, and finds scores that do.

A part of `coverage.py` (6 minutes of CPU). Corpora of 12 films x 15 clips x 32 frames; scores are an
autoregression along the frames. Seeds are fixed: the same command prints the same table.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from measure import show
from scipy.signal import lfilter

from obygaze_models.evaluation.localise import Localisation, localise

N_MOVIES, N_CLIPS, N_FRAMES = 12, 15, 32

PLANTED = 0.1
"""By how many standard deviations the planted scores are higher inside segments."""


def cells() -> Iterator[tuple[str, float, float]]:
    """List where segments lie, and correlations of neighbouring frames, and shares of frames marked."""
    for placed in ("inside clips", "anywhere in films"):
        for correlation in (0.9, 0.97):
            for share in (0.1, 0.3):
                yield placed, correlation, share


def corpus(
    seed: int, placed: str, correlation: float, share: float, planted: float = 0.0
) -> tuple[pd.DataFrame, dict[str, list[tuple[float, float]]]]:
    """Draw frames a second apart, with scores, and segments at random.

    Inside clips: one segment in each, and clips' scores that are independent of each other. Anywhere in
    films: as many segments of the same length, which may overlap and pass ends of clips, and scores that run
    on through the film.
    """
    rng = np.random.default_rng((seed, round(100 * correlation), round(100 * share)))
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
    segments = {
        str(name): [(float(start), float(start + size)) for start in own]
        for name, own in zip(names, starts, strict=True)
    }
    for own, movie in zip(scores, starts, strict=True):
        own[np.unique(movie[:, None] + np.arange(size))] += planted
    times = np.tile(np.arange(N_CLIPS * N_FRAMES), N_MOVIES)
    movies = np.repeat(names, N_CLIPS * N_FRAMES)
    clips = pd.Series(movies) + "-" + pd.Series(times // N_FRAMES).astype(str)
    return (
        pd.DataFrame({"movie": movies, "clip_id": clips, "time_s": times, "weight": scores.ravel()}),
        segments,
    )


def verdicts(found: Localisation) -> pd.DataFrame:
    """Say of each measure whether it is above chance, below it, or has its interval wholly above."""
    rows = found.pooled.set_index("measure")
    told = rows["p"] <= 0.05
    return pd.DataFrame(
        {
            "above chance": told & (rows["value"] > rows["chance"]),
            "below chance": told & (rows["value"] < rows["chance"]),
            "interval above": rows["low"] > rows["chance"],
        }
    )


def tables(n_sets: int) -> None:
    """Print how often each verdict is given where scores know nothing, and "above chance" where they do."""
    rows = []
    for cell in cells():
        null, planted = (
            sum(verdicts(localise(*corpus(seed, *cell, by))).astype(float) for seed in range(n)) / n
            for by, n in ((0.0, n_sets), (PLANTED, max(1, n_sets // 4)))
        )
        for measure in null.index:
            shares = (f"{one:.3f}" for one in null.loc[measure])
            found = planted.loc[measure, "above chance"]
            rows.append([*cell, measure.replace("_", " "), *shares, found])
    headers = [
        "segments",
        "correlation",
        "marked",
        "measure",
        *null.columns,
        f"planted ({PLANTED} SD): above",
    ]
    show(rows, headers, f"Localisation: share of {n_sets} corpora whose scores know nothing of segments")
