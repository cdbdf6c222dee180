"""Write documents of ELAN (EAF 3.0): blank ones for annotators, and ones of what two annotators differ on.

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
from obygaze_features.manifest.clip import CONCEPT_SEPARATOR, Clip, grouped
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.judgements import judgements_of
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.eaf import DECISIONS
from obygaze_features.manifest.spans.textgrid import spread_over_tiers
from obygaze_features.manifest.spans.tier_names import (
    CONCEPT_TIER,
    DECIDED_CONCEPTS,
    DECIDED_LEVEL,
    LEVEL_TIER,
)
from obygaze_features.manifest.unmarked_time import marks_every_answer

Kind = Literal["model", "level", "probability", "concepts", "note"]
"""Types of tiers; annotations of concepts have no times of their own."""

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

DATE: Final = "1970-01-01T00:00:00+00:00"
"""The schema needs a date; it is constant so that the same content gives the same bytes."""

SCHEMA: Final = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"

VOCABULARY_OF: Final = {"level": "levels", "probability": "probabilities"}
"""Type of tiers -> the vocabulary that its annotations are chosen from."""

UNDETERMINED: Final = "http://cdb.iso.org/lg/CDB-00130975-001"
"""Address by which ELAN defines the language code `und`, of texts in no stated language."""

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


START, END = 0, 1
"""Sides of an annotation."""


class _TimeSlot(NamedTuple):
    """A time in milliseconds: the `START` or `END` (side) of an annotation, which has a number."""

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
    """Write a document of ELAN as XML text.

    Parameters
    ----------
    tiers
        The tiers with their annotations, parents before the tiers that depend on them. As a tier of ELAN has
        no overlaps, spans of a model or of notes that overlap others, as subtitles may, are put on further
        tiers of similar names.
    properties
        Properties of the header, by name.
    vocabularies
        Name, such as `levels` -> description and values of a controlled vocabulary.
    licence
        Text of the licence; empty for none.
    media
        Path of the film's file, relative to the document.
    """
    # What is written: tiers without overlaps, their annotations by numbers, and the times of these.
    written_tiers = _with_overlaps_on_further_tiers(tiers)
    numbers = _annotation_numbers(written_tiers)  # of each tier, in the order of its spans
    slots = _time_slots(written_tiers, numbers)
    decisions = _decisions_property(written_tiers, numbers)
    if decisions:
        properties = {**properties, DECISIONS: decisions}

    attributes = {"AUTHOR": "obygaze", "DATE": DATE, "FORMAT": "3.0", "VERSION": "3.0"}
    root = Element("ANNOTATION_DOCUMENT", attributes)
    root.set(SCHEMA, "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    if licence:
        _add(root, "LICENSE", licence, LICENSE_URL="")
    n_annotations = sum(len(numbers_of_tier) for numbers_of_tier in numbers)
    _add_header(root, properties, media, n_annotations=n_annotations)

    # A time slot is one time of the document, to which the annotations refer by its id.
    time_order = _add(root, "TIME_ORDER")
    for number, slot in enumerate(slots, start=1):
        _add(time_order, "TIME_SLOT", TIME_SLOT_ID=f"ts{number}", TIME_VALUE=str(slot.time_ms))
    _add_annotations(root, written_tiers, numbers, slots)

    _add_types(root, vocabularies)
    for name, (description, values) in vocabularies.items():
        _add_vocabulary(root, name, description, values)
    indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}\n{tostring(root, encoding='unicode')}\n"


def _add_annotations(
    root: Element, tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]], slots: Sequence[_TimeSlot]
) -> None:
    """Add the tiers with their annotations to a document.

    An annotation refers to two time slots. On a tier with a parent it refers instead to the annotation of the
    parent with the same times.

    Parameters
    ----------
    root
        The element of the document.
    tiers
        The tiers, parents before the tiers that depend on them.
    numbers
        The numbers of each tier's annotations, in the order of its spans.
    slots
        The time slots of the document, in their order: the first is `ts1`.
    """
    slot_id_of_side = {}  # (number of an annotation, START or END) -> id of its slot
    for place, slot in enumerate(slots, start=1):
        slot_id_of_side[slot.annotation, slot.side] = f"ts{place}"
    # (tier, start in seconds, end in seconds) -> number of the annotation there, to which others may refer.
    number_at: dict[tuple[str, float, float], int] = {}
    for tier, tier_numbers in zip(tiers, numbers, strict=True):
        tier_element = _add_tier(root, tier)
        for (start_s, end_s, text), number in zip(tier.spans, tier_numbers, strict=True):
            annotation = _add(tier_element, "ANNOTATION")
            attributes = {"ANNOTATION_ID": f"a{number}"}
            if tier.parent:
                parent_number = number_at[tier.parent, start_s, end_s]
                attributes["ANNOTATION_REF"] = f"a{parent_number}"
                reference = _add(annotation, "REF_ANNOTATION", **attributes)
            else:
                attributes["TIME_SLOT_REF1"] = slot_id_of_side[number, START]
                attributes["TIME_SLOT_REF2"] = slot_id_of_side[number, END]
                reference = _add(annotation, "ALIGNABLE_ANNOTATION", **attributes)
                number_at[tier.name, start_s, end_s] = number
            _add(reference, "ANNOTATION_VALUE", text)


def _with_overlaps_on_further_tiers(tiers: Sequence[EafTier]) -> list[EafTier]:
    """Move spans that overlap others to further tiers, as a tier of ELAN cannot hold overlaps.

    Tiers of levels and concepts stay as they are: their spans do not overlap.
    """
    disjoint_tiers: list[EafTier] = []
    for tier in tiers:
        if tier.kind in {"level", "concepts"}:
            disjoint_tiers.append(tier)
            continue
        for name, spans in spread_over_tiers(tier.name, tier.spans):
            disjoint_tiers.append(replace(tier, name=name, spans=spans))
    return disjoint_tiers


def _annotation_numbers(tiers: Sequence[EafTier]) -> list[list[int]]:
    """Return for each tier the numbers of its annotations, which are counted from 1 through all tiers."""
    numbers = []
    next_number = 1
    for tier in tiers:
        first_of_next_tier = next_number + len(tier.spans)
        numbers.append([*range(next_number, first_of_next_tier)])
        next_number = first_of_next_tier
    return numbers


def _time_slots(tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]]) -> list[_TimeSlot]:
    """Return the starts and ends of all annotations on tiers without a parent, sorted by time.

    Annotations on tiers with a parent have no times of their own. An annotation whose start and end round to
    the same millisecond is made one millisecond long.
    """
    slots = []
    for tier, tier_numbers in zip(tiers, numbers, strict=True):
        if tier.parent:
            continue
        for (start_s, end_s, _), number in zip(tier.spans, tier_numbers, strict=True):
            start_ms = round(1000 * start_s)
            end_ms = max(round(1000 * end_s), start_ms + 1)
            slots.append(_TimeSlot(start_ms, START, number))
            slots.append(_TimeSlot(end_ms, END, number))
    return sorted(slots)


def _decisions_property(tiers: Sequence[EafTier], numbers: Sequence[Sequence[int]]) -> str:
    """Write the header's property `DECISIONS`, which says which decision of the ledger an annotation shows.

    It reads `a3=ID a7=ID`: annotation 3 shows the first decision. "" if no annotation shows any.
    """
    pairs = []
    for tier, tier_numbers in zip(tiers, numbers, strict=True):
        for number, decision in zip(tier_numbers, tier.decisions, strict=False):
            if decision:
                pairs.append(f"a{number}={decision}")
    return " ".join(pairs)


def _add(parent: Element, tag: str, text: str = "", **attributes: str) -> Element:
    """Add a child element and return it; characters that XML 1.0 does not allow are left out."""
    allowed = {name: _ILLEGAL.sub("", value) for name, value in attributes.items()}
    element = SubElement(parent, tag, allowed)
    if text:
        element.text = _ILLEGAL.sub("", text)
    return element


def _add_header(root: Element, properties: Mapping[str, str], media: str, *, n_annotations: int) -> None:
    """Add the header: the film's file if it is known, the properties, and the last annotation's number."""
    header = _add(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    if media:
        urls = {"MEDIA_URL": media, "RELATIVE_MEDIA_URL": media}
        _add(header, "MEDIA_DESCRIPTOR", MIME_TYPE="video/*", **urls)
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
    """Add what tiers and vocabularies refer to: types of tiers, a language, and constraints.

    Of the types that choose from a vocabulary, only those are added whose vocabulary the document has
    (`vocabularies`, by name). The language is that of the vocabularies' words. The constraints say how a tier
    may depend on its parent; ELAN lists all of them in every document.
    """
    _add_type(root, "model")
    _add_type(root, "note")
    for kind, vocabulary in VOCABULARY_OF.items():
        if vocabulary in vocabularies:
            _add_type(root, kind, CONTROLLED_VOCABULARY_REF=vocabulary)
    # Concepts have no times: each annotation is associated with one of the tier of levels above.
    _add_type(root, "concepts", has_times=False, CONSTRAINTS="Symbolic_Association")
    _add(root, "LANGUAGE", LANG_ID="und", LANG_DEF=UNDETERMINED, LANG_LABEL="undetermined (und)")
    for name, description in CONSTRAINTS.items():
        _add(root, "CONSTRAINT", STEREOTYPE=name, DESCRIPTION=description)


def _add_type(root: Element, kind: str, *, has_times: bool = True, **further_attributes: str) -> None:
    """Add a type of tiers, whose annotations have times of their own or not."""
    attributes = {
        "LINGUISTIC_TYPE_ID": kind,
        "TIME_ALIGNABLE": "true" if has_times else "false",
        "GRAPHIC_REFERENCES": "false",
    }
    _add(root, "LINGUISTIC_TYPE", **attributes, **further_attributes)


def _add_vocabulary(root: Element, name: str, description: str, values: Sequence[str]) -> None:
    """Add a controlled vocabulary: the values that ELAN offers, in this order, on a type of tier."""
    vocabulary = _add(root, "CONTROLLED_VOCABULARY", CV_ID=name)
    _add(vocabulary, "DESCRIPTION", description, LANG_REF="und")
    singular = name.removesuffix("s")  # `levels` has the entries level1, level2
    for number, value in enumerate(values, start=1):
        entry = _add(vocabulary, "CV_ENTRY_ML", CVE_ID=f"{singular}{number}")
        _add(entry, "CVE_VALUE", value, DESCRIPTION="", LANG_REF="und")


@checked
def write_documents(documents: Mapping[str, str], folder: Path, *, force: bool) -> list[Path]:
    """Write documents into a folder, each named by its film, and return their paths.

    Raises
    ------
    OutputError
        One exists, and `force` is not given; or two films would have one name.
    """
    name_of_film = file_names(documents)
    path_of_film = {film: folder / f"{name}.eaf" for film, name in name_of_film.items()}
    refuse_existing(*path_of_film.values(), force=force)
    folder.mkdir(parents=True, exist_ok=True)
    for film, path in path_of_film.items():
        write_whole(path, documents[film])
    return list(path_of_film.values())


# --- for people
# ---------------------------------------------------------------------------
@checked
def blank_document(codebook: Codebook, movie: str, annotators: Sequence[str], *, media: str = "") -> str:
    """Write an ELAN document in which to annotate a film: empty tiers, and nothing that a model says.

    Each annotator has a tier of levels and one of concepts, in which several concepts are joined by
    semicolons. Without annotators there is one unsigned pair of tiers, which the person signs in ELAN.

    Parameters
    ----------
    codebook
        Its levels and concepts are offered for annotations.
    movie
        The film.
    annotators
        Names of the annotators; none for tiers that are not signed yet.
    media
        Path of the film's file, relative to the document; empty if it is not known.
    """
    tiers = []
    for name in annotators or [""]:
        tiers += _tiers_of_annotator(name, ())
    return _document_for_people(tiers, codebook, movie, media=media)


@checked
def conflicts_document(manifest: Manifest, movie: str) -> str:
    """Write an ELAN document of a film in which a person decides where annotators gave different levels.

    It has the tiers of each annotator who is named, a tier `conflicts` with the spans in which they differ,
    and two empty tiers for the decisions, "human: decision level" and "human: decision concepts".
    `import_spans` reads these with who signed them and when.
    """
    judged = judgements_of(manifest).of_movie(movie).where(lambda judgement: bool(judgement.judge))
    clips = [judgement.clip for judgement in judged.every if judgement.clip.start_s is not None]
    annotators = sorted({clip.annotator for clip in clips})
    tiers = []
    for annotator in annotators:
        their_clips = [clip for clip in clips if clip.annotator == annotator]
        tiers += _tiers_of_annotator(annotator, their_clips)
    tiers.append(EafTier("conflicts", "model", conflicts(clips, manifest.codebook)))
    tiers += [EafTier(DECIDED_LEVEL, "level"), EafTier(DECIDED_CONCEPTS, "concepts", parent=DECIDED_LEVEL)]
    return _document_for_people(tiers, manifest.codebook, movie)


def _document_for_people(tiers: Sequence[EafTier], codebook: Codebook, movie: str, *, media: str = "") -> str:
    """Write a document that names its codebook and film, and offers the codebook's levels and concepts."""
    about_concepts = f"concepts of {codebook.name}; several are joined by semicolons"
    vocabularies = {
        "levels": (f"levels of {codebook.name}", codebook.level_names),
        "concepts": (about_concepts, codebook.concept_names),
    }
    return eaf_document(tiers, {"codebook": codebook.name, "movie": movie}, vocabularies, media=media)


