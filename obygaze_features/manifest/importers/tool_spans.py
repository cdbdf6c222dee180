"""Make clips of the spans of other tools' files, by the roles of their tiers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple

from msgspec.structs import replace

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.importers.imported import ClipIds, consumed, slug
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.perception import unperceived
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.answers import Answered
from obygaze_features.manifest.spans.eaf import DECIDED_ON
from obygaze_features.manifest.spans.instant import is_short
from obygaze_features.manifest.spans.label_words import Labels, LabelWords
from obygaze_features.manifest.spans.names import name_hint, plain
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.roles import CONCEPTS, LABELS, LEVELS, NOT_READ, TEXT, TierRoles
from obygaze_features.manifest.spans.sources import SOURCES, SpanSource
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import (
    CONCEPT_TIER,
    DECISION,
    HOW,
    LEVEL_TIER,
    PeopleTier,
    is_of_a_model,
    matching_key,
    seen_score_of_tier,
    tier_key,
)
from obygaze_features.manifest.text_tables import DEFINITION, SEEN_SCORE, counted, error_context
from obygaze_features.text import composed, first_few

EXTRA_COLUMNS: Final = (
    SEEN_SCORE, DECIDED_ON, DECISION, DEFINITION, "subject", "observation", "modifiers", "comment",
    "model", "prompt", "answered_on", "perceives",
)  # fmt: skip
"""Columns of other tools' files that are kept; the last four say which machine answered what and when, and
what it perceives."""

APART: Final = ("subject", "observation")
"""Columns that keep two spans of the same times apart: who is seen, and the sitting of an annotator."""

MOST_ADDITIONS: Final = 50
"""How often, on average, each level and concept of a file may be looked at to find those that belong
together. More are needed only if very many spans have the same times and annotator."""

NO_CONCEPTS: Final = frozenset[str]()

ANSWERS: Final = "answers"
"""Name of the kind of files that hold the answers of machines."""


@dataclass(slots=True)
class MarkedSpan:
    """A span with the labels that are marked on it: a level or a text, and concepts."""

    raw: RawSpan
    movie: str
    level: str = ""
    text: str = ""
    concepts: list[str] = field(default_factory=list)


class _FirstClip(NamedTuple):
    """The clip that was the first to say something of a span, with its file and its place there."""

    clip: Clip
    file: SpanFile
    where: str


_UnperceivedBy = dict[tuple[str, ...], dict[str, str]]
"""Modalities that a model perceives -> concept that it cannot perceive -> the reason."""


class ToolSpans:
    """Makes clips of the spans of other tools' files, and remembers the spans of the files it has read.

    A span that an earlier file says too is left out; two levels that contradict each other are refused.

    Parameters
    ----------
    films
        Names of the films, and the places where files say that they are.
    words
        The words of labels that the codebook knows.
    roles
        What each tier holds: levels, concepts, both, or texts.
    annotator
        Who annotated, where a file does not say it.
    ids
        Makes the ids of clips, over all files.
    """

    def __init__(
        self, films: FilmNames, words: LabelWords, roles: TierRoles, annotator: str, ids: ClipIds
    ) -> None:
        self._films = films
        self._words = words
        self._roles = roles
        self._annotator = annotator
        self._ids = ids  # the clip ids that are taken
        self._first_clips: dict[tuple[object, ...], _FirstClip] = {}  # by `_key_of_repetition`

    def clips(self, file: SpanFile, records: Iterable[RawSpan]) -> Iterator[tuple[Clip, str]]:
        """Yield (clip, place in the file) for the clips of a file of another tool.

        What is doubtful or left out is noted in the file's account.
        """
        read_records = self._records_to_read(file, records)
        has_model_output = any(_is_of_a_model(span) for span in read_records)
        if has_model_output:
            file.account.shows_model_output = True
        marked = self._marked_spans(file, consumed(read_records))
        has_text = any(mark.text for mark in marked)
        has_tier = bool(file.reading.tiers)
        for number, mark in enumerate(consumed(marked), start=1):
            extras = _extras(mark, has_text=has_text, has_tier=has_tier, has_model_output=has_model_output)
            clip = self._clip(file, mark, number, extras)
            reason = self._why_repeated(file, mark, clip)
            if reason:
                file.account.leave_out(mark.raw.where, reason)
            else:
                yield clip, mark.raw.where

    def _marked_spans(self, file: SpanFile, records: Iterable[RawSpan]) -> list[MarkedSpan]:
        """Return the spans of a file with their levels, concepts and texts; doubts go to its account."""
        spans = _without_short_or_model_spans(file.account, file.account.spans(records))
        spans = self._without_unperceived_concepts(file, spans)
        marked, concepts = self._divide_by_role(file, spans)
        answers = [span for span in spans if isinstance(span, Answered)]
        file.account.note(*_doubtful_questions(answers, self._words))
        marked += self._add_concepts_to_levels(file, marked, concepts)
        self._note_unknown_texts(file, marked)
        return marked

    def _records_to_read(self, file: SpanFile, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Return the records to import: those of labels, and for some tools those of texts too."""
        records = list(records)
        file.account.note(*_absent_tiers(file, records))
        if SOURCES[file.account.kind].leaves_texts:
            return self._without_tiers_of_texts(file, records)
        return self._without_columns_of_texts(file, records)

    def _without_tiers_of_texts(self, file: SpanFile, records: Sequence[RawSpan]) -> list[RawSpan]:
        """Leave out the records of tiers that hold texts, and note how many there are.

        Raises
        ------
        ManifestError
            A tier of labels holds a record that cannot be read.
        """
        source = SOURCES[file.account.kind]
        labelled_records = []
        n_left: Counter[str] = Counter()
        for record in records:
            if self._role(source, record) in {TEXT, NOT_READ}:
                n_left[record.tier] += record.n_records
                continue
            if record.refusal:
                raise file.error(record.refusal)
            file.account.note(record.note)
            labelled_records.append(record)
        file.account.note(*_left_tiers(n_left))
        return labelled_records

    def _without_columns_of_texts(self, file: SpanFile, records: Sequence[RawSpan]) -> list[RawSpan]:
        """Leave out the records of columns that a person added to a tool's table, unless they hold labels.

        The tier of such a record is the column that it comes from. The columns that are left out are noted.
        """
        source = SOURCES[file.account.kind]
        added_records = [record for record in records if record.is_added_column]
        text_columns = {
            record.tier for record in added_records if self._role(source, record) in {TEXT, NOT_READ}
        }
        file.account.note_unread("column", sorted(text_columns))
        return [record for record in records if not record.is_added_column or record.tier not in text_columns]

    def _without_unperceived_concepts(self, file: SpanFile, spans: Sequence[RawSpan]) -> list[RawSpan]:
        """Remove the concepts that a model cannot perceive from its answers, such as sounds if it only sees.

        The number of such answers, and why they do not count, is noted in the file's account.
        """
        codebook = self._words.codebook
        name_of_spelling = spellings_of(codebook.concepts)
        answers = [span for span in spans if isinstance(span, Answered)]
        # Once for all answers of models that perceive the same: few models answer on many clips.
        unperceived_by: _UnperceivedBy = {}
        for answer in answers:
            if answer.perceives not in unperceived_by:
                unperceived_by[answer.perceives] = unperceived(codebook, answer.perceives)
        self._note_unperceived_answers(file, answers, unperceived_by)
        result: list[RawSpan] = []
        for span in spans:
            if isinstance(span, Answered) and span.role == CONCEPTS and span.text:
                impossible = unperceived_by[span.perceives]
                names = span.text.split(";")
                possible = [name for name in names if name_of_spelling.get(plain(name)) not in impossible]
                result.append(replace(span, text=";".join(possible)))
            else:
                result.append(span)
        return result

    def _note_unperceived_answers(
        self, file: SpanFile, answers: Sequence[Answered], unperceived_by: "_UnperceivedBy"
    ) -> None:
        """Note how many answers are on concepts that the model cannot perceive, with the reasons.

        What a model answers on one clip may be several spans, on its level and its concepts. They have the
        same place in the file (`where`) and all its questions, so that only the first of them is counted.
        """
        name_of_spelling = spellings_of(self._words.codebook.concepts)
        n_answers_of_reason: Counter[str] = Counter()
        counted_places = set[str]()
        for answer in answers:
            if answer.where in counted_places:
                continue
            counted_places.add(answer.where)
            reason_of = unperceived_by[answer.perceives]
            for spelling in answer.probabilities("concept"):  # spelling of a concept -> its probability
                name = name_of_spelling.get(plain(spelling), "")
                if name in reason_of:
                    n_answers_of_reason[reason_of[name]] += 1
        if n_answers_of_reason:
            reasons = [f"{reason} ({counted(n, 'answer')})" for reason, n in n_answers_of_reason.items()]
            file.account.note(f"answers that do not count: {'; '.join(reasons)}")

    def _role(self, source: SpanSource, record: RawSpan) -> str:
        """Return what the tier of a record holds, such as levels, concepts or texts."""
        return self._roles.role_of(record, source.tier, is_said=source.is_said)

    def _divide_by_role(
        self, file: SpanFile, spans: Sequence[RawSpan]
    ) -> tuple[list[MarkedSpan], list[RawSpan]]:
        """Divide spans by the role of their tier: levels, concepts, labels of both, or texts.

        In a tier of labels, and in a model's answers, the codebook tells what a text is. Spans of tiers that
        are not imported, and a model's answers that should be a level and are none, are left out.

        Returns
        -------
        list of MarkedSpan
            The spans of levels and of texts. A level's text may hold concepts besides the level.
        list of RawSpan
            The spans of concepts alone. Their levels are other spans.
        """
        account = file.account
        source = SOURCES[account.kind]
        codebook = self._words.codebook
        marked: list[MarkedSpan] = []
        concepts: list[RawSpan] = []
        ambiguous_texts = set[str]()
        for span in spans:
            role = self._role(source, span)
            labels = self._labels_of(file, span, role)
            level = labels.level if labels is not None else ""
            if role == NOT_READ:
                tier = span.tier or source.tier
                account.leave_out(span.where, f"on tier {tier!r}, which --tier does not name")
            elif role == CONCEPTS:
                concepts.append(span)
            elif role == LEVELS and account.kind == ANSWERS and not level:
                account.leave_out(span.where, f"{span.text!r:.40} is no level of codebook {codebook.name!r}")
            elif role == LEVELS:
                marked.append(MarkedSpan(span, self._movie(file, span), level=span.text))
            elif labels is None:
                marked.append(MarkedSpan(span, self._movie(file, span), text=span.text))
            elif not level:
                concepts.append(span)
            else:
                if level in self._words.ambiguous_levels:
                    ambiguous_texts.add(span.text)
                movie = self._movie(file, span)
                marked.append(MarkedSpan(span, movie, level, concepts=list(labels.concepts)))
        for text in sorted(ambiguous_texts):
            account.note(f"{text!r} is a level and a concept, read as the level: give --tier")
        return marked, concepts

    def _labels_of(self, file: SpanFile, span: RawSpan, role: str) -> Labels | None:
        """Return the level and concepts that a span's text holds; None if it is no label of the codebook.

        They are looked for in tiers of labels and in a model's answers, and are None elsewhere.
        """
        if role == LABELS or file.account.kind == ANSWERS:
            return self._words.labels_of(span.text)
        return None

    def _movie(self, file: SpanFile, span: RawSpan) -> str:
        """Return the name of a span's film, by its film or media column, or by its file."""
        return self._films.of_span(file, span.cells.get("movie", ""), span.cells.get("media", ""))

    def _add_concepts_to_levels(
        self, file: SpanFile, marked: Sequence[MarkedSpan], concepts: Sequence[RawSpan]
    ) -> list[MarkedSpan]:
        """Add the spans of concepts to the spans of their levels.

        A span of concepts belongs to the span of a level that it names as its parent, else to those with the
        same film, times and annotator.

        Parameters
        ----------
        file
            The file that the spans are from.
        marked
            Spans of levels and texts. Concepts are added to them in place.
        concepts
            Spans of concepts.

        Returns
        -------
        The spans of concepts that belong to no level.

        Raises
        ------
        ManifestError
            Very many spans have the same times and annotator.
        """
        if not concepts:
            return []
        levels = [mark for mark in marked if mark.level]
        level_of_id = {mark.raw.span_id: mark for mark in levels if mark.raw.span_id}
        levels_of_span: dict[tuple[object, ...], list[MarkedSpan]] = {}
        for mark in levels:
            levels_of_span.setdefault(self._key_of_span(mark.raw, mark.movie), []).append(mark)
        names_of_spans = [self._words.codebook.split_concepts(span.text) for span in concepts]
        n_labels = len(levels) + sum(map(len, names_of_spans))
        most_steps = MOST_ADDITIONS * n_labels
        n_steps = 0  # levels that were looked at, and concepts that were added to one
        without_level = []
        for span, names in zip(concepts, names_of_spans, strict=True):
            movie = self._movie(file, span)
            owners = [level_of_id[span_id] for span_id in span.parent_ids if span_id in level_of_id]
            if not owners:
                same_span = levels_of_span.get(self._key_of_span(span, movie), [])
                owners = [mark for mark in same_span if _can_be_one_span(mark.raw, span)]
                n_steps += len(same_span)
            n_steps += len(owners) * len(names)
            if n_steps > most_steps:
                raise file.error(
                    f"{span.where}: very many levels and concepts have its times and annotator: which belong "
                    "together is unclear"
                )
            if not owners:
                without_level.append(MarkedSpan(span, movie, concepts=list(names)))
                continue
            for owner in owners:
                owner.concepts += names
            file.account.used += 1  # the span is in a clip, though in none of its own
        if without_level and levels:
            what = counted(len(without_level), "span")
            file.account.note(
                f"{what} of concepts without a level of their times, annotator and subject "
                f"(the first: {without_level[0].raw.where}): clips of their own, without a level"
            )
        return without_level

    def _key_of_span(self, span: RawSpan, movie: str) -> tuple[object, ...]:
        """Return the key by which the span of a concept finds that of its level.

        It is the film, the annotator, how the tier says that the span was judged (such as blind), and the
        times, rounded to milliseconds.
        """
        annotator = _annotator_of(span, self._annotator)
        people_tier = PeopleTier.parse(span.tier)
        how_judged = people_tier.how if people_tier else ""
        return movie, annotator, how_judged, round(span.start_s, 3), round(span.end_s, 3)

    def _note_unknown_texts(self, file: SpanFile, marked: Iterable[MarkedSpan]) -> None:
        """Note the texts that are no labels of the codebook, unless the file holds speech (subtitles)."""
        if SOURCES[file.account.kind].is_said:
            return
        words = self._words
        texts_marked = [mark.text for mark in marked if mark.text]
        unknown = Counter(text for text in texts_marked if words.labels_of(text) is None)
        if unknown:
            texts = first_few([f"{text!r:.100} ({n})" for text, n in unknown.most_common()], 3)
            what = f"{counted(unknown.total(), 'text')} not of codebook {words.codebook.name!r}"
            file.account.note(f"{what} ({texts})")

    def _clip(self, file: SpanFile, mark: MarkedSpan, number: int, extras: dict[str, str]) -> Clip:
        """Make a clip of a span and its labels.

        Parameters
        ----------
        file
            The file that the span is from.
        mark
            The span and its labels.
        number
            Number of the span in its file, for the clip's id.
        extras
            Cells of the clip's extra columns.

        Raises
        ------
        ManifestError
            The span has no annotator in a file of a tool that names annotators, or a label is unknown.
        """
        raw = mark.raw
        codebook = self._words.codebook
        annotator = _annotator_of(raw, self._annotator)
        if not annotator and SOURCES[file.account.kind].is_signed:
            remedy = "set the tier's annotator in ELAN" if file.account.kind == "eaf" else "name its model"
            raise file.error(f"{raw.where}: nobody's: {remedy}, or give --annotator")
        stem = slug(mark.movie)
        if annotator:
            stem += f"-{slug(annotator)}"
        with error_context(f"{file.path}: {raw.where}"):
            return Clip(
                clip_id=raw.cells.get("clip_id") or self._ids.new(stem, number),
                movie=mark.movie,
                video=self._films.files.stored_path_of_movie(raw.cells.get("media", "") or mark.movie),
                start_s=None if raw.is_whole_file else raw.start_s,
                end_s=None if raw.is_whole_file else raw.end_s,
                level=codebook.level_spelled(mark.level) if mark.level else None,
                concepts=tuple(codebook.concept_spelled(name) for name in mark.concepts),
                annotator=annotator,
                extras=extras,
            )

    def _why_repeated(self, file: SpanFile, mark: MarkedSpan, clip: Clip) -> str:
        """Return why a clip is left out, if an earlier clip says the same of its span; "" for a new one.

        A new clip is remembered, to be compared with later ones. Clips with an id in their file are never
        left out.

        Raises
        ------
        ManifestError
            An earlier clip gives the span another level or other concepts.
        """
        where = mark.raw.where
        key = _key_of_repetition(clip, has_level=bool(mark.level))
        first = self._first_clips.setdefault(key, _FirstClip(clip, file, where))
        is_new = first.clip is clip
        is_text_of_same_file = first.file is file and not mark.level  # a text may be there twice
        has_id_in_file = bool(mark.raw.cells.get("clip_id"))
        if is_new or is_text_of_same_file or has_id_in_file:
            return ""
        earlier = f"{first.where} of {first.file.path.name}"
        has_other_concepts = set(first.clip.concepts) != set(clip.concepts)
        if first.clip.level != clip.level or has_other_concepts:
            raise file.error(
                f"{where}: {_written_labels(clip)} where {earlier}, of its times and annotator, says "
                f"{_written_labels(first.clip)}: keep one; tiers of different people are imported apart, "
                "with --tier and --annotator"
            )
        first_extras = first.clip.extras
        different = [name for name, cell in clip.extras.items() if cell != first_extras.get(name, "")]
        if different:
            return f"the same as {earlier} but for {', '.join(different)}"
        return f"the same as {earlier}"


