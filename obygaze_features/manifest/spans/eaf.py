"""Read the tiers of annotations of ELAN (EAF), with the times that they have, refer to, or share.

Source: EAF 2.8 and 3.0 (Max Planck Institute for Psycholinguistics).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

from obygaze_features.manifest.spans.account import SHOWN_NAMES
from obygaze_features.manifest.spans.names import find_film, path_of, stem_of
from obygaze_features.manifest.spans.one_line import one_line
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import (
    DECIDED,
    DECIDED_LEVEL,
    DECISION,
    MODEL,
    NAMED,
    is_of_a_model,
    matching_key,
    seen_score_of_tier,
    tier_key,
    tier_named_nearly,
)
from obygaze_features.manifest.text_tables import DEFINITION, SEEN_SCORE, counted
from obygaze_features.text import composed, first_few

DECIDED_ON = "decided_on"
"""Column: the date on which a document with decisions was saved."""

DECISIONS = "decisions"
"""Property of the header: which annotation shows which decision, as in `a12=0123456789abcdef-4`."""

MAX_ABOVE: Final = 100
"""How many annotations, or tiers, may stand one above the other; tools write three or four."""
MAX_STEPS: Final = 50
"""How often each time slot is looked at on average to give times to those that have none."""
ANNOTATIONS = ("ALIGNABLE_ANNOTATION", "REF_ANNOTATION")
REFERENCES = ("ANNOTATION_REF", "PREVIOUS_ANNOTATION")
_MILLISECONDS = re.compile(r"([0-9]{1,15})(?:\.0+)?")
"""The time of a slot; tools that count in fractions write 5.0."""
MEDIA_ATTRIBUTES = ("MEDIA_URL", "RELATIVE_MEDIA_URL", "MEDIA_FILE")


class Annotation(NamedTuple):
    """What is known of an annotation beside its text.

    Attributes
    ----------
    start_ms, end_ms
        Its times, in milliseconds of the film.
    parent_ids
        Ids of the annotation that it refers to, of the one which that refers to, and so on.
    annotator
        Whose it is; "" if nobody signed it.
    refusal
        Why its times cannot be known; "" if they are.
    signature
        A sentence on who else signed its tier; "" if nobody did.
    """

    start_ms: float
    end_ms: float
    parent_ids: tuple[str, ...]
    annotator: str
    refusal: str
    signature: str


class Owner(NamedTuple):
    """The annotator of an annotation, and a sentence on who else signed its tier; "" if nobody did."""

    annotator: str
    signature: str


def read_eaf(file: SpanFile) -> Iterator[RawSpan]:
    """Yield the annotations of the tiers that --tier names; by default of all tiers that people wrote.

    Raises
    ------
    ManifestError
        Names of tiers, media, or the references of annotations are unclear (`_refuse_or_note_tiers`,
        `_media`, `_Times`), or times are not in milliseconds.
    """
    # 1. What is refused as a whole.
    root = file.xml("ANNOTATION_DOCUMENT", "a document of ELAN")
    _refuse_other_units(file, root)
    tiers = root.findall("TIER")
    names = [tier.get("TIER_ID", "") for tier in tiers]
    _refuse_or_note_tiers(file, names)
    media = _media(file, root)

    # 2. What holds for all annotations: the properties in the header, and the film.
    properties = {}
    for node in root.findall("HEADER/PROPERTY"):
        properties[node.get("NAME", "")] = (node.text or "").strip()
    # Properties that a model's export wrote have names that begin with `MODEL`.
    has_property_of_model = any(name.startswith(f"{MODEL} ") for name in properties)
    file.account.shows_model_output = has_property_of_model or any(map(is_of_a_model, names))
    decision_of_annotation = _decisions(properties.get(DECISIONS, ""))

    # Up to EAF 2.0 the header itself names the medium.
    element_naming_media = root.find("HEADER") if media is None else media
    cells = _cells(file, root, properties, _path_of_media(element_naming_media))
    times = _Times(file, root, tiers, media)

    # 3. The annotations, tier by tier.
    unread_names = []
    for tier, name in zip(tiers, names, strict=True):
        if _is_wanted(file, name):
            yield from _tier(tier, name, cells, times, decision_of_annotation)
        else:
            unread_names.append(name)
    if unread_names:
        reason = "that --tier does not name" if file.reading.tiers else "of a model"
        file.account.note(
            f"left out {counted(len(unread_names), 'tier')} {reason} ({first_few(unread_names, maximum=4)})"
        )


def _refuse_other_units(file: SpanFile, root: Element) -> None:
    """Refuse a document whose times are not in milliseconds."""
    header = root.find("HEADER")
    units = "milliseconds" if header is None else header.get("TIME_UNITS", "milliseconds")
    if units != "milliseconds":
        raise file.error(f"times in {units} cannot be read: save it with a newer ELAN")


def _is_wanted(file: SpanFile, name: str) -> bool:
    """Return whether a tier is read: one that --tier names, or by default one that people wrote."""
    declared_keys = {tier_key(declared) for declared in file.reading.tiers}
    if declared_keys:
        return bool(matching_key(name, declared_keys))
    return not is_of_a_model(name)


def _decisions(text: str) -> dict[str, str]:
    """Return id of an annotation -> id of the decision that it shows, from `a12=0123456789abcdef-4 ...`."""
    decision_of_annotation = {}
    for pair in text.split():
        annotation_id, _, decision_id = pair.partition("=")
        decision_of_annotation[annotation_id] = decision_id
    return decision_of_annotation


def _tier(
    tier: Element,
    name: str,
    cells: Mapping[str, str],
    times: "_Times",
    decision_of_annotation: Mapping[str, str],
) -> Iterator[RawSpan]:
    """Yield the annotations of a tier, each with its text, its times and its cells.

    Parameters
    ----------
    tier, name
        The element of the tier, and its name.
    cells
        The cells that all annotations of the document share. Those of the tier are added.
    times
        Finds the times of annotations.
    decision_of_annotation
        Id of an annotation -> id of the decision in a film's ledger that it shows. Only documents that our
        own export wrote have such.
    """
    tier_cells = {**cells, "subject": one_line(tier.get("PARTICIPANT", ""))}
    seen_score = seen_score_of_tier(name)  # as the tier's name says
    if seen_score:
        tier_cells[SEEN_SCORE] = seen_score
    for child in tier:
        # An annotation is inside an element ANNOTATION. Anything else is left out with a reason.
        nodes = list(child) if child.tag == "ANNOTATION" else [child]
        for node in nodes:
            if node.tag in ANNOTATIONS:
                decision = decision_of_annotation.get(node.get("ANNOTATION_ID", ""), "")
                annotation = times.annotation(node, tier)
                yield _span(node, name, annotation, {**tier_cells, DECISION: decision})
            else:
                reason = "it is no annotation of ELAN"
                yield RawSpan(f"<{node.tag:.60}> on tier {name!r:.60}", tier=name, reason=reason)


def _span(node: Element, tier: str, annotation: Annotation, cells: Mapping[str, str]) -> RawSpan:
    """Return the span of an annotation, whose text is in an element and whose times were found apart."""
    span_id = node.get("ANNOTATION_ID", "")
    text = _text(node)
    start_s = annotation.start_ms / 1000
    return RawSpan(
        f"annotation {span_id:.60} of tier {tier!r:.60} (from {start_s:g} s)",
        start_s,
        annotation.end_ms / 1000,
        text=text,
        tier=tier,
        cells={**cells, "annotator": annotation.annotator},
        span_id=span_id,
        parent_ids=annotation.parent_ids,
        reason="" if text else "no text",
        refusal=annotation.refusal,
        note=annotation.signature,
    )


def _text(node: Element) -> str:
    """Return the text of an annotation in one line; several values are joined by `;`."""
    values = [one_line("".join(value.itertext())) for value in node.findall("ANNOTATION_VALUE")]
    return "; ".join(value for value in values if value)


def _cells(file: SpanFile, root: Element, properties: Mapping[str, str], media: str) -> dict[str, str]:
    """Return the cells that all annotations of a document share.

    Our exports write properties with names such as `obygaze movie`; people may write `movie`. If the tiers
    of decisions are read that our export wrote, the date on which the document was saved is a cell too.

    Parameters
    ----------
    file
        The file, whose account knows whether a model's output is in it.
    root
        The element of the document.
    properties
        Name -> value of the properties in the document's header.
    media
        Path or URL of the film's media.
    """
    # Where a model's tiers are, people had its scores in sight. Where none are, it is not known: they may
    # have seen scores elsewhere.
    seen_score = "1" if file.account.shows_model_output else ""
    cells = {
        "movie": _property(properties, "movie"),
        "media": media,
        "codebook": _property(properties, "codebook"),
        DEFINITION: _property(properties, "definition"),
        SEEN_SCORE: seen_score,
    }
    are_decisions_read = DECIDED_LEVEL in file.reading.tiers
    if are_decisions_read:
        cells[DECIDED_ON] = root.get("DATE", "")
    return cells


def _property(properties: Mapping[str, str], name: str) -> str:
    """Return a property that our export wrote, else the one that a person wrote; "" if there is neither."""
    return properties.get(f"{MODEL} {name}", "") or properties.get(name, "")


def _refuse_or_note_tiers(file: SpanFile, names: Sequence[str]) -> None:
    """Refuse or note what is wrong with the tiers of labels of a document.

    These are the tiers that --tier names. Without that option they are the tiers whose names say that they
    hold labels (`NAMED`).

    `names` are those of all tiers of the document.

    Raises
    ------
    ManifestError
        A model wrote one of them, two of them have one name, or the document lacks a tier that --tier names,
        and has none of nearly the same name.
    """
    tiers_of_person = file.reading.tiers
    # Key, in which names of tiers are compared -> the name of a tier of labels.
    label_tier_of_key = {tier_key(name): name for name in tiers_of_person or NAMED}
    key_of_name = {name: matching_key(name, label_tier_of_key) for name in names}  # "" for other tiers
    names_of_label_tiers = [name for name, key in key_of_name.items() if key]
    other_names = [name for name, key in key_of_name.items() if not key]
    _refuse_tiers_of_models_or_two_spellings(file, names_of_label_tiers)
    if not tiers_of_person:
        return  # no tier of `NAMED` needs to be there
    keys_in_document = set(key_of_name.values())
    for key, name in label_tier_of_key.items():
        if key not in keys_in_document:
            _note_or_refuse_missing_tier(file, name, names, other_names)


def _refuse_tiers_of_models_or_two_spellings(file: SpanFile, names: Sequence[str]) -> None:
    """Refuse tiers of labels if a model wrote one, or if two names differ in case or blanks alone."""
    first_spelling_of_key: dict[str, str] = {}
    for name in names:
        if is_of_a_model(name):
            raise file.error(f"tier {name!r} was written by a model: its output is no label")
        first_spelling = first_spelling_of_key.setdefault(tier_key(name), name)
        if first_spelling != name:
            raise file.error(
                f"tiers {first_spelling!r} and {name!r} differ in case or blanks alone: rename one in ELAN"
            )


def _note_or_refuse_missing_tier(
    file: SpanFile, missing: str, names: Sequence[str], other_names: Sequence[str]
) -> None:
    """Note or refuse that a document lacks a tier that --tier names.

    It is noted if a tier has nearly the same name, and else refused. But if --tier names just the tiers of
    decisions that our export writes (`DECIDED`), they may be missing: only a document with decisions has
    them.

    Parameters
    ----------
    file
        The document.
    missing
        The tier that --tier names and the document does not have.
    names, other_names
        The document's tiers, and those of them that --tier does not name.

    Raises
    ------
    ManifestError
        No tier has nearly the same name.
    """
    near_name = tier_named_nearly(missing, other_names)
    if near_name is not None:
        file.account.note(f"tier {near_name!r} is not read: did you mean {missing!r}?")
        return
    reads_decisions_of_our_export = dict(file.reading.tiers) == DECIDED
    if not reads_decisions_of_our_export:
        raise file.error(f"no tier {missing!r}: there are {first_few(list(map(repr, names)), SHOWN_NAMES)}")


def _media(file: SpanFile, root: Element) -> Element | None:
    """Find the media descriptor of the film; None if the document has none.

    Raises
    ------
    ManifestError
        Several media have different offsets, and --movie does not say which of them is the film.
    """
    descriptors = root.findall("HEADER/MEDIA_DESCRIPTOR")
    videos = [node for node in descriptors if node.get("MIME_TYPE", "").startswith("video")]
    candidates = videos or descriptors
    stems = [stem_of(_path_of_media(node)) for node in candidates]
    films = _media_of_movie(candidates, stems, file.reading.movie)
    origins = {(node.get("TIME_ORIGIN") or "0").strip() for node in films}
    if len(origins) > 1:
        raise file.error(
            f"its media begin at different times (TIME_ORIGIN): which is the film? Give --movie, one of "
            f"{first_few(list(map(repr, stems)), SHOWN_NAMES)}"
        )
    different_stems = {stem_of(_path_of_media(node)) for node in films}
    if len(different_stems) > 1:
        file.account.note(
            f"of {len(films)} media {path_of(_path_of_media(films[0])).name!r} is taken as the film: "
            "give --movie if it is another"
        )
    return films[0] if films else None


def _media_of_movie(media: list[Element], stems: Sequence[str], movie: str) -> list[Element]:
    """Return the media of the movie that the person names; all if none is named or no medium is of it.

    Parameters
    ----------
    media
        Media descriptors.
    stems
        The stem of each medium's file.
    movie
        The movie; "" if the person names none.
    """
    stem_of_movie = find_film(movie, dict.fromkeys(stems)) if movie else None
    if stem_of_movie is None:
        return media
    return [node for node, stem in zip(media, stems, strict=True) if stem == stem_of_movie]


def _path_of_media(node: Element | None) -> str:
    """Return the path or URL of media from an element; "" if it has none.

    Up to EAF 2.0 the element is the header itself, later a media descriptor.
    """
    if node is None:
        return ""
    for name in MEDIA_ATTRIBUTES:
        if node.get(name):
            return node.get(name, "")
    return ""


def _annotations_by_id(tiers: Sequence[Element]) -> dict[str, tuple[Element, Element]]:
    """Return id of an annotation -> its element and its tier, of the annotations that have an id."""
    nodes = {}
    for tier in tiers:
        for node in tier.findall("ANNOTATION/*"):
            annotation_id = node.get("ANNOTATION_ID", "")
            if annotation_id:
                nodes[annotation_id] = (node, tier)
    return nodes


def _ids_of_continued(nodes: Sequence[Element]) -> set[str]:
    """Return the ids of the annotations that another one says to be the previous one."""
    ids = set[str]()
    for node in nodes:
        previous_id = node.get("PREVIOUS_ANNOTATION", "")
        if previous_id:
            ids.add(previous_id)
    return ids


class _Times:
    """The time of each annotation of a document, in milliseconds of the film.

    An annotation names two time slots of its own, or refers to a parent annotation and has its parent's. The
    annotations that subdivide one parent name no slot between them, but each refers to the one before
    it (PREVIOUS_ANNOTATION): the border behind an annotation becomes a further slot, see `_slot_behind`.
    Slots without a time are spread evenly between the slots around them, as ELAN shows them.
    """

    def __init__(self, file: SpanFile, root: Element, tiers: list[Element], media: Element | None) -> None:
        """Read the time slots of a document, and give times to those that have none.

        Parameters
        ----------
        file
            The file of the document, for errors.
        root
            The element of the document.
        tiers
            The elements of its tiers.
        media
            The media descriptor of the film; None if the document has none.
        """
        self._file = file
        self._origin_ms = _origin_ms(file, media)
        # Name of a time slot -> its time in milliseconds of the media; "" if it has none yet; its text if
        # that is no time.
        self._time_of_slot = _time_slots(file, root)

        # Which annotations and tiers refer to which. No annotation can refer to one without an id.
        nodes = [node for tier in tiers for node in tier.findall("ANNOTATION/*")]
        _refuse_unclear_references(file, nodes)
        self._nodes = _annotations_by_id(tiers)  # id of an annotation -> its element and its tier
        self._tier_of_name = {tier.get("TIER_ID", ""): tier for tier in tiers}
        self._owners: dict[tuple[Element, Element], Owner] = {}  # cache of `_owner`, by its arguments

        # Ids of the annotations that another one continues in a subdivision. ELAN writes no slot for the
        # border between the two: one without a time is added here.
        self._continued_ids = _ids_of_continued(nodes)
        for annotation_id in self._continued_ids:
            self._time_of_slot[_slot_behind(annotation_id)] = ""

        # Slots without a time get one, now that all slots are known.
        has_slots_without_time = "" in self._time_of_slot.values()
        if has_slots_without_time:
            self._spread_times(self._next_slots_of_tiers(tiers))

    def annotation(self, node: Element, tier: Element) -> Annotation:
        """Return the times of an annotation, the ids of the annotations above it, and its annotator.

        An annotation may refer to a parent, that to a further one, and so on. The topmost annotation has the
        times. If they cannot be known, `Annotation.refusal` says why; the document is refused if the tier is
        read.

        Parameters
        ----------
        node
            The element of the annotation.
        tier
            The element of its tier.
        """
        ancestry = self._ancestry(node)  # the annotation itself, its parent, and so on
        parent_ids = tuple(parent.get("ANNOTATION_ID", "") for parent in ancestry[1:])
        tier_with_times = tier
        if parent_ids:
            topmost_id = parent_ids[-1]
            _, tier_with_times = self._nodes[topmost_id]
        owner = self._owner(tier_with_times, tier)
        first_slot, last_slot = self._first_and_last_slot(ancestry)
        problem = self._problem_of_slot(first_slot) or self._problem_of_slot(last_slot)
        refusal = ""
        if problem:
            place = f"tier {tier.get('TIER_ID', '')!r:.60}, annotation {node.get('ANNOTATION_ID', '')!r:.60}"
            refusal = f"{place}: {problem}: save it in ELAN"
        return Annotation(
            start_ms=self._time_ms(first_slot),
            end_ms=self._time_ms(last_slot),
            parent_ids=parent_ids,
            annotator=owner.annotator,
            refusal=refusal,
            signature=owner.signature,
        )

    def _owner(self, timed_tier: Element, tier: Element) -> Owner:
        """Return whose the annotations on `tier` are that take their times from `timed_tier`.

        The first of these tiers that is signed names the annotator: the tier with the times, the tier above
        that, the tier itself. If the latter is signed by somebody else, the owner's `signature` notes it.
        """
        if (timed_tier, tier) not in self._owners:
            tier_above = self._tier_of_name.get(timed_tier.get("PARENT_REF", ""), timed_tier)
            annotator = _first_annotator(timed_tier, tier_above, tier)
            self._owners[timed_tier, tier] = Owner(annotator, _other_signature(tier, annotator))
        return self._owners[timed_tier, tier]

    def _time_ms(self, slot: str) -> float:
        """Return the time of a slot in milliseconds of the film; 0 if it has none.

        Why it has none, `_problem_of_slot` says, so that the 0 is not used.
        """
        time = self._time_of_slot.get(slot, "")
        if isinstance(time, str):  # no time: it is empty, or a text that is no whole number
            return 0.0
        return float(time + self._origin_ms)

    def _problem_of_slot(self, slot: str) -> str:
        """Return why a slot has no time that can be read; "" if it has one."""
        time = self._time_of_slot.get(slot, "")
        has_time = isinstance(time, int)
        if has_time:
            return ""
        problem = f"the time {time!r} is no whole number of milliseconds" if time else "it has no time"
        return f"{problem} (time slot {slot!r})"

    def _next_slots_of_tiers(self, tiers: Sequence[Element]) -> list[dict[str, str]]:
        """Return for each tier its links between slots: first slot of an annotation -> its last slot.

        As one annotation often begins where another ends, the links of a tier lead from slot to slot along
        the film. Of which tier they are does not count any more, only the order of the tiers: a tier comes
        after those that it subdivides, so that their times are known when it is reached.
        """
        ancestries_of_tier = {}
        for tier in tiers:
            annotations = tier.findall("ANNOTATION/*")
            ancestries_of_tier[tier] = [self._ancestry(annotation) for annotation in annotations]

        def order(tier: Element) -> tuple[int, int]:
            """Return the numbers by which tiers are sorted: the more levels above a tier, the later it comes.

            How many annotations stand above each other says it more surely than how many tiers do: the former
            may exist although the tier names no tier above it.
            """
            n_in_longest_ancestry = max(map(len, ancestries_of_tier[tier]), default=0)
            return n_in_longest_ancestry, self._n_tiers_above(tier)

        next_slots_of_tiers = []
        for tier in sorted(tiers, key=order):
            next_slot = {}
            for ancestry in ancestries_of_tier[tier]:
                first_slot, last_slot = self._first_and_last_slot(ancestry)
                next_slot[first_slot] = last_slot
            next_slots_of_tiers.append(next_slot)
        return next_slots_of_tiers

    def _n_tiers_above(self, tier: Element) -> int:
        """Count the tiers above a tier, up to `MAX_ABOVE`; a circle of tiers is counted once."""
        names_above = set[str]()
        name = tier.get("PARENT_REF", "")
        while name in self._tier_of_name and name not in names_above and len(names_above) < MAX_ABOVE:
            names_above.add(name)
            name = self._tier_of_name[name].get("PARENT_REF", "")
        return len(names_above)

    def _ancestry(self, node: Element) -> list[Element]:
        """List an annotation, its parent, and so on up to the annotation that names time slots.

        Annotations that refer to each other in a circle are listed once each.

        Raises
        ------
        ManifestError
            The chain is longer than any tool writes.
        """
        ancestry = dict[Element, None]()  # a dict, to find an element at once
        while node not in ancestry:
            ancestry[node] = None
            if len(ancestry) > MAX_ABOVE:
                raise self._file.error(f"more than {MAX_ABOVE} annotations refer to each other in a chain")
            # An annotation without a parent is taken as its own parent, which ends the loop.
            node, _ = self._nodes.get(node.get("ANNOTATION_REF", ""), (node, node))
        return list(ancestry)

    def _first_and_last_slot(self, ancestry: Sequence[Element]) -> tuple[str, str]:
        """Return the slots where an annotation begins and ends.

        They are the slots that the topmost annotation names, unless a subdivision has a nearer border:

            a1  |-----------------------|      slots ts1 and ts2
            a2  |-----|                        subdivides a1: from ts1 to the slot behind a2
            a3        |-----------------|      follows a2: from the slot behind a2 to ts2
            a4        |-----|                  subdivides a3: from the slot behind a2 to the slot behind a4

        Parameters
        ----------
        ancestry
            The annotation and those above it, from `_ancestry`.
        """
        first_slot = ancestry[-1].get("TIME_SLOT_REF1", "")
        last_slot = ancestry[-1].get("TIME_SLOT_REF2", "")
        for node in ancestry:
            previous_id = node.get("PREVIOUS_ANNOTATION")
            if previous_id:
                first_slot = _slot_behind(previous_id)
                break
        for node in ancestry:
            annotation_id = node.get("ANNOTATION_ID", "")
            if annotation_id in self._continued_ids:
                last_slot = _slot_behind(annotation_id)
                break
        return first_slot, last_slot

    def _spread_times(self, next_slots_of_tiers: Sequence[Mapping[str, str]]) -> None:
        """Give times to slots without one, evenly spread between two slots with times, as ELAN does.

        Between slots at 10 and 40 s, two slots without times get 20 and 30 s. All tiers are gone through
        until no slot gets a time any more, as the times of a tier may only be known after those of a later
        tier.

        Parameters
        ----------
        next_slots_of_tiers
            For each tier: first slot of an annotation -> its last slot (`_next_slots_of_tiers`).

        Raises
        ------
        ManifestError
            It takes more than `MAX_STEPS` steps for each slot and annotation, as very many tiers have to be
            gone through very often.
        """
        n_steps = 0
        max_steps = MAX_STEPS * (len(self._time_of_slot) + len(self._nodes))
        n_with_time = self._n_slots_with_time()
        has_new_times = True
        while has_new_times and n_with_time < len(self._time_of_slot):
            for next_slots in next_slots_of_tiers:
                timed_slots = [slot for slot in next_slots if isinstance(self._time_of_slot.get(slot), int)]
                for slot in timed_slots:
                    n_steps += self._spread_times_from(slot, next_slots)
                    if n_steps > max_steps:
                        raise self._file.error("time slots without times are entangled: save it in ELAN")
            n_before = n_with_time
            n_with_time = self._n_slots_with_time()
            has_new_times = n_with_time > n_before

    def _n_slots_with_time(self) -> int:
        """Count the slots that have a time."""
        return sum(isinstance(time, int) for time in self._time_of_slot.values())

    def _spread_times_from(self, first_slot: str, next_slots: Mapping[str, str]) -> int:
        """Give times to the slots between a slot with a time and the tier's next slot with a time.

        If the slots end at one without a time that can be read, none gets one.

        Parameters
        ----------
        first_slot
            The slot with a time.
        next_slots
            First slot -> last slot of each annotation of the tier.

        Returns
        -------
        steps : int
            How many slots were visited.
        """
        inner_slots = self._slots_without_time(next_slots[first_slot], next_slots)
        slot_before_last = inner_slots[-1] if inner_slots else first_slot
        last_slot = next_slots[slot_before_last]
        start_ms = self._time_of_slot[first_slot]
        end_ms = self._time_of_slot.get(last_slot)  # a text or None if it has no time
        if isinstance(start_ms, int) and isinstance(end_ms, int):
            step_ms = (end_ms - start_ms) / (len(inner_slots) + 1)
            for n, inner_slot in enumerate(inner_slots, start=1):
                self._time_of_slot[inner_slot] = int(start_ms + n * step_ms)
        return 1 + len(inner_slots)

    def _slots_without_time(self, slot: str, next_slots: Mapping[str, str]) -> list[str]:
        """Return the slots without a time that follow each other from a slot on, which may have a time.

        They end before a slot with a time or a text that is no time, before the last slot of the tier, and
        before a slot that was there already, if annotations form a circle.
        """
        inner_slots = dict[str, None]()  # a dict, to find a slot at once
        while self._time_of_slot.get(slot) == "" and slot in next_slots and slot not in inner_slots:
            inner_slots[slot] = None
            slot = next_slots[slot]
        return list(inner_slots)


def _slot_behind(annotation_id: str) -> str:
    """Name the slot that an annotation shares with the one that continues it; the document names none."""
    return f"after {annotation_id}"


def _origin_ms(file: SpanFile, media: Element | None) -> int:
    """Return the offset of the film's media in milliseconds, which is added to all times."""
    origin = "" if media is None else (media.get("TIME_ORIGIN") or "").strip()
    if not re.fullmatch(r"(?:-?[0-9]{1,12})?", origin):
        raise file.error(f"TIME_ORIGIN {origin!r} of its media is no number of milliseconds")
    origin_ms = int(origin or 0)
    if origin_ms:
        file.account.note(f"times moved by the media's offset (TIME_ORIGIN), {origin_ms} ms")
    return origin_ms