def conflicts(clips: Sequence[Clip], codebook: Codebook) -> list[tuple[float, float, str]]:
    """Find the spans of a film in which annotators gave different levels, for people to settle.

    Where spans of one annotator overlap, the higher level counts. Time without a mark is of the lowest level
    by an annotator who marks only what they find, and of no level by one who marks every answer.

    Parameters
    ----------
    clips
        Labelled clips with times of one film.
    codebook
        Gives the order of the levels.

    Returns
    -------
    Start and end in seconds of each, and a text that says who gave which level.
    """
    starts_s = {clip.start_s or 0.0 for clip in clips}
    ends_s = {clip.end_s or 0.0 for clip in clips}
    edges_s = sorted(starts_s | ends_s)
    level_of_unmarked_time: dict[str, str] = {}  # annotator -> level
    for annotator, their_clips in grouped(clips, "annotator").items():
        if not marks_every_answer(their_clips, codebook):
            level_of_unmarked_time[annotator] = codebook.level_names[0]
    spans: list[tuple[float, float, str]] = []
    # Between two neighbouring edges nobody's level changes.
    for start_s, end_s in pairwise(edges_s):
        level_of_annotator = dict(level_of_unmarked_time)
        for clip in clips:
            covers_span = (clip.start_s or 0.0) <= start_s and end_s <= (clip.end_s or 0.0)
            if covers_span and clip.level is not None:
                level_so_far = level_of_annotator.get(clip.annotator, clip.level)
                level_of_annotator[clip.annotator] = max(level_so_far, clip.level, key=codebook.rank)
        do_not_differ = len(set(level_of_annotator.values())) < 2
        if do_not_differ:
            continue

        text = "; ".join(f"{name}: {level}" for name, level in sorted(level_of_annotator.items()))
        continues_last = bool(spans) and spans[-1][1:] == (start_s, text)
        if continues_last:
            start_of_last_s, _, _ = spans.pop()
            spans.append((start_of_last_s, end_s, text))
        else:
            spans.append((start_s, end_s, text))
    return spans


def _tiers_of_annotator(name: str, clips: Sequence[Clip]) -> list[EafTier]:
    """Return an annotator's tier of levels, and the one of concepts below it, with the labels of clips.

    The name is "" for tiers that the person signs in ELAN.
    """
    level_tier = f"{LEVEL_TIER}@{name}" if name else LEVEL_TIER
    concept_tier = f"{CONCEPT_TIER}@{name}" if name else CONCEPT_TIER
    level_spans = []
    concept_spans = []
    for clip in clips:
        start_s = clip.start_s or 0.0
        end_s = clip.end_s or 0.0
        level_spans.append((start_s, end_s, clip.level or ""))
        if clip.concepts:
            concept_spans.append((start_s, end_s, CONCEPT_SEPARATOR.join(clip.concepts)))
    return [
        EafTier(level_tier, "level", level_spans, annotator=name),
        EafTier(concept_tier, "concepts", concept_spans, parent=level_tier, annotator=name),
    ]
