"""Features of three clips as a lab has them, and their import."""

import numpy as np

from obygaze_features.exchange.import_features import Declared, import_features
from obygaze_features.store import PlannedClip, open_store

from ..store.toy_stores import CORPUS

D = 4
CLIPS = [PlannedClip(clip, "m") for clip in ("c", "a", "b")]


def row(clip, shape=(D,), dtype=np.float32):
    return np.random.default_rng([*clip.encode()]).standard_normal(shape).astype(dtype)


def imported(tmp_path, found, array="pooled", known=None, dtype=None, clips=CLIPS, per_second=None, **more):
    settings = {"corpus": CORPUS, "licence": "NOASSERTION"} | more
    return open_store(
        import_features(
            found,
            clips,
            Declared("lab", array, known or {}, dtype, per_second=per_second),
            tmp_path / "films",
            **settings,
        )
    )
