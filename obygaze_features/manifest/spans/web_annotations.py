"""Read annotations of the web: W3C Web Annotations (JSON-LD), and manifests of IIIF with time.

A tier is the purpose of a body, such as `tagging`; in exports of obygaze it is the tier that they name.
Sources: W3C, "Web Annotation Data Model" (2017) and "Media Fragments URI" (2012); IIIF, "Presentation API
3.0".
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from obygaze_features.manifest.spans.instant import time_or_nan
from obygaze_features.manifest.spans.json_values import json_in, object_of, objects_of, text_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import DECISION, PeopleTier, is_of_a_model, split_people_tier
from obygaze_features.manifest.text_tables import DEFINITION

FRAGMENT: Final = re.compile(r"(?:^|[#&])t=(?:npt:)?([\d:.]*)(?:,([\d:.]+))?(?=&|$)")
"""A fragment of time: `t=1,5`, `t=npt:0:00:01,0:00:05`."""

FILM: Final = "urn:film:"
"""Begins the names of films in exports of obygaze."""

MOVIE: Final = "Movie"
"""Label of the film's name in manifests of IIIF that obygaze exports."""


class Stretch(NamedTuple):
    """What an annotation is of: a medium, and a stretch of its time in seconds, NaN where it names none."""

    source: str
    start_s: float
    end_s: float


