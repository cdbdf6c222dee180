"""Write documents of ELAN (EAF 3.0): for annotators, blank; for two of them, with what they differ on.

People write on tiers that begin with "human:", which `import_spans` reads. A tier of concepts refers to the
spans of the tier of levels above it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from obygaze_features.io import file_names, refuse_existing, write_whole
from obygaze_features.manifest.clip import CONCEPT_SEPARATOR, Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.textgrid import apart
from obygaze_features.manifest.spans.tier_names import (
    CONCEPT_TIER,
    DECIDED_CONCEPTS,
    DECIDED_LEVEL,
    LEVEL_TIER,
)
from obygaze_features.templates import filled

Kind = Literal["model", "level", "probability", "concepts"]
"""Types of tiers; annotations of concepts have no times of their own."""
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
        A parent stands before what is below it. Spans of a model that overlap, as subtitles may, are dealt to
        further tiers: ELAN's have no overlaps.
    properties
        Of the header, by name.
    vocabularies
        `levels` and others: description and values.
    media
        The film's file, named relative to the document.
    """
    dealt = list[EafTier]()
    for tier in tiers:
        is_of_people = tier.kind in {"level", "concepts"}
        parts = [(tier.name, tier.spans)] if is_of_people else apart(tier.name, tier.spans)
        dealt += [replace(tier, name=name, spans=part) for name, part in parts]
    every = list(enumerate(((tier, span) for tier in dealt for span in tier.spans), start=1))
    edges = sorted(
        (max(round(1000 * span[:2][side]), round(1000 * span[0]) + side), side, number)
        for number, (tier, span) in every
        for side in (0, 1)
        if not tier.parent
    )
    slots = {edge[1:]: place for place, edge in enumerate(edges, start=1)}
    ids = {(tier.name, *span[:2]): number for number, (tier, span) in every}
    rows = (
        (
            number,
            tier.parent and ids[tier.parent, *span[:2]],
            *(slots.get((side, number)) for side in (0, 1)),
            span[2],
        )
        for number, (tier, span) in every
    )
    about = {"properties": properties, "vocabularies": vocabularies, "licence": licence, "media": media}
    annotations = [(tier, list(islice(rows, len(tier.spans)))) for tier in dealt]
    values = {"tiers": annotations, "times": [time for time, *_ in edges], **about}
    return filled(__package__, "document.eaf.jinja", values, _escaped)


def _escaped(value: object) -> str:
    """Escape what XML escapes in texts and attributes, and leave out what XML 1.0 does not allow."""
    return escape(_ILLEGAL.sub("", str(value)), {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


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
