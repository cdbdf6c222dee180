"""Apply a model to clips, or to their frames, of stores whose features are of the kind that it reads."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import local_path, write_whole
from obygaze_features.manifest import Manifest
from obygaze_features.screen import Progress
from obygaze_features.store import Group, Store
from obygaze_features.store.files_remote import as_url
from obygaze_features.store.group import rows_of
from obygaze_features.store.records import StoredClip
from obygaze_features.store.store import locate
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.concepts.in_time import ConceptsInTime
from obygaze_models.dataset.features import read_padded
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.models.attention import AttentionPooling
from obygaze_models.persistence.card import PROTOCOL, Card
from obygaze_models.persistence.evidence import NO_SKILL, evidence_line
from obygaze_models.prediction.out_of_distribution import OUT_OF_DISTRIBUTION
from obygaze_models.prediction.reading import Clips, find_group, lacking, read_clips
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import Recognition, recognise
from obygaze_models.reduction import reduce_tokens

COLUMNS = (
    *("clip_id", "movie", "video", "start_s", "end_s"),
    *("logit", "p", "p_low", "p_high", "called", "unlike", "flags"),
)
"""Columns of every table of predictions, followed by those of concepts."""

TRAINED_ON, PARTIAL = "trained_on", "partial"
"""Values of `flags`, beside `OUT_OF_DISTRIBUTION` and `NO_SKILL`, separated by semicolons."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a model for the clips of stores.

    Attributes
    ----------
    table : DataFrame
        `COLUMNS`, one row per clip with features, sorted by movie and time. For a model with concepts follow
        ``<concept>_value`` and, of concepts with labels, ``<concept>_p``; for one that decides by them
        ``<concept>_contribution``, and ``base_contribution``: all contributions add up to the logit. Missing
        values:

        - ``video`` if no manifest gives it, ``start_s`` and ``end_s`` if a clip is a whole file;
        - ``p``, its band, ``called``, concepts' probabilities and contributions where the clip is flagged
          ``unlike`` (out of distribution);
        - ``p`` and its band for a model without calibration.
    excluded : dict of str to list of str
        Clips without features, by reason.
    evidence : str
        What films left out show of the model, in one line.
    recognition : Recognition
        Which films and clips the model was trained on, and by what they are known again.
    """

    table: pd.DataFrame
    excluded: Mapping[str, list[str]]
    evidence: str = ""
    recognition: Recognition = field(default_factory=Recognition)

    def __repr__(self) -> str:
        evidence = f"; {self.evidence}" if self.evidence else ""
        return f"Predicted({len(self.table)} clips of {self.table['movie'].nunique()} movies{evidence})"

    def _repr_html_(self) -> str:
        first: str = self.table.head(10).to_html(index=False)
        return f"<div><strong>{escape(repr(self))}</strong>{first}</div>"

    def has(self, flag: str) -> NDArray[np.bool_]:
        """Mark the clips [N] that have a flag."""
        return np.array([flag in flags.split(";") for flags in self.table["flags"]], dtype=np.bool_)

    def to_csv(self) -> str:
        """Write the table as CSV text, numbers unrounded."""
        return str(self.table.to_csv(index=False, lineterminator="\n"))

    def write(self, path: Path | str) -> None:
        """Write the table to a CSV file atomically."""
        write_whole(local_path(path), self.to_csv())


@checked
def predict(
    model: Model,
    stores: Store | Sequence[Store],
    manifest: Manifest | None = None,
    *,
    movies: Collection[str] | None = None,
    progress: Progress | bool | None = None,
) -> Predicted:
    """Score every clip of some stores that has features.

    Parameters
    ----------
    model : Model
    stores : Store or sequence of Store
        No clip may be in two of them; of a model of several modalities, in two that have the same.
    manifest : Manifest, optional
        Gives the clips' videos, which stores do not keep.
    movies : collection of str, optional
        Score the clips of these movies alone.
    progress : callable or bool, optional
        Called with the numbers of clips whose tokens are reduced and of all, for a model that reads these; or
        whether to show a bar, by default in a notebook alone.

    Raises
    ------
    ModelError
        The manifest is of another codebook; a store's features are not of the kind that the model reads
        (names the first field that differs); a clip is in two stores; or no clip has features.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> predicted = om.predict(om.load_model("kept/linear.model"), of.open_store("stores/more"))
    >>> len(predicted.table), int(predicted.has("trained_on").sum())
    (95, 0)
    """
    stores = [stores] if isinstance(stores, Store) else stores
    video_of = {}
    if manifest is not None:
        own, other = model.card.codebook["name"], manifest.codebook.name
        if own != other:
            raise ModelError(f"the model is of codebook {own!r}, the manifest of codebook {other!r}")
        video_of = {clip.clip_id: clip.video for clip in manifest.clips}
    excluded: dict[str, list[str]] = {}
    read = read_clips(
        model.card, stores, excluded, lambda clip: movies is None or clip.movie in movies, progress
    )
    recognition = recognise(model.card, model.training, stores)
    parts = [_table(model, clips, X, video_of, recognition) for clips, X in read]
    if not parts:
        names = ", ".join(store.name for store in stores)
        raise ModelError(f"no clip of store {names} has features of {model.card.backbone}")
    table = pd.concat(parts, ignore_index=True)
    order = ["movie", "start_s", "end_s", "clip_id"]
    in_order = table.sort_values(order, kind="stable", ignore_index=True)
    return Predicted(in_order, excluded, evidence_line(model.card.evidence), recognition)


def _table(
    model: Model, clips: Clips, X: NDArray[Any], video_of: Mapping[str, str], recognition: Recognition
) -> pd.DataFrame:
    """Compute the rows of clips that were read together."""
    far = model.is_out_of_distribution(X)
    logits = model.logits(X)
    empty = np.full(len(clips), np.nan)
    p = low = high = empty
    if model.calibration is not None:
        p, (low, high) = model.calibration.probability(logits), model.calibration.band(logits)
    called = (logits >= model.card.threshold).astype(np.float64) if model.decides else empty
    flags = []
    for clip, is_far, lacks in zip(clips, far, lacking(model.card, X), strict=True):
        own = {
            OUT_OF_DISTRIBUTION: is_far,
            NO_SKILL: model.card.no_skill,
            TRAINED_ON: recognition.knows(clip.clip_id, clip.movie),
            PARTIAL: clip.status == "partial",
        }
        flags.append(";".join([*(name for name, holds in own.items() if holds), *lacks]))

    def known(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(far, np.nan, values)

    columns: dict[str, Any] = {
        "clip_id": [clip.clip_id for clip in clips],
        "movie": [clip.movie for clip in clips],
        "video": [video_of.get(clip.clip_id, "") for clip in clips],
        "start_s": np.array([clip.start_s for clip in clips], dtype=np.float64),
        "end_s": np.array([clip.end_s for clip in clips], dtype=np.float64),
        "logit": logits,
        "p": known(p),
        "p_low": known(low),
        "p_high": known(high),
        "called": pd.array(known(called)).astype("Int64"),
        "unlike": model.out_of_distribution_share(X),
        "flags": flags,
    }
    values, shares = model.concept_values(X), model.concept_probabilities(X)
    decided = isinstance(model.estimator, ConceptBottleneck)
    base, added = model.contributions(X) if decided else (0.0, values)
    for index, concept in enumerate(model.concepts):
        columns[f"{concept}_value"] = values[:, index]
        if model.likely_concepts:
            columns[f"{concept}_p"] = known(shares[:, index])
        if decided:
            columns[f"{concept}_contribution"] = known(added[:, index])
    if decided:
        columns["base_contribution"] = known(np.full(len(clips), base))
    return pd.DataFrame(columns)


@checked
def refuse_wrong_order(model: str, stores: Sequence[str]) -> None:
    """Refuse a store in place of the model, and give the order of arguments.

    Raises
    ------
    ModelError
        The first argument is a store.
    """
    if as_url(model) or Path(model).suffix == ".model":
        return
    try:
        locate(Path(model))
    except (StoreError, OSError):
        return
    others = [store for store in stores if not as_url(store) and Path(store).is_file()]
    then = f" and {others[0]} a file" if others else ""
    raise ModelError(f"{model} is a store{then}: the order is MODEL STORE..., the model first")


def document(predicted: Predicted, model: Model, stores: Sequence[Store]) -> dict[str, object]:
    """Return predictions and their sources as JSON values; missing values are null."""
    card = model.card
    return {
        "model": summary(card),
        "stores": [{"store": store.name, "fingerprint": store.fingerprint} for store in stores],
        "threshold": float(card.threshold),
        "clips": records(predicted.table.astype(object)),
        "excluded": [
            {"reason": reason, "clip_ids": ids} for reason, ids in sorted(predicted.excluded.items())
        ],
        "trained_on": [asdict(film) for film in predicted.recognition.films.values()],
        "pictures_not_compared": predicted.recognition.no_pictures,
    }


def summary(card: Card) -> dict[str, object]:
    """Summarise a model for a document: what it is, its task, and its training data."""
    return {
        "model": card.model,
        "title": card.title,
        "target": card.target["name"],
        "codebook": dict(card.codebook),
        "backbone": card.backbone,
        "store": card.store,
        "movies": list(card.movies),
        "calibrated": bool(card.calibration),
        "evidence": card.evidence,
        "no_skill": card.no_skill,
        "evidence_line": evidence_line(card.evidence),
        "licence": card.licence,
        "format": PROTOCOL,
    }


# --- frames
# ---------------------------------------------------------------------------
OF_ATTENTION = ("weight", "evidence", "contribution")
"""Columns of models that weigh frames; empty for others."""

FRAME_COLUMNS = ("clip_id", "movie", "frame", "time_s", "flags", *OF_ATTENTION)
"""Columns of every table of frames, followed by two per concept; `flags` may be `TRAINED_ON`."""


@checked
def predict_frames(model: Model, stores: Store | Sequence[Store]) -> pd.DataFrame:
    """Compute a model's output for each sampled frame of each clip.

    Parameters
    ----------
    model : Model
        One that weighs frames (``attention``), or finds concepts in them (``pcbm_time``).
    stores : Store or sequence of Store
        With the array `frames` of the backbone that the model reads, or the tokens that it reads reduced.

    Returns
    -------
    DataFrame
        `FRAME_COLUMNS`, one row a frame (or vector of reduced tokens), sorted by clip and time. ``flags`` is
        ``trained_on`` where the model knows the film. For attention
        ``weight`` (a clip's add up to 1), ``evidence`` and ``contribution``, their product: a clip's
        contributions and the model's bias add up to its logit. For concepts ``<concept>_value``, what a clip
        of this frame alone has, and ``<concept>_p``, calibrated on clips. Empty where the clip is out of
        distribution.

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
    if not says_when(model):
        raise ModelError(
            f"model {model.card.model} says nothing of frames: attention weighs them, and pcbm_time finds "
            "concepts in them"
        )
    stores = [stores] if isinstance(stores, Store) else stores
    parts = [
        frames_of(model, store, np.flatnonzero(find_group(model.card, store).usable)) for store in stores
    ]
    table = pd.concat(parts, ignore_index=True)
    if table.empty:
        raise ModelError(f"no clip of {', '.join(store.name for store in stores)} has features")
    recognition = recognise(model.card, model.training, stores)
    owners = zip(table["clip_id"], table["movie"], strict=True)
    flags = [TRAINED_ON if recognition.knows(*owner) else "" for owner in owners]
    table.insert(FRAME_COLUMNS.index("flags"), "flags", flags)
    return table.sort_values(["movie", "clip_id", "frame"], kind="stable", ignore_index=True)


def says_when(model: Model) -> bool:
    """Return whether a model has an output for single frames."""
    return isinstance(model.estimator, AttentionPooling | ConceptsInTime)


@checked
def reads_frames(model: Model, store: Store) -> bool:
    """Return whether a model has an output for the frames, or reduced tokens, that a store keeps."""
    if not says_when(model):
        return False
    group = store[model.card.backbone]
    own = "frames" in group.arrays and group.shape("frames")[-1] == model.card.n_features
    return own or bool(model.card.reduced_by)


def frame_times(group: Group, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the time of each vector of `frames` in seconds [N, F]; a tubelet has its frames' mean time.

    Where clips have frames of any number, F is that of the longest, and NaN stands where a clip has fewer.
    """
    if group.ragged:
        return read_padded(group, "time_s", rows)
    n_vectors = group.shape("frames")[1]
    return np.asarray(group.time_s[rows].reshape(len(rows), n_vectors, -1).mean(axis=2))


@checked
def frames_of(model: Model, store: Store, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Compute a model's output for each frame of some clips of a store, without flags; rows in rising order.

    Raises
    ------
    ModelError
        The store lacks what the model reads of frames.
    """
    times, vectors = _read_frames(model, store, rows)
    blocks = [
        _of_clip(model, store.clips[row], frames, moments[: len(frames)])
        for row, frames, moments in zip(rows.tolist(), vectors, times, strict=True)
    ]
    none = pd.DataFrame(columns=[name for name in FRAME_COLUMNS if name != "flags"])
    return pd.concat(blocks, ignore_index=True) if blocks else none


def _read_frames(
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
    model: Model, clip: StoredClip, frames: NDArray[Any], times: NDArray[np.float64]
) -> pd.DataFrame:
    estimator, wide = model.estimator, frames.astype(np.float32)[None]
    columns: dict[str, Any] = {
        "clip_id": clip.clip_id,
        "movie": clip.movie,
        "frame": np.arange(len(frames)),
        "time_s": times,
        **dict.fromkeys(OF_ATTENTION, np.nan),
    }
    far = bool(model.is_out_of_distribution(wide)[0])
    if isinstance(estimator, AttentionPooling) and not far:
        weights, evidence = estimator.weights(wide)[0], estimator.evidence(wide)[0]
        # One type, whatever clips are joined: those without a weight have NaN of float64.
        of_frames = (each.astype(np.float64) for each in (weights, evidence, weights * evidence))
        columns |= zip(OF_ATTENTION, of_frames, strict=True)
    if isinstance(estimator, ConceptsInTime):
        values = estimator.frame_values(wide)[0]
        shares = model.probabilities_of(values)
        for index, concept in enumerate(model.concepts):
            columns[f"{concept}_value"] = values[:, index]
            if model.likely_concepts:
                columns[f"{concept}_p"] = np.nan if far else shares[:, index]
    return pd.DataFrame(columns)
