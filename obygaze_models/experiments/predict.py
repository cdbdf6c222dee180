"""Score the clips of a store with a saved model, if it reads that kind of features."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from obygaze_features.store import Group, Store, same_numerics
from obygaze_models.dataset import Exclusion, Pool, read_features
from obygaze_models.experiments.reach import distances
from obygaze_models.persistence import Card, ModelError, ModelFile, construct

COLUMNS = ("clip_id", "movie", "score", "threshold", "called", "movie_trained_on")


@dataclass(frozen=True, eq=False)
class Scored:
    """What a model says of a store's clips.

    Attributes
    ----------
    table : DataFrame
        `COLUMNS`, a row a clip with features: ``called`` is 1 where the score reaches the threshold;
        ``movie_trained_on`` is 1 where the model was trained on clips of the movie, so that its score is no
        prediction.
    excluded : tuple of Exclusion
        Clips without features.
    n_partial : int
        Clips scored of which a part of the video could not be read.
    n_beyond : int or None
        Clips that lie farther from the mean of the training clips than any of these; None where the model's
        card does not say how far they lie.
    """

    table: pd.DataFrame
    excluded: tuple[Exclusion, ...]
    n_partial: int
    n_beyond: int | None


def predict(model: ModelFile, store: Store) -> Scored:
    """Score every clip of a store that has features.

    Raises
    ------
    ModelError
        The store's features are not of the kind that the model reads: names the first field that differs.
    """
    card = model.card
    group = _find_group(card, store)
    rows = np.flatnonzero(group.usable)
    if not rows.size:
        raise ModelError(f"store {store.name} has no clip with features of {card.backbone}")
    pool: Pool = "mean" if card.pool == "mean" else "max"
    array: Any = card.features
    features = read_features(group, array, pool, rows)
    probe = construct(model)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = probe.decision_function(features).astype(np.float64)
    if not np.isfinite(scores).all():
        raise ModelError(f"the model gives scores of store {store.name} that are not finite: it is of no use")
    clips = [store.clips[row] for row in rows]
    trained_on = set(card.movies)
    table = pd.DataFrame(
        {
            "clip_id": [clip.clip_id for clip in clips],
            "movie": [clip.movie for clip in clips],
            "score": scores,
            "threshold": float(card.threshold),
            "called": (scores >= card.threshold).astype(np.int64),
            "movie_trained_on": [int(clip.movie in trained_on) for clip in clips],
        },
        columns=list(COLUMNS),
    )
    excluded = tuple(
        Exclusion(clip.clip_id, f"{clip.status}: {clip.reason}" if clip.reason else clip.status)
        for row, clip in enumerate(store.clips)
        if not group.usable[row]
    )
    beyond = None if card.reach is None else int((distances(probe, features) > card.reach).sum())
    return Scored(table, excluded, sum(clip.status == "partial" for clip in clips), beyond)


def _find_group(card: Card, store: Store) -> Group:
    """Find the group that the model reads, and refuse one whose features were made otherwise."""
    if card.backbone not in store.names:
        raise ModelError(
            f"store {store.name} has no features of {card.backbone}, which the model reads, but of "
            f"{', '.join(store.names)}"
        )
    group = store[card.backbone]
    fields = same_numerics(card.provenance, group.provenance)
    if fields:
        there, here = (_look_up(provenance, fields[0]) for provenance in (card.provenance, group.provenance))
        more = f"; and {len(fields) - 1} more: {', '.join(fields[1:4])}" if fields[1:] else ""
        raise ModelError(
            f"store {store.name}: its features of {card.backbone} were made otherwise than those the "
            f"model was trained on: {fields[0]} is {here:.80}, was {there:.80}{more}"
        )
    if card.features not in group.arrays:
        raise ModelError(
            f"store {store.name} has no {card.features} features of {card.backbone}, which the model reads, "
            f"but {', '.join(group.arrays)}"
        )
    if group.shape(card.features)[-1] != card.n_features:
        raise ModelError(
            f"store {store.name} has {group.shape(card.features)[-1]} features a clip of {card.backbone}; "
            f"the model reads {card.n_features}"
        )
    return group


def _look_up(provenance: Mapping[str, Any], dotted: str) -> str:
    """Show a field of a provenance by its dotted name."""
    value: Any = provenance
    for name in dotted.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return "absent"
        value = value[name]
    return repr(value)


def write_scores(scored: Scored, path: Path) -> None:
    """Write the table to a CSV file, all of it or nothing."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(
            scored.table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline=""
        )
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def document(scored: Scored, card: Card, store: Store) -> dict[str, object]:
    """Give scores as JSON values, with what they stand on."""
    return {
        "model": {
            "estimator": card.estimator,
            "train_task": card.train_task,
            "label_policy": card.label_policy,
            "protocol": card.protocol,
            "store": card.store,
            "seed": card.seed,
        },
        "store": store.fingerprint,
        "backbone": card.backbone,
        "threshold": float(card.threshold),
        "n_partial": scored.n_partial,
        "n_beyond": scored.n_beyond,
        "clips": scored.table.drop(columns="threshold").to_dict(orient="records"),
        "excluded": [{"clip_id": clip.clip_id, "reason": clip.reason} for clip in scored.excluded],
    }
