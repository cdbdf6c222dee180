"""Make clips of the spans of other tools' files, by the roles of their tiers."""

import shlex
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec.structs import replace

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
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
from obygaze_features.manifest.spans.names import name_hint
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.roles import (
    CONCEPTS,
    DECLARABLE,
    LABELS,
    LEVELS,
    NOT_READ,
    TEXT,
    TierRoles,
)
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
    tier_named_nearly,
    without_annotator,
)
from obygaze_features.manifest.text_tables import DEFINITION, SEEN_SCORE, counted, error_context
from obygaze_features.text import composed, first_few

EXTRA_COLUMNS: Final = (
    SEEN_SCORE, DECIDED_ON, DECISION, DEFINITION, "subject", "observation", "modifiers", "comment",
    "model", "prompt", "answered_on", "perceives",
)  # fmt: skip
"""Columns of other tools' files that are kept; the last four say which machine answered what and when, and
what it perceives."""

SUBJECT_COLUMNS: Final = ("subject", "observation")
"""Columns that keep two spans of the same times apart: who is seen, and the sitting of an annotator."""

DECIMALS_OF_SPANS: Final = 3
"""Decimals of the seconds by which spans are the same: many tools write milliseconds."""

MAX_ADDITIONS: Final = 50
"""How often, on average, each level and concept of a file may be looked at to find those that belong
together. More are needed only if very many spans have the same times and annotator."""

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


class _SpanKey(NamedTuple):
    """What the span of a level and a span of its concepts have in common.

    Attributes
    ----------
    movie
        Name of the film.
    annotator
        Who annotated; "" if nobody is named.
    how_judged
        How people judged, if the name of the tier says it (`PeopleTier.how`, such as `blind`); else "".
    start_s, end_s
        Times in seconds, rounded to milliseconds.
    """

    movie: str
    annotator: str
    how_judged: str
    start_s: float
    end_s: float

    @classmethod
    def of(cls, span: RawSpan, movie: str, default_annotator: str) -> "_SpanKey":
        """Return the key of a span of a film; its annotator is the default if the file names none."""
        people_tier = PeopleTier.parse(span.tier)
        return cls(
            movie=movie,
            annotator=_annotator_of(span, default_annotator),
            how_judged=people_tier.how if people_tier else "",
            start_s=round(span.start_s, DECIMALS_OF_SPANS),
            end_s=round(span.end_s, DECIMALS_OF_SPANS),
        )


class _LevelFinder:
    """Finds the levels of one file that a span of concepts belongs to.

    Parameters
    ----------
    levels
        The spans of levels.
    annotator
        Who annotated, where the file does not say it.

    Attributes
    ----------
    n_compared
        How many levels were compared with a span of concepts so far.
    """

    def __init__(self, levels: Iterable[MarkedSpan], annotator: str) -> None:
        """Index the spans of levels by their ids, and by their film, times and annotator.

        `annotator` is who annotated where the file does not say it.
        """
        self._annotator = annotator
        self._level_of_id: dict[str, MarkedSpan] = {}
        self._levels_of_key: dict[_SpanKey, list[MarkedSpan]] = {}
        for level in levels:
            if level.raw.span_id:
                self._level_of_id[level.raw.span_id] = level
            key = _SpanKey.of(level.raw, level.movie, annotator)
            self._levels_of_key.setdefault(key, []).append(level)
        self.n_compared = 0

    def levels_of(self, span: RawSpan, movie: str) -> list[MarkedSpan]:
        """Return the spans with a level that a span of concepts belongs to.

        In some formats a span names its parents. Else they are the spans with a level of the same film, times
        and annotator. `n_compared` counts how many were looked at for this, as hostile files make it very
        many.

        `movie` is the film of the span.
        """
        parents = [self._level_of_id[name] for name in span.parent_ids if name in self._level_of_id]
        if parents:
            return parents
        same_times = self._levels_of_key.get(_SpanKey.of(span, movie, self._annotator), [])
        self.n_compared += len(same_times)
        return [level for level in same_times if _can_be_one_span(level.raw, span)]


