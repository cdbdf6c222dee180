"""Write the desk of a film, on which it is read and judged, and say what was decided."""

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from shlex import quote
from typing import Any, Final, NamedTuple

from obygaze_features.manifest import SEEN_SCORE, Clip, Codebook, Concept, why_unperceived
from obygaze_film.claims import FilmClaim, Words, sentence
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.claims.of_judgements import (
    decision,
    judged_share,
    no_judged_share,
    pair_agreement,
    pairs_agreement,
    panel_agreement,
    positive_in,
    share_so_far,
)
from obygaze_film.claims.phrases import judged_share_sentence, other_shares_sentence, probability_value
from obygaze_film.claims.words import clock_span
from obygaze_film.codebook_names import concept_names
from obygaze_film.draws import SEQUENTIAL_POISSON
from obygaze_film.judged_rate import FilmRates, correct_rate, correct_rates
from obygaze_film.judged_windows import JudgedWindows, judged_film, votes
from obygaze_film.notes import Message
from obygaze_film.page.figure_pdf import can_write_pdf
from obygaze_film.page.html import READING_KEYS, TEXTS_OF_SCRIPT, template_page
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import NO_THRESHOLD_P, common_data, timeline_data
from obygaze_film.schema import CorrectedRate, TooFewJudged
from obygaze_film.workspace.anytime import anytime_interval
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.rules import DEFAULT_PLANNED, name_of
from obygaze_models.report import json_data

DECIDING_KEYS: Final = {
    "i": "begin",
    "o": "end",
    "s": "snap",
    "z": "undo",
    "y": "redo",
    "x": "delete",
    "c": "cite",
    "d": "differ",
}
"""Keys by which one decides on the desk, and the names of the texts of what they do."""

CONTEXT_S = 15.0
"""Seconds of the film that are played before and after a window that is judged."""

MOST_NAMED = 3
"""Maximum number of judges, and of pairs of judges, that have a sentence of their own."""

SOURCES: Final = {
    "script-src": "'self'", "connect-src": "'self'", "media-src": "'self' blob:",
    "img-src": "'self' data: blob:",
}  # fmt: skip
"""Content security policy of the desk: what it may load, all from its own server."""


def _concepts_to_tick(film: OpenFilm) -> list[Concept]:
    """List the codebook's concepts that a person may tick: those that some model of the film can perceive.

    All concepts are listed if a model does not state what it perceives.
    """
    all_concepts = [*film.decisions.codebook.concepts]
    models = film.timeline.record.models
    if not all(model.perceives for model in models):
        return all_concepts
    perceived = [name for model in models for name in model.perceives]
    return [concept for concept in all_concepts if not why_unperceived(concept, perceived)]


def desk_page(
    films: Sequence[OpenFilm],
    film: OpenFilm,
    mode: str,
    language: str,
    *,
    viewer: str = "",
    learns: bool = False,
) -> str:
    """Write the desk of a film as HTML.

    Parameters
    ----------
    films : sequence of OpenFilm
        All films of the workspace, between which one may change.
    film : OpenFilm
        The film that is shown.
    mode : str
        `read`, or `blind`, on which nothing shows a score.
    language : str
    viewer : str
        Who sits at the desk; empty if they have not typed their name: then it is whoever decided last, or who
        alone ever decided.
    learns : bool
        Whether the workspace can learn from what was decided.
    """
    view = film.view(language)
    film.decisions.refresh()
    is_blind = mode == "blind"
    viewer = viewer or film.decisions.default_annotator
    visible = visible_decisions(film, viewer, blind=is_blind, words=view.words)
    n_under_other_definitions = sum(decision["otherwise"] for decision in visible["you"])
    state = _desk_state(film, mode, viewer, view, visible)
    if not is_blind:
        state |= _scores(view)
    return template_page(
        "desk.html.j2",
        view.words,
        ("film", "desk"),
        sources=SOURCES,
        title=film.timeline.record.title,
        mode=mode,
        film=film,
        films=films,
        viewer=viewer,
        view=view,
        learns=learns,
        to_judge=DEFAULT_PLANNED,
        changed=film.decisions.changed_definitions(language),
        n_otherwise=n_under_other_definitions,
        concepts=_concepts_to_tick(film),
        keys=READING_KEYS | DECIDING_KEYS,
        has_pdf=can_write_pdf(),
        folder=quote(str(film.decisions.folder)),
        state=json_data(state),
    )


