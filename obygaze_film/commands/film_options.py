"""Declare the arguments and options that several commands of films share."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import LocalPath
from obygaze_features.signatures import argument, option

FILE_TO_WRITE = LocalPath(dir_okay=False, path_type=Path)
"""Type of an option: a file to write, whose folder is made."""

YEARS = click.IntRange(1870, 2100)
"""Type of an option: the year of a film."""

Folders = Annotated[tuple[Path, ...], argument(metavar="FOLDER...")]
Judged = Annotated[tuple[Path, ...], option("Further judgements, beside those in the FOLDERs; repeatable.")]
ModelKey = Annotated[
    str | None,
    option(
        "Name of the model, as in the column model of timeline.csv.  [default: the first that classifies]",
        name="model",
    ),
]
Labels = Annotated[
    Path | None,
    option(
        "Labels of all windows by one annotator, such as a machine; they are used in place of the model's "
        "probabilities.",
        metavar="MANIFEST",
    ),
]
Language = Annotated[
    Literal["en", "fr"], option("Language of the page. Messages in the terminal stay English.")
]
Html = Annotated[
    Path | None,
    option(
        "Also write the results as a page: one HTML file that loads nothing from elsewhere.",
        type=FILE_TO_WRITE,
    ),
]