class _FirstClip(NamedTuple):
    """The clip that was the first to say something of a span, with its file, its place and its tier there."""

    clip: Clip
    file: SpanFile
    where: str
    tier: str


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
        """Keep what all files share; the class describes the parameters."""
        self._films = films
        self._words = words
        # Answers of machines are in the codebook's own words, whatever a person's words stand for.
        self._codebook_words = LabelWords(words.codebook)
        self._roles = roles
        self._annotator = annotator
        self._ids = ids
        # Key of what is said of a span (`_key_of_repetition`) -> the first clip that says it.
        self._first_clips: dict[tuple[object, ...], _FirstClip] = {}

    def clips(self, file: SpanFile, records: Iterable[RawSpan]) -> Iterator[tuple[Clip, str]]:
        """Yield each clip of a file, with its place in the file.

        What is doubtful or left out is noted in the file's account. Spans that earlier clips repeat are left
        out; all others are remembered for the files that follow.
        """
        records_to_import = self._records_to_import(file, records)
        # What a model wrote is left out below, but whoever labelled the file had it in sight.
        has_model_output = any(_is_of_a_model(record) for record in records_to_import)
        if has_model_output:
            file.account.shows_model_output = True
        # `consumed` frees each record and span once it is used, as there may be very many.
        marked_spans = self._marked_spans(file, consumed(records_to_import))
        # All clips of a file have the same extra columns.
        has_text = any(mark.text for mark in marked_spans)
        has_tier = bool(file.reading.tiers)
        for number, mark in enumerate(consumed(marked_spans), start=1):
            extras = _extras(mark, has_text=has_text, has_tier=has_tier, has_model_output=has_model_output)
            clip = self._clip(file, mark, number, extras)
            why_repeated = self._remember_or_why_repeated(file, mark, clip)
            if why_repeated:
                file.account.leave_out(mark.raw.where, why_repeated)
            else:
                yield clip, mark.raw.where

    def _marked_spans(self, file: SpanFile, records: Iterable[RawSpan]) -> list[MarkedSpan]:
        """Return the spans of a file with their levels, concepts and texts.

        What is left out or doubtful is noted in the file's account.
        """
        # Leave out what is no span of a person, and concepts that a model cannot perceive.
        spans = _without_short_or_model_spans(file.account, file.account.spans(records))
        answers = [span for span in spans if isinstance(span, Answered)]
        spans = self._without_unperceived_concepts(file, spans, answers)

        # Levels and texts are spans of their own; concepts are added to the spans of their levels.
        marked, concepts = self._divide_by_role(file, spans)
        file.account.note(*_doubtful_questions(answers, self._words))
        marked += self._add_concepts_to_levels(file, marked, concepts)
        self._note_unknown_texts(file, marked)
        return marked

    def _records_to_import(self, file: SpanFile, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Return the records to import: all, or only those of labels, as the kind of file has it.

        Files of tools with tiers of many kinds, such as ELAN, have most texts left out (`leaves_texts`). Of
        other kinds, texts are kept, but columns that a person added to a tool's table are imported only if
        they hold labels. The file's account notes what is left out, and tiers that the person names and the
        file lacks.
        """
        all_records = list(records)
        file.account.note(*_notices_on_absent_tiers(file, all_records))
        imports_only_labels = SOURCES[file.account.kind].leaves_texts
        if imports_only_labels:
            return self._without_tiers_of_texts(file, all_records)
        return self._without_added_columns_of_texts(file, all_records)

    def _without_tiers_of_texts(self, file: SpanFile, records: Sequence[RawSpan]) -> list[RawSpan]:
        """Leave out the records of tiers that hold no labels, and note how many there are.

        Raises
        ------
        ManifestError
            A tier of labels holds a record that cannot be read.
        """
        source = SOURCES[file.account.kind]
        labelled_records = []
        n_skipped: Counter[str] = Counter()  # name of a tier -> its number of records
        for record in records:
            if self._role(source, record) in {TEXT, NOT_READ}:
                n_skipped[record.tier] += record.n_records
                continue
            if record.refusal:
                raise file.error(record.refusal)
            file.account.note(record.note)
            labelled_records.append(record)
        file.account.note(*_notices_on_skipped_tiers(n_skipped))
        return labelled_records

    def _without_added_columns_of_texts(self, file: SpanFile, records: Sequence[RawSpan]) -> list[RawSpan]:
        """Leave out the columns that a person added to a tool's table and that hold no labels; note them.

        Each cell of such a column is a record, whose tier is the heading of the column.
        """
        source = SOURCES[file.account.kind]
        records_to_import = []
        skipped_columns = set[str]()
        for record in records:
            if record.is_added_column and self._role(source, record) in {TEXT, NOT_READ}:
                skipped_columns.add(record.tier)
            else:
                records_to_import.append(record)
        file.account.note_unread("column", sorted(skipped_columns))
        return records_to_import

    def _without_unperceived_concepts(
        self, file: SpanFile, spans: Sequence[RawSpan], answers: Sequence[Answered]
    ) -> list[RawSpan]:
        """Remove the concepts that a model cannot perceive from its answers, such as sounds if it only sees.

        The number of such answers, and why they do not count, is noted in the file's account. `spans` are all
        spans of the file, `answers` those of them that are a model's answers.
        """
        codebook = self._words.codebook
        # Modalities that a model perceives -> concept that it cannot perceive -> the reason.
        # Made once for all answers of models that perceive the same: few models answer on many clips.
        reasons_of_modalities: dict[tuple[str, ...], dict[str, str]] = {}
        for answer in answers:
            if answer.perceives not in reasons_of_modalities:
                reasons_of_modalities[answer.perceives] = unperceived(codebook, answer.perceives)
        self._note_unperceived_answers(file, answers, reasons_of_modalities)

        concept_of_spelling = spellings_of(codebook.concepts)
        result: list[RawSpan] = []
        for span in spans:
            if isinstance(span, Answered) and span.role == CONCEPTS and span.text:
                unperceived_concepts = reasons_of_modalities[span.perceives]
                text = _without_concepts(span.text, unperceived_concepts, concept_of_spelling)
                result.append(replace(span, text=text))
            else:
                result.append(span)
        return result

    def _note_unperceived_answers(
        self,
        file: SpanFile,
        answers: Sequence[Answered],
        reasons_of_modalities: Mapping[tuple[str, ...], Mapping[str, str]],
    ) -> None:
        """Note how many answers are on concepts that the model cannot perceive, with the reasons.

        `reasons_of_modalities` is what a model perceives, such as ("visual",) -> concept that it cannot
        perceive, such as a voice -> the reason.
        """
        concept_of_spelling = spellings_of(self._words.codebook.concepts)
        n_answers: Counter[str] = Counter()  # reason -> number of answers
        # A model's answers on one clip, at one place in the file, may be two spans: of its level and of its
        # concepts. Either holds all questions of the clip, so that they are counted in the first alone.
        counted_places = set[str]()
        for answer in answers:
            if answer.where in counted_places:
                continue
            counted_places.add(answer.where)
            reason_of_concept = reasons_of_modalities[answer.perceives]
            for spelling in answer.probabilities("concept"):  # of each concept that the model was asked about
                concept = concept_of_spelling.get(plain(spelling), "")
                if concept in reason_of_concept:
                    n_answers[reason_of_concept[concept]] += 1
        if n_answers:
            reasons = [f"{reason} ({counted(n, 'answer')})" for reason, n in n_answers.items()]
            file.account.note(f"answers that do not count: {'; '.join(reasons)}")

    def _role(self, source: SpanSource, record: RawSpan) -> str:
        """Return what the tier of a record holds, such as levels, concepts or texts.

        `source` is the kind of the record's file. It says whether the texts of such files are spoken words,
        which are no labels, and on which tier a record counts that names none.
        """
        tier_of_others = source.tier
        return self._roles.role_of(record, tier_of_others, is_speech=source.is_said)

    def _divide_by_role(
        self, file: SpanFile, spans: Sequence[RawSpan]
    ) -> tuple[list[MarkedSpan], list[RawSpan]]:
        """Divide spans into those that become clips (levels and texts) and those of concepts alone.

        The role of a span's tier decides. In a tier of labels, and in a model's answers, the codebook tells
        whether a text is a level, a concept or neither.

        Returns
        -------
        list of MarkedSpan
            The spans of levels and of texts. A level's text may hold concepts besides the level.
        list of RawSpan
            The spans of concepts alone. `_add_concepts_to_levels` adds them to the spans of levels that have
            the same times.
        """
        account = file.account
        source = SOURCES[account.kind]
        marked: list[MarkedSpan] = []
        concepts: list[RawSpan] = []
        ambiguous_levels = self._words.ambiguous_levels  # that are called as a concept, too
        ambiguous_texts = set[str]()
        for span in spans:
            role = self._role(source, span)
            reason = self._why_not_imported(file, span, role)
            if reason:
                account.leave_out(span.where, reason)
                continue
            if role == CONCEPTS:
                concepts.append(span)
                continue

            labels: Labels | None
            if role == LEVELS:
                labels = self._labels_on_tier_of_levels(file, span)
            else:
                labels = self._labels_of(file, span, role)
                is_also_concept = labels is not None and labels.level in ambiguous_levels
                if is_also_concept:
                    ambiguous_texts.add(span.text)  # only a tier of levels says which is meant

            if labels is None:  # a text that is no label
                marked.append(MarkedSpan(span, self._movie(file, span), text=span.text))
            elif labels.level:
                movie = self._movie(file, span)
                marked.append(MarkedSpan(span, movie, labels.level, concepts=list(labels.concepts)))
            else:
                concepts.append(span)
        for text in sorted(ambiguous_texts):
            account.note(f"{text!r} is a level and a concept, read as the level: give --tier")
        return marked, concepts

    def _why_not_imported(self, file: SpanFile, span: RawSpan, role: str) -> str:
        """Return why a span is left out because of what its tier holds, or of its text; "" if it is imported.

        A text on a tier of labels counts as read, so that its words are not reported as missing in the files
        (`LabelWords.note_read`).
        """
        if role == NOT_READ:
            tier = span.tier or SOURCES[file.account.kind].tier
            return f"on tier {tier!r}, which --tier does not name"
        words = self._words_of(file)
        is_of_labels = role in DECLARABLE  # levels, concepts, or both
        if is_of_labels:
            words.note_read(span.text)
            if words.is_explained_as_nothing(span.text):
                return f"{span.text!r:.40} is no label, as --word says"
        missing = self._label_said_to_be_missing(file, span, role)
        if missing:
            return f"{span.text!r:.40} says that there is no {missing}"
        # What people write for a level and is none is refused later; what a machine writes is left out.
        if role == LEVELS and file.account.kind == ANSWERS:
            labels = _labels_among_levels(words, span.text)
            if labels is None or not labels.level:
                return f"{span.text!r:.40} is no level of codebook {self._words.codebook.name!r}"
        return ""

    def _label_said_to_be_missing(self, file: SpanFile, span: RawSpan, role: str) -> str:
        """Return which label a span's text, such as `none`, says that there is none of; "" for another text.

        It is `level`, `concept`, or `label` on a tier of both. That no concept is there is an answer of a
        machine, whose span is kept.
        """
        words = self._words_of(file)
        says_no_level = words.is_no_level(span.text)
        says_no_concept = words.is_no_concept(span.text) and file.account.kind != ANSWERS
        if role == LEVELS and says_no_level:
            return "level"
        if role == CONCEPTS and says_no_concept:
            return "concept"
        if role == LABELS and (says_no_level or says_no_concept):
            # A usual word for no concept, such as 0, may be a level of the codebook.
            is_a_label = self._labels_of(file, span, role) is not None
            return "" if is_a_label else "label"
        return ""

    def _labels_of(self, file: SpanFile, span: RawSpan, role: str) -> Labels | None:
        """Return the level and concepts that a span's text holds; None if it is no label of the codebook.

        They are looked for in tiers of labels and in a machine's answers; on other tiers a text is no label.
        """
        words = self._words_of(file)
        if file.account.kind == ANSWERS:
            return words.labels_of(span.text)
        if role != LABELS:
            return None
        labels = words.labels_of(span.text)
        if labels is not None:
            return labels
        # `labels_of` divides a text exactly as it is written. A whole text may still be a level in another
        # spelling, as s is of the level S: tiers of levels and tables read it so, too.
        level = words.level_of(span.text)
        return Labels(level, ()) if level else None

    def _words_of(self, file: SpanFile) -> LabelWords:
        """Return the words by which labels of a file are read: the person's, or of answers the codebook's."""
        return self._codebook_words if file.account.kind == ANSWERS else self._words

    def _labels_on_tier_of_levels(self, file: SpanFile, span: RawSpan) -> Labels:
        """Return the labels of a text on a tier of levels: its level, and the concepts that it lists beside.

        It is read as in a table's column of levels: a text may list concepts and no level. A text that is no
        label is returned as if it were the level: the codebook refuses it when its clip is made, and names
        its place.
        """
        labels = _labels_among_levels(self._words_of(file), span.text)
        if labels is None:
            return Labels(level=span.text, concepts=())
        return labels

    def _concepts_as_explained(self, file: SpanFile, span: RawSpan) -> list[str]:
        """Return the concepts that a text lists, or those that the person says its words stand for.

        A word that is no concept is returned as it is: the codebook refuses it when its clip is made. So it
        is with a word that the person explains as a level.
        """
        words = self._words_of(file)
        explained_text = words.explained(span.text)
        if explained_text is not None and explained_text.concepts:
            return list(explained_text.concepts)  # the whole text is one word that the person explains
        concepts: list[str] = []
        for part in words.parts_of(span.text):
            explained_part = words.explained(part)
            is_explained_as_level = explained_part is not None and bool(explained_part.level)
            if explained_part is not None and not is_explained_as_level:
                concepts += explained_part.concepts  # none, if the person explains the word as no label
            elif not words.is_no_concept(part):
                concepts.append(words.concept_of(part) or part)
        return concepts

    def _movie(self, file: SpanFile, span: RawSpan) -> str:
        """Return the name of a span's film, by its film or media column, or by its file."""
        return self._films.of_span(file, span.cells.get("movie", ""), span.cells.get("media", ""))

    def _add_concepts_to_levels(
        self, file: SpanFile, marked: Sequence[MarkedSpan], concepts: Sequence[RawSpan]
    ) -> list[MarkedSpan]:
        """Add the concepts of spans to the spans of their levels, and return those that belong to no level.

        A span of concepts belongs to the levels that it names as its parents, else to those with the same
        film, times and annotator.

        `marked` are spans of levels and texts: they are changed, as concepts are added to them. The file's
        account counts each span of concepts that became a part of them, and notes the others.

        Returns
        -------
        The spans of concepts that belong to no level, which become clips of their own.

        Raises
        ------
        ManifestError
            Very many spans have the same times and annotator.
        """
        if not concepts:
            return []
        levels = [mark for mark in marked if mark.level]
        finder = _LevelFinder(levels, self._annotator)
        names_of_spans = [self._concepts_as_explained(file, span) for span in concepts]

        # If n levels and n spans of concepts all have the same times, each of these is compared with, and
        # added to, each of the levels: n x n steps. So the steps for each label are limited.
        n_labels = len(levels) + sum(map(len, names_of_spans))
        n_additions = 0  # of a concept to a level
        without_level = []
        for span, names in zip(concepts, names_of_spans, strict=True):
            movie = self._movie(file, span)
            levels_of_span = finder.levels_of(span, movie)
            n_additions += len(levels_of_span) * len(names)
            n_steps = finder.n_compared + n_additions
            if n_steps > MAX_ADDITIONS * n_labels:
                raise file.error(
                    f"{span.where}: very many levels and concepts have its times and annotator: which belong "
                    "together is unclear"
                )
            if not levels_of_span:
                without_level.append(MarkedSpan(span, movie, concepts=list(names)))
                continue
            for level in levels_of_span:
                level.concepts += names
            # Spans that become clips are counted with their clip. This one becomes a part of other clips.
            file.account.used += 1

        if without_level and levels:
            what = counted(len(without_level), "span")
            file.account.note(
                f"{what} of concepts without a level of their times, annotator and subject "
                f"(the first: {without_level[0].raw.where}): clips of their own, without a level"
            )
        return without_level

    def _note_unknown_texts(self, file: SpanFile, marked: Iterable[MarkedSpan]) -> None:
        """Note the texts that are no labels of the codebook.

        Speech (subtitles) is expected to be none, but on tiers of labels, as those of people's decisions are.
        """
        source = SOURCES[file.account.kind]
        words = self._words
        n_spans: Counter[str] = Counter()
        for mark in marked:
            is_speech = source.is_said and self._role(source, mark.raw) != LABELS
            if mark.text and not is_speech and words.labels_of(mark.text) is None:
                n_spans[mark.text] += 1
        if n_spans:
            texts = first_few([f"{text!r:.100} ({n})" for text, n in n_spans.most_common()], maximum=3)
            what = f"{counted(n_spans.total(), 'text')} not of codebook {words.codebook.name!r}"
            file.account.note(f"{what} ({texts})")

    def _clip(self, file: SpanFile, mark: MarkedSpan, number: int, extras: dict[str, str]) -> Clip:
        """Make a clip of a span and its labels.

        If the file gives the span no id, the clip's is made of film, annotator and `number`, the number of
        the span in its file: `film0-AB-0007`.

        Raises
        ------
        ManifestError
            The span has no annotator in a file of a tool that names annotators, or a label is unknown.
        """
        span = mark.raw
        codebook = self._words.codebook
        annotator = self._annotator_or_refusal(file, span)
        id_without_number = slug(mark.movie)
        if annotator:
            id_without_number += f"-{slug(annotator)}"
        video_in_file = span.cells.get("media", "")  # a path, or a name; "" if the file names none
        # The refusal of an unknown label advises the option --word, which has no effect on machines' answers.
        advises_word = file.account.kind != ANSWERS
        with error_context(f"{file.path}: {span.where}"):
            level = None
            if mark.level:
                level = _named(mark.level, codebook.level_spelled, advises_word=advises_word)
            concepts = [
                _named(name, codebook.concept_spelled, advises_word=advises_word) for name in mark.concepts
            ]
            return Clip(
                clip_id=span.cells.get("clip_id") or self._ids.new(id_without_number, number),
                movie=mark.movie,
                # The video is found by its name, else by that of the film.
                video=self._films.files.stored_path_of_movie(video_in_file or mark.movie),
                start_s=None if span.is_whole_file else span.start_s,
                end_s=None if span.is_whole_file else span.end_s,
                level=level,
                concepts=tuple(concepts),
                annotator=annotator,
                extras=extras,
            )

    def _annotator_or_refusal(self, file: SpanFile, span: RawSpan) -> str:
        """Return a span's annotator; "" if there is none and the kind of file does not need one.

        Raises
        ------
        ManifestError
            There is none in a file of a tool that names annotators.
        """
        annotator = _annotator_of(span, self._annotator)
        needs_annotator = SOURCES[file.account.kind].is_signed
        if needs_annotator and not annotator:
            remedy = "set the tier's annotator in ELAN" if file.account.kind == "eaf" else "name its model"
            raise file.error(f"{span.where}: nobody's: {remedy}, or give --annotator")
        return annotator

    def _remember_or_why_repeated(self, file: SpanFile, mark: MarkedSpan, clip: Clip) -> str:
        """Remember the first clip of a span; of a later one, return why it is left out, or "" if it is kept.

        It is left out if the first clip says the same. But clips with an id in their file are kept, as other
        files name them by it; and so is a text that one file has twice.

        Raises
        ------
        ManifestError
            An earlier clip gives the span another level or other concepts, or it gives the same on another
            tier that may be another person's.
        """
        key = _key_of_repetition(clip, has_level=bool(mark.level))
        first = self._first_clips.get(key)
        if first is None:
            self._first_clips[key] = _FirstClip(clip, file, mark.raw.where, mark.raw.tier)
            return ""

        is_text_of_same_file = first.file is file and not mark.level
        has_id_in_file = bool(mark.raw.cells.get("clip_id"))
        if is_text_of_same_file or has_id_in_file:
            return ""

        earlier = f"{first.where} of {first.file.path.name}"
        has_same_labels = first.clip.level == clip.level and set(first.clip.concepts) == set(clip.concepts)
        if not has_same_labels:
            raise file.error(
                f"{mark.raw.where}: {_written_labels(clip)} where {earlier}, of its times and annotator, "
                f"says {_written_labels(first.clip)}: keep one; tiers of different people are imported "
                "apart, with --tier and --annotator"
            )

        if self._may_be_of_two_people(file, mark.raw, first):
            raise file.error(
                f"{mark.raw.where}: {_written_labels(clip)} on tier {mark.raw.tier!r:.60}, as {first.where} "
                f"on tier {first.tier!r:.60}, and neither says by whom: tiers of different people are "
                "imported apart, with --tier and --annotator; of a tier and its copy read one, with --tier"
            )

        first_extras = first.clip.extras
        differing_columns = [name for name, cell in clip.extras.items() if cell != first_extras.get(name, "")]
        if differing_columns:
            return f"the same as {earlier} but for {', '.join(differing_columns)}"
        return f"the same as {earlier}"

    def _may_be_of_two_people(self, file: SpanFile, span: RawSpan, first: _FirstClip) -> bool:
        """Return whether a span may be another person's than an equal one, `first`, on another tier.

        Two people often have a tier each in one file. They may be two if neither the file nor the person
        says who annotated. A person who names both the tiers and an annotator says that all are this one's.
        """
        if first.file is not file or without_annotator(first.tier) == without_annotator(span.tier):
            return False
        does_file_say_who = bool(_annotator_of(span, default=""))
        does_person_say_who = bool(file.reading.tiers) and bool(self._annotator)
        return not does_file_say_who and not does_person_say_who


def _labels_among_levels(words: LabelWords, text: str) -> Labels | None:
    """Return the level and concepts that a text says where levels are expected; None if it is no label.

    There a level is a level in any case, as s of the level S, and a word that is also a concept is the level.
    """
    level = words.level_of(text)
    return Labels(level, ()) if level else words.labels_of(text)


def _named(text: str, look_up: Callable[[str], str], *, advises_word: bool) -> str:
    """Return the codebook's name of a label; refuse a text that is none.

    `advises_word` is whether the refusal has the option by which the person explains the text.
    """
    try:
        return look_up(text)
    except ManifestError as refusal:
        if not advises_word:
            raise
        option = f"--word {shlex.quote(f'{text}=LABEL')}"
        raise ManifestError(f"{refusal}; or say what it stands for: {option}") from None


def _key_of_repetition(clip: Clip, *, has_level: bool) -> tuple[object, ...]:
    """Return a key that two clips share if one of them repeats or contradicts the other.

    `has_level` is whether a level is marked on the clip's span.
    """
    # A blind judgement, or a decision in a ledger, may differ from others of the same span and annotator.
    kind_of_judgement = [clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON, DECISION)]
    key = (*key_of_annotated_span(clip), *kind_of_judgement)
    if has_level:
        # A span has only one level: another one contradicts it, so that the level is no part of the key.
        return (*key, "level")
    # A span may have several texts and sets of concepts: others contradict nothing.
    concepts = tuple(sorted(set(clip.concepts)))
    return (*key, clip.level, concepts, clip.extras.get("text", ""))