def _desk_state(
    film: OpenFilm, mode: str, viewer: str, view: FilmView, visible: Mapping[str, Any]
) -> dict[str, Any]:
    """Collect what the desk's script gets as JSON, without any score.

    `visible` are the decisions that the viewer may see (`visible_decisions`).
    """
    record = film.timeline.record
    codebook = film.decisions.codebook
    return {
        **common_data(record.duration_s, film.timeline.shots, film.timeline.subtitles),
        "mode": mode,
        "who": viewer,
        "fps": film.fps,
        "film": film.number,
        "levels": codebook.level_names,
        "names": concept_names(codebook, view.words.language),
        "words": desk_texts(view.words),
        # What a desk without scores has in place of these three; `_scores` replaces them, and the threshold.
        "rows": None,
        "weak": [],
        "passages": [],
        "cited": _citation_facts(film),
        "decisions": visible["you"],
        "differ": visible["differ"],
        "hidden": visible["hidden"],
        "around": CONTEXT_S,
        "threshold": NO_THRESHOLD_P,
    }


def _citation_facts(film: OpenFilm) -> dict[str, Any]:
    """Collect what a citation says of a film: title, year ("n.d." for no date), file and program."""
    record = film.timeline.record
    is_year_in_title = re.search(r"\(\d{4}\)", record.title) is not None
    return {
        "title": record.title,
        "year": record.year or ("" if is_year_in_title else "n.d."),
        "file": film.path.name if film.path else record.movie,
        "made": f"obygaze {version('obygaze')}",
    }


def desk_texts(words: Words) -> dict[str, str]:
    """Collect the texts of the desk's script: its own, and those that the mailed page's script shows too."""
    return {name: words[name] for name in TEXTS_OF_SCRIPT} | words.texts_with_prefix("desk_")


def _scores(view: FilmView) -> dict[str, Any]:
    """Describe what the model says of a film, as the state of a desk that may show it.

    Passages that reach the threshold are `passages`, the others `weak`.
    """
    passages: dict[str, list[dict[str, Any]]] = {"passages": [], "weak": []}
    for segment in view.segments.to_dict("records"):
        passage = {
            "start": segment["start_s"],
            "end": segment["end_s"],
            "p": round(segment["p"], 3),
            "value": probability_value(segment["p"], view.words),
            "number": segment["number"],
            "rank": segment["rank"],
        }
        passages["passages" if segment["reaches"] else "weak"].append(passage)
    threshold_p = view.model.threshold_p or NO_THRESHOLD_P
    return {"rows": timeline_data(view), "threshold": threshold_p, **passages}


def visible_decisions(
    film: OpenFilm, viewer: str, *, blind: bool = False, words: Words | None = None
) -> dict[str, Any]:
    """Collect the decisions about a film that a person may see, and where these differ.

    Parameters
    ----------
    film : OpenFilm
    viewer : str
        Name of the person; may be empty.
    blind : bool
        Whether the desk hides all scores.
    words : Words, optional
        The language; English by default.

    Returns
    -------
    dict
        `you` : list of dict
            What "you", the viewer, may see: their own decisions and others' (`shown_decisions`).
        `differ` : list of dict
            The spans to which these decisions give different levels: `start`, `end`, `parents` (the ids of
            the differing decisions) and `agreed` (the id of the decision that settles it, or empty). Where
            the desk hides all scores, the settling decision may be hidden: then `you` does not have it.
        `hidden` : int
            Number of other people's blind judgements that are hidden until one's own are finished.
    """
    shown = shown_decisions(film, viewer, blind=blind, words=words)
    shown_ids = {described["id"] for described in shown}
    # Any agreed decision may settle a difference, even if it is not shown.
    differences = film.decisions.disagreements(shown_ids, agreed_ids=None)
    described_differences = [
        {
            "start": difference.start_s,
            "end": difference.end_s,
            "parents": difference.decisions,
            "agreed": difference.agreed,
        }
        for difference in differences
    ]
    hidden_ids = film.decisions.ids_hidden_from(viewer, film.decisions.places_seen_by(viewer))
    return {"you": shown, "differ": described_differences, "hidden": len(hidden_ids)}


