"""Options that several commands of the zoo share."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import FILE
from obygaze_features.signatures import option

Html = Annotated[
    Path | None,
    option(
        "Also write the results to this file as a page; it needs no other file and no network.", type=FILE
    ),
]
Policy = Annotated[
    Literal["raw", "paper", "released"],
    option(
        "How labels are changed before use, if the codebook has such a policy. raw: not at "
        "all. paper: clips without a visual concept become EN. released: clips with only "
        "non-visual concepts are left out."
    ),
]
Zoo = Annotated[
    str | None,
    option(
        "List of models: a folder or URL (http, https, s3, hf) with a file zoo.toml.  "
        "[default: the list shipped with obygaze]",
        type=click.STRING,
        metavar="PLACE",
        envvar="OBYGAZE_ZOO",
    ),
]
