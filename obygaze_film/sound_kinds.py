"""Name what is heard in a film by the second, by a rule of thumb: silence, speech, music or another sound.

The rule reads four of the descriptors of the backbone `sound`, and its thresholds were set on clean sounds:
read speech of LibriVox, of a word list and of a synthesiser, and music of games. Films mix speech, music and
noise, and no labelled film was at hand, so the names are to be checked by ear.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.store import Store
from obygaze_film.rows import Windows
from obygaze_film.schema import NO_TEXTS, TEXT_COLUMNS, runs

Measure = NDArray[np.floating[Any]]

SOUND_KINDS: Final = ("silence", "speech", "music", "other")

SILENT_LUFS: Final = -60.0
"""Loudness below which nothing is heard at a cinema's level; `sound` counts no such step as voiced."""

VOICED: Final = 0.2
"""Share of steps with a pitch: 19 of 20 parts of speech have more than .5, of music .33; noise has none."""

FLUX: Final = 0.5
"""Rise of the bands, in nepers a step: syllables come and go every fifth of a second. 19 of 20 parts of
speech have more than .53; the median of music is .39."""

FLATNESS: Final = 0.05
"""Flatness above which nothing is called music. 19 of 20 parts of music have less. Speech with noise 10 dB
below it has more: it changes too little to be called speech."""

MEASURES: Final = ("loudness", "voiced", "flux", "flatness")


def sound_kinds(loudness: Measure, voiced: Measure, flux: Measure, flatness: Measure) -> NDArray[np.intp]:
    """Return the place in `SOUND_KINDS` of each part [N] of a soundtrack, from its descriptors [N]."""
    silence, speech, music, other = range(len(SOUND_KINDS))
    rules = [loudness < SILENT_LUFS, voiced < VOICED, flux > FLUX, flatness > FLATNESS]
    return np.select(rules, [silence, other, speech, other], music)


def sounds_of(store: Store, windows: Windows) -> pd.DataFrame:
    """Name what is heard in each second of a film; neighbouring seconds of one kind are one row.

    A second has the kind of the part whose middle is nearest to its own. What no window with sound covers has
    no row.

    Returns
    -------
    DataFrame
        `TEXT_COLUMNS`, in time order; empty unless the store has the backbone `sound`.
    """
    if "sound" not in store.names:
        return NO_TEXTS
    group = store["sound"]
    architecture = group.provenance["architecture"]
    names = architecture.get("features", []) if isinstance(architecture, dict) else []
    if "frames" not in group.arrays or not set(MEASURES) <= set(names):  # of another tool
        return NO_TEXTS
    columns = [names.index(name) for name in MEASURES]
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids) if group.usable[row]}
    edges: list[tuple[float, float]] = []
    kinds = []
    for clip_id, (start_s, end_s) in zip(windows.clip_ids, windows.spans.tolist(), strict=True):
        if clip_id in row_of:
            times = group.time_s[row_of[clip_id]]
            edges += pairwise([start_s, *((times[1:] + times[:-1]) / 2).tolist(), end_s])
            kinds.append(sound_kinds(*group.read(clip_id, "frames")[:, columns].T))
    if not edges:
        return NO_TEXTS
    parts = pd.DataFrame(edges, columns=["start_s", "end_s"])
    parts = parts.assign(kind=np.concatenate(kinds), middle=parts.mean(axis=1)).sort_values("middle")
    seconds = pd.DataFrame({"middle": np.arange(np.ceil(windows.end_s)) + 0.5})
    nearest = pd.merge_asof(seconds, parts, on="middle", direction="nearest")
    is_heard = nearest["middle"].between(nearest["start_s"], nearest["end_s"])
    heard = nearest["kind"].where(is_heard, -1)
    spans = sorted(
        (float(first), min(float(after), windows.end_s), name)
        for kind, name in enumerate(SOUND_KINDS)
        for first, after in runs((heard == kind).to_numpy())
    )
    return pd.DataFrame(spans, columns=list(TEXT_COLUMNS))
