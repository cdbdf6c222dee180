"""Options that several commands of the zoo share."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import FILE
from obygaze_features.signatures import option

Html = Annotated[
    Path | None,
    option("Also write the results as a page: one HTML file that loads nothing from elsewhere.", type=FILE),
]
Policy = Annotated[
    Literal["raw", "paper", "released"],
    option(
        "Label policy, if the codebook has one. raw: as annotated. paper: clips without a visual concept "
        "become EN. released: clips with only non-visual concepts are left out."
    ),
]
Zoo = Annotated[
    str | None,
    option(
        "Folder or URL (http, https, s3, hf) with the list zoo.toml.  [default: the models shipped]",
        type=click.STRING,
        metavar="PLACE",
        envvar="OBYGAZE_ZOO",
    ),
]
