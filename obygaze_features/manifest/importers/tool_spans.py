"""Make clips of the spans of other tools' files: tell levels, concepts and texts, and join them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import spellings_of
from obygaze_features.manifest.importers.imported import slug, unique_id
from obygaze_features.manifest.importers.span_films import FilmNames
from obygaze_features.manifest.spans.eaf import DECIDED_ON, MODEL, key_among, tier_key
from obygaze_features.manifest.spans.given import Account, Given, RawSpan
from obygaze_features.manifest.spans.instant import is_short
from obygaze_features.manifest.spans.names import name_hint, plain
from obygaze_features.manifest.spans.sources import SOURCES, SUBTITLES
from obygaze_features.manifest.text_tables import SEEN_SCORE, counted, placed
from obygaze_features.text import composed, first_few

EXTRA_COLUMNS: Final = (
    SEEN_SCORE, DECIDED_ON, "subject", "observation", "modifiers", "comment",
    "model", "prompt", "answered_on",
)  # fmt: skip
"""Columns of other tools' files that are kept; the last three say which machine answered what, and when."""

APART: Final = ("subject", "observation")
"""What else keeps spans of one time apart: who is seen, and the sitting of an annotator."""

KINDS_OF_WORDS: Final = (*SUBTITLES, "moviegraphs")
"""Kinds whose texts are words of a film or about it: `Look` is no label there, unless --tier says so."""


@dataclass
class Marked:
    """A span with what is marked on it: a level or a text, as its role says, and concepts."""

    raw: RawSpan
    movie: str
    role: str
    text: str = ""
    concepts: list[str] = field(default_factory=list)

    @property
    def is_level(self) -> bool:
        """Whether its text is a level."""
        return self.role == "levels"


