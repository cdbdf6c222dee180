"""Extract texts (prompts or captions) with text backbones into a store."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import TextBackbone, Tokens
from obygaze_features.extraction.decode_clips import not_finite
from obygaze_features.extraction.job import group_of
from obygaze_features.extraction.report import BATCHES_AHEAD, Run, RunReport, recording_of
from obygaze_features.manifest import TextList
from obygaze_features.store import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip, Stage
from obygaze_features.store.format import TEXTS

MAX_TRIALS = 16
"""Texts that are encoded for an estimate."""
SORTED_AT_ONCE = 1024
"""Neighbouring texts that are sorted by length together: all their pieces of the stage are open at once."""
_RECORD_WITHOUT_FRAMES: dict[str, Any] = {
    "preset": {"resize": None, "crop": None, "constants": None, "order": None},
    "sampling": {"policy": TEXTS, "n": None},
    "decoder": {"av": "none", "ffmpeg": "none", "on_damage": "none"},
}
"""Sampling fields of the store for texts, which have no frames."""


@dataclass(frozen=True)
class TextJob:
    """All settings that determine the features in a store of texts.

    Parameters
    ----------
    corpus
        Name of the list of texts in the store.
    """

    texts: TextList
    corpus: str
    backbones: tuple[TextBackbone, ...]

    def planned_clips(self) -> list[PlannedClip]:
        """List the texts as rows of the store's plan."""
        return [PlannedClip(text_id, "", text=text) for text_id, text in self.texts.rows]

    def groups(self) -> list[GroupSpec]:
        """Describe the group of vectors that each backbone fills in the store, with its provenance."""
        groups = []
        for backbone in self.backbones:
            arrays = [ArraySpec("pooled", (backbone.width,), "float32")]
            # The store's format is that of clips, so that a text counts as a clip of one frame.
            groups.append(group_of(backbone, arrays, n_frames=1, **_RECORD_WITHOUT_FRAMES))
        return groups

    def corpus_record(self) -> dict[str, object]:
        """Return what the store records of the list of texts: its name, and its digest."""
        return {"name": self.corpus, "manifest_sha256": self.texts.digest()}

    def tokens(self, text_ids: Sequence[str]) -> dict[str, dict[str, Tokens]]:
        """Divide some texts into tokens, as each backbone does it.

        Returns
        -------
        dict
            Name of a backbone -> text id -> tokens.
        """
        text_of_id = dict(self.texts.rows)
        texts = [text_of_id[text_id] for text_id in text_ids]
        tokens = {}
        for backbone in self.backbones:
            tokens[backbone.name] = dict(zip(text_ids, backbone.tokenize(texts), strict=True))
        return tokens


