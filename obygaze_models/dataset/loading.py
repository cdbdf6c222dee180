"""Load datasets: features of stores and labels of a manifest, for the same clips."""

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
from obygaze_features.text import counted, is_address
from obygaze_models.dataset.dataset import Dataset, Exclusion, Modality
from obygaze_models.dataset.features import (
    Features,
    Pool,
    find_array,
    find_group,
    layer_groups,
    lengths_of,
    read_features,
    why_unusable,
)
from obygaze_models.errors import DatasetError
from obygaze_models.protocol.targets import Labels, labels_by_annotator, labels_of, labels_of_people
from obygaze_models.reduction import reduce_tokens

MAX_WINDOWS = 32
"""Models of frames read at most so many windows of a bag, evenly spaced; vectors are the maximum over all."""


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
        Several stores are the modalities of one dataset. Every clip that some store has is a row; features
        of modalities that the clip lacks are NaN. `fused` makes models of several modalities.
    manifest : Manifest
        Its levels are used as they are: apply a label policy before.
    backbone : str, optional
        The store's group; may be left out if there is only one. For several stores a sequence, one each.
    features : {"pooled", "frames", "tokens"}, optional
        The array to make vectors of; by default the first of them that is stored.
    pool : {"max", "mean", "first", "last"}
        How frames or tokens become one vector. The maximum of each feature over time equals the paper's
        adaptive max pooling to length 1.
    unlabelled : bool
        Whether clips that are not annotated are loaded too: a benchmark's test clips have no labels.
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
        The store lacks the backbone or array, or it must be named; or no annotated clip has features.

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
        return _load_modalities(
            store, manifest, backbone, features=features, pool=pool, unlabelled=unlabelled
        )
    if backbone is not None and not isinstance(backbone, str):
        raise DatasetError("one store, and several backbones: give the store once for each")

    group = find_group(store, backbone)
    array = find_array(store, group, features)
    labels = labels_of(manifest)
    is_annotated = annotated_clips(labels, manifest)
    is_wanted = np.ones(len(is_annotated), bool) if unlabelled else is_annotated
    usable = _usable_clips(store, group, labels, is_wanted)
    if not len(usable.rows):
        raise DatasetError(_explain_no_clips(store, manifest, usable.excluded))

    partial = frozenset(
        store.clips[row].clip_id for row in usable.rows.tolist() if store.clips[row].status == "partial"
    )
    n_in_store_only = len(set(group.clip_ids) - set(labels.clip_ids.tolist()))
    X = read_features(group, array, pool, usable.rows)
    reduction = None
    if reduce is not None:
        reduction = reduce_tokens(store, group.name, reduce, progress=progress)

    return Dataset(
        X=X,
        labels=labels.take(usable.indices),
        pool="as stored" if array == "pooled" else pool,
        **_source_fields(store, group, manifest, array),
        excluded=usable.excluded,
        counts={
            **counts_of(labels, is_annotated),
            "with_features": len(usable.rows),
            "partial": len(partial),
            "in_store_only": n_in_store_only,
        },
        partial=partial,
        group=group,
        reduction=reduction,
        seconds=lengths_of(store, usable.rows.tolist()),
    )


def _load_modalities(
    stores: Sequence[Store],
    manifest: Manifest,
    backbone: str | Sequence[str | None] | None,
    *,
    features: Features | None,
    pool: Pool,
    unlabelled: bool,
) -> Dataset:
    """Load a dataset from each of several stores, and join them: each store is a modality of the clips.

    `backbone` is one for each store, or one for all. The other parameters, of which array is read and how
    frames are pooled, are those of `load_dataset`.
    """
    _refuse_no_store(stores)
    parts = []
    for store, name in zip(stores, _backbone_of_each(stores, backbone), strict=True):
        part = load_dataset(
            store, manifest, backbone=name, features=features, pool=pool, unlabelled=unlabelled
        )
        parts.append(part)
    return join_modalities([store.name for store in stores], parts, manifest)


def _refuse_no_store(stores: Sequence[Store]) -> None:
    """Raise if a list of stores is empty, as one of a folder in which none was found."""
    if not stores:
        raise DatasetError("no store is given: expected one or more, as in [open_store(PATH)]")


