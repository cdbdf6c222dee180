"""ELAN annotation format 3.0 (Max Planck Institute for Psycholinguistics, EAFv3.0.xsd).

Tiers that begin with "obygaze: " are the model's. People write on "human: level", which offers the codebook's
levels, and on "human: concepts" below it, names joined by semicolons. `obygaze manifest import eaf` reads
those two alone.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, fromstring, indent, tostring

from obygaze_film.exchange.tiers import Exported, TierSpan
from obygaze_models.report import asset

SCHEMA: Final = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
NO_DATE: Final = "1970-01-01T00:00:00+00:00"
"""The schema needs a date; it is constant so that the same film gives the same bytes."""

HUMAN_LEVEL, HUMAN_CONCEPTS = "human: level", "human: concepts"
LEVELS, PROBABILITIES, LANGUAGE = "levels", "probabilities", "und"

BINS: Final = tuple(f"{n / 5:.1f} to {(n + 1) / 5:.1f}" for n in range(5))
"""Vocabulary of the tiers of probabilities: tools list every distinct value. The numbers are in the
texts of the segments and in other formats."""

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""


def to_eaf(made: Exported) -> str:
    """Write an ELAN document; the caveats are a property of its header."""
    root = Element(
        "ANNOTATION_DOCUMENT",
        {
            "AUTHOR": "obygaze",
            "DATE": NO_DATE,
            "FORMAT": "3.0",
            "VERSION": "3.0",
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:noNamespaceSchemaLocation": SCHEMA,
        },
    )
    if made.licence:
        SubElement(root, "LICENSE", {"LICENSE_URL": ""}).text = _legal(made.licence)
    spans = [(number, span) for number, tier in enumerate(made.tiers) for span in tier.spans]
    _header(root, made, len(spans))
    slots = _time_order(root, [span for _, span in spans])
    for number, tier in enumerate(made.tiers):
        is_probability = tier.kind in {"level", "concepts"}
        node = _tier(root, tier.name, "probability" if is_probability else "model")
        for span_number, (owner, span) in enumerate(spans, start=1):
            if owner == number:
                text = _bin(span.p) if is_probability and span.p is not None else span.text
                _annotation(node, span_number, slots[span_number - 1], text)
    _tier(root, HUMAN_LEVEL, "level")
    _tier(root, HUMAN_CONCEPTS, "concepts", PARENT_REF=HUMAN_LEVEL)
    _types(root, made)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _bin(p: float) -> str:
    return BINS[min(int(5 * p), 4)]


def milliseconds(seconds: float) -> int:
    """Round a time to whole milliseconds, as ELAN stores it."""
    return round(1000 * seconds)


def _header(root: Element, made: Exported, n: int) -> None:
    header = SubElement(root, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    properties = {
        "obygaze caveats": " ".join(made.caveats),
        "obygaze movie": made.film.movie,
        "obygaze codebook": made.model.codebook,
        "obygaze model": f"{made.model.title} {made.model.sha256}".strip(),
        "lastUsedAnnotationId": str(n),
    }
    for name, value in properties.items():
        SubElement(header, "PROPERTY", {"NAME": name}).text = _legal(value)


def _time_order(root: Element, spans: list[TierSpan]) -> list[tuple[str, str]]:
    """Write two time slots for each span, in time order; return their names."""
    order = SubElement(root, "TIME_ORDER")
    edges = [(milliseconds(span.start_s), 0, index) for index, span in enumerate(spans)]
    edges += [
        (max(milliseconds(span.end_s), milliseconds(span.start_s) + 1), 1, index)
        for index, span in enumerate(spans)
    ]
    names = [["", ""] for _ in spans]
    for number, (time, side, index) in enumerate(sorted(edges), start=1):
        names[index][side] = f"ts{number}"
        SubElement(order, "TIME_SLOT", {"TIME_SLOT_ID": f"ts{number}", "TIME_VALUE": str(time)})
    return [(first, last) for first, last in names]


def _tier(root: Element, name: str, kind: str, **more: str) -> Element:
    return SubElement(root, "TIER", {"TIER_ID": _legal(name), "LINGUISTIC_TYPE_REF": kind, **more})


def _annotation(tier: Element, number: int, slots: tuple[str, str], text: str) -> None:
    names = {"ANNOTATION_ID": f"a{number}", "TIME_SLOT_REF1": slots[0], "TIME_SLOT_REF2": slots[1]}
    node = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", names)
    SubElement(node, "ANNOTATION_VALUE").text = _legal(text)


def _types(root: Element, made: Exported) -> None:
    """Write the types of tiers, the language, the stereotypes and the vocabulary, in the schema's order."""
    root.extend(fromstring(asset("eaf-types.xml", "obygaze_film.exchange")))  # noqa: S314 - ours
    for identity, description, values in (
        (LEVELS, f"levels of {made.model.codebook}", made.levels),
        (PROBABILITIES, "probability that the model gives", BINS),
    ):
        vocabulary = SubElement(root, "CONTROLLED_VOCABULARY", {"CV_ID": identity})
        SubElement(vocabulary, "DESCRIPTION", {"LANG_REF": LANGUAGE}).text = _legal(description)
        for number, value in enumerate(values, start=1):
            entry = SubElement(vocabulary, "CV_ENTRY_ML", {"CVE_ID": f"{identity[:-1]}{number}"})
            SubElement(entry, "CVE_VALUE", {"DESCRIPTION": "", "LANG_REF": LANGUAGE}).text = _legal(value)


def _legal(text: str) -> str:
    """Remove characters that XML 1.0 does not allow."""
    return _ILLEGAL.sub("", text)
