"""Read the tiers of annotations of ELAN (EAF), with the times that they have, refer to, or share.

Source: EAF 2.8 and 3.0 (Max Planck Institute for Psycholinguistics).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.names import find_film, path_of, stem_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import (
    DECIDED,
    DECIDED_LEVEL,
    MODEL,
    NAMED,
    key_among,
    seen_score_of,
    tier_key,
)
from obygaze_features.manifest.text_tables import DEFINITION, counted
from obygaze_features.text import composed, first_few

DECIDED_ON = "decided_on"
"""Column of when a document with decisions was saved."""

DECISION = "decision"
"""Column: the id of the decision that a span shows, in the ledger of a scored film."""

DECISIONS = "decisions"
"""Property of the header: which annotation shows which decision, as in `a12=0123456789abcdef-4`."""

MOST_ABOVE: Final = 100
"""Annotations, or tiers, one above the other; tools write three or four."""
MOST_STEPS: Final = 50
"""How often each time slot is looked at on average to give times to those that have none."""
ANNOTATIONS = ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
REFERENCES = ("ANNOTATION_REF", "PREVIOUS_ANNOTATION")
_MILLISECONDS = re.compile(r"([0-9]{1,15})(?:\.0+)?")
"""Of a time slot; tools that count in fractions write 5.0."""
MEDIA_ATTRIBUTES = ("MEDIA_URL", "RELATIVE_MEDIA_URL", "MEDIA_FILE")


class Annotation(NamedTuple):
    """Times of an annotation in milliseconds of the film, the ids of those it refers to, and whose it is.

    Attributes
    ----------
    refusal
        Why its times cannot be known; "" if they are.
    signature
        Who else signed its tier; "" if nobody did.
    """

    start_ms: float
    end_ms: float
    parent_ids: tuple[str, ...]
    annotator: str
    refusal: str
    signature: str


class Owner(NamedTuple):
    """Whose an annotation is, and who else signed its tier; "" if nobody did."""

    annotator: str
    signature: str


def read_eaf(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of the tiers that the person names, or else of all that no model wrote."""
    root = file.xml("ANNOTATION_DOCUMENT", "a document of ELAN")
    header = root.find("HEADER")
    units = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
    if units != "milliseconds":
        raise file.error(f"times in {units} cannot be read: save it with a newer ELAN")
    tiers = root.findall("TIER")
    names = [tier.get("TIER_ID", "") for tier in tiers]
    _check_names(file, names)
    media = _media(file, root)
    facts = {node.get("NAME", ""): (node.text or "").strip() for node in root.findall("HEADER/PROPERTY")}
    decision_of = dict(part.partition("=")[::2] for part in facts.get(DECISIONS, "").split())
    file.account.is_beside_model = any(name.startswith(MODEL) for name in (*facts, *names))
    cells = _cells(file, root, facts, _place(header if media is None else media))
    times = _Times(file, root, tiers, media)
    keys = {tier_key(name) for name in file.reading.tiers}
    unread_tiers = []
    for tier, name in zip(tiers, names, strict=True):
        is_wanted = bool(key_among(name, keys)) if keys else not name.startswith(MODEL)
        if is_wanted:
            yield from _tier(tier, name, cells, times, decision_of)
        else:
            unread_tiers.append(name)
    if unread_tiers:
        reason = "that --tier does not name" if keys else "of a model"
        file.account.note(
            f"left out {counted(len(unread_tiers), 'tier')} {reason} ({first_few(unread_tiers, 4)})"
        )


def _tier(
    tier: Element, name: str, cells: Mapping[str, str], times: "_Times", decision_of: Mapping[str, str]
) -> Iterator[RawSpan]:
    """Yield the annotations of a tier, each with the decision that it shows, if any."""
    subject = one_line(tier.get("PARTICIPANT", ""))
    seen_score = seen_score_of(name)
    if seen_score:
        cells = {**cells, "seen_score": seen_score}
    place = f"of tier {name!r:.60}"
    for child in tier:
        for node in child if child.tag == "ANNOTATION" else [child]:
            if node.tag not in ANNOTATIONS:
                reason = "it is no annotation of ELAN"
                yield RawSpan(f"<{node.tag:.60}> on tier {name!r:.60}", tier=name, reason=reason)
                continue
            annotation = times.annotation(node, tier)
            span_id = node.get("ANNOTATION_ID", "")
            values = ["".join(value.itertext()) for value in node.findall("ANNOTATION_VALUE")]
            text = "; ".join(line for value in values if (line := one_line(value)))
            start_s = annotation.start_ms / 1000
            end_s = annotation.end_ms / 1000
            yield RawSpan(
                f"annotation {span_id:.60} {place} (from {start_s:g} s)",
                start_s,
                end_s,
                text,
                name,
                {
                    **cells,
                    "annotator": annotation.annotator,
                    "subject": subject,
                    DECISION: decision_of.get(span_id, ""),
                },
                span_id,
                annotation.parent_ids,
                reason="" if text else "no text",
                refusal=annotation.refusal,
                note=annotation.signature,
            )


