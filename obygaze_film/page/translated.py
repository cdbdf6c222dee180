"""Translate what a page or the desk shows of a codebook: names, titles and meanings of levels and concepts.

A built-in codebook has its translations itself; those of a lab's own codebook are in the record of a film.

A concept is called by its translated title. A level that has a title in English keeps its name, with the
translated title beside it: `S (Sûr)`. A level without one is called by its translated title, as its name is
an English word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec
import pandas as pd

from obygaze_features.manifest import BUILTIN, Codebook, CodebookTexts, Task, builtin_codebook
from obygaze_film.claims.words import Words
from obygaze_film.positive import Positive, level_title, positive_of
from obygaze_film.schema import ModelRecord

if TYPE_CHECKING:
    from obygaze_film.film_groups import FilmComparison
    from obygaze_film.judged_rate import FilmRates
    from obygaze_film.timeline import Timeline

OF_CONCEPT: Final = ("value", "p", "contribution")
"""What columns of tables hold of a concept: they are named after it."""


@dataclass(frozen=True)
class ShownNames:
    """What people read in place of the names of a codebook's levels and concepts in a language.

    Attributes
    ----------
    levels, concepts : dict of str to str
        By name; without those that are called by their names.
    titles : dict of str to str
        Titles beside the names of those levels that keep their names.
    """

    levels: dict[str, str]
    concepts: dict[str, str]
    titles: dict[str, str]

    def level(self, name: str) -> str:
        """Return what a level is called."""
        return self.levels.get(name, name)

    def concept(self, name: str) -> str:
        """Return what a concept is called."""
        return self.concepts.get(name, name)

    def titled(self, name: str) -> str:
        """Return what a level is called, with its title beside it if that differs."""
        title = self.titles.get(name, "")
        if title and title != name:
            return f"{name} ({title})"
        return self.level(name)


def texts_of(model: ModelRecord, language: str) -> CodebookTexts:
    """Return what the codebook of a model says in a language other than English."""
    if model.codebook in BUILTIN:
        return builtin_codebook(model.codebook).texts(language)
    return model.translations.get(language, CodebookTexts())


def shown_names(model: ModelRecord, language: str) -> ShownNames:
    """Return what the levels and concepts of a model's codebook are called in a language."""
    texts = texts_of(model, language)
    levels = {}
    titles = {}
    if model.codebook in BUILTIN:
        names = builtin_codebook(model.codebook).level_names
    else:
        names = tuple(dict.fromkeys((*model.levels, *model.titles, *texts.levels)))
    for name in names:
        title = level_title(model, name)
        translated = texts.levels[name].title if name in texts.levels else ""
        if title:
            titles[name] = translated or title
        elif translated:
            levels[name] = translated
    concepts = {}
    for name, translation in texts.concepts.items():
        if translation.title and translation.title != name:
            concepts[name] = translation.title
    return ShownNames(levels, concepts, titles)


def concept_names(codebook: Codebook, language: str) -> dict[str, str]:
    """Return the names of those concepts that have another one in a language, by name."""
    names = {concept.name: concept.in_language(language).title for concept in codebook.concepts}
    return {name: title for name, title in names.items() if title != name}


def film_in_language(film: "Timeline", words: Words) -> "Timeline":
    """Name levels and concepts of a film in a language, in its record and tables, and say what they mean."""
    names: dict[str, str] = {}
    models = []
    for model in film.record.models:
        shown = shown_names(model, words.language)
        names |= shown.concepts
        models.append(_model_in_language(model, shown, words))
    if models == film.record.models:
        return film
    record = msgspec.structs.replace(film.record, models=models)
    return replace(
        film, record=record, table=_renamed(film.table, names), frames=_renamed(film.frames, names)
    )