def _backbone_of_each(
    stores: Sequence[Store], backbone: str | Sequence[str | None] | None
) -> list[str | None]:
    """Return the backbone to load from each of several stores; None for a store's only one.

    `backbone` is one for each store, or one name (or None) for all.
    """
    if backbone is None or isinstance(backbone, str):
        return [backbone] * len(stores)
    names = list(backbone)
    if len(names) != len(stores):
        raise DatasetError(
            f"{counted(len(stores), 'store')} and {counted(len(names), 'backbone')}: name one for each"
        )
    return names


class _Usable(NamedTuple):
    """The clips of a manifest that have features in a store.

    Attributes
    ----------
    indices : ndarray of int, shape [n]
        Their indices among the labels.
    rows : ndarray of int, shape [n]
        Their rows in the store.
    excluded : tuple of Exclusion
        The clips that have none.
    """

    indices: NDArray[np.intp]
    rows: NDArray[np.intp]
    excluded: tuple[Exclusion, ...]


def _usable_clips(store: Store, group: Group, labels: Labels, is_wanted: NDArray[np.bool_]) -> _Usable:
    """Divide clips into those that have features in a store and those that have none, with the reason.

    `is_wanted` [N] marks the clips among the labels that are looked for.
    """
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    indices = []
    rows = []
    excluded = []
    for index in np.flatnonzero(is_wanted).tolist():
        clip_id = str(labels.clip_ids[index])
        level = str(labels.levels[index])
        row = row_of.get(clip_id)
        if row is None:
            excluded.append(Exclusion(clip_id, level, "not in the store"))
            continue

        reason = why_unusable(store, group, row)
        if reason is not None:
            excluded.append(Exclusion(clip_id, level, reason))
            continue

        indices.append(index)
        rows.append(row)

    return _Usable(np.array(indices, dtype=np.intp), np.array(rows, dtype=np.intp), tuple(excluded))


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
    groups = layer_groups(store, backbone)  # number of a layer -> its group
    parts = [load_dataset(store, manifest, backbone=name) for name in groups.values()]

    modalities = []
    start = 0
    for number, part in zip(groups, parts, strict=True):
        # Every layer has the same clips, so that none is missing.
        modality = _describe_modality(str(number), part, start, n_missing=0)
        modalities.append(modality)
        start = modality.stop

    # The group of a layer states the group of its network under "beside".
    network = str(modalities[0].provenance["beside"])
    return replace(
        parts[0],
        X=np.concatenate([part.X for part in parts], axis=1),
        backbone=network,
        label=f"layers of {network}",
        group=None,
        modalities=tuple(modalities),
        parts=tuple(parts),
    )


def _describe_modality(name: str, part: Dataset, start: int, n_missing: int) -> Modality:
    """Describe a dataset as one modality of a joined one, in which its columns begin at `start`.

    `n_missing` is the number of clips of the joined dataset that lack the modality.
    """
    return Modality(
        name=name,
        store=part.store,
        backbone=part.backbone,
        features=part.features,
        pool=part.pool,
        start=start,
        stop=start + part.X.shape[1],
        missing=n_missing,
        provenance={} if part.group is None else part.group.provenance,
    )


def annotated_clips(labels: Labels, manifest: Manifest) -> NDArray[np.bool_]:
    """Mark the clips [N] that are annotated: with a level that some task uses, or a rank on some scale."""
    # `Codebook.labels` are the levels that tasks use.
    is_annotated = np.isin(labels.levels, np.array(manifest.codebook.labels, dtype=str))
    for ranks in labels.scales.values():
        is_annotated |= ranks >= 0
    return is_annotated


def counts_of(labels: Labels, is_annotated: NDArray[np.bool_]) -> dict[str, int]:
    """Count a manifest's clips: all, those without a level, and those with a level that is in no task.

    `is_annotated` [N] marks the clips with a level of some task, or a rank on a scale.
    """
    has_level = labels.levels != ""
    return {
        "manifest": len(labels.clip_ids),
        "unlabelled": int((~is_annotated & ~has_level).sum()),
        "in_no_task": int((~is_annotated & has_level).sum()),
    }


