"""Combine stores and a manifest into features, labels and movies of the same clips."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.io import sha256_of
from obygaze_features.manifest import Manifest
from obygaze_features.same_pictures import GROUP as SIGNATURE
from obygaze_features.same_pictures import has_signatures
from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store
from obygaze_models.dataset.dataset import Dataset, Exclusion, Modality
from obygaze_models.dataset.features import (
    Features,
    Pool,
    find_array,
    find_group,
    layer_groups,
    lengths_of,
    read_features,
    unusable,
)
from obygaze_models.errors import DatasetError
from obygaze_models.protocol.targets import Labels, experts_of, labels_of
from obygaze_models.reduction import reduce_tokens

MOST_WINDOWS = 32
"""Windows of a bag that models of frames read, evenly spaced; vectors are the maximum over all."""


@checked
def load_dataset(
    store: Store | Sequence[Store],
    manifest: Manifest,
    *,
    backbone: str | Sequence[str | None] | None = None,
    features: Features | None = None,
    pool: Pool = "max",
    unlabelled: bool = False,
    reduce: str | None = None,
    progress: Progress | bool | None = None,
) -> Dataset:
    """Load the features and labels of every annotated clip of a manifest.

    Parameters
    ----------
    store : Store or sequence of Store
        Several are the modalities of one dataset: every clip that one of them has is a row, whose features
        of a modality that it lacks are NaN. For models of them see `fused`.
    manifest : Manifest
        Its levels are taken as they are: apply a label policy before.
    backbone : str, optional
        The store's group; may be left out when there is one only. Of several stores one each.
    features : {"pooled", "frames", "tokens"}, optional
        The array to make vectors of; by default the first of them that is stored.
    pool : {"max", "mean", "first", "last"}
        How frames or tokens become one vector. The maximum of each feature over time is what the paper's
        adaptive max pooling to length 1 takes.
    unlabelled : bool
        Whether to load the clips that are not annotated as well: a benchmark's test clips have no labels.
    reduce : str, optional
        Rule to reduce tokens by, for models that read frames or tokens: ``mean``, ``top:K``,
        ``project:SIZE:SEED``, ``mean+project:SIZE:SEED``. The tokens are read once; the result is kept beside
        the store (`obygaze_models.reduction`).
    progress : callable or bool, optional
        Called with the numbers of clips whose tokens are reduced and of all; or whether to show a bar, by
        default in a notebook alone.

    Raises
    ------
    DatasetError
        A backbone or array that the store lacks or that must be named; no annotated clip with features.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> data.X.shape
    (95, 8)
    >>> [(one.clip_id, one.reason) for one in data.excluded]
    [('film5-c015', 'failed: the file is empty (0 bytes)')]
    """
    if not isinstance(store, Store):
        names = [backbone] * len(store) if backbone is None or isinstance(backbone, str) else list(backbone)
        if len(names) != len(store):
            raise DatasetError(f"{len(store)} stores and {len(names)} backbones: name one for each")
        parts = []
        for one_store, name in zip(store, names, strict=True):
            parts.append(
                load_dataset(
                    one_store, manifest, backbone=name, features=features, pool=pool, unlabelled=unlabelled
                )
            )
        return join_modalities([one_store.name for one_store in store], parts, manifest)
    if backbone is not None and not isinstance(backbone, str):
        raise DatasetError("one store, and several backbones: give the store once for each")
    group = find_group(store, backbone)
    array = find_array(store, group, features)
    labels = labels_of(manifest)
    annotated = annotated_clips(labels, manifest)
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    loaded = []
    rows = []
    excluded = []
    for index in np.flatnonzero(annotated | unlabelled).tolist():
        clip_id = str(labels.clip_ids[index])
        row = row_of.get(clip_id)
        reason = "not in the store" if row is None else unusable(store, group, row)
        if row is not None and reason is None:
            loaded.append(index)
            rows.append(row)
        else:
            excluded.append(Exclusion(clip_id, str(labels.levels[index]), str(reason)))
    if not loaded:
        raise DatasetError(_nothing_left(store, manifest, excluded))
    lengths = lengths_of(store, rows)
    return Dataset(
        X=read_features(group, array, pool, np.array(rows, dtype=np.intp)),
        labels=labels.take(np.array(loaded, dtype=np.intp)),
        pool="as stored" if array == "pooled" else pool,
        **_source(store, group, manifest, array),
        excluded=tuple(excluded),
        counts={
            **counts_of(labels, annotated),
            "with_features": len(loaded),
            "partial": sum(store.clips[row].status == "partial" for row in rows),
            "in_store_only": len(row_of.keys() - set(labels.clip_ids.tolist())),
        },
        group=group,
        reduction=None if reduce is None else reduce_tokens(store, group.name, reduce, progress=progress),
        seconds=lengths,
    )


@checked
def load_layers(store: Store, manifest: Manifest, *, backbone: str | None = None) -> Dataset:
    """Load all layers of a network that a store has, side by side, with the labels of a manifest.

    Parameters
    ----------
    store : Store
        With groups of layers, such as ``xclip.8``: extracted with ``--layers``.
    manifest : Manifest
    backbone : str, optional
        The network's own group; may be left out when the store has one network.

    Returns
    -------
    Dataset
        Every layer is a modality, whose name is its number; its dataset is in ``parts``.

    Raises
    ------
    DatasetError
        The store has no layers of the network, or of several networks and none is named.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> try:
    ...     om.load_layers(of.open_store("stores/films"), of.read_manifest("films.csv"))
    ... except om.ObygazeError as error:
    ...     print(error)
    store films has no layers of any backbone: extract with --layers
    """
    groups = layer_groups(store, backbone)
    parts = [load_dataset(store, manifest, backbone=name) for name in groups.values()]
    modalities = []
    start = 0
    for number, part in zip(groups, parts, strict=True):
        made = {} if part.group is None else part.group.provenance
        stop = start + part.X.shape[1]
        own = (part.store, part.backbone, part.features, part.pool)
        modalities.append(Modality(str(number), *own, start, stop, 0, made))
        start = stop
    owner = str(modalities[0].provenance["beside"])
    return replace(
        parts[0],
        X=np.concatenate([part.X for part in parts], axis=1),
        backbone=owner,
        label=f"layers of {owner}",
        group=None,
        modalities=tuple(modalities),
        parts=tuple(parts),
    )


def annotated_clips(labels: Labels, manifest: Manifest) -> NDArray[np.bool_]:
    """Mark the clips [N] of a level of some task, or of a rank on some scale."""
    annotated = np.isin(labels.levels, np.array(manifest.codebook.labels, dtype=str))
    for ranks in labels.scales.values():
        annotated |= ranks >= 0
    return annotated


def counts_of(labels: Labels, annotated: NDArray[np.bool_]) -> dict[str, int]:
    """Count a manifest's clips, and those without a level and of one in no task."""
    return {
        "manifest": len(labels.clip_ids),
        "unlabelled": int((~annotated & (labels.levels == "")).sum()),
        "in_no_task": int((~annotated & (labels.levels != "")).sum()),
    }


