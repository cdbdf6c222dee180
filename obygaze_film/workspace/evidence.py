"""Say what a model sees in any span of a film, what is said there, and which spans are like it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import obygaze_features as of
from obygaze_features.errors import ObygazeError
from obygaze_film.claims import Words, phrases
from obygaze_film.claims.kinds import BELOW_THRESHOLD, ClaimTime, Passage
from obygaze_film.claims.of_film import at_usual, classes_seen, other_windows, passage, unjudged_span
from obygaze_film.claims.words import clock
from obygaze_film.film_time import told_flags_in
from obygaze_film.page.cards import concept_bar, largest_contribution
from obygaze_film.page.view import FilmView
from obygaze_film.rows import windows_of
from obygaze_film.schema import ModelRecord, is_counted
from obygaze_film.segments import means_of

if TYPE_CHECKING:
    from obygaze_film.workspace.pages import OpenFilm

Floats = NDArray[np.float64]

NEAREST: Final = 4
"""Spans that are shown as like one."""

RANKED: Final = 200
"""Windows of a store that are ranked: the nearest overlap each other and the span itself."""

MOST_BARS: Final = 5
"""Concepts of a span that have a bar, the heaviest."""

MOST_OF_SIDE: Final = 2
"""Reasons of either side that a sentence names beside the film, the heaviest; of others it says how many."""


def span_evidence(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float, words: Words
) -> dict[str, Any]:
    """Describe a span: of a passage of the model's or one's own alike.

    Returns
    -------
    dict
        `p`, `band` and `reaches` (of the rows inside, weighted by how long they lie in it; empty where none
        is counted, and `note` says why), `sentence`, `classes` (what classifiers find there), `cited` (the
        probability as a citation, or why there is none), `note` (of how much of the span the numbers are),
        `parts` of the heaviest concepts, `cuts`, `said`, `like`.
    """
    view = film.view(words.language)
    rows = view.rows
    starts, ends = (rows[name].to_numpy(dtype=np.float64) for name in ("start_s", "end_s"))
    overlap = (np.minimum(ends, end_s) - np.maximum(starts, start_s)).clip(0)
    counted = is_counted(rows) & (overlap > 0)
    cuts = film.timeline.shots["start_s"]
    found: dict[str, Any] = {
        "p": "",
        "band": "",
        "reaches": False,
        "sentence": "",
        "classes": "",
        "cited": "",
        "note": "",
        "parts": [],
        "flags": words.flags(";".join(told_flags_in(rows[overlap > 0]))),
        "cuts": int(((cuts > start_s) & (cuts < end_s)).sum()),
        "said": _spoken(film, start_s, end_s),
        "like": list(_like(film, films, start_s, end_s)),
    }
    time = ClaimTime("span", end_s - start_s, start_s, end_s)
    found["classes"] = phrases.classes_sentence(classes_seen(film.timeline.classes, time), words)
    if counted.any() and view.model.threshold_p is not None:
        return found | _seen(view, rows[counted], overlap[counted], time)
    return found | _unseen(view, rows[overlap > 0], time)


def _spoken(film: "OpenFilm", start_s: float, end_s: float) -> list[dict[str, Any]]:
    """List what is said in a span."""
    lines = film.timeline.subtitles
    inside = lines[(lines["end_s"] > start_s) & (lines["start_s"] < end_s)]
    spoken = []
    for start, text in zip(inside["start_s"].tolist(), inside["text"], strict=True):
        spoken.append({"start": start, "clock": clock(start), "text": text})
    return spoken


def span_claim(view: FilmView, rows: pd.DataFrame, weights: Floats, time: ClaimTime) -> Passage:
    """Claim what the model sees in rows [N] of a span, weighted by how long each lies in it."""
    means: dict[str, Any] = means_of(rows, weights, view.model)
    reaches = means["p"] >= (view.model.threshold_p or 0.0)
    ends = {"start_s": time.start_s, "end_s": time.end_s}
    return passage(
        view.model,
        {**means, **ends, "reaches": reaches, "number": "", "flags": "", "judged_s": float(weights.sum())},
    )


def _unseen(view: FilmView, rows: pd.DataFrame, time: ClaimTime) -> dict[str, Any]:
    """Say why the model says nothing of a span."""
    words, model = view.words, view.model
    claim = unjudged_span(model, rows, time)
    return {
        "cited": phrases.citation_sentence(claim, view.positive, model_name(model), None, words),
        "note": phrases.unjudged_span_sentence(claim, words),
    }


def _seen(view: FilmView, rows: pd.DataFrame, weights: Floats, time: ClaimTime) -> dict[str, Any]:
    """Describe what the model sees in rows."""
    words, model = view.words, view.model
    claim = span_claim(view, rows, weights, time)
    is_unknown = all(concept.usual is None for concept in model.concepts)
    largest = largest_contribution(claim.reasons)
    parts = []
    for reason in claim.reasons[:MOST_BARS]:
        usual = at_usual(claim, reason)
        part = {
            **concept_bar(reason, largest, view),
            "p": phrases.reason_p_alone(reason, words),
            "seen": reason.is_present,
            "usual": "" if usual is None else phrases.at_usual_sentence(usual, words),
        }
        parts.append(part)
    notes = [phrases.span_judged_note(claim, words)]
    if parts and model.by_concepts and is_unknown:
        notes.append(words["desk_no_usual"])
    windows = other_windows(model, view.film.record.windows)
    return {
        "p": phrases.passage_value(claim, words),
        "band": phrases.passage_band(claim, words, "–"),
        "reaches": not claim.has(BELOW_THRESHOLD),
        "sentence": phrases.reasons_sentence(claim.reasons, words, most=MOST_OF_SIDE),
        "cited": phrases.citation_sentence(claim, view.positive, model_name(model), windows, words),
        "note": " ".join(note for note in notes if note),
        "parts": parts,
    }


def model_name(model: ModelRecord) -> str:
    """Name a model in a citation: its title and its file's digest."""
    return f"{model.title} {model.sha256[:12] or model.key}"


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
