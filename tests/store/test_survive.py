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


@pytest.mark.parametrize("kind", ACTIONS_AND_KINDS_OF_GROUPS)
def test_an_action_that_is_killed_and_restarted_or_done_twice_at_once_gives_the_same_bytes(trials, kind):
    (killed,) = [line for line in trials.splitlines() if line.startswith(f"{kind}: 1 kills")]
    assert "0 wrong, 0 with litter" in killed
    assert "found 0 torn" in killed
    assert f"\n{kind}, twice at once: right" in f"\n{trials}"


def test_a_killed_push_to_s3_resumes():
    assert "0 wrong" in survive("push-s3", "--number", "1")
