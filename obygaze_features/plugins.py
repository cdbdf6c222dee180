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
"""Provide a function that returns a `Backbone`, which turns frames or sound into vectors.

Its keyword arguments are options: `obygaze extract --backbone NAME` passes those on the command line."""

DECODERS: Final = "obygaze.decoders"
"""Provide a function that takes the tasks of one file and yields each task's position and a `DecodedClip`.

A `DecodedClip` holds the frames of every request, or the reason why there are none. `obygaze extract
--decoder NAME` runs the function in the decoding processes."""

IMPORTERS: Final = "obygaze.importers"
"""Provide a `SpanSource`, which recognises annotation files by their content and yields their records.

`obygaze manifest import spans` tries it if no built-in kind recognises the file; `--as NAME` selects it."""

MODELS: Final = "obygaze.models"
"""Provide a `ModelSpec`, a scikit-learn estimator, or a class or function that makes one of these.

`obygaze evaluate --model NAME` tests it on each movie, trained on the others; `--save NAME` saves it."""

METRICS: Final = "obygaze.metrics"
"""Provide a `Metric`, which compares labels with predicted classes or with scores.

The tables of every run then contain it, with its chance level and intervals over movies."""

EXPORTERS: Final = "obygaze.exporters"
"""Provide a `Format`, whose function writes a scored film as text.

`obygaze film export` writes the file if `--as` names the format, and prints what the format cannot hold."""

AUDITS: Final = "obygaze.audits"
"""Provide a command, declared by its signature, that returns the report of a `Finding`.

It becomes a subcommand of `obygaze audit`, and writes tables, files and pages as the others do."""


def points(group: str) -> tuple[EntryPoint, ...]:
    """List the entry points of a group, which other packages have registered.

    They are looked up once for each search path of modules: a package that is installed later is not found.
    """
    return _points(group, tuple(sys.path))


@cache
def _points(group: str, _path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Look up the entry points of a group; the search path (`sys.path`) is a key of the cache alone."""
    return tuple(entry_points(group=group))


def offered(group: str, kind: type[T]) -> dict[str, T]:
    """Load the objects that installed packages offer as entry points of a group: name -> object.

    Raises
    ------
    ObygazeError
        An object is not of the class `kind`.
    """
    object_of_name: dict[str, T] = {}
    for point in points(group):
        value = point.load()
        if not isinstance(value, kind):
            raise ObygazeError(f"entry point {point.name} of {group}: expected a {kind.__name__}")
        object_of_name[point.name] = value
    return object_of_name
