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
    """Return a codebook as a sitting's header holds it: its text, and the digest of its definitions."""
    return StoredCodebook(book.definition(), book.to_toml())


@cache
def codebook_in(kept: StoredCodebook) -> Codebook | None:
    """Return a sitting's codebook; None if its text can't be read, or does not agree with its digest."""
    try:
        book = codebook_of_text(kept.text)
    except ManifestError:
        return None
    return book if book.definition() == kept.definition else None


class Meanings:
    """Groups of definitions that mean the same, as people declared in the headers of their sittings.

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
        """Return the definition that stands for all that mean the same: the lowest of their digests."""
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

    The English texts decide what changed. Those of another language are shown where they differ too.
    """
    texts_before = _texts_of(before)
    texts_now = _texts_of(now)
    told_before = _texts_of(before, language)
    told_now = _texts_of(now, language)
    changed = []
    for name in dict.fromkeys([*texts_now, *texts_before]):
        text_before = texts_before.get(name, "")
        text_now = texts_now.get(name, "")
        if text_before == text_now:
            continue
        if told_before.get(name) != told_now.get(name):
            text_before = told_before.get(name, "")
            text_now = told_now.get(name, "")
        changed.append(ChangedText(_called(name, now, language), text_before, text_now))
    return changed


def _called(name: str, book: Codebook, language: str) -> str:
    """Return what a level or concept is called in a language."""
    parts: tuple[Level | Concept, ...] = (*book.levels, *book.concepts)
    for part in parts:
        if part.name == name and language in part.translations:
            return part.in_language(language).title
    return name


def _texts_of(book: Codebook, language: str = ENGLISH) -> dict[str, str]:
    """Write the text that a judge reads of each level and concept; the name of the construct's is empty."""
    texts = {"": book.constructs.get(language, book.construct)}
    for level in book.levels:
        told = level.in_language(language)
        texts[level.name] = ": ".join(filter(None, (told.title, told.means)))
    for concept in book.concepts:
        if language in concept.translations:
            told = concept.in_language(language)
            texts[concept.name] = "; ".join(filter(None, (told.title, told.means)))
            continue
        instances = [f"{instance.name} ({', '.join(instance.examples)})" for instance in concept.instances]
        parts = (concept.name, concept.group, concept.definition, concept.means, *instances)
        texts[concept.name] = "; ".join(filter(None, parts))
    return texts
