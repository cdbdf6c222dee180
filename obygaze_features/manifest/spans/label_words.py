"""Tell whether a text is a label: a level or concepts of a codebook, in its spellings or a person's."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import Concept, Level
from obygaze_features.manifest.spans.names import plain, suggestion, without_zeros

NO_CONCEPTS: Final = {
    "-", "--", "---", "/", ".", "n/a", "na", "n.a.", "none", "nil", "no concept", "no concepts", "nothing",
    "keine", "keines", "keins", "kein", "nichts", "aucun", "aucune", "rien", "néant", "ninguno", "ninguna",
    "nada", "nessuno", "nessuna", "niente", "nenhum", "nenhuma", "∅", "0",
}  # fmt: skip
"""What people write for no concept, as names are compared; where the codebook has such a word, it is that."""

NO_LEVEL: Final = {"-", "--", "---", "n/a", "na", "n.a.", "?"}
"""What people write where a level is missing. `none` is no such word: it may be the lowest level."""

SIGNS: Final = ";\n"
"""What always stands between concepts; a comma does where no concept of the codebook has one."""

_MORE_SIGNS = re.compile(r"[|+&/]|\b(?:and|und|et|y|e)\b|\s[-–—]\s", re.IGNORECASE)
"""What stands between concepts only where it divides a text into words of the codebook."""


_EXPLAINED = re.compile(r"[()\[\]=:]|\s[-–—]\s")
"""What stands between a label and its other spelling."""


class Labels(NamedTuple):
    """A level, "" if there is none, and concepts, by the codebook's names."""

    level: str
    concepts: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The level and the concepts."""
        return (self.level, *self.concepts) if self.level else self.concepts


class LabelWords:
    """The words of a codebook: names, titles and synonyms of its levels and concepts.

    Parameters
    ----------
    codebook
        Of the import.
    meanings
        Further words, and the level or concept that each stands for; "" for none.

    Raises
    ------
    ManifestError
        A word would stand for what is no level and no concept of the codebook.
    """

    def __init__(self, codebook: Codebook, meanings: Mapping[str, str] | None = None) -> None:
        self.codebook = codebook
        self._levels = _names(codebook.levels)
        self._concepts = _names(codebook.concepts)
        self._nothing = set[str]()
        for text, label in (meanings or {}).items():
            self._add(text, label)
        self.labels_of = lru_cache(1 << 14)(self._labels_of)  # a tier says the same again and again

    def _add(self, text: str, label: str) -> None:
        """Add a word that a person explains."""
        key = word(without_zeros(text))
        if not label:
            self._nothing.add(key)
        elif word(label) in self._levels:
            self._levels[key] = self._levels[word(label)]
        elif word(label) in self._concepts:
            self._concepts[key] = self._concepts[word(label)]
        else:
            names = (*self.codebook.level_names, *self.codebook.concept_names)
            raise ManifestError(
                f"word {text!r}: {label!r} is no level or concept of the codebook "
                f"{self.codebook.name!r}{suggestion(label, names)}"
            )

    @property
    def twins(self) -> set[str]:
        """Words that are a level and a concept."""
        return {self._levels[word] for word in self._levels.keys() & self._concepts.keys()}

    def level_of(self, text: str) -> str:
        """Return the level that a text is, as a column of levels has it; "" if it is none."""
        for spelling in (text.strip(), without_zeros(text)):
            for key in (word(spelling), plain(spelling)):
                if key in self._levels:
                    return self._levels[key]
        same = next((name for name in self.codebook.level_names if plain(name) == plain(text)), "")
        return same or self._explained(text, self._levels)

    def concept_of(self, text: str) -> str:
        """Return the concept that a text is; "" if it is none."""
        known = self._concepts.get(word(text.strip())) or self._concepts.get(plain(text))
        return known or self._explained(text, self._concepts)

    def _explained(self, text: str, names: Mapping[str, str]) -> str:
        """Return the label of a text that says it twice, as `S (Sure)` and `EN = Easy Negative`; else ""."""
        parts = [part.strip() for part in _EXPLAINED.split(text) if part.strip()]
        labels = {names.get(word(part), "") for part in parts}
        return labels.pop() if len(parts) == 2 and len(labels) == 1 else ""

    def is_no_concept(self, text: str) -> bool:
        """Return whether a text says that there is no concept."""
        return self._says_nothing(text, NO_CONCEPTS) and not self.concept_of(text)

    def is_no_level(self, text: str) -> bool:
        """Return whether a text says that there is no level."""
        return self._says_nothing(text, NO_LEVEL) and not self.level_of(text)

    def is_explained_as_nothing(self, text: str) -> bool:
        """Return whether a person says that a text stands for no label."""
        return word(without_zeros(text)) in self._nothing

    def _says_nothing(self, text: str, known: set[str]) -> bool:
        return plain(text) in known or self.is_explained_as_nothing(text)

    def parts_of(self, text: str) -> list[str]:
        """Split a text into the labels that it lists.

        Semicolons, line breaks and commas (where no concept has one) always divide. Other signs that people
        write (`+`, `/`, `|`, "and") divide only a text that is no label, into texts of which one is.
        """
        divided = [text]
        for sign in SIGNS:
            divided = [part for piece in divided for part in piece.split(sign)]
        parts: list[str] = []
        for piece in divided:
            for part in self.codebook.split_concepts(piece):
                parts += self._further_divided(part)
        return parts

    def _further_divided(self, text: str) -> list[str]:
        """Divide a text that is no label at the signs that people write, if that gives labels."""
        if self._is_label(text):
            return [text]
        parts = [part.strip() for part in _MORE_SIGNS.split(text)]
        parts = [part for part in parts if part]
        return parts if any(self._is_label(part) for part in parts) else [text]

    def _is_label(self, text: str) -> bool:
        return word(text) in self._levels or word(text) in self._concepts

    def _labels_of(self, text: str) -> Labels | None:
        """Return the labels that a text is made of; None if any part of it is none, or it has two levels."""
        whole = self._levels.get(word(text)) or self._levels.get(word(without_zeros(text)))
        whole = whole or self._explained(text, self._levels)
        if whole:
            return Labels(whole, ())
        levels, concepts = [], []
        for part in self.parts_of(text):
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
