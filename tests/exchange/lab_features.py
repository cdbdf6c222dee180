"""Features of the clips a, b and c as a lab has them, and their import as those of the backbone `lab`."""

import numpy as np

from obygaze_features.exchange.import_features import Declared, import_features
from obygaze_features.store import PlannedClip, open_store

from ..store.toy_stores import CORPUS

N_FEATURES = 4
CLIPS = [PlannedClip(clip, "m") for clip in ("c", "a", "b")]


def values_of(clip, shape=(N_FEATURES,), dtype=np.float32):
    """Draw the features of a clip: the same numbers at every call, others for each clip."""
    return np.random.default_rng([*clip.encode()]).standard_normal(shape).astype(dtype)


def array_of(item):
    """Load the one array of an item, which has no name in its file."""
    return item.load()[""]


def import_store(
    folder,
    items,
    array="pooled",
    known=None,
    dtype=None,
    clips=CLIPS,
    per_second=None,
    times=None,
    **settings,
):
    """Import the items of clips into the store `films` of a folder; return it."""
    declared = Declared("lab", array, known or {}, dtype, per_second=per_second, times=times)
    settings = {"corpus": CORPUS, "licence": "NOASSERTION"} | settings
    return open_store(import_features(items, clips, declared, folder / "films", **settings))
