"""Write the desk of a film, on which it is read and judged, and say what was decided."""

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from shlex import quote
from typing import Any, Final

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
from obygaze_film.claims.words import clock
from obygaze_film.codebook_names import concept_names
from obygaze_film.draws import SEQUENTIAL_POISSON
from obygaze_film.judged_rate import FilmRates, correct_rate, correct_rates
from obygaze_film.judged_windows import judged_film, votes
from obygaze_film.page.figure_pdf import can_write_pdf
from obygaze_film.page.html import READING_KEYS, SCRIPT, template_page
from obygaze_film.page.view import FilmView
from obygaze_film.page.view_model import common_data, timeline_data
from obygaze_film.schema import TooFewJudged
from obygaze_film.workspace.anytime import anytime_interval
from obygaze_film.workspace.open_film import OpenFilm
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

AROUND_S = 15.0
"""Seconds shown before and after a window that is judged."""

MOST_NAMED = 3
"""Pairs of judges whose agreement is told one by one."""

SOURCES: Final = {
    "script-src": "'self'", "connect-src": "'self'", "media-src": "'self' blob:",
    "img-src": "'self' data: blob:",
}  # fmt: skip
"""What the desk loads, all from its own server."""


def _asked_for(film: OpenFilm) -> list[Concept]:
    """List the concepts that a model of the film can perceive: no other is worth a tick beside its scores."""
    models = film.timeline.record.models
    perceives: list[str] = []
    if all(model.perceives for model in models):
        perceives = [name for model in models for name in model.perceives]
    return [
        concept for concept in film.decisions.codebook.concepts if not why_unperceived(concept, perceives)
    ]


def desk_page(
    films: Sequence[OpenFilm], film: OpenFilm, mode: str, language: str, *, learns: bool = False
) -> str:
    """Write the desk of a film: `read`, or `blind`, on which nothing tells a score."""
    record, book, view = film.timeline.record, film.decisions.codebook, film.view(language)
    film.decisions.refresh()
    who, blind = film.decisions.who, mode == "blind"
    cited = {
        "title": record.title,
        "year": record.year or ("" if re.search(r"\(\d{4}\)", record.title) else "n.d."),
        "file": film.path.name if film.path else record.movie,
        "made": f"obygaze {version('obygaze')}",
    }
    stands = what_stands(film, who, blind=blind, words=view.words)
    state: dict[str, Any] = {
        **common_data(record.duration_s, film.timeline.shots, film.timeline.subtitles),
        "mode": mode, "who": who, "fps": film.fps, "film": film.number,
        "levels": book.level_names, "names": concept_names(book, language), "words": desk_texts(view.words),
        "rows": None, "weak": [], "passages": [], "cited": cited,
        "decisions": stands["you"], "differ": stands["differ"], "hidden": stands["hidden"],
        "around": AROUND_S, "threshold": 0.5,
    }  # fmt: skip
    if not blind:
        state |= _scores(view)
    return template_page(
        "desk.html.j2",
        view.words,
        ("film", "desk"),
        sources=SOURCES,
        title=record.title,
        mode=mode,
        film=film,
        films=films,
        view=view,
        learns=learns,
        changed=film.decisions.changed_definitions(language),
        n_otherwise=sum(one["otherwise"] for one in stands["you"]),
        concepts=_asked_for(film),
        keys=READING_KEYS | DECIDING_KEYS,
        has_pdf=can_write_pdf(),
        folder=quote(str(film.decisions.folder)),
        state=json_data(state),
    )


def desk_texts(words: Words) -> dict[str, str]:
    """Collect the texts of the desk's script, and of what it shares with the page's."""
    return {name: words[name] for name in SCRIPT} | words.starting("desk_")


def _scores(view: FilmView) -> dict[str, Any]:
    """Describe what the model says of a film, for a desk that may show it."""
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
    return {"rows": timeline_data(view), "threshold": view.model.threshold_p or 0.5, **passages}


