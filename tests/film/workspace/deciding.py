"""Decide as people do, and say what stands."""

from obygaze_film.workspace.open_film import OpenFilm
from obygaze_film.workspace.pages import next_window

HEAD = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score,draw,place,mine\n"
ROW = {"movie": "tt1", "start_s": "0", "end_s": "8", "level": "calm", "annotator": "AB", "seen_score": "1"}


def judge(made, start, end, level="calm", who="AB", **more):
    return made.keep("judgement", start, end, who, level=level, **more)


def judge_blindly(made, *levels, who="AB", n=99):
    """Judge the next windows of the draw."""
    film = OpenFilm(0, made.film, made)
    for level in levels:
        window = next_window(film, who, n)["window"]
        judge(made, window["start"], window["end"], level, who, place=window["place"], windows=n)


def stands(made):
    """All decisions, without ids."""
    return {
        kind: [
            (clip.annotator, clip.start_s, clip.end_s, clip.level, clip.extras.get("note", ""))
            for clip in clips
        ]
        for kind, clips in made.kept.items()
    }


def levels(made):
    return [(clip.annotator, clip.level) for clip in made.kept["judgement"]]
