"""Clips whose level stands partly in what is seen and partly in what is heard, in a store each."""

from typing import NamedTuple

import numpy as np

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays

PER_FILM = 40
WIDTHS = {"seen": 6, "heard": 4, "noise": 5}
"""Features of each modality."""


class Corpus(NamedTuple):
    """A manifest of planted clips, and a store of each modality: seen, heard and noise."""

    manifest: of.Manifest
    stores: dict[str, of.Store]

    def dataset(self):
        """Load what is seen and what is heard."""
        return om.load_dataset([self.stores["seen"], self.stores["heard"]], self.manifest)


def planted(folder, weights=(1.6, 1.6), n_films=6):
    """Plant the level of `n_films` films of 40 clips partly in what is seen, partly in what is heard.

    S clips are moved by `weights` along a feature of the two modalities; a third one is noise. The store of
    what is heard is in another order, and lacks every fifth clip.
    """
    generator = np.random.default_rng(0)
    n = n_films * PER_FILM
    is_s = generator.random(n) < 0.4
    clips = []
    for row in range(n):
        film = f"f{row // PER_FILM}"
        level = "S" if is_s[row] else "EN"
        clips.append(of.Clip(f"{film}-{row % PER_FILM:02}", film, f"{film}.mp4", level=level))
    arrays = {name: generator.normal(size=(n, width)).astype(np.float32) for name, width in WIDTHS.items()}
    arrays["seen"][:, 0] += weights[0] * is_s
    arrays["heard"][:, 1] += weights[1] * is_s
    rows = {"seen": np.arange(n), "noise": generator.permutation(n)}
    rows["heard"] = generator.permutation([row for row in range(n) if row % 5])
    stores = {}
    for name, order in rows.items():
        movie_of = {clips[row].clip_id: clips[row].movie for row in order}
        path = seal_arrays(folder / name, movie_of, {name: {"pooled": arrays[name][order]}})
        stores[name] = of.open_store(path)
    return Corpus(of.Manifest(tuple(clips), folder), stores)
