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

from .clusters import SCRIPTS

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
        ports = free_ports(4)
        host = socket.gethostname().partition(".")[0]
        (self.folder / "state").mkdir()
        text = CONFIGURATION.format(host=host, folder=self.folder, ports=ports)
        (self.folder / "slurm.conf").write_text(text, encoding="utf-8")
        key = self.folder / "munge" / "key"
        key.parent.mkdir(mode=0o700)
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        munge = [f"--{what}-file={key.parent / what}" for what in ("pid", "log", "seed")]
        socket_ = f"--socket={self.folder / 'munge.socket'}"
        self._start("munged", ["munged", "--foreground", "--force", f"--key-file={key}", socket_, *munge])
        self._until((self.folder / "munge.socket").exists, "munged did not come up")
        self._start("slurmctld", ["slurmctld", "-D", "-i"])
        for name in NODES:
            self.start_node(name)

    def _start(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def _until(self, is_done, what: str) -> None:
        deadline = time.monotonic() + 300
        while not is_done():
            if time.monotonic() > deadline:
                logs = "".join(path.read_text(errors="replace")[-500:] for path in self.folder.glob("*.log"))
                pytest.skip(f"{what} on this machine within five minutes: {logs[-1500:]}")
            time.sleep(0.2)

    def start_node(self, name: str, hidden: Path | None = None) -> None:
        """Start a node; `hidden` is a folder that it finds empty."""
        (self.folder / f"spool-{name}").mkdir(exist_ok=True)
        command = f"exec slurmd -D -N {name}"
        words = ["bash", "-c", command]
        if hidden is not None:
            words = ["unshare", "-m", "bash", "-c", f"mount -t tmpfs none {hidden} && {command}"]
        self._start(name, words)
        self._until(
            lambda: "idle" in self.ask("sinfo", "-h", "-n", name, "-o", "%t"), f"node {name} did not come up"
        )

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
        """Find the processes of jobs on a node, and those of Slurm that hold them and outlive slurmd."""
        of_node = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()}
        pids = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if of_node <= set((entry / "environ").read_bytes().split(b"\0")):
                    words = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                    parent = Path("/proc") / words.rpartition(")")[2].split()[1]
                    if b"slurmstepd" in (parent / "cmdline").read_bytes():
                        pids.append(int(parent.name))
                    pids.append(int(entry.name))
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
        given = {name: str(value) for name, value in variables.items()}
        command = ("sbatch", "--parsable", *small, *options, SCRIPTS / script, *words)
        result = execute(*command, cwd=folder, env=self.environment | given)
        return result.stdout.strip()

    def jobs(self, number: str) -> Jobs:
        """Look a job up, or the tasks of an array: task, or "" -> its fields."""
        fields_of_task = {}
        for line in self.ask("scontrol", "show", "job", "-o", number).splitlines():
            fields = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
            if "JobState" in fields:
                fields_of_task[fields.get("ArrayTaskId", "")] = fields
        return fields_of_task

    def wait(
        self, number: str, *, timeout_s: float = 1800, seen: Callable[[Jobs], object] = lambda _: None
    ) -> Jobs:
        """Wait until a job and all its turns have ended; the two minutes before a turn become five seconds.

        A node refuses a turn that is sent out in the second in which the one before it was revoked. `seen`
        gets what the controller says of the job, every half second.
        """
        deadline = time.monotonic() + timeout_s
        pending: dict[str, float] = {}
        while True:
            jobs = self.jobs(number)
            assert jobs, number
            if all(job["JobState"] in ENDED for job in jobs.values()):
                return jobs
            seen(jobs)
            for task, job in jobs.items():
                if job["JobState"] != "PENDING" or job.get("Reason") != "BeginTime":
                    pending.pop(task, None)
                elif time.monotonic() - pending.setdefault(task, time.monotonic()) > 5:
                    job_id = f"{number}_{task}" if task else number
                    self.ask("scontrol", "update", f"JobId={job_id}", "StartTime=now")
            assert time.monotonic() < deadline, jobs
            time.sleep(0.5)