class ToolSpans:
    """Reader of other tools' files, which remembers what the files before said of a span."""

    def __init__(self, films: FilmNames, annotator: str, ids: set[str]) -> None:
        self._films, self._annotator, self._ids = films, annotator, ids
        self._said: dict[tuple[object, ...], tuple[Clip, Given, str]] = {}

    def read(
        self, given: Given, raws: Sequence[RawSpan], codebook: Codebook, *, is_model_in_sight: bool
    ) -> Iterator[tuple[Clip, str]]:
        """Yield each clip with its place in the file."""
        marked, concepts = self._mark(given, raws, codebook)
        given.account.note(*_doubtful_questions(given.questions, codebook))
        marked += self._join(given, marked, concepts)
        _note_unknown(given.account, marked, codebook)
        has_text = any(each.text and not each.is_level for each in marked)
        for number, each in enumerate(marked, start=1):
            extras = _extras(each, has_text=has_text, has_tier=bool(given.tiers), in_sight=is_model_in_sight)
            clip = self._clip(given, each, codebook, number, extras)
            if reason := self._repeated(given, each, clip):
                given.account.leave(each.raw.where, reason)
                continue
            given.account.used += 1
            yield clip, each.raw.where

    def _mark(
        self, given: Given, raws: Sequence[RawSpan], codebook: Codebook
    ) -> tuple[list[Marked], list[RawSpan]]:
        """Divide spans into those of levels and texts, and those of concepts; leave out the others."""
        account = given.account
        words = LabelWords(
            codebook, {tier_key(name): role for name, role in given.tiers.items()}, account.kind
        )
        account.note(*words.doubts(raws), *_absent_tiers(given, raws))
        marked: list[Marked] = []
        concepts: list[RawSpan] = []
        n_by_tier: dict[str, Counter[bool]] = {}
        for raw in raws:
            role, parts = words.role_of(raw)
            n_by_tier.setdefault(raw.tier, Counter())[role == "text"] += 1
            if role == "left":
                account.leave(raw.where, f"on tier {raw.tier!r}, which --tier does not name")
            elif role == "text" and account.kind == "answers":
                account.leave(raw.where, f"{raw.text!r:.40} is no level of codebook {codebook.name!r}")
            elif role == "concepts":
                concepts.append(raw)
            else:
                marked.append(Marked(raw, self._movie(given, raw), role, parts[0], parts[1:]))
        for tier, n in sorted(n_by_tier.items()):
            if tier and 0 < n[False] < n[True]:
                account.notes.append(
                    f"tier {tier!r}: most texts are not of codebook {codebook.name!r}, the others are read "
                    "as labels: if they are none, give --tier"
                )
        return marked, concepts

    def _movie(self, given: Given, raw: RawSpan) -> str:
        return self._films.of_span(given, raw.cells.get("movie", ""), raw.cells.get("media", ""))

    def _join(self, given: Given, marked: Sequence[Marked], concepts: Sequence[RawSpan]) -> list[Marked]:
        """Give concepts to the level above them, or of their times and annotator; without levels, clips."""
        levels = [each for each in marked if each.is_level]
        if not levels:
            return [
                Marked(raw, self._movie(given, raw), "concepts", concepts=split_text(raw.text))
                for raw in concepts
            ]
        by_id = {level.raw.own: level for level in levels if level.raw.own}
        by_span: dict[tuple[object, ...], list[Marked]] = {}
        for level in levels if concepts else ():
            by_span.setdefault(self._span_key(level.raw, level.movie), []).append(level)
        for raw in concepts:
            same_span = by_span.get(self._span_key(raw, self._movie(given, raw)), [])
            owners = [by_id[name] for name in raw.above if name in by_id]
            owners = owners or [level for level in same_span if _may_be_one(level.raw, raw)]
            for level in owners:
                level.concepts += split_text(raw.text)
            if owners:
                given.account.used += 1
            else:
                reason = "concepts without a level of their times, annotator and subject"
                given.account.leave(raw.where, reason)
        return []

    def _span_key(self, raw: RawSpan, movie: str) -> tuple[object, ...]:
        """Return what spans must share for a concept to belong to a level."""
        return movie, _annotator_of(raw, self._annotator), round(raw.start_s, 3), round(raw.end_s, 3)

    def _clip(
        self, given: Given, marked: Marked, codebook: Codebook, number: int, extras: dict[str, str]
    ) -> Clip:
        """Make a clip of a span and what is marked on it."""
        raw, cells = marked.raw, marked.raw.cells
        annotator = _annotator_of(raw, self._annotator)
        if not annotator and SOURCES[given.account.kind].is_signed:
            remedy = "set the tier's annotator in ELAN" if given.account.kind == "eaf" else "name its model"
            raise given.error(f"{raw.where}: nobody's: {remedy}, or give --annotator")
        stem = slug(marked.movie)
        if annotator:
            stem += f"-{slug(annotator)}"
        with placed(f"{given.path}: {raw.where}"):
            return Clip(
                cells.get("clip_id") or unique_id(stem, number, self._ids),
                marked.movie,
                self._films.files.film_of(cells.get("media", "") or marked.movie),
                None if raw.whole else raw.start_s,
                None if raw.whole else raw.end_s,
                codebook.level_spelled(marked.text) if marked.is_level else None,
                tuple(codebook.concept_spelled(name) for name in marked.concepts),
                annotator,
                extras,
            )

    def _repeated(self, given: Given, marked: Marked, clip: Clip) -> str:
        """Say where the same was read before; refuse a level that contradicts another of its times."""
        labels = clip.level, frozenset(clip.concepts)
        is_same = marked.is_level or (*labels, clip.extras.get("text", ""))
        key = (*span_of(clip), *(clip.extras.get(name, "") for name in (SEEN_SCORE, DECIDED_ON)), is_same)
        where = marked.raw.where
        before, file, place = self._said.setdefault(key, (clip, given, where))
        is_first = before is clip
        is_repeated_text = file is given and not marked.is_level
        if is_first or is_repeated_text or marked.raw.cells.get("clip_id"):
            return ""
        earlier = f"{place} of {file.path.name}"
        if (before.level, frozenset(before.concepts)) != labels:
            raise given.error(
                f"{where}: {_labels(clip)} where {earlier}, of its times and annotator, says "
                f"{_labels(before)}: keep one; tiers of different people are imported apart, "
                "with --tier and --annotator"
            )
        others = [name for name, cell in clip.extras.items() if cell != before.extras.get(name, "")]
        return f"the same as {earlier}" + (f" but for {', '.join(others)}" if others else "")


class LabelWords:
    """The words of a codebook, by which texts are told to be levels or concepts.

    Parameters
    ----------
    codebook
    roles
        Tier -> `levels` or `concepts`; if there are any, tiers alone tell.
    kind
        Of the file.
    """

    def __init__(self, codebook: Codebook, roles: Mapping[str, str], kind: str) -> None:
        self.levels = {_word(text) for level in codebook.levels for text in level.spellings}
        self.concepts = {_word(text) for concept in codebook.concepts for text in concept.spellings}
        self.roles, self.kind = roles, kind

    def role_of(self, raw: RawSpan) -> tuple[str, list[str]]:
        """Tell what a span's text is, and its parts: the level or text first, then concepts."""
        if raw.role:
            return raw.role, [raw.text]
        if self.roles:
            return self.roles.get(key_among(raw.tier, self.roles), "left"), [raw.text]
        parts = [raw.text] if _word(raw.text) in self.levels else split_text(raw.text)
        levels = [part for part in parts if _word(part) in self.levels]
        others = [part for part in parts if part not in levels]
        are_labels = parts and len(levels) <= 1 and all(_word(part) in self.concepts for part in others)
        if not are_labels or self.kind in KINDS_OF_WORDS:
            return "text", [raw.text]
        return "levels" if levels else "concepts", [*levels, *others]

    def doubts(self, raws: Iterable[RawSpan]) -> list[str]:
        """Say which texts are a level and a concept."""
        both = set() if self.roles else self.levels & self.concepts
        texts = sorted({raw.text for raw in raws if not raw.role and _word(raw.text) in both})
        return [f"{text!r} is a level and a concept, read as the level: give --tier" for text in texts]


