"""From a store and a manifest to the two sides of the task: dev clips to learn from, test clips to call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store import Group, Store
from obygaze_models.dataset import Exclusion, Features, Pool, read_features
from obygaze_models.errors import TaskError
from obygaze_models.tasks.mediaeval15.annotations import Annotated, leaking_movies


@dataclass(frozen=True, eq=False)
class Side:
    """Clips with their features.

    Attributes
    ----------
    clips : tuple of Annotated
        N clips, in the manifest's order.
    X : ndarray of float64, shape [N, D]
    excluded : tuple of Exclusion
        Clips without features, never replaced.
    """

    clips: tuple[Annotated, ...]
    X: NDArray[np.float64]
    excluded: tuple[Exclusion, ...]

    @property
    def movies(self) -> list[str]:
        """The movie of each clip."""
        return [clip.movie for clip in self.clips]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Both sides, and where their features come from.

    Attributes
    ----------
    dev, test : Side
    backbone, features, pool, store : str
        The store's group and array, how rows became one vector, and the store's fingerprint.
    pretrained : bool
        Whether the backbone has trained weights: then it has seen external data.
    """

    dev: Side
    test: Side
    backbone: str
    features: str
    pool: str
    store: str
    pretrained: bool


def load_corpus(
    store: Store,
    clips: Sequence[Annotated],
    *,
    backbone: str | None = None,
    features: Features | None = None,
    pool: Pool = "mean",
) -> Corpus:
    """Read the features of the dev and the test clips.

    Parameters
    ----------
    store : Store
    clips : sequence of Annotated
    backbone : str, optional
        The store's group; may be left out when there is one only.
    features : {"pooled", "frames", "tokens"}, optional
        The array; by default the first of them that is stored.
    pool : {"mean", "max"}
        How frames or tokens become one vector a clip.

    Raises
    ------
    TaskError
        A movie is on both sides of the split, a side has no clip with features, or backbone or array are not
        there.
    """
    refuse_leak(clips)
    if backbone is None and len(store.names) != 1:
        raise TaskError(
            f"store {store.name} has several backbones ({', '.join(store.names)}): name one (--backbone)"
        )
    group = store[backbone or store.names[0]]
    array: Any = features or group.arrays[0]
    if array not in group.arrays:
        raise TaskError(
            f"backbone {group.name} of store {store.name} has no {array} features: "
            f"it has {', '.join(group.arrays)}"
        )
    dev, dev_rows, dev_excluded = _with_features(store, group, clips, "dev")
    test, test_rows, test_excluded = _with_features(store, group, clips, "test")
    rows = np.array([*dev_rows, *test_rows], dtype=np.intp)
    X = read_features(group, array, pool, rows).astype(np.float64)
    if not np.isfinite(X).all():
        raise TaskError(
            f"store {store.name}: features of {group.name} are not finite; "
            f"run: obygaze store verify --full {store.where}"
        )
    return Corpus(
        dev=Side(dev, X[: len(dev)], dev_excluded),
        test=Side(test, X[len(dev) :], test_excluded),
        backbone=group.name,
        features=array,
        pool="as stored" if array == "pooled" else pool,
        store=store.fingerprint,
        pretrained=is_pretrained(group),
    )


def refuse_leak(clips: Sequence[Annotated]) -> None:
    """Refuse a split with a movie on both sides.

    Raises
    ------
    TaskError
        Names the first such movie and counts the others.
    """
    leaking = leaking_movies(clips)
    if leaking:
        more = f" and {len(leaking) - 1} more" if leaking[1:] else ""
        raise TaskError(f"the split leaks: movie {leaking[0]!r}{more} has clips in dev and in test")


def is_pretrained(group: Group) -> bool:
    """Whether a group's features were made with trained weights."""
    weights = group.provenance.get("weights_sha256") or group.provenance.get("hub")
    return bool(weights) and not group.provenance.get("untrained")


def _with_features(
    store: Store, group: Group, clips: Sequence[Annotated], split: str
) -> tuple[tuple[Annotated, ...], list[int], tuple[Exclusion, ...]]:
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    wanted = [clip for clip in clips if clip.split == split]
    if not wanted:
        raise TaskError(
            f"the manifest has no {split} clip among its {len(clips)}: is its column split filled in?"
        )
    kept, rows, excluded = [], [], []
    for clip in wanted:
        row = row_of.get(clip.clip_id)
        if row is None:
            excluded.append(Exclusion(clip.clip_id, "not in the store"))
        elif not group.usable[row]:
            stored = store.clips[row]
            why = f"{stored.status}: {stored.reason}" if stored.reason else stored.status
            excluded.append(Exclusion(clip.clip_id, why))
        else:
            kept.append(clip)
            rows.append(row)
    if not kept:
        raise TaskError(
            f"none of the {len(wanted)} {split} clips has features in store {store.name} "
            f"(the first: {excluded[0].clip_id}, {excluded[0].reason}): is it the store of this manifest?"
        )
    return tuple(kept), rows, tuple(excluded)
