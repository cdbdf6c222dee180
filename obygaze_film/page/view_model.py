"""Describe a film as data: what the scripts of the page and of the desk draw and say.

Page and desk read the same description, so that they number, order and draw alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from obygaze_film.claims import sentence
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.claims.of_judgements import decision as decision_claim
from obygaze_film.exchange.decided import Decided
from obygaze_film.film_time import informative_flags
from obygaze_film.page import charts
from obygaze_film.page.packed import packed_numbers, packed_shares, packed_times, whole_percentages

if TYPE_CHECKING:
    from obygaze_film.claims import Words
    from obygaze_film.page.view import FilmView, Minute, ShownConcept

RATE: Final = 25.0
"""Frames per second by which a reader steps through a film, if the owner's copy of it is not known."""

NO_THRESHOLD_P: Final = 0.5
"""The threshold that the scripts of page and desk get if the model has none, or if no score is shown: nothing
is compared with it then."""


@dataclass(frozen=True)
class ScoredCopy:
    """The owner's copy of a film that was scored, by which a reader's own copy is recognised.

    Attributes
    ----------
    duration_s : float
        Length in seconds.
    fps : float
        Frames per second.
    key : str
        Digest of the size and of sampled bytes of the file (`workspace.proxy.content_key`).
    stills : dict
        The stills that the owner puts into the page (`workspace.media.still_sheet`); empty if there are none.
    """

    duration_s: float
    fps: float
    key: str
    stills: dict[str, Any]


def timeline_data(view: "FilmView") -> dict[str, Any]:
    """Pack the rows of a film's timeline: probability with band, flags, concepts, staging, other models.

    Times and shares are packed (`page.packed`).

    Returns
    -------
    dict
        `starts`, `p`, `low`, `high` : str
            Start, probability and ends of its band, of the N rows of the model shown. A row ends where the
            next one starts.
        `former` : str
            Probabilities of the model before it learnt; empty if it did not.
        `flags` : list of (int, str)
            Runs of rows with the same warnings: the number of the first row, and the text.
        `concepts` : list of dict
            By concept, best found first (`_concept_data`).
        `more` : list of str
            What is written in place of further concepts that are seen: the text of one, and of several.
        `staging` : dict
            `starts`, `ends` and `values`, in the order of `FilmView.staging_strips`; empty without variables.
        `others` : list of dict
            `starts` and `p` of the film's other models, in the order of `FilmView.other_models`.
    """
    rows = view.rows
    return {
        "starts": packed_times(rows["start_s"]),
        "p": packed_shares(rows["p"]),
        "low": packed_shares(rows["p_low"]),
        "high": packed_shares(rows["p_high"]),
        "former": packed_shares(view.former["p"]) if len(view.former) else "",
        "flags": _flag_runs(rows["flags"], view.words),
        "concepts": [_concept_data(concept, view) for concept in view.concepts],
        "more": [view.words["more_concepts_1"], view.words["more_concepts"]],
        "staging": _staging_data(view),
        "others": [
            {"starts": packed_times(strip.starts), "p": packed_shares(strip.values)}
            for strip in view.other_models
        ],
    }


def _concept_data(shown: "ShownConcept", view: "FilmView") -> dict[str, Any]:
    """Pack one concept's strip of the timeline.

    The script gets probabilities as whole percentages. With a threshold of .5 it cannot tell that a row of
    50 % has .497, and so it is told which rows of that percentage are below the threshold.

    Returns
    -------
    dict
        `name` : str
        `p` : str
            Its probability in the N rows.
        `seen` : int
            Percentage of its threshold: it is seen in rows that have this percentage or a higher one.
        `unseen` : list of int
            The exceptions: rows that have this percentage and are below the threshold.
        `doubt` : str
            That the model is not shown to find it better than chance; empty if it is.
    """
    concept, p, name = shown
    threshold_percentage = int(whole_percentages(concept.threshold_p))
    has_percentage_of_threshold = whole_percentages(p) == threshold_percentage
    is_below = np.asarray(p) < concept.threshold_p
    return {
        "name": name,
        "p": packed_shares(p),
        "seen": threshold_percentage,
        "unseen": np.flatnonzero(has_percentage_of_threshold & is_below).tolist(),
        "doubt": "" if concept.is_found else view.words["near_chance"],
    }


def _staging_data(view: "FilmView") -> dict[str, Any]:
    """Pack the strips of staging: times of the windows, and values of each variable; empty without any."""
    if not view.staging_strips:
        return {}
    first = view.staging_strips[0]  # all variables are of the same windows
    return {
        "starts": packed_times(first.starts),
        "ends": packed_times(first.ends.clip(max=view.whole_s)),
        "values": [packed_shares(strip.values) for strip in view.staging_strips],
    }


def _flag_runs(cells: pd.Series, words: "Words") -> list[tuple[int, str]]:
    """Find the runs of rows whose flags give the same text: the number of the first row, and the text.

    `cells` are the rows' flags, joined by semicolons.
    """
    runs: list[tuple[int, str]] = []
    for row, cell in enumerate(cells):
        text = words.flags(informative_flags(cell))
        if not runs or runs[-1][1] != text:
            runs.append((row, text))
    return runs