def read_jsonld(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the bodies of all annotations of a collection, a page, or a list."""
    for number, annotation in enumerate(_annotations(file.document), start=1):
        yield from _records(annotation, f"annotation {number}", "")


def _annotations(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the annotations in a document, in their order; links to pages elsewhere are not followed.

    The document is an annotation, a list, or a collection or page that has further ones inside.
    """
    # The next value is taken from the end of the list, so that inner ones are added in reverse order.
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
            continue
        item = object_of(value)
        is_annotation = "target" in item
        if is_annotation:
            yield item
            continue
        inner = [item.get(name) for name in ("first", "items", "resources", "next", "@graph")]
        waiting += [value for value in reversed(inner) if isinstance(value, list | dict)]


def read_iiif(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of all canvases of an IIIF manifest, without what is painted on them."""
    manifest = object_of(file.document)
    movie = _movie(manifest)
    n_annotations = 0
    for canvas in objects_of(manifest.get("items")):
        for page in objects_of(canvas.get("annotations")):
            for annotation in objects_of(page.get("items")):
                n_annotations += 1
                yield from _records(annotation, f"annotation {n_annotations}", movie)


def _movie(manifest: Mapping[str, Any]) -> str:
    """Return the film that the metadata of an IIIF manifest name; "" if they name none.

    Metadata are entries of a label and a value, each a mapping of languages to texts. Exports name the film
    in the entry whose label is `MOVIE`.
    """
    for entry in objects_of(manifest.get("metadata")):
        labels_in_languages = object_of(entry.get("label")).values()
        is_of_movie = MOVIE in [text_of(texts) for texts in labels_in_languages]
        if is_of_movie:
            values = [text_of(texts) for texts in object_of(entry.get("value")).values()]
            return values[0] if values else ""
    return ""


def _records(annotation: Mapping[str, Any], location: str, movie: str) -> Iterator[RawSpan]:
    """Yield a record for each body of an annotation; those that obygaze exported have only one text.

    A body is what the annotation says of its target, a stretch of a film.

    `location` is its place in the file, and `movie` the film that the file names; "" if it names none.
    """
    stretch = _stretch(annotation.get("target"))
    cells = _cells(annotation, stretch.source, movie)
    # A stretch with only one of its times is refused later, as its times cannot be read.
    has_no_times = math.isnan(stretch.start_s) and math.isnan(stretch.end_s)
    no_stretch = "of no stretch of time" if has_no_times else ""
    bodies = _bodies(annotation.get("body", annotation.get("bodyValue")))

    exported_tier = _exported_tier(annotation)
    if exported_tier:
        # The bodies of an export are its tier, its text, and JSON with the id of the decision it shows.
        _, body_of_text, *bodies_of_json = bodies
        text = _text_of_body(body_of_text)
        cells_with_decision = {**cells, **_decision_cells(bodies_of_json)}
        yield RawSpan(
            location,
            stretch.start_s,
            stretch.end_s,
            text,
            exported_tier,
            cells_with_decision,
            reason=no_stretch,
        )
        return

    if not bodies:
        yield RawSpan(location, reason=no_stretch or "no text")
    for body in bodies:
        # The tier is that of people which the text names, else the purpose that the body or annotation has.
        people_tier, text = split_people_tier(_text_of_body(body))
        purpose = text_of(body.get("purpose")) or text_of(annotation.get("motivation"))
        tier = people_tier or purpose
        no_text = "" if text else "no text"
        yield RawSpan(
            location, stretch.start_s, stretch.end_s, text, tier, cells, reason=no_stretch or no_text
        )


def _exported_tier(annotation: Mapping[str, Any]) -> str:
    """Return the tier that an annotation exported by obygaze names in its first body; "" for others.

    The bodies of our exports are the tier, the text, and JSON with facts on the decision.
    """
    bodies = _bodies(annotation.get("body"))
    if len(bodies) < 2 or bodies[0].get("purpose") != "tagging":
        return ""
    name = _text_of_body(bodies[0])
    return name if PeopleTier.parse(name) or is_of_a_model(name) else ""


def _decision_cells(bodies: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the cells on the decision that an exported annotation shows; {} if it shows none.

    They are the decision's id in the film's ledger, and the digest of the definitions that the person read;
    either may lack.

    Parameters
    ----------
    bodies
        The bodies behind those of the tier and the text. Their texts are JSON objects with these facts.
    """
    facts: dict[str, Any] = {}
    for body in bodies:
        facts.update(object_of(json_in(_text_of_body(body), dict)))
    return {name: text_of(facts[name]) for name in (DECISION, DEFINITION) if facts.get(name)}


def _bodies(value: Any) -> list[Mapping[str, Any]]:
    """Return the bodies of an annotation as objects, from the JSON value of `body` or `bodyValue`.

    The value is a body or a list of them. A body is a text, an object, or an object with a list of bodies.
    """
    values = value if isinstance(value, list) else [value]
    bodies: list[Mapping[str, Any]] = []
    for body in values:
        if isinstance(body, str) and body:
            bodies.append({"value": body})
        elif isinstance(body, dict) and "items" in body:
            bodies += objects_of(body["items"])
        elif isinstance(body, dict):
            bodies.append(body)
    return bodies


def _text_of_body(body: Mapping[str, Any]) -> str:
    """Return the text of a body; if it has none, the label or id of the thing that it refers to."""
    for name in ("value", "chars", "rdf:value"):
        if name in body:
            return text_of(body[name])
    source = object_of(body.get("source"))
    return text_of(body.get("label")) or text_of(source.get("label")) or text_of(body.get("id"))


def _cells(annotation: Mapping[str, Any], source: str, movie: str) -> dict[str, str]:
    """Return the cells on the film and the annotator of an annotation.

    Parameters
    ----------
    annotation
        The annotation, which may name its creators.
    source
        The address of the medium that it is about. Our exports write an address that begins with `FILM` and
        ends with the film's name.
    movie
        The film that a manifest of IIIF names for all its annotations; "" if it names none.
    """
    cells = {}
    if movie:
        cells["movie"] = movie
    elif source.startswith(FILM):
        cells["movie"] = unquote(source.removeprefix(FILM))
    elif source:
        cells["media"] = source
    names = [_person(person) for person in _people(annotation.get("creator"))]
    annotator = ", ".join(filter(None, names))
    if annotator:
        cells["annotator"] = one_line(annotator)
    return cells


def _people(value: Any) -> Sequence[Any]:
    """Return the creators of an annotation as a list."""
    return value if isinstance(value, list) else [value]


def _person(value: Any) -> str:
    """Return the name of a creator, else the address."""
    if isinstance(value, str):
        return value
    person = object_of(value)
    return text_of(person.get("name")) or text_of(person.get("nickname")) or text_of(person.get("id"))


def _stretch(target: Any) -> Stretch:
    """Return the stretch of time of an annotation's target.

    A target is one of these:

    - an address with a time fragment, `film.mp4#t=10,20`;
    - an object whose source is such an address;
    - an object with a source, and with selectors that have the times.

    Of several targets the first counts; of several selectors, the first with a time.
    """
    if isinstance(target, list):
        target = target[0] if target else None
    if isinstance(target, str):
        return _with_fragment(target, target)

    target_object = object_of(target)
    source = target_object.get("source", target_object.get("id", ""))
    address = source if isinstance(source, str) else text_of(object_of(source).get("id"))

    selectors = target_object.get("selector")
    if not isinstance(selectors, list):
        selectors = [selectors]
    for selector in objects_of(selectors):
        stretch = _with_fragment(address, text_of(selector.get("value")))
        if not math.isnan(stretch.start_s):
            return stretch
        if selector.get("type") == "RangeSelector":
            return Stretch(address, _instant(selector, "startSelector"), _instant(selector, "endSelector"))
    return _with_fragment(address, address)


def _instant(selector: Mapping[str, Any], name: str) -> float:
    """Return the time in seconds of a PointSelector at an end of a range."""
    return time_or_nan(text_of(object_of(selector.get(name)).get("t")))


def _with_fragment(address: str, text: str) -> Stretch:
    """Return the stretch of a medium that a time fragment such as `#t=10,20` names; NaN if there is none.

    Parameters
    ----------
    address
        The address of the medium; a fragment at its end is removed.
    text
        The text that has the fragment: the address, or the value of a selector.
    """
    source = address.partition("#")[0]
    match = FRAGMENT.search(text)
    if match is None:
        return Stretch(source, math.nan, math.nan)
    start, end = match.groups()
    start_s = time_or_nan(start) if start else 0.0  # `t=,20` is from the beginning
    end_s = time_or_nan(end) if end else math.nan
    return Stretch(source, start_s, end_s)
