"""Make clips of the spans of other tools' files, by the roles of their tiers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.importers.imported import ClipIds, consumed, slug
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.perception import unperceived
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.spans.answers import Answered
from obygaze_features.manifest.spans.eaf import DECIDED_ON, DECISION
from obygaze_features.manifest.spans.instant import is_short
from obygaze_features.manifest.spans.label_words import LabelWords
from obygaze_features.manifest.spans.names import name_hint, plain
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.roles import CONCEPTS, LABELS, LEFT, LEVELS, TEXT, TierRoles
from obygaze_features.manifest.spans.sources import SOURCES, SpanSource
from obygaze_features.manifest.spans.span_file import SpanFile
from obygaze_features.manifest.spans.tier_names import (
    CONCEPT_TIER,
    HOW,
    LEVEL_TIER,
    PeopleTier,
    is_of_a_model,
    key_among,
    seen_score_of,
    tier_key,
)
from obygaze_features.manifest.text_tables import DEFINITION, SEEN_SCORE, counted, placed
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
"""How often each level and concept of a file may be looked at to find those that belong together."""

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


class ToolSpans:
    """Makes clips of the spans of other tools' files, and remembers the spans of the files it has read.

    A span that an earlier file says too is left out; two levels that contradict each other are refused.

    Parameters
    ----------
    films
        Names of the films, and where they lie.
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
        self._ids = ids
        # Span and its labels -> the clip that had them first, with its file and its place there.
        self._first_clips: dict[tuple[object, ...], tuple[Clip, SpanFile, str]] = {}

    def clips(self, file: SpanFile, records: Iterable[RawSpan]) -> Iterator[tuple[Clip, str]]:
        """Yield the clips of a file, each with its place in the file; note what is doubtful or left out."""
        read = self._records_to_read(file, records)
        is_model_in_sight = any(_is_of_a_model(span) for span in read)
        if is_model_in_sight:
            file.account.is_beside_model = True
        marked = self._marked_spans(file, consumed(read))
        has_text = any(mark.text for mark in marked)
        has_tier = bool(file.reading.tiers)
        for number, mark in enumerate(consumed(marked), start=1):
            extras = _extras(mark, has_text=has_text, has_tier=has_tier, in_sight=is_model_in_sight)
            clip = self._clip(file, mark, number, extras)
            reason = self._repetition(file, mark, clip)
            if reason:
                file.account.leave(mark.raw.where, reason)
            else:
                yield clip, mark.raw.where

    def _marked_spans(self, file: SpanFile, records: Iterable[RawSpan]) -> list[MarkedSpan]:
        """Return the spans of a file with their levels, texts and concepts; note what is doubtful in them."""
        spans = _without_short_or_model_spans(file.account, file.account.spans(records))
        spans = self._without_unperceived_concepts(file, spans)
        marked, concepts = self._divide_by_role(file, spans)
        answers = [span for span in spans if isinstance(span, Answered)]
        file.account.note(*_doubtful_questions(answers, self._words))
        marked += self._add_concepts_to_levels(file, marked, concepts)
        self._note_unknown_texts(file, marked)
        return marked

    def _records_to_read(self, file: SpanFile, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Return the records that are imported: those that hold labels, and of some tools the texts too."""
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
            if self._role(source, record) in {TEXT, LEFT}:
                n_left[record.tier] += record.n_records
                continue
            if record.refusal:
                raise file.error(record.refusal)
            file.account.note(record.note)
            labelled_records.append(record)
        file.account.note(*_left_tiers(n_left))
        return labelled_records

    def _without_columns_of_texts(self, file: SpanFile, records: Sequence[RawSpan]) -> list[RawSpan]:
        """Leave out the columns that a person added to a tool's own and that hold no labels; name them.

        The tier of a record is the column that it comes from.
        """
        source = SOURCES[file.account.kind]
        of_added_columns = [record for record in records if record.is_beside]
        text_columns = {
            record.tier for record in of_added_columns if self._role(source, record) in {TEXT, LEFT}
        }
        file.account.unread("column", sorted(text_columns))
        return [record for record in records if not record.is_beside or record.tier not in text_columns]

    def _without_unperceived_concepts(self, file: SpanFile, spans: Sequence[RawSpan]) -> list[RawSpan]:
        """Take the concepts that a machine cannot perceive out of its answers, such as sounds without sound.

        How many such answers there are, and why they do not count, is noted in the file's account.
        """
        codebook = self._words.codebook
        names = spellings_of(codebook.concepts)
        n_answers: Counter[str] = Counter()
        perceivable = []
        counted_places = set[str]()
        unperceived_by: dict[tuple[str, ...], dict[str, str]] = {}  # few machines answer of many clips
        for span in spans:
            if not isinstance(span, Answered):
                perceivable.append(span)
                continue
            if span.perceives not in unperceived_by:
                unperceived_by[span.perceives] = unperceived(codebook, span.perceives)
            absent = unperceived_by[span.perceives]
            if span.where not in counted_places:
                counted_places.add(span.where)
                asked_of = [names.get(plain(name), "") for name in span.of("concept")]
                n_answers.update(absent[name] for name in asked_of if name in absent)
            if span.role == CONCEPTS and span.text:
                marked = [name for name in span.text.split(";") if names.get(plain(name)) not in absent]
                span = replace(span, text=";".join(marked))  # noqa: PLW2901
            perceivable.append(span)
        if n_answers:
            reasons = [f"{reason} ({counted(n, 'answer')})" for reason, n in n_answers.items()]
            file.account.note(f"answers that do not count: {'; '.join(reasons)}")
        return perceivable

    def _role(self, source: SpanSource, record: RawSpan) -> str:
        """Return what the tier of a record holds, such as levels, concepts or texts."""
        return self._roles.role_of(record, source.tier, is_said=source.is_said)

    def _divide_by_role(
        self, file: SpanFile, spans: Sequence[RawSpan]
    ) -> tuple[list[MarkedSpan], list[RawSpan]]:
        """Divide spans by the role of their tiers; leave out those of tiers that are not imported.

        Returns
        -------
        list of MarkedSpan
            The spans of levels and of texts, with the concepts that are written beside a level.
        list of RawSpan
            The spans of concepts, whose levels are other spans.
        """
        account = file.account
        words = self._words
        source = SOURCES[account.kind]
        is_of_machines = account.kind == ANSWERS
        marked: list[MarkedSpan] = []
        concepts: list[RawSpan] = []
        ambiguous_texts = set[str]()
        for span in spans:
            role = self._role(source, span)
            labels = words.labels_of(span.text) if role == LABELS or is_of_machines else None
            if role == LEFT:
                account.leave(span.where, f"on tier {span.tier or source.tier!r}, which --tier does not name")
            elif role == LEVELS and is_of_machines and not (labels and labels.level):
                account.leave(
                    span.where, f"{span.text!r:.40} is no level of codebook {words.codebook.name!r}"
                )
            elif role == LEVELS:
                marked.append(MarkedSpan(span, self._movie(file, span), level=span.text))
            elif role == CONCEPTS or (labels and not labels.level):
                concepts.append(span)
            elif labels:
                if labels.level in words.twins:
                    ambiguous_texts.add(span.text)
                movie = self._movie(file, span)
                marked.append(MarkedSpan(span, movie, labels.level, concepts=list(labels.concepts)))
            else:
                marked.append(MarkedSpan(span, self._movie(file, span), text=span.text))
        for text in sorted(ambiguous_texts):
            account.note(f"{text!r} is a level and a concept, read as the level: give --tier")
        return marked, concepts

    def _movie(self, file: SpanFile, span: RawSpan) -> str:
        """Return the name of a span's film, by its film or media column, or by its file."""
        return self._films.of_span(file, span.cells.get("movie", ""), span.cells.get("media", ""))

    def _add_concepts_to_levels(
        self, file: SpanFile, marked: Sequence[MarkedSpan], concepts: Sequence[RawSpan]
    ) -> list[MarkedSpan]:
        """Add concepts to the spans of their levels, and return those without a level, as spans of their own.

        The level of a concept is the span that it names as its parent, else the spans of levels with the same
        film, times and annotator.

        Parameters
        ----------
        file
            The file that the spans are from.
        marked
            Spans of levels and texts, whose concepts are extended.
        concepts
            Spans of concepts.
        """
        if not concepts:
            return []
        levels = [mark for mark in marked if mark.level]
        level_of_id = {mark.raw.span_id: mark for mark in levels if mark.raw.span_id}
        levels_of_span: dict[tuple[object, ...], list[MarkedSpan]] = {}
        for mark in levels:
            levels_of_span.setdefault(self._key_of_span(mark.raw, mark.movie), []).append(mark)
        without_level = []
        names_of_concepts = [self._words.codebook.split_concepts(span.text) for span in concepts]
        n_labels = len(levels) + sum(map(len, names_of_concepts))
        n_additions = 0
        for span, names in zip(concepts, names_of_concepts, strict=True):
            movie = self._movie(file, span)
            owners = [level_of_id[span_id] for span_id in span.parent_ids if span_id in level_of_id]
            if not owners:
                same_span = levels_of_span.get(self._key_of_span(span, movie), [])
                n_additions += len(same_span)
                owners = [mark for mark in same_span if _can_be_one_span(mark.raw, span)]
            n_additions += len(owners) * len(names)
            if n_additions > MOST_ADDITIONS * n_labels:
                raise file.error(
                    f"{span.where}: very many levels and concepts have its times and annotator: which belong "
                    "together is unclear"
                )
            for owner in owners:
                owner.concepts += names
            if owners:
                file.account.used += 1
            else:
                without_level.append(MarkedSpan(span, movie, concepts=list(names)))
        if without_level and levels:
            what = counted(len(without_level), "span")
            file.account.note(
                f"{what} of concepts without a level of their times, annotator and subject "
                f"(the first: {without_level[0].raw.where}): clips of their own, without a level"
            )
        return without_level

    def _key_of_span(self, span: RawSpan, movie: str) -> tuple[object, ...]:
        """Return a key that the span of a concept shares with that of its level: film, annotator, times."""
        annotator = _annotator_of(span, self._annotator)
        people_tier = PeopleTier.of(span.tier)
        how = people_tier.how if people_tier else ""
        return movie, annotator, how, round(span.start_s, 3), round(span.end_s, 3)

    def _note_unknown_texts(self, file: SpanFile, marked: Iterable[MarkedSpan]) -> None:
        """Note the texts that are no labels of the codebook, unless the file holds subtitles or the like."""
        if SOURCES[file.account.kind].is_said:
            return
        words = self._words
        texts_marked = [mark.text for mark in marked if mark.text]
        unknown = Counter(text for text in texts_marked if words.labels_of(text) is None)
        if unknown:
            texts = first_few([f"{text!r:.100} ({n})" for text, n in unknown.most_common()], 3)
            what = f"{counted(unknown.total(), 'text')} not of codebook {words.codebook.name!r}"
            file.account.note(f"{what} ({texts})")

    def _clip(self, file: SpanFile, marked: MarkedSpan, number: int, extras: dict[str, str]) -> Clip:
        """Make a clip of a span and its labels.

        Parameters
        ----------
        file
            The file that the span is from.
        marked
            The span and its labels.
        number
            Number of the span in its file, for the clip's id.
        extras
            Cells of the clip's extra columns.

        Raises
        ------
        ManifestError
            The file is of a tool that names annotators, and this span has none; or a label is unknown.
        """
        raw = marked.raw
        codebook = self._words.codebook
        annotator = _annotator_of(raw, self._annotator)
        if not annotator and SOURCES[file.account.kind].is_signed:
            remedy = "set the tier's annotator in ELAN" if file.account.kind == "eaf" else "name its model"
            raise file.error(f"{raw.where}: nobody's: {remedy}, or give --annotator")
        stem = slug(marked.movie)
        if annotator:
            stem += f"-{slug(annotator)}"
        with placed(f"{file.path}: {raw.where}"):
            return Clip(
                clip_id=raw.cells.get("clip_id") or self._ids.new(stem, number),
                movie=marked.movie,
                video=self._films.files.film_of(raw.cells.get("media", "") or marked.movie),
                start_s=None if raw.is_whole_file else raw.start_s,
                end_s=None if raw.is_whole_file else raw.end_s,
                level=codebook.level_spelled(marked.level) if marked.level else None,
                concepts=tuple(codebook.concept_spelled(name) for name in marked.concepts),
                annotator=annotator,
                extras=extras,
            )

    def _repetition(self, file: SpanFile, marked: MarkedSpan, clip: Clip) -> str:
        """Return why a clip is left out, as an earlier one says the same; "" for a clip that is new.

        Raises
        ------
        ManifestError
            An earlier clip of the same times and annotator has other labels.
        """
        if marked.level:
            # A span has one level: a second one is a repetition, or a contradiction.
            statement: tuple[object, ...] = ("level",)
        else:
            # A span may have many concepts and texts: only the same ones are a repetition.
            concepts = frozenset(clip.concepts) if clip.concepts else NO_CONCEPTS
            statement = (clip.level, concepts, clip.extras.get("text", ""))
        decided = [clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON, DECISION)]
        key = (*span_of(clip), *decided, *statement)
        where = marked.raw.where
        first, first_file, first_where = self._first_clips.setdefault(key, (clip, file, where))
        is_first = first is clip
        is_text_of_same_file = first_file is file and not marked.level
        if is_first or is_text_of_same_file or marked.raw.cells.get("clip_id"):
            return ""
        earlier = f"{first_where} of {first_file.path.name}"
        if first.level != clip.level or set(first.concepts) != set(clip.concepts):
            raise file.error(
                f"{where}: {_written_labels(clip)} where {earlier}, of its times and annotator, says "
                f"{_written_labels(first)}: keep one; tiers of different people are imported apart, "
                "with --tier and --annotator"
            )
        different = [name for name, cell in clip.extras.items() if cell != first.extras.get(name, "")]
        if different:
            return f"the same as {earlier} but for {', '.join(different)}"
        return f"the same as {earlier}"


