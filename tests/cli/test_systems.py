"""On simulated Windows and macOS commands end as on Linux, and write the same bytes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.private import files_below

ROOT = Path(__file__).parents[2]
GROUPS = [("windows", "manifests"), ("windows", "stores"), ("windows", "zoo"), ("macos", "stores")]
FOLDERS = """manifest/test_import_folder.py persistence/test_model_file.py report film/exchange
    film/test_scored_files.py
    film/workspace/test_server.py::test_ten_windows_give_a_share_and_blind_pages_show_no_score"""
"""Those of `make test-windows` that read and write most for their seconds."""
HERE: dict[str, dict[str, bytes]] = {}
"""The files of a group on this system, for all others."""
OF_ONE_RUN = ("journal/", "reports/")
"""Parts of a stage's names that hold times and writers."""


def simulated(system):
    """Make the environment of a process that sees a system; "" is this one."""
    path = os.pathsep.join([*([str(ROOT / "tests" / "simulated")] if system else []), str(ROOT)])
    return os.environ | {"SIMULATED": system, "PYTHONPATH": path}


def run_rows(system, group, given, place):
    """Run a group of the table on a system; gives the files that they left."""
    shutil.copytree(given, place / "in", symlinks=True)
    (place / "out").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulated.run_rows", group],
        cwd=place,
        env=simulated(system),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    files = [file for folder in ("out", "runs") for file in files_below(place / folder)]
    named = {file.relative_to(place).as_posix(): file for file in files}
    return {name: file.read_bytes() for name, file in named.items() if not any(p in name for p in OF_ONE_RUN)}


@pytest.mark.long
@pytest.mark.parametrize(("system", "group"), GROUPS)
def test_commands_write_the_bytes_of_linux(system, group, given, tmp_path):
    """Only here are names, locks, line ends and missing functions those of another system."""
    there = run_rows(system, group, given, tmp_path / "there")
    if group not in HERE:
        HERE[group] = run_rows("", group, given, tmp_path / "here")
    here = HERE[group]
    assert there.keys() == here.keys()
    assert [name for name in here if there[name] != here[name]] == []


@pytest.mark.long
def test_what_laptops_do_holds_on_windows(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not long"]
        + [f"--basetemp={tmp_path / 'temporary'}"]  # another run's would be removed by the rules of Windows
        + [f"tests/{name}" for name in FOLDERS.split()],
        cwd=ROOT,
        env=simulated("windows"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