def are_labels(account: Account, raws: Iterable[RawSpan]) -> list[RawSpan]:
    """Leave out what is too short for a span, and what a model wrote."""
    kept = []
    for raw in raws:
        if is_short(raw.start_s, raw.end_s):
            account.leave(raw.where, "shorter than a frame")
        elif any(plain(name).startswith(f"{MODEL}:") for name in (raw.tier, raw.text)):
            account.leave(raw.where, "of a model, no label")
        else:
            kept.append(raw)
    return kept


def span_of(clip: Clip) -> tuple[object, ...]:
    """Return whose judgement of what a clip is: a span of a film, or a file."""
    span = (clip.clip_id,) if clip.start_s is None else (clip.start_s, clip.end_s)
    return clip.movie, clip.annotator, *span, *(clip.extras.get(name, "") for name in APART)


def split_text(text: str) -> list[str]:
    """Divide a text at its semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]


def _extras(marked: Marked, *, has_text: bool, has_tier: bool, in_sight: bool) -> dict[str, str]:
    """Return the extra columns of a span."""
    text = "" if marked.is_level else marked.text
    extras = {"text": text} if has_text else {}
    extras |= {name: marked.raw.cells[name] for name in EXTRA_COLUMNS if marked.raw.cells.get(name)}
    if marked.raw.tier and (text or has_tier):
        extras["tier"] = marked.raw.tier
    if in_sight:
        extras[SEEN_SCORE] = "1"
    return extras


def _may_be_one(raw: RawSpan, other: RawSpan) -> bool:
    """Return whether nothing that both say of whom or what they are about keeps them apart."""
    pairs = [(raw.cells.get(name), other.cells.get(name)) for name in APART]
    return all(mine == theirs for mine, theirs in pairs if mine and theirs)


def _annotator_of(raw: RawSpan, default: str) -> str:
    """Name the annotator: whom the file does, its tier behind `@`, the default one, or the machine."""
    names = (raw.cells.get("annotator", ""), raw.tier.partition("@")[2], default, raw.cells.get("model", ""))
    return composed(next((name.strip() for name in names if name.strip()), ""))


def _word(text: str) -> str:
    """Write a label as labels are compared; of one letter, such as a code of behaviour, the case counts."""
    return text if len(text) == 1 else plain(text)


def _labels(clip: Clip) -> str:
    return ";".join([clip.level, *clip.concepts] if clip.level else clip.concepts)


def _absent_tiers(given: Given, raws: Iterable[RawSpan]) -> list[str]:
    """Say which tiers that the person names are not there; documents of ELAN say it themselves."""
    present = dict.fromkeys(raw.tier for raw in raws if not raw.role)
    if not present:
        return []
    asked = {tier_key(name): name for name in given.tiers}
    absent = sorted(asked[key] for key in asked.keys() - {key_among(tier, asked) for tier in present})
    return [f"no tier {name!r} is there{name_hint(name, present)}" for name in absent]


def _doubtful_questions(questions: Sequence[str], codebook: Codebook) -> list[str]:
    """Say which questions are not the codebook's, and of which concepts nothing was asked."""
    names = {"level": spellings_of(codebook.levels), "concept": spellings_of(codebook.concepts)}
    asked = [question.partition(":")[::2] for question in questions]
    unknown = [f"{kind}:{name}" for kind, name in asked if plain(name) not in names[kind]]
    asked_of = {names[kind].get(plain(name)) for kind, name in asked if kind == "concept"}
    never = [name for name in codebook.concept_names if name not in asked_of]
    notes = []
    if unknown:
        what = counted(len(unknown), "question")
        notes.append(f"{what} not of codebook {codebook.name!r} ({first_few(unknown, 3)})")
    if asked_of and never:
        what = counted(len(never), "concept")
        notes.append(f"nothing asked of {what} ({first_few(never, 3)}), marked on no clip")
    return notes


def _note_unknown(account: Account, marked: Iterable[Marked], codebook: Codebook) -> None:
    """Say which texts are no labels of the codebook."""
    unknown = Counter(each.text for each in marked if each.role == "text" and each.text)
    if unknown and account.kind not in KINDS_OF_WORDS:
        texts = first_few([f"{text!r} ({n})" for text, n in unknown.most_common()], 3)
        what = f"{counted(unknown.total(), 'label')} not of codebook {codebook.name!r}"
        account.notes.append(f"{what}: kept as text ({texts})")
