"""Translate what a page or the desk shows of a codebook: names of concepts, titles and meanings.

A scored film's record holds the texts of its models' codebooks untranslated. Those of built-in codebooks are
looked up here; those of a lab's own stay as they are.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
import pandas as pd

from obygaze_features.manifest import BUILTIN, Codebook, Concept, Level, builtin_codebook
from obygaze_film.schema import ModelRecord

if TYPE_CHECKING:
    from obygaze_film.timeline import Timeline

OF_CONCEPT: Final = ("value", "p", "contribution")
"""What columns of tables hold of a concept: they are named after it."""


def builtin_of(model: ModelRecord) -> Codebook | None:
    """Return the codebook of a model; None if it is none of the built-in ones."""
    return builtin_codebook(model.codebook) if model.codebook in BUILTIN else None


def concept_names(codebook: Codebook | None, language: str) -> dict[str, str]:
    """Return the names of those concepts that have another one in a language, by name."""
    concepts = codebook.concepts if codebook else ()
    names = {concept.name: concept.told(language).title for concept in concepts}
    return {name: title for name, title in names.items() if title != name}


def film_in_language(film: "Timeline", language: str) -> "Timeline":
    """Name concepts of a film in a language, in its record and its tables, and say there what levels mean."""
    names: dict[str, str] = {}
    models = []
    for model in film.record.models:
        codebook = builtin_of(model)
        names |= concept_names(codebook, language)
        models.append(model if codebook is None else _model_in_language(model, codebook, language))
    if models == film.record.models:
        return film
    record = msgspec.structs.replace(film.record, models=models)
    return replace(
        film, record=record, table=_renamed(film.table, names), frames=_renamed(film.frames, names)
    )


def _model_in_language(model: ModelRecord, codebook: Codebook, language: str) -> ModelRecord:
    """Name a model's concepts in a language, and say what it measures and finds."""
    names = concept_names(codebook, language)
    means = dict(model.means)
    parts: tuple[Level | Concept, ...] = (*codebook.levels, *codebook.concepts)
    for part in parts:
        if part.name in means:
            means[names.get(part.name, part.name)] = part.told(language).means
    concepts = [
        msgspec.structs.replace(concept, name=names.get(concept.name, concept.name))
        for concept in model.concepts
    ]
    return msgspec.structs.replace(
        model,
        concepts=concepts,
        concept=names.get(model.concept, model.concept),
        construct=codebook.constructs.get(language, model.construct),
        means=means,
    )


def _renamed(table: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Rename the columns of concepts."""
    columns = {f"{name}_{value}": f"{new}_{value}" for name, new in names.items() for value in OF_CONCEPT}
    return table.rename(columns=columns)
