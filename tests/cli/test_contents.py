"""The table of contents is cheap, complete, and turns mistakes into one line."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from obygaze.cli import LazyGroup, main
from obygaze_features.errors import install_command
from tests.cli.walk import all_commands

LARGE_LIBRARIES = {
    "numpy",
    "zarr",
    "torch",
    "sklearn",
    "pandas",
    "av",
    "tqdm",
    "h5py",
    "matplotlib",
    "transformers",
}


def modules_loaded_by(code: str) -> set[str]:
    """Run code in a process of its own; gives the names of the top-level modules that it has loaded then."""
    print_modules = "import sys, json; print(json.dumps(list(sys.modules)))"
    script = f"{code}\n{print_modules}"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *_, last_line = process.stdout.splitlines()
    return {module.split(".")[0] for module in json.loads(last_line)}


def test_help_loads_nothing_but_click():
    """Importing large libraries takes seconds, and help should be there at once."""
    code = (
        "import contextlib, obygaze.cli\nwith contextlib.suppress(SystemExit): obygaze.cli.main(['--help'])"
    )

    loaded = modules_loaded_by(code)

    our_packages = {"obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies"}
    assert "click" in loaded
    assert loaded & our_packages == set()
    assert loaded & LARGE_LIBRARIES == set()


def test_the_modules_of_all_commands_load_no_large_library():
    """Commands import numpy, torch and the like when they run, so that listing them stays fast."""
    loaded = modules_loaded_by("from tests.cli.walk import all_commands\nlist(all_commands())")

    assert "obygaze_studies" in loaded  # the last package in the order of imports: all were loaded
    assert loaded & LARGE_LIBRARIES == set()


def test_the_help_of_every_command_shows_examples():
    """A command such as `store`, which is only a group of others, shows the list of these instead."""
    for path, command, context in all_commands():
        help_text = command.get_help(context)
        is_group = isinstance(command, click.Group)
        assert "Examples:" in help_text or is_group, path


def test_no_help_shows_the_mark_that_keeps_click_from_wrapping_lines():
    """Click removes the mark, a backslash and a b, where it stands in a line of its own."""
    for path, command, context in all_commands():
        assert r"\b" not in command.get_help(context), path


def test_cli_py_of_a_checkout_is_the_command(tmp_path):
    """`python cli.py codebook show`, from any folder, is `obygaze codebook show`."""
    cli_py = Path(__file__).parents[2] / "cli.py"
    words = [sys.executable, str(cli_py), "codebook", "show"]

    result = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)

    assert "obygaze12" in result.stdout


def fail_to_load_a_command(monkeypatch, error):
    """Let the import of every command's module raise an error."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", fail)


def test_a_missing_extra_is_named_with_its_remedy(monkeypatch, capsys):
    """PyAV (`av`), which the command `frames` needs, comes with the extra "video", not installed here."""
    fail_to_load_a_command(monkeypatch, ModuleNotFoundError("No module named 'av'", name="av"))

    with pytest.raises(SystemExit):
        main(["frames", "film.mp4"])

    assert install_command("obygaze[video]") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("pyvenv.cfg", "home = /usr/bin\n", "pip install"),
        ("pyvenv.cfg", "home = /usr/bin\nuv = 0.13.9\n", f'uv pip install --python "{sys.executable}"'),
        ("pipx_metadata.json", "{}", "pipx inject obygaze"),
    ],
    ids=["pip", "uv", "pipx"],
)
def test_the_install_command_is_that_of_the_tool_that_made_the_environment(
    tmp_path, monkeypatch, file, text, command
):
    """Each tool leaves a file in the environment's folder, which is `sys.prefix`."""
    (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert install_command("obygaze[video]") == f'{command} "obygaze[video]"'


def test_a_torchvision_that_does_not_fit_torch_is_reported_in_one_line(monkeypatch, capsys):
    """These errors come of PyPI's torchvision, which is built for CUDA, beside PyTorch's CPU build."""
    error = ModuleNotFoundError("Could not import module 'XCLIPModel'")
    error.__cause__ = RuntimeError("operator torchvision::nms does not exist")
    fail_to_load_a_command(monkeypatch, error)

    with pytest.raises(SystemExit) as stopped:
        main(["extract", "films.csv", "store"])

    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "torchvision does not work with the installed torch" in line


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError(), RuntimeError("x"), ModuleNotFoundError(name="y")],
    ids=["a bug", "an error that is not of torchvision", "a module that no extra installs"],
)
def test_an_error_that_no_user_can_mend_keeps_its_traceback(error, monkeypatch):
    """What a command raises before it runs reaches Python, which prints a traceback."""
    fail_to_load_a_command(monkeypatch, error)

    with pytest.raises(type(error)):
        main(["demo"])