def _key_of_repetition(clip: Clip, *, has_level: bool) -> tuple[object, ...]:
    """Return a key that two clips share if one of them repeats or contradicts the other.

    It has the film, annotator, times, subject and observation, and the kind of judgement: blind judgements,
    later decisions and the like may differ from others of the same span. A span has one level, so that clips
    with levels are compared whatever these are. A span may have several concepts and texts, so that only
    clips with the same ones are compared.

    Parameters
    ----------
    has_level
        Whether a level is marked on the span.
    """
    statement: tuple[object, ...] = ("level",)
    if not has_level:
        concepts = frozenset(clip.concepts) if clip.concepts else NO_CONCEPTS
        statement = (clip.level, concepts, clip.extras.get("text", ""))
    kind_of_judgement = [clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON, DECISION)]
    return (*key_of_annotated_span(clip), *kind_of_judgement, *statement)


def key_of_annotated_span(clip: Clip) -> tuple[object, ...]:
    """Return a key that is equal for two clips if one annotator labelled the same span in both.

    It holds the film, the annotator, and the times, or the id of a clip without times, which is a whole file.
    It also holds the subject and the observation, as two people who are seen at the same time are labelled
    separately.
    """
    if clip.start_s is None:
        span: tuple[object, ...] = (clip.clip_id,)
    else:
        span = (clip.start_s, clip.end_s)
    subject_and_observation = [clip.extras.get(name, "") for name in APART]
    return (clip.movie, clip.annotator, *span, *subject_and_observation)


