"""Job arrays: which share is whose, and the job scripts of docs/slurm.md."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from obygaze_features.errors import ExtractError
from obygaze_features.extraction import array_shard, stop_on_signals
from tests.process import execute

from .clusters import until

SCRIPTS = Path(__file__).parents[2] / "docs" / "slurm"


def array(task: int, first: int, last: int, count: int, step: int = 1) -> dict[str, str]:
    values = {"ID": task, "MIN": first, "MAX": last, "COUNT": count, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [({}, None), ({"SLURM_JOB_ID": "7"}, None), (array(3, 0, 7, 8), (3, 8)), (array(0, 0, 0, 1), (0, 1))],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    assert array_shard(variables) == shard


@pytest.mark.parametrize(
    "variables",
    [array(3, 3, 3, 1), array(5, 3, 5, 2), array(4, 3, 4, 2), array(8, 1, 8, 8), array(4, 0, 6, 4, step=2)],
    ids=["--array=3", "--array=3,5", "--array=3,4", "--array=1-8", "--array=0-6:2"],
)
def test_some_tasks_of_an_array_cannot_tell_their_share(variables):
    with pytest.raises(ExtractError, match="--shard"):
        array_shard(variables)


def test_a_scheduler_may_ask_twice_but_a_second_ctrl_c_is_meant(monkeypatch):
    # A shell's background jobs, of which the tests may be one, begin with Ctrl-C ignored.
    real = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    pretended = real | {signal.SIGINT: signal.default_int_handler}
    monkeypatch.setattr(signal, "getsignal", lambda number: pretended[number])
    with stop_on_signals() as stop:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert (stop(), stop.exit_code) == (True, 143)
        signal.raise_signal(signal.SIGINT)
        assert stop.exit_code == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, real[signal.SIGINT])


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sbatch")), ids=lambda path: path.name)
def test_the_scripts_are_shell(script):
    done = execute("bash", "-n", script, code=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.name in (SCRIPTS.parent / "slurm.md").read_text(encoding="utf-8")


def stand_in(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


LASTS = "for i in {1..6000}; do sleep 0.05; done"
STOPS = f"trap 'exit 143' TERM; touch ready; {LASTS}"
FINISHES = f"trap 'exit 0' TERM; touch ready; {LASTS}"
# Bash loses one of two signals that come at once; Slurm's are minutes apart.
STOPS_LATER = f"trap 'trap \"exit 143\" TERM; touch ready.2' TERM; touch ready; {LASTS}"


class Site:
    """A folder with stand-ins for `obygaze` and Slurm's commands, in which a script is run."""

    def __init__(self, folder: Path, obygaze: str = "exit 0", limit: str = "4:00:00"):
        self.folder = folder
        stand_in(folder, "obygaze", f'echo "$@" > arguments; {obygaze}')
        stand_in(folder, "scontrol", 'echo "$@" > asked')
        stand_in(folder, "squeue", f"echo {limit}")

    def run(self, *signals: signal.Signals, **variables: str) -> tuple[int, str]:
        """Run the array's script and send it each signal once the command is ready; give code and words."""
        task = {"SLURM_JOB_ID": "11", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "2"}
        path = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        with subprocess.Popen(
            ["bash", SCRIPTS / "array.sbatch", "films.csv", "my store"],
            cwd=self.folder,
            env=os.environ | task | path | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for each, ready in zip(signals, ("ready", "ready.2"), strict=False):
                until((self.folder / ready).exists)
                running.send_signal(each)
            said, _ = running.communicate(timeout=600)
        return running.returncode, said

    @property
    def asked(self) -> str:
        """What Slurm was asked for."""
        path = self.folder / "asked"
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""


@pytest.mark.parametrize(
    ("command", "signals", "code", "asked"),
    [
        ("exit 0", [], 0, ""),
        ("exit 3", [], 0, ""),
        ("exit 2", [], 2, ""),
        ("exit 1", [], 1, "requeue 9_2"),
        ("kill -9 $$", [], 137, "requeue 9_2"),
        (STOPS, [signal.SIGUSR1], 143, "requeue 9_2"),
        (FINISHES, [signal.SIGUSR1], 0, ""),
        (STOPS, [signal.SIGTERM], 143, ""),
        (STOPS_LATER, [signal.SIGUSR1, signal.SIGTERM], 143, "requeue 9_2"),
    ],
)
def test_the_array_script_asks_for_another_turn_unless_it_was_cancelled(
    tmp_path, command, signals, code, asked
):
    site = Site(tmp_path, command)
    assert site.run(*signals)[0] == code
    assert site.asked == asked
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == "extract films.csv my store --shard 2/8\n"


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        *[("4:00", True), ("9:59", True), ("10:00", False), ("1:00:00", False), ("2-00:00:00", False)],
        *[("UNLIMITED", False), ("", False)],
    ],
)
def test_a_time_limit_that_is_too_short_is_refused(tmp_path, limit, refused):
    code, said = Site(tmp_path, limit=limit).run()
    assert code == (2 if refused else 0)
    assert ("is too short" in said) == refused
