"""Read annotations of ELAN (EAF): tiers of levels, and of concepts below them or at the same times.

Source: EAF 2.8 and 3.0 (Max Planck Institute for Psycholinguistics).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from xml.etree.ElementTree import Element

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.given import Given, RawSpan
from obygaze_features.manifest.spans.names import find_film, path_of, plain, stem_of
from obygaze_features.manifest.spans.subtitles import one_line
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import composed, first_few

LEVEL_TIER, CONCEPT_TIER = "human: level", "human: concepts"
PEOPLE: Mapping[str, str] = {LEVEL_TIER: "levels", CONCEPT_TIER: "concepts"}
"""Tiers that are read where none is named; no export of a model has one of these names."""

DECIDED_LEVEL, DECIDED_CONCEPTS = "human: decision level", "human: decision concepts"
DECIDED: Mapping[str, str] = {DECIDED_LEVEL: "levels", DECIDED_CONCEPTS: "concepts"}
"""Tiers on which annotators' conflicts are decided."""
DECIDED_ON = "decided_on"
"""Column of when a document with decisions was saved."""

ANNOTATIONS = ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
REFERENCES = ("ANNOTATION_REF", "PREVIOUS_ANNOTATION")

MODEL = "obygaze"
"""Begins the names of tiers and of header properties that a model's export wrote."""


def tier_key(name: str) -> str:
    """Fold the name of a tier: case, accents' forms and blanks do not count."""
    return plain(name).replace(" ", "")


def key_among(name: str, keys: Collection[str]) -> str:
    """Find the key of a tier, of its whole name or of what stands before its `@`; "" if there is none."""
    return next((key for key in map(tier_key, (name, name.partition("@")[0])) if key in keys), "")


def read_eaf(given: Given) -> Iterator[RawSpan]:
    """Yield the annotations of the tiers that are named, or of those that people write on."""
    root = given.xml("ANNOTATION_DOCUMENT", "a document of ELAN")
    header = root.find("HEADER")
    units = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
    if units != "milliseconds":
        raise given.error(f"times in {units} cannot be read: save it with a newer ELAN")
    facts = {node.get("NAME", ""): (node.text or "").strip() for node in root.findall("HEADER/PROPERTY")}
    tiers = root.findall("TIER")
    ids = [tier.get("TIER_ID", "") for tier in tiers]
    wanted = given.tiers or PEOPLE
    chosen = _chosen(given, wanted, ids)
    media = _media(given, root)
    cells = {
        "movie": facts.get("obygaze movie", "") or facts.get("movie", ""),
        "media": _place(header if media is None else media),
        "codebook": facts.get("obygaze codebook", "") or facts.get("codebook", ""),
        "seen_score": str(int(any(name.startswith(MODEL) for name in (*facts, *ids)))),
    }
    if DECIDED_LEVEL in wanted:
        cells[DECIDED_ON] = root.get("DATE", "")
    times = _Slots(given, root, tiers, media)
    for tier, name in zip(tiers, ids, strict=True):
        if name not in chosen:
            continue
        for node in (inner for child in tier for inner in (child if child.tag == "ANNOTATION" else [child])):
            if node.tag not in ANNOTATIONS:
                yield RawSpan(f"<{node.tag}> on tier {name!r}", why="it is no annotation of ELAN")
                continue
            start, end, above, who = times.of(node, tier)
            own = node.get("ANNOTATION_ID", "")
            values = ("".join(value.itertext()) for value in node.findall("ANNOTATION_VALUE"))
            text = "; ".join(filter(None, map(one_line, values)))
            why = "" if text else f"without a {chosen[name].removesuffix('s')}"
            yield RawSpan(
                f"annotation {own} of tier {name!r} (from {start / 1000:g} s)", start / 1000, end / 1000,
                text, "", {**cells, "annotator": who, "subject": one_line(tier.get("PARTICIPANT", ""))},
                own, above, why, role=chosen[name],
            )  # fmt: skip


