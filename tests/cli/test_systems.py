"""On simulated Windows and macOS commands end as on Linux, and write and print the same bytes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = [
    ("windows", "manifests"),
    ("windows", "stores"),
    ("windows", "zoo"),
    ("windows", "papers"),
    ("macos", "manifests"),
    ("macos", "stores"),
]
FOLDERS = """manifest/test_import_folder.py persistence/test_model_file.py report film/exchange
    film/test_scored_files.py
    store/test_growth.py exchange/test_import_ragged.py
    film/workspace/test_server.py::test_ten_windows_give_a_share_and_blind_pages_show_no_score"""
"""Those of `make test-windows` that read and write most for their seconds."""
LINUX_FILES: dict[str, dict[str, bytes]] = {}
"""What a group leaves and prints on this system, for all others."""
OF_ONE_RUN = ("journal/", "reports/", "$ extract", "$ doctor")
"""Parts of a stage's names that hold times and writers; commands that print times and the space on a disk."""


def simulated(system):
    """Make the environment of a process that sees a system; "" is this one."""
    path = os.pathsep.join([*([str(ROOT / "tests" / "simulated")] if system else []), str(ROOT)])
    return os.environ | {"SIMULATED": system, "PYTHONPATH": path}


def run_rows(system, group, given, url, place):
    """Run a group of the table on a system; gives the files that it leaves, and what `$ COMMAND` printed."""
    shutil.copytree(given, place / "in", symlinks=True)
    (place / "out").mkdir()
    encoding = "cp1252" if system == "windows" else "utf-8"
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulated.run_rows", group, url],
        cwd=place,
        env=simulated(system) | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        encoding=encoding,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    parts = re.split(r"^(?=\$ )", done.stdout.replace(f"{place}/", ""), flags=re.MULTILINE)
    printed = dict(part.partition("\n")[::2] for part in parts)
    files = filter(Path.is_file, place.rglob("*"))
    left = {file.relative_to(place).as_posix(): file.read_bytes() for file in files}
    left |= {command: text.encode() for command, text in printed.items()}
    return {name: data for name, data in left.items() if not any(part in name for part in OF_ONE_RUN)}


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize(("system", "group"), GROUPS)
def test_commands_write_the_bytes_of_linux(system, group, given, url, tmp_path):
    """Only here are names, locks, line ends and missing functions those of another system."""
    simulated_files = run_rows(system, group, given, url, tmp_path / "there")
    if group not in LINUX_FILES:
        LINUX_FILES[group] = run_rows("", group, given, url, tmp_path / "here")
    linux_files = LINUX_FILES[group]
    assert simulated_files.keys() == linux_files.keys()
    assert [name for name in linux_files if simulated_files[name] != linux_files[name]] == []


@pytest.mark.long
@pytest.mark.nightly
def test_the_tests_of_what_laptops_do_pass_on_simulated_windows(tmp_path):
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
