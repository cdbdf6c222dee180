"""What the published experiments read: the same clips with the features of every backbone given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from obygaze_features.manifest import LabelPolicy, Manifest, apply_policy
from obygaze_features.store import Store
from obygaze_models.dataset import Dataset, DatasetError, Exclusion, load_dataset
from obygaze_models.experiments.published import PROBE_OF
from obygaze_models.protocol import TASKS, VISUAL_CONCEPTS


@dataclass(frozen=True, eq=False)
class Source:
    """One backbone's features of the clips, X [N, D], and where they are from.

    Attributes
    ----------
    label : str
        The backbone's name; with the store's before it where two stores have the same backbone.
    untrained : bool
        Whether the backbone's weights are random.
    """

    label: str
    backbone: str
    store: str
    features: str
    pool: str
    untrained: bool
    X: NDArray[np.float32]

    @property
    def title(self) -> str:
        """Name it in tables; random weights are always said."""
        return f"{self.label} (untrained)" if self.untrained else self.label

    @property
    def printed_row(self) -> str | None:
        """The papers' row on this backbone; features of random weights have none."""
        return None if self.untrained else PROBE_OF.get(self.backbone)


@dataclass(frozen=True, eq=False)
class Material:
    """The clips of levels EN, HN and S that every source has features of, in the manifest's order.

    Attributes
    ----------
    manifest : Manifest
        Its levels read under `policy`.
    digest : str
        Of the manifest as given.
    clip_ids, movies, levels : ndarray of str, shape [N]
    present : ndarray of bool, shape [N, 8]
        Presence of each visual concept.
    excluded : tuple of Exclusion
        Clips left out, for all sources alike, because one of them has no features of them.
    """

    manifest: Manifest
    policy: LabelPolicy
    digest: str
    clip_ids: NDArray[np.str_]
    movies: NDArray[np.str_]
    levels: NDArray[np.str_]
    present: NDArray[np.bool_]
    sources: tuple[Source, ...]
    excluded: tuple[Exclusion, ...]

    @property
    def y(self) -> NDArray[np.int64]:
        """1 for S, 0 for the others [N]."""
        labels: NDArray[np.int64] = (self.levels == "S").astype(np.int64)
        return labels

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """The row of each clip."""
        return {clip_id: row for row, clip_id in enumerate(self.clip_ids.tolist())}

    def rows(self, clip_ids: Sequence[str]) -> NDArray[np.intp]:
        """Find the rows of clips; clips without features are passed over (see `count_absent`)."""
        found = [self.row_of[clip_id] for clip_id in clip_ids if clip_id in self.row_of]
        return np.array(found, dtype=np.intp)

    def record(self) -> dict[str, object]:
        """Say what was read, as JSON values."""
        return {
            "manifest_sha256": self.digest,
            "label_policy": str(self.policy),
            "clips": len(self.clip_ids),
            "movies": len(set(self.movies.tolist())),
            "levels": {level: int((self.levels == level).sum()) for level in ("EN", "HN", "S")},
            "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in self.excluded],
            "sources": [
                {
                    "label": one.label,
                    "backbone": one.backbone,
                    "store": one.store,
                    "features": one.features,
                    "pool": one.pool,
                    "n_features": int(one.X.shape[1]),
                    "untrained": one.untrained,
                }
                for one in self.sources
            ],
        }


def load_material(stores: Sequence[Store], manifest: Manifest, policy: LabelPolicy) -> Material:
    """Read the features of every backbone of every store for the manifest's clips of levels EN, HN and S.

    Raises
    ------
    DatasetError
        A store has none of the clips, or the stores have none in common, or the same store is given twice.
    """
    labelled = apply_policy(manifest, policy)
    found = [
        (store, name, load_dataset(store, labelled, TASKS["enhn_s"], backbone=name))
        for store in stores
        for name in store.names
    ]
    seen = [(data.store, name) for _, name, data in found]
    if len(set(seen)) < len(seen):
        raise DatasetError(f"store {found[-1][0].name} is given twice")
    common = set.intersection(*(set(data.clip_ids.tolist()) for _, _, data in found))
    kept = [clip for clip in labelled if clip.clip_id in common]
    if not kept:
        raise DatasetError(f"the {len(found)} backbones have no clip in common: are they of one manifest?")
    names = [name for _, name, _ in found]
    return Material(
        manifest=labelled,
        policy=policy,
        digest=manifest.digest(),
        clip_ids=np.array([clip.clip_id for clip in kept], dtype=str),
        movies=np.array([clip.movie for clip in kept], dtype=str),
        levels=np.array([str(clip.level) for clip in kept], dtype=str),
        present=np.array([[concept in clip.concepts for concept in VISUAL_CONCEPTS] for clip in kept]),
        sources=tuple(
            _source(store, name, data, common, twice=names.count(name) > 1) for store, name, data in found
        ),
        excluded=_excluded([data for _, _, data in found], common),
    )


def _source(store: Store, name: str, data: Dataset, common: set[str], *, twice: bool) -> Source:
    return Source(
        label=f"{store.name}-{name}" if twice else name,
        backbone=name,
        store=data.store,
        features=data.features,
        pool=data.pool,
        untrained=store[name].provenance.get("untrained") is True,
        X=data.X[np.isin(data.clip_ids, sorted(common))],
    )


def _excluded(every: Sequence[Dataset], common: set[str]) -> tuple[Exclusion, ...]:
    """Name each clip that some source lacks once, with the first reason given."""
    reasons: dict[str, Exclusion] = {}
    for data in every:
        for exclusion in data.excluded:
            reasons.setdefault(exclusion.clip_id, exclusion)
    return tuple(reasons[name] for name in sorted(reasons) if name not in common)


def count_absent(material: Material, clip_ids: Sequence[str]) -> int:
    """Count the clips that a protocol names but that have no features."""
    return sum(clip_id not in material.row_of for clip_id in set(clip_ids))
