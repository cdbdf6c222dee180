"""Clips whose level stands partly in what is seen and partly in what is heard, in a store each."""

import numpy as np

import obygaze_features as of
from obygaze_features.store.testing import seal_arrays

PER_FILM = 40
WIDTHS = {"seen": 6, "heard": 4, "noise": 5}


def planted(folder, weights=(1.6, 1.6), n_films=6):
    """Clips whose level stands partly in what is seen and partly in what is heard; a third modality is noise.

    What is heard is kept in another order, and lacks a fifth of the clips.
    """
    generator = np.random.default_rng(0)
    n = n_films * PER_FILM
    y = generator.random(n) < 0.4
    names = [(f"f{film}", k) for film in range(n_films) for k in range(PER_FILM)]
    clips = [
        of.Clip(f"{film}-{k:02}", film, f"{film}.mp4", level="S" if marked else "EN")
        for (film, k), marked in zip(names, y, strict=True)
    ]
    arrays = {name: generator.normal(size=(n, width)).astype(np.float32) for name, width in WIDTHS.items()}
    arrays["seen"][:, 0] += weights[0] * y
    arrays["heard"][:, 1] += weights[1] * y
    rows = {"seen": np.arange(n), "noise": generator.permutation(n)}
    rows["heard"] = generator.permutation([row for row in range(n) if row % 5])
    stores = {
        name: of.open_store(
            seal_arrays(
                folder / name,
                {clips[row].clip_id: clips[row].movie for row in order},
                {name: {"pooled": arrays[name][order]}},
            )
        )
        for name, order in rows.items()
    }
    return of.Manifest(tuple(clips), folder), stores