def cited_decision(described: Mapping[str, Any], words: Words) -> str:
    """Write a citation of a decision: who decided what, and whether in sight of the model's score.

    `described` is the decision as `_described` returns it, with the model's probability `p`, which may be
    None. A note has no level, and its citation is empty.
    """
    if not described["level"]:
        return ""
    is_agreed = described["kind"] == "agreed"
    # The names of people who agreed are joined already.
    names = described["judges"] if is_agreed else described["who"]
    start_s, end_s = described["start"], described["end"]
    claim = decision(
        [names],
        described["title"],
        ClaimTime("span", end_s - start_s, start_s, end_s),
        is_blind=described["blind"],
        is_agreed=is_agreed,
        has_score=described["p"] is not None,
    )
    return sentence(claim, words)


def shown_decisions(
    film: OpenFilm, viewer: str, *, blind: bool = False, words: Words | None = None
) -> list[dict[str, Any]]:
    """Describe the decisions of a film that a person may see, in time order.

    Parameters as of `visible_decisions`. Others' blind judgements are left out until the viewer's own are
    finished (`Decisions.places_seen_by`). With `blind`, what was decided in sight of the model's score is
    left out: it would show where the model marks passages.

    Returns
    -------
    list of dict
        As of `_described`, and in addition
        `beside` : bool
            Whether it conflicts with another decision of the same person (`Decisions.conflicts`).
        `otherwise` : bool
            Whether it was made under other definitions than today's.
        `cited` : str
            Its citation.
        `p`, `value` : float or None, str
            The model's probability, as a number and as text; absent with `blind`.
    """
    decisions = film.decisions
    words = words or Words("en")
    conflicting_ids = decisions.conflicts()
    visibility = _Visibility(
        viewer,
        hides_others=decisions.hides_others_from(viewer),
        places_seen=decisions.places_seen_by(viewer),
        hides_scores=blind,
    )
    shown = []
    for kind, clips in decisions.kept.items():
        for clip in clips:
            says_something = clip.level or kind == "note"
            if clip.movie != film.timeline.movie or not says_something:
                continue
            if not visibility.shows(clip, decisions.place_of(clip)):
                continue
            described = dict(_described_once(film, kind, clip, words.language))
            p = film.probability_of(clip.start_s or 0.0, clip.end_s or 0.0)
            described["beside"] = clip.clip_id in conflicting_ids
            described["otherwise"] = not decisions.is_current(clip.clip_id)
            described["cited"] = cited_decision(described | {"p": p}, words)
            if not blind:
                described["p"] = None if p is None else round(p, 3)
                described["value"] = probability_value(p, words)
            shown.append(described)
    return sorted(shown, key=lambda described: float(described["start"]))


class _Visibility(NamedTuple):
    """Which decisions about a film a person may see.

    Attributes
    ----------
    viewer : str
        Name of the person.
    hides_others : bool
        Whether any of others' blind judgements are hidden from the person.
    places_seen : frozenset of int or None
        Places of the draw at which they are not hidden; None if the person may see all places.
    hides_scores : bool
        Whether the desk hides all scores.
    """

    viewer: str
    hides_others: bool
    places_seen: frozenset[int] | None
    hides_scores: bool

    def shows(self, clip: Clip, place: int) -> bool:
        """Whether the person may see a decision; `place` is that of a blind judgement in the draw, else 0."""
        was_score_in_sight = clip.extras.get(SEEN_SCORE) != "0"
        if was_score_in_sight:
            return not self.hides_scores
        is_own = clip.annotator == self.viewer
        is_at_place_seen = self.places_seen is not None and place in self.places_seen
        return is_own or not self.hides_others or is_at_place_seen


def _described_once(film: OpenFilm, kind: str, clip: Clip, language: str) -> dict[str, Any]:
    """Return the description of a decision (`_described`), which is kept in `OpenFilm.described`."""
    key = clip.clip_id, language
    if key not in film.described:
        film.described[key] = _described(film, kind, clip, language)
    return film.described[key]


