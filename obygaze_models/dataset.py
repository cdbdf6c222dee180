"""Combine stores and a manifest into features, labels and movies of the same clips."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.io import sha256_of
from obygaze_features.manifest import Codebook, Manifest
from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store
from obygaze_features.store.format import FEATURE_ARRAYS
from obygaze_models.errors import DatasetError
from obygaze_models.protocol.targets import Labels, labels_of
from obygaze_models.reduction import ReducedTokens, reduce_tokens

__all__ = [
    "Dataset",
    "Exclusion",
    "Features",
    "Modality",
    "Pool",
    "find_group",
    "join_modalities",
    "load_dataset",
    "load_datasets",
    "perceived",
    "read_array",
    "read_features",
    "unusable",
]


Features = Literal["pooled", "frames", "tokens"]
Reads = Literal[Features, "seconds"]
"""What a model reads of each clip: features, or its length alone."""
Pool = Literal["max", "mean"]
ARRAYS: tuple[Features, ...] = FEATURE_ARRAYS  # type: ignore[assignment]  # Features names the same


@dataclass(frozen=True, slots=True)
class Exclusion:
    """An annotated clip that is excluded, with the reason."""

    clip_id: str
    level: str
    reason: str


@dataclass(frozen=True, slots=True)
class Modality:
    """One of several backbones whose features are the columns `start` to before `stop` of a dataset.

    Attributes
    ----------
    name : str
        The backbone's; with the store's before it where two stores have the same backbone.
    store, backbone, features, pool : str
        As of a `Dataset`.
    missing : int
        Clips of the dataset that lack it: NaN in these columns.
    provenance : mapping
        Of the store's group.
    """

    name: str
    store: str
    backbone: str
    features: Features
    pool: str
    start: int
    stop: int
    missing: int
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The annotated clips of a manifest that have features, in the manifest's order.

    Attributes
    ----------
    X : ndarray of float32, shape [N, D]
        One vector per clip.
    labels : Labels
        Of the same N clips.
    codebook : Codebook
    backbone, features, pool : str
        The store's group and array, and how each clip's rows became one vector ("as stored" for pooled).
    store : str
        The store's fingerprint.
    label : str
        The backbone's name; with the store's before it where two stores have the same backbone.
    untrained : bool
        Whether the backbone's weights are random.
    excluded : tuple of Exclusion
        Annotated clips without usable features: the same for every model, never replaced.
    counts : dict of str to int
        Clips of the manifest (``manifest``), those without a level (``unlabelled``) and of one in no task
        (``in_no_task``), clips with features
        (``with_features``), those of them of whose video a part could not be read (``partial``), and clips of
        the store that the manifest lacks (``in_store_only``).
    group : Group, optional
        Where frames and tokens are read from.
    reduction : ReducedTokens, optional
        What models that read frames or tokens get in their place.
    clip_s : float, optional
        Median length of the clips with features, in seconds, where the store tells it of all.
    modalities : tuple of Modality
        Of several stores or backbones, which share X; else empty.
    seconds : ndarray of float64, shape [N], optional
        The clips' lengths, where the store tells them all.
    bags : ndarray of float32, shape [N, F, D], optional
        Windows of each clip, which models of frames read (`load_bags`); NaN where it has fewer.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> data.X.shape
    (95, 8)
    >>> data.movies[:2]
    array(['film0', 'film0'], dtype='<U5')
    >>> data.take(data.rows(["film0-c003"])).clip_ids
    array(['film0-c003'], dtype='<U10')
    """

    X: NDArray[np.float32]
    labels: Labels
    codebook: Codebook
    backbone: str
    features: Features
    pool: str
    store: str
    label: str = ""
    untrained: bool = False
    excluded: tuple[Exclusion, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    group: Group | None = None
    reduction: ReducedTokens | None = None
    clip_s: float | None = None
    modalities: tuple[Modality, ...] = ()
    seconds: NDArray[np.float64] | None = None
    bags: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        movies = len(np.unique(self.movies))
        what = f"{len(self)} clips of {movies} movies, {self.features} of {self.backbone}"
        return f"Dataset({what}, X {list(self.X.shape)})"

    def _repr_html_(self) -> str:
        levels = pd.Series(self.levels, name="clips").value_counts(sort=False).to_frame()
        return f"<div><strong>{escape(repr(self))}</strong>{levels.to_html()}</div>"

    @property
    def clip_ids(self) -> NDArray[np.str_]:
        """The id of each clip [N]."""
        return self.labels.clip_ids

    @property
    def movies(self) -> NDArray[np.str_]:
        """The movie of each clip [N]: the groups of every split."""
        return self.labels.movies

    @property
    def levels(self) -> NDArray[np.str_]:
        """The level of each clip [N]."""
        return self.labels.levels

    @cached_property
    def present(self) -> pd.DataFrame:
        """Presence of each visual concept in each clip [N, K], 1 or 0; the columns name the concepts."""
        return pd.DataFrame(self.labels.present.astype(np.float64), columns=list(self.labels.concepts))

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """The row of each clip."""
        return {clip_id: row for row, clip_id in enumerate(self.clip_ids.tolist())}

    @property
    def title(self) -> str:
        """Name the features in tables; random weights are always said."""
        name = self.label or self.backbone
        return f"{name} (untrained)" if self.untrained else name

    def rows(self, clip_ids: Sequence[str]) -> NDArray[np.intp]:
        """Find the rows of clips; clips without features are skipped."""
        rows = [self.row_of[clip_id] for clip_id in clip_ids if clip_id in self.row_of]
        return np.array(rows, dtype=np.intp)

    def named(self, names: Sequence[str]) -> "Dataset":
        """Give modalities other names; one whose name is "" keeps its own."""
        pairs = zip(self.modalities, names, strict=True)
        return replace(self, modalities=tuple(replace(each, name=name or each.name) for each, name in pairs))

    def take(self, rows: NDArray[np.intp]) -> "Dataset":
        """Keep some clips."""
        seconds = None if self.seconds is None else self.seconds[rows]
        bags = None if self.bags is None else self.bags[rows]
        return replace(self, X=self.X[rows], labels=self.labels.take(rows), seconds=seconds, bags=bags)

    def read(self, what: Reads) -> NDArray[Any]:
        """Return what a model reads of each clip: vectors [N, D], frames [N, F, D] or tokens [N, T, D].

        Of ``seconds`` it is the logarithm, [N, 1].

        Of a dataset whose tokens are reduced both frames and tokens are the reduced ones.

        Raises
        ------
        DatasetError
            The store has no such array.
        """
        if what == "pooled":
            return self.X
        if what == "seconds":
            if self.seconds is None:
                raise DatasetError("the store does not tell how long its clips are")
            return np.log(self.seconds)[:, None]
        if self.reduction is not None:
            return self.reduction.read(self._stored_rows(self.reduction.group))
        if self.bags is not None and what == "frames":
            return self.bags
        if self.modalities:
            raise DatasetError(f"vectors alone are read of several modalities, and not {what}")
        if self.group is None or what not in self.group.arrays:
            stored = ", ".join(self.group.arrays) if self.group is not None else self.features
            raise DatasetError(f"backbone {self.backbone} has no {what} in this store: it has {stored}")
        return read_array(self.group, what, self._stored_rows(self.group))

    def _stored_rows(self, group: Group) -> NDArray[np.intp]:
        """Find the row of each clip in the store [N]."""
        row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
        return np.array([row_of[clip_id] for clip_id in self.clip_ids.tolist()], dtype=np.intp)


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
    pool : {"max", "mean"}
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
        A path in place of what it holds, or the two the wrong way round; a backbone or array that the store
        lacks or that must be named; no annotated clip with features.

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
    if isinstance(store, Sequence) and not _is_text(store):
        names = [backbone] * len(store) if backbone is None or isinstance(backbone, str) else list(backbone)
        if len(names) != len(store):
            raise DatasetError(f"{len(store)} stores and {len(names)} backbones: name one for each")
        each = [
            load_dataset(own, manifest, backbone=name, features=features, pool=pool, unlabelled=unlabelled)
            for own, name in zip(store, names, strict=True)
        ]
        return join_modalities([own.name for own in store], each, manifest)
    store = _check_opened(store, manifest)
    if backbone is not None and not isinstance(backbone, str):
        raise DatasetError("one store, and several backbones: give the store once for each")
    group = find_group(store, backbone)
    array = _find_array(store, group, features)
    labels = labels_of(manifest)
    annotated = np.isin(labels.levels, np.array(manifest.codebook.labels, dtype=str))
    for ranks in labels.scales.values():
        annotated |= ranks >= 0
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    kept, rows, excluded = [], [], []
    for index in np.flatnonzero(annotated | unlabelled).tolist():
        clip_id = str(labels.clip_ids[index])
        row = row_of.get(clip_id)
        reason = "not in the store" if row is None else unusable(store, group, row)
        if row is not None and reason is None:
            kept.append(index)
            rows.append(row)
        else:
            excluded.append(Exclusion(clip_id, str(labels.levels[index]), str(reason)))
    if not kept:
        raise DatasetError(_nothing_left(store, manifest, excluded))
    lengths = _lengths(store, rows)
    return Dataset(
        X=read_features(group, array, pool, np.array(rows, dtype=np.intp)),
        labels=labels.take(np.array(kept, dtype=np.intp)),
        codebook=manifest.codebook,
        backbone=group.name,
        features=array,
        pool="as stored" if array == "pooled" else pool,
        store=store.fingerprint,
        label=group.name,
        untrained=group.provenance.get("untrained") is True,
        excluded=tuple(excluded),
        counts={
            "manifest": len(labels.clip_ids),
            "unlabelled": int((~annotated & (labels.levels == "")).sum()),
            "in_no_task": int((~annotated & (labels.levels != "")).sum()),
            "with_features": len(kept),
            "partial": sum(store.clips[row].status == "partial" for row in rows),
            "in_store_only": len(row_of.keys() - set(labels.clip_ids.tolist())),
        },
        group=group,
        reduction=None if reduce is None else reduce_tokens(store, group.name, reduce, progress=progress),
        clip_s=None if lengths is None else round(float(np.median(lengths)), 3),
        seconds=lengths,
    )


def _lengths(store: Store, rows: Sequence[int]) -> NDArray[np.float64] | None:
    """Find the lengths of clips, spans or whole files, in seconds; None where one is not known."""
    lengths = []
    for clip in (store.clips[row] for row in rows):
        if clip.start_s is not None and clip.end_s is not None:
            lengths.append(clip.end_s - clip.start_s)
        elif isinstance(seconds := clip.source.get("duration_s"), int | float):
            lengths.append(float(seconds))
    return np.array(lengths) if len(lengths) == len(rows) and lengths and min(lengths) > 0 else None


def _is_text(given: object) -> bool:
    """Return whether a path was given, which is a sequence too."""
    return isinstance(given, str)


def _check_opened(store: object, manifest: object) -> Store:
    """Refuse paths, and a store and a manifest the wrong way round."""
    if not isinstance(store, Store) or not isinstance(manifest, Manifest):
        raise DatasetError(
            "load_dataset takes an open store, then a manifest that was read; it was given a "
            f"{type(store).__name__} and a {type(manifest).__name__}: "
            "load_dataset(open_store(PATH), read_manifest(PATH))"
        )
    return store


def perceived(provenance: Mapping[str, Any]) -> str:
    """Tell of what a backbone's features are, ``visual`` or ``heard``; "" where its provenance does not tell.

    The preset of a backbone that hears names a track.
    """
    preset = provenance.get("preset")
    if not isinstance(preset, Mapping):
        return ""
    return "heard" if "track" in preset else "visual"


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
    known = {clip_id for part in parts for clip_id in part.row_of}
    index = np.flatnonzero(np.isin(labels.clip_ids, sorted(known)))
    rows = {clip_id: row for row, clip_id in enumerate(labels.clip_ids[index].tolist())}
    X = np.full((len(index), sum(part.X.shape[1] for part in parts)), np.nan, np.float32)
    backbones, modalities, start = [part.backbone for part in parts], [], 0
    for name, part in zip(names, parts, strict=True):
        stop = start + part.X.shape[1]
        X[[rows[clip_id] for clip_id in part.clip_ids.tolist()], start:stop] = part.X
        twice = backbones.count(part.backbone) > 1
        label = f"{name}-{part.backbone}" if twice else part.backbone
        missing = len(index) - len(part)
        own = (part.store, part.backbone, part.features, part.pool)
        made = {} if part.group is None else part.group.provenance
        modalities.append(Modality(label, *own, start, stop, missing, made))
        start = stop
    reasons: dict[str, Exclusion] = {}
    for part in parts:
        for exclusion in part.excluded:
            reasons.setdefault(exclusion.clip_id, exclusion)
    first, title = parts[0], " + ".join(modality.name for modality in modalities)
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
        excluded=tuple(reasons[clip_id] for clip_id in sorted(reasons.keys() - rows.keys())),
        counts={
            **first.counts,
            "with_features": len(index),
            "partial": max(p.counts["partial"] for p in parts),
        },
        clip_s=first.clip_s,
        modalities=tuple(modalities),
    )


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
    seen = [(data.store, data.backbone) for _, data in loaded]
    if len(set(seen)) < len(seen):
        raise DatasetError(f"store {loaded[-1][0].name} is given twice")
    common = set.intersection(*(set(data.clip_ids.tolist()) for _, data in loaded))
    if not common:
        raise DatasetError(f"the {len(loaded)} backbones have no clip in common: are they of one manifest?")
    reasons: dict[str, Exclusion] = {}
    for _, data in loaded:
        for exclusion in data.excluded:
            reasons.setdefault(exclusion.clip_id, exclusion)
    names = [data.backbone for _, data in loaded]
    return tuple(
        replace(
            data.take(np.flatnonzero(np.isin(data.clip_ids, sorted(common)))),
            label=f"{store.name}-{data.backbone}" if names.count(data.backbone) > 1 else data.backbone,
            excluded=tuple(reasons[name] for name in sorted(reasons) if name not in common),
        )
        for store, data in loaded
    )


