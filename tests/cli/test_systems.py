"""On simulated Windows and macOS commands end as on Linux, and write and print the same bytes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SYSTEMS_AND_GROUPS = [
    ("windows", "manifests"),
    ("windows", "stores"),
    ("windows", "zoo"),
    ("windows", "frames and fusions"),
    ("windows", "papers"),
    ("macos", "manifests"),
    ("macos", "stores"),
]
"""Systems that are simulated, and groups of the table of commands that are run on them."""
TESTS_OF_LAPTOPS = """manifest/test_import_folder.py persistence/test_model_file.py report film/exchange
    film/test_scored_files.py
    store/test_growth.py exchange/test_import_ragged.py
    film/workspace/test_server.py::test_a_blind_page_shows_nothing_that_gives_the_score_away"""
"""Those of `make test-windows` that read and write most for their seconds."""


@pytest.fixture(scope="module")
def outputs_on_linux(inputs, url, tmp_path_factory):
    """A function of a group's name: what its commands leave and print on this system, where they run once."""
    outputs = {}

    def of_group(group):
        if group not in outputs:
            outputs[group] = run_rows("", group, inputs, url, tmp_path_factory.mktemp("linux"))
        return outputs[group]

    return of_group


OF_ONE_RUN = ("journal/", "reports/", "$ extract", "$ doctor")
"""Parts of a stage's names that hold times and writers; commands that print times and the space on a disk."""


def environment_of(system):
    """Make the environment of a process that sees a simulated system; "" is this one."""
    folders_of_modules = [str(ROOT)]
    if system:
        folders_of_modules.insert(0, str(ROOT / "tests" / "simulated"))
    return os.environ | {"SIMULATED": system, "PYTHONPATH": os.pathsep.join(folders_of_modules)}


def run_rows(system, group, inputs, url, workdir):
    """Run the commands of a group of the table on a system, in a folder with the inputs.

    Gives the bytes of all files that are then there, by their path, and what each command printed, by
    `$ COMMAND`. What differs from run to run is left out (`OF_ONE_RUN`).
    """
    shutil.copytree(inputs, workdir / "in", symlinks=True)
    (workdir / "out").mkdir()
    encoding = "cp1252" if system == "windows" else "utf-8"
    process = subprocess.run(
        [sys.executable, "-m", "tests.simulated.run_rows", group, url],
        cwd=workdir,
        env=environment_of(system) | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        encoding=encoding,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    outputs = {}
    for path in workdir.rglob("*"):
        if path.is_file():
            outputs[path.relative_to(workdir).as_posix()] = path.read_bytes()
    outputs |= printed_by_command(process.stdout.replace(f"{workdir}/", ""))
    return {name: data for name, data in outputs.items() if not any(part in name for part in OF_ONE_RUN)}


def printed_by_command(text):
    """Split what a run of several commands printed: `$ COMMAND`, a line before each -> its output."""
    start_of_command = re.compile(r"^(?=\$ )", re.MULTILINE)
    printed = {}
    for part in start_of_command.split(text):
        command, _, output = part.partition("\n")
        printed[command] = output.encode()
    return printed


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize(("system", "group"), SYSTEMS_AND_GROUPS)
def test_commands_write_and_print_on_a_simulated_system_what_they_do_on_linux(
    system, group, inputs, url, tmp_path, outputs_on_linux
):
    """A group of the table of commands runs in a process that sees Windows, or macOS.

    Names, locks, line ends and missing functions are those of that system. All bytes that commands write and
    print must be those of the same group on Linux.
    """
    outputs = run_rows(system, group, inputs, url, tmp_path)

    expected_outputs = outputs_on_linux(group)
    assert outputs.keys() == expected_outputs.keys()
    different = [name for name in outputs if outputs[name] != expected_outputs[name]]
    assert different == []


@pytest.mark.long
@pytest.mark.nightly
def test_tests_of_laptop_use_pass_on_a_simulated_windows(tmp_path):
    """Our own tests of importing folders, saving models, reports, exports and the desk run once more.

    They run in a process that sees Windows: its names, locks, line ends and missing functions.
    """
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not long"]
    own_folder = f"--basetemp={tmp_path / 'temporary'}"  # another run's would be removed as Windows does it
    words = [sys.executable, "-m", "pytest", *options, own_folder]
    words += [f"tests/{name}" for name in TESTS_OF_LAPTOPS.split()]

    result = subprocess.run(
        words,
        cwd=ROOT,
        env=environment_of("windows"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
