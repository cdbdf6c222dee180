"""The thesaurus of visual objectification: Table 1 of Tores et al., CVPR 2024, as data.

The table groups instances under concepts; it does not say which of the five sub-constructs an instance
belongs to, so neither do we. Two spellings differ from the print: "Voyeurism" is printed "Voyerism", and the
concept "Expression of emotion" is printed "Exp. of emotion".
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Instance:
    """A typical instance of a concept, and examples of it from films."""

    name: str
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Concept:
    """A visual concept and its typical instances."""

    name: str
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class Thesaurus:
    """The whole table: where it is from, the sub-constructs its caption lists, the concepts in its order."""

    source: str
    sub_constructs: tuple[str, ...]
    concepts: tuple[Concept, ...]


@cache
def thesaurus() -> Thesaurus:
    """Read the thesaurus that comes with the package."""
    data = json.loads(resources.files(__package__).joinpath("thesaurus.json").read_text(encoding="utf-8"))
    return Thesaurus(
        source=data["source"],
        sub_constructs=tuple(data["sub_constructs"]),
        concepts=tuple(
            Concept(
                name, tuple(Instance(instance, tuple(examples)) for instance, examples in instances.items())
            )
            for name, instances in data["concepts"].items()
        ),
    )
