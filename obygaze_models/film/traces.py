"""Trace models inside a film's windows: what they say of frames, second by second."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from obygaze_features.store import Store
from obygaze_models.film.rows import NO_TRACES, TRACE_COLUMNS
from obygaze_models.prediction.frames import frames_of, reads_frames
from obygaze_models.prediction.model import Model

LONGEST_S = 60.0
"""A step is as long as the time between frames, at most this long."""


def traces_of(model: Model, key: str, store: Store, movie: str, clip_ids: Sequence[str]) -> pd.DataFrame:
    """Average a model's values of frames over steps of a film.

    A step is a second, or the time between frames where that is longer. Frames of overlapping windows at the
    same time are averaged.

    Parameters
    ----------
    model : Model
    key : str
        Its name in the column `model`.
    store : Store
    movie : str
    clip_ids : sequence of str
        The windows of the film.

    Returns
    -------
    DataFrame
        `COLUMNS`, one row for each step that has frames, in time order; empty if the model says nothing of
        the store's frames.
    """
    if not reads_frames(model, store):
        return NO_TRACES
    group, wanted = store[model.card.backbone], set(clip_ids)
    rows = [row for row, clip_id in enumerate(group.clip_ids) if clip_id in wanted and group.usable[row]]
    frames = frames_of(model, store, np.array(rows, dtype=np.intp))
    frames = frames[frames["time_s"].notna()]
    if frames.empty:
        return NO_TRACES
    gaps = frames.groupby("clip_id")["time_s"].diff()
    typical = float(gaps[gaps > 0].median())
    step = min(max(1.0, np.ceil(typical)), LONGEST_S) if np.isfinite(typical) else 1.0
    concepts = [f"{concept}_p" for concept in model.concepts]
    found = frames.assign(place=np.floor(frames["time_s"] / step), n_frames=1).groupby("place", sort=True)
    table = found[["weight", "contribution", *concepts]].mean()
    table.insert(0, "n_frames", found["n_frames"].sum().astype("Int64"))
    start = table.index.to_numpy(dtype=np.float64) * step
    table = table.reset_index(drop=True)
    table = table.assign(movie=movie, model=key, start_s=start, end_s=start + step)
    return table[[*TRACE_COLUMNS, *concepts]]
