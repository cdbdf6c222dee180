"""Write documents of ELAN (EAF 3.0): for annotators, blank; for two of them, with what they differ on.

People write on tiers that begin with "human:", which `import_spans` reads. A tier of concepts refers to the
spans of the tier of levels above it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from obygaze_features.arguments import checked
from obygaze_features.io import file_names, refuse_existing, write_whole
from obygaze_features.manifest.clip import CONCEPT_SEPARATOR, Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.eaf import DECISIONS
from obygaze_features.manifest.spans.textgrid import apart
from obygaze_features.manifest.spans.tier_names import (
    CONCEPT_TIER,
    DECIDED_CONCEPTS,
    DECIDED_LEVEL,
    LEVEL_TIER,
)

Kind = Literal["model", "level", "probability", "concepts", "note"]
"""Types of tiers; annotations of concepts have no times of their own."""

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

DATE: Final = "1970-01-01T00:00:00+00:00"
"""The schema needs a date; it is constant so that the same content gives the same bytes."""

SCHEMA: Final = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"

VOCABULARY_OF: Final = {"level": "levels", "probability": "probabilities"}
"""Type of tiers -> the vocabulary that its annotations are chosen from."""

CONSTRAINTS: Final = {
    "Time_Subdivision": "Parts of the parent's interval without gaps",
    "Symbolic_Subdivision": "Ordered parts of the parent, without times",
    "Symbolic_Association": "One annotation for one of the parent",
    "Included_In": "Parts of the parent's interval, with gaps",
}
"""How tiers may depend on others, as every document of ELAN lists them."""


@dataclass(frozen=True, slots=True)
class EafTier:
    """A tier of a document.

    Parameters
    ----------
    spans
        Start and end in seconds, and the text, of each annotation. On a tier with a parent each has the start
        and end of one of the parent's spans.
    parent
        Name of the tier that the annotations refer to; empty if they have times of their own.
    annotator
        Who writes on it; empty if nobody is named.
    decisions
        For each span the id of the decision in a ledger that it shows; empty where it shows none.
    """

    name: str
    kind: Kind
    spans: Sequence[tuple[float, float, str]] = ()
    parent: str = ""
    annotator: str = ""
    decisions: Sequence[str] = ()


class _Slot(NamedTuple):
    """A time in milliseconds: the start (side 0) or end (side 1) of an annotation, given by its number."""

    time_ms: int
    side: int
    annotation: int


@checked
def eaf_document(
    tiers: Sequence[EafTier],
    properties: Mapping[str, str],
    vocabularies: Mapping[str, tuple[str, Sequence[str]]],
    *,
    licence: str = "",
    media: str = "",
) -> str:
    """Write a document.

    Parameters
    ----------
    tiers
        A parent stands before what is below it. Spans of a model or of notes that overlap, as subtitles may,
        are dealt to further tiers: ELAN's have no overlaps.
    properties
        Of the header, by name.
    vocabularies
        `levels` and others: description and values.
    media
        The film's file, named relative to the document.
    """
    written_tiers = _without_overlaps(tiers)
    numbers = _numbers(written_tiers)
    slots = _slots(written_tiers, numbers)
    decisions = _decisions(written_tiers, numbers)
    if decisions:
        properties = {**properties, DECISIONS: decisions}
    about = {"AUTHOR": "obygaze", "DATE": DATE, "FORMAT": "3.0", "VERSION": "3.0"}
    root = Element("ANNOTATION_DOCUMENT", about)
    root.set(SCHEMA, "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    if licence:
        _add(root, "LICENSE", licence, LICENSE_URL="")
    _add_header(root, properties, media, n_annotations=sum(map(len, numbers)))
    order = _add(root, "TIME_ORDER")
    for place, slot in enumerate(slots, start=1):
        _add(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{place}", TIME_VALUE=str(slot.time_ms))
    _add_annotations(root, written_tiers, numbers, slots)
    _add_types(root, vocabularies)
    for name, (description, values) in vocabularies.items():
        _add_vocabulary(root, name, description, values)
    indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}\n{tostring(root, encoding='unicode')}\n"


def _add_annotations(
    root: Element, tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]], slots: Sequence[_Slot]
) -> None:
    """Add the tiers with their annotations.

    Parameters
    ----------
    numbers
        Number of each annotation, by tier, of `_numbers`.
    slots
        The time slots as the document lists them.
    """
    slot_of = {(slot.annotation, slot.side): f"ts{place}" for place, slot in enumerate(slots, start=1)}
    number_of: dict[tuple[str, float, float], int] = {}
    for tier, tier_numbers in zip(tiers, numbers, strict=True):
        element = _add_tier(root, tier)
        for (start_s, end_s, text), number in zip(tier.spans, tier_numbers, strict=True):
            annotation = _add(element, "ANNOTATION")
            attributes = {"ANNOTATION_ID": f"a{number}"}
            if tier.parent:
                parent_number = number_of[tier.parent, start_s, end_s]
                attributes["ANNOTATION_REF"] = f"a{parent_number}"
                value = _add(annotation, "REF_ANNOTATION", **attributes)
            else:
                attributes["TIME_SLOT_REF1"] = slot_of[number, 0]
                attributes["TIME_SLOT_REF2"] = slot_of[number, 1]
                value = _add(annotation, "ALIGNABLE_ANNOTATION", **attributes)
                number_of[tier.name, start_s, end_s] = number
            _add(value, "ANNOTATION_VALUE", text)


def _without_overlaps(tiers: Sequence[EafTier]) -> list[EafTier]:
    """Deal spans that overlap to further tiers; the tiers of people have no overlaps and stay as they are."""
    disjoint_tiers: list[EafTier] = []
    for tier in tiers:
        if tier.kind in {"level", "concepts"}:
            disjoint_tiers.append(tier)
            continue
        for name, spans in apart(tier.name, tier.spans):
            disjoint_tiers.append(replace(tier, name=name, spans=spans))
    return disjoint_tiers


def _numbers(tiers: Sequence[EafTier]) -> list[list[int]]:
    """Give all annotations numbers from 1, through all tiers; return the numbers of each tier."""
    numbers = []
    n_before = 0
    for tier in tiers:
        numbers.append([*range(n_before + 1, n_before + len(tier.spans) + 1)])
        n_before += len(tier.spans)
    return numbers


def _slots(tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]]) -> list[_Slot]:
    """List the starts and ends of the annotations with times of their own, sorted by time.

    An annotation whose start and end round to one millisecond lasts one.
    """
    slots = []
    for tier, own_numbers in zip(tiers, numbers, strict=True):
        if tier.parent:
            continue
        for (start_s, end_s, _), number in zip(tier.spans, own_numbers, strict=True):
            start_ms = round(1000 * start_s)
            slots.append(_Slot(start_ms, 0, number))
            slots.append(_Slot(max(round(1000 * end_s), start_ms + 1), 1, number))
    return sorted(slots)


def _decisions(tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]]) -> str:
    """Write which annotation shows which decision, as the header's property `DECISIONS` has it."""
    shown = []
    for tier, own_numbers in zip(tiers, numbers, strict=True):
        for number, decision in zip(own_numbers, tier.decisions, strict=False):
            if decision:
                shown.append(f"a{number}={decision}")
    return " ".join(shown)


