"""Say what a model sees in any span of a film, what is said there, and which spans are like it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import obygaze_features as of
from obygaze_features.errors import ObygazeError
from obygaze_film.claims import Words, phrases
from obygaze_film.claims.kinds import ClaimTime, Passage
from obygaze_film.claims.of_film import at_usual, classes_seen, other_windows, passage, unjudged_span
from obygaze_film.claims.words import clock
from obygaze_film.film_time import EDGE_S, informative_flags_in, is_enough_judged, seconds_inside
from obygaze_film.page.cards import concept_bar, largest_contribution
from obygaze_film.page.translated import model_title
from obygaze_film.page.view import FilmView
from obygaze_film.rows import windows_of
from obygaze_film.schema import ModelRecord, is_counted
from obygaze_film.segments import columns_of, mean_columns

if TYPE_CHECKING:
    from obygaze_film.workspace.open_film import OpenFilm

Floats = NDArray[np.float64]

MAX_SIMILAR_SPANS: Final = 4
"""Maximum number of similar spans that are shown."""

N_RANKED: Final = 200
"""Number of windows that are ranked by similarity in each store. It is much larger than `MAX_SIMILAR_SPANS`,
because the nearest windows overlap each other and the span itself, and those that overlap are passed over."""

MAX_BARS: Final = 5
"""Maximum number of concepts of a span that have a bar: those that contribute most."""

EN_DASH: Final = "–"

MAX_REASONS_PER_SIDE: Final = 2
"""Maximum number of reasons for, and of reasons against, that the sentence beside the film names: those that
contribute most. The sentence counts the others."""


def span_evidence(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float, words: Words
) -> dict[str, Any]:
    """Describe what the model sees in a span of a film, what is said there, and which spans are similar.

    The span may be a passage that the model found, or any other that a person marked.

    Parameters
    ----------
    film : OpenFilm
        The film that the span is in.
    films : sequence of OpenFilm
        The films among which similar spans are searched for.
    start_s, end_s : float
        Ends of the span, in seconds.
    words : Words
        The language of the sentences.

    Returns
    -------
    dict
        `p`, `band` : str
            Probability of the span and its uncertainty: means over the rows that count, weighted by the time
            that each row lies in the span. Empty if no row counts.
        `limit` : str
            A warning if all of the span, or its mean probability, is below the model's threshold; else empty.
        `sentence` : str
            The reasons for the probability.
        `classes` : str
            What classifiers found in the span.
        `cited` : str
            The probability as a citation, or why there is none.
        `note` : str
            How much of the span the numbers rest on, or why there are none.
        `parts` : list of dict
            The concepts that contribute most, with their bars.
        `flags` : str
            Warnings about rows of the span.
        `cuts` : int
            Number of cuts inside the span.
        `said` : list of dict
            The subtitles in the span.
        `like` : list of dict
            Similar spans of the open films.
    """
    view = film.view(words.language)
    rows = view.rows
    time = ClaimTime("span", seconds=end_s - start_s, start_s=start_s, end_s=end_s)

    # The rows in the span, each weighted by its seconds in it
    weights = seconds_inside(rows, start_s, end_s)  # [N rows]
    is_inside = weights > 0
    has_p = is_inside & is_counted(rows)

    # What the model says of them. The span counts as judged if enough of its time has a probability. Flags of
    # all its rows are then shown; else those of the rows without a probability, as they say why.
    is_judged = is_enough_judged(weights[has_p], weights)
    flagged_rows = rows[is_inside] if is_judged else rows[is_inside & ~has_p]
    if is_judged and view.model.threshold_p is not None:
        of_model = _model_evidence(view, rows[has_p], weights[has_p], time)
    else:
        of_model = _no_model_evidence(view, flagged_rows, time)
    flags = ";".join(informative_flags_in(flagged_rows))

    # Cuts inside the span: one at its very ends (within `EDGE_S`) does not count.
    cut_times_s = film.timeline.shots["start_s"]
    is_cut_inside = (cut_times_s > start_s + EDGE_S) & (cut_times_s < end_s - EDGE_S)

    return {
        **of_model,
        "classes": phrases.classes_sentence(classes_seen(film.timeline.classes, time), words),
        "flags": words.flags(flags, is_judged=is_judged),
        "cuts": int(is_cut_inside.sum()),
        "said": _subtitles_in(film, start_s, end_s),
        "like": _similar_spans(film, films, start_s, end_s),
    }


def _subtitles_in(film: "OpenFilm", start_s: float, end_s: float) -> list[dict[str, Any]]:
    """List the subtitles that are shown in a span, each with its start in seconds and as a clock."""
    subtitles = film.timeline.subtitles
    inside = subtitles[(subtitles["end_s"] > start_s) & (subtitles["start_s"] < end_s)]
    lines = []
    for start, text in zip(inside["start_s"].tolist(), inside["text"], strict=True):
        lines.append({"start": start, "clock": clock(start), "text": text})
    return lines


def span_claim(view: FilmView, rows: pd.DataFrame, weights: Floats, time: ClaimTime) -> Passage:
    """Claim of a span what the page claims of the model's passages: probability, threshold, and reasons.

    `rows` are the N rows that lie in the span and count, `weights` [N] for how many seconds each lies in it.
    """
    means: dict[str, Any] = mean_columns(columns_of(rows), weights, view.model)
    # As for passages: a span reaches the threshold if its highest row does; its mean may be below.
    threshold_p = 0.0 if view.model.threshold_p is None else view.model.threshold_p
    reaches_threshold = bool(rows["p"].max() >= threshold_p)
    # `passage` takes a row of a table of segments. The span has no number there, and its flags are reported
    # apart (`span_evidence`).
    segment = {
        **means,
        "start_s": time.start_s,
        "end_s": time.end_s,
        "reaches": reaches_threshold,
        "number": "",
        "flags": "",
        "judged_s": float(weights.sum()),
    }
    return passage(view.model, segment)


def _no_model_evidence(view: FilmView, rows: pd.DataFrame, time: ClaimTime) -> dict[str, Any]:
    """Say of a span that the model does not judge it, and why, in the place of what the model says of it.

    The keys are those of `_model_evidence`. Without a probability there is no band of it, nothing about the
    threshold (`limit`), no reasons (`sentence`), and no bars of concepts (`parts`). The citation and the note
    say why there is none.
    """
    claim = unjudged_span(view.model, rows, time)
    name = model_name(view.model, view.words)
    no_other_windows = None  # a citation without a probability needs no warning about the windows
    return {
        "p": "",
        "band": "",
        "limit": "",
        "sentence": "",
        "cited": phrases.citation_sentence(claim, view.positive, name, no_other_windows, view.words),
        "note": phrases.unjudged_span_sentence(claim, view.words),
        "parts": [],
    }


def _model_evidence(view: FilmView, rows: pd.DataFrame, weights: Floats, time: ClaimTime) -> dict[str, Any]:
    """Describe what the model sees in a span: the keys `p` to `parts` of `span_evidence`, but for `classes`.

    They are texts: the probability and its band; whether it is below the threshold (`limit`); the reasons
    (`sentence`); the citation; a note on how much of the span is judged. `parts` are the bars of concepts.

    `rows` are the N rows that lie in the span and count, `weights` [N] for how many seconds each lies in it.
    """
    words = view.words
    model = view.model
    claim = span_claim(view, rows, weights, time)

    # The citation warns if the windows are longer or shorter than the model's training clips, and if a
    # program gave the labels that the model learned from.
    windows_warning = other_windows(model, view.film.record.windows)
    labels_warning = phrases.planted_sentence(model, words)
    name = model_name(model, words)
    citation = phrases.citation_sentence(
        claim, view.positive, name, windows_warning, words, planted=labels_warning
    )

    bars = _concept_bars(view, claim)
    notes = [phrases.judged_in_part(claim, "span_judged", words)]
    # A bar says how the probability would be with the concept as usual, if usual values are known.
    has_usual_values = any(concept.usual is not None for concept in model.concepts)
    if bars and model.by_concepts and not has_usual_values:
        notes.append(words["desk_no_usual"])

    return {
        "p": phrases.passage_value(claim, words),
        "band": phrases.passage_band(claim, words, EN_DASH),  # between the ends of the band
        "limit": phrases.below_phrase(claim, words),
        "sentence": phrases.reasons_sentence(claim.reasons, words, maximum=MAX_REASONS_PER_SIDE),
        "cited": citation,
        "note": " ".join(note for note in notes if note),
        "parts": bars,
    }


def _concept_bars(view: FilmView, claim: Passage) -> list[dict[str, Any]]:
    """Describe the bars of the concepts that contribute most to a claim, up to `MAX_BARS`.

    The lengths of the bars are in proportion to the contributions; the largest contribution has the longest.
    """
    largest = largest_contribution(claim.reasons)
    bars = []
    for reason in claim.reasons[:MAX_BARS]:
        with_usual_value = at_usual(claim, reason)  # None if the concept has no usual value
        usual = "" if with_usual_value is None else phrases.at_usual_sentence(with_usual_value, view.words)
        bar = {
            **concept_bar(reason, largest, view),
            "p": phrases.reason_p_alone(reason, view.words),  # in place of the longer text of a passage
            "seen": reason.is_present,
            "usual": usual,
        }
        bars.append(bar)
    return bars


def model_name(model: ModelRecord, words: Words) -> str:
    """Name a model in a citation: its title and the beginning of its file's digest."""
    return f"{model_title(model, words)} {model.sha256[:12] or model.key}"


