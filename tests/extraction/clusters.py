"""What runs on clusters need: an environment with a lab's own backbone, and films in folders."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from obygaze.demo_corpus import write_video
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.lab_package import describe
from tests.process import python

SCRIPTS = Path(__file__).parents[2] / "obygaze_features" / "job_scripts"


def wait_until(done: Callable[[], object], exit_code: Callable[[], object] = lambda: None) -> None:
    """Wait until `done` is true; fail once the process that brings it about has an exit code."""
    deadline = time.monotonic() + 1800
    while not done():
        assert exit_code() is None, "the process ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants_of(pid: int) -> list[int]:
    """List the ids of the processes that a process began, of those that these began, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # Behind the program's name, in brackets, come the state and the parent's id (proc(5)).
            _, _, behind_name = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")
            _, parent, *_ = behind_name.split()
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    descendants = []
    waiting = [pid]
    while waiting:
        own_children = children.get(waiting.pop(), [])
        descendants += own_children
        waiting += own_children
    return descendants


def with_backbone(site: Path, name: str) -> dict[str, str]:
    """Install a backbone that lies beside this file; return an environment that finds it, and no cluster."""
    for file in (f"{name}.py", "stopping.py"):
        shutil.copy(Path(__file__).with_name(file), site)
    describe(site, name, f"[obygaze.backbones]\n{name} = {name}:{name}\n")
    others = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "SLURM"))}
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return others | {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"}


def write_films(folder: Path, n_clips: int, gated: int | None = None) -> Path:
    """Write clips in the folders tt1 to tt3, one that is nowhere, and one whose file is empty; films.csv.

    The clip `gated` is 66 pixels wide: it is decoded only when the file that NAP_GATE names is gone.
    """
    clips = []
    for i in range(n_clips):
        movie = f"tt{1 + i % 3}"
        (folder / movie).mkdir(exist_ok=True)
        width = 66 if i == gated else 64
        frames = (np.full((48, width, 3), (7 * i + t) % 256, np.uint8) for t in range(12 + i % 24))
        write_video(folder / movie / f"clip-{i:02d}.mp4", frames, 24)
        clips.append(Clip(f"{movie}-{i:03d}", movie, f"{movie}/clip-{i:02d}.mp4"))
    (folder / "tt1" / "empty.mp4").touch()
    clips += [Clip("tt1-900", "tt1", "tt1/empty.mp4"), Clip("tt1-901", "tt1", "tt1/absent.mp4")]
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def run_locally(folder: Path, environment: dict[str, str], *words: str) -> Path:
    """Return the store films-1.0.0 that the local engine makes, in which some clips have failed."""
    python("-m", "obygaze", *words, "--workers", "2", code=3, cwd=folder, env=environment)
    return folder / "films-1.0.0"


WAITS_MINUTES = "for i in {1..6000}; do sleep 0.05; done"
"""What a command does for five minutes; before it, the file `ready` says that a signal may come."""

EXITS_143_ON_TERM = f"trap 'exit 143' TERM; touch ready; {WAITS_MINUTES}"
"""As a command that is stopped: 128 + SIGTERM."""

EXITS_0_ON_TERM = f"trap 'exit 0' TERM; touch ready; {WAITS_MINUTES}"
"""As one that finishes in time."""

# Bash loses one of two signals that come at once; Slurm's are minutes apart.
EXITS_143_ON_SECOND_TERM = f"trap 'trap \"exit 143\" TERM; touch ready.2' TERM; touch ready; {WAITS_MINUTES}"

# Names its cluster; keeps everything else that it is asked for in a file.
SCONTROL = '[ "$1" = show ] && echo "ClusterName = alpha" || echo "$@" > asked'


class FakeSlurm:
    """A folder with stand-ins for the command and for those of Slurm, in which a job script is run.

    `command` is what the command `name` does, after it wrote its arguments to a file; `limit` the time limit
    that squeue tells of the job.
    """

    def __init__(self, folder: Path, command: str = "exit 0", limit: str = "4:00:00", name: str = "obygaze"):
        self.folder = folder
        stand_ins = {name: f'echo "$@" > arguments; {command}', "scontrol": SCONTROL}
        for program, body in (stand_ins | {"squeue": f"echo {limit}"}).items():
            (folder / program).write_text(f"#!/bin/bash\n{body}\n", encoding="utf-8")
            (folder / program).chmod(0o755)

    def run(
        self, script: str, *words: str, signals: Iterable[signal.Signals] = (), **variables: str
    ) -> tuple[int, str]:
        """Run a script and send it each signal once the command is ready; return exit code and output."""
        task = {"SLURM_JOB_ID": "11", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "2"} | variables
        with subprocess.Popen(
            ["bash", SCRIPTS / script, *words],
            cwd=self.folder,
            env=os.environ | task | {"PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for signal_sent, ready in zip(signals, ("ready", "ready.2"), strict=False):
                wait_until((self.folder / ready).exists)
                running.send_signal(signal_sent)
            output, _ = running.communicate(timeout=600)
        return running.returncode, output

    @property
    def asked_of_slurm(self) -> str:
        """What Slurm was asked for."""
        path = self.folder / "asked"
        return path.read_text(encoding="utf-8").strip() if path.exists() else ""
