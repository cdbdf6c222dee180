"""Describe a film as data: what the scripts of the page and of the desk draw and say.

Page and desk read the same description, so that they number, order and draw alike.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from obygaze_features.manifest import BUILTIN, Clip, Codebook, builtin_codebook
from obygaze_film.claims import sentence
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.claims.of_judgements import decision as decision_claim
from obygaze_film.codebook_names import names_in
from obygaze_film.exchange.decided import Decided
from obygaze_film.film_time import informative_flags, mean_probability
from obygaze_film.page import charts
from obygaze_film.page.packed import packed_numbers, packed_shares, packed_times, whole_percentages
from obygaze_film.positive import Verdict, positive_of

if TYPE_CHECKING:
    from obygaze_film.claims import Words
    from obygaze_film.page.view import FilmView, Minute, ShownConcept

DEFAULT_FPS: Final = 25.0
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
            Probabilities of the model before it learnt from judgements; empty if it did not.
        `flags` : list of (int, str)
            Runs of rows with the same warnings: the number of the first row, and the text.
        `concepts` : list of dict
            By concept, best found first (`_concept_data`).
        `more` : list of str
            Texts of "1 more concept" and "N more concepts", for rows with more concepts than are named.
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
        "former": packed_shares(view.rows_before_learning["p"]) if len(view.rows_before_learning) else "",
        "flags": _flag_runs(rows["flags"], view.words),
        "concepts": [_concept_data(concept, view) for concept in view.concepts],
        "more": [view.words["more_concepts_1"], view.words["more_concepts"]],
        "staging": _staging_data(view),
        "others": [
            {"starts": packed_times(strip.starts), "p": packed_shares(strip.values)}
            for strip in view.other_models
        ],
    }


def threshold_of(view: "FilmView") -> float:
    """Return the threshold that the scripts get: the model's, which may be 0, or `NO_THRESHOLD_P`."""
    return NO_THRESHOLD_P if view.model.threshold_p is None else view.model.threshold_p


def _concept_data(shown: "ShownConcept", view: "FilmView") -> dict[str, Any]:
    """Pack one concept's strip of the timeline.

    Probabilities are rounded to whole percentages. A row below the threshold may so get the percentage of the
    threshold, as .497 gets 50 % where the threshold is .5: such rows are listed.

    Returns
    -------
    dict
        `name` : str
        `p` : str
            Its probability in the N rows.
        `seen` : int
            Percentage of its threshold. Rows with this percentage or a higher one have the concept, except
            those of `unseen`.
        `unseen` : list of int
            Numbers of the rows that are rounded up to this percentage from below the threshold.
        `doubt` : str
            That the model is not shown to find it better than chance; empty if it is.
    """
    threshold_p = shown.concept.threshold_p
    threshold_percentage = int(whole_percentages(threshold_p))
    has_percentage_of_threshold = whole_percentages(shown.p) == threshold_percentage
    is_below_threshold = np.asarray(shown.p) < threshold_p
    rows_rounded_up = np.flatnonzero(has_percentage_of_threshold & is_below_threshold)
    is_doubtful = not shown.concept.is_found
    return {
        "name": shown.name,
        "p": packed_shares(shown.p),
        "seen": threshold_percentage,
        "unseen": rows_rounded_up.tolist(),
        "doubt": view.words["near_chance"] if is_doubtful else "",
    }


def _staging_data(view: "FilmView") -> dict[str, Any]:
    """Pack the strips of measured variables: times of the windows, and values of each variable.

    Empty if the film has no such variables.
    """
    if not view.staging_strips:
        return {}
    first = view.staging_strips[0]  # all variables are of the same windows
    ends = first.ends.clip(max=view.whole_s)  # the last window may end after the film
    return {
        "starts": packed_times(first.starts),
        "ends": packed_times(ends),
        "values": [packed_shares(strip.values) for strip in view.staging_strips],
    }


def _flag_runs(flags: pd.Series, words: "Words") -> list[tuple[int, str]]:
    """Find the runs of adjacent rows with the same warning: the number of the first row, and the text.

    Flags are mostly the same for long: a text for each run takes less of a page than one for each row.
    `flags` has the flags of each row, joined by semicolons; flags that say nothing to readers give no text.
    """
    runs: list[tuple[int, str]] = []
    text_of_run = None
    for row, flags_of_row in enumerate(flags):
        text = words.flags(informative_flags(flags_of_row))
        if text != text_of_run:
            runs.append((row, text))
            text_of_run = text
    return runs


