"""Arguments that are places on this machine."""

import re
from pathlib import Path
from typing import Any

import click

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class Here(click.Path):
    """A path on this machine; a URL would be taken for folders with odd names, so it is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a path."""
        if _URL.match(str(value)):
            self.fail(
                f"{value} is a URL, and this needs a path on this machine; obygaze store pull brings a store "
                "here, obygaze store push sends one there",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


HERE = Here(path_type=Path, readable=False)