def find_group(store: Store, backbone: str | None) -> Group:
    """Find a backbone of a store; the name is optional if there is only one.

    Raises
    ------
    DatasetError
        It is not there, or not named.
    """
    names = ", ".join(store.names)
    if backbone is None:
        if len(store.names) != 1:
            raise DatasetError(f"store {store.name} has several backbones ({names}): name one (--backbone)")
        return store[store.names[0]]
    if backbone not in store.names:
        raise DatasetError(f"store {store.name} has no backbone {backbone!r}: it has {names}")
    return store[backbone]


def unusable(store: Store, group: Group, row: int) -> str | None:
    """Explain why a clip has no features to use; None if it has."""
    if group.usable[row]:
        return None
    clip = store.clips[row].within(group.name)
    return f"{clip.status}: {clip.reason}" if clip.reason else clip.status


def _find_array(store: Store, group: Group, features: Features | None) -> Features:
    for array in ARRAYS if features is None else (features,):
        if array in group.arrays:
            return array
    wanted = " or ".join(ARRAYS) if features is None else features
    raise DatasetError(
        f"backbone {group.name} of store {store.name} has no {wanted} features: "
        f"it has {', '.join(group.arrays)}"
    )


def _nothing_left(store: Store, manifest: Manifest, excluded: Sequence[Exclusion]) -> str:
    """Explain why no clip is left: mostly a wrong pair of files or a manifest without levels."""
    if not excluded:
        return (
            f"the manifest has no clip of level {', '.join(manifest.codebook.labels)} "
            f"among its {len(manifest)}: are its levels filled in?"
        )
    first = excluded[0]
    return (
        f"none of the manifest's {len(excluded)} annotated clips has features in store {store.name} "
        f"(the first: {first.clip_id}, {first.reason}): is this the store made from this manifest?"
    )