def what_stands(
    film: OpenFilm, who: str, *, blind: bool = False, words: Words | None = None
) -> dict[str, Any]:
    """Collect what somebody may see of the decisions about a film.

    Returns
    -------
    dict
        `you` : list of dict
            The decisions (`shown_decisions`).
        `differ` : list of dict
            The spans to which these decisions give different levels: `start`, `end`, `parents` (the ids of
            the differing decisions) and `agreed` (the id of the decision that settles it, or empty).
        `hidden` : int
            Number of other people's blind judgements that are hidden until one's own are finished.
    """
    shown = shown_decisions(film, who, blind=blind, words=words)
    differ = []
    for one in film.decisions.disagreements({one["id"] for one in shown}):
        ends = {"start": one.start_s, "end": one.end_s}
        differ.append({**ends, "parents": one.decisions, "agreed": one.agreed})
    hidden = 0
    if film.decisions.hides(who):
        others = film.decisions.blind(any_definition=True)
        hidden = sum(len(judged) for name, judged in others.items() if name != who)
    return {"you": shown, "differ": differ, "hidden": hidden}


def cited_decision(one: Mapping[str, Any], words: Words) -> str:
    """Write a citation of a decision: who decided what, and whether in sight of the model's score.

    A note has no level, and its citation is empty.
    """
    if not one["level"]:
        return ""
    is_agreed = one["kind"] == "agreed"
    judges = [one["judges"] if is_agreed else one["who"]]
    time = ClaimTime("span", one["end"] - one["start"], one["start"], one["end"])
    claim = decision(
        judges, one["title"], time, is_blind=one["blind"], is_agreed=is_agreed, has_score=one["p"] is not None
    )
    return sentence(claim, words)


def shown_decisions(
    film: OpenFilm, who: str, *, blind: bool = False, words: Words | None = None
) -> list[dict[str, Any]]:
    """Describe the decisions of a film as objects, in time order.

    Others' blind judgements are left out until those of `who` are finished; with `blind`, all that would
    tell where the model marks passages: whatever was decided in sight of its score.
    """
    decisions, shown = film.decisions, []
    words = words or Words("en")
    conflicts, hides_others = decisions.conflicts(), decisions.hides(who)
    for kind, clips in decisions.kept.items():
        for clip in clips:
            is_blind = clip.extras.get(SEEN_SCORE) == "0"
            may_see_blind = clip.annotator == who or not hides_others
            is_shown = may_see_blind if is_blind else not blind
            if clip.movie == film.timeline.movie and (clip.level or kind == "note") and is_shown:
                key = clip.clip_id, words.language
                if key not in film.described:
                    film.described[key] = _described(film, kind, clip, words.language)
                now: dict[str, Any] = {
                    "beside": clip.clip_id in conflicts,
                    "otherwise": not decisions.is_current(clip.clip_id),
                }
                p = film.probability_of(clip.start_s or 0.0, clip.end_s or 0.0)
                now["cited"] = cited_decision(film.described[key] | {"p": p}, words)
                if not blind:
                    now["p"] = None if p is None else round(p, 3)
                    now["value"] = probability_value(p, words)
                shown.append(film.described[key] | now)
    return sorted(shown, key=lambda one: float(one["start"]))


def _described(film: OpenFilm, kind: str, clip: Clip, language: str) -> dict[str, Any]:
    """Describe a decision for the desk's script: everything about it that does not depend on who looks."""
    line = film.decisions.lines[clip.clip_id]
    book = film.decisions.codebook
    row = line.row
    judges = sorted({film.decisions.lines[parent_id].annotator for parent_id in line.parents})
    return {
        "id": clip.clip_id, "kind": kind, "start": clip.start_s or 0.0, "end": clip.end_s or 0.0,
        "level": clip.level or "", "title": _title(book, clip.level or "", language),
        "concepts": clip.concepts, "note": row.get("note", ""),
        "who": clip.annotator, "origin": row.get("origin", ""), "place": film.decisions.place_of(clip),
        "blind": clip.extras.get(SEEN_SCORE) == "0", "parents": line.parents, "judges": ", ".join(judges),
        "verdict": film.decisions.verdict(clip.level, clip.concepts) if clip.level else "note",
        "history": [said_of(line.row, book, language) for line in film.decisions.history(clip.clip_id)],
    }  # fmt: skip


def _title(book: Codebook, level_name: str, language: str) -> str:
    """Return the title of a level in a language; its name if it has no title or is not in the codebook."""
    for level in book.levels:
        if level.name == level_name:
            return level.in_language(language).title
    return level_name


def said_of(row: Mapping[str, str], book: Codebook, language: str) -> str:
    """Write a decision in one line: its span, the title of its level, its concepts and its note."""
    names = concept_names(book, language)
    concepts = [names.get(name, name) for name in row.get("concepts", "").split(";") if name]
    span = f"{clock(float(row['start_s']))}–{clock(float(row['end_s']))}"
    title = _title(book, row.get("level", ""), language)
    parts = (span, title, ";".join(concepts), row.get("note"))
    return " ".join(part for part in parts if part)


