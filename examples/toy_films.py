"""Write the small corpus that the examples use: a manifest of 6 movies and a store of planted features.

Feature 0 moves with the concept Body, feature 1 with Clothing, and each movie is moved a little; a clip is of
level S where Body is marked and most often EN where nothing is. The last clip has failed, as clips do.
"""

from pathlib import Path

import numpy as np

from obygaze_features import Clip, Manifest, write_manifest
from obygaze_features.store.testing import seal_arrays

N_MOVIES, N_CLIPS, WIDTH = 6, 16, 8


def write_toy_films(
    folder: Path, name: str = "films", *, first: int = 0, backbone: str = "toy"
) -> tuple[Path, Path]:
    """Write `films.csv` and `stores/films-1.0.0`, of movies film0 to film5, and return both paths."""
    rng = np.random.default_rng(first)
    clips, vectors, spans = [], [], {}
    for movie in range(first, first + N_MOVIES):
        own = 0.3 * rng.normal(size=WIDTH)
        for place in range(N_CLIPS):
            clip_id = f"film{movie}-c{place:03}"
            body, clothing = rng.random(2) < 0.4
            level = "S" if body else "HN" if clothing else "EN"
            concepts = tuple(c for c, there in (("Body", body), ("Clothing", clothing)) if there)
            start = 4.0 * place
            clips.append(Clip(clip_id, f"film{movie}", f"film{movie}.mp4", start, start + 4, level, concepts))
            spans[clip_id] = (start, start + 4)
            signal = np.zeros(WIDTH)
            signal[:2] = 2.5 * body, 2.5 * clothing
            vectors.append(signal + own + rng.normal(size=WIDTH))
    pooled = np.stack(vectors).astype(np.float32)
    arrays = {"pooled": pooled, "frames": np.stack([pooled - 0.1, pooled + 0.1], axis=1)}
    (folder / "stores").mkdir(parents=True, exist_ok=True)
    store = seal_arrays(
        folder / "stores" / name,
        {clip.clip_id: clip.movie for clip in clips},
        {backbone: arrays},
        failed={clips[-1].clip_id: "the file is empty (0 bytes)"},
        spans=spans,
    )
    manifest = folder / f"{name}.csv"
    write_manifest(Manifest(tuple(clips), folder), manifest)
    return manifest, store