def _cells(file: SpanFile, root: Element, facts: Mapping[str, str], media: str) -> dict[str, str]:
    """Return what a document, and the facts in its header, say of all its annotations."""
    cells = {
        "movie": facts.get(f"{MODEL} movie", "") or facts.get("movie", ""),
        "media": media,
        "codebook": facts.get(f"{MODEL} codebook", "") or facts.get("codebook", ""),
        DEFINITION: facts.get(f"{MODEL} definition", "") or facts.get("definition", ""),
        "seen_score": "1" if file.account.is_beside_model else "0",
    }
    if DECIDED_LEVEL in file.reading.tiers:
        cells[DECIDED_ON] = root.get("DATE", "")
    return cells


def _check_names(file: SpanFile, names: Sequence[str]) -> None:
    """Refuse tiers of a model that are to be labels, two of one name, and a named tier that is not there."""
    declared = file.reading.tiers
    declared_names = {tier_key(name): name for name in declared or NAMED}
    present = {name: key_among(name, declared_names) for name in names}
    spelled: dict[str, str] = {}
    for name, key in present.items():
        if not key:
            continue
        if name.startswith(MODEL):
            raise file.error(f"tier {name!r} was written by a model: its output is no label")
        twin = spelled.setdefault(tier_key(name), name)
        if twin != name:
            raise file.error(
                f"tiers {twin!r} and {name!r} differ in case or blanks alone: rename one in ELAN"
            )
    undeclared = {tier_key(name): name for name in names if not present[name]}
    for key, name in declared_names.items() if declared else ():
        if key in present.values():
            continue
        near = get_close_matches(key, undeclared, n=1, cutoff=0.75)
        if near:
            file.account.note(f"tier {undeclared[near[0]]!r} is not read: did you mean {name!r}?")
        elif dict(declared) != DECIDED:
            raise file.error(f"no tier {name!r}: there are {', '.join(map(repr, names))}")


def _media(file: SpanFile, root: Element) -> Element | None:
    """Find the film's media; refuse where several have other offsets and none is said to be the film."""
    every = root.findall("HEADER/MEDIA_DESCRIPTOR")
    films = [node for node in every if node.get("MIME_TYPE", "").startswith("video")] or every
    stems = [stem_of(_place(node)) for node in films]
    movie = file.reading.movie
    if movie:
        named = find_film(movie, dict.fromkeys(stems))
        if named is not None:
            films = [node for node, stem in zip(films, stems, strict=True) if stem == named]
    origins = {(node.get("TIME_ORIGIN") or "0").strip() for node in films}
    if len(origins) > 1:
        raise file.error(
            f"its media begin at different times (TIME_ORIGIN): which is the film? Give --movie, one of "
            f"{', '.join(map(repr, stems))}"
        )
    if len({stem_of(_place(node)) for node in films}) > 1:
        file.account.note(
            f"of {len(films)} media {path_of(_place(films[0])).name!r} is taken as the film: "
            "give --movie if it is another"
        )
    return films[0] if films else None


def _place(node: Element | None) -> str:
    """Return where media are; a header of version 2.0 and before names its own."""
    if node is None:
        return ""
    for name in MEDIA_ATTRIBUTES:
        if node.get(name):
            return node.get(name, "")
    return ""


