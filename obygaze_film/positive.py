"""Decide what a model calls positive, levels of a codebook or a concept, for all that names or counts it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

from obygaze_features.manifest import PLANTED, Clip, Codebook
from obygaze_film.codebook_names import beside, composed_text, in_languages, names_of
from obygaze_film.schema import ModelRecord

Verdict = Literal["agree", "disagree", "unsure"]
"""Whether a person's judgement agrees with a model that marks the same span."""


class Meaning(NamedTuple):
    """A level or a concept that a model finds: its name, its title if that differs, and what it means.

    Title and meaning are empty where the codebook has none, or is not known. Each is in the languages that
    the codebook has (`codebook_names.InLanguages`).
    """

    name: str
    title: str
    text: str

    @property
    def titled(self) -> str:
        """The name with its title, such as `S (Sure)`; the name alone if it has no other title."""
        return composed_text(beside, self.name, self.title)


@dataclass(frozen=True, slots=True)
class Positive:
    """What a model calls positive.

    Attributes
    ----------
    meanings : tuple of Meaning
        Of its positive levels, or of its concept.
    is_concept : bool
        Whether it is a concept: then clips of any level are positive that have it.
    task_title : str
        Title of the model's task. It stands for the names where there are none: a bank of concepts finds
        nothing positive.
    is_planted : bool
        Whether the labels that the model was trained on were planted by a program (`PLANTED`).
    """

    meanings: tuple[Meaning, ...]
    is_concept: bool
    task_title: str
    is_planted: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the levels, or of the concept."""
        return tuple(meaning.name for meaning in self.meanings)

    @property
    def text(self) -> str:
        """The names as one text, such as `EN / S`; the task's title if there are no names."""
        if not self.names:
            return self.task_title
        return composed_text(_joined_by_slashes, *self.names)

    @property
    def titled(self) -> str:
        """The names with their titles as one text; the task's title if there are no names."""
        if not self.meanings:
            return self.task_title
        return composed_text(_joined_by_slashes, *[meaning.titled for meaning in self.meanings])

    def is_labelled(self, clip: Clip) -> bool:
        """Whether a clip was annotated at all: it has a level or, for a concept, names any concept."""
        return clip.level is not None or (self.is_concept and bool(clip.concepts))

    def is_positive(self, clip: Clip, labels: Collection[str]) -> bool | None:
        """Return whether a clip is positive; None if it is not annotated, or its level is no answer.

        Parameters
        ----------
        clip : Clip
        labels : collection of str
            The levels that are answers (`Codebook.labels`), positive or not: "not sure" is none, for example.
            For a concept, the clip's level does not matter: an annotator who is not sure of the level may
            still say whether the concept is there.
        """
        if not self.is_labelled(clip):
            return None
        if self.is_concept:
            concept = self.names[0]
            return concept in clip.concepts
        if clip.level in self.names:
            return True
        if clip.level in labels:
            return False
        return None

    def verdict_on(self, clip: Clip, labels: Collection[str]) -> Verdict:
        """Return whether a person's judgement agrees with a model that marks the judged span.

        `agree` for one of the model's positive levels (or for its concept). `disagree` for any other answer,
        even for a level that the model was trained without. `unsure` for a level that is no answer.

        Parameters
        ----------
        clip : Clip
            The judged span, with a level.
        labels : collection of str
            The levels that are answers (`Codebook.labels`).
        """
        is_positive = self.is_positive(clip, labels)
        if is_positive is None:
            return "unsure"
        return "agree" if is_positive else "disagree"

    def first_unknown_name(self, codebook: Codebook) -> str:
        """Return the first positive level, or the concept, that a codebook lacks; empty if it has all."""
        known = codebook.concept_names if self.is_concept else codebook.level_names
        for name in self.names:
            if name not in known:
                return name
        return ""

    def lacks_labels_in(self, clips: Collection[Clip]) -> bool:
        """Whether clips cannot serve as labels of what is positive, as they name no concept.

        That matters if a concept is positive: annotators who only gave levels did not say where the concept
        is absent. Clips always are labels if levels are positive.
        """
        return self.is_concept and not any(clip.concepts for clip in clips)


def positive_of(model: ModelRecord) -> Positive:
    """Read from a model's record what it calls positive: levels of its codebook, or a concept.

    Names, titles and meanings are in all languages of the codebook.

    Examples
    --------
    A model that finds the level S. A clip of another level that counts is negative.

    >>> import obygaze_features as of
    >>> import obygaze_film
    >>> film = obygaze_film.score_film(of.open_store("stores/more"), ["kept/linear.model"], movie="film6")
    >>> positive = positive_of(film.model())
    >>> positive.titled
    'S (Sure)'
    >>> clip = of.Clip("some-clip", "film6", level="HN")
    >>> levels_that_count = ("EN", "HN", "S")
    >>> positive.is_positive(clip, levels_that_count)
    False
    """
    names = names_of(model)
    meanings = []
    if model.concept:
        # The record has what it means in English; `names` add the translations of its codebook.
        text = names.means(model.concept, model.means.get(model.concept, ""), is_concept=True)
        no_title = in_languages("", {})  # concepts have names, but no titles
        meanings.append(Meaning(names.concept(model.concept), no_title, text))
    else:
        for level in model.positive:
            text = names.means(level, model.means.get(level, ""), is_concept=False)
            meanings.append(Meaning(names.level(level), names.title(level), text))
    return Positive(
        meanings=tuple(meanings),
        is_concept=bool(model.concept),
        task_title=model.task_title,
        is_planted=model.labelled_by == [PLANTED],
    )


def people_besides_program(model: ModelRecord) -> tuple[str, ...]:
    """Return the annotators besides the program, if both gave labels that a model was trained on; else ()."""
    if PLANTED not in model.labelled_by:
        return ()
    return tuple(name for name in model.labelled_by if name != PLANTED)


def _joined_by_slashes(*names: str) -> str:
    """Write names as one text: `EN / S`."""
    return " / ".join(names)
