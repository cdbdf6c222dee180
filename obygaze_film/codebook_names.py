"""Name the levels and concepts of a model's codebook, with what it calls them in other languages.

A built-in codebook has its translations itself; those of a lab's own codebook are in the record of a film.

A concept is called by its translated title. A level that has a title in English keeps its name, with the
translated title beside it: `S (Sûr)`. A level without one is called by its translated title, as its name is
an English word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from obygaze_features.manifest import BUILTIN, Codebook, CodebookTexts, builtin_codebook
from obygaze_film.schema import ModelRecord


class InLanguages(str):
    """A text in English, with the same text in other languages: `claims.Words.translated` writes it in one.

    It is equal to the text in English, which is what records and `--json` keep.
    """

    __slots__ = ("translations",)
    translations: Mapping[str, str]


def in_languages(text: str, translations: Mapping[str, str]) -> InLanguages:
    """Make a text that knows its translations (language -> text); the text itself is the English one."""
    in_all = InLanguages(text)
    in_all.translations = dict(translations)
    return in_all


def told_in(text: str, language: str) -> str:
    """Return a text in a language; in English if it has no translation into it."""
    if isinstance(text, InLanguages):
        return text.translations.get(language, str(text))
    return text


def composed_text(write: Callable[..., str], *texts: str) -> InLanguages:
    """Combine several texts into one, in English and in each language that any of them has.

    Parameters
    ----------
    write : callable
        Composes the texts in one language, such as `"{} ({})".format`.
    texts : str
        Those that are `InLanguages` are translated; the others are the same in each language.

    Examples
    --------
    >>> level, title = in_languages("S", {}), in_languages("Sure", {"fr": "Sûr"})
    >>> both = composed_text("{} ({})".format, level, title)
    >>> both, told_in(both, "fr")
    ('S (Sure)', 'S (Sûr)')
    """
    languages: dict[str, None] = {}  # each that any text has, once
    for text in texts:
        if isinstance(text, InLanguages):
            languages |= dict.fromkeys(text.translations)

    translations = {}
    for language in languages:
        texts_in_language = [told_in(text, language) for text in texts]
        translations[language] = write(*texts_in_language)
    return in_languages(write(*texts), translations)


@dataclass(frozen=True)
class CodebookNames:
    """What a codebook calls levels and concepts.

    Attributes
    ----------
    texts : dict of str to CodebookTexts
        What it says in other languages, by language.
    titles : dict of str to str
        Titles of levels in English.
    builtin : Codebook or None
        The codebook, if it is a built-in one.
    """

    texts: Mapping[str, CodebookTexts]
    titles: Mapping[str, str]
    builtin: Codebook | None = None

    def level(self, name: str) -> InLanguages:
        """Return what a level is called in each language.

        - The name is a code, such as "S" with the English title "Sure": it is the same in all languages.
        - The name is an English word, such as "neutral", and there is no English title: in other languages it
          is translated, such as "neutre".
        """
        is_code = bool(self.titles.get(name))
        if is_code:
            return in_languages(name, {})
        return in_languages(name, self._translated_titles(name))

    def title(self, name: str) -> InLanguages:
        """Return the title that is written beside a level's name, in each language: "Sure" beside "S".

        Empty if the level has no title, or one that is its name.
        """
        english_title = self.titles.get(name, "")
        if not english_title:
            return in_languages("", {})
        title_beside = "" if english_title == name else english_title  # "Sure (Sure)" would say it twice
        return in_languages(title_beside, self._translated_titles(name))

    def titled(self, name: str) -> InLanguages:
        """Return what a level is called, with its title beside it if that differs."""
        return composed_text(beside, self.level(name), self.title(name))

    def concept(self, name: str) -> InLanguages:
        """Return what a concept is called in each language: its translated title, or its name without one."""
        titles = {}
        for language, texts in self.texts.items():
            if name in texts.concepts and texts.concepts[name].title:
                titles[language] = texts.concepts[name].title
        return in_languages(name, titles)

    def means(self, name: str, text: str, *, is_concept: bool) -> InLanguages:
        """Return what a level or a concept means; `text` is its English meaning in a model's record.

        If that is the text of an earlier version of a built-in codebook, it has no translations: those of the
        present version may say something else.
        """
        no_translations: dict[str, str] = {}
        is_of_earlier_version = self.builtin is not None and text != self.builtin.means.get(name, "")
        if not text or is_of_earlier_version:
            return in_languages(text, no_translations)
        meanings = {}  # language -> meaning
        for language, texts in self.texts.items():
            texts_by_name = texts.concepts if is_concept else texts.levels
            if name in texts_by_name and texts_by_name[name].means:
                meanings[language] = texts_by_name[name].means
        return in_languages(text, meanings)

    def construct(self, text: str) -> InLanguages:
        """Return what the levels measure (the construct); `text` is its English description."""
        constructs = {language: texts.construct for language, texts in self.texts.items() if texts.construct}
        return in_languages(text, constructs)

    def _translated_titles(self, name: str) -> dict[str, str]:
        """Return language -> title of a level, of the languages into which its title is translated."""
        titles = {}
        for language, texts in self.texts.items():
            if name in texts.levels and texts.levels[name].title:
                titles[language] = texts.levels[name].title
        return titles


def beside(name: str, title: str) -> str:
    """Write a name with its title beside it, such as `S (Sure)`; the name alone if the title is no other."""
    has_other_title = title not in ("", name)
    return f"{name} ({title})" if has_other_title else name


def names_of(model: ModelRecord) -> CodebookNames:
    """Return what a model's codebook calls levels and concepts, in English (titles) and in other languages.

    A built-in codebook comes with the program, and with it the texts in other languages. Of a lab's own
    codebook there is only what the model's record holds.
    """
    is_builtin = model.codebook in BUILTIN
    if not is_builtin:
        return CodebookNames(texts=model.translations, titles=model.titles)
    codebook = builtin_codebook(model.codebook)
    names = names_in(codebook)
    return CodebookNames(texts=names.texts, titles=model.titles or names.titles, builtin=codebook)


def names_in(codebook: Codebook) -> CodebookNames:
    """Return what a codebook calls its levels and concepts, such as that under which people decided.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook
    >>> str(names_in(builtin_codebook("obygaze12")).titled("S"))
    'S (Sure)'
    """
    texts = {language: codebook.texts(language) for language in codebook.languages}
    titles = {level.name: level.title for level in codebook.levels}
    return CodebookNames(texts, titles)


def concept_names(codebook: Codebook, language: str) -> dict[str, str]:
    """Return name -> title of the concepts of a codebook whose title in a language is not their name."""
    titles = {concept.name: concept.in_language(language).title for concept in codebook.concepts}
    return {name: title for name, title in titles.items() if title != name}