def span_of(clip: Clip) -> tuple[object, ...]:
    """Return what two clips have in common when they are one annotator's labels of the same span.

    The span is the times in the film, or the id of a clip without times, which is a whole file. The key also
    holds the subject and the observation, as labels of two people who are seen at one time are apart.
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
    kept = []
    for span in spans:
        if is_short(span.start_s, span.end_s):
            account.leave(span.where, "shorter than a frame")
        elif _is_of_a_model(span):
            account.leave(span.where, "of a model, no label")
        else:
            kept.append(span)
    return kept


def _extras(marked: MarkedSpan, *, has_text: bool, has_tier: bool, in_sight: bool) -> dict[str, str]:
    """Return the cells of a span's extra columns.

    Parameters
    ----------
    marked
        The span, and what is marked on it.
    has_text
        Whether some span of the file holds a text, so that all of them have that column.
    has_tier
        Whether the person named tiers, so that each span says its own.
    in_sight
        Whether the file holds what a model wrote, which the annotator saw while labelling.
    """
    extras = {}
    if has_text:
        extras["text"] = marked.text
    cells = marked.raw.cells
    for name in EXTRA_COLUMNS:
        if cells.get(name):
            extras[name] = cells[name]
    if marked.raw.tier and (marked.text or has_tier):
        extras["tier"] = marked.raw.tier
    people = PeopleTier.of(marked.raw.tier)
    if people and people.how:
        extras[HOW] = people.how
    declared = seen_score_of(marked.raw.tier)
    if declared or in_sight:
        extras[SEEN_SCORE] = declared or "1"
    return extras


def _can_be_one_span(span: RawSpan, other: RawSpan) -> bool:
    """Return whether two spans of the same times are of one subject and sitting, as far as they say it."""
    for name in APART:
        cell = span.cells.get(name)
        other_cell = other.cells.get(name)
        if cell and other_cell and cell != other_cell:
            return False
    return True


def _annotator_of(span: RawSpan, default: str) -> str:
    """Return a span's annotator: by its column, by its tier's name behind `@`, the default, or its model."""
    behind_at = span.tier.partition("@")[2]
    for name in (span.cells.get("annotator", ""), behind_at, default, span.cells.get("model", "")):
        if name.strip():
            return composed(name.strip())
    return ""


def _written_labels(clip: Clip) -> str:
    """Write a clip's level and concepts with semicolons between them."""
    labels = list(clip.concepts)
    if clip.level:
        labels.insert(0, clip.level)
    return ";".join(labels)