def _similar_spans(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float
) -> list[dict[str, Any]]:
    """List the windows of the open films that are most similar to a span of one of them.

    The span is compared by the window nearest to its middle, as by `search --like`. Windows that overlap the
    span, or a more similar window, are left out. Empty if the store of the span's film is not at hand.
    """
    movie = film.timeline.movie
    film_of_movie = {open_film.timeline.movie: open_film for open_film in films}
    film_of_movie[movie] = film

    middle_s = (start_s + end_s) / 2
    spans_to_avoid = [_FilmSpan(movie, start_s, end_s)]
    similar: list[dict[str, Any]] = []
    for hit in _ranked_windows(film, films, at_s=middle_s):
        if len(similar) == MAX_SIMILAR_SPANS:
            break
        span = _FilmSpan(hit.movie, hit.start_s or 0.0, hit.end_s or 0.0)
        is_of_open_film = span.movie in film_of_movie  # a store may also have films that are not open
        is_to_avoid = any(span.overlaps(other) for other in spans_to_avoid)
        if is_to_avoid or not is_of_open_film:
            continue
        spans_to_avoid.append(span)
        hit_film = film_of_movie[span.movie]
        similar.append(
            {
                "film": hit_film.number,
                "title": hit_film.timeline.record.title,
                "start": span.start_s,
                "end": span.end_s,
                "clock": clock(span.start_s),
                "stills": bool(hit_film.media),  # whether the desk can show a picture of it
            }
        )
    return similar


