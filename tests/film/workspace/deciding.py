"""Decide as people do, and say what stands."""

from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window

HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,draw,place,mine\n"
"""The first line of a table of judgements; the last column is of no meaning to us."""

ROW = {"movie": "tt1", "start_s": "0", "end_s": "8", "level": "calm", "annotator": "AB", "seen_score": "1"}


def judge(made, start, end, level="calm", who="AB", **fields):
    """Judge the seconds from `start` to `end`, with any other fields of a judgement; return its id."""
    return made.keep("judgement", start, end, who, level=level, **fields)


def judge_blindly(made, *levels, who="AB", n=99):
    """Give levels to the next windows of the draw, as one who fixed to judge `n` in all."""
    film = OpenFilm(0, made.film, made)
    for level in levels:
        window = next_window(film, who, n)["window"]
        judge(made, window["start"], window["end"], level, who, place=window["place"], n_planned=n)


def stands(made):
    """All decisions that stand, by kind: annotator, start, end, level and note of each."""
    return {
        kind: [
            (clip.annotator, clip.start_s, clip.end_s, clip.level, clip.extras.get("note", ""))
            for clip in clips
        ]
        for kind, clips in made.kept.items()
    }


def levels(made):
    """Annotator and level of each judgement that stands."""
    return [(clip.annotator, clip.level) for clip in made.kept["judgement"]]