def _is_of_a_model(span: RawSpan) -> bool:
    """Return whether a model wrote a span: its kind of file, the name of its tier or its text says so."""
    return span.is_of_model or is_of_a_model(span.tier) or is_of_a_model(span.text)


def _without_short_or_model_spans(account: Account, spans: Iterable[RawSpan]) -> list[RawSpan]:
    """Leave out the spans that are shorter than a frame, and those that a model wrote."""
    spans_of_people = []
    for span in spans:
        if is_short(span.start_s, span.end_s):
            account.leave_out(span.where, "shorter than a frame")
        elif _is_of_a_model(span):
            account.leave_out(span.where, "of a model, no label")
        else:
            spans_of_people.append(span)
    return spans_of_people


def _extras(mark: MarkedSpan, *, has_text: bool, has_tier: bool, has_model_output: bool) -> dict[str, str]:
    """Return the cells of a span's extra columns.

    Parameters
    ----------
    mark
        The span, with its labels and text.
    has_text
        Whether a span of the file has a text, so that all of them get the column `text`.
    has_tier
        Whether the person named tiers, so that all spans get the column `tier`.
    has_model_output
        Whether the file holds what a model wrote, so that the annotator saw it while labelling.
    """
    extras = {}
    if has_text:
        extras["text"] = mark.text
    cells = mark.raw.cells
    for name in EXTRA_COLUMNS:
        if cells.get(name):
            extras[name] = cells[name]
    if mark.raw.tier and (mark.text or has_tier):
        extras["tier"] = mark.raw.tier
    people_tier = PeopleTier.parse(mark.raw.tier)
    if people_tier and people_tier.how:
        extras[HOW] = people_tier.how  # blind, or in sight of the model's score
    seen_score = seen_score_of_tier(mark.raw.tier)
    if seen_score:
        extras[SEEN_SCORE] = seen_score
    elif has_model_output:
        extras[SEEN_SCORE] = "1"
    return extras