class _Times:
    """Times of annotations in milliseconds of the film: their own, their parents', or spread evenly."""

    def __init__(self, file: SpanFile, root: Element, tiers: list[Element], media: Element | None) -> None:
        self._file = file
        self._origin_ms = _origin_ms(file, media)
        self._slots = _time_slots(file, root)
        every = [(node, tier) for tier in tiers for node in tier.findall("ANNOTATION/*")]
        _refuse_unclear_references(file, [node for node, _ in every])
        self._nodes = {node.get("ANNOTATION_ID", ""): (node, tier) for node, tier in every}
        self._nodes.pop("", None)
        self._tiers = {tier.get("TIER_ID", ""): tier for tier in tiers}
        self._owners: dict[tuple[Element, Element], Owner] = {}
        self._followed = {node.get("PREVIOUS_ANNOTATION", "") for node, _ in every} - {""}
        for name in self._followed:
            self._slots[f"after {name}"] = ""
        if "" in self._slots.values():
            self._spread(self._chains(tiers))

    def annotation(self, node: Element, tier: Element) -> Annotation:
        """Return the times of an annotation, what it refers to, and whose it is.

        It is that of the tier that has its times, of the one above it, or its own.
        """
        line = self._line(node)
        parent_ids = tuple(parent.get("ANNOTATION_ID", "") for parent in line[1:])
        owner = self._owner(self._nodes[parent_ids[-1]][1] if parent_ids else tier, tier)
        first_slot, last_slot = self._ends(line)
        problem = self._problem(first_slot) or self._problem(last_slot)
        refusal = ""
        if problem:
            place = f"tier {tier.get('TIER_ID', '')!r:.60}, annotation {node.get('ANNOTATION_ID', '')!r:.60}"
            refusal = f"{place}: {problem}: save it in ELAN"
        return Annotation(
            self._time_ms(first_slot),
            self._time_ms(last_slot),
            parent_ids,
            owner.annotator,
            refusal,
            owner.signature,
        )

    def _owner(self, timed: Element, tier: Element) -> Owner:
        """Return whose the annotations of a tier are whose times are those of another."""
        if (timed, tier) not in self._owners:
            above = self._tiers.get(timed.get("PARENT_REF", ""), timed)
            annotator = _first_annotator(timed, above, tier)
            self._owners[timed, tier] = Owner(annotator, _other_signature(tier, annotator))
        return self._owners[timed, tier]

    def _time_ms(self, slot: str) -> float:
        """Return the time of a slot, 0 where it has none: its problem is told."""
        time = self._slots.get(slot, "")
        return 0.0 if isinstance(time, str) else float(time + self._origin_ms)

    def _problem(self, slot: str) -> str:
        """Say why the time of a slot is none; "" if it is one."""
        time = self._slots.get(slot, "")
        if not isinstance(time, str):
            return ""
        problem = f"the time {time!r} is no whole number of milliseconds" if time else "it has no time"
        return f"{problem} (time slot {slot!r})"

    def _chains(self, tiers: Sequence[Element]) -> list[dict[str, str]]:
        """Return for each tier the slot that follows each slot; a tier comes after those it subdivides."""
        nodes_of_tiers = [tier.findall("ANNOTATION/*") for tier in sorted(tiers, key=self._depth)]
        lines_of_tiers = [list(map(self._line, nodes)) for nodes in nodes_of_tiers]
        lines_of_tiers.sort(key=lambda lines: max((len(line) for line in lines), default=0))
        return [dict(map(self._ends, lines)) for lines in lines_of_tiers]

    def _depth(self, tier: Element) -> int:
        """Count the tiers above one."""
        above = set[str]()
        name = tier.get("PARENT_REF", "")
        while name in self._tiers and name not in above and len(above) < MOST_ABOVE:
            above.add(name)
            name = self._tiers[name].get("PARENT_REF", "")
        return len(above)

    def _line(self, node: Element) -> list[Element]:
        """List an annotation, the one that it refers to, and so on up to the one that has times."""
        line = dict[Element, None]()
        while node not in line:
            line[node] = None
            if len(line) > MOST_ABOVE:
                raise self._file.error(f"more than {MOST_ABOVE} annotations refer to each other in a chain")
            node = self._nodes.get(node.get("ANNOTATION_REF", ""), (node, node))[0]
        return list(line)

    def _ends(self, line: Sequence[Element]) -> tuple[str, str]:
        """Name the slots of an annotation: those of the one that has times, or between two of a chain."""
        first = line[-1].get("TIME_SLOT_REF1", "")
        last = line[-1].get("TIME_SLOT_REF2", "")
        for node in line:
            if node.get("PREVIOUS_ANNOTATION"):
                first = f"after {node.get('PREVIOUS_ANNOTATION')}"
                break
        for node in line:
            if node.get("ANNOTATION_ID") in self._followed:
                last = f"after {node.get('ANNOTATION_ID')}"
                break
        return first, last

    def _spread(self, chains: Sequence[Mapping[str, str]]) -> None:
        """Give times to the slots that two annotations of a tier share: ELAN's subdivisions are even."""
        n_steps = 0
        most_steps = MOST_STEPS * (len(self._slots) + len(self._nodes))
        n_before = -1
        n_known = self._n_known()
        while n_before < n_known < len(self._slots):
            # Where no tier is named as the one above, another round finds its times.
            for chain in chains:
                for first in [slot for slot in chain if isinstance(self._slots.get(slot), int)]:
                    n_steps += self._spread_from(first, chain)
                    if n_steps > most_steps:
                        raise self._file.error("time slots without times are entangled: save it in ELAN")
            n_before = n_known
            n_known = self._n_known()

    def _n_known(self) -> int:
        return sum(isinstance(time, int) for time in self._slots.values())

    def _spread_from(self, first: str, chain: Mapping[str, str]) -> int:
        """Spread the slots without times between one with a time and the next in a chain that has one.

        Returns
        -------
        steps : int
            How many slots were looked at.
        """
        last = chain[first]
        inner = dict[str, None]()
        while self._slots.get(last) == "" and last in chain and last not in inner:
            inner[last] = None
            last = chain[last]
        start_ms = self._slots[first]
        end_ms = self._slots.get(last)
        if isinstance(start_ms, int) and isinstance(end_ms, int):
            step_ms = (end_ms - start_ms) / (len(inner) + 1)
            for n, slot in enumerate(inner, start=1):
                self._slots[slot] = int(start_ms + n * step_ms)
        return 1 + len(inner)


