"""Apply a model to the frames of clips, to find when something happens: by attention or concepts in time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.store import Group, Store
from obygaze_features.store.clip_table import ClipTable
from obygaze_features.store.group import rows_of
from obygaze_models.concepts.in_time import ConceptsInTime
from obygaze_models.dataset.features import read_padded
from obygaze_models.errors import ModelError
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.prediction.predict import TRAINED_ON
from obygaze_models.prediction.reading import find_group_for_model
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import recognise
from obygaze_models.reduction import reduce_tokens

ATTENTION_COLUMNS = ("weight", "evidence", "contribution")
"""Columns of models that weigh frames; empty for others."""

FRAME_COLUMNS = ("clip_id", "movie", "frame", "time_s", "flags", *ATTENTION_COLUMNS)
"""Columns of every table of frames, followed by two per concept; `flags` may be `TRAINED_ON`."""


@checked
def predict_frames(model: Model, stores: Store | Sequence[Store]) -> pd.DataFrame:
    """Compute a model's output for each sampled frame of each clip.

    Parameters
    ----------
    model : Model
        A model that weighs frames (``attention``), or finds concepts in them (``pcbm_time``).
    stores : Store or sequence of Store
        Stores with the array `frames` of the backbone that the model reads, or with the tokens that it reads
        reduced.

    Returns
    -------
    DataFrame
        `FRAME_COLUMNS`, one row for each frame (or vector of reduced tokens), sorted by clip and time.

        - ``flags``: ``trained_on`` if the model was trained on the film.
        - ``weight``, of models with attention: adds up to 1 over a clip.
        - ``evidence``, of models with attention: how much the frame speaks for the positive class.
        - ``contribution``, of models with attention: the product of weight and evidence. A clip's
          contributions and the model's bias add up to its logit.
        - ``<concept>_value``, of models of concepts: the concept's value in a clip that has only this frame.
        - ``<concept>_p``, of models of concepts: its probability by the calibration on clips.

        For a clip out of distribution, all of these but flags and values of concepts are empty.

    Raises
    ------
    ModelError
        The model has no output for frames, or a store lacks them.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> store = of.open_store("stores/films")
    >>> frames = om.predict_frames(om.load_model("kept/attention.model"), store)
    >>> frames.groupby("clip_id")["weight"].sum().round(5).unique().tolist()
    [1.0]
    """
    if not has_frame_outputs(model):
        raise ModelError(
            f"model {model.card.model} says nothing of frames: attention weighs them, and pcbm_time finds "
            "concepts in them"
        )
    stores = [stores] if isinstance(stores, Store) else stores
    parts = []
    for store in stores:
        rows = np.flatnonzero(find_group_for_model(model.card, store).usable)
        parts.append(frames_of(model, store, rows))
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise ModelError(f"no clip of {', '.join(store.name for store in stores)} has features")
    recognition = recognise(model.card, model.training, stores)
    flags = [
        TRAINED_ON if recognition.knows(clip_id, movie) else ""
        for clip_id, movie in zip(table["clip_id"], table["movie"], strict=True)
    ]
    table.insert(FRAME_COLUMNS.index("flags"), "flags", flags)
    return table.sort_values(["movie", "clip_id", "frame"], kind="stable", ignore_index=True)


def has_frame_outputs(model: Model) -> bool:
    """Tell whether a model has an output for each frame: attention, or concepts in time."""
    return isinstance(model.estimator, AttentionPooling | ConceptsInTime)


@checked
def reads_frames(model: Model, store: Store) -> bool:
    """Tell whether a model has an output for the frames of a store, or for its reduced tokens."""
    if not has_frame_outputs(model):
        return False
    if model.card.reduced_by:
        # It reads tokens, which have frames. That the store has tokens was checked as its clips were read.
        return True
    group = store[model.card.backbone]
    return "frames" in group.arrays and group.shape("frames")[-1] == model.card.n_features


def frame_times(group: Group, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the time in seconds of each vector of the array `frames`, for some rows of a group: [N, F].

    Some backbones compute one vector of several frames: its time is the mean of theirs. If clips differ in
    their number of frames, F is that of the longest, and the rows of shorter clips end with NaN.
    """
    if group.ragged:
        return read_padded(group, "time_s", rows)
    n_vectors = group.shape("frames")[1]
    # The frames of a vector follow each other: [N, F, frames of a vector].
    times = group.time_s[rows].reshape(len(rows), n_vectors, -1)
    return np.asarray(times.mean(axis=2))


