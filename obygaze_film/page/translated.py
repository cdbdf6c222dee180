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

    A user's own model may have the name of a built-in one: only if the English titles are equal, too, is it
    the built-in model.
    """
    key = f"title_of_{model.model}"
    english_texts = Words("en")
    is_builtin = key in english_texts and english_texts[key] == model.title
    return words[key] if is_builtin else model.title


def task_title(model: ModelRecord, words: Words) -> str:
    """Write a model's task in a language: its negative and positive levels, or its concept.

    Only titles that are made automatically, of levels or of a concept, can be written in another language. A
    title that the model's author chose is returned as it is.
    """
    names = names_of(model)
    automatic_title_of_concept = f"{model.concept}, present or not"
    if model.concept and model.task_title == automatic_title_of_concept:
        return words.say("task_concept", concept=names.concept(model.concept))
    automatic_title_of_levels = Task(model.task, tuple(model.negative), tuple(model.positive)).title
    if model.task_title != automatic_title_of_levels:
        return model.task_title
    return words.say(
        "task_levels",
        negative=_joined_levels(model.negative, names, words),
        positive=_joined_levels(model.positive, names, words),
    )


def _joined_levels(levels: Sequence[str], names: CodebookNames, words: Words) -> str:
    """Join the negative, or the positive, levels of a task by "or" in a language; several are in brackets.

    `names` has the levels' names in the codebook's languages, and `words` is the language.
    """
    joined = words["task_or"].join(words.translated(names.level(level)) for level in levels)
    return f"({joined})" if len(levels) > 1 else joined


def named_rates(film_rates: "FilmRates", film: "Timeline") -> "FilmRates":
    """Return a film's rates with translatable names of what people marked.

    Files of rates hold these names in English alone. Here they are taken from the models in the film's
    record, whose codebooks have translations; a rate of another model keeps its name.
    """
    marked_by_model = {model.key: positive_of(model).text for model in film.record.models}
    rates = []
    for rate in film_rates.rates:
        translatable = marked_by_model.get(rate.model, rate.positive)
        rates.append(msgspec.structs.replace(rate, positive=translatable))
    return msgspec.structs.replace(film_rates, rates=tuple(rates))