def _source_fields(store: Store, group: Group, manifest: Manifest, array: Features) -> dict[str, Any]:
    """Collect the fields of a `Dataset` that describe its store, group, array and codebook."""
    # Signatures tell films apart by their pictures. They are not read from a server: they have 40 kB a clip.
    signatures = None
    is_on_server = is_address(store.where)
    if has_signatures(store) and not is_on_server:
        signatures = store[SIGNATURE]
    return {
        "codebook": manifest.codebook,
        "backbone": group.name,
        "features": array,
        "store": store.fingerprint,
        "label": group.name,
        "untrained": group.provenance.get("untrained") is True,
        "signatures": signatures,
    }


@checked
def join_modalities(names: Sequence[str], parts: Sequence[Dataset], manifest: Manifest) -> Dataset:
    """Join the datasets of several stores or backbones into one, with their features side by side.

    The joined dataset has all clips that are in one of them; features that a clip lacks are NaN.

    Parameters
    ----------
    names : sequence of str
        Name of each store.
    parts : sequence of Dataset
        The dataset of each.
    manifest : Manifest

    Raises
    ------
    DatasetError
        Two datasets are the same backbone of the same store.
    """
    if len({(part.store, part.backbone) for part in parts}) < len(parts):
        raise DatasetError("the same backbone of the same store is given twice")

    # The clips of the joined dataset: those in any part.
    labels = _labels_of_parts(parts, manifest)
    row_of = {clip_id: row for row, clip_id in enumerate(labels.clip_ids.tolist())}

    # Its columns: those of the first part, then those of the second, and so on.
    modalities = _describe_modalities(_unambiguous_names(names, parts), parts, n_clips=len(row_of))
    X = _join_features(modalities, parts, row_of)
    title = " + ".join(modality.name for modality in modalities)
    fingerprints_of_stores = "\n".join(part.store for part in parts)

    # Its counts. A clip is partial if it is so in any part, as in predictions; it may be so in several. The
    # first part counts the clips of the manifest, which is the same for all parts.
    first = parts[0]
    partial = frozenset[str]().union(*(part.partial for part in parts))
    counts = {
        **first.counts,
        "with_features": len(row_of),
        "partial": len(partial),
        **_count_in_stores_only(parts, manifest),
    }

    # Which array of the store was read (`features`) and how its frames became one vector (`pool`) may differ
    # from part to part. A dataset holds one value of each: the first part's. `modalities` holds those of all.
    return Dataset(
        X=X,
        labels=labels,
        codebook=first.codebook,
        backbone=title,
        features=first.features,
        pool=first.pool,
        store=sha256_of(fingerprints_of_stores.encode("ascii")),
        label=title,
        untrained=any(part.untrained for part in parts),
        excluded=_collect_exclusions(parts, clip_ids=row_of),
        counts=counts,
        partial=partial,
        modalities=modalities,
        seconds=_join_lengths(parts, row_of),
        parts=tuple(parts),
    )


def _count_in_stores_only(parts: Sequence[Dataset], manifest: Manifest) -> dict[str, int]:
    """Count the clips of the parts' stores that are not in the manifest, each once, as ``in_store_only``.

    The result is empty, and the first part's own count is kept, if a part has no store or if its rows are
    windows (bags), as windows are no clips of a manifest.
    """
    stored_clips = set[str]()
    for part in parts:
        if part.group is None or part.bags is not None:
            return {}
        stored_clips.update(part.group.clip_ids)
    clips_of_manifest = {clip.clip_id for clip in manifest}
    return {"in_store_only": len(stored_clips - clips_of_manifest)}


def _describe_modalities(
    names: Sequence[str], parts: Sequence[Dataset], n_clips: int
) -> tuple[Modality, ...]:
    """Describe datasets as modalities of a joined one with `n_clips` clips, their columns side by side."""
    modalities = []
    start = 0
    for name, part in zip(names, parts, strict=True):
        modality = _describe_modality(name, part, start, n_missing=n_clips - len(part))
        modalities.append(modality)
        start = modality.stop
    return tuple(modalities)


def _join_features(
    modalities: Sequence[Modality], parts: Sequence[Dataset], row_of: Mapping[str, int]
) -> NDArray[np.float32]:
    """Join the features of several datasets side by side, [N, D], with NaN where a clip lacks them.

    `row_of` is the row of each clip in the result.
    """
    X = np.full((len(row_of), modalities[-1].stop), np.nan, np.float32)
    for modality, part in zip(modalities, parts, strict=True):
        rows = [row_of[clip_id] for clip_id in part.clip_ids.tolist()]
        X[rows, modality.start : modality.stop] = part.X
    return X


