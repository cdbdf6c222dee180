"""Load clips as bags of windows: features of films that were cut into windows once, for any spans of them."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_features.store import Group, Store
from obygaze_models.dataset.dataset import Dataset, Exclusion
from obygaze_models.dataset.features import find_array, find_group, read_features, unusable
from obygaze_models.dataset.loading import annotated_clips, counts_of
from obygaze_models.errors import DatasetError
from obygaze_models.protocol.targets import experts_of, labels_of

MOST_WINDOWS = 32
"""Windows of a bag that models of frames read, evenly spaced; vectors are the maximum over all."""


def load_bags(store: Store, manifest: Manifest, *, backbone: str | None = None) -> Dataset:
    """Load the labels of a manifest's clips, and of each the windows whose middles lie in it.

    Segments that annotators drew for themselves are of these annotators alone, in tests as well.

    This is deep multiple instance learning's view of a clip (Ilse et al., ICML 2018): a bag with a label, of
    windows without any. Models of vectors read the maximum over a bag, models of frames its windows.

    Parameters
    ----------
    store : Store
        Its clips are windows of films, with times.
    manifest : Manifest
        Its clips are spans of the same movies, with times: segments, or once for each annotator.
    backbone : str, optional
        The store's group; may be left out when there is one only.

    Raises
    ------
    DatasetError
        Windows or clips have no times, or no annotated clip holds a window.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> store, manifest = of.open_store("stores/films"), of.read_manifest("films.csv")
    >>> om.load_bags(store, manifest).read("frames").shape
    (95, 1, 8)
    """
    group = find_group(store, backbone)
    array = find_array(store, group, None)
    rows, movies, middles = _windows(store, group)
    vectors = read_features(group, array, "max", rows)
    labels = labels_of(manifest)
    if not labels.experts and len({clip.annotator for clip in manifest}) > 1:
        labels = replace(labels, experts=experts_of(manifest, manifest))
    clip_of = {clip.clip_id: clip for clip in manifest}
    annotated = annotated_clips(labels, manifest)
    kept, bags, lengths, excluded = [], [], [], []
    for index in np.flatnonzero(annotated).tolist():
        clip = clip_of[str(labels.clip_ids[index])]
        if clip.start_s is None or clip.end_s is None:
            raise DatasetError(f"clip {clip.clip_id} has no start and end: a bag of windows needs both")
        film = slice(movies.searchsorted(clip.movie), movies.searchsorted(clip.movie, "right"))
        first, last = film.start + middles[film].searchsorted((clip.start_s, clip.end_s))
        if first < last:
            kept.append(index)
            bags.append(np.arange(first, last))
            lengths.append(clip.end_s - clip.start_s)
        else:
            level = str(labels.levels[index])
            excluded.append(Exclusion(clip.clip_id, level, "no window of the store lies in it"))
    if not kept:
        raise DatasetError(f"no annotated clip of the manifest holds the middle of a window of {store.name}")
    longest = min(max(map(len, bags)), MOST_WINDOWS)
    frames = np.full((len(bags), longest, vectors.shape[1]), np.nan, np.float32)
    for place, bag in enumerate(bags):
        chosen = bag[np.linspace(0, len(bag) - 1, min(len(bag), longest)).round().astype(np.intp)]
        frames[place, : len(chosen)] = vectors[chosen]
    partial = np.array([store.clips[row].status == "partial" for row in rows.tolist()])
    return Dataset(
        X=np.stack([vectors[bag].max(axis=0) for bag in bags]),
        labels=labels.take(np.array(kept, dtype=np.intp)),
        codebook=manifest.codebook,
        backbone=group.name,
        features=array,
        pool="max",
        store=store.fingerprint,
        label=group.name,
        untrained=group.provenance.get("untrained") is True,
        excluded=tuple(excluded),
        counts={
            **counts_of(labels, annotated),
            "with_features": len(kept),
            "partial": sum(bool(partial[bag].any()) for bag in bags),
            "in_store_only": len(rows) - len(np.unique(np.concatenate(bags))),
        },
        seconds=np.array(lengths),
        bags=frames,
    )


def _windows(store: Store, group: Group) -> tuple[NDArray[np.intp], NDArray[np.str_], NDArray[np.float64]]:
    """List the rows [N] of windows with features by movie and time, their movies and their middles.

    Raises
    ------
    DatasetError
        A window has no times, or none has features.
    """
    found = []
    for row, clip in enumerate(store.clips):
        if unusable(store, group, row) is None:
            if clip.start_s is None or clip.end_s is None:
                raise DatasetError(f"clip {clip.clip_id} of store {store.name} has no times: it is no window")
            found.append((clip.movie, (clip.start_s + clip.end_s) / 2, row))
    if not found:
        raise DatasetError(f"store {store.name} has no clip with features of {group.name}")
    movies, middles, rows = zip(*sorted(found), strict=True)
    return np.array(rows, np.intp), np.array(movies, str), np.array(middles)
