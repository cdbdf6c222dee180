"""Say what a model sees in any span of a film, what is said there, and which spans are like it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

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
from obygaze_film.segments import columns_of, means_of

if TYPE_CHECKING:
    from obygaze_film.workspace.open_film import OpenFilm

Floats = NDArray[np.float64]

MOST_SIMILAR: Final = 4
"""Maximum number of similar spans that are shown."""

N_RANKED: Final = 200
"""Number of windows that are ranked by similarity in each store. It is much larger than `MOST_SIMILAR`,
because the nearest windows overlap each other and the span itself, and those that overlap are passed over."""

MOST_BARS: Final = 5
"""Maximum number of concepts of a span that have a bar: those that contribute most."""

EN_DASH: Final = "–"

MOST_REASONS_PER_SIDE: Final = 2
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
            A warning if the span does not reach the model's threshold, or if it does and its mean does not;
            empty if its mean reaches it.
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
    overlap_s = seconds_inside(view.rows, start_s, end_s)  # [N rows]
    is_inside = overlap_s > 0
    is_used = is_inside & is_counted(view.rows)
    is_judged = is_enough_judged(overlap_s[is_used], overlap_s)
    # The rows that note and flags explain: without a probability, those that do not count are the reason.
    explained_rows = view.rows[is_inside] if is_judged else view.rows[is_inside & ~is_used]
    time = ClaimTime("span", end_s - start_s, start_s, end_s)
    if is_judged and view.model.threshold_p is not None:
        of_model = _model_evidence(view, view.rows[is_used], overlap_s[is_used], time)
    else:
        of_model = _no_model_evidence(view, explained_rows, time)
    cut_times_s = film.timeline.shots["start_s"]
    is_cut_inside = (cut_times_s > start_s + EDGE_S) & (cut_times_s < end_s - EDGE_S)
    return {
        **of_model,
        "classes": phrases.classes_sentence(classes_seen(film.timeline.classes, time), words),
        "flags": words.flags(";".join(informative_flags_in(explained_rows)), is_judged=is_judged),
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
    """State what the model sees in a span as a claim.

    Parameters
    ----------
    view : FilmView
    rows : DataFrame
        The N rows that lie in the span and count.
    weights : ndarray, shape [N]
        For how many seconds each row lies in the span.
    time : ClaimTime
        The span.
    """
    means: dict[str, Any] = means_of(columns_of(rows), weights, view.model)
    # As for passages: a span reaches the threshold if its highest row does; its mean may be below.
    reaches = rows["p"].max() >= (view.model.threshold_p or 0.0)
    # The span as a row of the table of passages, in which it has no number.
    segment = {
        **means,
        "start_s": time.start_s,
        "end_s": time.end_s,
        "reaches": bool(reaches),
        "number": "",
        "flags": "",
        "judged_s": float(weights.sum()),
    }
    return passage(view.model, segment)


def _no_model_evidence(view: FilmView, rows: pd.DataFrame, time: ClaimTime) -> dict[str, Any]:
    """Explain why there is no probability of a span; `rows` are those that lie in it."""
    claim = unjudged_span(view.model, rows, time)
    name = model_name(view.model, view.words)
    return {
        "p": "",
        "band": "",
        "limit": "",
        "sentence": "",
        "cited": phrases.citation_sentence(claim, view.positive, name, None, view.words),
        "note": phrases.unjudged_span_sentence(claim, view.words),
        "parts": [],
    }


def _model_evidence(view: FilmView, rows: pd.DataFrame, weights: Floats, time: ClaimTime) -> dict[str, Any]:
    """Describe what the model sees in a span; parameters as in `span_claim`."""
    words = view.words
    model = view.model
    claim = span_claim(view, rows, weights, time)
    bars = _concept_bars(view, claim)
    cited = phrases.citation_sentence(
        claim,
        view.positive,
        model_name(model, words),
        # Set if the film's windows have other lengths than the model's training clips.
        other_windows(model, view.film.record.windows),
        words,
        # Says if a program, and not people, gave the labels that the model learned from.
        planted=phrases.planted_sentence(model, words),
    )
    notes = [phrases.span_judged_note(claim, words)]
    has_no_usual_values = all(concept.usual is None for concept in model.concepts)
    if bars and model.by_concepts and has_no_usual_values:  # no bar says whether it is as usual
        notes.append(words["desk_no_usual"])
    return {
        "p": phrases.passage_value(claim, words),
        "band": phrases.passage_band(claim, words, EN_DASH),  # between the ends of the band
        "limit": phrases.below_phrase(claim, words),
        "sentence": phrases.reasons_sentence(claim.reasons, words, most=MOST_REASONS_PER_SIDE),
        "cited": cited,
        "note": " ".join(note for note in notes if note),
        "parts": bars,
    }


def _concept_bars(view: FilmView, claim: Passage) -> list[dict[str, Any]]:
    """Describe the bars of the concepts that contribute most to a claim, up to `MOST_BARS`.

    The lengths of the bars are in proportion to the contributions; the largest contribution has the longest.
    """
    largest = largest_contribution(claim.reasons)
    bars = []
    for reason in claim.reasons[:MOST_BARS]:
        usual = at_usual(claim, reason)
        bar = concept_bar(reason, largest, view)
        bar["p"] = phrases.reason_p_alone(reason, view.words)  # in place of the longer text of a passage
        bar["seen"] = reason.is_present
        bar["usual"] = "" if usual is None else phrases.at_usual_sentence(usual, view.words)
        bars.append(bar)
    return bars


def model_name(model: ModelRecord, words: Words) -> str:
    """Name a model in a citation: its title and the beginning of its file's digest."""
    return f"{model_title(model, words)} {model.sha256[:12] or model.key}"