@dataclass(frozen=True, slots=True)
class TextEstimate:
    """Remaining work of a text extraction and its expected cost.

    Parameters
    ----------
    texts, cut
        Texts to do, and how many of them exceed a backbone's maximum length.
    feature_bytes
        Size of the vectors, in bytes.
    seconds
        Expected wall time in seconds, or None if no text was tried.
    tried
        Number of trial texts.
    """

    texts: int
    cut: int
    feature_bytes: int
    seconds: float | None
    tried: int

    @property
    def n_to_do(self) -> int:
        """Number of rows that are left to do."""
        return self.texts

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done as pairs of name and value."""
        return [("texts to do", self.texts), ("to be cut", f"{self.cut} longer than a backbone takes")]


def estimate_texts(job: TextJob, text_ids: Sequence[str]) -> TextEstimate:
    """Estimate the cost of encoding texts, by encoding up to `MAX_TRIALS` of different lengths.

    Parameters
    ----------
    job
        The texts and the backbones.
    text_ids
        Texts that are left to do.
    """
    tokens = job.tokens(text_ids)
    n_texts = len(text_ids)

    # Encode texts at equal distances in the order of their lengths.
    step = max(n_texts // MAX_TRIALS, 1)
    trial_ids = by_length(text_ids, tokens)[::step][:MAX_TRIALS]
    started_s = time.perf_counter()
    for text_id in trial_ids:
        encode_texts(job.backbones, [text_id], tokens)
    trial_s = time.perf_counter() - started_s
    expected_s = trial_s * n_texts / len(trial_ids) if trial_ids else None

    n_too_long = 0
    for text_id in text_ids:
        if any(tokens_of_backbone[text_id].is_cut for tokens_of_backbone in tokens.values()):
            n_too_long += 1

    vector_length = sum(backbone.width for backbone in job.backbones)
    n_bytes = 4 * vector_length * n_texts  # a float32 has 4 bytes
    return TextEstimate(n_texts, n_too_long, n_bytes, expected_s, len(trial_ids))


def run_texts(
    job: TextJob,
    stage: Stage,
    text_ids: Sequence[str],
    *,
    batch_size: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Run:
    """Encode texts and write their vectors into an unfinished store, texts of similar lengths together.

    While a batch is encoded, earlier ones are written. After each batch, the report so far and the results
    that were written by then are yielded, and at the end all that are left.

    Parameters
    ----------
    job, text_ids
        The texts and the backbones, and which of the texts to encode.
    stage
        The unfinished store.
    batch_size
        Texts that are encoded and committed together.
    stopped
        Polled before every batch; once true, the run ends.
    """
    report = RunReport()
    with recording_of(stage, text_ids, report) as recording:
        tokens = job.tokens(text_ids)
        for batch_ids in _batches_by_length(text_ids, tokens, batch_size):
            if stopped():
                break
            before = time.perf_counter()
            results = encode_texts(job.backbones, batch_ids, tokens)
            report.infer_s += time.perf_counter() - before
            # Waits until at most `BATCHES_AHEAD` batches are unwritten, before this one is added to them.
            written = recording.take_written(BATCHES_AHEAD)
            recording.queue(results)
            yield report, written
    yield report, recording.take_written()


def _batches_by_length(
    text_ids: Sequence[str], tokens: Mapping[str, Mapping[str, Tokens]], batch_size: int
) -> Iterator[list[str]]:
    """Divide texts into batches of similar lengths, as texts of equal length are encoded together.

    Every `SORTED_AT_ONCE` neighbouring texts are sorted by their number of tokens, and then divided. Not all
    texts are sorted, because neighbours are written to one file, which stays open until it has all of them.
    `tokens` has for each backbone the tokens of each text.
    """
    for first in range(0, len(text_ids), SORTED_AT_ONCE):
        sorted_ids = by_length(text_ids[first : first + SORTED_AT_ONCE], tokens)
        for start in range(0, len(sorted_ids), batch_size):
            yield sorted_ids[start : start + batch_size]


def by_length(text_ids: Sequence[str], tokens: Mapping[str, Mapping[str, Tokens]]) -> list[str]:
    """Sort texts by their number of tokens: by the first backbone's, then the second's, and so on.

    Parameters
    ----------
    text_ids
        The texts.
    tokens
        Backbone -> text id -> tokens.
    """

    def lengths(text_id: str) -> list[int]:
        """Return the number of tokens of a text for each backbone."""
        return [len(tokens_of_backbone[text_id].ids) for tokens_of_backbone in tokens.values()]

    return sorted(text_ids, key=lengths)


def encode_texts(
    backbones: Sequence[TextBackbone], text_ids: Sequence[str], tokens: Mapping[str, Mapping[str, Tokens]]
) -> list[ClipResult]:
    """Encode texts with every backbone, those of equal length together; return a result for each text.

    A text fails if a backbone has no tokens for it or gives a vector with NaN or inf. A text longer than a
    backbone's maximum is partial.

    Parameters
    ----------
    backbones
        The backbones.
    text_ids
        The texts.
    tokens
        Backbone -> text id -> tokens.
    """
    vectors = {}
    for backbone in backbones:
        vectors[backbone.name] = _vectors(backbone, text_ids, tokens[backbone.name])
    return [_result(text_id, vectors, tokens) for text_id in text_ids]


def _vectors(
    backbone: TextBackbone, text_ids: Sequence[str], tokens: Mapping[str, Tokens]
) -> dict[str, NDArray[np.float32]]:
    """Encode texts with one backbone; return text id -> vector [D], without texts that have no tokens.

    Texts of equal length are encoded together, so that none is padded.

    Parameters
    ----------
    backbone
        The backbone.
    text_ids
        The texts.
    tokens
        Text id -> its tokens, as the backbone divides the text.
    """
    ids_by_length: dict[int, list[str]] = {}  # number of tokens -> the texts that have so many
    for text_id in text_ids:
        n_tokens = len(tokens[text_id].ids)
        ids_by_length.setdefault(n_tokens, []).append(text_id)

    vectors: dict[str, NDArray[np.float32]] = {}
    for n_tokens, batch_ids in sorted(ids_by_length.items()):
        if n_tokens == 0:
            continue
        batch = np.array([tokens[text_id].ids for text_id in batch_ids], np.int64)  # [B, tokens]
        vectors_of_batch = backbone.encode(batch)  # [B, D]
        vectors |= dict(zip(batch_ids, vectors_of_batch, strict=True))
    return vectors


def _result(
    text_id: str,
    vectors: Mapping[str, Mapping[str, NDArray[np.float32]]],
    tokens: Mapping[str, Mapping[str, Tokens]],
) -> ClipResult:
    """Return the result of a text: its vectors, and whether it was cut (partial) or has failed.

    Parameters
    ----------
    text_id
        The text.
    vectors
        Backbone -> text id -> vector [D].
    tokens
        Backbone -> text id -> tokens.
    """
    groups = {}
    notes = []
    for name, vector_of_text in vectors.items():
        vector = vector_of_text.get(text_id)
        if vector is None:
            return ClipResult(text_id, "failed", f"{name} has no token for this text")
        reason = not_finite(name, {"pooled": vector})
        if reason:
            return ClipResult(text_id, "failed", reason)
        text_tokens = tokens[name][text_id]
        if text_tokens.is_cut:
            backbone_prefix = f"{name}: " if len(vectors) > 1 else ""
            notes.append(f"{backbone_prefix}cut at {text_tokens.limit} of {text_tokens.n_tokens} tokens")
        # Every row of a store has frames; a text is stored as one frame, at 0 s.
        time_s = np.zeros(1)
        frame_index = np.zeros(1, np.int64)
        groups[name] = ClipFeatures(time_s, frame_index, {"pooled": vector})
    return ClipResult(text_id, "partial" if notes else "ok", "; ".join(notes), groups=groups)