def read_array(group: Group, array: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """Read some rows of an array [N, ...], block by block, so that it is in memory once."""
    values = np.empty((len(rows), *group.shape(array)[1:]), group.dtype(array))
    for start, block in group.blocks(array):
        here = np.flatnonzero((rows >= start) & (rows < start + len(block)))
        values[here] = block[rows[here] - start]
    return values


def read_features(group: Group, array: Features, pool: Pool, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Read one vector for each of the rows [N, D], block by block, so that tokens need not fit in memory.

    Raises
    ------
    DatasetError
        A feature is not finite, which sealing refuses: something else wrote the store.
    """
    if array == "pooled" and 2 * (rows.max() - rows.min()) < len(group.clip_ids):  # such as one film of many
        blocks = takewhile(lambda each: each[0] <= rows.max(), group.blocks(array, int(rows.min())))
        starts, vectors = zip(*blocks, strict=True)
        X = np.ascontiguousarray(np.concatenate(vectors)[rows - starts[0]], dtype=np.float32)
    elif array == "pooled":
        X = np.ascontiguousarray(group.pooled()[rows], dtype=np.float32)
    else:
        reduced = []
        for _, block in group.blocks(array):
            wide = block.astype(np.float32)
            reduced.append(wide.max(axis=1) if pool == "max" else wide.mean(axis=1))
        X = np.ascontiguousarray(np.concatenate(reduced)[rows])
    bad = ~np.isfinite(X).all(axis=1)
    if bad.any():
        clip = group.clip_ids[rows[int(np.flatnonzero(bad)[0])]]
        raise DatasetError(
            f"backbone {group.name}, {array} of clip {clip}: "
            f"a feature is not finite ({int(bad.sum())} such clips); run: obygaze store verify --full"
        )
    return X
