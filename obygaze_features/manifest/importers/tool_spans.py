"""Make clips of the spans of other tools' files, by the roles of their tiers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from msgspec.structs import replace

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.importers.imported import slug, unique_id
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
"""What else keeps spans of one time apart: who is seen, and the sitting of an annotator."""

ANSWERS: Final = "answers"


@dataclass
class Marked:
    """A span with what is marked on it: a level or a text, and concepts."""

    raw: RawSpan
    movie: str
    level: str = ""
    text: str = ""
    concepts: list[str] = field(default_factory=list)


class ToolSpans:
    """Maker of clips, which remembers what the files before said of a span.

    Parameters
    ----------
    films
        Names of the films, and where they lie.
    words
        Of the codebook.
    roles
        Of the tiers.
    annotator
        Who annotated, where a file does not say it.
    ids
        Of the clips that there are, to which those that are made are added.
    """

    def __init__(
        self, films: FilmNames, words: LabelWords, roles: TierRoles, annotator: str, ids: set[str]
    ) -> None:
        self._films, self._words, self._roles = films, words, roles
        self._annotator, self._ids = annotator, ids
        self._first: dict[tuple[object, ...], tuple[Clip, SpanFile, str]] = {}

    def clips(self, file: SpanFile, records: Iterable[RawSpan]) -> Iterator[tuple[Clip, str]]:
        """Yield each clip with its place in the file."""
        read = self._with_roles(file, records)
        spans = _without_models(file.account, file.account.spans(read))
        spans = self._perceivable(file, spans)
        marked, concepts = self._mark(file, spans)
        answers = [span for span in spans if isinstance(span, Answered)]
        file.account.note(*_doubtful_questions(answers, self._words))
        marked += self._give_concepts(file, marked, concepts)
        self._note_unknown(file, marked)
        has_text = any(mark.text for mark in marked)
        is_model_in_sight = any(_is_of_a_model(span) for span in read)
        if is_model_in_sight:
            file.account.is_beside_model = True
        for number, mark in enumerate(marked, start=1):
            extras = _extras(
                mark, has_text=has_text, has_tier=bool(file.reading.tiers), in_sight=is_model_in_sight
            )
            clip = self._clip(file, mark, number, extras)
            reason = self._repeated(file, mark, clip)
            if reason:
                file.account.leave(mark.raw.where, reason)
            else:
                yield clip, mark.raw.where

    def _with_roles(self, file: SpanFile, records: Iterable[RawSpan]) -> list[RawSpan]:
        """Leave out the tiers of texts of kinds whose texts are none of ours; refuse what cannot be read."""
        records = list(records)
        source = SOURCES[file.account.kind]
        file.account.note(*_absent_tiers(file, records))
        if not source.leaves_texts:
            return self._without_columns_of_texts(file, records)
        read = []
        n_left: Counter[str] = Counter()
        for record in records:
            role = self._role(source, record)
            if role in {TEXT, LEFT}:
                n_left[record.tier] += 1
                continue
            if record.refusal:
                raise file.error(record.refusal)
            file.account.note(record.note)
            read.append(record)
        file.account.note(*_left_tiers(n_left))
        return read

    def _without_columns_of_texts(self, file: SpanFile, records: list[RawSpan]) -> list[RawSpan]:
        """Leave out the columns beside those of a tool that are not of labels, and name them."""
        source = SOURCES[file.account.kind]
        beside = [record for record in records if record.is_beside]
        left = {record.tier for record in beside if self._role(source, record) in {TEXT, LEFT}}
        file.account.unread("column", sorted(left))
        return [record for record in records if not (record.is_beside and record.tier in left)]

    def _perceivable(self, file: SpanFile, spans: Sequence[RawSpan]) -> list[RawSpan]:
        """Take out the concepts that a machine cannot perceive, and say how many answers they had."""
        codebook = self._words.codebook
        names = spellings_of(codebook.concepts)
        n_answers: Counter[str] = Counter()
        perceivable = []
        counted_places = set[str]()
        for span in spans:
            if not isinstance(span, Answered):
                perceivable.append(span)
                continue
            absent = unperceived(codebook, span.perceives)
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
        return self._roles.role_of(record, source.tier, is_said=source.is_said)

    def _mark(self, file: SpanFile, spans: Sequence[RawSpan]) -> tuple[list[Marked], list[RawSpan]]:
        """Divide spans into those of levels and texts, and those of concepts; leave out the others."""
        account, words = file.account, self._words
        source = SOURCES[account.kind]
        marked: list[Marked] = []
        concepts: list[RawSpan] = []
        twins = set[str]()
        for span in spans:
            role = self._role(source, span)
            labels = words.labels_of(span.text) if role == LABELS or account.kind == ANSWERS else None
            if role == LEFT:
                account.leave(span.where, f"on tier {span.tier or source.tier!r}, which --tier does not name")
            elif role == LEVELS and account.kind == ANSWERS and not (labels and labels.level):
                account.leave(
                    span.where, f"{span.text!r:.40} is no level of codebook {words.codebook.name!r}"
                )
            elif role == LEVELS:
                marked.append(Marked(span, self._movie(file, span), level=span.text))
            elif role == CONCEPTS or (labels and not labels.level):
                concepts.append(span)
            elif labels:
                if labels.level in words.twins:
                    twins.add(span.text)
                movie = self._movie(file, span)
                marked.append(Marked(span, movie, labels.level, concepts=list(labels.concepts)))
            else:
                marked.append(Marked(span, self._movie(file, span), text=span.text))
        for text in sorted(twins):
            account.note(f"{text!r} is a level and a concept, read as the level: give --tier")
        return marked, concepts

    def _movie(self, file: SpanFile, span: RawSpan) -> str:
        return self._films.of_span(file, span.cells.get("movie", ""), span.cells.get("media", ""))

    def _give_concepts(
        self, file: SpanFile, marked: Sequence[Marked], concepts: Sequence[RawSpan]
    ) -> list[Marked]:
        """Give concepts to the level above them, or of their times and annotator; others are clips."""
        levels = [mark for mark in marked if mark.level]
        by_id = {mark.raw.span_id: mark for mark in levels if mark.raw.span_id}
        by_span: dict[tuple[object, ...], list[Marked]] = {}
        for mark in levels if concepts else ():
            by_span.setdefault(self._span_key(mark.raw, mark.movie), []).append(mark)
        alone = []
        for span in concepts:
            movie = self._movie(file, span)
            names = self._words.codebook.split_concepts(span.text)
            same_span = by_span.get(self._span_key(span, movie), [])
            owners = [by_id[span_id] for span_id in span.parent_ids if span_id in by_id]
            owners = owners or [mark for mark in same_span if _may_be_one(mark.raw, span)]
            for owner in owners:
                owner.concepts += names
            if owners:
                file.account.used += 1
            else:
                alone.append(Marked(span, movie, concepts=list(names)))
        if alone and levels:
            what = counted(len(alone), "span")
            file.account.note(
                f"{what} of concepts without a level of their times, annotator and subject "
                f"(the first: {alone[0].raw.where}): clips of their own, without a level"
            )
        return alone

    def _span_key(self, span: RawSpan, movie: str) -> tuple[object, ...]:
        """Return what spans must share for a concept to belong to a level."""
        annotator = _annotator_of(span, self._annotator)
        tier = PeopleTier.of(span.tier)
        how = tier.how if tier else ""
        return movie, annotator, how, round(span.start_s, 3), round(span.end_s, 3)

    def _note_unknown(self, file: SpanFile, marked: Iterable[Marked]) -> None:
        """Say which texts are no labels of the codebook, where a tier is not known to be of texts."""
        if SOURCES[file.account.kind].is_said:
            return
        words = self._words
        unknown = Counter(mark.text for mark in marked if mark.text and words.labels_of(mark.text) is None)
        if unknown:
            texts = first_few([f"{text!r} ({n})" for text, n in unknown.most_common()], 3)
            what = f"{counted(unknown.total(), 'text')} not of codebook {words.codebook.name!r}"
            file.account.note(f"{what} ({texts})")

    def _clip(self, file: SpanFile, marked: Marked, number: int, extras: dict[str, str]) -> Clip:
        """Make a clip of a span and what is marked on it."""
        raw, cells, codebook = marked.raw, marked.raw.cells, self._words.codebook
        annotator = _annotator_of(raw, self._annotator)
        if not annotator and SOURCES[file.account.kind].is_signed:
            remedy = "set the tier's annotator in ELAN" if file.account.kind == "eaf" else "name its model"
            raise file.error(f"{raw.where}: nobody's: {remedy}, or give --annotator")
        stem = slug(marked.movie)
        if annotator:
            stem += f"-{slug(annotator)}"
        with placed(f"{file.path}: {raw.where}"):
            return Clip(
                cells.get("clip_id") or unique_id(stem, number, self._ids),
                marked.movie,
                self._films.files.film_of(cells.get("media", "") or marked.movie),
                None if raw.is_whole_file else raw.start_s,
                None if raw.is_whole_file else raw.end_s,
                codebook.level_spelled(marked.level) if marked.level else None,
                tuple(codebook.concept_spelled(name) for name in marked.concepts),
                annotator,
                extras,
            )

    def _repeated(self, file: SpanFile, marked: Marked, clip: Clip) -> str:
        """Say where the same was read before; refuse a level that contradicts another of its times."""
        labels = clip.level, frozenset(clip.concepts)
        if marked.level:
            what: tuple[object, ...] = ("level",)
        else:
            what = (*labels, clip.extras.get("text", ""))
        decided = [clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON, DECISION)]
        key = (*span_of(clip), *decided, *what)
        where = marked.raw.where
        before, other_file, place = self._first.setdefault(key, (clip, file, where))
        is_first = before is clip
        is_repeated_text = other_file is file and not marked.level
        if is_first or is_repeated_text or marked.raw.cells.get("clip_id"):
            return ""
        earlier = f"{place} of {other_file.path.name}"
        if (before.level, frozenset(before.concepts)) != labels:
            raise file.error(
                f"{where}: {_labels(clip)} where {earlier}, of its times and annotator, says "
                f"{_labels(before)}: keep one; tiers of different people are imported apart, "
                "with --tier and --annotator"
            )
        others = [name for name, cell in clip.extras.items() if cell != before.extras.get(name, "")]
        return f"the same as {earlier}" + (f" but for {', '.join(others)}" if others else "")


def span_of(clip: Clip) -> tuple[object, ...]:
    """Return whose judgement of what a clip is: a span of a film, or a file."""
    span = (clip.clip_id,) if clip.start_s is None else (clip.start_s, clip.end_s)
    return clip.movie, clip.annotator, *span, *(clip.extras.get(name, "") for name in APART)


def _is_of_a_model(span: RawSpan) -> bool:
    """Return whether a model wrote a span, as its kind says it, or its tier or text."""
    return span.is_of_model or is_of_a_model(span.tier) or is_of_a_model(span.text)


def _without_models(account: Account, spans: Iterable[RawSpan]) -> list[RawSpan]:
    """Leave out what is too short for a span, and what a model wrote."""
    kept = []
    for span in spans:
        if is_short(span.start_s, span.end_s):
            account.leave(span.where, "shorter than a frame")
        elif _is_of_a_model(span):
            account.leave(span.where, "of a model, no label")
        else:
            kept.append(span)
    return kept


def _extras(marked: Marked, *, has_text: bool, has_tier: bool, in_sight: bool) -> dict[str, str]:
    """Return the extra columns of a span."""
    extras = {"text": marked.text} if has_text else {}
    cells = marked.raw.cells
    for name in EXTRA_COLUMNS if any(cells.values()) else ():
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


def _may_be_one(span: RawSpan, other: RawSpan) -> bool:
    """Return whether nothing that both say of whom or what they are about keeps them apart."""
    for name in APART:
        mine, theirs = span.cells.get(name), other.cells.get(name)
        if mine and theirs and mine != theirs:
            return False
    return True


def _annotator_of(span: RawSpan, default: str) -> str:
    """Name the annotator: whom the file does, its tier behind `@`, the default one, or the machine."""
    behind_at = span.tier.partition("@")[2]
    for name in (span.cells.get("annotator", ""), behind_at, default, span.cells.get("model", "")):
        if name.strip():
            return composed(name.strip())
    return ""


def _labels(clip: Clip) -> str:
    """Write a clip's labels as one text."""
    return ";".join([clip.level, *clip.concepts] if clip.level else clip.concepts)


