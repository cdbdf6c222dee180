"""The table of contents is cheap, complete, and turns mistakes into one line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from obygaze.cli import LazyGroup, main
from obygaze_features.errors import install_command
from tests.cli.walk import all_commands

HEAVY = {"numpy", "zarr", "torch", "sklearn", "pandas", "av", "tqdm", "h5py", "matplotlib", "transformers"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_loads_nothing_but_click():
    code = (
        "import contextlib, obygaze.cli\nwith contextlib.suppress(SystemExit): obygaze.cli.main(['--help'])"
    )
    loaded = modules_after(code)
    assert "click" in loaded
    assert not loaded & (HEAVY | {"obygaze_features", "obygaze_models", "obygaze_film", "obygaze_studies"})


def test_help_of_any_command_loads_no_large_library():
    loaded = modules_after("from tests.cli.walk import all_commands\nlist(all_commands())")
    assert "obygaze_studies" in loaded
    assert not loaded & HEAVY


def test_every_command_in_the_contents_exists_and_shows_examples():
    for path, command, context in all_commands():
        text = command.get_help(context)
        assert "Examples:" in text or isinstance(command, click.Group), path
        assert "\\b" not in text, f"{path}: click's mark is shown"


def test_the_launcher_of_a_checkout_is_the_command(tmp_path):
    command = [sys.executable, str(Path(__file__).parents[2] / "cli.py"), "codebook", "show"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "obygaze12" in done.stdout


def test_help_whose_reader_leaves_early_exits_as_of_a_broken_pipe(tmp_path):
    reading_end, writing_end = os.pipe()
    os.close(reading_end)
    command = [sys.executable, "-m", "obygaze", "--help"]
    done = subprocess.run(command, stdout=writing_end, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(writing_end)
    code_of_broken_pipe = 141  # 128 and SIGPIPE, 13, as shells say it
    assert (done.returncode, done.stderr) == (code_of_broken_pipe, b"")


def test_a_missing_extra_is_named_with_its_remedy(monkeypatch, capsys):
    def without_av(*_, **__):
        raise ModuleNotFoundError("No module named 'av'", name="av")

    monkeypatch.setattr(LazyGroup, "get_command", without_av)
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
def test_the_install_command_is_that_of_the_tool_of_the_environment(
    tmp_path, monkeypatch, file, text, command
):
    (tmp_path / file).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("obygaze[video]") == f'{command} "obygaze[video]"'


def test_a_torchvision_that_does_not_fit_torch_is_reported_in_one_line(monkeypatch, capsys):
    """PyPI's torchvision, built for CUDA, beside PyTorch's CPU build ends in these errors."""

    def mismatched(*_, **__):
        error = RuntimeError("operator torchvision::nms does not exist")
        raise ModuleNotFoundError("Could not import module 'XCLIPModel'") from error

    monkeypatch.setattr(LazyGroup, "get_command", mismatched)
    with pytest.raises(SystemExit) as stopped:
        main(["extract", "films.csv", "store"])
    assert stopped.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "torchvision does not work with the installed torch" in line


@pytest.mark.parametrize("error", [ZeroDivisionError(), RuntimeError("x"), ModuleNotFoundError(name="y")])
def test_a_bug_of_ours_keeps_its_traceback(error, monkeypatch):
    def bug(*_, **__):
        raise error

    monkeypatch.setattr(LazyGroup, "get_command", bug)
    with pytest.raises(type(error)):
        main(["demo"])
