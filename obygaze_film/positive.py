"""Decide what a model calls positive, levels of a codebook or a concept, for all that names or counts it."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

from obygaze_features.manifest import BUILTIN, PLANTED, Clip, Codebook, builtin_codebook
from obygaze_film.schema import ModelRecord


class Meaning(NamedTuple):
    """A level or a concept that a model finds: its name, its title if that differs, and what it means.

    Title and meaning are empty where the codebook has none, or is not known.
    """

    name: str
    title: str
    text: str

    @property
    def titled(self) -> str:
        """The name with its title."""
        return f"{self.name} ({self.title})" if self.title else self.name


@dataclass(frozen=True, slots=True)
class Positive:
    """What a model calls positive.

    Attributes
    ----------
    meanings : tuple of Meaning
        Of its positive levels, or of its concept.
    is_concept : bool
        Whether it is a concept: then clips of any level are positive that have it.
    otherwise : str
        What to call it where there is neither, as of a bank of concepts that decides nothing.
    codebook : str
        Name of the codebook; empty if unknown.
    is_planted : bool
        Whether the labels that the model was trained on were planted by a program (`PLANTED`).
    """

    meanings: tuple[Meaning, ...]
    is_concept: bool
    otherwise: str
    codebook: str = ""
    is_planted: bool = False

    def concept_name(self, name: str, language: str) -> str:
        """Name a concept of a built-in codebook in a language; one of a lab's own keeps its name."""
        if self.codebook not in BUILTIN:
            return name
        for concept in builtin_codebook(self.codebook).concepts:
            if concept.name == name:
                return concept.in_language(language).title
        return name

    def in_language(self, language: str) -> "Positive":
        """Give levels and concepts of a built-in codebook their titles and meanings in a language.

        Those of a lab's own codebook stay as they are.
        """
        if self.codebook not in BUILTIN:
            return self
        codebook = builtin_codebook(self.codebook)
        levels = {level.name: level for level in codebook.levels}
        concepts = {concept.name: concept for concept in codebook.concepts}
        meanings = []
        for meaning in self.meanings:
            name, title, text = meaning
            part = concepts.get(name) if self.is_concept else levels.get(name)
            if part is not None:
                told = part.in_language(language)
                is_builtin_text = text == part.in_language("en").means
                text = told.means if is_builtin_text else text
                if self.is_concept:
                    name = told.title
                else:
                    title = "" if told.title == name else told.title
            meanings.append(Meaning(name, title, text))
        return replace(self, meanings=tuple(meanings))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the levels, or of the concept."""
        return tuple(meaning.name for meaning in self.meanings)

    @property
    def text(self) -> str:
        """The names as one text."""
        return " / ".join(self.names) or self.otherwise

    @property
    def titled(self) -> str:
        """The names with their titles as one text."""
        return " / ".join(meaning.titled for meaning in self.meanings) or self.otherwise

    def calls(self, clip: Clip, labels: Collection[str]) -> bool | None:
        """Say whether a labelled clip is positive; None where it has no level, or its level does not count.

        A doubt is of what was asked: that of a level is none of a concept.

        Parameters
        ----------
        clip : Clip
        labels : collection of str
            The levels that count (`Codebook.labels`). A positive level counts even if it is not among them.
        """
        if self.is_concept:
            # Who was not sure of the level still says whether the concept is there.
            return None if clip.level is None else self.names[0] in clip.concepts
        if clip.level in self.names:
            return True
        return None if clip.level not in labels else False

    def unknown_to(self, codebook: Codebook) -> str:
        """Return the first name that a codebook lacks; empty if it has all."""
        known = codebook.concept_names if self.is_concept else codebook.level_names
        for name in self.names:
            if name not in known:
                return name
        return ""

    def never_named(self, clips: Collection[Clip]) -> bool:
        """Whether it is a concept, and no concept at all is named in these clips.

        Whoever gives levels alone does not say that a concept is absent.
        """
        return self.is_concept and not any(clip.concepts for clip in clips)


def positive_of(model: ModelRecord) -> Positive:
    """Tell what a model calls positive.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> film = obygaze_film.score_film(of.open_store("stores/more"), ["kept/linear.model"], movie="film6")
    >>> found = positive_of(film.model())
    >>> found.titled, found.calls(of.Clip("c", "film6", level="HN"), ("EN", "HN", "S"))
    ('S (Sure)', False)
    """
    names = [model.concept] if model.concept else model.positive
    meanings = []
    for name in names:
        title = "" if model.concept else level_title(model, name)
        meanings.append(Meaning(name, "" if title == name else title, model.means.get(name, "")))
    return Positive(
        tuple(meanings),
        bool(model.concept),
        model.task_title,
        codebook=model.codebook,
        is_planted=model.labelled_by == [PLANTED],
    )


def level_title(model: ModelRecord, name: str) -> str:
    """Return the title of a level of a model's codebook; empty where it has none, or it is not known."""
    if model.codebook in BUILTIN and not model.titles:
        titles = {level.name: level.title for level in builtin_codebook(model.codebook).levels}
        return titles.get(name, "")
    return model.titles.get(name, "")