def _similar_spans(
    film: "OpenFilm", films: "Sequence[OpenFilm]", start_s: float, end_s: float
) -> list[dict[str, Any]]:
    """List windows of the open films that are most similar to the window in the middle of a span.

    Similarity is that of `search --like`. No window is listed that overlaps the span or a window listed
    before it. The list is empty if the store of the span's film is not at hand.
    """
    movie = film.timeline.movie
    film_of_movie = {open_film.timeline.movie: open_film for open_film in films}
    film_of_movie[movie] = film
    # Movie, start and end of the span itself, then of each window that is listed.
    passed_spans: list[tuple[str, float, float]] = [(movie, start_s, end_s)]
    similar = []
    for hit in _ranked_windows(film, films, at_s=(start_s + end_s) / 2):
        start = hit.start_s or 0.0
        end = hit.end_s or 0.0
        if hit.movie not in film_of_movie or _overlaps_any(hit.movie, start, end, passed_spans):
            continue
        passed_spans.append((hit.movie, start, end))
        hit_film = film_of_movie[hit.movie]
        similar.append(
            {
                "film": hit_film.number,
                "title": hit_film.timeline.record.title,
                "start": start,
                "end": end,
                "clock": clock(start),
                "stills": bool(hit_film.media),
            }
        )
        if len(similar) == MOST_SIMILAR:
            break
    return similar


def _ranked_windows(film: "OpenFilm", films: "Sequence[OpenFilm]", at_s: float) -> list[Any]:
    """Rank windows in the stores of the open films by their similarity to one window of a film, best first.

    That window is the one whose middle is nearest to `at_s`. The list is empty if the film's store is not at
    hand.
    """
    store = film.store
    if store is None:
        return []
    windows = windows_of(store)[film.timeline.movie]
    middles = np.asarray(windows.spans).mean(axis=1)  # [W windows]
    clip_id = windows.clip_ids[int(np.abs(middles - at_s).argmin())]
    backbone = film.timeline.model().backbone
    # Films that were scored from the same store share it: it is searched once.
    store_of_fingerprint = {}
    for open_film in films:
        if open_film.store is not None:
            store_of_fingerprint[open_film.store.fingerprint] = open_film.store
    hits: list[Any] = []
    for searched in store_of_fingerprint.values():
        # `search_like` takes the window's features from the searched store, unless it is given another one.
        is_own_store = searched.fingerprint == store.fingerprint
        other_store = None if is_own_store else store
        # Stores whose features are of another kind, or that lack the window, refuse to be searched.
        with suppress(ObygazeError):
            ranked = of.search_like(searched, clip_id, other=other_store, backbone=backbone, top=N_RANKED)
            hits += ranked.hits
    return sorted(hits, key=lambda hit: -hit.score)


def _overlaps_any(movie: str, start: float, end: float, spans: Sequence[tuple[str, float, float]]) -> bool:
    """Whether a span of a movie overlaps one of `spans`, each a movie, a start and an end."""
    for other_movie, other_start, other_end in spans:
        if movie == other_movie and start < other_end and end > other_start:
            return True
    return False
