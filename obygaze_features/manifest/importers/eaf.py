"""Import annotations made in ELAN (EAF) from the tiers whose names begin with "human:".

A tier of levels holds one annotation for each span; a tier of concepts holds names joined by semicolons, for
the same spans: below it (REF_ANNOTATION, with the times and the annotator of what it refers to), or beside it
with the same times. No other tier is read, so that no model's output becomes a label.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, XMLParser

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import CONCEPT_SEPARATOR, Clip
from obygaze_features.manifest.codebook import BUILTIN, Codebook, builtin_codebook
from obygaze_features.manifest.importers.imported import Imported, counted, slug, unique_id
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.text_tables import SEEN_SCORE

HUMAN = "human:"
"""Begins the names of the tiers that are read."""

LEVEL_TIER, CONCEPT_TIER = "human: level", "human: concepts"
DECIDED_LEVEL, DECIDED_CONCEPTS = "human: decision level", "human: decision concepts"
"""Tiers on which annotators' conflicts are decided."""
DECIDED_ON = "decided_on"
"""Column of when a document with decisions was saved."""
MODEL = "obygaze"
"""Begins the names of tiers and of header properties that a model's export wrote."""

Times = tuple[int, int]
"""Start and end in milliseconds."""


@dataclass(frozen=True)
class _Mark:
    """One annotation of a tier."""

    times: Times
    text: str
    annotator: str


def import_eaf(
    files: Sequence[Path],
    root: Path,
    *,
    level_tier: str = LEVEL_TIER,
    concept_tier: str = CONCEPT_TIER,
    movie: str = "",
    annotator: str = "",
    codebook: Codebook | None = None,
) -> Imported:
    """Read what people wrote in documents of ELAN.

    Parameters
    ----------
    files
        Documents (.eaf), one film each.
    root
        Folder that the manifest will lie in.
    level_tier, concept_tier
        Names of the tiers to read; they must begin with "human:". Several annotators have a tier each, named
        by its attribute ANNOTATOR, or after an @ in its name ("human: level@AB").
    movie
        The film, where a document does not say it.
    annotator
        Who wrote on tiers that do not say it.
    codebook
        Of the levels and concepts; by default the one that the documents name, else the default one.

    Raises
    ------
    ManifestError
        A file is no document of ELAN, or names no film; a tier is not a human one; a level or concept is
        unknown; names file and annotation.
    """
    for name in (level_tier, concept_tier):
        if not name.startswith(HUMAN):
            raise ManifestError(
                f"tier {name!r}: only tiers that begin with {HUMAN!r} are read, "
                "so that no model's output becomes a label; rename the tier in ELAN"
            )
    clips: list[Clip] = []
    notices: list[str] = []
    ids: set[str] = set()
    for path in files:
        root_node = _parsed(path)
        facts = _properties(root_node)
        named = facts.get("obygaze codebook", "") or facts.get("codebook", "")
        if codebook is None:
            codebook = builtin_codebook(named) if named in BUILTIN else default_codebook()
        film = movie or facts.get("obygaze movie", "") or facts.get("movie", "")
        if not film:
            raise ManifestError(f"{path}: does not say which film it is of: give --movie")
        tiers = root_node.findall("TIER")
        seen = any(name.startswith(MODEL) for name in (*facts, *(tier.get("TIER_ID", "") for tier in tiers)))
        levels = list(_marks(root_node, tiers, level_tier, annotator))
        concepts = {
            (mark.times, mark.annotator): mark.text
            for mark in _marks(root_node, tiers, concept_tier, annotator)
        }
        others = [
            tier.get("TIER_ID", "")
            for tier in tiers
            if not _is(tier, level_tier) and not _is(tier, concept_tier)
        ]
        empty = sum(not mark.text for mark in levels)
        for number, mark in enumerate((mark for mark in levels if mark.text), start=1):
            text = concepts.pop((mark.times, mark.annotator), "")
            try:
                clip = _clip(mark, text, number, codebook=codebook, film=film, ids=ids, seen=seen)
                saved = {DECIDED_ON: root_node.get("DATE", "")} if level_tier == DECIDED_LEVEL else {}
                clips.append(replace(clip, extras={**clip.extras, **saved}))
            except ManifestError as error:
                at = f"annotation {number} (from {mark.times[0] / 1000:g} s)"
                raise ManifestError(f"{path}: {at}: {error}", error.column) from None
        why = "that hold no decisions" if level_tier == DECIDED_LEVEL else "that people did not write on"
        notices += _notices(path, empty, others, why, len(concepts))
    return Imported(Manifest(tuple(clips), root, codebook or default_codebook()), tuple(notices))