def _model_in_language(model: ModelRecord, shown: ShownNames, words: Words) -> ModelRecord:
    """Name a model's levels and concepts in a language, and say what it measures and finds."""
    texts = texts_of(model, words.language)
    concepts = [msgspec.structs.replace(one, name=shown.concept(one.name)) for one in model.concepts]
    calibration = model.calibration
    if calibration is not None:
        clips = {shown.level(name): n for name, n in calibration.clips.items()}
        calibration = msgspec.structs.replace(calibration, clips=clips)
    return msgspec.structs.replace(
        model,
        title=model_title(model, words),
        task_title=_task_title(model, shown, words),
        levels=_levels(model.levels, shown),
        negative=_levels(model.negative, shown),
        positive=_levels(model.positive, shown),
        levels_left_out=_levels(model.levels_left_out, shown),
        calibration=calibration,
        concepts=concepts,
        concept=shown.concept(model.concept),
        construct=texts.construct or model.construct,
        titles=shown.titles,
        means=_means(model, texts, shown),
    )


def model_title(model: ModelRecord, words: Words) -> str:
    """Write the title of a built-in model in a language; that of any other model as it is.

    A model of somebody's own may have the name of a built-in one, and has another title.
    """
    key = f"title_of_{model.model}"
    english = Words("en")
    return words[key] if key in english and english[key] == model.title else model.title


def _levels(names: Iterable[str], shown: ShownNames) -> list[str]:
    """Name levels in a language."""
    return [shown.level(name) for name in names]


def _means(model: ModelRecord, texts: CodebookTexts, shown: ShownNames) -> dict[str, str]:
    """Say in a language what a model's positive levels, or its concept, mean, by what they are called."""
    means = {}
    for name, text in model.means.items():
        if name == model.concept:
            called, translation = shown.concept(name), texts.concepts.get(name)
        else:
            called, translation = shown.level(name), texts.levels.get(name)
        means[called] = translation.means if translation and translation.means else text
    return means


def _task_title(model: ModelRecord, shown: ShownNames, words: Words) -> str:
    """Write a model's task in a language: its two sides of levels, or its concept; any other as it is."""
    if model.concept and model.task_title == f"{model.concept}, present or not":
        return words.say("task_concept", concept=shown.concept(model.concept))
    task = Task(model.task, tuple(model.negative), tuple(model.positive))
    if model.task_title != task.title:
        return model.task_title
    sides = []
    for levels in (model.negative, model.positive):
        side = words["task_or"].join(_levels(levels, shown))
        sides.append(f"({side})" if len(levels) > 1 else side)
    return words.say("task_levels", negative=sides[0], positive=sides[1])


def _renamed(table: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Rename the columns of concepts."""
    columns = {f"{name}_{value}": f"{new}_{value}" for name, new in names.items() for value in OF_CONCEPT}
    return table.rename(columns=columns)


def found_by(model: ModelRecord, words: Words) -> Positive:
    """Tell in a language what a model calls positive."""
    return positive_of(_model_in_language(model, shown_names(model, words.language), words))


def rates_in_language(found: "FilmRates", film: "Timeline", words: Words) -> "FilmRates":
    """Name what people marked in a film in a language: what its models find."""
    called = {model.key: found_by(model, words).text for model in film.record.models}
    rates = [
        msgspec.structs.replace(rate, positive=called.get(rate.model, rate.positive)) for rate in found.rates
    ]
    return msgspec.structs.replace(found, rates=tuple(rates))


def comparison_in_language(compared: "FilmComparison", words: Words) -> "FilmComparison":
    """Name what the model of compared films finds in a language."""
    if not compared.films:
        return compared
    timeline = compared.films[0].timeline
    model = timeline.model(None if compared.is_of_labels else compared.model)
    positive = found_by(model, words)
    films = []
    for film in compared.films:
        rate = film.rate
        if rate is not None:
            rate = msgspec.structs.replace(rate, positive=positive.text)
        films.append(replace(film, rate=rate))
    return replace(compared, positive=positive, films=tuple(films))
