"""Keep under which definitions people decided, and tell which definitions mean the same."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

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


def stored(book: Codebook) -> StoredCodebook:
    """Return a codebook as headers of a ledger hold it: its text, and the digest of its definitions."""
    return StoredCodebook(book.definition(), book.to_toml())


@cache
def codebook_in(stored_book: StoredCodebook) -> Codebook | None:
    """Read the codebook in a header; None if its text can't be read, or does not agree with its digest."""
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
        # Definitions that mean the same are a group, which its lowest digest represents. Each other digest of
        # the group has an entry here, with a lower one: the entries lead step by step to the lowest (`of`).
        self._lower_of: dict[str, str] = {}
        self._books = [*books]
        for header in headers:
            if header.codebook is None:
                continue
            book = codebook_in(header.codebook)
            if book is not None:
                self._books.append(book)
            for other in header.same_meaning:
                self._join(header.codebook.definition, other)

    def names(self) -> dict[str, str]:
        """Name definitions as sentences do: with the codebook and its version.

        Returns
        -------
        dict
            Digest -> name, for the digests that represent the definitions of built-in codebooks, of the
            headers and of the further codebooks. If two that do not mean the same have the same name, each
            has the beginning of its digest behind the name: somebody changed the text of a codebook and not
            its version.
        """
        name_of: dict[str, str] = {}
        for book in [*_builtin_books(), *self._books]:
            definition = book.definition()
            representing = self.of(definition)
            # Of all codebooks that mean the same, the representing one gives the name, if it is known.
            if representing not in name_of or definition == representing:
                name_of[representing] = f"{book.name}, version {book.version}"
        n_of_name = Counter(name_of.values())
        names = {}
        for definition, name in name_of.items():
            is_unique = n_of_name[name] == 1
            names[definition] = name if is_unique else f"{name} ({definition[:12]})"
        return names

    def name(self, definition: str) -> str:
        """Name a definition as sentences do; one whose codebook is not known by the start of its digest."""
        return self.names().get(self.of(definition), definition[:12])

    def _join(self, definition: str, other: str) -> None:
        """Join the groups of two definitions into one."""
        lower, higher = sorted((self.of(definition), self.of(other)))
        if lower != higher:
            self._lower_of[higher] = lower

    def of(self, definition: str) -> str:
        """Return the digest that represents all definitions of the same meaning: the lowest one."""
        while definition in self._lower_of:
            definition = self._lower_of[definition]
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
    """List the levels and concepts whose English texts differ between two codebooks, with both texts.

    The texts are given in `language`. If only the English texts differ, they are given in English.
    """
    english_before = _texts_of(before)
    english_now = _texts_of(now)
    translated_before = _texts_of(before, language)
    translated_now = _texts_of(now, language)
    changed = []
    for name in dict.fromkeys([*english_now, *english_before]):
        if english_before.get(name, "") == english_now.get(name, ""):
            continue
        is_translation_changed = translated_before.get(name) != translated_now.get(name)
        shown_before = translated_before if is_translation_changed else english_before
        shown_now = translated_now if is_translation_changed else english_now
        title = _title(name, now, language)
        changed.append(ChangedText(title, shown_before.get(name, ""), shown_now.get(name, "")))
    return changed


def _title(name: str, book: Codebook, language: str) -> str:
    """Return the title of a level or concept in a language; its name if it is not translated."""
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
