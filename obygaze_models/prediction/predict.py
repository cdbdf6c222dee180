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
from obygaze_features.text import counted
from obygaze_models.concepts.bottleneck import ConceptBottleneck
from obygaze_models.errors import ModelError
from obygaze_models.evaluation.predictions import records
from obygaze_models.persistence.card import PROTOCOL, Card
from obygaze_models.persistence.evidence import NO_SKILL, evidence_line
from obygaze_models.prediction.clip_columns import ClipColumns
from obygaze_models.prediction.effects import has_usual_values, probability_changes
from obygaze_models.prediction.out_of_distribution import LARGEST_SHARE, OUT_OF_DISTRIBUTION
from obygaze_models.prediction.reading import ClipBlock, find_clips, missing_modality_flags
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import Recognition, recognise

COLUMNS = (
    *("clip_id", "movie", "video", "start_s", "end_s"),
    *("logit", "p", "p_low", "p_high", "called", "unlike", "flags"),
)
"""Columns of every table of predictions, followed by those of concepts."""

TRAINED_ON = "trained_on"
"""Flag of a clip that the model was trained on, or whose film it was trained on."""

PARTIAL = "partial"
"""Flag of a clip of whose video a part could not be read. A clip's flags are separated by semicolons."""

PLANTED_LABELS = (
    "The labels are planted: a program gave them to the clips that the model was trained on, "
    "and nobody judged them."
)
"""Line on a model whose labels nobody judged."""

PARTLY_PLANTED_LABELS = (
    "Some labels are planted: a program gave them to clips that the model was trained on, and nobody judged "
    "those."
)
"""Line on a model that was trained on labels of a program beside those of people."""

SHOWN_ROWS = 10
"""Rows that a notebook shows."""

Columns = dict[str, NDArray[Any]]
"""Columns of a table by name, of equal lengths."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a model for the clips of stores.

    Attributes
    ----------
    table : DataFrame
        `COLUMNS`, one row for each clip with features, sorted by movie and time. A model with concepts adds
        ``<concept>_value`` and, if the concepts have labels, ``<concept>_p``. A model that decides by
        concepts adds ``<concept>_contribution`` and ``base_contribution``: all contributions add up to the
        logit. If it has no usual values of concepts, as a tree, it also adds ``<concept>_change``: how much
        of the probability is due to the concept, as `explain` says it. Missing values:

        - ``video`` if no manifest gives it, ``start_s`` and ``end_s`` if a clip is a whole file;
        - ``p``, its band, ``called``, concepts' probabilities, contributions and changes where the clip is
          flagged ``unlike`` (out of distribution);
        - ``p``, its band and the changes for a model without calibration.
    excluded : dict of str to list of str
        Reason -> ids of clips without features.
    evidence : str
        One line on how well the model did on films left out of training.
    recognition : Recognition
        The films and clips that the model was trained on, and how they were recognised.
    """

    table: pd.DataFrame
    excluded: Mapping[str, list[str]]
    evidence: str = ""
    recognition: Recognition = field(default_factory=Recognition)

    def __repr__(self) -> str:
        """Count clips and movies, followed by the evidence."""
        clips = counted(len(self.table), "clip")
        movies = counted(self.table["movie"].nunique(), "movie")
        evidence = f"; {self.evidence}" if self.evidence else ""
        return f"Predicted({clips} of {movies}{evidence})"

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        first_rows: str = self.table.head(SHOWN_ROWS).to_html(index=False)
        return f"<div><strong>{escape(repr(self))}</strong>{first_rows}</div>"

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
        No clip may be in two of them, unless these have different modalities of the model.
    manifest : Manifest, optional
        Gives the clips' videos, which stores do not keep.
    movies : collection of str, optional
        Score the clips of these movies only.
    progress : callable or bool, optional
        For a model that reads reduced tokens: called with the number of clips whose tokens are reduced so far
        and the number of all clips; or whether to show a progress bar, by default only in a notebook.

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
    if manifest is not None:
        _refuse_other_codebook(model.card, manifest)
    readable = find_clips(model.card, stores, movies=movies)
    if not len(readable):
        names = ", ".join(store.name for store in stores)
        raise ModelError(f"no clip of store {names} has features of {model.card.backbone}")
    recognition = recognise(model.card, model.training, stores)
    columns_of_blocks = [
        _prediction_columns(model, block, recognition) for block in readable.blocks(progress)
    ]
    return Predicted(
        table=_join_blocks(readable.clips, manifest, columns_of_blocks),
        excluded=readable.excluded,
        evidence=evidence_line(model.card.evidence, model.card.levels_left_out or ()),
        recognition=recognition,
    )