def _absent_tiers(file: SpanFile, records: Iterable[RawSpan]) -> list[str]:
    """Return a line for each tier that the person names and that the file does not have."""
    if file.account.kind == "eaf":
        return []  # the reader of ELAN's documents refuses such names itself
    source = SOURCES[file.account.kind]
    present = dict.fromkeys(record.tier or source.tier for record in records if not record.role)
    if not present:
        return []
    named = {tier_key(name): name for name in file.reading.tiers}
    absent = named.keys() - {key_among(tier, named) for tier in present}
    absent_names = [named[key] for key in sorted(absent)]
    return [f"no tier {name!r} is there{name_hint(name, present)}" for name in absent_names]


def _left_tiers(n_left: Counter[str]) -> Iterator[str]:
    """Yield a line on the tiers of texts that are left out, and one on each that may be a misspelled tier.

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
    """Yield lines on questions to a machine that the codebook does not have, and concepts never asked of.

    A question is `level:NAME` or `concept:NAME`.
    """
    codebook = words.codebook
    labels = {"level": spellings_of(codebook.levels), "concept": spellings_of(codebook.concepts)}
    questions = sorted({question for answer in answers for question in answer.answers})
    unknown = []
    asked_concepts = set()
    for question in questions:
        kind, _, name = question.partition(":")
        label = labels[kind].get(plain(name))
        if label is None:
            unknown.append(f"{kind}:{name}")
        if kind == "concept":
            asked_concepts.add(label)
    if unknown:
        what = counted(len(unknown), "question")
        yield f"{what} not of codebook {codebook.name!r} ({first_few(unknown, 3)})"
    if not asked_concepts:
        return
    perceives = sorted({name for answer in answers for name in answer.perceives})
    reason_of = unperceived(codebook, perceives)
    not_asked = [name for name in codebook.concept_names if name not in asked_concepts]
    perceivable = [name for name in not_asked if name not in reason_of]
    reasons = [reason_of[name] for name in not_asked if name in reason_of]
    if perceivable:
        what = counted(len(perceivable), "concept")
        yield f"nothing asked of {what} ({first_few(perceivable, 3)}), marked on no clip"
    if reasons:
        yield f"absent, not asked: {counted(len(reasons), 'concept')} ({'; '.join(reasons)})"
