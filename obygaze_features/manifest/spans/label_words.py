"""Tell whether a text is a label: a level or concepts of a codebook, in its spellings or a person's."""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, TypeVar

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import Concept, Level, spellings_of
from obygaze_features.manifest.spans.names import (
    SEPARATORS_OF_SCRIPTS,
    suggestion,
    with_usual_separators,
    without_zeros,
)
from obygaze_features.templates import packaged

TRANSLATIONS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = packaged(
    __package__, "label_translations.toml"
)
"""For `levels` and for `concepts`: title of a level, or name of a concept -> its words in other languages."""

NO_CONCEPTS: Final = {
    "-", "--", "---", "/", ".", "n/a", "na", "n.a.", "none", "nil", "no concept", "no concepts", "nothing",
    "keine", "keines", "keins", "kein", "nichts", "aucun", "aucune", "rien", "néant", "ninguno", "ninguna",
    "nada", "nessuno", "nessuna", "niente", "nenhum", "nenhuma", "∅", "0", "none of these", "none of them",
    "none of the above", "keines davon", "keines der genannten", "nichts davon", "aucun de ceux-ci",
    "aucune de ces", "aucun concept", "kein konzept", "keine konzepte", "nessun concetto",
    "nessuno di questi", "ningún concepto", "ninguno de estos", "×", "[]", "geen", "ingen", "inga", "brak",
    "null", "nan",
}  # fmt: skip
"""What people write for no concept, as names are compared; where the codebook has such a word, it is that."""

NO_LEVEL: Final = {"-", "--", "---", "n/a", "na", "n.a.", "?"}
"""What people write where a level is missing. `none` is no such word: it may be the lowest level."""

SIGNS: Final = ";\n"
"""What always stands between concepts; a comma does where no concept of the codebook has one."""

MAX_COMMAS = 8
"""How many commas a label may have: so many further pieces are tried as one label with the first."""

_QUOTED = re.compile(r"""'((?:[^'\\]|\\.|'(?![\s,\]]|$)){0,200}+)'|"((?:[^"\\]|\\.){0,200}+)\"""")
"""A text of a list as programs write it: ['a', "b's"]; none is longer than a label may be."""

_MORE_SIGNS = re.compile(r"[|+&/]|\b(?i:and|und|et)\b|(?<=\w)\s(?:y|e|og|och|en|i)\s(?=\w)|\s[-–—]\s")
"""What stands between concepts only where it divides a text into words of the codebook; E is a code."""


_DIVIDES = re.compile(rf"[\[,{SIGNS}{''.join(SEPARATORS_OF_SCRIPTS)}]|{_MORE_SIGNS.pattern}")
"""What may stand between the labels of a text that lists several, or before the first of them."""

_BETWEEN_SPELLINGS = re.compile(r"[()\[\]=:]|\s[-–—]\s")
"""What stands between a label and its other spelling."""

_LETTERLESS = re.compile(r"[\W\d_]*+")
"""A text without letters, such as a time or a number."""


MAX_KEPT: Final = 1 << 14
LONGEST_KEPT: Final = 200
"""Texts whose meaning is kept, and characters of them: a long text may list very many parts."""

R = TypeVar("R")


def _cached_for_short_texts(function: Callable[[str], R]) -> Callable[[str], R]:
    """Return a function of a text with a cache; texts longer than `LONGEST_KEPT` are not cached."""
    cached = lru_cache(MAX_KEPT)(function)

    def call(text: str) -> R:
        """Call the function, or return its earlier result for a short text."""
        if len(text) > LONGEST_KEPT:
            return function(text)
        return cached(text)

    return call


