"""Write the desk of a film, on which it is read and judged, and say what was decided."""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from shlex import quote
from typing import Any, Final, NamedTuple

from obygaze_features.manifest import Clip, Codebook, Concept, Manifest, why_unperceived
from obygaze_film.claims import FilmClaim, Words, sentence
from obygaze_film.claims.of_judgements import (
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
from obygaze_film.codebook_names import concept_names, names_in, told_in
from obygaze_film.draws import SEQUENTIAL_POISSON
from obygaze_film.judged_rate import FilmRates, correct_rate, correct_rates
from obygaze_film.judged_windows import (
    MIN_SURE_WINDOWS,
    JudgedWindows,
    judged_film,
    votes,
    was_score_hidden,
)
from obygaze_film.notes import Message
from obygaze_film.page.figure_pdf import can_write_pdf
from obygaze_film.page.html import READING_KEYS, TEXTS_OF_SCRIPT, template_page
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import NO_THRESHOLD_P, citation, common_data, threshold_of, timeline_data
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
"""Key on the keyboard -> how people decide with it on the desk, as a part of the name of a text."""

CONTEXT_S = 15.0
"""Seconds of the film that are played before and after a window that is judged."""

MAX_NAMED = 3
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
    do_all_models_state_it = all(model.perceives for model in models)  # empty: it is not stated
    if not do_all_models_state_it:
        return all_concepts

    perceived = [name for model in models for name in model.perceives]
    # `why_unperceived` gives the reason why nothing perceives a concept: empty if something does.
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
        Name of the person at the desk; empty if they have not typed it. Then it is the person who decided
        last, or the only person who ever decided.
    learns : bool
        Whether the workspace can learn from what was decided.

    Returns
    -------
    str
        The page as HTML.
    """
    view = film.view(language)
    decisions = film.decisions
    decisions.refresh()  # others may have decided meanwhile
    is_blind = mode == "blind"
    viewer = viewer or decisions.default_annotator

    # The decisions that the person may see: their own ("you") and others'. How many of their own were made
    # under definitions that have changed since (`otherwise`)?
    visible = visible_decisions(film, viewer, blind=is_blind, words=view.words)
    n_under_other_definitions = sum(decision["otherwise"] for decision in visible["you"])

    # What the page's script gets. At a blind desk no score is sent, so that none can be seen.
    state = _desk_state(film, mode, viewer, view, visible)
    if not is_blind:
        state |= _scores(view)

    return template_page(
        "desk.html.j2",
        view.words,
        styles=["film", "desk"],
        sources=SOURCES,
        title=film.timeline.record.title,
        state=json_data(state),
        # The film, and the others
        film=film,
        films=films,
        view=view,
        folder=quote(str(decisions.folder)),
        # The person, and what they can do
        mode=mode,
        viewer=viewer,
        keys=READING_KEYS | DECIDING_KEYS,
        concepts=_concepts_to_tick(film),
        to_judge=DEFAULT_PLANNED,
        least=MIN_SURE_WINDOWS,
        learns=learns,
        has_pdf=can_write_pdf(),
        # Definitions that changed since some decisions were made
        changed=decisions.changed_definitions(language),
        n_otherwise=n_under_other_definitions,
    )


def _desk_state(
    film: OpenFilm, mode: str, viewer: str, view: FilmView, visible: Mapping[str, Any]
) -> dict[str, Any]:
    """Collect what the desk's script gets as JSON, without any score.

    `visible` are the decisions that the person at the desk, `viewer`, may see (`visible_decisions`).

    Returns
    -------
    dict
        What `common_data` describes, and:

        `mode`, `who` : str
            The desk's mode, and the person.
        `fps`, `film` : float, int
            Frames per second of the user's copy, and the number of the film.
        `levels`, `names` : list of str, dict
            Names of the levels, and the concepts' names in the language.
        `words` : dict
            Texts of the script: its own (`desk_...`), and those that the mailed page's script shows too.
        `cited` : dict
            What a citation says of the film.
        `decisions`, `differ`, `hidden`
            `visible` under other names.
        `around` : float
            Seconds that are played before and after a window.
        `rows`, `weak`, `passages`, `threshold`
            Placeholders: on a desk with scores, `_scores` replaces them.
    """
    record = film.timeline.record
    codebook = film.decisions.codebook
    texts_of_both = {name: view.words[name] for name in TEXTS_OF_SCRIPT}  # of this page and the mailed one
    return {
        **common_data(record.duration_s, film.timeline.shots, film.timeline.subtitles),
        "mode": mode,
        "who": viewer,
        "fps": film.fps,
        "film": film.number,
        "levels": codebook.level_names,
        "names": concept_names(codebook, view.words.language),
        "words": texts_of_both | view.words.texts_with_prefix("desk_"),
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
    """Collect what a citation says of a film: title, year ("n.d." for no date), file and program (`made`)."""
    record = film.timeline.record
    year: int | str = "n.d."
    if record.year:
        year = record.year
    elif re.search(r"\(\d{4}\)", record.title):  # the title has a year already, such as "Vertigo (1958)"
        year = ""
    return {
        "title": record.title,
        "year": year,
        "file": film.path.name if film.path else record.movie,
        "made": f"obygaze {version('obygaze')}",
    }


def _scores(view: FilmView) -> dict[str, Any]:
    """Describe the model's scores of a film, for the script of a desk that may show them.

    Returns
    -------
    dict
        `rows` : dict
            The timeline (`timeline_data`).
        `threshold` : float
        `passages`, `weak` : list of dict
            Segments that reach the threshold, and those that don't: `start`, `end`, `p`, `value` (the
            probability as text), `number` and `rank`.
    """
    passages = []
    weak = []
    for segment in view.segments.to_dict("records"):
        described = {
            "start": segment["start_s"],
            "end": segment["end_s"],
            "p": round(segment["p"], 3),
            "value": probability_value(segment["p"], view.words),
            "number": segment["number"],
            "rank": segment["rank"],
        }
        if segment["reaches"]:
            passages.append(described)
        else:
            weak.append(described)
    return {
        "rows": timeline_data(view),
        "threshold": threshold_of(view),
        "passages": passages,
        "weak": weak,
    }


def visible_decisions(
    film: OpenFilm, viewer: str, *, blind: bool = False, words: Words | None = None
) -> dict[str, Any]:
    """Collect the decisions about a film that a person may see, and the spans on which these differ.

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
            The spans to which these decisions give different levels: `start`, `end`, `parents` (ids of the
            differing decisions) and `agreed` (id of the decision that settles it, or empty). That decision
            need not be in `you`: where the desk hides all scores, it may be hidden.
        `hidden` : int
            Number of other people's blind judgements that are hidden until the viewer's own are finished.
    """
    decisions = film.decisions
    shown = shown_decisions(film, viewer, blind=blind, words=words)
    shown_ids = {described["id"] for described in shown}
    # `agreed_ids` is None: any agreed decision may settle a difference, even one that is hidden.
    differences = decisions.disagreements(shown_ids, agreed_ids=None)
    described_differences = [
        {
            "start": difference.start_s,
            "end": difference.end_s,
            "parents": difference.decisions,
            "agreed": difference.agreed,
        }
        for difference in differences
    ]
    hidden_ids = decisions.ids_hidden_from(viewer, decisions.places_shown_to(viewer))
    return {"you": shown, "differ": described_differences, "hidden": len(hidden_ids)}


def shown_decisions(
    film: OpenFilm, viewer: str, *, blind: bool = False, words: Words | None = None
) -> list[dict[str, Any]]:
    """Describe the decisions of a film that a person may see, in time order.

    Two kinds of decisions are left out: those that do not count as decisions on the film, as their level was
    emptied (`Decisions.is_listed`), and those that this person must not see yet. The latter are others' blind
    judgements, until the viewer's own are finished (`Decisions.places_shown_to`).

    Parameters
    ----------
    film : OpenFilm
    viewer : str
        Name of the person; may be empty.
    blind : bool
        Whether the desk hides all scores. Then what was decided with the model's score shown is left out too:
        it would show where the model marks passages.
    words : Words, optional
        The language; English by default.

    Returns
    -------
    list of dict
        What `_described` returns, and in addition:

        `beside` : bool
            Whether it stands beside another decision of the same person on the same span, as they conflict
            (`Decisions.conflicts`).
        `otherwise` : bool
            Whether it was made under other definitions than today's.
        `cited` : str
            Its citation: a text that names film, span and what was decided.
        `p`, `value` : float or None, str
            The model's probability, as a number and as text; absent with `blind`.
    """
    decisions = film.decisions
    words = words or Words("en")
    conflicting_ids = decisions.conflicts()
    visibility = _Visibility(
        viewer,
        hides_others=decisions.hides_others_from(viewer),
        places_shown=decisions.places_shown_to(viewer),
        hides_scores=blind,
    )
    shown = []
    for kind, clips in decisions.clips_by_kind.items():
        for clip in clips:
            if not decisions.is_listed(kind, clip):
                continue
            if not visibility.shows(clip, decisions.place_of(clip)):
                continue

            described = dict(_cached_description(film, kind, clip, words.language))
            described["beside"] = clip.clip_id in conflicting_ids
            described["otherwise"] = not decisions.is_current(clip.clip_id)

            # What the model says of its span. The citation, a text to be pasted elsewhere, tells whether
            # there is a score, even if the desk hides the score itself.
            p = film.probability_of(clip.start_s or 0.0, clip.end_s or 0.0)
            decided = decisions.as_decided(clip)
            described["cited"] = citation(decided, described["title"], words, has_score=p is not None)
            if not blind:
                described["p"] = None if p is None else round(p, 3)
                described["value"] = probability_value(p, words)
            shown.append(described)
    return sorted(shown, key=lambda described: float(described["start"]))


def drawn_decisions(film: OpenFilm, viewer: str, words: Words) -> list[dict[str, Any]]:
    """Describe the decisions that a figure of a film draws for a person (`shown_decisions`).

    Those that were made under other definitions than today's are left out, as exports leave them out too: the
    desk lists them with a remark, for which a figure has no place.
    """
    drawn = []
    for decision in shown_decisions(film, viewer, words=words):
        is_under_other_definition = decision["otherwise"]
        if not is_under_other_definition:
            drawn.append(decision)
    return drawn


class _Visibility(NamedTuple):
    """Which decisions about a film a person may see.

    Attributes
    ----------
    viewer : str
        Name of the person.
    hides_others : bool
        Whether any of others' blind judgements are hidden from the person.
    places_shown : frozenset of int or None
        Places of the draw at which they are not hidden; None if the person may see all places.
    hides_scores : bool
        Whether the desk hides all scores.
    """

    viewer: str
    hides_others: bool
    places_shown: frozenset[int] | None
    hides_scores: bool

    def shows(self, clip: Clip, place: int) -> bool:
        """Whether the person may see a decision.

        What was decided with the score shown is hidden where the desk hides scores: it would tell where the
        model marks passages. Blind decisions of others are hidden until the person's own are finished.

        Parameters
        ----------
        clip : Clip
            The decision.
        place : int
            Of a blind judgement: the place of its window in the draw, from 1 on. 0 for other decisions.
        """
        if not was_score_hidden(clip):
            return not self.hides_scores
        is_own = clip.annotator == self.viewer
        if is_own or not self.hides_others:
            return True
        return self.places_shown is not None and place in self.places_shown


def _cached_description(film: OpenFilm, kind: str, clip: Clip, language: str) -> dict[str, Any]:
    """Return the description of a decision (`_described`) in a language; it is made only once."""
    key = clip.clip_id, language
    if key not in film.described:
        film.described[key] = _described(film, kind, clip, language)
    return film.described[key]


def _described(film: OpenFilm, kind: str, clip: Clip, language: str) -> dict[str, Any]:
    """Describe a decision for the desk's script: what is the same for every viewer.

    Returns
    -------
    dict
        `id`, `kind` : str
        `start`, `end` : float
            Ends of the span in seconds.
        `level`, `title` : str
            Name of the level, and what it is called (`_title`); empty if it has none.
        `concepts` : tuple of str
        `note`, `who`, `origin` : str
            Note, annotator, and which passage of the model a marked passage was made from.
        `place` : int
            Place in the draw of a window that was judged blindly; else 0.
        `blind` : bool
        `parents`, `judges` : tuple of str, str
            Of an agreed decision: the ids of the decisions that it settles, and the names of the people who
            made them, who agreed.
        `verdict` : str
            Whether it agrees with a model that marks the span (`Decisions.verdict`); `note` without a level.
        `history` : list of str
            Earlier versions, as texts.
    """
    decisions = film.decisions
    codebook = decisions.codebook
    line = decisions.lines[clip.clip_id]
    level = clip.level or ""
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
        "blind": was_score_hidden(clip),
        "parents": line.parents,
        "judges": ", ".join(judges),
        "verdict": decisions.verdict(level, clip.concepts) if level else "note",
        "history": [decision_text(version.row, codebook, language) for version in earlier_versions],
    }


def _title(book: Codebook, level_name: str, language: str) -> str:
    """Return what a level is called in a language, with its title in brackets: "S (Sure)".

    The page that is mailed calls levels the same. A level that is not in the codebook has its name alone.
    """
    name_in_languages = names_in(book).titled(level_name)
    return told_in(name_in_languages, language)


def decision_text(row: Mapping[str, str], book: Codebook, language: str) -> str:
    """Write a decision in one line: its span, what its level is called, its concepts and its note."""
    translated_names = concept_names(book, language)
    names = [name for name in row.get("concepts", "").split(";") if name]
    concepts = ";".join(translated_names.get(name, name) for name in names)
    span = clock_span(float(row["start_s"]), float(row["end_s"]))
    title = _title(book, row.get("level", ""), language)
    parts = (span, title, concepts, row.get("note"))
    return " ".join(part for part in parts if part)


def next_window(
    film: OpenFilm,
    judge: str,
    n_planned: int,
    words: Words | None = None,
    *,
    tells_share: bool = False,
    open_films: Sequence[OpenFilm] = (),
) -> dict[str, Any]:
    """Return the next window that a person is to judge blindly; once they are finished, the film's share.

    They are finished when they have judged as many windows as planned, or no window is left. If they said
    before how many they would judge, these are planned at least, whatever a page asks for that was opened
    earlier. The result is the answer to a request of the desk's script.

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
    open_films : sequence of OpenFilm
        All films of the workspace: who names concepts in any of them is asked for concepts in this one.

    Returns
    -------
    dict
        `done` : int
            Number of windows that they judged.
        `fixed` : int
            How many they had said that they would judge; absent if they never said it.
        `window` : dict
            `start`, `end` and `place` of the next one; absent when they are finished.
        `few`, `sofar`, `share` : str
            Sentences on the share (`_estimates`); absent until they are finished, unless `tells_share`.
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
    has_judged_planned = len(judged) >= max(n_planned, n_stated)
    is_finished = has_judged_planned or not places_left
    if not is_finished:
        place = places_left[0]
        start_s, end_s = decisions.windows[place - 1]
        answer["window"] = {"start": start_s, "end": end_s, "place": place}

    if tells_share or is_finished:
        of_all_films = _judgements_of_all(film, open_films)
        answer |= _estimates(film, judge, of_all_films, words or Words("en"), is_finished=is_finished)
    return answer


