"""A real Slurm on loopback: one controller and three nodes."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.process import execute

from .clusters import SCRIPTS, parent_of

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "srun")
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
ABSENT = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
SHARDS = 4
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE"}
NODES = ("n1", "n2", "n3")
Jobs = dict[str, dict[str, str]]
"""Task of an array, or "" -> the fields of its job."""
CONFIGURATION = """
ClusterName=oby
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
ReturnToService=2
KillWait=300
SlurmdTimeout=30
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=9000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=9000
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs=4 RealMemory=9000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL State=UP MaxTime=INFINITE PriorityTier=10
"""


class Slurm:
    """A controller and three nodes, all on this machine, in a folder of their own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        """Start the daemon of credentials, the controller and all nodes; return when the nodes are idle."""
        self._write_configuration()
        self._start_munge()
        stay_in_foreground, ignore_damaged_state = "-D", "-i"
        self._start("slurmctld", ["slurmctld", stay_in_foreground, ignore_damaged_state])
        for name in NODES:
            self.start_node(name)

    def _write_configuration(self) -> None:
        (self.folder / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        text = CONFIGURATION.format(host=host, folder=self.folder, ports=free_ports(4))
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")

    def _start_munge(self) -> None:
        """Start the daemon of credentials with a key, files and a socket of its own."""
        files = self.folder / "munge"
        files.mkdir(mode=0o700)
        key = files / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge_socket = self.folder / "munge.socket"
        command = ["munged", "--foreground"]
        command += ["--force"]  # though others may read the folder of the socket
        command += [f"--key-file={key}", f"--socket={munge_socket}"]
        command += [f"--{kind}-file={files / kind}" for kind in ("pid", "log", "seed")]
        self._start("munged", command)
        self._wait_until(munge_socket.exists, "munged did not come up")

    def _start(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def _wait_until(self, is_done: Callable[[], object], failure: str) -> None:
        """Wait for five minutes at most; then skip the test with `failure`: this machine runs no Slurm."""
        deadline = time.monotonic() + 300
        while not is_done():
            if time.monotonic() > deadline:
                ends_of_logs = [path.read_text(errors="replace")[-500:] for path in self.folder.glob("*.log")]
                logs = "".join(ends_of_logs)[-1500:]
                pytest.skip(f"{failure} on this machine within five minutes: {logs}")
            time.sleep(0.2)

    def start_node(self, name: str, hidden: Path | None = None) -> None:
        """Start a node; `hidden` is a folder that it finds empty."""
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        command = f"exec slurmd -D -N {name}"
        words = ["bash", "-c", command]
        if hidden is not None:
            words = ["unshare", "-m", "bash", "-c", f"mount -t tmpfs none {hidden} && {command}"]
        self._start(name, words)

        def is_idle() -> bool:
            return "idle" in self.ask("sinfo", "--noheader", "--nodes", name, "--format", "%t")

        self._wait_until(is_idle, f"node {name} did not come up")

    def kill_node(self, name: str) -> None:
        """Kill a node as a power cut would, and tell the controller, which would wait for SlurmdTimeout."""
        process = self.running.pop(name)
        process.kill()
        for pid in self.jobs_on(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        self.ask("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test")

    def jobs_on(self, name: str) -> list[int]:
        """List the processes of jobs on a node, and of slurmstepd, which started them and outlives slurmd."""
        variables_of_node = {
            f"SLURMD_NODENAME={name}".encode(),
            f"SLURM_CONF={self.folder}/slurm.conf".encode(),
        }
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended, or is another user's
                variables = set((process / "environ").read_bytes().split(b"\0"))
                if variables_of_node <= variables:
                    parent = parent_of(process)
                    if b"slurmstepd" in Path(f"/proc/{parent}/cmdline").read_bytes():
                        pids.append(parent)
                    pids.append(int(process.name))
        return pids

    def stop(self) -> None:
        for name in NODES:
            for pid in self.jobs_on(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in reversed(self.running.values()):
            process.kill()
            process.wait()

    def ask(self, *words: str) -> str:
        result = execute(*words, code=None, cwd=self.folder, env=self.environment)
        return result.stdout + result.stderr

    def submit(self, folder: Path, script: str, *words: str, options=(), **variables: object) -> str:
        """Submit a job script for small nodes; give the number of the job."""
        small = ["--gres=none", "--mem=500", "--cpus-per-task=1"]
        environment = self.environment | {name: str(value) for name, value in variables.items()}
        command = ("sbatch", "--parsable", *small, *options, SCRIPTS / script, *words)
        result = execute(*command, cwd=folder, env=environment)
        return result.stdout.strip()

    def jobs(self, number: str) -> Jobs:
        """Return what the controller says of a job, or of the tasks of an array.

        For each task ("" where the job is no array) these are its fields, such as JobState, and their values.
        """
        fields_of_task = {}
        for line in self.ask("scontrol", "show", "job", "--oneliner", number).splitlines():
            fields = {}
            for word in line.split():
                name, equals_sign, value = word.partition("=")
                if equals_sign:
                    fields[name] = value
            if "JobState" in fields:
                fields_of_task[fields.get("ArrayTaskId", "")] = fields
        return fields_of_task

    def wait(
        self, number: str, *, timeout_s: float = 1800, seen: Callable[[Jobs], object] = lambda _: None
    ) -> Jobs:
        """Wait until all tasks of a job have ended for good, and return their fields.

        A task may be queued again for another turn: see `_begin_delayed_turns`. `seen` gets what the
        controller says of the job, every half second.
        """
        deadline = time.monotonic() + timeout_s
        delayed_since: dict[str, float] = {}
        while True:
            jobs = self.jobs(number)
            assert jobs, number
            if all(job["JobState"] in ENDED for job in jobs.values()):
                return jobs
            seen(jobs)
            self._begin_delayed_turns(number, jobs, delayed_since)
            assert time.monotonic() < deadline, jobs
            time.sleep(0.5)

    def _begin_delayed_turns(self, number: str, jobs: Jobs, delayed_since: dict[str, float]) -> None:
        """Begin a task that is queued again after five seconds; Slurm would wait for two minutes.

        Not at once: a node refuses a task in the second in which it gave up the turn before. `delayed_since`
        keeps the time at which each task was first seen to wait.
        """
        now = time.monotonic()
        for task, job in jobs.items():
            is_delayed = job["JobState"] == "PENDING" and job.get("Reason") == "BeginTime"
            if not is_delayed:
                delayed_since.pop(task, None)
                continue
            delayed_since.setdefault(task, now)
            if now - delayed_since[task] > 5:
                job_id = f"{number}_{task}" if task else number
                self.ask("scontrol", "update", f"JobId={job_id}", "StartTime=now")
