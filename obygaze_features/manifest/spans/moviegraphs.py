"""Read situations, characters and interactions of clips, as MovieGraphs has them, from JSON.

Source: Vicol et al., MovieGraphs, CVPR 2018, whose graphs are pickles of Python objects: a lab writes them as
`{"moviegraphs": [{"movie": ..., "start_s": ..., "end_s": ..., "situation": ..., "scene": ..., "characters":
[...], "interactions": [{"from": ..., "what": ..., "to": ...}]}]}` (docs/corpora.md). Nothing is unpickled.
"""

from collections.abc import Iterator
from typing import Any

from obygaze_features.manifest.spans.given import Given, RawSpan, number
from obygaze_features.manifest.spans.subtitles import one_line

TEXTS = ("situation", "scene", "description")
READ = {*TEXTS, "movie", "start_s", "end_s", "characters", "interactions"}
ENDS = ("from", "what", "to")
KEY = "moviegraphs"


def read_moviegraphs(given: Given) -> Iterator[RawSpan]:
    """Yield the situation, scene and description of each clip, its characters and their interactions."""
    found = given.document.get(KEY) if isinstance(given.document, dict) else None
    if not isinstance(found, list):
        raise given.error(f"no graphs of clips: a JSON object with a list {KEY!r} was expected")
    beside: list[str] = []
    for place, graph in enumerate(found, start=1):
        where = f"graph {place}"
        if not isinstance(graph, dict):
            yield RawSpan(where, why="no JSON object")
            continue
        start, end = number(graph.get("start_s")), number(graph.get("end_s"))
        movie = graph.get("movie")
        cells = {"movie": _text(str(movie) if type(movie) is int else movie)}
        beside += [name for name in graph if name not in READ]
        inner = (name for each in _list(graph.get("interactions")) if isinstance(each, dict) for name in each)
        beside += [f"{name} of interactions" for name in inner if name not in ENDS]
        said = [(name, _text(graph[name])) for name in TEXTS if graph.get(name) not in (None, "")]
        said += [("character", _text(each)) for each in _list(graph.get("characters"))]
        said += [("interaction", _between(each)) for each in _list(graph.get("interactions"))]
        why = "" if said else "no situation, scene, description, character or interaction"
        for tier, text in said or [("", "")]:
            unclear = f"{tier}: not a text, or without what is said" * (not text)
            yield RawSpan(where, start, end, text, tier, cells, why=why or unclear)
    given.account.unread("key", beside)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    return one_line(value) if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [None] * (value is not None)


def _between(value: Any) -> str:
    """Write an interaction as `who: what: whom`; "" where it does not say what."""
    if not isinstance(value, dict):
        return _text(value)
    what = _text(value.get("what"))
    parts = [_text(value.get(name)) for name in ENDS]
    return ": ".join(filter(None, parts)) if what else ""