def _add(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    """Add an element, without the signs that XML 1.0 does not allow."""
    element = SubElement(parent, tag, {name: _ILLEGAL.sub("", value) for name, value in attributes.items()})
    if text:
        element.text = _ILLEGAL.sub("", text)
    return element


def _add_header(root: Element, properties: Mapping[str, str], media: str, *, n_annotations: int) -> None:
    """Add the header: the film's file, the properties, and the last number given to an annotation."""
    header = _add(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if media:
        places = {"MEDIA_URL": media, "RELATIVE_MEDIA_URL": media}
        _add(header, "MEDIA_DESCRIPTOR", MIME_TYPE="video/*", **places)
    for name, value in properties.items():
        _add(header, "PROPERTY", value, NAME=name)
    _add(header, "PROPERTY", str(n_annotations), NAME="lastUsedAnnotationId")


def _add_tier(root: Element, tier: EafTier) -> Element:
    """Add a tier without annotations."""
    attributes = {"TIER_ID": tier.name, "LINGUISTIC_TYPE_REF": tier.kind}
    if tier.parent:
        attributes["PARENT_REF"] = tier.parent
    if tier.annotator:
        attributes["ANNOTATOR"] = tier.annotator
    return _add(root, "TIER", **attributes)


def _add_types(root: Element, vocabularies: Mapping[str, object]) -> None:
    """Add the types of tiers, and how tiers may depend on others."""
    types: dict[str, dict[str, str]] = {"model": {}, "note": {}}
    for kind, vocabulary in VOCABULARY_OF.items():
        if vocabulary in vocabularies:
            types[kind] = {"CONTROLLED_VOCABULARY_REF": vocabulary}
    types["concepts"] = {"CONSTRAINTS": "Symbolic_Association"}
    for kind, more in types.items():
        is_alignable = "false" if kind == "concepts" else "true"
        attributes = {
            "LINGUISTIC_TYPE_ID": kind,
            "TIME_ALIGNABLE": is_alignable,
            "GRAPHIC_REFERENCES": "false",
        }
        _add(root, "LINGUISTIC_TYPE", **attributes, **more)
    definition = "http://cdb.iso.org/lg/CDB-00130975-001"
    _add(root, "LANGUAGE", LANG_ID="und", LANG_DEF=definition, LANG_LABEL="undetermined (und)")
    for name, description in CONSTRAINTS.items():
        _add(root, "CONSTRAINT", STEREOTYPE=name, DESCRIPTION=description)


def _add_vocabulary(root: Element, name: str, description: str, values: Sequence[str]) -> None:
    """Add the values that annotations of a type are chosen from."""
    vocabulary = _add(root, "CONTROLLED_VOCABULARY", CV_ID=name)
    _add(vocabulary, "DESCRIPTION", description, LANG_REF="und")
    for place, value in enumerate(values, start=1):
        entry = _add(vocabulary, "CV_ENTRY_ML", CVE_ID=f"{name[:-1]}{place}")
        _add(entry, "CVE_VALUE", value, DESCRIPTION="", LANG_REF="und")


@checked
def write_documents(documents: Mapping[str, str], folder: Path, *, force: bool) -> list[Path]:
    """Write documents into a folder, each named by its film, and return their paths.

    Raises
    ------
    OutputError
        One exists, and `force` is not given; or two films would have one name.
    """
    paths = {film: folder / f"{name}.eaf" for film, name in file_names(documents).items()}
    refuse_existing(*paths.values(), force=force)
    folder.mkdir(parents=True, exist_ok=True)
    for film, path in paths.items():
        write_whole(path, documents[film])
    return list(paths.values())


# --- for people
# ---------------------------------------------------------------------------
@checked
def blank_document(codebook: Codebook, movie: str, annotators: Sequence[str], *, media: str = "") -> str:
    """Write a document to annotate a film in, with the codebook's words and no model's opinion.

    Each annotator has a tier of levels and one of concepts, whose names are joined by semicolons; without
    names there is one for whoever signs it in ELAN.
    """
    tiers = [tier for name in annotators or [""] for tier in _tiers_of(name, ())]
    return eaf_document(tiers, _header(codebook, movie), _words(codebook), media=media)


@checked
def conflicts_document(manifest: Manifest, movie: str) -> str:
    """Write both annotators' tiers of a film, what they differ on, and an empty tier for decisions.

    People decide on the tiers "human: decision level" and "human: decision concepts", which `import_spans`
    reads with who signed them and when.
    """
    clips = [clip for clip in manifest if clip.movie == movie and clip.start_s is not None and clip.level]
    names = sorted({clip.annotator for clip in clips})
    tiers = []
    for name in names:
        tiers += _tiers_of(name, [clip for clip in clips if clip.annotator == name])
    tiers.append(EafTier("conflicts", "model", conflicts(clips)))
    tiers += [EafTier(DECIDED_LEVEL, "level"), EafTier(DECIDED_CONCEPTS, "concepts", parent=DECIDED_LEVEL)]
    return eaf_document(tiers, _header(manifest.codebook, movie), _words(manifest.codebook))


def conflicts(clips: Sequence[Clip]) -> list[tuple[float, float, str]]:
    """Find the spans in which annotators are at different levels; the text says who is at which."""
    starts_s = {clip.start_s or 0.0 for clip in clips}
    ends_s = {clip.end_s or 0.0 for clip in clips}
    spans: list[tuple[float, float, str]] = []
    # Between two neighbouring edges nobody's level changes.
    for start_s, end_s in pairwise(sorted(starts_s | ends_s)):
        level_of: dict[str, str | None] = {}
        for clip in clips:
            if (clip.start_s or 0.0) <= start_s and end_s <= (clip.end_s or 0.0):
                level_of[clip.annotator] = clip.level
        if len(set(level_of.values())) < 2:
            continue
        text = "; ".join(f"{name}: {level_of[name]}" for name in sorted(level_of))
        goes_on = bool(spans) and spans[-1][1:] == (start_s, text)
        if goes_on:
            first_start_s, _, _ = spans.pop()
            spans.append((first_start_s, end_s, text))
        else:
            spans.append((start_s, end_s, text))
    return spans


def _tiers_of(name: str, clips: Sequence[Clip]) -> list[EafTier]:
    """Return an annotator's tier of levels, and the one of concepts below it, with the labels of clips."""
    level = f"{LEVEL_TIER}@{name}" if name else LEVEL_TIER
    concepts = f"{CONCEPT_TIER}@{name}" if name else CONCEPT_TIER
    levels_marked = []
    concepts_marked = []
    for clip in clips:
        start_s = clip.start_s or 0.0
        end_s = clip.end_s or 0.0
        levels_marked.append((start_s, end_s, clip.level or ""))
        if clip.concepts:
            concepts_marked.append((start_s, end_s, CONCEPT_SEPARATOR.join(clip.concepts)))
    return [
        EafTier(level, "level", levels_marked, annotator=name),
        EafTier(concepts, "concepts", concepts_marked, parent=level, annotator=name),
    ]


def _header(codebook: Codebook, movie: str) -> dict[str, str]:
    """Return the properties of the header of a document for people."""
    return {"codebook": codebook.name, "movie": movie}


def _words(codebook: Codebook) -> dict[str, tuple[str, Sequence[str]]]:
    """Return the vocabularies of a codebook: description and values of its levels, and of its concepts."""
    levels = f"levels of {codebook.name}", codebook.level_names
    concepts = f"concepts of {codebook.name}; several are joined by semicolons", codebook.concept_names
    return {"levels": levels, "concepts": concepts}