def _judgements_of_all(film: OpenFilm, open_films: Iterable[OpenFilm]) -> Manifest:
    """Gather the judgements of a film, and those of other films that were made under its definition."""
    judgements = film.decisions.judgements()
    clips = list(judgements)
    for other in open_films:
        has_same_definition = other.decisions.definition == film.decisions.definition
        if other is not film and has_same_definition:
            clips += other.decisions.judgements()
    return judgements.with_clips(clips)


def _estimates(
    film: OpenFilm, judge: str, of_all_films: Manifest, words: Words, *, is_finished: bool
) -> dict[str, str]:
    """Write sentences on the film's share, estimated from a person's blind judgements so far.

    The judgements of all films say who names concepts at all.

    Returns
    -------
    dict
        `few` : str
            That too few windows are judged for a share; then there is nothing else.
        `sofar` : str
            The interval of the person's own share that is valid at any time; absent if all windows are
            judged.
        `share` : str
            The shares by all judges; absent until the person is finished.
    """
    own_clips = film.decisions.blind_judgements().get(judge, {}).values()
    own_judgements = film.decisions.judgements(own_clips)
    judged = judged_film(film.timeline, own_judgements, of_all_films=of_all_films)
    windows = judged.together()  # by all judges, who are only this person here
    if not windows.is_enough:
        too_few = TooFewJudged(judges=[judge], **windows.counts._asdict())
        sentences = [f"{sentence(no_judged_share(too_few), words)}.", *_as_sentences(judged.notices, words)]
        return {"few": " ".join(sentences)}

    estimates = {}
    rate, _ = correct_rate(film.timeline, own_judgements, of_all_films=of_all_films)
    # If all windows were judged (a census), the share is counted, and has no interval.
    if not rate.is_census:
        estimates["sofar"] = _share_so_far_sentence(judge, windows, rate, words)
    if is_finished:
        estimates["share"] = _shares(film, judge, of_all_films, words)
    return estimates


