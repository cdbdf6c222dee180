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
WORKS = ["seal", "pack", "unpack", "pull", "pull-more", "merge", "import", "hdf5"]
KINDS = [*WORKS, *(f"{work}-ragged" for work in WORKS)]


def survive(*words: str) -> str:
    command = [sys.executable, str(SURVIVE), *words]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "WRONG" not in process.stdout
    return process.stdout


@pytest.fixture(scope="module")
def trials() -> str:
    return survive(*KINDS, "--number", "1")


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_killed_ends_in_the_undisturbed_bytes(trials, kind):
    lines = [line for line in trials.splitlines() if line.startswith((f"{kind}:", f"{kind},"))]
    killed = next(line for line in lines if line.startswith(f"{kind}: 1 kills"))
    assert "0 wrong, 0 with litter" in killed
    assert "found 0 torn" in killed
    assert any(line.startswith(f"{kind}, twice at once: right") for line in lines)


def test_a_killed_push_to_s3_goes_on():
    assert "0 wrong" in survive("push-s3", "--number", "1")