def _chosen(given: Given, wanted: Mapping[str, str], ids: Sequence[str]) -> dict[str, str]:
    """Find the tiers to read, each with its role; note the others."""
    roles = {tier_key(name): role for name, role in wanted.items()}
    keys = {name: key_among(name, roles) for name in ids}
    chosen = {name: roles[key] for name, key in keys.items() if key}
    spelled: dict[str, str] = {}
    for name in chosen:
        if name.startswith(MODEL):
            raise given.error(f"tier {name!r} was written by a model: its output is no label")
        if (twin := spelled.setdefault(tier_key(name), name)) != name:
            raise given.error(
                f"tiers {twin!r} and {name!r} differ in case or blanks alone: rename one in ELAN"
            )
    others = {tier_key(name): name for name in ids if name not in chosen}
    for name in (name for name in wanted if tier_key(name) not in keys.values()):
        near = get_close_matches(tier_key(name), others, n=1, cutoff=0.75)
        if given.tiers and dict(wanted) != DECIDED and not near:
            raise given.error(f"no tier {name!r}: there are {', '.join(map(repr, ids))}")
        given.account.note(*(f"tier {others[key]!r} is not read: did you mean {name!r}?" for key in near))
    if left := [name for name in ids if name not in chosen]:
        what = f"left out {counted(len(left), 'tier')} that --tier does not name"
        given.account.note(f"{what} ({first_few(left, 4)})")
    return chosen


def _media(given: Given, root: Element) -> Element | None:
    """Find the film's media; refuse where several have other offsets and none is said to be the film."""
    every = root.findall("HEADER/MEDIA_DESCRIPTOR")
    films = [node for node in every if node.get("MIME_TYPE", "").startswith("video")] or every
    stems = [stem_of(_place(node)) for node in films]
    movie = find_film(given.movie, dict.fromkeys(stems)) if given.movie else None
    films = [node for node, stem in zip(films, stems, strict=True) if movie in {None, stem}]
    if len({(node.get("TIME_ORIGIN") or "0").strip() for node in films}) > 1:
        raise given.error(
            f"its media begin at different times (TIME_ORIGIN): which is the film? Give --movie, one of "
            f"{', '.join(map(repr, stems))}"
        )
    if len({stem_of(_place(node)) for node in films}) > 1:
        given.account.note(
            f"of {len(films)} media {path_of(_place(films[0])).name!r} is taken as the film: "
            "give --movie if it is another"
        )
    return films[0] if films else None


def _place(node: Element | None) -> str:
    """Return where media are; a header of version 2.0 and before names its own."""
    named = ("MEDIA_URL", "RELATIVE_MEDIA_URL", "MEDIA_FILE")
    return next(filter(None, (node.get(name) for name in named)), "") if node is not None else ""


