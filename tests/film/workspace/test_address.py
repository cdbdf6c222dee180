"""The address of the desk: what it costs to print it, and what must be there before it is printed."""

import subprocess
import sys

import pytest

from obygaze.cli import main
from obygaze_features.errors import install_command

NOT_NEEDED = {
    "uvicorn",
    "starlette",
    "asyncio",
    "jinja2",
    "av",
    "PIL",
    "scipy",
    "sklearn",
    "numcodecs",
    "zarr",
    "tabulate",
}
"""Packages that answers of the desk need, or other commands, and the address does not."""

PRINT_PACKAGES_AT_THE_ADDRESS = """
import sys
from obygaze.cli import main
from obygaze_film.workspace import address

address.serve = lambda *_, **__: print("loaded", *{name.partition(".")[0] for name in sys.modules})
main(["film", "open", *sys.argv[1:], "--no-browser"])
"""
"""Python: opens films, and prints the packages that are loaded where it would print the address."""


@pytest.mark.long
def test_opening_films_does_not_load_the_packages_of_the_server(films):
    """The address is printed before slow packages are imported, so that it is printed soon."""
    arguments = [films / "scored" / "tt1", "--codebook", films / "violence.codebook.toml"]
    python = [sys.executable, "-c", PRINT_PACKAGES_AT_THE_ADDRESS]
    process = subprocess.run([*python, *arguments], capture_output=True, text=True, check=True)
    _, names = process.stdout.split("loaded ")
    loaded = set(names.split())

    assert "pandas" in loaded
    assert loaded.isdisjoint(NOT_NEEDED)


def test_a_missing_package_is_named_before_anything_is_read(films, monkeypatch, capsys):
    """Without uvicorn the desk cannot be served: the command says how to install it and does nothing else."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # Python then fails to import it
    with pytest.raises(SystemExit):
        main(["film", "open", str(films / "scored" / "tt1"), "--no-browser"])
    printed = capsys.readouterr()

    assert printed.out == ""
    assert printed.err.splitlines() == [
        f"obygaze: error: this needs uvicorn; install it with: {install_command('obygaze[workspace]')}"
    ]
