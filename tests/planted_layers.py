"""Clips of films whose level stands in one layer of a network, and half as plainly in its neighbours."""

import numpy as np
from scipy.stats import norm

import obygaze_features as of
from obygaze_features.store import PlannedClip, Stage, seal, staging_path
from obygaze_features.store.records import ClipFeatures, ClipResult
from obygaze_features.store.testing import toy_group

WIDTH = 8
NETWORK = "net"


def planted_vectors(rng, movies, labels, *, n_layers, best, auc, width=WIDTH):
    """Draw the vectors of each layer [L, N, D].

    Layers share half of their variance, up to a rotation, and films differ in all directions.

    Parameters
    ----------
    best : int
        Place of the layer in which the labels stand, from 0.
    auc : float
        Of the direction that is planted in it; .5 plants none.
    """
    n = len(labels)
    effect = np.sqrt(2) * norm.ppf(auc)
    _, film = np.unique(movies, return_inverse=True)
    common = rng.normal(size=(n, width))
    layers = []
    for layer in range(n_layers):
        rotation, _ = np.linalg.qr(rng.normal(size=(width, width)))
        own = np.sqrt(0.5) * (common @ rotation + rng.normal(size=(n, width)))
        direction = rng.normal(size=width)
        direction /= np.linalg.norm(direction)
        share = {0: 1.0, 1: 0.5}.get(abs(layer - best), 0.0)
        own += np.outer((labels - 0.5) * effect * share, direction)
        own += rng.normal(0, 0.3, size=(film.max() + 1, width))[film]
        layers.append(own)
    return np.array(layers)


def planted_store(folder, *, n_films=8, n_clips=24, n_layers=6, best=3, auc=0.8, seed=0):
    """Seal a store of a network with layers 1 to `n_layers`, and make its manifest; layer `best` knows."""
    rng = np.random.default_rng(seed)
    movies = np.repeat([f"film{number}" for number in range(n_films)], n_clips)
    labels = np.tile(np.arange(n_clips) % 2, n_films)
    layers = planted_vectors(rng, movies, labels, n_layers=n_layers, best=best - 1, auc=auc)
    groups = {NETWORK: rng.normal(size=(len(labels), WIDTH))}
    specs = [toy_group(NETWORK, {"pooled": groups[NETWORK].astype(np.float32)})]
    for number, vectors in enumerate(layers, start=1):
        name = f"{NETWORK}.{number}"
        groups[name] = vectors
        told = {"beside": NETWORK, "layer": str(number), "norm": None}
        specs.append(toy_group(name, {"pooled": vectors.astype(np.float32)}, **told))
    clips = []
    for row, (movie, label) in enumerate(zip(movies, labels, strict=True)):
        clips.append(of.Clip(f"c{row:04d}", str(movie), f"{movie}.mp4", level="S" if label else "EN"))
    planned = [PlannedClip(clip.clip_id, clip.movie, start_s=None, end_s=None) for clip in clips]
    stage = Stage.open(staging_path(folder / "films"), planned, specs, {"name": "planted"})
    times = np.zeros(2), np.zeros(2, np.int64)
    with stage.writer() as writer:
        for row, clip in enumerate(clips):
            features = {}
            for name, vectors in groups.items():
                features[name] = ClipFeatures(*times, {"pooled": vectors[row].astype(np.float32)})
            writer.commit([ClipResult(clip.clip_id, "ok", "", {}, features)])
    store = seal(stage.path, folder / "films", version="1.0.0", licence="CC0-1.0", citation="")
    return of.Manifest(tuple(clips), folder), of.open_store(store)