def _time_slots(file: SpanFile, root: Element) -> dict[str, int | str]:
    """Return time slot -> its time in milliseconds; "" if it has none, or its text if that is no time.

    Raises
    ------
    ManifestError
        A slot is there twice.
    """
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
    """Refuse a document in which an annotation refers to an id that several annotations have."""
    n_of_id = Counter(node.get("ANNOTATION_ID", "") for node in nodes)
    ids_referred_to = {node.get(name, "") for node in nodes for name in REFERENCES}
    ids_referred_to.discard("")  # of annotations that refer to none
    unclear_ids = []
    for annotation_id, n_annotations in n_of_id.items():
        if n_annotations > 1 and annotation_id in ids_referred_to:
            unclear_ids.append(annotation_id)
    if unclear_ids:
        first_id = unclear_ids[0]
        problem = f"{first_id!r} is the id of {n_of_id[first_id]} annotations, and others refer to it"
        raise file.error(f"{problem} ({len(unclear_ids)} such): which they mean cannot be known")


def _first_annotator(*tiers: Element) -> str:
    """Return the annotator of the first of these tiers that is signed; "" if none is."""
    for tier in tiers:
        annotator = _annotator(tier)
        if annotator:
            return annotator
    return ""


def _other_signature(tier: Element, annotator: str) -> str:
    """Return a note if a tier is signed by somebody else than the annotator of its annotations; else "".

    A tier is signed by its attribute, or behind an @ in its name.
    """
    name = tier.get("TIER_ID", "")
    _, _, name_end = name.partition("@")
    for signature in (_annotator(tier), composed(name_end.strip())):
        if signature not in {"", annotator}:
            return (
                f"tier {name!r} is signed {signature}, it or the tier above it {annotator}: "
                f"taken as {annotator}'s"
            )
    return ""


def _annotator(tier: Element) -> str:
    """Return who signed a tier: its attribute `ANNOTATOR`, else the text behind an @ in its name."""
    attribute = tier.get("ANNOTATOR", "").strip()
    _, _, name_end = tier.get("TIER_ID", "").partition("@")
    return composed(attribute or name_end.strip())