def _described(film: OpenFilm, kind: str, clip: Clip, language: str) -> dict[str, Any]:
    """Describe a decision for the desk's script, as far as that stays the same for every viewer."""
    decisions = film.decisions
    codebook = decisions.codebook
    line = decisions.lines[clip.clip_id]
    level = clip.level or ""
    # An agreed decision is of the people whose decisions, its parents, it settles.
    judges = sorted({decisions.lines[parent_id].annotator for parent_id in line.parents})
    earlier_versions = decisions.history(clip.clip_id)
    return {
        "id": clip.clip_id,
        "kind": kind,
        "start": clip.start_s or 0.0,
        "end": clip.end_s or 0.0,
        "level": level,
        "title": _title(codebook, level, language),
        "concepts": clip.concepts,
        "note": line.row.get("note", ""),
        "who": clip.annotator,
        "origin": line.row.get("origin", ""),
        "place": decisions.place_of(clip),
        "blind": clip.extras.get(SEEN_SCORE) == "0",
        "parents": line.parents,
        "judges": ", ".join(judges),
        "verdict": decisions.verdict(level, clip.concepts) if level else "note",
        "history": [decision_text(version.row, codebook, language) for version in earlier_versions],
    }


def _title(book: Codebook, level_name: str, language: str) -> str:
    """Return the title of a level in a language; its name if it has no title or is not in the codebook."""
    for level in book.levels:
        if level.name == level_name:
            return level.in_language(language).title
    return level_name


def decision_text(row: Mapping[str, str], book: Codebook, language: str) -> str:
    """Write a decision in one line: its span, the title of its level, its concepts and its note."""
    called = concept_names(book, language)
    concepts = [called.get(name, name) for name in row.get("concepts", "").split(";") if name]
    span = clock_span(float(row["start_s"]), float(row["end_s"]))
    title = _title(book, row.get("level", ""), language)
    parts = (span, title, ";".join(concepts), row.get("note"))
    return " ".join(part for part in parts if part)


def next_window(
    film: OpenFilm, judge: str, n_planned: int, words: Words | None = None, *, tells_share: bool = False
) -> dict[str, Any]:
    """Return the next window that a person is to judge blindly; once they are finished, the film's share.

    They are finished when they have judged as many windows as planned, or no window is left. The desk's
    script reads the answer.

    Parameters
    ----------
    film : OpenFilm
    judge : str
        Name of the person.
    n_planned : int
        How many windows they plan to judge.
    words : Words, optional
        The language; English by default.
    tells_share : bool
        Whether to tell what is known of the share before they are finished.

    Returns
    -------
    dict
        `done` : int
            Number of windows that they judged.
        `fixed` : int
            How many they had said that they would judge; absent if they never said it.
        `window` : dict
            `start`, `end` and `place` of the next one; absent when they are finished.
        `few` : str
            That too few windows are judged for a share, in place of the two that follow.
        `sofar` : str
            The interval of their own share that is valid at any time; absent if all windows are judged.
        `share` : str
            The shares of all judges; absent until they are finished.
    """
    decisions = film.decisions
    decisions.refresh()
    judge = name_of(judge)
    judged = decisions.blind_judgements().get(judge, {})
    answer: dict[str, Any] = {"done": len(judged)}
    n_stated = decisions.n_stated_by(judge)
    if n_stated:
        answer["fixed"] = n_stated
    places_left = [place for place in range(1, len(decisions.windows) + 1) if place not in judged]
    is_finished = not places_left or len(judged) >= n_planned
    if not is_finished:
        place = places_left[0]
        start, end = decisions.windows[place - 1]
        answer["window"] = {"start": start, "end": end, "place": place}
    if tells_share or is_finished:
        answer |= _estimates(film, judge, words or Words("en"), is_finished=is_finished)
    return answer