class _Slots:
    """Times of annotations in milliseconds of the film: their own, their parents', or spread evenly."""

    def __init__(self, given: Given, root: Element, tiers: list[Element], media: Element | None) -> None:
        self._given = given
        origin = "" if media is None else (media.get("TIME_ORIGIN") or "").strip()
        if not re.fullmatch(r"(?:-?[0-9]{1,12})?", origin):
            raise given.error(f"TIME_ORIGIN {origin!r} of its media is no number of milliseconds")
        self._origin = int(origin or 0)
        if self._origin:
            given.account.note(f"times moved by the media's offset (TIME_ORIGIN), {self._origin} ms")
        self._slots: dict[str, int | str] = {}  # a text where it is no time, empty where there is none
        for node in root.findall("TIME_ORDER/TIME_SLOT"):
            name, value = node.get("TIME_SLOT_ID", ""), node.get("TIME_VALUE", "").strip()
            if name in self._slots:
                raise given.error(f"time slot {name!r} is there twice: which is right cannot be known")
            whole = re.fullmatch(r"([0-9]{1,15})(?:\.0+)?", value)  # tools that count in fractions write 5.0
            self._slots[name] = int(whole[1]) if whole else value
        every = [(node, tier) for tier in tiers for node in tier.findall("ANNOTATION/*")]
        self._nodes = {node.get("ANNOTATION_ID", ""): (node, tier) for node, tier in every}
        self._nodes.pop("", None)
        ids = Counter(node.get("ANNOTATION_ID", "") for node, _ in every)
        referred = {node.get(name, "") for node, _ in every for name in REFERENCES} - {""}
        if twice := [name for name in ids if ids[name] > 1 and name in referred]:
            what = f"{twice[0]!r} is the id of {ids[twice[0]]} annotations, and others refer to it"
            raise given.error(f"{what} ({len(twice)} such): which they mean cannot be known")
        self._tiers = {tier.get("TIER_ID", ""): tier for tier in tiers}
        self._followed = {node.get("PREVIOUS_ANNOTATION", "") for node, _ in every} - {""}
        self._slots |= {f"after {name}": "" for name in self._followed}
        if "" in self._slots.values():
            nodes = (tier.findall("ANNOTATION/*") for tier in sorted(tiers, key=self._depth))
            lines = [[*map(self._line, own)] for own in nodes]
            lines.sort(key=lambda own: max(map(len, own), default=0))
            self._spread([dict(map(self._ends, own)) for own in lines])

    def _depth(self, tier: Element) -> int:
        """Count the tiers above one."""
        above = set[str]()
        while (name := tier.get("PARENT_REF", "")) in self._tiers and name not in above:
            above.add(name)
            tier = self._tiers[name]
        return len(above)

    def _line(self, node: Element) -> list[Element]:
        """List an annotation, the one that it refers to, and so on up to the one that has times."""
        line = dict[Element, None]()
        while node not in line:
            line[node] = None
            node = self._nodes.get(node.get("ANNOTATION_REF", ""), (node, node))[0]
        return [*line]

    def _ends(self, line: Sequence[Element]) -> tuple[str, str]:
        """Name the slots of an annotation: those of the one that has times, or between two of a chain."""
        first, last = (line[-1].get(f"TIME_SLOT_REF{n}", "") for n in (1, 2))
        before = (f"after {name}" for node in line if (name := node.get("PREVIOUS_ANNOTATION")))
        after = (f"after {name}" for node in line if (name := node.get("ANNOTATION_ID")) in self._followed)
        return next(before, first), next(after, last)

    def _spread(self, chains: Sequence[Mapping[str, str]]) -> None:
        """Give times to the slots that two annotations of a tier share: ELAN's subdivisions are even.

        A tier comes after those that it subdivides, in whatever order the document has them.
        """
        slots = self._slots
        before = -1
        while before < (known := sum(isinstance(time, int) for time in slots.values())) < len(slots):
            before = known  # where no tier is named as the one above, another round finds its times
            for after in chains:
                for first in [slot for slot in after if isinstance(slots.get(slot), int)]:
                    start, last, inner = slots[first], after[first], dict[str, None]()
                    while slots.get(last) == "" and last in after and last not in inner:
                        inner[last] = None
                        last = after[last]
                    end = slots.get(last)
                    if isinstance(start, int) and isinstance(end, int):
                        step = (end - start) / (len(inner) + 1)
                        slots |= {slot: int(start + n * step) for n, slot in enumerate(inner, start=1)}

    def of(self, node: Element, tier: Element) -> tuple[int, int, tuple[str, ...], str]:
        """Return the start and end of an annotation, the ids of those it refers to, and whose it is.

        It is that of the tier that has its times, of the one above it, or its own.
        """
        line = self._line(node)
        above = tuple(each.get("ANNOTATION_ID", "") for each in line[1:])
        owner = self._nodes[above[-1]][1] if above else tier
        start, end = (self._time(node, tier, slot) for slot in self._ends(line))
        over = self._tiers.get(owner.get("PARENT_REF", ""), owner)
        who = next(filter(None, map(_annotator, (owner, over, tier))), "")
        name, own = tier.get("TIER_ID", ""), _annotator(tier)
        for other in {own, composed(name.partition("@")[2].strip())} - {who, ""}:
            self._given.account.note(
                f"tier {name!r} is signed {other}, it or the tier above it {who}: taken as {who}'s"
            )
        return start, end, above, who

    def _time(self, node: Element, tier: Element, slot: str) -> int:
        time = self._slots.get(slot, "")
        if isinstance(time, str):
            why = f"the time {time!r} is no whole number of milliseconds" if time else "it has no time"
            raise self._error(node, tier, f"{why} (time slot {slot!r}): save it in ELAN")
        return time + self._origin

    def _error(self, node: Element, tier: Element, why: str) -> ManifestError:
        place = f"tier {tier.get('TIER_ID', '')!r}, annotation {node.get('ANNOTATION_ID', '')!r}"
        return self._given.error(f"{place}: {why}")


def _annotator(tier: Element) -> str:
    return composed(tier.get("ANNOTATOR", "").strip() or tier.get("TIER_ID", "").partition("@")[2].strip())
