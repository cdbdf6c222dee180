"""Job arrays: which share is whose, and the job scripts of docs/slurm.md."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from obygaze_features.extraction import ExtractError, array_shard

SCRIPTS = Path(__file__).parents[2] / "docs" / "slurm"


def array(task: int, first: int, last: int, count: int, step: int = 1) -> dict[str, str]:
    values = {"ID": task, "MIN": first, "MAX": last, "COUNT": count, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, None),
        (array(3, 0, 7, 8), (3, 8)),
        (array(8, 1, 8, 8), (7, 8)),
        (array(4, 0, 6, 4, step=2), (2, 4)),
    ],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    assert array_shard(variables) == shard


def test_every_task_has_another_share():
    assert {array_shard(array(task, 10, 14, 5)) for task in range(10, 15)} == {(i, 5) for i in range(5)}


def test_an_array_with_gaps_is_refused():
    with pytest.raises(ExtractError, match="--shard 3/8"):
        array_shard(array(5, 3, 5, 2))


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sbatch")), ids=lambda path: path.name)
def test_the_scripts_are_shell(script):
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.name in (SCRIPTS.parent / "slurm.md").read_text(encoding="utf-8")


def stand_in(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("command", "stop", "code", "requeued"),
    [
        ("exit 0", False, 0, ""),
        ("exit 3", False, 0, ""),
        ("exit 1", False, 1, ""),
        (
            "trap 'exit 143' TERM; touch ready; for i in {1..200}; do sleep 0.05; done",
            True,
            0,
            "requeue 9_2\n",
        ),
        ("trap 'exit 0' TERM; touch ready; for i in {1..200}; do sleep 0.05; done", True, 0, ""),
    ],
    ids=["done", "some failed", "error", "stopped", "done while being stopped"],
)
def test_the_array_script_asks_for_another_turn_when_it_was_stopped(tmp_path, command, stop, code, requeued):
    stand_in(tmp_path, "obygaze", f'echo "$@" > arguments; {command}')
    stand_in(tmp_path, "scontrol", 'echo "$@" > asked')
    variables = {"SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "2"}
    environment = os.environ | variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        ["bash", SCRIPTS / "array.sbatch", "films.csv", "my store"], cwd=tmp_path, env=environment
    ) as running:
        if stop:
            deadline = time.monotonic() + 20
            while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == code
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == "extract films.csv my store\n"
    asked = tmp_path / "asked"
    assert (asked.read_text(encoding="utf-8") if asked.exists() else "") == requeued