class _FilmSpan(NamedTuple):
    """A span of a film, in seconds."""

    movie: str
    start_s: float
    end_s: float

    def overlaps(self, other: "_FilmSpan") -> bool:
        """Whether two spans are of one film and have more than an end in common."""
        is_same_movie = self.movie == other.movie
        return is_same_movie and self.start_s < other.end_s and self.end_s > other.start_s


def _ranked_windows(film: "OpenFilm", films: "Sequence[OpenFilm]", at_s: float) -> list[Any]:
    """Rank windows in the stores of the open films by their similarity to one window of a film, best first.

    That window is the one whose middle is nearest to `at_s`. The list is empty if the film's store is not at
    hand.
    """
    store = film.store
    if store is None:
        return []
    clip_id = _nearest_window(store, film.timeline.movie, at_s)
    backbone = film.timeline.model().backbone  # whose features are compared

    # Films that were scored from the same store share it: it is searched once.
    stores_to_search = {}
    for open_film in films:
        if open_film.store is not None:
            stores_to_search[open_film.store.fingerprint] = open_film.store

    hits: list[Any] = []
    for searched in stores_to_search.values():
        # If the window is in another store than the searched one, `search_like` has to be given that store.
        is_own_store = searched.fingerprint == store.fingerprint
        store_of_window = None if is_own_store else store
        # An error means that the searched store's features are of another kind, or that the window has none.
        with suppress(ObygazeError):
            ranked = of.search_like(searched, clip_id, other=store_of_window, backbone=backbone, top=N_RANKED)
            hits += ranked.hits
    return sorted(hits, key=lambda hit: -hit.score)


def _nearest_window(store: "of.Store", movie: str, at_s: float) -> str:
    """Return the clip id of the window of a film whose middle is nearest to a time."""
    windows = windows_of(store)[movie]
    middles = np.asarray(windows.spans).mean(axis=1)  # [W windows]
    return windows.clip_ids[int(np.abs(middles - at_s).argmin())]
