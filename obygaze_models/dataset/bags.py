"""Load clips as bags of windows: features of films that were cut into windows once, for any spans of them."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import Manifest
from obygaze_features.store import Group, Store
from obygaze_models.dataset.dataset import Dataset, Exclusion
from obygaze_models.dataset.features import ARRAYS, find_group, read_features, unusable
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
    array = next(name for name in ARRAYS if name in group.arrays)
    middles, windows, rows = _windows(store, group)
    labels = labels_of(manifest)
    if not labels.experts and len({clip.annotator for clip in manifest}) > 1:
        labels = replace(labels, experts=experts_of(manifest, manifest))
    span_of = {clip.clip_id: (clip.movie, clip.start_s, clip.end_s) for clip in manifest}
    annotated = annotated_clips(labels, manifest)
    vectors = read_features(group, array, "max", rows)
    kept, bags, excluded = [], [], []
    for index in np.flatnonzero(annotated).tolist():
        clip_id = str(labels.clip_ids[index])
        movie, start, end = span_of[clip_id]
        if start is None or end is None:
            raise DatasetError(f"clip {clip_id} has no start and end: a bag of windows needs both")
        first, last = np.searchsorted(middles.get(movie, []), (start, end))
        if first < last:
            kept.append(index)
            bags.append(windows[movie][first:last])
        else:
            excluded.append(
                Exclusion(clip_id, str(labels.levels[index]), "no window of the store lies in it")
            )
    if not kept:
        raise DatasetError(f"no annotated clip of the manifest holds the middle of a window of {store.name}")
    longest = min(max(map(len, bags)), MOST_WINDOWS)
    frames = np.full((len(bags), longest, vectors.shape[1]), np.nan, np.float32)
    for place, bag in enumerate(bags):
        chosen = bag[np.linspace(0, len(bag) - 1, min(len(bag), longest)).round().astype(np.intp)]
        frames[place, : len(chosen)] = vectors[chosen]
    partial = np.array([store.clips[row].status == "partial" for row in rows.tolist()])
    known = labels.take(np.array(kept, dtype=np.intp))
    spans = [span_of[clip_id][1:] for clip_id in known.clip_ids.tolist()]
    return Dataset(
        X=np.stack([vectors[bag].max(axis=0) for bag in bags]),
        labels=known,
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
            "in_store_only": len(rows) - len(set(np.concatenate(bags).tolist())),
        },
        seconds=np.diff(np.array(spans, np.float64), axis=1)[:, 0],
        bags=frames,
    )


def _windows(
    store: Store, group: Group
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.intp]], NDArray[np.intp]]:
    """Find the middles of each movie's windows with features, in time order, and their places in these rows.

    Raises
    ------
    DatasetError
        A window has no times.
    """
    rows = [row for row in range(len(store.clips)) if unusable(store, group, row) is None]
    found: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for place, clip in enumerate(store.clips[row] for row in rows):
        if clip.start_s is None or clip.end_s is None:
            raise DatasetError(f"clip {clip.clip_id} of store {store.name} has no times: it is no window")
        found[clip.movie].append(((clip.start_s + clip.end_s) / 2, place))
    middles, places = {}, {}
    for movie, windows in found.items():
        times, own = zip(*sorted(windows), strict=True)
        middles[movie], places[movie] = np.array(times), np.array(own, np.intp)
    return middles, places, np.array(rows, np.intp)
