"""Say what a model sees in any span of a film, what is said there, and which spans are like it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

import obygaze_features as of
from obygaze_features.errors import ObygazeError
from obygaze_film.page.cards import concept_bar
from obygaze_film.page.phrases import Words, clock, why
from obygaze_film.page.view import FilmView
from obygaze_film.rows import windows_of
from obygaze_film.schema import ModelRecord, flags_in, is_counted
from obygaze_film.segments import means_of, reasons
from obygaze_models.prediction import mean_probability

if TYPE_CHECKING:
    from obygaze_film.workspace.pages import OpenFilm

NEAREST: Final = 4
"""Spans that are shown as like one."""

RANKED: Final = 200
"""Windows of a store that are ranked: the nearest overlap each other and the span itself."""


def span_evidence(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float, words: Words
) -> dict[str, Any]:
    """Describe a span: of a passage of the model's or one's own alike.

    Returns
    -------
    dict
        `p`, `band` and `reaches` (of the rows inside, weighted by how long they lie in it; empty where none
        is counted, and `flags` says why), `sentence`, `note`, `parts` of concepts, `cuts`, `said`, `like`.
    """
    view = film.view(words.language)
    rows = view.rows
    starts, ends = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    overlap = (np.minimum(ends, end_s) - np.maximum(starts, start_s)).clip(0)
    counted = is_counted(rows) & (overlap > 0)
    lines = film.timeline.subtitles
    spoken = lines[(lines["end_s"] > start_s) & (lines["start_s"] < end_s)]
    cuts = film.timeline.shots["start_s"]
    found: dict[str, Any] = {
        "p": "", "band": "", "reaches": False, "sentence": "", "note": "", "parts": [],
        "flags": words.flags(";".join(flags_in(rows[overlap > 0]))),
        "cuts": int(((cuts > start_s) & (cuts < end_s)).sum()),
        "said": [{"start": start, "clock": clock(start), "text": text}
                 for start, text in zip(spoken["start_s"].tolist(), spoken["text"], strict=True)],
        "like": [*_like(film, films, start_s, end_s)],
    }  # fmt: skip
    if counted.any() and view.model.threshold_p is not None:
        found |= _seen(view, rows[counted], overlap[counted], words)
    return found


def _seen(view: FilmView, rows: pd.DataFrame, weights: Any, words: Words) -> dict[str, Any]:
    """Describe what the model sees in rows."""
    means: dict[str, Any] = means_of(rows, weights, view.model)
    parts = reasons(means)
    largest = max((abs(part.contribution) for part in parts), default=1.0) or 1.0
    p = means["p"]
    note = ""
    if parts and view.model.by_concepts and all(concept.absent is None for concept in view.model.concepts):
        note = words["desk_no_without"]
    return {
        "p": words.probability(p),
        "band": words.interval(means["p_low"], means["p_high"], "–"),
        "reaches": p >= (view.model.threshold_p or 0.0),
        "sentence": why(parts, words, view.near_chance),
        "note": note,
        "parts": [
            concept_bar(part, largest, view)
            | {"p": words.probability(part.p, "desk_hundredth"), "seen": part.is_present}
            | {"without": _without(view.model, part.concept, rows, weights, words)}
            for part in parts
        ],
    }


def _without(model: ModelRecord, concept: str, rows: pd.DataFrame, weights: Any, words: Words) -> str:
    """Write how probable a span were with a concept at the 5th percentile: what `explain --set` computes."""
    part = next((one.absent for one in model.concepts if one.name == concept), None)
    if part is None or model.calibration is None:
        return ""
    logits = (rows["logit"] - rows[f"{concept}_contribution"] + part).to_numpy(dtype=np.float64)
    changed = mean_probability(np.array(model.calibration.draws), logits)
    p = (float(np.average(values, weights=weights)) for values in (rows["p"], changed))
    return " → ".join(words.probability(value, "desk_hundredth") for value in p)


def _like(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float
) -> Iterator[dict[str, Any]]:
    """Find the spans of the open films nearest to a span's middle window, as `search --like` ranks them."""
    store, movie = film.store, film.timeline.movie
    if store is None:
        return
    windows = windows_of(store)[movie]
    spans = np.asarray(windows.spans)
    middle = int(np.abs(spans.mean(axis=1) - (start_s + end_s) / 2).argmin())
    clip_id, backbone = windows.clip_ids[middle], film.timeline.model().backbone
    hits: list[Any] = []
    for other in {each.store.fingerprint: each.store for each in films if each.store is not None}.values():
        source = None if other.fingerprint == store.fingerprint else store
        with suppress(ObygazeError):  # features of another kind, or none of this window
            hits += of.search_like(other, clip_id, other=source, backbone=backbone, top=RANKED).hits
    number_of = {each.timeline.movie: each for each in [*films, film]}
    shown: list[tuple[str, float, float]] = [(movie, start_s, end_s)]
    for hit in sorted(hits, key=lambda hit: -hit.score):
        start, end = hit.start_s or 0.0, hit.end_s or 0.0
        apart = all(hit.movie != m or end <= a or start >= b for m, a, b in shown)
        if hit.movie in number_of and apart and len(shown) <= NEAREST:
            shown.append((hit.movie, start, end))
            there = number_of[hit.movie]
            yield {"film": there.number, "title": there.timeline.record.title, "start": start, "end": end,
                   "clock": clock(start), "stills": bool(there.media)}  # fmt: skip
