"""List every group of entry points by which other packages add to obygaze, and find what they add.

docs/extending.md shows a package that adds one of each.
"""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, TypeVar

from obygaze_features.errors import ObygazeError

T = TypeVar("T")

BACKBONES: Final = "obygaze.backbones"
"""A function of options that returns a `Backbone`, which turns frames or sound into vectors.

`obygaze extract --backbone NAME` calls it with what was typed; its keyword arguments are its options."""

DECODERS: Final = "obygaze.decoders"
"""A function of the tasks of one file that yields the place of each task with a `DecodedClip`.

A `DecodedClip` holds the frames of every request, or why there are none. `obygaze extract --decoder NAME`
runs the function in the decoding processes."""

IMPORTERS: Final = "obygaze.importers"
"""A `SpanSource`, which recognises files of annotations by their content and yields their records.

`obygaze manifest import spans` asks it after the kinds that are built in, or takes it by `--as NAME`."""

MODELS: Final = "obygaze.models"
"""A `ModelSpec`, an estimator of scikit-learn's kind, or a class or function that makes one.

`obygaze evaluate --model NAME` trains it without the movie that it is tested on; `--save NAME` keeps it."""

METRICS: Final = "obygaze.metrics"
"""A `Metric`, which compares labels with calls or scores.

Every run has it in its tables, with its chance level and intervals over movies."""

EXPORTERS: Final = "obygaze.exporters"
"""A `Format`, whose function writes a scored film as text.

`obygaze film export` writes the file where `--as` names it, and prints what the format loses."""

AUDITS: Final = "obygaze.audits"
"""A command, declared by its signature, that answers with the report of a `Finding`.

It is a subcommand of `obygaze audit`, with the tables, files and pages of the others."""


def points(group: str) -> tuple[EntryPoint, ...]:
    """List the entry points of a group, as they were when this process first looked at its path."""
    return _points(group, tuple(sys.path))


@cache
def _points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def offered(group: str, kind: type[T]) -> dict[str, T]:
    """Load the objects that installed packages offer as entry points of a group: name -> object.

    Raises
    ------
    ObygazeError
        An object is not of the class `kind`.
    """
    found: dict[str, T] = {}
    for point in points(group):
        value = point.load()
        if not isinstance(value, kind):
            raise ObygazeError(f"entry point {point.name} of {group}: expected a {kind.__name__}")
        found[point.name] = value
    return found