def _absent_tiers(file: SpanFile, records: Iterable[RawSpan]) -> list[str]:
    """Say which tiers that the person names are not there; documents of ELAN say it themselves."""
    source = SOURCES[file.account.kind]
    if file.account.kind == "eaf":
        return []
    present = dict.fromkeys(record.tier or source.tier for record in records if not record.role)
    asked = {tier_key(name): name for name in file.reading.tiers}
    absent = asked.keys() - {key_among(tier, asked) for tier in present}
    if not present:
        return []
    return [f"no tier {asked[key]!r} is there{name_hint(asked[key], present)}" for key in sorted(absent)]


def _left_tiers(n_left: Counter[str]) -> Iterator[str]:
    """Say which tiers of texts are left out, and which of them may be meant."""
    if n_left:
        tiers = first_few([f"{name!r} ({n:,})" for name, n in n_left.items()], 4)
        what = f"left out {counted(len(n_left), 'tier')} of texts ({tiers})"
        yield f"{what}: --tier NAME=levels, or =concepts, reads one"
    for known in (LEVEL_TIER, CONCEPT_TIER):
        names = {tier_key(name): name for name in n_left}
        for key in get_close_matches(tier_key(known), names, n=1, cutoff=0.75):
            yield f"tier {names[key]!r} is not read: did you mean {known!r}?"


