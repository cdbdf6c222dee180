"""Tell whether a text is a label: a level or concepts of a codebook, in its spellings."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import Concept, Level
from obygaze_features.manifest.spans.names import plain, without_zeros


class Labels(NamedTuple):
    """A level, "" if there is none, and concepts, by the codebook's names."""

    level: str
    concepts: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The level and the concepts."""
        return (self.level, *self.concepts) if self.level else self.concepts


class LabelWords:
    """The words of a codebook: names, titles and synonyms of its levels and concepts."""

    def __init__(self, codebook: Codebook) -> None:
        self.codebook = codebook
        self._levels = _names(codebook.levels)
        self._concepts = _names(codebook.concepts)
        self.labels_of = lru_cache(1 << 14)(self._labels_of)  # a tier says the same again and again

    @property
    def twins(self) -> set[str]:
        """Words that are a level and a concept."""
        return {self._levels[word] for word in self._levels.keys() & self._concepts.keys()}

    def _labels_of(self, text: str) -> Labels | None:
        """Return the labels that a text is made of; None if any part of it is none, or it has two levels."""
        whole = self._levels.get(word(text)) or self._levels.get(word(without_zeros(text)))
        if whole:
            return Labels(whole, ())
        levels, concepts = [], []
        for part in self.codebook.split_concepts(text):
            key = word(part)
            if key in self._levels:
                levels.append(self._levels[key])
            elif key in self._concepts:
                concepts.append(self._concepts[key])
            else:
                return None
        if len(levels) > 1 or not (levels or concepts):
            return None
        return Labels(levels[0] if levels else "", tuple(concepts))


def word(text: str) -> str:
    """Write a label as labels are compared; of one letter, such as a code of behaviour, the case counts."""
    return text if len(text) == 1 else plain(text)


def _names(parts: Sequence[Level | Concept]) -> dict[str, str]:
    """Return the name of each level or concept by its spellings."""
    return {word(spelling): part.name for part in parts for spelling in part.spellings}
