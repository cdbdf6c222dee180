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
    """Write the title of a built-in model in a language; that of any other model as it is.

    A model of somebody's own may have the name of a built-in one, and has another title.
    """
    key = f"title_of_{model.model}"
    english = Words("en")
    return words[key] if key in english and english[key] == model.title else model.title


def task_title(model: ModelRecord, words: Words) -> str:
    """Write a model's task in a language: its two sides of levels, or its concept; any other as it is."""
    names = names_of(model)
    if model.concept and model.task_title == f"{model.concept}, present or not":
        return words.say("task_concept", concept=names.concept(model.concept))
    task = Task(model.task, tuple(model.negative), tuple(model.positive))
    if model.task_title != task.title:
        return model.task_title
    negative, positive = (_side(levels, names, words) for levels in (model.negative, model.positive))
    return words.say("task_levels", negative=negative, positive=positive)


def _side(levels: Sequence[str], names: CodebookNames, words: Words) -> str:
    """Write one side of a task in a language."""
    side = words["task_or"].join(words.again(names.level(level)) for level in levels)
    return f"({side})" if len(levels) > 1 else side


def named_rates(found: "FilmRates", film: "Timeline") -> "FilmRates":
    """Name what people marked in all languages of the codebook: files of rates name it in English alone."""
    called = {model.key: positive_of(model).text for model in film.record.models}
    rates = [
        msgspec.structs.replace(rate, positive=called.get(rate.model, rate.positive)) for rate in found.rates
    ]
    return msgspec.structs.replace(found, rates=tuple(rates))