def _can_be_one_span(span: RawSpan, other: RawSpan) -> bool:
    """Return whether two spans of the same times may be of one subject and observation.

    They may be unless both name a subject, or an observation, and these differ.
    """
    for name in APART:
        cell = span.cells.get(name)
        other_cell = other.cells.get(name)
        if cell and other_cell and cell != other_cell:
            return False
    return True


def _annotator_of(span: RawSpan, default: str) -> str:
    """Return a span's annotator; "" if nothing names one.

    It is named by the cell `annotator`, else behind the `@` of the tier's name, else it is the default, else
    the model that gave the answer.
    """
    _, _, tier_annotator = span.tier.partition("@")
    for name in (span.cells.get("annotator", ""), tier_annotator, default, span.cells.get("model", "")):
        if name.strip():
            return composed(name.strip())
    return ""


def _written_labels(clip: Clip) -> str:
    """Write a clip's level and concepts, separated by semicolons."""
    labels = list(clip.concepts)
    if clip.level:
        labels.insert(0, clip.level)
    return ";".join(labels)


def _absent_tiers(file: SpanFile, records: Iterable[RawSpan]) -> list[str]:
    """Return a line for each tier that the person names and that the file does not have."""
    if file.account.kind == "eaf":
        return []  # the reader of ELAN's documents refuses such names itself
    source = SOURCES[file.account.kind]
    # A record with a role is read by it, whatever its tier.
    tiers = dict.fromkeys(record.tier or source.tier for record in records if not record.role)
    if not tiers:
        return []
    # Names are compared without case and blanks. A person may name a tier with its annotator or without.
    name_of_key = {tier_key(name): name for name in file.reading.tiers}
    keys_in_file = {matching_key(tier, name_of_key) for tier in tiers}
    absent_keys = name_of_key.keys() - keys_in_file
    absent_names = [name_of_key[key] for key in sorted(absent_keys)]
    return [f"no tier {name!r} is there{name_hint(name, tiers)}" for name in absent_names]


