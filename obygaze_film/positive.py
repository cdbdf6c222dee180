"""Decide what a model calls positive, levels of a codebook or a concept, for all that names or counts it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from obygaze_features.manifest import BUILTIN, Clip, Codebook, builtin_codebook
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
    """

    meanings: tuple[Meaning, ...]
    is_concept: bool
    otherwise: str

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
        """Say whether a labelled clip is positive; None where its level does not count.

        Parameters
        ----------
        clip : Clip
        labels : collection of str
            The levels that count (`Codebook.labels`). A positive level counts even if it is not among them.
        """
        if not self.is_concept and clip.level in self.names:
            return True
        if clip.level not in labels:
            return None
        return self.is_concept and self.names[0] in clip.concepts

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
    return Positive(tuple(meanings), bool(model.concept), model.task_title)


def level_title(model: ModelRecord, name: str) -> str:
    """Return the title of a level of a model's codebook; empty where it has none, or it is not known."""
    if model.codebook in BUILTIN and not model.titles:
        titles = {level.name: level.title for level in builtin_codebook(model.codebook).levels}
        return titles.get(name, "")
    return model.titles.get(name, "")