def _share_so_far_sentence(judge: str, windows: JudgedWindows, rate: CorrectedRate, words: Words) -> str:
    """Write the interval of a judge's share that is valid at any time (`anytime_interval`).

    Windows of which the judge was not sure count in no share.
    """
    votes_of_cells = votes(windows.by_cell)  # in the order of the draw
    interval = anytime_interval(
        windows.cells, votes_of_cells.cells, votes_of_cells.positive_shares, windows.unsure
    )
    # Only earlier versions drew windows by this method.
    was_drawn_by_earlier_version = windows.sampling == SEQUENTIAL_POISSON
    claim = share_so_far(judge, interval, rate, was_drawn_by_earlier_version=was_drawn_by_earlier_version)
    return sentence(claim, words)


def _shares(film: OpenFilm, judge: str, of_all_films: Manifest, words: Words) -> str:
    """Write sentences on the share of the film by each judge and by all together, and how far judges agree.

    Only the judge's own share is written as long as the others' judgements are hidden from them.

    Parameters
    ----------
    film : OpenFilm
    judge : str
        The person who reads this.
    of_all_films : Manifest
        The judges' judgements of all films, which say who names concepts at all.
    words : Words
        The language.
    """
    blind_judgements = film.decisions.blind_judgements()
    judges = list(blind_judgements)
    if film.decisions.hides_others_from(judge):
        judges = [name for name in judges if name == judge]
    clips = [clip for name in judges for clip in blind_judgements[name].values()]
    judgements = film.decisions.judgements(clips)
    film_rates = correct_rates(film.timeline, judgements, of_all_films=of_all_films)

    sentences = _share_sentences(film_rates, judge, words)
    sentences += [f"{sentence(no_judged_share(too_few), words)}." for too_few in film_rates.too_few]
    sentences += [sentence(claim, words) for claim in _agreements(film_rates)]
    # If there are very many pairs of judges, agreement is computed for some that are drawn at random. This is
    # the only notice that is shown here, as it is about agreement.
    for notice in film_rates.notices:
        says_that_pairs_were_drawn = isinstance(notice, Message) and notice.key == "note_pairs"
        if says_that_pairs_were_drawn:
            sentences.append(f"{words.translated(notice)}.")
    return " ".join(sentences)