def common_data(film_s: float, shots: pd.DataFrame, subtitles: pd.DataFrame) -> dict[str, Any]:
    """Describe what is known of a film without any score: length, axis, cuts, and times of subtitles.

    Parameters
    ----------
    film_s : float
        Length of the film in seconds.
    shots, subtitles : DataFrame
        `Timeline.shots` and `Timeline.subtitles`.
    """
    return {
        "whole": round(film_s, 3),
        "ticks": charts.TICKS_S,
        "cuts": packed_times(shots["start_s"]),
        "said": {"starts": packed_times(subtitles["start_s"]), "ends": packed_times(subtitles["end_s"])},
    }


def minutes_data(minutes: "Sequence[Minute]", view: "FilmView") -> dict[str, Any]:
    """Pack the table of minutes: seconds judged, probability with band, concepts, and flags.

    Returns
    -------
    dict
        `judged` : str
            Seconds of each minute that have a probability, rounded (`packed_numbers`).
        `p`, `low`, `high` : str
            Mean probability of each minute, and the ends of its band (`packed_shares`).
        `concepts` : list of str
            Mean probability of each concept, in the order of `FilmView.concepts`.
        `flags` : list of str
            The warnings of each minute.
    """
    p = np.array([[minute.p, minute.p_low, minute.p_high] for minute in minutes])  # [M minutes, 3]
    concepts = np.array([minute.concepts for minute in minutes])  # [M, C concepts]
    return {
        "judged": packed_numbers([int(minute.judged_s + 0.5) for minute in minutes]),
        "p": packed_shares(p[:, 0]),
        "low": packed_shares(p[:, 1]),
        "high": packed_shares(p[:, 2]),
        "concepts": [packed_shares(column) for column in concepts.T],
        "flags": [view.words.flags(minute.flags) for minute in minutes],
    }


def decisions_data(decided: Sequence[Decided], view: "FilmView") -> list[dict[str, Any]]:
    """Describe what people decided about a film, in time order.

    Page and desk share the script that shows decisions: the keys are those of `workspace.pages._described`.
    `who` is who judged, and `judges` who agreed; on the page both are all people of a decision.
    """
    in_time_order = sorted(decided, key=lambda decision: (decision.start_s, decision.end_s))
    described = []
    for number, decision in enumerate(in_time_order, start=1):
        title = str(view.words.translated(view.names.titled(decision.level)))
        described.append(
            {
                "id": f"d{number}",
                "kind": "agreed" if decision.is_agreed else "judgement",
                "start": decision.start_s,
                "end": decision.end_s,
                "level": decision.level,
                "title": title,
                "concepts": [view.words.translated(view.names.concept(name)) for name in decision.concepts],
                "note": decision.note,
                "who": decision.annotator,
                "judges": decision.annotator,
                "blind": decision.is_blind,
                "verdict": _verdict(decision, view),
                "cited": _cited(decision, title, view) if decision.level else "",
                "history": [],  # earlier versions are only shown on the desk
            }
        )
    return described


def _verdict(decision: Decided, view: "FilmView") -> str:
    """Say whether a decision agrees with a model that marks the span: `agree`, `disagree`, or `note`.

    A decision with a level that is none of the model's positive ones disagrees.
    """
    if not decision.level:
        return "note"
    return "agree" if decision.level in view.model.positive else "disagree"


def _cited(decided: Decided, title: str, view: "FilmView") -> str:
    """Write a citation: who gave a span which level, and whether blindly or in sight of the model's score.

    `title` is the title of the level.
    """
    start_s, end_s = decided.start_s, decided.end_s
    claim = decision_claim(
        decided.judges,
        title,
        ClaimTime("span", end_s - start_s, start_s, end_s),
        is_blind=decided.is_blind,
        is_agreed=decided.is_agreed,
        has_score=bool(view.between(start_s, end_s)["p"].notna().any()),
    )
    return sentence(claim, view.words)


def page_data(view: "FilmView", people: Sequence[Decided], copy: ScoredCopy | None) -> dict[str, Any]:
    """Describe a film for the script of its page.

    Parameters
    ----------
    view : FilmView
    people : sequence of Decided
        What people decided; empty where the owner does not export it.
    copy : ScoredCopy or None
        The owner's copy of the film; None if it was not given.
    """
    film = view.film
    common = common_data(view.whole_s, film.shots, film.subtitles)
    each_shot_is_row = np.array_equal(film.shots["start_s"], view.rows["start_s"])
    if each_shot_is_row:
        common["cuts"] = None  # the script takes the starts of the rows, which are not packed twice
    described_copy = None
    if copy is not None:
        described_copy = {"key": copy.key, "duration": copy.duration_s, "stills": copy.stills}
    return {
        **common,
        "rows": timeline_data(view),
        "passages": view.cards,
        "decisions": decisions_data(people, view),
        "threshold": view.model.threshold_p or NO_THRESHOLD_P,
        "lines": film.subtitles["text"].tolist(),
        "minutes": minutes_data(view.minutes, view),
        "fps": copy.fps if copy else RATE,
        "copy": described_copy,
        # Seconds by which the length of a reader's copy may differ from the film's. That is only known to the
        # end of the last window, and up to a window's length may follow it.
        "slack": film.record.windows.window_s,
    }
