"""Predict single frames: attention weights, evidence, and the value of each concept in time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.io import write_whole
from obygaze_features.store import Group, Store
from obygaze_features.store.group import rows_of
from obygaze_features.store.records import StoredClip
from obygaze_models.errors import ModelError
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.prediction.predict import find_group
from obygaze_models.prediction.saved_model import Model
from obygaze_models.reduction import reduce_tokens

COLUMNS = ("clip_id", "movie", "frame", "time_s", "weight", "evidence", "contribution")
"""Columns of every table of frames, followed by two per concept."""


def predict_frames(model: Model, stores: Sequence[Store]) -> pd.DataFrame:
    """Compute a model's output for each sampled frame of each clip.

    Parameters
    ----------
    model : Model
        One that weights frames (``attention``), or one with concepts.
    stores : sequence of Store
        With the array `frames` of the backbone that the model reads, or the tokens that it reads reduced.

    Returns
    -------
    DataFrame
        `COLUMNS`, one row a frame (or vector of reduced tokens), sorted by clip and time. For attention
        ``weight`` (a clip's add up to 1), ``evidence`` and ``contribution``, their product: a clip's
        contributions and the model's bias add up to its logit. For concepts ``<concept>_value``, the frame's
        signed distance to the concept's hyperplane in deviations of training clips, and ``<concept>_p``,
        calibrated on clips. Empty where the clip is out of distribution.

    Raises
    ------
    ModelError
        The model has no output for frames, or a store lacks them.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> store = of.open_store("stores/films")
    >>> frames = om.predict_frames(om.load_model("kept/attention.model"), [store])
    >>> frames.groupby("clip_id")["weight"].sum().round(5).unique().tolist()
    [1.0]
    """
    if not says_when(model):
        raise ModelError(
            f"model {model.card.model} neither weighs frames nor knows concepts: "
            "attention, pcbm_lr and bank say something of frames"
        )
    parts = [
        frames_of(model, store, np.flatnonzero(find_group(model.card, store).usable)) for store in stores
    ]
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise ModelError(f"no clip of {', '.join(store.name for store in stores)} has features")
    return table.sort_values(["movie", "clip_id", "frame"], kind="stable", ignore_index=True)


def write_frames(table: pd.DataFrame, path: Any) -> None:
    """Write a table of frames as CSV atomically, numbers unrounded."""
    write_whole(path, str(table.to_csv(index=False, lineterminator="\n")))


def says_when(model: Model) -> bool:
    """Return whether a model has an output for single frames."""
    return isinstance(model.estimator, AttentionPooling) or bool(model.concepts)


def reads_frames(model: Model, store: Store) -> bool:
    """Return whether a model has an output for the frames, or reduced tokens, that a store keeps."""
    group = store[model.card.backbone]
    own = "frames" in group.arrays and group.shape("frames")[-1] == model.card.n_features
    return says_when(model) and (own or bool(model.card.reduced_by))


def frame_times(group: Group, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the time of each vector of `frames` in seconds [N, F]; a tubelet has its frames' mean time."""
    n_vectors = group.shape("frames")[1]
    times: NDArray[np.float64] = group.time_s[rows].reshape(len(rows), n_vectors, -1).mean(axis=2)
    return times


def frames_of(model: Model, store: Store, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Compute a model's output for each frame of some clips of a store; rows in rising order.

    Raises
    ------
    ModelError
        The store lacks what the model reads of frames.
    """
    attention = model.estimator if isinstance(model.estimator, AttentionPooling) else None
    times, vectors = _read(model, store, rows)
    blocks = [
        _of_clip(model, attention, store.clips[row], frames, moments)
        for row, frames, moments in zip(rows.tolist(), vectors, times, strict=True)
    ]
    return pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame(columns=list(COLUMNS))


def _read(
    model: Model, store: Store, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], Iterator[NDArray[Any]]]:
    """Read the times [N, F] and yield the vectors [F, D] of some clips."""
    group = find_group(model.card, store)
    if model.card.reduced_by:
        reduced = reduce_tokens(store, group.name, model.card.reduced_by)
        return reduced.time_s(rows), iter(reduced.read(rows))
    if "frames" not in group.arrays:
        raise ModelError(
            f"store {store.name} has no frames of {group.name}, but {', '.join(group.arrays)}: "
            "give a store of a backbone that keeps a vector for each frame"
        )
    if group.shape("frames")[-1] != model.card.n_features:
        raise ModelError(
            f"store {store.name}: a frame of {group.name} has {group.shape('frames')[-1]} features, "
            f"the model reads {model.card.n_features}"
        )
    return frame_times(group, rows), rows_of(group, "frames", rows.tolist())


def _of_clip(
    model: Model,
    attention: AttentionPooling | None,
    clip: StoredClip,
    frames: NDArray[Any],
    times: NDArray[np.float64],
) -> pd.DataFrame:
    wide = frames.astype(np.float32)
    columns: dict[str, Any] = {
        "clip_id": clip.clip_id,
        "movie": clip.movie,
        "frame": np.arange(len(wide)),
        "time_s": times,
        "weight": np.nan,
        "evidence": np.nan,
        "contribution": np.nan,
    }
    far = bool(model.is_out_of_distribution(wide[None] if attention else wide.mean(axis=0)[None])[0])
    if attention is not None and not far:
        weights, evidence = attention.weights(wide[None])[0], attention.evidence(wide[None])[0]
        of_frames = {"weight": weights, "evidence": evidence, "contribution": weights * evidence}
        # One type, whatever clips are joined: those without a weight have NaN of float64.
        columns |= {name: frame_values.astype(np.float64) for name, frame_values in of_frames.items()}
    values, shares = model.concept_values(wide), model.concept_probabilities(wide)
    for index, concept in enumerate(model.concepts):
        columns[f"{concept}_value"] = values[:, index]
        columns[f"{concept}_p"] = np.nan if far else shares[:, index]
    return pd.DataFrame(columns)
