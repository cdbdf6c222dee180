"""Keep under which definitions people decided, and tell which definitions mean the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import ENGLISH, Codebook, Concept, Level, codebook_of_text
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


class Meanings:
    """Groups of definitions that mean the same, as people declared in the headers of a ledger's files.

    Parameters
    ----------
    headers : iterable of Header
    """

    def __init__(self, headers: Iterable[Header]) -> None:
        # Digest -> a lower digest that means the same; the lowest of a group has no entry.
        self._lower_of: dict[str, str] = {}
        for header in headers:
            if header.codebook is not None:
                for other in header.same_meaning:
                    self._join(header.codebook.definition, other)

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
    """List the levels and concepts that two codebooks define differently, with both texts.

    The English texts decide what changed. The texts returned are those in `language` if they differ too, else
    the English ones.
    """
    english_before = _texts_of(before)
    english_now = _texts_of(now)
    translated_before = _texts_of(before, language)
    translated_now = _texts_of(now, language)
    changed = []
    for name in dict.fromkeys([*english_now, *english_before]):
        text_before = english_before.get(name, "")
        text_now = english_now.get(name, "")
        if text_before == text_now:
            continue
        if translated_before.get(name) != translated_now.get(name):
            text_before = translated_before.get(name, "")
            text_now = translated_now.get(name, "")
        changed.append(ChangedText(_title(name, now, language), text_before, text_now))
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
        texts[level.name] = ": ".join(filter(None, (translated.title, translated.means)))
    for concept in book.concepts:
        if language in concept.translations:
            translated = concept.in_language(language)
            texts[concept.name] = "; ".join(filter(None, (translated.title, translated.means)))
            continue
        instances = [f"{instance.name} ({', '.join(instance.examples)})" for instance in concept.instances]
        parts = (concept.name, concept.group, concept.definition, concept.means, *instances)
        texts[concept.name] = "; ".join(filter(None, parts))
    return texts