def _clip(
    mark: _Mark, text: str, number: int, *, codebook: Codebook, film: str, ids: set[str], seen: bool
) -> Clip:
    """Make a clip of an annotation."""
    names = [name.strip() for name in text.split(CONCEPT_SEPARATOR) if name.strip()]
    if not mark.annotator:
        raise ManifestError("nobody's: set the tier's annotator in ELAN, or give --annotator", "annotator")
    return Clip(
        clip_id=unique_id(f"{slug(film)}-{slug(mark.annotator)}", number, ids),
        movie=film,
        start_s=mark.times[0] / 1000,
        end_s=mark.times[1] / 1000,
        level=codebook.level_spelled(mark.text),
        concepts=tuple(map(codebook.concept_spelled, names)),
        annotator=mark.annotator,
        extras={SEEN_SCORE: str(int(seen))},
    )


def _notices(path: Path, empty: int, others: Sequence[str], why: str, unused: int) -> list[str]:
    notices = []
    if others:
        names = ", ".join(others[:4]) + (", ..." if len(others) > 4 else "")
        notices.append(f"{path.name}: left out {counted(len(others), 'tier')} {why} ({names})")
    if empty:
        notices.append(f"{path.name}: left out {counted(empty, 'annotation')} without a level")
    if unused:
        notices.append(
            f"{path.name}: left out {counted(unused, 'annotation')} of concepts at no level's times"
        )
    return notices


def _parsed(path: Path) -> Element:
    """Read an XML document without a document type, so that no entity is expanded."""
    content = path.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ManifestError(f"{path}: has a document type, which documents of ELAN have not: not read")
    parser = XMLParser()  # noqa: S314 - it has no entities
    try:
        parser.feed(content)
        root: Element = parser.close()
    except ParseError as error:
        raise ManifestError(f"{path}: not a document of ELAN ({error})") from None
    if root.tag != "ANNOTATION_DOCUMENT":
        raise ManifestError(f"{path}: not a document of ELAN: its root is {root.tag!r:.60}")
    header = root.find("HEADER")
    units = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
    if units != "milliseconds":
        raise ManifestError(f"{path}: times in {units} cannot be read: save it with a newer ELAN")
    return root


def _properties(root: Element) -> Mapping[str, str]:
    return {node.get("NAME", ""): (node.text or "").strip() for node in root.findall("HEADER/PROPERTY")}


def _is(tier: Element, name: str) -> bool:
    identity = tier.get("TIER_ID", "")
    return identity == name or identity.startswith(f"{name}@")


def _milliseconds(text: str) -> int:
    """Read a time; -1 where there is none."""
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else -1


def _marks(root: Element, tiers: Sequence[Element], name: str, annotator: str) -> Iterator[_Mark]:
    """Give the annotations of the tiers of this name, with their own or their parents' times."""
    slots = {
        node.get("TIME_SLOT_ID", ""): _milliseconds(node.get("TIME_VALUE", ""))
        for node in root.findall("TIME_ORDER/TIME_SLOT")
    }
    nodes: dict[str, tuple[Element, Element]] = {
        node.get("ANNOTATION_ID", ""): (node, tier) for tier in tiers for node in tier.findall("ANNOTATION/*")
    }
    by_name = {tier.get("TIER_ID", ""): tier for tier in tiers}
    for tier in tiers:
        if not _is(tier, name):
            continue
        for node in tier.findall("ANNOTATION/*"):
            aligned, owner = node, tier
            for _ in range(len(nodes)):  # a circle of references ends here
                if aligned.tag != "REF_ANNOTATION":
                    break
                aligned, owner = nodes.get(aligned.get("ANNOTATION_REF", ""), (aligned, owner))
            ends = (aligned.get("TIME_SLOT_REF1", ""), aligned.get("TIME_SLOT_REF2", ""))
            span = (slots.get(ends[0], -1), slots.get(ends[1], -1))
            if span[0] < 0 or span[1] <= span[0]:
                identity = node.get("ANNOTATION_ID", "")
                raise ManifestError(f"tier {tier.get('TIER_ID')!r}: annotation {identity!r} has no times")
            above = by_name.get(owner.get("PARENT_REF", ""), owner)
            who = _annotator(owner) or _annotator(above) or _annotator(tier) or annotator
            yield _Mark(span, (node.findtext("ANNOTATION_VALUE") or "").strip(), who)


def _annotator(tier: Element) -> str:
    return tier.get("ANNOTATOR", "").strip() or tier.get("TIER_ID", "").partition("@")[2].strip()
