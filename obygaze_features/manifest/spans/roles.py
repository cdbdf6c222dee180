"""Decide what tiers hold: levels, concepts, labels of both, or texts. The one place for all kinds of files.

A tier (track, category, attribute, field of labels) has one role, over all files of an import, whatever its
single texts are:

- *declared*: the person names it (`--tier`), or its name says it (`level`, `concepts`);
- *all of it*: every text of tiers of its name is of the codebook, and more than one word of it is used;
- else it holds texts. Which tiers look like labels all the same is said, with the option that reads them.

What films say, and names of speakers, are labels where the person declares it alone; but for lines that name
a tier of people (`tier_names.split_people_tier`), which our exports write.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from obygaze_features.manifest.spans.label_words import Labels, LabelWords
from obygaze_features.manifest.spans.record import RawSpan
from obygaze_features.manifest.spans.tier_names import (
    DECIDED,
    NAMED,
    PeopleTier,
    is_of_a_model,
    matching_key,
    tier_key,
    without_annotator,
)
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import first_few

LEVELS = "levels"
CONCEPTS = "concepts"
LABELS = "labels"
DECLARABLE: Final = (LEVELS, CONCEPTS, LABELS)
"""Roles that a person may declare. In a tier of labels, the codebook tells levels from concepts."""

TEXT = "text"
"""Role of a tier whose texts are no labels."""

NOT_READ = "not read"
"""Role of a tier that is not read, because the person names other tiers."""

SHOWN_TIERS = 3
SHOWN_WORDS = 3


@dataclass
class Tier:
    """Counts of the texts of one tier, over all files of an import.

    Attributes
    ----------
    name
        As the first file spells it, without annotator.
    is_speech
        Whether its texts are what films say, or names of speakers.
    n_texts, n_labels
        How many texts it has, and how many of them are labels of the codebook.
    words
        Levels and concepts that are used, with their counts; a text may hold several.
    n_with_level
        How many of its texts are, or hold, a level.
    is_added_column
        Whether it is a column beside those of a tool, which is read as labels or not at all.
    """

    name: str
    is_speech: bool
    n_texts: int = 0
    n_labels: int = 0
    n_with_level: int = 0
    words: Counter[str] = field(default_factory=Counter)
    is_added_column: bool = False

    def add(self, record: RawSpan, labels: Labels | None) -> None:
        """Count the text of a record; `labels` are the level and concepts that it says, None if none."""
        if record.is_added_column:
            self.is_added_column = True
        self.n_texts += record.n_records
        if labels is None:
            return
        self.n_labels += record.n_records
        if labels.level:
            self.n_with_level += record.n_records
        for word in labels.words:
            self.words[word] += record.n_records

    @property
    def is_all_labels(self) -> bool:
        """Whether every text is a label of the codebook."""
        return self.n_texts > 0 and self.n_labels == self.n_texts

    @property
    def can_be_read_as_labels(self) -> bool:
        """Whether every text is a label, and several words are used: one word alone may be anything."""
        return self.is_all_labels and len(self.words) > 1

    @property
    def option(self) -> str:
        """The option that makes an import read the tier: `--tier Shots=levels`.

        It reads it as levels, or as concepts, if all texts are only these; else as labels, of both kinds.
        """
        has_concepts_only = self.n_with_level == 0
        # As a text has one level at most, there is a word that is no level if there are more words.
        n_words = self.words.total()
        has_levels_only = self.n_with_level == n_words
        role = LABELS
        if self.is_all_labels and has_concepts_only:
            role = CONCEPTS
        elif self.is_all_labels and has_levels_only:
            role = LEVELS
        return f"--tier {shlex.quote(f'{self.name}={role}')}"


class _Case(Enum):
    """Why a notice names a tier: its statement on all such tiers, in the order in which notices are given."""

    # `{book}` stands for the codebook's name.
    READ_AS_LABELS = "all texts are of {book}, read as labels"
    ONE_WORD = "all texts are one word of {book}, read as text"
    PARTLY_LABELS = "some texts are of {book}, all are read as text"
    ADDED_COLUMN = "words of {book} in columns that are not read"
    SPEECH = "words of {book} are what is said, or who speaks: no labels"


class TierRoles:
    """The roles of the tiers of an import.

    Parameters
    ----------
    words
        Words of the codebook.
    declared
        Tier -> role, as the person says it. If any tier is declared, no other is read.
    """

    def __init__(self, words: LabelWords, declared: Mapping[str, str]) -> None:
        """Keep the roles that the person declares (tier -> role) and those that the names of tiers tell."""
        self._words = words
        # What is said of tiers, by their keys, in which names are compared (`tier_key`): by the person; by
        # names such as `level`; and which names our export gives to tiers of decisions.
        self._declared_roles = {tier_key(name): role for name, role in declared.items()}
        self._roles_by_name = {tier_key(name): role for name, role in NAMED.items()}
        self._keys_of_decisions = {tier_key(name) for name in DECIDED}
        # What the texts of files say. The key is that of the tier without its annotator: people's tiers of
        # one name have one role. Second in the key is whether the texts are speech.
        self._tiers: dict[tuple[str, bool], Tier] = {}
        # Whole name of a tier, and whether its texts are speech -> role: a cache, once all are counted.
        self._role_of_name: dict[tuple[str, bool], str] = {}

    def add(self, records: Iterable[RawSpan], default_tier: str, *, is_speech: bool) -> None:
        """Count the texts of a file's tiers.

        Parameters
        ----------
        records
            The records of the file.
        default_tier
            Name for the tier of records that name none.
        is_speech
            Whether the texts are speech or names of speakers.
        """
        for record in records:
            if record.role or not record.text:
                continue  # the file itself says the role, or there is no text to decide it by
            if is_of_a_model(record.tier) or is_of_a_model(record.text):
                continue  # what a model wrote is never imported as a label
            if self._words.is_explained_as_nothing(record.text):
                continue  # it says nothing of what the other texts of its tier are
            name = without_annotator(record.tier or default_tier)
            key = (tier_key(name), is_speech)
            tier = self._tiers.setdefault(key, Tier(name, is_speech))
            tier.add(record, self._words.labels_of(record.text))

    def role_of(self, record: RawSpan, default_tier: str, *, is_speech: bool) -> str:
        """Return the role of a record's tier: LEVELS, CONCEPTS, LABELS, TEXT or NOT_READ.

        It may depend on all texts of the tier, so that all records of the import must have been added before.

        Parameters
        ----------
        record
            The record.
        default_tier
            Name for its tier if it names none.
        is_speech
            Whether the texts of its file are speech or names of speakers.
        """
        if record.role:
            return record.role
        name = record.tier or default_tier
        if (name, is_speech) not in self._role_of_name:
            self._role_of_name[name, is_speech] = self._decide_role(name, is_speech=is_speech)
        return self._role_of_name[name, is_speech]

    def _decide_role(self, name: str, *, is_speech: bool) -> str:
        """Decide the role of a tier: as the person declares it, else by its name, else by its texts.

        If the person declares any tier, no other is read. Otherwise speech, and the tiers of decisions that
        our export writes (`DECIDED`), hold texts.

        `matching_key` finds the tier by its name with or without its annotator, and returns "" for none.
        """
        if self._declared_roles:
            key = matching_key(name, self._declared_roles)
            return self._declared_roles.get(key, NOT_READ)
        # Speech that names a tier of people, as lines of subtitles do that we exported, is none.
        is_spoken = is_speech and PeopleTier.parse(name) is None
        is_of_decisions = bool(matching_key(name, self._keys_of_decisions))
        if is_spoken or is_of_decisions:
            return TEXT
        key = matching_key(name, self._roles_by_name)
        if key:
            return self._roles_by_name[key]
        tier = self._tiers.get((tier_key(without_annotator(name)), is_speech))
        holds_labels = tier is not None and tier.can_be_read_as_labels
        return LABELS if holds_labels else TEXT

    def notices(self) -> list[str]:
        """Return notices on tiers that are read as labels by their texts, and on those that may be labels.

        Tiers whose role is declared or told by their name need no notice.
        """
        if self._declared_roles:
            return []
        tiers_of_case: dict[_Case, list[Tier]] = {case: [] for case in _Case}
        for tier in self._tiers_with_labels_without_role():
            case = _case_of(tier)
            if case is not None:
                tiers_of_case[case].append(tier)
        notices = []
        for case, tiers in tiers_of_case.items():
            statement = case.value.format(book=f"codebook {self._words.codebook.name!r}")
            are_read_as_labels = case is _Case.READ_AS_LABELS
            notices += _notice(tiers, statement, offers_options=not are_read_as_labels)
        return notices

    def _tiers_with_labels_without_role(self) -> list[Tier]:
        """Return the tiers that hold words of the codebook, and whose names do not tell what they hold."""
        keys_of_telling_names = {*self._roles_by_name, *self._keys_of_decisions}
        tiers = []
        for tier in self._tiers.values():
            does_name_tell = bool(matching_key(tier.name, keys_of_telling_names))
            if tier.n_labels and not does_name_tell:
                tiers.append(tier)
        return tiers


def _case_of(tier: Tier) -> _Case | None:
    """Return which notice a tier with words of the codebook needs; None if it needs none."""
    if tier.is_speech:
        # That people say a few of these words is no sign that speech holds labels.
        is_half_labels = 2 * tier.n_labels >= tier.n_texts
        return _Case.SPEECH if is_half_labels else None
    if tier.can_be_read_as_labels:
        return _Case.READ_AS_LABELS
    # All others are not read as labels: a column that a person added to a tool's table is not read at all.
    if tier.is_added_column:
        return _Case.ADDED_COLUMN
    # One word alone, even if all texts are it, may be anything.
    if tier.is_all_labels:
        return _Case.ONE_WORD
    return _Case.PARTLY_LABELS


def _notice(tiers: Sequence[Tier], statement: str, *, offers_options: bool) -> list[str]:
    """Return one notice on some tiers; an empty list if there are no tiers.

    Parameters
    ----------
    tiers
        The tiers.
    statement
        What holds for all of them.
    offers_options
        Whether to add the options that read them as labels.
    """
    if not tiers:
        return []
    shown = first_few([_counts(tier) for tier in tiers], SHOWN_TIERS)
    line = f"{counted(len(tiers), 'tier')}: {statement} ({shown})"
    if offers_options:
        options = " ".join(tier.option for tier in tiers[:SHOWN_TIERS])
        line += f": if they are labels, give {options}"
    return [line]


def _counts(tier: Tier) -> str:
    """Describe a tier by how many of its texts are labels of the codebook, and by its most frequent words."""
    words = first_few([word for word, _ in tier.words.most_common()], SHOWN_WORDS)
    return f"{tier.name!r}: {tier.n_labels:,} of {tier.n_texts:,}, {words}"
