"""Killed, started twice, on a full disk: the trials of benchmarks/survive.py, a few of each.

Only here are the commands themselves killed at any moment, and run against each other.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.process import execute

pytestmark = pytest.mark.long

SURVIVE = Path(__file__).parents[2] / "benchmarks" / "survive.py"
KINDS = ["seal", "pack", "unpack", "pull", "pull-more", "merge", "import", "export"]


def survive(*words: str) -> str:
    command = [sys.executable, str(SURVIVE), *words, "--quick"]
    done = execute(*command)
    assert "WRONG" not in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def trials() -> str:
    return survive(*KINDS, "--number", "1")


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_killed_or_spoilt_ends_in_the_undisturbed_bytes(trials, kind):
    lines = [line for line in trials.splitlines() if line.startswith(kind)]
    killed = next(line for line in lines if line.startswith(f"{kind}: 1 kills"))
    assert "0 wrong, 0 with litter" in killed
    assert "found 0 torn" in killed
    assert any(line.startswith(f"{kind}, twice at once") for line in lines)
    assert any(line.startswith(f"{kind}, spoilt: right") for line in lines)


@pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="needs moto")
def test_a_killed_push_to_s3_goes_on():
    assert "0 wrong" in survive("push-s3", "--number", "1")


def test_every_flipped_bit_is_found_and_its_file_named():
    said = survive("flips", "zip-flips", "--flips", "30")
    assert "30 found, 30 named" in said