def next_window(
    film: OpenFilm, who: str, n: int, words: Words | None = None, *, tell: bool = False
) -> dict[str, Any]:
    """Give the next window that somebody is to judge blindly; once they are finished, the film's share.

    They are finished when they have judged `n` windows, or no window is left.

    Parameters
    ----------
    tell : bool
        Whether to tell what is known of the share before they are finished.

    Returns
    -------
    dict
        `done` : int
            Number of windows that they judged.
        `fixed` : int
            How many they had decided to judge; absent before the first.
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
    name = " ".join(who.split())
    judged = decisions.blind().get(name, {})
    left = next((place for place in range(1, len(decisions.windows) + 1) if place not in judged), 0)
    answer: dict[str, Any] = {"done": len(judged)} | ({"fixed": decisions.fixed_by(name)} if judged else {})
    if left and len(judged) < n:
        start, end = decisions.windows[left - 1]
        answer["window"] = {"start": start, "end": end, "place": left}
    if tell or "window" not in answer:
        answer |= _estimates(film, name, words or Words("en"), whole="window" not in answer)
    return answer


def _estimates(film: OpenFilm, who: str, words: Words, *, whole: bool) -> dict[str, str]:
    """Write sentences on the film's share, estimated from a person's blind judgements so far.

    With `whole`, when the person has finished, the shares of the other judges are told too.
    """
    blind = film.decisions.blind()
    own = film.decisions.judgements(blind.get(who, {}).values())
    judged = judged_film(film.timeline, own)
    windows = judged.together()
    if not windows.is_enough:
        few = TooFewJudged(judges=[who], **windows.counts._asdict())
        told = [f"{sentence(no_judged_share(few), words)}.", *_left_out(judged.notices, words)]
        return {"few": " ".join(told)}
    order, y, _ = votes(windows.by_cell)
    rate, _ = correct_rate(film.timeline, own)
    estimates = {}
    if not rate.is_census:  # else the share is counted
        ends = anytime_interval(windows.cells.without(windows.unsure), order, y)
        is_of_earlier_law = windows.law == SEQUENTIAL_POISSON
        claim = share_so_far(who, ends, rate, is_of_earlier_law=is_of_earlier_law)
        estimates["sofar"] = sentence(claim, words)
    if whole:
        estimates["share"] = _shares(film, who, words)
    return estimates


def _shares(film: OpenFilm, who: str, words: Words) -> str:
    """Write each judge's share of the film, that of all together if there is one, and how far they agree."""
    blind = film.decisions.blind()
    seen = [blind.get(who, {})] if film.decisions.hides(who) else [*blind.values()]
    clips = [clip for judged in seen for clip in judged.values()]
    found = correct_rates(film.timeline, film.decisions.judgements(clips))
    others = [rate for rate in found.rates if not rate.is_of_panel and rate.annotators != [who]]
    rest = others[MOST_NAMED - 1 :] if len(others) > MOST_NAMED else []
    named = [judged_share(rate) for rate in found.rates if rate not in rest]
    told = [f"{judged_share_sentence(claim, words)}." for claim in named]
    if rest:
        told.append(other_shares_sentence([judged_share(rate) for rate in rest], words))
    told += [f"{sentence(no_judged_share(few), words)}." for few in found.too_few]
    told += [sentence(claim, words) for claim in _agreements(found)]
    # Of the notices, the one that the agreement is that of some pairs alone (`note_pairs`).
    told += [f"{words.again(notice)}." for notice in found.notices if "pairs" in notice]
    return " ".join(told)


def _left_out(notices: Sequence[str], words: Words) -> list[str]:
    """Say which judgements do not count, and why."""
    told = [words.again(notice) for notice in notices]
    return [f"{text[:1].upper()}{text[1:]}." for text in told]


def _agreements(found: FilmRates) -> list[FilmClaim]:
    """Collect claims on how far a film's judges agree.

    There is one for each of the first `MOST_NAMED` pairs, one for all judges together, and, if there are more
    pairs, one for the range over all pairs.
    """
    positive = positive_in(found)
    claims: list[FilmClaim] = [pair_agreement(pair, positive) for pair in found.agreement[:MOST_NAMED]]
    if found.alpha is not None:
        claims.append(panel_agreement(found.alpha, positive))
    every = pairs_agreement(found.agreement)
    if len(found.agreement) > MOST_NAMED and every is not None:
        claims.append(every)
    return claims
