"""Write what a page or the desk shows of a model in a language: its title, its task, and what people marked.

What claims name is in the codebook's languages already (`codebook_names`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from obygaze_features.manifest import Task
from obygaze_film.claims.words import Words
from obygaze_film.codebook_names import CodebookNames, names_of
from obygaze_film.positive import positive_of
from obygaze_film.schema import ModelRecord

if TYPE_CHECKING:
    from obygaze_film.judged_rate import FilmRates
    from obygaze_film.timeline import Timeline


def model_title(model: ModelRecord, words: Words) -> str:
    """Return the title of a built-in model in a language; the title of any other model is not translated.

    A built-in model is recognised by its name and its English title, as a user's own model may have its name.
    """
    key = f"title_of_{model.model}"
    english = Words("en")
    is_builtin = key in english and english[key] == model.title
    return words[key] if is_builtin else model.title


def task_title(model: ModelRecord, words: Words) -> str:
    """Write a model's task in a language: its two sides of levels, or its concept.

    A task with a title of its own is not translated.
    """
    names = names_of(model)
    if model.concept and model.task_title == f"{model.concept}, present or not":
        return words.say("task_concept", concept=names.concept(model.concept))
    task = Task(model.task, tuple(model.negative), tuple(model.positive))
    if model.task_title != task.title:
        return model.task_title
    negative, positive = (_side(levels, names, words) for levels in (model.negative, model.positive))
    return words.say("task_levels", negative=negative, positive=positive)


def _side(levels: Sequence[str], names: CodebookNames, words: Words) -> str:
    """Write the levels of one side of a task in a language, in brackets if they are several."""
    side = words["task_or"].join(words.translated(names.level(level)) for level in levels)
    return f"({side})" if len(levels) > 1 else side


def named_rates(found: "FilmRates", film: "Timeline") -> "FilmRates":
    """Return a film's rates with translatable names of what people marked.

    Files of rates hold these names in English alone. Here they are taken from the models in the film's
    record, whose codebooks have translations; a rate of another model keeps its name.
    """
    positive_of_model = {model.key: positive_of(model).text for model in film.record.models}
    rates = []
    for rate in found.rates:
        translatable = positive_of_model.get(rate.model, rate.positive)
        rates.append(msgspec.structs.replace(rate, positive=translatable))
    return msgspec.structs.replace(found, rates=tuple(rates))