def _estimates(film: OpenFilm, judge: str, words: Words, *, is_finished: bool) -> dict[str, str]:
    """Write sentences on the film's share, estimated from a person's blind judgements so far.

    The other judges' shares are told too, but only once the person is finished. The keys are `few`, `sofar`
    and `share`, as `next_window` returns them.
    """
    own_clips = film.decisions.blind_judgements().get(judge, {}).values()
    own_judgements = film.decisions.judgements(own_clips)
    judged = judged_film(film.timeline, own_judgements)
    windows = judged.together()  # of all judges, and here there is only this one
    if not windows.is_enough:
        too_few = TooFewJudged(judges=[judge], **windows.counts._asdict())
        reasons = _as_sentences(judged.notices, words)
        return {"few": " ".join([f"{sentence(no_judged_share(too_few), words)}.", *reasons])}
    estimates = {}
    rate, _ = correct_rate(film.timeline, own_judgements)
    if not rate.is_census:  # of a census the share is counted: it has no interval
        estimates["sofar"] = _share_so_far_sentence(judge, windows, rate, words)
    if is_finished:
        estimates["share"] = _shares(film, judge, words)
    return estimates


def _share_so_far_sentence(judge: str, windows: JudgedWindows, rate: CorrectedRate, words: Words) -> str:
    """Write the interval of a judge's share that is valid at any time (`anytime_interval`)."""
    judged_cells, is_positive, _ = votes(windows.by_cell)  # [n] and [n], in the order of the draw
    interval = anytime_interval(windows.sure_cells, judged_cells, is_positive)
    was_drawn_by_earlier_version = windows.sampling == SEQUENTIAL_POISSON
    claim = share_so_far(judge, interval, rate, was_drawn_by_earlier_version=was_drawn_by_earlier_version)
    return sentence(claim, words)


def _shares(film: OpenFilm, judge: str, words: Words) -> str:
    """Write the share of the film by each judge and by all together, and how far the judges agree.

    Only the judge's own share is written as long as the others' judgements are hidden from them.
    """
    blind_judgements = film.decisions.blind_judgements()
    if film.decisions.hides_others_from(judge):
        clips = [*blind_judgements.get(judge, {}).values()]
    else:
        clips = [clip for judged in blind_judgements.values() for clip in judged.values()]
    film_rates = correct_rates(film.timeline, film.decisions.judgements(clips))
    sentences = _share_sentences(film_rates, judge, words)
    for too_few in film_rates.too_few:
        sentences.append(f"{sentence(no_judged_share(too_few), words)}.")
    for claim in _agreements(film_rates):
        sentences.append(sentence(claim, words))
    for notice in film_rates.notices:
        is_agreement_of_some_pairs = isinstance(notice, Message) and notice.key == "note_pairs"
        if is_agreement_of_some_pairs:
            sentences.append(f"{words.translated(notice)}.")
    return " ".join(sentences)


def _share_sentences(film_rates: FilmRates, judge: str, words: Words) -> list[str]:
    """Write a sentence on each share: of this judge, of the others, and of all together.

    Up to `MOST_NAMED` others have a sentence each. Of more, the last ones share one sentence, which takes the
    place of one: so others never have more sentences than that.
    """
    others = [rate for rate in film_rates.rates if not rate.is_of_panel and rate.annotators != [judge]]
    summed_up = []
    if len(others) > MOST_NAMED:
        summed_up = others[MOST_NAMED - 1 :]
    named = [judged_share(rate) for rate in film_rates.rates if rate not in summed_up]
    sentences = [f"{judged_share_sentence(claim, words)}." for claim in named]
    if summed_up:
        sentences.append(other_shares_sentence([judged_share(rate) for rate in summed_up], words))
    return sentences


def _as_sentences(notices: Sequence[str], words: Words) -> list[str]:
    """Write notices as sentences, with a capital letter and a full stop."""
    texts = [words.translated(notice) for notice in notices]
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


def _agreements(film_rates: FilmRates) -> list[FilmClaim]:
    """Collect claims on how far a film's judges agree.

    There is one for each of the first `MOST_NAMED` pairs, one for all judges together, and, if there are more
    pairs, one for the range over all pairs.
    """
    pairs = film_rates.agreement
    positive = positive_in(film_rates)
    claims: list[FilmClaim] = [pair_agreement(pair, positive) for pair in pairs[:MOST_NAMED]]
    if film_rates.alpha is not None:
        claims.append(panel_agreement(film_rates.alpha, positive))
    range_of_pairs = pairs_agreement(pairs)
    if len(pairs) > MOST_NAMED and range_of_pairs is not None:
        claims.append(range_of_pairs)
    return claims
