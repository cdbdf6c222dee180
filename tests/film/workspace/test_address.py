"""The address of the desk: what it costs to print it, and what must be there before it is printed."""

import subprocess
import sys

import pytest

from obygaze.cli import main
from obygaze_features.errors import install_command

NEEDED_BY_THE_SERVER_OR_OTHER_COMMANDS = {
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
    opens_a_film = [sys.executable, "-c", PRINT_PACKAGES_AT_THE_ADDRESS, films / "scored" / "tt1"]
    opens_a_film += ["--codebook", films / "violence.codebook.toml"]

    process = subprocess.run(opens_a_film, capture_output=True, text=True, check=True)

    _, names = process.stdout.split("loaded ")
    packages_at_the_address = set(names.split())
    assert "pandas" in packages_at_the_address  # with which a scored film is read
    for package in NEEDED_BY_THE_SERVER_OR_OTHER_COMMANDS:  # such as uvicorn and sklearn
        assert package not in packages_at_the_address


def test_a_missing_package_is_named_before_anything_is_read(films, monkeypatch, capsys):
    """Without uvicorn the desk cannot be served: the command says how to install it and does nothing else."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)  # Python then fails to import it

    with pytest.raises(SystemExit):
        main(["film", "open", str(films / "scored" / "tt1"), "--no-browser"])

    printed = capsys.readouterr()
    how_to_install = install_command("obygaze[workspace]")  # with pip or uv, as obygaze itself was
    assert printed.out == ""
    assert printed.err == f"obygaze: error: this needs uvicorn; install it with: {how_to_install}\n"