def _source(store: Store, group: Group, manifest: Manifest, array: Features) -> dict[str, Any]:
    """Say of a dataset whose features and labels it has."""
    return {
        "codebook": manifest.codebook,
        "backbone": group.name,
        "features": array,
        "store": store.fingerprint,
        "label": group.name,
        "untrained": group.provenance.get("untrained") is True,
        "signatures": store[SIGNATURE] if has_signatures(store) and "://" not in store.where else None,
    }


@checked
def join_modalities(names: Sequence[str], parts: Sequence[Dataset], manifest: Manifest) -> Dataset:
    """Make one dataset of the same manifest's clips in several stores, of these names, or backbones.

    Raises
    ------
    DatasetError
        Two are the same.
    """
    if len({(part.store, part.backbone) for part in parts}) < len(parts):
        raise DatasetError("the same backbone of the same store is given twice")
    labels = labels_of(manifest)
    clip_ids = {clip_id for part in parts for clip_id in part.row_of}
    index = np.flatnonzero(np.isin(labels.clip_ids, sorted(clip_ids)))
    rows = {clip_id: row for row, clip_id in enumerate(labels.clip_ids[index].tolist())}
    X = np.full((len(index), sum(part.X.shape[1] for part in parts)), np.nan, np.float32)
    backbones = [part.backbone for part in parts]
    modalities = []
    start = 0
    for name, part in zip(names, parts, strict=True):
        stop = start + part.X.shape[1]
        X[[rows[clip_id] for clip_id in part.clip_ids.tolist()], start:stop] = part.X
        twice = backbones.count(part.backbone) > 1
        label = f"{name}-{part.backbone}" if twice else part.backbone
        missing = len(index) - len(part)
        source = (part.store, part.backbone, part.features, part.pool)
        provenance = {} if part.group is None else part.group.provenance
        modalities.append(Modality(label, *source, start, stop, missing, provenance))
        start = stop
    first = parts[0]
    title = " + ".join(modality.name for modality in modalities)
    labels = labels.take(index)
    # What no picture shows another modality may convey: concepts of all kinds can be learnt.
    every = np.column_stack([labels.present, *labels.not_visual.values()])
    labels = replace(labels, present=every, concepts=(*labels.concepts, *labels.not_visual))
    return Dataset(
        X=X,
        labels=labels,
        codebook=first.codebook,
        backbone=title,
        features=first.features,
        pool=first.pool,
        store=sha256_of("\n".join(part.store for part in parts).encode("ascii")),
        label=title,
        untrained=any(part.untrained for part in parts),
        excluded=_excluded(parts, rows),
        counts={
            **first.counts,
            "with_features": len(index),
            "partial": max(p.counts["partial"] for p in parts),
        },
        modalities=tuple(modalities),
        seconds=_joined_lengths(parts, rows),
        parts=tuple(parts),
    )


