"""Decide as people do, and say what stands."""

from typing import NamedTuple

from obygaze_film.workspace.decisions import JUDGEMENTS, Decisions
from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window
from tests.files import rows_of

HEADER_OF_JUDGEMENTS = (
    "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,draw,place,mine\n"
)
"""The first line of a table of judgements; the last column is of no meaning to us."""

ROW_OF_AB = {
    "movie": "tt1",
    "start_s": "0",
    "end_s": "8",
    "level": "calm",
    "annotator": "AB",
    "seen_score": "1",
}


def film_at_desk(decisions):
    """Open the film of these decisions at the desk, as the first of its list of films (number 0)."""
    return OpenFilm(number=0, timeline=decisions.film, decisions=decisions)


def reopen(decisions):
    """Read the decisions on a film again from its folder, as the desk does when it is opened."""
    return Decisions(decisions.folder, decisions.film, decisions.codebook)


def judge(decisions, start, end, level="calm", annotator="AB", **fields):
    """Judge the seconds from `start` to `end`, with any other fields of a judgement; return its id."""
    return decisions.keep("judgement", start, end, annotator, level=level, **fields)


def judge_blindly(decisions, *levels, annotator="AB", in_all=99):
    """Give levels to the next windows of the draw, as one who fixed how many to judge in all."""
    film = film_at_desk(decisions)
    for level in levels:
        window = next_window(film, annotator, in_all)["window"]
        place = window["place"]
        judge(decisions, window["start"], window["end"], level, annotator, place=place, n_planned=in_all)


def judge_list(decisions, level, annotator="AB", n=5):
    """Judge the first `n` windows of the draw, without a number that the judge fixed before.

    So are judgements from a list that was judged in another program.
    """
    for number, (start, end) in enumerate(decisions.windows[:n], start=1):
        judge(decisions, start, end, level, annotator, place=number)


class Standing(NamedTuple):
    """A decision that stands: neither replaced nor taken back. A note alone has no level."""

    annotator: str
    start_s: float
    end_s: float
    level: str | None
    note: str = ""


def lines_in_force(decisions):
    """Return what stands, by kind of decision: judgement, passage, note or agreed."""
    in_force = {}
    for kind, clips in decisions.clips_by_kind.items():
        in_force[kind] = [
            Standing(clip.annotator, clip.start_s, clip.end_s, clip.level, clip.extras.get("note", ""))
            for clip in clips
        ]
    return in_force


def levels_in_force(decisions):
    """Return annotator and level of each judgement that stands."""
    return [(clip.annotator, clip.level) for clip in decisions.clips_by_kind["judgement"]]


def tabled_levels(decisions):
    """Return the levels in the table of judgements, from top to bottom."""
    return [row["level"] for row in rows_of(decisions.folder / JUDGEMENTS)]
