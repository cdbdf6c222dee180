"""Keep under which definitions people decided, and tell which definitions mean the same."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    BUILTIN,
    ENGLISH,
    Codebook,
    Concept,
    Level,
    builtin_codebook,
    codebook_of_text,
)
from obygaze_film.workspace.ledger_lines import Header, StoredCodebook

UNKNOWN = ""
"""Stands for the definition of a decision that does not say under which definition it was made."""

SHOWN_OF_DIGEST = 12
"""Number of characters of a digest that are enough to tell definitions apart in messages."""


def stored(book: Codebook) -> StoredCodebook:
    """Return a codebook as headers of a ledger hold it: its text, and the digest of its definitions."""
    return StoredCodebook(book.definition(), book.to_toml())


@cache
def codebook_in(stored_book: StoredCodebook) -> Codebook | None:
    """Read the codebook that a file of the ledger states; None if it can't be trusted.

    Its text can't be read, or the definitions in it have another digest than the one stated beside it.
    """
    try:
        book = codebook_of_text(stored_book.text)
    except ManifestError:
        return None
    return book if book.definition() == stored_book.definition else None


@cache
def _builtin_books() -> tuple[Codebook, ...]:
    """Return the codebooks that every installation has."""
    return tuple(builtin_codebook(name) for name in BUILTIN)


class Meanings:
    """Groups of definitions that mean the same, as people declared in the headers of a ledger's files.

    Parameters
    ----------
    headers : iterable of Header
    books : iterable of Codebook
        Further codebooks whose definitions have names (`names`).
    """

    def __init__(self, headers: Iterable[Header], books: Iterable[Codebook] = ()) -> None:
        """Group the definitions that mean the same, as the headers of a ledger's files declare it.

        A definition is known by its digest. The groups are kept as a disjoint-set forest (union-find).
        """
        # Digest -> a lower digest of its group. The group's lowest digest has no entry and represents it.
        self._lower_of_group: dict[str, str] = {}
        self._books = [*books]  # all codebooks that can be read: they give the definitions their names
        for header in headers:
            if header.codebook is None:
                continue
            book = codebook_in(header.codebook)
            if book is not None:
                self._books.append(book)
            for other_definition in header.same_meaning:
                self._join(header.codebook.definition, other_definition)

    def names(self) -> dict[str, str]:
        """Name the known definitions, for messages: by codebook and version, such as `mybook, version 2`.

        Several definitions may mean the same. They have one name, that of the definition that represents them
        (`representative`); if its codebook is not known, that of the first codebook that is.

        Returns
        -------
        dict
            Digest -> name, for each definition that represents those of built-in codebooks, of the ledgers'
            headers or of the further codebooks. A name that is ambiguous, because somebody changed the text
            of a codebook and not its version, is followed by the beginning of the digest.
        """
        name_of: dict[str, str] = {}  # representative definition -> name
        for book in [*_builtin_books(), *self._books]:
            definition = book.definition()
            representative = self.representative(definition)
            is_first_of_meaning = representative not in name_of
            represents_itself = definition == representative
            if is_first_of_meaning or represents_itself:
                name_of[representative] = f"{book.name}, version {book.version}"

        n_of_name = Counter(name_of.values())
        names = {}
        for definition, name in name_of.items():
            is_ambiguous = n_of_name[name] > 1
            names[definition] = f"{name} ({definition[:SHOWN_OF_DIGEST]})" if is_ambiguous else name
        return names

    def name(self, definition: str) -> str:
        """Return the name of a definition (`names`); the beginning of its digest if it has none."""
        return self.names().get(self.representative(definition), definition[:SHOWN_OF_DIGEST])

    def _join(self, definition: str, other: str) -> None:
        """Join the groups of two definitions into one: all of both mean the same.

        A group is represented by its lowest digest. So of the two representatives, the higher one is led to
        the lower one, which then represents both groups: whoever joins them, in any order, gets the same.
        """
        lower, higher = sorted((self.representative(definition), self.representative(other)))
        is_one_group_already = lower == higher
        if not is_one_group_already:
            self._lower_of_group[higher] = lower

    def representative(self, definition: str) -> str:
        """Return the digest that represents all definitions of the same meaning: the lowest one."""
        while definition in self._lower_of_group:
            definition = self._lower_of_group[definition]
        return definition


@dataclass(frozen=True, slots=True)
class ChangedText:
    """A level or concept that two codebooks define differently.

    Attributes
    ----------
    name : str
        Name of the level or concept; empty for the construct as a whole.
    before, now : str
        Its text in the earlier codebook and in today's; empty if a codebook lacks it or does not define it.
    """

    name: str
    before: str
    now: str


def changed_texts(before: Codebook, now: Codebook, language: str = "en") -> list[ChangedText]:
    """List the levels and concepts whose texts differ between two codebooks, with both texts.

    The English texts decide whether they differ, as a codebook's definition is computed from these. The texts
    are given in `language`, or in English if the translations do not differ.
    """
    english = _TextsOfBoth(_texts_of(before), _texts_of(now))
    translated = _TextsOfBoth(_texts_of(before, language), _texts_of(now, language))
    changed = []
    for name in english.names():
        if not english.differ(name):
            continue
        shown = translated if translated.differ(name) else english
        texts = ChangedText(
            name=_title(name, now, language),
            before=shown.before.get(name, ""),
            now=shown.now.get(name, ""),
        )
        changed.append(texts)
    return changed


class _TextsOfBoth(NamedTuple):
    """The texts of two codebooks in one language, by name of the level or concept."""

    before: dict[str, str]
    now: dict[str, str]

    def names(self) -> list[str]:
        """List the names in either codebook, those of today's first."""
        return list(dict.fromkeys([*self.now, *self.before]))

    def differ(self, name: str) -> bool:
        """Whether the texts of a level or concept differ; one that is missing has an empty text."""
        return self.before.get(name, "") != self.now.get(name, "")


def _title(name: str, book: Codebook, language: str) -> str:
    """Return the translated title of a level or concept; its name without one, as in English."""
    parts: tuple[Level | Concept, ...] = (*book.levels, *book.concepts)
    for part in parts:
        if part.name == name and language in part.translations:
            return part.in_language(language).title
    return name


def _texts_of(book: Codebook, language: str = ENGLISH) -> dict[str, str]:
    """Return the texts of a codebook that a judge reads, by name of the level or concept.

    The text of the construct as a whole has an empty name. A text without a translation is in English.
    """
    texts = {"": book.constructs.get(language, book.construct)}
    for level in book.levels:
        translated = level.in_language(language)
        texts[level.name] = _joined(": ", translated.title, translated.means)
    for concept in book.concepts:
        texts[concept.name] = _text_of_concept(concept, language)
    return texts


def _text_of_concept(concept: Concept, language: str) -> str:
    """Write what a judge reads of a concept.

    A translation has only a title and a meaning; the original also has a group, a definition and instances.
    """
    if language in concept.translations:
        translated = concept.in_language(language)
        return _joined("; ", translated.title, translated.means)
    instances = [f"{instance.name} ({', '.join(instance.examples)})" for instance in concept.instances]
    return _joined("; ", concept.name, concept.group, concept.definition, concept.means, *instances)


def _joined(separator: str, *texts: str) -> str:
    """Join the texts that are not empty."""
    return separator.join(text for text in texts if text)