def _share_sentences(film_rates: FilmRates, judge: str, words: Words) -> list[str]:
    """Write sentences on each share: of this judge, of the others, and of all together.

    The others have at most three sentences (`MAX_NAMED`). Of three others each has a sentence. Of five, the
    first two have one each, and the last three have one together.
    """
    # Which of the others share a sentence
    others = [rate for rate in film_rates.rates if not rate.is_of_panel and rate.annotators != [judge]]
    in_common_sentence = []
    if len(others) > MAX_NAMED:
        n_alone = MAX_NAMED - 1
        in_common_sentence = others[n_alone:]

    alone = [judged_share(rate) for rate in film_rates.rates if rate not in in_common_sentence]
    sentences = [f"{judged_share_sentence(claim, words)}." for claim in alone]
    if in_common_sentence:
        claims = [judged_share(rate) for rate in in_common_sentence]
        sentences.append(other_shares_sentence(claims, words))
    return sentences


def _as_sentences(notices: Sequence[str], words: Words) -> list[str]:
    """Write notices as sentences, with a capital letter and a full stop."""
    texts = [words.translated(notice) for notice in notices]
    return [f"{text[:1].upper()}{text[1:]}." for text in texts]


def _agreements(film_rates: FilmRates) -> list[FilmClaim]:
    """Collect claims on how far a film's judges agree.

    There is one for each of the first `MAX_NAMED` pairs, one for all judges together, and, if there are more
    pairs, one for the range over all pairs.
    """
    pairs = film_rates.agreement
    positive = positive_in(film_rates)
    claims: list[FilmClaim] = [pair_agreement(pair, positive) for pair in pairs[:MAX_NAMED]]
    if film_rates.alpha is not None:
        claims.append(panel_agreement(film_rates.alpha, positive))
    range_of_pairs = pairs_agreement(pairs)
    if len(pairs) > MAX_NAMED and range_of_pairs is not None:
        claims.append(range_of_pairs)
    return claims