def _left_tiers(n_left: Counter[str]) -> Iterator[str]:
    """Yield a notice on the tiers of texts that are left out, and one on each whose name may be misspelled.

    Parameters
    ----------
    n_left
        Name of each tier that is left out -> its number of records.
    """
    if n_left:
        tiers = first_few([f"{name!r} ({n:,})" for name, n in n_left.items()], 4)
        what = f"left out {counted(len(n_left), 'tier')} of texts ({tiers})"
        yield f"{what}: --tier NAME=levels, or =concepts, reads one"
    for known in (LEVEL_TIER, CONCEPT_TIER):
        names = {tier_key(name): name for name in n_left}
        for key in get_close_matches(tier_key(known), names, n=1, cutoff=0.75):
            yield f"tier {names[key]!r} is not read: did you mean {known!r}?"


def _doubtful_questions(answers: Sequence[Answered], words: LabelWords) -> Iterator[str]:
    """Yield notices on a model's questions whose label the codebook does not have, and on missing questions.

    A question is `level:NAME` or `concept:NAME`. If a model was asked about any concept, the question on each
    concept of the codebook is missing that no clip has an answer to.
    """
    codebook = words.codebook
    label_of_spelling = {"level": spellings_of(codebook.levels), "concept": spellings_of(codebook.concepts)}
    questions = sorted({question for answer in answers for question in answer.answers})
    unknown_questions = []
    asked_concepts = set()
    is_asked_about_concepts = False
    for question in questions:
        kind, _, name = question.partition(":")
        label = label_of_spelling[kind].get(plain(name))
        if kind == "concept":
            is_asked_about_concepts = True
        if label is None:
            unknown_questions.append(question)
        elif kind == "concept":
            asked_concepts.add(label)
    if unknown_questions:
        what = counted(len(unknown_questions), "question")
        yield f"{what} not of codebook {codebook.name!r} ({first_few(unknown_questions, 3)})"
    if is_asked_about_concepts:
        missing = [name for name in codebook.concept_names if name not in asked_concepts]
        modalities = sorted({name for answer in answers for name in answer.perceives})
        yield from _notices_on_missing_questions(missing, unperceived(codebook, modalities))


def _notices_on_missing_questions(missing: Sequence[str], reason_of: Mapping[str, str]) -> Iterator[str]:
    """Yield notices on the concepts that a model was not asked about.

    Parameters
    ----------
    missing
        The concepts.
    reason_of
        Concept that the model cannot perceive, so that no question on it is expected -> the reason.
    """
    perceivable = [name for name in missing if name not in reason_of]
    reasons = [reason_of[name] for name in missing if name in reason_of]
    if perceivable:
        what = counted(len(perceivable), "concept")
        yield f"nothing asked of {what} ({first_few(perceivable, 3)}), marked on no clip"
    if reasons:
        yield f"absent, not asked: {counted(len(reasons), 'concept')} ({'; '.join(reasons)})"