def key_of_annotated_span(clip: Clip) -> tuple[object, ...]:
    """Return a key that is equal for two clips if one annotator labelled the same span in both.

    It holds the film, the annotator, and the times in milliseconds, in which many tools write them, or the id
    of a clip without times, which is a whole file.
    It also holds the subject and the observation, as two people who are seen at the same time are labelled
    separately.
    """
    if clip.start_s is None or clip.end_s is None:
        span: tuple[object, ...] = (clip.clip_id,)
    else:
        span = (round(clip.start_s, DECIMALS_OF_SPANS), round(clip.end_s, DECIMALS_OF_SPANS))
    subject_and_observation = [clip.extras.get(name, "") for name in SUBJECT_COLUMNS]
    return (clip.movie, clip.annotator, *span, *subject_and_observation)


def _without_concepts(text: str, concepts: Container[str], concept_of_spelling: Mapping[str, str]) -> str:
    """Return a text of concepts, separated by semicolons, without the `concepts`, in whatever spellings.

    Words that are no concepts stay; the codebook refuses them later.
    """
    spellings = []
    for spelling in text.split(";"):
        concept = concept_of_spelling.get(plain(spelling))
        if concept is None or concept not in concepts:
            spellings.append(spelling)
    return ";".join(spellings)


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

    tier = mark.raw.tier
    if tier and (mark.text or has_tier):
        extras["tier"] = tier
    people_tier = PeopleTier.parse(tier)
    if people_tier and people_tier.how:
        extras[HOW] = people_tier.how  # such as `blind`

    # "1" if the annotator saw the model's score, "0" if not: by the tier's name, else by the whole file.
    seen_score = seen_score_of_tier(tier)
    if not seen_score and has_model_output:
        seen_score = "1"
    if seen_score:
        extras[SEEN_SCORE] = seen_score
    return extras