def _labels_of_parts(parts: Sequence[Dataset], manifest: Manifest) -> Labels:
    """Return the labels of the clips that are in any of the datasets, in the manifest's order.

    Concepts that are not visual are moved to the visual ones, so that all can be learnt: other modalities may
    convey them.
    """
    clip_ids: set[str] = set()
    for part in parts:
        clip_ids.update(part.row_of)
    labels = labels_of(manifest)
    is_in_a_part = np.isin(labels.clip_ids, sorted(clip_ids))
    labels = labels.take(np.flatnonzero(is_in_a_part))

    all_present = np.column_stack([labels.present, *labels.not_visual.values()])
    return replace(labels, present=all_present, concepts=(*labels.concepts, *labels.not_visual))


def _unambiguous_names(store_names: Sequence[str], datasets: Sequence[Dataset]) -> list[str]:
    """Name each dataset by its backbone, with the store's name before it if stores share the backbone."""
    backbones = [data.backbone for data in datasets]
    names = []
    for store_name, backbone in zip(store_names, backbones, strict=True):
        is_shared = backbones.count(backbone) > 1
        names.append(f"{store_name}-{backbone}" if is_shared else backbone)
    return names


def _join_lengths(parts: Sequence[Dataset], row_of: Mapping[str, int]) -> NDArray[np.float64] | None:
    """Collect the lengths of clips from several datasets, [N]; None if one of these does not know them.

    `row_of` is the row of each clip in the result.
    """
    lengths = np.full(len(row_of), np.nan)
    for part in parts:
        if part.seconds is None:
            return None
        rows = [row_of[clip_id] for clip_id in part.clip_ids.tolist()]
        lengths[rows] = part.seconds
    return lengths


@checked
def load_datasets(stores: Sequence[Store], manifest: Manifest) -> tuple[Dataset, ...]:
    """Load the features of every backbone of every store, for the clips that all of them have.

    Returns
    -------
    tuple of Dataset
        One for each backbone of each store, in this order, of the same clips.

    Raises
    ------
    DatasetError
        A store has none of the manifest's clips; or the stores have no clip in common; or a store is given
        twice.
    """
    _refuse_no_store(stores)
    # One dataset for each backbone, and the name of its store.
    datasets: list[Dataset] = []
    store_names = []
    loaded = set()
    for store in stores:
        for backbone in store.names:
            data = load_dataset(store, manifest, backbone=backbone)
            if (data.store, data.backbone) in loaded:
                raise DatasetError(f"store {store.name} is given twice")
            loaded.add((data.store, data.backbone))
            datasets.append(data)
            store_names.append(store.name)

    common = set(datasets[0].clip_ids.tolist())
    for data in datasets[1:]:
        common.intersection_update(data.clip_ids.tolist())
    if not common:
        raise DatasetError(f"the {len(datasets)} backbones have no clip in common: are they of one manifest?")

    excluded = _collect_exclusions(datasets, common)
    labels = _unambiguous_names(store_names, datasets)
    with_common_clips = []
    for data, label in zip(datasets, labels, strict=True):
        in_common = np.flatnonzero(np.isin(data.clip_ids, sorted(common)))
        partial = data.partial & common
        counts = {**data.counts, "with_features": len(common), "partial": len(partial)}
        with_common = data.take(in_common)
        with_common_clips.append(
            replace(with_common, label=label, excluded=excluded, counts=counts, partial=partial)
        )
    return tuple(with_common_clips)


def _collect_exclusions(parts: Sequence[Dataset], clip_ids: Container[str]) -> tuple[Exclusion, ...]:
    """List the clips that some dataset excludes and that are not among `clip_ids`, sorted by id.

    If several datasets exclude a clip, the reason is that of the first.
    """
    exclusion_of: dict[str, Exclusion] = {}
    for part in parts:
        for exclusion in part.excluded:
            exclusion_of.setdefault(exclusion.clip_id, exclusion)
    excluded_ids = [clip_id for clip_id in sorted(exclusion_of) if clip_id not in clip_ids]
    return tuple(exclusion_of[clip_id] for clip_id in excluded_ids)


