"""Read situations, characters and interactions of clips, as MovieGraphs has them, from JSON.

A tier is what a text says of a clip: `situation`, `scene`, `description`, `character`, `interaction`. Source:
Vicol et al., MovieGraphs, CVPR 2018, whose graphs are pickles of Python objects: a lab writes them as
`{"moviegraphs": [{"movie": ..., "start_s": ..., "end_s": ..., "situation": ..., "scene": ..., "characters":
[...], "interactions": [{"from": ..., "what": ..., "to": ...}]}]}` (docs/corpora.md). Nothing is unpickled.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from obygaze_features.manifest.spans.json_values import items_of, number
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile

TEXTS = ("situation", "scene", "description")
READ_KEYS = {*TEXTS, "movie", "start_s", "end_s", "characters", "interactions"}
KEYS_OF_INTERACTION = ("from", "what", "to")
"""Who does it, what is done, and to whom."""
KEY = "moviegraphs"


def read_moviegraphs(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the situation, scene and description of each clip, its characters and their interactions."""
    graphs = file.document.get(KEY) if isinstance(file.document, dict) else None
    if not isinstance(graphs, list):
        raise file.error(f"no graphs of clips: a JSON object with a list {KEY!r} was expected")
    unread: list[str] = []
    for place, graph in enumerate(graphs, start=1):
        location = f"graph {place}"
        if not isinstance(graph, dict):
            yield RawSpan(location, reason="no JSON object")
            continue
        unread += _unread_keys(graph)
        yield from _graph(location, graph)
    file.account.note_unread("key", unread)


def _graph(location: str, graph: Mapping[str, Any]) -> Iterator[RawSpan]:
    """Yield a span for each text of a clip; `location` is where its graph stands, for messages."""
    start_s = number(graph.get("start_s"))
    end_s = number(graph.get("end_s"))
    movie = graph.get("movie")
    is_number = type(movie) is int  # as an IMDb id may be written; `isinstance` takes true for a number
    cells = {"movie": _text(str(movie) if is_number else movie)}

    texts = [(name, _text(graph[name])) for name in TEXTS if graph.get(name) not in (None, "")]
    texts += [("character", _text(character)) for character in _items_or_invalid(graph.get("characters"))]
    texts += [("interaction", _interaction(item)) for item in _items_or_invalid(graph.get("interactions"))]
    if not texts:
        nothing = "no situation, scene, description, character or interaction"
        yield RawSpan(location, start_s, end_s, cells=cells, reason=nothing)
    for tier, text in texts:
        reason = "" if text else f"{tier}: not a text, or without what is said"
        yield RawSpan(location, start_s, end_s, text, tier, cells, reason=reason)


def _unread_keys(graph: Mapping[str, Any]) -> list[str]:
    """List the keys of a graph, and of its interactions, that are not read, for a note in the account."""
    unread_keys = [name for name in graph if name not in READ_KEYS]
    for interaction in _items_or_invalid(graph.get("interactions")):
        if not isinstance(interaction, dict):  # a text, or damage
            continue
        unread_keys += [f"{name} of interactions" for name in interaction if name not in KEYS_OF_INTERACTION]
    return unread_keys


def _text(value: Any) -> str:
    """Return a text, or the texts of a list joined by commas; other values are ignored."""
    texts = [one_line(item) for item in items_of(value) if isinstance(item, str)]
    return ", ".join(text for text in texts if text)


def _items_or_invalid(value: Any) -> list[Any]:
    """Return a list as it is, [] for no value, and [None] for any other value.

    The item None is left out later with a reason, so that the value is not lost without a word.
    """
    if isinstance(value, list):
        return value
    return [] if value is None else [None]


def _interaction(value: Any) -> str:
    """Write an interaction as `who: what: whom`; "" if it does not say what.

    Examples
    --------
    >>> _interaction({"from": "Anna", "what": "kisses", "to": "Ben"})
    'Anna: kisses: Ben'
    >>> _interaction({"what": "quarrel"}), _interaction({"from": "Anna"})
    ('quarrel', '')
    """
    if not isinstance(value, dict):  # a text alone
        return _text(value)
    says_what = bool(_text(value.get("what")))
    if not says_what:
        return ""
    texts = [_text(value.get(name)) for name in KEYS_OF_INTERACTION]
    return ": ".join(text for text in texts if text)