class Labels(NamedTuple):
    """The level ("" if there is none) and the concepts that a text says, by the codebook's names."""

    level: str
    concepts: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The level, if there is one, and the concepts."""
        return (self.level, *self.concepts) if self.level else self.concepts


class LabelWords:
    """The words of a codebook: names, titles and synonyms of its levels and concepts.

    A person may explain words. Their labels are looked up among the codebook's own words, and a word that is
    explained has this meaning alone, though it is a word of the codebook too: with 0=2 and 2=0 a scale is
    turned round, and in whatever order words are explained, they mean the same.

    Parameters
    ----------
    codebook
        The codebook of the import.
    meanings
        The words that a person explains, and the level or concept that each stands for; "" if it stands for
        neither, and `yes` if it says that the label in the heading of its column is there (`no`: that it is
        not), unless the codebook has a label of that name.

    Raises
    ------
    ManifestError
        A word would stand for a label that the codebook does not have, or for two labels.
    """

    def __init__(self, codebook: Codebook, meanings: Mapping[str, str] | None = None) -> None:
        """Collect the spellings of levels and concepts, and the words that the person explains."""
        self.codebook = codebook
        self._meanings = dict(meanings or {})  # as given, for `with_guesses` and messages

        # 1. The codebook's words: spelling of a level or concept -> its name. First as `word` writes
        # spellings, so that `s` and `S` may be two labels.
        self._codebook_levels = spellings_of(codebook.levels, word)
        self._codebook_concepts = spellings_of(codebook.concepts, word)
        # Then without case at all, as the codebook itself finds labels (`Codebook.level_spelled`): `s` is S
        # if nothing else is called `s`.
        self._levels_without_case = spellings_of(codebook.levels)
        self._concepts_without_case = spellings_of(codebook.concepts)

        # 2. The person's words, in the form in which they are compared (`_key_of_word`).
        self._words_for_yes = self._words_explained_as("yes")
        self._explained = self._explained_words()  # word -> the labels that the person says it stands for
        self._keys_read = set[str]()  # all texts that `note_read` met in files

        # 3. Both together: word -> name. A word that the person explains has the person's meaning alone.
        self._levels = _without_keys(self._codebook_levels, self._explained)
        self._concepts = _without_keys(self._codebook_concepts, self._explained)
        for explained_word, labels in self._explained.items():
            self._add(explained_word, labels)

        # Cached, as a tier or a column repeats the same few texts.
        self.labels_of = _cached_for_short_texts(self._labels_of)
        self.level_of = _cached_for_short_texts(self._level_of)
        self.concept_of = _cached_for_short_texts(self._concept_of)
        self.parts_of = _cached_for_short_texts(self._parts_of)

    def _explained_words(self) -> dict[str, Labels]:
        """Return word, as words are compared -> the labels that the person says it stands for.

        A word for no, or for no label, has `Labels("", ())`. Words for yes are left out: which label they
        stand for depends on the heading of their column.

        Raises
        ------
        ManifestError
            A label is none of the codebook, or a word stands for two, as `Nah` and `nah` with two labels.
        """
        explained: dict[str, Labels] = {}
        first_text_of_word: dict[str, str] = {}  # word as compared -> as the person wrote it first
        words_for_no = self._words_explained_as("no")
        for text, label in self._meanings.items():
            key = _key_of_word(text)
            if key in self._words_for_yes:
                continue
            stands_for_no_label = not label or key in words_for_no
            labels = Labels("", ()) if stands_for_no_label else self._labels_named(text, label)
            if key not in explained:
                explained[key] = labels
                first_text_of_word[key] = text
            elif explained[key] != labels:
                first_text = first_text_of_word[key]
                first_label = self._meanings[first_text]
                raise ManifestError(
                    f"word {text!r} is {label!r}, and {first_text!r}, which is the same word, "
                    f"{first_label!r}: give one of the two"
                )
        return explained

    def _words_explained_as(self, answer: str) -> set[str]:
        """Return the words that the person explains as an answer, `yes` or `no`, by `--word WORD=yes`.

        If the codebook has a label that is itself called so, the words stand for this label, and none for the
        answer.
        """
        is_answer_a_label = answer in self._codebook_levels or answer in self._codebook_concepts
        if is_answer_a_label:
            return set()
        return {_key_of_word(text) for text, label in self._meanings.items() if plain(label) == answer}

    def _labels_named(self, text: str, label: str) -> Labels:
        """Return the level or concept that a word stands for, by the codebook's own words.

        Raises
        ------
        ManifestError
            The label is no level or concept of the codebook.
        """
        key = word(label)
        if key in self._codebook_levels:
            return Labels(self._codebook_levels[key], ())
        if key in self._codebook_concepts:
            return Labels("", (self._codebook_concepts[key],))
        names = (*self.codebook.level_names, *self.codebook.concept_names)
        raise ManifestError(
            f"word {text!r}: {label!r} is no level or concept of the codebook "
            f"{self.codebook.name!r}{suggestion(label, names)}"
        )

    def _add(self, key: str, labels: Labels) -> None:
        """Let a word stand for a level, for concepts, or both; nothing is added for one that is no label.

        `key` is the word in the form in which words are compared (`_key_of_word`).
        """
        if labels.level:
            self._levels[key] = labels.level
        for concept in labels.concepts:
            self._concepts[key] = concept

    def with_guesses(self, guesses: Mapping[str, str] | None = None) -> "LabelWords":
        """Return a copy of these words with translations and guesses added.

        Words that have a meaning keep it. So what is added first counts: the codebook's own translations,
        then those of `label_translations.toml`, then the guesses (word -> label).
        """
        copy = LabelWords(self.codebook, self._meanings)
        copy._add_if_unknown(_translated_titles(self.codebook))

        level_titles = {plain(level.title or level.name) for level in self.codebook.levels}
        for title, translations in TRANSLATIONS["levels"].items():
            if title in level_titles:
                level = self._codebook_levels[title]  # a title is a spelling of its level
                copy._add_if_unknown(dict.fromkeys(translations, level))

        concept_names = set(map(plain, self.codebook.concept_names))
        for name, translations in TRANSLATIONS["concepts"].items():
            if name in concept_names:
                concept = self._codebook_concepts[name]
                copy._add_if_unknown(dict.fromkeys(translations, concept))

        copy._add_if_unknown(guesses or {})
        return copy

    def _add_if_unknown(self, label_of_word: Mapping[str, str]) -> None:
        """Add the words that have no meaning yet, each with the label that it stands for."""
        for text, label in label_of_word.items():
            if not self._is_label(text):
                self._add(_key_of_word(text), self._labels_named(text, label))

    @property
    def spellings(self) -> dict[str, str]:
        """Word -> the level or concept that it stands for, for all words."""
        return {**self._concepts, **self._levels}

    @property
    def ambiguous_levels(self) -> set[str]:
        """The levels of which a spelling is also a spelling of a concept."""
        shared_spellings = self._levels.keys() & self._concepts.keys()
        return {self._levels[spelling] for spelling in shared_spellings}

    def explained(self, text: str) -> Labels | None:
        """Return the level or concept that a whole text stands for by the person's options (`--word`).

        Returns
        -------
        `Labels("", ())` if the person says that it stands for no label; None if they say nothing of it.
        """
        stripped = text.strip()
        # First as it is written, then without decimals: 2.0 is the word 2, unless 2.0 is a word itself. A
        # word of the codebook is found before the person's word for the other form.
        as_written = word(stripped)
        without_decimals = _key_of_word(stripped)
        for key in (as_written, without_decimals):
            if key in self._explained:
                return self._explained[key]
            is_word_of_codebook = key in self._levels or key in self._concepts
            if is_word_of_codebook:
                return None
        # The case of a single letter counts, but where `s` is no word, it is the S that the person explains.
        is_letter = len(stripped) == 1
        return self._explained.get(stripped.swapcase()) if is_letter else None

    def is_yes(self, text: str) -> bool:
        """Return whether the person says that a mark means yes: the label in its heading is there."""
        return _key_of_word(text.strip()) in self._words_for_yes

    def note_read(self, text: str) -> None:
        """Remember that a text of labels was read: `words_not_read` tells which explained words none had.

        An explained word may be the whole text, one of the labels that it lists (`Body; Kuss`), or one of two
        spellings of a label (`K (Kuss)`).
        """
        if not self._meanings:  # no words are explained, so that none can be missing
            return
        spellings = _BETWEEN_SPELLINGS.split(text)
        for words in (text, *self.parts_of(text), *spellings):
            self._keys_read.add(_key_of_word(words.strip()))

    @property
    def words_not_read(self) -> dict[str, str]:
        """The words that the person explains and that are nowhere in the files, with the labels they give.

        A word is there if it is a whole cell, or one of several labels in a cell (`note_read`).
        """
        return {
            word: label for word, label in self._meanings.items() if _key_of_word(word) not in self._keys_read
        }

    def _level_of(self, text: str) -> str:
        """Return the level that a whole text stands for; "" if it stands for none."""
        explained = self.explained(text)
        if explained is not None:
            return explained.level  # what the person says comes first

        # The most exact form counts: as it is written (`word` keeps the case of a single letter), then
        # without case, then both without decimals, as 2.0 is the level 2.
        without_decimals = without_zeros(text)
        for key in (word(text.strip()), plain(text), word(without_decimals), plain(without_decimals)):
            if key in self._levels:
                return self._levels[key]
        level = self._levels_without_case.get(plain(text))
        return level or self._label_spelled_twice(text, self._levels)

    def _concept_of(self, text: str) -> str:
        """Return the concept that a whole text stands for; "" if it stands for none."""
        explained = self.explained(text)
        if explained is not None:
            return "".join(explained.concepts)  # one, or none; what the person says comes first

        # The most exact form counts: as it is written (`word` keeps the case of a single letter), then
        # without case.
        for key in (word(text.strip()), plain(text)):
            if key in self._concepts:
                return self._concepts[key]
        concept = self._concepts_without_case.get(plain(text))
        return concept or self._label_spelled_twice(text, self._concepts)

    def _label_spelled_twice(self, text: str, names: Mapping[str, str]) -> str:
        """Return the label of a text that spells it twice, such as `S (Sure)`; "" for other texts.

        `names` is spelling -> name, of all levels or of all concepts.
        """
        parts = [part.strip() for part in _BETWEEN_SPELLINGS.split(text) if part.strip()]
        if len(parts) != 2:
            return ""
        first_label, second_label = [names.get(word(part), "") for part in parts]
        return first_label if first_label == second_label else ""

    def is_no_concept(self, text: str) -> bool:
        """Return whether a text says that there is no concept."""
        return self._says_nothing(text, NO_CONCEPTS) and not self.concept_of(text)

    def is_no_level(self, text: str) -> bool:
        """Return whether a text says that there is no level."""
        return self._says_nothing(text, NO_LEVEL) and not self.level_of(text)

    def is_explained_as_nothing(self, text: str) -> bool:
        """Return whether a person says that a text stands for no label."""
        return self.explained(text) == Labels("", ())

    def _says_nothing(self, text: str, usual_words: set[str]) -> bool:
        """Return whether a text stands for no label: it is a usual word for that, or the person says so."""
        if plain(text) in usual_words:
            return True
        person_explains_words = bool(self._explained)  # looked at first, as this takes less time
        return person_explains_words and self.is_explained_as_nothing(text)

    def with_usual_separators(self, text: str) -> str:
        """Write commas and semicolons of other scripts as `,` and `;`, unless the whole text is a label."""
        if self._is_label(text.strip()):
            return text
        return with_usual_separators(text, self.codebook.spellings)

    def _parts_of(self, text: str) -> tuple[str, ...]:
        """Split a text into the labels that it lists.

        - A list in square brackets is split into its texts.
        - Semicolons and line breaks always separate labels.
        - Commas do so unless they are in brackets or inside a label, or a concept of the codebook has one.
        - Other signs that people write (`+`, `/`, `|`, "and") separate the parts of a text that is no label
          itself, if one of the parts is a label.
        """
        text = self.with_usual_separators(text)
        if text.startswith("[") and text.endswith("]"):
            return tuple(texts_of_list(text))
        parts: list[str] = []
        for piece in re.split(f"[{SIGNS}]", text):
            for part in self._divided_at_commas(piece.strip()):
                parts += self._further_divided(part)
        return tuple(parts)

    def _divided_at_commas(self, text: str) -> list[str]:
        """Split a text at its commas, except those inside a label; the longest possible label is taken.

        A text stays whole if it is a label itself, or if a concept of the codebook has a comma.
        """
        if not text:
            return []
        if "," not in text or self._is_label(text) or not self.codebook.commas_separate_concepts:
            return [text]
        pieces = [piece.strip() for piece in split_at_commas(text)]

        known_words = (*self._levels, *self._concepts, *self._explained)
        has_word_with_comma = any("," in known for known in known_words)
        if not has_word_with_comma:
            return [piece for piece in pieces if piece]

        parts = []
        start = 0
        while start < len(pieces):
            end = self._end_of_longest_label(pieces, start)
            parts.append(", ".join(pieces[start:end]))
            start = end
        return [part for part in parts if part]

    def _end_of_longest_label(self, pieces: Sequence[str], start: int) -> int:
        """Return the index after the last piece of the longest label that begins with the piece at `start`.

        If no label of several pieces begins with it, the piece stands alone.
        """
        last_end = min(len(pieces), start + MAX_COMMAS + 1)
        for end in range(last_end, start + 1, -1):
            if self._is_label(", ".join(pieces[start:end])):
                return end
        return start + 1

    def _further_divided(self, text: str) -> list[str]:
        """Split a text at `+`, `/`, "and" and the like, if it is no label itself and one of its parts is."""
        if self._is_label(text) or _MORE_SIGNS.search(text) is None:
            return [text]
        parts = further_parts(text)
        return parts if any(self._is_label(part) for part in parts) else [text]

    def _is_label(self, text: str) -> bool:
        """Return whether a whole text is a word whose meaning is known: a level, a concept, or no label.

        The codebook has it, or the person has explained it by `--word`.
        """
        key = word(text)
        return key in self._levels or key in self._concepts or key in self._explained

    @cached_property
    def _has_letterless_words(self) -> bool:
        """Whether a word of a level or concept has no letters, such as the code 2."""
        return any(_LETTERLESS.fullmatch(known) for known in (*self._levels, *self._concepts))

    def _labels_of(self, text: str) -> Labels | None:
        """Return the level and concepts of a text; None if a part of it is no label, or it has two levels."""
        # For speed: times and numbers, which fill most columns of a long table, are no labels.
        if _LETTERLESS.fullmatch(text) and not self._has_letterless_words:
            return None

        key = word(text)
        level = self._levels.get(key)
        if not level:  # perhaps a number of a level, such as 2.0
            level = self._levels.get(word(without_zeros(text)))
        if not level:
            level = self._label_spelled_twice(text, self._levels)
        if level:
            return Labels(level, ())
        if key in self._concepts:
            return Labels("", (self._concepts[key],))
        # For speed: most names and remarks of a long table have no sign that may separate labels.
        parts = self.parts_of(text) if may_be_divided(text) else (text,)
        return self._labels_of_parts(parts)

    def _labels_of_parts(self, parts: Iterable[str]) -> Labels | None:
        """Return the level and concepts of a text's parts; None if one is no label, or two are levels.

        Parts that a person explains as no label do not count. A text says one level and any number of
        concepts. So of the words that the codebook has both as a level and as a concept, the first is the
        level, if no other part is surely one; all others are concepts.
        """
        certain_levels = []  # of words that are no concept
        concepts = []
        first_ambiguous = ""  # the first word that is both; it is decided on when all parts are known
        for part in parts:
            key = word(part)
            is_level = key in self._levels
            is_concept = key in self._concepts
            if is_level and is_concept and not first_ambiguous:
                first_ambiguous = key
            elif is_concept:
                concepts.append(self._concepts[key])
            elif is_level:
                certain_levels.append(self._levels[key])
            elif not self.is_explained_as_nothing(part):
                return None
        if len(certain_levels) > 1:
            return None
        if certain_levels and first_ambiguous:
            concepts.insert(0, self._concepts[first_ambiguous])
        level = certain_levels[0] if certain_levels else self._levels.get(first_ambiguous, "")
        return Labels(level, tuple(concepts)) if level or concepts else None


def says_no_level(text: str) -> bool:
    """Return whether a text is what people write where a level is missing, such as `n/a` or `-`.

    A codebook may have such a word as a level all the same: ask `LabelWords.is_no_level` where there is one.
    """
    return plain(text) in NO_LEVEL


def further_parts(text: str) -> list[str]:
    """Split a text at the signs that people write between concepts, besides semicolons and commas.

    Examples
    --------
    >>> further_parts("R+V"), further_parts("corps et posture")
    (['R', 'V'], ['corps', 'posture'])
    """
    parts = [part.strip() for part in _MORE_SIGNS.split(text)]
    return [part for part in parts if part]


def may_be_divided(text: str) -> bool:
    """Return whether a text has a sign that may separate labels, or an opening square bracket.

    Examples
    --------
    >>> may_be_divided("Body, Look"), may_be_divided("R+V"), may_be_divided("Look")
    (True, True, False)
    """
    return _DIVIDES.search(text) is not None


def texts_of_list(text: str) -> list[str]:
    r"""Return the texts of a list that a program wrote, in square brackets, with or without quotes.

    Examples
    --------
    >>> texts_of_list("['Look', \"Body's\"]"), texts_of_list("[Look, Body]"), texts_of_list("[]")
    (['Look', "Body's"], ['Look', 'Body'], [])
    """
    quoted_texts = [(single or double).strip() for single, double in _QUOTED.findall(text)]
    text_in_brackets = text[1:-1]
    texts = quoted_texts or [part.strip() for part in text_in_brackets.split(",")]
    return [part for part in texts if part]


def split_at_commas(text: str) -> list[str]:
    """Split a text at the commas that are not in brackets; brackets that are not closed do not count.

    Examples
    --------
    >>> split_at_commas("Body (nudity, parts), Look")
    ['Body (nudity, parts)', ' Look']
    """
    # From the end, so that only a bracket with a closing one behind it holds commas.
    places_of_commas = []
    is_in_brackets = False
    for index in range(len(text) - 1, -1, -1):
        sign = text[index]
        if sign in ")]":
            is_in_brackets = True
        elif sign in "([":
            is_in_brackets = False
        elif sign == "," and not is_in_brackets:
            places_of_commas.append(index)
    places_of_commas.reverse()

    ends = [*places_of_commas, len(text)]
    starts = [0, *(index + 1 for index in places_of_commas)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def word(text: str) -> str:
    """Return the form in which labels are compared: without case and accents' forms (`plain`).

    The case of a single letter counts, as codes of behaviours may be `s` and `S`.
    """
    return text if len(text) == 1 else plain(text)


def _key_of_word(text: str) -> str:
    """Return the form in which words that a person explains are compared; 2.0 and 2 are one word."""
    return word(without_zeros(text))


def _without_keys(name_of_spelling: Mapping[str, str], spellings: Container[str]) -> dict[str, str]:
    """Return the names of spellings, but for some of the spellings."""
    return {spelling: name for spelling, name in name_of_spelling.items() if spelling not in spellings}


def _translated_titles(codebook: Codebook) -> dict[str, str]:
    """Return title in another language -> name of the level or concept.

    A title that two of them share is left out, as it could mean either.
    """
    name_of_title: dict[str, str] = {}
    ambiguous = set()
    parts: tuple[Level | Concept, ...] = (*codebook.levels, *codebook.concepts)
    for part in parts:
        for translation in part.translations.values():
            title = translation.title
            if not title:
                continue
            first_name = name_of_title.setdefault(title, part.name)
            if first_name != part.name:
                ambiguous.add(title)
    return {title: name for title, name in name_of_title.items() if title not in ambiguous}