def _origin_ms(file: SpanFile, media: Element | None) -> int:
    """Return by how much the film's media are moved."""
    origin = "" if media is None else (media.get("TIME_ORIGIN") or "").strip()
    if not re.fullmatch(r"(?:-?[0-9]{1,12})?", origin):
        raise file.error(f"TIME_ORIGIN {origin!r} of its media is no number of milliseconds")
    origin_ms = int(origin or 0)
    if origin_ms:
        file.account.note(f"times moved by the media's offset (TIME_ORIGIN), {origin_ms} ms")
    return origin_ms


def _time_slots(file: SpanFile, root: Element) -> dict[str, int | str]:
    """Read the time slots: a text where one has no time in milliseconds, empty where it has none."""
    slots: dict[str, int | str] = {}
    for node in root.findall("TIME_ORDER/TIME_SLOT"):
        name = node.get("TIME_SLOT_ID", "")
        value = node.get("TIME_VALUE", "").strip()
        if name in slots:
            raise file.error(f"time slot {name!r} is there twice: which is right cannot be known")
        match = _MILLISECONDS.fullmatch(value)
        slots[name] = int(match[1]) if match else value
    return slots


def _refuse_unclear_references(file: SpanFile, nodes: Sequence[Element]) -> None:
    """Refuse ids that are there twice and that others refer to."""
    n_by_id = Counter(node.get("ANNOTATION_ID", "") for node in nodes)
    referred = {node.get(name, "") for node in nodes for name in REFERENCES} - {""}
    twice = [span_id for span_id, n in n_by_id.items() if n > 1 and span_id in referred]
    if twice:
        problem = f"{twice[0]!r} is the id of {n_by_id[twice[0]]} annotations, and others refer to it"
        raise file.error(f"{problem} ({len(twice)} such): which they mean cannot be known")


def _first_annotator(*tiers: Element) -> str:
    """Return the first annotator that signed one of some tiers; "" if nobody did."""
    for tier in tiers:
        annotator = _annotator(tier)
        if annotator:
            return annotator
    return ""


def _other_signature(tier: Element, annotator: str) -> str:
    """Say who else than its annotator signed a tier, as an attribute or in its name."""
    name = tier.get("TIER_ID", "")
    for signature in (_annotator(tier), composed(name.partition("@")[2].strip())):
        if signature not in {"", annotator}:
            owner = f"it or the tier above it {annotator}: taken as {annotator}'s"
            return f"tier {name!r} is signed {signature}, {owner}"
    return ""


def _annotator(tier: Element) -> str:
    return composed(tier.get("ANNOTATOR", "").strip() or tier.get("TIER_ID", "").partition("@")[2].strip())