def _explain_no_clips(store: Store, manifest: Manifest, excluded: Sequence[Exclusion]) -> str:
    """Write why no clip has features: the manifest has no levels, or the store is of another manifest."""
    if not excluded:
        return (
            f"the manifest has no clip of level {', '.join(manifest.codebook.labels)} "
            f"among its {len(manifest)}: are its levels filled in?"
        )
    first = excluded[0]
    clips = counted(len(excluded), "clip")
    return (
        f"none of the {clips} of the manifest to use has features in store {store.name} "
        f"(the first: {first.clip_id}, {first.reason}): is this the store made from this manifest?"
    )


# --- bags of windows: features of films that were cut into windows once, for any spans of them
# ---------------------------------------------------------------------------
@checked
def load_bags(store: Store, manifest: Manifest, *, backbone: str | None = None) -> Dataset:
    """Load the labels of a manifest's clips, and for each clip the windows whose middles lie in it.

    This is how deep multiple instance learning sees a clip (Ilse et al., ICML 2018): a bag with a label, of
    windows without labels. Models of vectors read the maximum over a bag, models of frames its windows. If
    annotators chose their own segments, each segment has a label only by the annotator who chose it.

    Parameters
    ----------
    store : Store
        Its clips are windows of films, with times.
    manifest : Manifest
        Its clips are spans of the same movies, with times. There may be a row for each annotator.
    backbone : str, optional
        The store's group; may be left out when there is one only.

    Raises
    ------
    DatasetError
        A window or a clip has no times, or no window has its middle in an annotated clip.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> store, manifest = of.open_store("stores/films"), of.read_manifest("films.csv")
    >>> om.load_bags(store, manifest).read("frames").shape
    (95, 1, 8)
    """
    group = find_group(store, backbone)
    array = find_array(store, group, features=None)
    windows = _list_windows(store, group)
    vectors = read_features(group, array, "max", windows.rows)  # of each window

    labels = _labels_by_annotator(manifest)
    is_annotated = annotated_clips(labels, manifest)
    bags = _fill_bags(labels, is_annotated, manifest, windows)
    if not bags.windows:
        raise DatasetError(f"no annotated clip of the manifest holds the middle of a window of {store.name}")

    is_partial = np.array([store.clips[row].status == "partial" for row in windows.rows.tolist()])
    has_partial_window = [bool(is_partial[bag].any()) for bag in bags.windows]
    labels_of_bags = labels.take(bags.indices)
    partial = frozenset(labels_of_bags.clip_ids[np.array(has_partial_window)].tolist())
    n_used_windows = len(np.unique(np.concatenate(bags.windows)))

    return Dataset(
        X=np.stack([vectors[bag].max(axis=0) for bag in bags.windows]),
        labels=labels_of_bags,
        pool="max",
        **_source_fields(store, group, manifest, array),
        excluded=bags.excluded,
        counts={
            **counts_of(labels, is_annotated),
            "with_features": len(bags.windows),
            "partial": len(partial),
            "in_store_only": len(windows.rows) - n_used_windows,
        },
        partial=partial,
        seconds=bags.seconds,
        bags=_frames_of_bags(vectors, bags.windows),
    )


def _labels_by_annotator(manifest: Manifest) -> Labels:
    """Return the labels of a manifest, with those of each annotator (`Labels.experts`) if there are several.

    Annotators may label the same clips, so that a clip has several rows, or segments of their own.
    """
    labels = labels_of(manifest)
    # `labels_of` returns the labels of annotators (`experts`) only if some clip has rows of several.
    n_annotators = len({clip.annotator for clip in manifest})
    if labels.experts or n_annotators < 2:
        return labels
    # As each segment has one row, what people labelled is already what merging annotators would give.
    return labels_by_annotator(manifest, merged=labels_of_people(manifest))


class _Bags(NamedTuple):
    """Annotated clips with at least one window, and the windows of each.

    Attributes
    ----------
    indices : ndarray of int, shape [n]
        Indices of the clips among the labels.
    windows : list of ndarray of int
        Indices of each clip's windows.
    seconds : ndarray, shape [n]
        Lengths of the clips.
    excluded : tuple of Exclusion
        The annotated clips without a window.
    """

    indices: NDArray[np.intp]
    windows: list[NDArray[np.intp]]
    seconds: NDArray[np.float64]
    excluded: tuple[Exclusion, ...]


