"""Extract texts (prompts or captions) with text backbones into a store."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import TextBackbone, Tokens
from obygaze_features.extraction.decode_clips import not_finite
from obygaze_features.extraction.job import group_of
from obygaze_features.extraction.report import Run, RunReport, recording_of
from obygaze_features.manifest import TextList
from obygaze_features.store import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip, Stage
from obygaze_features.store.format import TEXTS

TRIALS = 16
SORTED_AT_ONCE = 1024
"""Neighbouring texts that are sorted by length together: all their pieces of the stage are open at once."""
_NO_FRAMES: dict[str, Any] = {
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
        """List the texts in the form of the store's plan."""
        return [PlannedClip(text_id, "", text=text) for text_id, text in self.texts.rows]

    def groups(self) -> list[GroupSpec]:
        """Describe one group of the store per backbone, with its complete provenance."""
        return [
            group_of(backbone, [ArraySpec("pooled", (backbone.width,), "float32")], 1, **_NO_FRAMES)
            for backbone in self.backbones
        ]

    def corpus_record(self) -> dict[str, object]:
        """Return the name of the list of texts."""
        return {"name": self.corpus, "manifest_sha256": self.texts.digest()}

    def tokens(self, text_ids: Sequence[str]) -> dict[str, dict[str, Tokens]]:
        """Tokenise some texts: backbone -> text id -> tokens."""
        texts = dict(self.texts.rows)
        chosen = [texts[text_id] for text_id in text_ids]
        return {each.name: dict(zip(text_ids, each.tokenize(chosen), strict=True)) for each in self.backbones}


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

    def facts(self) -> list[tuple[str, object]]:
        """List the work to be done as pairs of name and value."""
        return [("texts to do", self.texts), ("to be cut", f"{self.cut} longer than a backbone takes")]


def estimate_texts(job: TextJob, text_ids: Sequence[str]) -> TextEstimate:
    """Encode up to sixteen texts of different lengths, and scale up."""
    tokens = job.tokens(text_ids)
    order = by_length(text_ids, tokens)
    tried = order[:: max(len(order) // TRIALS, 1)][:TRIALS]
    before = time.perf_counter()
    for text_id in tried:
        encode_texts(job.backbones, [text_id], tokens)
    seconds = time.perf_counter() - before
    cut = sum(any(of[text_id].is_cut for of in tokens.values()) for text_id in text_ids)
    width = sum(backbone.width for backbone in job.backbones)
    expected = seconds * len(order) / len(tried) if tried else None
    return TextEstimate(len(order), cut, 4 * width * len(order), expected, len(tried))


def run_texts(
    job: TextJob,
    stage: Stage,
    text_ids: Sequence[str],
    *,
    batch_size: int,
    stopped: Callable[[], bool] = lambda: False,
) -> Run:
    """Extract some texts into a stage, sorted by length, so that texts of a batch have similar lengths.

    Parameters
    ----------
    batch_size
        Texts that are encoded and committed together.
    stopped
        Polled after every batch; once true, the run ends.
    """
    report = RunReport()
    with recording_of(stage, text_ids, report) as recording:
        tokens = job.tokens(text_ids)
        for first in range(0, len(text_ids), SORTED_AT_ONCE):
            order = by_length(text_ids[first : first + SORTED_AT_ONCE], tokens)
            for start in range(0, len(order), batch_size):
                if stopped():
                    break
                before = time.perf_counter()
                results = encode_texts(job.backbones, order[start : start + batch_size], tokens)
                report.infer_s += time.perf_counter() - before
                yield report, recording.commit(results)
    yield report, recording.written()


def by_length(text_ids: Sequence[str], tokens: Mapping[str, Mapping[str, Tokens]]) -> list[str]:
    """Sort texts by number of tokens; the sort is stable."""
    return sorted(text_ids, key=lambda text_id: [len(of[text_id].ids) for of in tokens.values()])


def encode_texts(
    backbones: Sequence[TextBackbone], text_ids: Sequence[str], tokens: Mapping[str, Mapping[str, Tokens]]
) -> list[ClipResult]:
    """Run every backbone over some texts; texts of equal length are encoded together.

    A text fails if a backbone has no tokens for it or gives a vector with NaN or inf. A text longer than a
    backbone's maximum is partial.
    """
    vectors = {each.name: _vectors(each, text_ids, tokens[each.name]) for each in backbones}
    return [_result(text_id, vectors, tokens) for text_id in text_ids]


def _vectors(
    backbone: TextBackbone, text_ids: Sequence[str], tokens: Mapping[str, Tokens]
) -> dict[str, NDArray[np.float32]]:
    def length(text_id: str) -> int:
        return len(tokens[text_id].ids)

    vectors: dict[str, NDArray[np.float32]] = {}
    for size, some in groupby(sorted(text_ids, key=length), length):
        together = list(some)
        if size:
            batch = np.array([tokens[text_id].ids for text_id in together], np.int64)
            vectors |= dict(zip(together, backbone.encode(batch), strict=True))
    return vectors


def _result(
    text_id: str,
    vectors: Mapping[str, Mapping[str, NDArray[np.float32]]],
    tokens: Mapping[str, Mapping[str, Tokens]],
) -> ClipResult:
    groups = {}
    notes = []
    for name, of_backbone in vectors.items():
        vector, read = of_backbone.get(text_id), tokens[name][text_id]
        if vector is None:
            return ClipResult(text_id, "failed", f"{name} has no token for this text")
        if reason := not_finite(name, {"pooled": vector}):
            return ClipResult(text_id, "failed", reason)
        if read.is_cut:
            for_whom = f"{name}: " if len(vectors) > 1 else ""
            notes.append(f"{for_whom}cut at {read.limit} of {read.n_tokens} tokens")
        groups[name] = ClipFeatures(np.zeros(1), np.zeros(1, np.int64), {"pooled": vector})
    return ClipResult(text_id, "partial" if notes else "ok", "; ".join(notes), groups=groups)