def common_data(film_s: float, shots: pd.DataFrame, subtitles: pd.DataFrame) -> dict[str, Any]:
    """Describe what is known of a film without any score: length, axis, cuts, and times of subtitles.

    Parameters
    ----------
    film_s : float
        Length of the film in seconds.
    shots, subtitles : DataFrame
        `Timeline.shots` and `Timeline.subtitles`.

    Returns
    -------
    dict
        `whole` : float
            Length of the film, rounded to milliseconds as all times are.
        `ticks` : list of int
            Possible steps of the time axis, in seconds.
        `cuts` : str
            Starts of the shots (`packed_times`).
        `said` : dict
            `starts` and `ends` of the subtitles (`packed_times`).
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
    concepts = np.array([minute.concepts for minute in minutes])  # [M minutes, C concepts]
    return {
        "judged": packed_numbers([int(minute.judged_s + 0.5) for minute in minutes]),  # a half is rounded up
        "p": packed_shares([minute.p for minute in minutes]),
        "low": packed_shares([minute.p_low for minute in minutes]),
        "high": packed_shares([minute.p_high for minute in minutes]),
        "concepts": [packed_shares(column) for column in concepts.T],
        "flags": [view.words.flags(minute.flags) for minute in minutes],
    }


def decisions_data(decided: Sequence[Decided], view: "FilmView") -> list[dict[str, Any]]:
    """Describe what people decided about a film, in time order.

    Page and desk share the script that shows decisions: `workspace.pages` describes them by the same keys.

    Returns
    -------
    list of dict
        `id`, `kind` : str
            `kind` is `agreed` (by several people together) or `judgement`.
        `start`, `end` : float
            Ends of the span in seconds.
        `level`, `title` : str
            Name and title of the level; empty if the decision is only a note.
        `concepts` : list of str
        `note` : str
        `who`, `judges` : str
            Who judged, and who agreed; on the page both are all people of the decision.
        `blind` : bool
            Whether they judged without seeing the model's score.
        `verdict` : str
            Whether they would agree with a model that marks the span (`Positive.verdict_on`); `note` without
            a level.
        `cited` : str
            A sentence that cites the decision; empty if it is only a note.
        `history` : list
            Earlier versions; only the desk shows these.
    """
    in_time_order = sorted(decided, key=lambda decision: (decision.start_s, decision.end_s))
    described = []
    for number, decision in enumerate(in_time_order, start=1):
        # Its level and concepts in the page's language, by the codebook of the decision if that is known
        book = _codebook_of(decision)
        names = view.names if book is None else names_in(book)
        title = str(view.words.translated(names.titled(decision.level)))
        concepts = [view.words.translated(names.concept(name)) for name in decision.concepts]
        p = mean_probability(view.rows, decision.start_s, decision.end_s)  # by the model; None without one
        described.append(
            {
                "id": f"d{number}",
                "kind": "agreed" if decision.is_agreed else "judgement",
                "start": decision.start_s,
                "end": decision.end_s,
                "level": decision.level,
                "title": title,
                "concepts": concepts,
                "note": decision.note,
                "who": decision.annotator,
                "judges": decision.annotator,
                "blind": decision.is_blind,
                "verdict": _verdict(decision, view),
                "cited": citation(decision, title, view.words, has_score=p is not None),
                "history": [],
            }
        )
    return described


def _verdict(decision: Decided, view: "FilmView") -> Verdict | Literal["note"]:
    """Tell whether a decision agrees with a model that marks its span; `note` if it has no level."""
    if not decision.level:
        return "note"
    judged = Clip("decision", view.film.movie, level=decision.level, concepts=decision.concepts)
    return positive_of(view.model).verdict_on(judged, _levels_that_answer(decision, view))


def _levels_that_answer(decision: Decided, view: "FilmView") -> Collection[str]:
    """Return the levels that count as answers of a judge (`not sure` is none), as at the desk.

    They are those of the decision's codebook. If that is not known, they are those of the built-in codebook
    that the model names; if it names none of these, the levels of the model's task.
    """
    book = _codebook_of(decision)
    if book is not None:
        return book.labels
    if view.model.codebook in BUILTIN:
        return builtin_codebook(view.model.codebook).labels
    return view.model.levels


def _codebook_of(decision: Decided) -> Codebook | None:
    """Return the codebook that says what the level of a decision is called, and whether it is an answer."""
    return decision.codebook if decision.read_by is None else decision.read_by


def citation(decision: Decided, title: str, words: "Words", *, has_score: bool) -> str:
    """Write a citation: who gave a span which level, and whether they saw the model's score.

    It is empty for a note, which has no level. `title` is what the level is called, and `has_score` tells
    whether the model has a score of the span at all.
    """
    if not decision.level:
        return ""
    start_s, end_s = decision.start_s, decision.end_s
    claim = decision_claim(
        decision.judges,
        title,
        ClaimTime("span", seconds=end_s - start_s, start_s=start_s, end_s=end_s),
        is_blind=decision.is_blind,
        is_agreed=decision.is_agreed,
        has_score=has_score,
    )
    return sentence(claim, words)


def page_data(view: "FilmView", people: Sequence[Decided], copy: ScoredCopy | None) -> dict[str, Any]:
    """Describe a film for the script of its page.

    Parameters
    ----------
    view : FilmView
    people : sequence of Decided
        What people decided; empty where the owner does not export it.
    copy : ScoredCopy or None
        The owner's copy of the film; None if it was not given.

    Returns
    -------
    dict
        What `common_data` describes, and what is added here.
    """
    film = view.film
    data = common_data(view.whole_s, film.shots, film.subtitles)
    each_shot_is_row = np.array_equal(film.shots["start_s"], view.rows["start_s"])
    if each_shot_is_row:
        data["cuts"] = None  # the script takes the starts of the rows, which are not packed twice
    frames_per_s = DEFAULT_FPS
    described_copy = None
    if copy is not None:
        frames_per_s = copy.fps
        described_copy = {"key": copy.key, "duration": copy.duration_s, "stills": copy.stills}
    return {
        **data,
        "rows": timeline_data(view),
        "passages": view.cards,
        "decisions": decisions_data(people, view),
        "threshold": threshold_of(view),
        "lines": film.subtitles["text"].tolist(),
        "minutes": minutes_data(view.minutes, view),
        "fps": frames_per_s,
        "copy": described_copy,
        # Seconds by which a reader's copy may be longer than what was scored: the film's length is known only
        # up to the end of the last window, and less than a window may follow that.
        "slack": film.record.windows.window_s,
    }
