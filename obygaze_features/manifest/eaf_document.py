"""Write documents of ELAN (EAF 3.0): for annotators, blank; for two of them, with what they differ on.

People write on tiers that begin with "human:", which `import_spans` reads. A tier of concepts refers to the
spans of the tier of levels above it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from obygaze_features.io import file_names, refuse_existing, write_whole
from obygaze_features.manifest.clip import CONCEPT_SEPARATOR, Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.eaf import CONCEPT_TIER, DECIDED_CONCEPTS, DECIDED_LEVEL, LEVEL_TIER

SCHEMA: Final = "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
NO_DATE: Final = "1970-01-01T00:00:00+00:00"
"""The schema needs a date; it is constant so that the same content gives the same bytes."""

LANGUAGE: Final = "und"
Kind = Literal["model", "level", "probability", "concepts"]
TYPES: Final[Mapping[Kind, tuple[bool, str]]] = {
    "model": (True, ""),
    "level": (True, "levels"),
    "probability": (True, "probabilities"),
    "concepts": (False, ""),
}
"""Type of tier -> whether its annotations have times of their own, and the vocabulary that they are from."""
STEREOTYPES: Final = {
    "Time_Subdivision": "Parts of the parent's interval without gaps",
    "Symbolic_Subdivision": "Ordered parts of the parent, without times",
    "Symbolic_Association": "One annotation for one of the parent",
    "Included_In": "Parts of the parent's interval, with gaps",
}
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow."""


@dataclass(frozen=True, slots=True)
class EafTier:
    """A tier: its spans in seconds with their texts; of a tier below another, those of the parent's spans.

    Parameters
    ----------
    annotator
        Who writes on it; empty if nobody is named.
    """

    name: str
    kind: Kind
    spans: Sequence[tuple[float, float, str]] = ()
    parent: str = ""
    annotator: str = ""


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
        A parent stands before what is below it.
    properties
        Of the header, by name.
    vocabularies
        `levels` and others: description and values.
    media
        The film's file, named relative to the document.
    """
    about = {"AUTHOR": "obygaze", "DATE": NO_DATE, "FORMAT": "3.0", "VERSION": "3.0"}
    about["xmlns:xsi"] = "http://www.w3.org/2001/XMLSchema-instance"
    root = Element("ANNOTATION_DOCUMENT", {**about, "xsi:noNamespaceSchemaLocation": SCHEMA})
    if licence:
        SubElement(root, "LICENSE", {"LICENSE_URL": ""}).text = _legal(licence)
    header = SubElement(root, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    if media:
        place = {"MEDIA_URL": media, "MIME_TYPE": "video/*", "RELATIVE_MEDIA_URL": media}
        SubElement(header, "MEDIA_DESCRIPTOR", place)
    n_annotations = sum(len(tier.spans) for tier in tiers)
    for name, value in {**properties, "lastUsedAnnotationId": str(n_annotations)}.items():
        SubElement(header, "PROPERTY", {"NAME": name}).text = _legal(value)
    slots = _time_order(root, [span for tier in tiers if not tier.parent for span in tier.spans])
    number, timed, ids = 0, iter(slots), dict[tuple[str, float, float], str]()
    for tier in tiers:
        node = SubElement(root, "TIER", {"TIER_ID": _legal(tier.name), "LINGUISTIC_TYPE_REF": tier.kind})
        node.attrib |= {"PARENT_REF": tier.parent} if tier.parent else {}
        node.attrib |= {"ANNOTATOR": _legal(tier.annotator)} if tier.annotator else {}
        for start_s, end_s, text in tier.spans:
            number += 1
            owner = {"ANNOTATION_ID": f"a{number}"}
            if tier.parent:
                owner["ANNOTATION_REF"] = ids[tier.parent, start_s, end_s]
            else:
                first, last = next(timed)
                owner |= {"TIME_SLOT_REF1": first, "TIME_SLOT_REF2": last}
                ids[tier.name, start_s, end_s] = f"a{number}"
            kind = "REF_ANNOTATION" if tier.parent else "ALIGNABLE_ANNOTATION"
            own = SubElement(SubElement(node, "ANNOTATION"), kind, owner)
            SubElement(own, "ANNOTATION_VALUE").text = _legal(text)
    _types(root, vocabularies)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def milliseconds(seconds: float) -> int:
    """Round a time to whole milliseconds, as ELAN stores it."""
    return round(1000 * seconds)


def _time_order(root: Element, spans: Sequence[tuple[float, float, str]]) -> list[tuple[str, str]]:
    """Write two time slots for each span, in time order; return their names."""
    order = SubElement(root, "TIME_ORDER")
    edges = [(milliseconds(start_s), 0, index) for index, (start_s, _, _) in enumerate(spans)]
    edges += [
        (max(milliseconds(end_s), milliseconds(start_s) + 1), 1, index)
        for index, (start_s, end_s, _) in enumerate(spans)
    ]
    names = [["", ""] for _ in spans]
    for number, (time, side, index) in enumerate(sorted(edges), start=1):
        names[index][side] = f"ts{number}"
        SubElement(order, "TIME_SLOT", {"TIME_SLOT_ID": f"ts{number}", "TIME_VALUE": str(time)})
    return [(first, last) for first, last in names]


def _types(root: Element, vocabularies: Mapping[str, tuple[str, Sequence[str]]]) -> None:
    """Write the types of tiers, the language, the stereotypes and the vocabularies, in the schema's order."""
    for kind, (timed, vocabulary) in TYPES.items():
        facts = {"LINGUISTIC_TYPE_ID": kind, "TIME_ALIGNABLE": str(timed).lower()}
        if vocabulary in vocabularies:
            facts["CONTROLLED_VOCABULARY_REF"] = vocabulary
        elif vocabulary:
            continue
        facts |= {} if timed else {"CONSTRAINTS": "Symbolic_Association"}
        SubElement(root, "LINGUISTIC_TYPE", facts | {"GRAPHIC_REFERENCES": "false"})
    language = {"LANG_ID": LANGUAGE, "LANG_DEF": "http://cdb.iso.org/lg/CDB-00130975-001"}
    SubElement(root, "LANGUAGE", language | {"LANG_LABEL": f"undetermined ({LANGUAGE})"})
    for name, description in STEREOTYPES.items():
        SubElement(root, "CONSTRAINT", {"STEREOTYPE": name, "DESCRIPTION": description})
    for identity, (description, values) in vocabularies.items():
        vocabulary_node = SubElement(root, "CONTROLLED_VOCABULARY", {"CV_ID": identity})
        SubElement(vocabulary_node, "DESCRIPTION", {"LANG_REF": LANGUAGE}).text = _legal(description)
        for number, value in enumerate(values, start=1):
            entry = SubElement(vocabulary_node, "CV_ENTRY_ML", {"CVE_ID": f"{identity[:-1]}{number}"})
            SubElement(entry, "CVE_VALUE", {"DESCRIPTION": "", "LANG_REF": LANGUAGE}).text = _legal(value)