def _refuse_other_codebook(card: Card, manifest: Manifest) -> None:
    """Raise if a manifest and a model are of different codebooks, whose levels and concepts differ."""
    codebook_of_model = card.codebook["name"]
    codebook_of_manifest = manifest.codebook.name
    if codebook_of_model != codebook_of_manifest:
        raise ModelError(
            f"the model is of codebook {codebook_of_model!r}, the manifest of codebook "
            f"{codebook_of_manifest!r}"
        )


def _join_blocks(
    clips: ClipColumns, manifest: Manifest | None, columns_of_blocks: Sequence[Columns]
) -> pd.DataFrame:
    """Join predictions of blocks of clips to one table, sorted by movie and time; this empties the blocks.

    Parameters
    ----------
    clips : ClipColumns
        The clips of all blocks, block by block.
    manifest : Manifest or None
        Gives the clips' videos.
    columns_of_blocks : sequence of dict
        The columns of each block. They are removed from the blocks as they are joined, so that memory never
        holds two tables.
    """
    video_of_clip = {}
    if manifest is not None:
        video_of_clip = {clip.clip_id: clip.video for clip in manifest.clips}

    order = clips.order()
    sorted_clips = clips.take(order)
    columns: dict[str, Any] = {
        "clip_id": sorted_clips.clip_ids,
        "movie": sorted_clips.movies,
        "video": [video_of_clip.get(clip_id, "") for clip_id in sorted_clips.clip_ids],
        "start_s": sorted_clips.start_s,
        "end_s": sorted_clips.end_s,
    }
    # The names are copied, as the loop takes the columns out of the first block too.
    for name in list(columns_of_blocks[0]):
        parts = [columns_of_block.pop(name) for columns_of_block in columns_of_blocks]
        columns[name] = np.concatenate(parts)[order]
    # 0 and 1, which are floats so far as they may be missing.
    columns["called"] = pd.array(columns["called"]).astype("Int64")
    return pd.DataFrame(columns, copy=False)


def _prediction_columns(model: Model, block: ClipBlock, recognition: Recognition) -> Columns:
    """Compute the columns of the table of predictions, from logits to concepts, for one block of clips.

    Clips out of distribution get no probability and no decision.
    """
    # The share of training clips that are nearer to the training mean than the clip. If nearly all of them
    # are, the clip is out of distribution.
    share_of_nearer = model.out_of_distribution_share(block.X)
    is_outside = share_of_nearer > LARGEST_SHARE
    logits = model.logits(block.X)
    missing = np.full(len(block.clips), np.nan)
    if model.calibration is None:
        p = p_low = p_high = missing
    else:
        p = model.calibration.probability(logits)
        p_low, p_high = model.calibration.band(logits)
    is_positive = (logits >= model.card.threshold).astype(np.float64) if model.decides else missing
    columns: Columns = {
        "logit": logits,
        "p": np.where(is_outside, np.nan, p),
        "p_low": np.where(is_outside, np.nan, p_low),
        "p_high": np.where(is_outside, np.nan, p_high),
        "called": np.where(is_outside, np.nan, is_positive),
        "unlike": share_of_nearer,
        "flags": _flag_texts(model.card, block, is_outside, recognition),
    }
    columns.update(_concept_columns(model, block, is_outside))
    return columns