def _doubtful_questions(answers: Sequence[Answered], words: LabelWords) -> Iterator[str]:
    """Say which questions are not the codebook's, and of which concepts nothing was asked, or could be."""
    codebook = words.codebook
    questions = sorted({question for line in answers for question in line.answers})
    perceives = sorted({name for line in answers for name in line.perceives})
    names = {"level": spellings_of(codebook.levels), "concept": spellings_of(codebook.concepts)}
    asked = [question.partition(":")[::2] for question in questions]
    unknown = [f"{kind}:{name}" for kind, name in asked if plain(name) not in names[kind]]
    asked_of = {names[kind].get(plain(name)) for kind, name in asked if kind == "concept"}
    unasked = [name for name in codebook.concept_names if name not in asked_of]
    reasons = unperceived(codebook, perceives)
    absent = [reasons[name] for name in unasked if name in reasons]
    never = [name for name in unasked if name not in reasons]
    if unknown:
        what = counted(len(unknown), "question")
        yield f"{what} not of codebook {codebook.name!r} ({first_few(unknown, 3)})"
    if asked_of and never:
        what = counted(len(never), "concept")
        yield f"nothing asked of {what} ({first_few(never, 3)}), marked on no clip"
    if asked_of and absent:
        yield f"absent, not asked: {counted(len(absent), 'concept')} ({'; '.join(absent)})"
