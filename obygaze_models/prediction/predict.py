"""Apply a model to clips of stores whose features are of the kind that it reads, a block at a time."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.errors import StoreError
from obygaze_features.io import local_path, whole_file
from obygaze_features.manifest import Manifest
from obygaze_features.screen import Progress
from obygaze_features.store import Store
from obygaze_features.store.files_remote import as_url
from obygaze_features.store.store import locate
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.persistence.card import PROTOCOL, Card
from obygaze_models.persistence.evidence import NO_SKILL, evidence_line
from obygaze_models.prediction.out_of_distribution import LIMIT, OUT_OF_DISTRIBUTION
from obygaze_models.prediction.reading import ClipBlock, find_clips, lacking
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import Recognition, recognise

COLUMNS = (
    *("clip_id", "movie", "video", "start_s", "end_s"),
    *("logit", "p", "p_low", "p_high", "called", "unlike", "flags"),
)
"""Columns of every table of predictions, followed by those of concepts."""

TRAINED_ON, PARTIAL = "trained_on", "partial"
"""Values of `flags`, beside `OUT_OF_DISTRIBUTION` and `NO_SKILL`, separated by semicolons."""

Columns = dict[str, NDArray[Any]]
"""Columns of a table by name, of equal lengths."""


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
        with whole_file(local_path(path)) as partial:
            self.table.to_csv(partial, index=False, lineterminator="\n")


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
    readable = find_clips(model.card, stores, movies=movies)
    if not len(readable):
        names = ", ".join(store.name for store in stores)
        raise ModelError(f"no clip of store {names} has features of {model.card.backbone}")
    recognition = recognise(model.card, model.training, stores)
    parts = [_columns_of(model, block, recognition) for block in readable.blocks(progress)]
    order = readable.clips.order()
    clips = readable.clips.take(order)
    columns: dict[str, Any] = {
        "clip_id": clips.clip_ids,
        "movie": clips.movies,
        "video": [video_of.get(clip_id, "") for clip_id in clips.clip_ids],
        "start_s": clips.start_s,
        "end_s": clips.end_s,
    }
    for name in list(parts[0]):
        # A column after the other, so that no second table is in memory.
        values = np.concatenate([part.pop(name) for part in parts])[order]
        columns[name] = pd.array(values).astype("Int64") if name == "called" else values
    table = pd.DataFrame(columns, copy=False)
    return Predicted(table, readable.excluded, evidence_line(model.card.evidence), recognition)


def _columns_of(model: Model, block: ClipBlock, recognition: Recognition) -> Columns:
    """Compute what a model says of clips that were read together, as columns."""
    unlike = model.out_of_distribution_share(block.X)
    is_far = unlike > LIMIT

    def where_near(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(is_far, np.nan, values)

    logits = model.logits(block.X)
    unknown = np.full(len(block.clips), np.nan)
    p = p_low = p_high = called = unknown
    if model.calibration is not None:
        p = model.calibration.probability(logits)
        p_low, p_high = model.calibration.band(logits)
    if model.decides:
        called = (logits >= model.card.threshold).astype(np.float64)
    columns: Columns = {
        "logit": logits,
        "p": where_near(p),
        "p_low": where_near(p_low),
        "p_high": where_near(p_high),
        "called": where_near(called),
        "unlike": unlike,
        "flags": _flags_of(model.card, block, is_far, recognition),
    }
    values = model.concept_values(block.X)
    shares = model.probabilities_of(values)
    base, contributions = 0.0, np.empty_like(values)
    decides_by_concepts = isinstance(model.estimator, ConceptBottleneck)
    if decides_by_concepts:
        base, contributions = model.contributions(block.X)
    for index, concept in enumerate(model.concepts):
        columns[f"{concept}_value"] = values[:, index]
        if model.likely_concepts:
            columns[f"{concept}_p"] = where_near(shares[:, index])
        if decides_by_concepts:
            columns[f"{concept}_contribution"] = where_near(contributions[:, index])
    if decides_by_concepts:
        columns["base_contribution"] = where_near(np.full(len(block.clips), base))
    return columns


def _flags_of(
    card: Card, block: ClipBlock, is_far: NDArray[np.bool_], recognition: Recognition
) -> NDArray[np.object_]:
    """List the flags of each clip [N], as one text."""
    texts = np.empty(len(block.clips), np.object_)
    lacks = lacking(card, block.X)
    clips = block.clips
    for place, (clip_id, movie) in enumerate(zip(clips.clip_ids, clips.movies, strict=True)):
        flags = []
        if is_far[place]:
            flags.append(OUT_OF_DISTRIBUTION)
        if card.no_skill:
            flags.append(NO_SKILL)
        if recognition.knows(clip_id, movie):
            flags.append(TRAINED_ON)
        if clips.is_partial[place]:
            flags.append(PARTIAL)
        texts[place] = sys.intern(";".join([*flags, *lacks[place]]))
    return texts


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