def _joined_lengths(parts: Sequence[Dataset], rows: Mapping[str, int]) -> NDArray[np.float64] | None:
    """Return the lengths of the clips of several stores [N]; None where a store does not tell them."""
    lengths = np.full(len(rows), np.nan)
    for part in parts:
        if part.seconds is None:
            return None
        lengths[[rows[clip_id] for clip_id in part.clip_ids.tolist()]] = part.seconds
    return lengths


@checked
def load_datasets(stores: Sequence[Store], manifest: Manifest) -> tuple[Dataset, ...]:
    """Load the features of every backbone of every store, for the clips that all of them have.

    Raises
    ------
    DatasetError
        A store has none of the clips, the stores have none in common, or the same store is given twice.
    """
    loaded = [
        (store, load_dataset(store, manifest, backbone=name)) for store in stores for name in store.names
    ]
    sources = [(data.store, data.backbone) for _, data in loaded]
    if len(set(sources)) < len(sources):
        raise DatasetError(f"store {loaded[-1][0].name} is given twice")
    common = set.intersection(*(set(data.clip_ids.tolist()) for _, data in loaded))
    if not common:
        raise DatasetError(f"the {len(loaded)} backbones have no clip in common: are they of one manifest?")
    excluded = _excluded([data for _, data in loaded], common)
    names = [data.backbone for _, data in loaded]
    return tuple(
        replace(
            data.take(np.flatnonzero(np.isin(data.clip_ids, sorted(common)))),
            label=f"{store.name}-{data.backbone}" if names.count(data.backbone) > 1 else data.backbone,
            excluded=excluded,
        )
        for store, data in loaded
    )