def _fill_bags(
    labels: Labels, is_annotated: NDArray[np.bool_], manifest: Manifest, windows: "_Windows"
) -> _Bags:
    """Find the windows whose middle lies in each annotated clip; clips without any are excluded.

    Parameters
    ----------
    labels : Labels
        Of the manifest's N clips.
    is_annotated : ndarray of bool, shape [N]
    manifest : Manifest
    windows : _Windows
        The windows of the store that have features.

    Raises
    ------
    DatasetError
        A clip has no times.
    """
    clip_of = {clip.clip_id: clip for clip in manifest}
    indices = []
    windows_of_clips = []
    seconds = []
    excluded = []
    for index in np.flatnonzero(is_annotated).tolist():
        clip = clip_of[str(labels.clip_ids[index])]
        if clip.start_s is None or clip.end_s is None:
            raise DatasetError(f"clip {clip.clip_id} has no start and end: a bag of windows needs both")

        windows_of_clip = windows.between(clip.movie, clip.start_s, clip.end_s)
        if not len(windows_of_clip):
            level = str(labels.levels[index])
            excluded.append(Exclusion(clip.clip_id, level, "no window of the store lies in it"))
            continue
        indices.append(index)
        windows_of_clips.append(windows_of_clip)
        seconds.append(clip.end_s - clip.start_s)

    return _Bags(
        indices=np.array(indices, dtype=np.intp),
        windows=windows_of_clips,
        seconds=np.array(seconds),
        excluded=tuple(excluded),
    )


def _frames_of_bags(vectors: NDArray[np.float32], bags: Sequence[NDArray[np.intp]]) -> NDArray[np.float32]:
    """Collect the vectors of each bag's windows in one array [N, F, D]; smaller bags end with NaN.

    `vectors` are those of all windows, and `bags` holds indices of windows. From a bag with more than
    `MAX_WINDOWS` windows, that many are taken at even distances.
    """
    n_frames = min(max(map(len, bags)), MAX_WINDOWS)
    frames = np.full((len(bags), n_frames, vectors.shape[1]), np.nan, np.float32)
    for row, bag in enumerate(bags):
        n_chosen = min(len(bag), n_frames)
        evenly_spaced = np.linspace(0, len(bag) - 1, n_chosen).round().astype(np.intp)
        chosen_windows = bag[evenly_spaced]
        frames[row, :n_chosen] = vectors[chosen_windows]
    return frames


class _Windows(NamedTuple):
    """The windows of a store that have features, sorted by movie and time.

    Attributes
    ----------
    rows : ndarray of int, shape [N]
        Their rows in the store.
    movies : ndarray of str, shape [N]
    middles : ndarray, shape [N]
        Their middles in seconds.
    """

    rows: NDArray[np.intp]
    movies: NDArray[np.str_]
    middles: NDArray[np.float64]

    def between(self, movie: str, start_s: float, end_s: float) -> NDArray[np.intp]:
        """Return the indices of the windows of a movie whose middles lie from `start_s` to before `end_s`."""
        first_of_movie = self.movies.searchsorted(movie)
        end_of_movie = self.movies.searchsorted(movie, "right")
        middles = self.middles[first_of_movie:end_of_movie]
        first = first_of_movie + middles.searchsorted(start_s)
        end = first_of_movie + middles.searchsorted(end_s)
        return np.arange(first, end)


def _list_windows(store: Store, group: Group) -> _Windows:
    """List the windows of a store that have features, sorted by movie and time.

    Raises
    ------
    DatasetError
        A window has no times, or no window has features.
    """
    windows = []
    for row, clip in enumerate(store.clips):
        if why_unusable(store, group, row) is not None:
            continue
        if clip.start_s is None or clip.end_s is None:
            raise DatasetError(f"clip {clip.clip_id} of store {store.name} has no times: it is no window")
        middle_s = (clip.start_s + clip.end_s) / 2
        windows.append((clip.movie, middle_s, row))
    if not windows:
        raise DatasetError(f"store {store.name} has no clip with features of {group.name}")

    windows.sort()  # by movie, then by time
    return _Windows(
        rows=np.array([row for _, _, row in windows], np.intp),
        movies=np.array([movie for movie, _, _ in windows], str),
        middles=np.array([middle_s for _, middle_s, _ in windows]),
    )