@checked
def frames_of(model: Model, store: Store, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Compute a model's output for each frame of some clips of a store, as a table.

    The table is that of `predict_frames` without the column ``flags``. `rows` are the clips' rows in the
    store, in rising order.

    Raises
    ------
    ModelError
        The store lacks frames of the kind that the model reads.
    """
    times, vectors = _read_frames(model, store, rows)
    blocks = []
    for row, frames, frame_times_s in zip(rows.tolist(), vectors, times, strict=True):
        # All clips have as many times as the longest: after those of a shorter clip stands NaN.
        blocks.append(_frame_table_of_clip(model, store.table, row, frames, frame_times_s[: len(frames)]))
    if not blocks:
        return pd.DataFrame(columns=[name for name in FRAME_COLUMNS if name != "flags"])
    return pd.concat(blocks, ignore_index=True)


def _read_frames(
    model: Model, store: Store, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], Iterator[NDArray[Any]]]:
    """Read the frame times [N, F] of some clips, and an iterator over the clips' vectors [F, D].

    Raises
    ------
    ModelError
        The store lacks frames of the kind that the model reads.
    """
    group = find_group_for_model(model.card, store)
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


def _frame_table_of_clip(
    model: Model, clips: ClipTable, row: int, frames: NDArray[Any], times: NDArray[np.float64]
) -> pd.DataFrame:
    """Make the table of a model's output for the frames of one clip.

    Parameters
    ----------
    model : Model
    clips : ClipTable
    row : int
        The clip's row in the table of clips.
    frames : ndarray, shape [F, D]
    times : ndarray, shape [F]
        In seconds.
    """
    # The columns that every table has; those of attention are filled below if the model has them.
    estimator = model.estimator
    clip = frames.astype(np.float32)[None]  # [1, F, D]
    columns: dict[str, Any] = {
        "clip_id": clips.clip_ids[row],
        "movie": clips.movies[row],
        "frame": np.arange(len(frames)),
        "time_s": times,
        **dict.fromkeys(ATTENTION_COLUMNS, np.nan),
    }
    # Of a clip that is unlike the training clips, neither weights nor probabilities mean anything.
    is_out_of_distribution = bool(model.is_out_of_distribution(clip)[0])
    if isinstance(estimator, AttentionPooling) and not is_out_of_distribution:
        columns.update(_attention_columns(estimator, clip))

    if isinstance(estimator, ConceptsInTime):
        values = estimator.frame_values(clip)[0]  # [F, K]
        probabilities = model.probabilities_of(values)
        for index, concept in enumerate(model.concepts):
            columns[f"{concept}_value"] = values[:, index]
            if model.concepts_with_probability:
                columns[f"{concept}_p"] = np.nan if is_out_of_distribution else probabilities[:, index]
    return pd.DataFrame(columns)


def _attention_columns(estimator: AttentionPooling, clip: NDArray[np.float32]) -> dict[str, Any]:
    """Compute the weight, the evidence and the contribution of each frame of one clip [1, F, D].

    A contribution is the product of the two others. All are float64, as clips without weights have NaN of
    that type in these columns.
    """
    weights = estimator.weights(clip)[0]
    evidence = estimator.evidence(clip)[0]
    return {
        "weight": weights.astype(np.float64),
        "evidence": evidence.astype(np.float64),
        "contribution": (weights * evidence).astype(np.float64),
    }