def _excluded(parts: Sequence[Dataset], clip_ids: Container[str]) -> tuple[Exclusion, ...]:
    """List the clips that a part excludes and that are not kept, with the first part's reason, by name."""
    reasons = {exclusion.clip_id: exclusion for part in reversed(parts) for exclusion in part.excluded}
    return tuple(reasons[name] for name in sorted(reasons) if name not in clip_ids)


def _nothing_left(store: Store, manifest: Manifest, excluded: Sequence[Exclusion]) -> str:
    """Explain why no clip is left: mostly a wrong pair of files or a manifest without levels."""
    if not excluded:
        return (
            f"the manifest has no clip of level {', '.join(manifest.codebook.labels)} "
            f"among its {len(manifest)}: are its levels filled in?"
        )
    first = excluded[0]
    return (
        f"none of the {len(excluded)} clips of the manifest to use has features in store {store.name} "
        f"(the first: {first.clip_id}, {first.reason}): is this the store made from this manifest?"
    )


# --- bags of windows: features of films that were cut into windows once, for any spans of them
# ---------------------------------------------------------------------------
@checked
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
    loaded = []
    bags = []
    lengths = []
    excluded = []
    for index in np.flatnonzero(annotated).tolist():
        clip = clip_of[str(labels.clip_ids[index])]
        if clip.start_s is None or clip.end_s is None:
            raise DatasetError(f"clip {clip.clip_id} has no start and end: a bag of windows needs both")
        film = slice(movies.searchsorted(clip.movie), movies.searchsorted(clip.movie, "right"))
        first, last = film.start + middles[film].searchsorted((clip.start_s, clip.end_s))
        if first < last:
            loaded.append(index)
            bags.append(np.arange(first, last))
            lengths.append(clip.end_s - clip.start_s)
        else:
            level = str(labels.levels[index])
            excluded.append(Exclusion(clip.clip_id, level, "no window of the store lies in it"))
    if not loaded:
        raise DatasetError(f"no annotated clip of the manifest holds the middle of a window of {store.name}")
    longest = min(max(map(len, bags)), MOST_WINDOWS)
    frames = np.full((len(bags), longest, vectors.shape[1]), np.nan, np.float32)
    for place, bag in enumerate(bags):
        chosen = bag[np.linspace(0, len(bag) - 1, min(len(bag), longest)).round().astype(np.intp)]
        frames[place, : len(chosen)] = vectors[chosen]
    partial = np.array([store.clips[row].status == "partial" for row in rows.tolist()])
    return Dataset(
        X=np.stack([vectors[bag].max(axis=0) for bag in bags]),
        labels=labels.take(np.array(loaded, dtype=np.intp)),
        pool="max",
        **_source(store, group, manifest, array),
        excluded=tuple(excluded),
        counts={
            **counts_of(labels, annotated),
            "with_features": len(loaded),
            "partial": sum(bool(partial[bag].any()) for bag in bags),
            "in_store_only": len(rows) - len(np.unique(np.concatenate(bags))),
        },
        seconds=np.array(lengths),
        bags=frames,
    )


class _Windows(NamedTuple):
    """The windows with features, by movie and time: rows, movies and middles in seconds [N]."""

    rows: NDArray[np.intp]
    movies: NDArray[np.str_]
    middles: NDArray[np.float64]


def _windows(store: Store, group: Group) -> _Windows:
    """List the windows of a store that have features.

    Raises
    ------
    DatasetError
        A window has no times, or none has features.
    """
    windows = []
    for row, clip in enumerate(store.clips):
        if unusable(store, group, row) is None:
            if clip.start_s is None or clip.end_s is None:
                raise DatasetError(f"clip {clip.clip_id} of store {store.name} has no times: it is no window")
            windows.append((clip.movie, (clip.start_s + clip.end_s) / 2, row))
    if not windows:
        raise DatasetError(f"store {store.name} has no clip with features of {group.name}")
    movies, middles, rows = zip(*sorted(windows), strict=True)
    return _Windows(np.array(rows, np.intp), np.array(movies, str), np.array(middles))
