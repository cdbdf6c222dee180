"""Killed and started twice: the trials of benchmarks/survive.py, a few of each."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not sys.platform.startswith("linux")
        or None in (shutil.which("cc"), importlib.util.find_spec("moto")),
        reason="needs Linux, a C compiler and moto",
    ),
]

SURVIVE = Path(__file__).parents[2] / "benchmarks" / "survive.py"
ACTIONS = ["seal", "pack", "unpack", "pull", "pull-more", "merge", "import", "hdf5"]
ACTIONS_AND_KINDS_OF_GROUPS = [*ACTIONS, *(f"{action}-ragged" for action in ACTIONS)]


def survive(*words: str) -> str:
    """Run the benchmark, and return what it prints."""
    command = [sys.executable, str(SURVIVE), *words]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WRONG" not in process.stdout
    return process.stdout


@pytest.fixture(scope="module")
def trials() -> str:
    """Return what the benchmark prints: of every work, one line for each of two ways to disturb it.

    A work that is killed and started again: `seal: 1 kills, ... 0 wrong, 0 with litter ... found 0 torn`.
    A work that two processes do at the same time: `seal, twice at once: right`.
    """
    return survive(*ACTIONS_AND_KINDS_OF_GROUPS, "--number", "1")


@pytest.mark.parametrize("action", ACTIONS_AND_KINDS_OF_GROUPS)
def test_an_action_that_is_killed_and_started_again_gives_the_same_bytes(trials, action):
    """The benchmark has killed a process that seals, pulls, ... a store, and has started it again.

    It compares the result with that of an undisturbed process. Nothing is wrong with it, no temporary file
    ("litter") is left, and whoever opened the result meanwhile never found it half written ("torn").
    """
    (line_on_kill,) = [line for line in trials.splitlines() if line.startswith(f"{action}: 1 kills")]

    assert "0 wrong, 0 with litter" in line_on_kill
    assert "found 0 torn" in line_on_kill


@pytest.mark.parametrize("action", ACTIONS_AND_KINDS_OF_GROUPS)
def test_an_action_that_two_processes_do_at_the_same_time_gives_the_same_bytes(trials, action):
    """The benchmark has started the same action twice at once, and compared the result with the right one.

    Its line goes on with what the two processes returned: `seal, twice at once: right, [1, 0]; ...`.
    """
    (line_on_twins,) = [line for line in trials.splitlines() if line.startswith(f"{action}, twice at once: ")]

    assert line_on_twins.startswith(f"{action}, twice at once: right")


def test_a_push_to_s3_that_is_killed_and_started_again_gives_the_same_files():
    """The benchmark kills one push of a store to a server of S3, and pushes again: nothing is wrong then."""
    assert "0 wrong" in survive("push-s3", "--number", "1")
