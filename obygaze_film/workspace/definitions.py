"""Keep under which definitions people decided, and tell which definitions mean the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Codebook, codebook_of_text
from obygaze_film.workspace.ledger_lines import Header, StoredCodebook

UNKNOWN = ""
"""Definition of what does not say under which it was decided."""


def stored(book: Codebook) -> StoredCodebook:
    """Return what a sitting keeps of its codebook."""
    return StoredCodebook(book.definition(), book.to_toml())


@cache
def codebook_in(kept: StoredCodebook) -> Codebook | None:
    """Return a sitting's codebook; None where its text is none, or is not what the digest says."""
    try:
        book = codebook_of_text(kept.text)
    except ManifestError:
        return None
    return book if book.definition() == kept.definition else None


class Meanings:
    """Which definitions mean the same, as people declared at the head of their sittings.

    Parameters
    ----------
    headers : iterable of Header
    """

    def __init__(self, headers: Iterable[Header]) -> None:
        self._first: dict[str, str] = {}
        for header in headers:
            if header.codebook is not None:
                for other in header.same_meaning:
                    self._join(header.codebook.definition, other)

    def _join(self, one: str, other: str) -> None:
        first, second = sorted((self.of(one), self.of(other)))
        if first != second:
            self._first[second] = first

    def of(self, definition: str) -> str:
        """Return the definition that stands for all that mean the same: the lowest of their digests."""
        while definition in self._first:
            definition = self._first[definition]
        return definition


@dataclass(frozen=True, slots=True)
class ChangedText:
    """What two codebooks say of a level or a concept.

    Attributes
    ----------
    name, before, now : str
        Empty where a codebook has none of this name, or does not say what it means.
    """

    name: str
    before: str
    now: str


def changed_texts(before: Codebook, now: Codebook) -> list[ChangedText]:
    """List the levels and concepts that two codebooks define otherwise, with both texts."""
    texts_before, texts_now = _texts_of(before), _texts_of(now)
    changed = []
    for name in dict.fromkeys([*texts_now, *texts_before]):
        one, other = texts_before.get(name, ""), texts_now.get(name, "")
        if one != other:
            changed.append(ChangedText(name, one, other))
    return changed


def _texts_of(book: Codebook) -> dict[str, str]:
    """Write what a judge reads of each level and concept."""
    texts = {"": book.construct}
    for level in book.levels:
        texts[level.name] = ": ".join(filter(None, (level.title or level.name, level.means)))
    for concept in book.concepts:
        instances = [f"{instance.name} ({', '.join(instance.examples)})" for instance in concept.instances]
        parts = (concept.name, concept.group, concept.definition, concept.means, *instances)
        texts[concept.name] = "; ".join(filter(None, parts))
    return texts