def _legal(text: str) -> str:
    """Remove characters that XML 1.0 does not allow."""
    return _ILLEGAL.sub("", text)


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
def blank_document(codebook: Codebook, movie: str, annotators: Sequence[str], *, media: str = "") -> str:
    """Write a document to annotate a film in, with the codebook's words and no model's opinion.

    Each annotator has a tier of levels and one of concepts, whose names are joined by semicolons; without
    names there is one for whoever signs it in ELAN.
    """
    tiers = [tier for name in annotators or [""] for tier in _tiers_of(name, ())]
    return eaf_document(tiers, _header(codebook, movie), _words(codebook), media=media)


def conflicts_document(manifest: Manifest, movie: str) -> str:
    """Write both annotators' tiers of a film, what they differ on, and an empty tier for decisions.

    People decide on the tiers "human: decision level" and "human: decision concepts", which `import_spans`
    reads with who signed them and when.
    """
    clips = [clip for clip in manifest if clip.movie == movie and clip.start_s is not None and clip.level]
    names = sorted({clip.annotator for clip in clips})
    tiers = [tier for name in names for tier in _tiers_of(name, [c for c in clips if c.annotator == name])]
    tiers.append(EafTier("conflicts", "model", conflicts(clips)))
    tiers += [EafTier(DECIDED_LEVEL, "level"), EafTier(DECIDED_CONCEPTS, "concepts", parent=DECIDED_LEVEL)]
    return eaf_document(tiers, _header(manifest.codebook, movie), _words(manifest.codebook))


def conflicts(clips: Sequence[Clip]) -> list[tuple[float, float, str]]:
    """Find the spans in which annotators are at different levels; the text says who is at which."""
    edges = sorted({edge for clip in clips for edge in (clip.start_s or 0.0, clip.end_s or 0.0)})
    names = sorted({clip.annotator for clip in clips})
    found: list[tuple[float, float, str]] = []
    for start_s, end_s in pairwise(edges):
        at = {
            clip.annotator: clip.level
            for clip in clips
            if (clip.start_s or 0.0) <= start_s and end_s <= (clip.end_s or 0.0)
        }
        if len(set(at.values())) < 2:
            continue
        text = "; ".join(f"{name}: {at[name]}" for name in names if name in at)
        goes_on = bool(found) and found[-1][1:] == (start_s, text)
        found.append((found.pop()[0] if goes_on else start_s, end_s, text))
    return found


def _tiers_of(name: str, clips: Sequence[Clip]) -> list[EafTier]:
    level, concepts = (f"{tier}@{name}" if name else tier for tier in (LEVEL_TIER, CONCEPT_TIER))
    times = [(clip.start_s or 0.0, clip.end_s or 0.0) for clip in clips]
    both = list(zip(times, clips, strict=True))
    marked = [(*span, CONCEPT_SEPARATOR.join(clip.concepts)) for span, clip in both if clip.concepts]
    return [
        EafTier(level, "level", [(*span, clip.level or "") for span, clip in both], annotator=name),
        EafTier(concepts, "concepts", marked, parent=level, annotator=name),
    ]


def _header(codebook: Codebook, movie: str) -> dict[str, str]:
    return {"codebook": codebook.name, "movie": movie}


def _words(codebook: Codebook) -> dict[str, tuple[str, Sequence[str]]]:
    levels = f"levels of {codebook.name}", codebook.level_names
    concepts = f"concepts of {codebook.name}; several are joined by semicolons", codebook.concept_names
    return {"levels": levels, "concepts": concepts}