def _can_be_one_span(span: RawSpan, other: RawSpan) -> bool:
    """Return whether two spans of the same times may have the same subject and observation.

    They may, unless both name a subject, or both an observation, and these differ.
    """
    for name in SUBJECT_COLUMNS:
        cell = span.cells.get(name)
        other_cell = other.cells.get(name)
        if cell and other_cell and cell != other_cell:
            return False
    return True


def _annotator_of(span: RawSpan, default: str) -> str:
    """Return a span's annotator in composed Unicode (NFC); "" if nothing names one.

    The first of these names is it: the cell `annotator`, what stands behind the `@` of the tier's name, the
    default, and the model that gave the answer.
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


def _notices_on_absent_tiers(file: SpanFile, records: Iterable[RawSpan]) -> list[str]:
    """Return a notice for each tier that the person names (`--tier`) and that the file does not have.

    Names are compared without case and blanks (`tier_key`). The person may name a tier with its annotator or
    without.
    """
    if file.account.kind == "eaf":
        return []  # the reader of ELAN's documents refuses such names itself
    default_tier = SOURCES[file.account.kind].tier  # of records that name no tier
    # The option --tier has no effect on records whose role the file itself says.
    tiers = [record.tier or default_tier for record in records if not record.role]
    different_tiers = list(dict.fromkeys(tiers))
    if not different_tiers:
        return []

    named_tier_of_key = {tier_key(name): name for name in file.reading.tiers}
    keys_in_file = {matching_key(tier, named_tier_of_key) for tier in different_tiers}
    notices = []
    for key in sorted(named_tier_of_key):
        if key not in keys_in_file:
            name = named_tier_of_key[key]
            notices.append(f"no tier {name!r} is there{name_hint(name, different_tiers)}")
    return notices


def _notices_on_skipped_tiers(n_skipped: Counter[str]) -> Iterator[str]:
    """Yield a notice on the tiers of texts that are left out, and one on each whose name may be misspelled.

    `n_skipped` is tier that is left out -> its number of records.
    """
    if n_skipped:
        tiers = first_few([f"{name!r} ({n:,})" for name, n in n_skipped.items()], maximum=4)
        what = f"left out {counted(len(n_skipped), 'tier')} of texts ({tiers})"
        yield f"{what}: --tier NAME=levels, or =concepts, reads one"
    for known in (LEVEL_TIER, CONCEPT_TIER):
        near_name = tier_named_nearly(known, n_skipped)
        if near_name is not None:
            yield f"tier {near_name!r} is not read: did you mean {known!r}?"


def _doubtful_questions(answers: Sequence[Answered], words: LabelWords) -> Iterator[str]:
    """Yield notices on a model's questions that do not fit the codebook: unknown labels, missing concepts.

    A question is `level:NAME` or `concept:NAME`. A concept of the codebook is missing if the file has
    questions about concepts, but none about this one.
    """
    questions = sorted({question for answer in answers for question in answer.answers})
    yield from _notices_on_unknown_questions(questions, words)

    concept_of_spelling = spellings_of(words.codebook.concepts)
    has_questions_about_concepts = False
    concepts_asked_about = set[str]()
    for question in questions:
        kind, _, spelling = question.partition(":")
        if kind == "concept":
            has_questions_about_concepts = True
            if plain(spelling) in concept_of_spelling:
                concepts_asked_about.add(concept_of_spelling[plain(spelling)])
    if not has_questions_about_concepts:
        return
    unasked = [name for name in words.codebook.concept_names if name not in concepts_asked_about]
    # A concept that no model of the file perceives need not be asked about.
    modalities = sorted({name for answer in answers for name in answer.perceives})
    reason_of_unperceived = unperceived(words.codebook, modalities)
    yield from _notices_on_unasked_concepts(unasked, reason_of_unperceived)


def _notices_on_unknown_questions(questions: Iterable[str], words: LabelWords) -> Iterator[str]:
    """Yield a notice on the questions about labels that the codebook does not have, if there are any."""
    codebook = words.codebook
    label_of_spelling = {"level": spellings_of(codebook.levels), "concept": spellings_of(codebook.concepts)}
    unknown = []
    for question in questions:
        kind, _, name = question.partition(":")
        if plain(name) not in label_of_spelling[kind]:
            unknown.append(question)
    if unknown:
        what = counted(len(unknown), "question")
        yield f"{what} not of codebook {codebook.name!r} ({first_few(unknown, maximum=3)})"


def _notices_on_unasked_concepts(
    unasked: Sequence[str], reason_of_concept: Mapping[str, str]
) -> Iterator[str]:
    """Yield notices on the concepts that a model was not asked about: at most two.

    One is on concepts that the model cannot perceive, such as music for a model of pictures: nobody expects
    a question about them. The other is on those that it could have been asked about.

    Parameters
    ----------
    unasked
        The concepts.
    reason_of_concept
        For each concept that the model cannot perceive, the reason.
    """
    missing = []
    reasons = []
    for concept in unasked:
        if concept in reason_of_concept:
            reasons.append(reason_of_concept[concept])
        else:
            missing.append(concept)
    if missing:
        what = counted(len(missing), "concept")
        yield f"nothing asked of {what} ({first_few(missing, maximum=3)}), marked on no clip"
    if reasons:
        yield f"absent, not asked: {counted(len(reasons), 'concept')} ({'; '.join(reasons)})"