def _concept_columns(model: Model, block: ClipBlock, is_outside: NDArray[np.bool_]) -> Columns:
    """Compute the columns of concepts for one block of clips; none for a model without concepts.

    Clips out of distribution, which `is_outside` [N] marks, get values, but neither probabilities,
    contributions nor changes.
    """
    columns: Columns = {}
    values = model.concept_values(block.X)  # [N, K]
    probabilities = model.probabilities_of(values)  # [N, K]

    # `base` is the part of the logit that all clips have in common.
    base: float | None = None
    contributions: NDArray[np.float64] | None = None
    changes: NDArray[np.float64] | None = None
    # Only the logits of a concept bottleneck are sums of contributions of concepts.
    if isinstance(model.estimator, ConceptBottleneck):
        base, contributions = model.contributions(block.X)
        # With usual values the changes follow from the contributions.
        if not has_usual_values(model.estimator):
            changes = probability_changes(model, block.X)

    for index, concept in enumerate(model.concepts):
        columns[f"{concept}_value"] = values[:, index]
        if concept in model.concepts_with_probability:
            columns[f"{concept}_p"] = np.where(is_outside, np.nan, probabilities[:, index])
        if contributions is not None:
            columns[f"{concept}_contribution"] = np.where(is_outside, np.nan, contributions[:, index])
        if changes is not None:
            columns[f"{concept}_change"] = np.where(is_outside, np.nan, changes[:, index])
    if base is not None:
        columns["base_contribution"] = np.where(is_outside, np.nan, base)
    return columns


def _flag_texts(
    card: Card, block: ClipBlock, is_outside: NDArray[np.bool_], recognition: Recognition
) -> NDArray[np.object_]:
    """Return the flags of each clip of a block [N], as one text with semicolons between flags.

    `is_outside` [N] marks the clips out of distribution.
    """
    texts = np.empty(len(block.clips), np.object_)
    modality_flags = missing_modality_flags(card, block.X)
    clips = block.clips
    for index, (clip_id, movie) in enumerate(zip(clips.clip_ids, clips.movies, strict=True)):
        flags = []
        if is_outside[index]:
            flags.append(OUT_OF_DISTRIBUTION)
        if card.no_skill:
            flags.append(NO_SKILL)
        if recognition.knows(clip_id, movie):
            flags.append(TRAINED_ON)
        if clips.is_partial[index]:
            flags.append(PARTIAL)
        # Interned, since the same few texts repeat for most clips.
        texts[index] = sys.intern(";".join([*flags, *modality_flags[index]]))
    return texts


@checked
def refuse_wrong_order(model: str, stores: Sequence[str]) -> None:
    """Raise if a command's first argument, the model, is a store: arguments were given in the wrong order.

    Raises
    ------
    ModelError
        The first argument is a store. The message also names the first of `stores` that is a file, and so is
        probably the model.
    """
    is_url = bool(as_url(model))
    has_model_suffix = Path(model).suffix == ".model"
    if is_url or has_model_suffix or not _is_store(Path(model)):
        return
    files = [store for store in stores if not as_url(store) and Path(store).is_file()]
    and_file = f" and {files[0]} a file" if files else ""
    raise ModelError(f"{model} is a store{and_file}: the order is MODEL STORE..., the model first")


def _is_store(path: Path) -> bool:
    """Tell whether a store is at a path."""
    try:
        locate(path)
    except (StoreError, OSError):
        return False
    return True


def document(predicted: Predicted, model: Model, stores: Sequence[Store]) -> dict[str, object]:
    """Make the JSON document of predictions: the model, the stores, and a row for each clip."""
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
        "pictures_not_compared": predicted.recognition.why_no_pictures,
    }


def labels_line(card: Card) -> str:
    """Return a line that warns of planted labels, which a program gave, not a person; "" if none are."""
    if card.is_planted:
        return PLANTED_LABELS
    if card.has_planted:
        return PARTLY_PLANTED_LABELS
    return ""


def summary(card: Card) -> dict[str, object]:
    """Summarise a model's card as JSON values: what it is, its task, and its training data."""
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
        "evidence_line": evidence_line(card.evidence, card.levels_left_out or ()),
        "labels_line": labels_line(card),
        "licence": card.licence,
        "format": PROTOCOL,
    }
