"""Read the TOML files that come with the package."""

import tomllib
from importlib.resources import files
from typing import Any


def packaged(package: str, name: str) -> dict[str, Any]:
    """Read a TOML file in the folder of a package.

    Parameters
    ----------
    package
        Whose `__package__` it lies beside.
    name
        Of the file.
    """
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
