"""The job scripts of docs/slurm under a real Slurm: one controller and three nodes on loopback."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from obygaze_features.demo.corpus import write_video
from obygaze_features.errors import StoreError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import JournalEntry, read_stage
from tests.ports import free_ports

SCRIPTS = Path(__file__).parents[2] / "docs" / "slurm"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "srun")
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin", "/sbin"])
ABSENT = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        bool(ABSENT), reason=f"no Slurm here ({', '.join(ABSENT)}): apt-get install slurm-wlm"
    ),
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]
CLIPS, SHARDS = 24, 4
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
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=8000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 RealMemory=8000
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[3]} CPUs=4 RealMemory=8000
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE
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

    def _until(self, done, what: str) -> None:
        deadline = time.monotonic() + 300
        while not done():
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
        wanted = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()}
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                    words = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                    parent = Path("/proc") / words.rpartition(")")[2].split()[1]
                    if b"slurmstepd" in (parent / "cmdline").read_bytes():
                        found.append(int(parent.name))
                    found.append(int(entry.name))
        return found

    def stop(self) -> None:
        for name in NODES:
            for pid in self.jobs_on(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in reversed(self.running.values()):
            process.kill()
            process.wait()

    def ask(self, *words: str) -> str:
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, cwd=self.folder
        )
        return done.stdout + done.stderr

    def submit(self, folder: Path, script: str, *words: str, options=(), **variables: object) -> str:
        """Submit a script of docs/slurm for small nodes; give the number of the job."""
        small = ["--gres=none", "--mem=500", "--cpus-per-task=1"]
        variables = {"SHARDS": SHARDS, **variables}
        done = subprocess.run(
            ["sbatch", "--parsable", *small, *options, str(SCRIPTS / script), *map(str, words)],
            cwd=folder,
            env=self.environment | {name: str(value) for name, value in variables.items()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def jobs(self, number: str) -> Jobs:
        """Look a job up, or the tasks of an array: task, or "" -> its fields."""
        found = {}
        for line in self.ask("scontrol", "show", "job", "-o", number).splitlines():
            fields = dict(word.partition("=")[::2] for word in line.split() if "=" in word)
            if "JobState" in fields:
                found[fields.get("ArrayTaskId", "")] = fields
        return found

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
                    self.ask("scontrol", "update", f"JobId={number}{'_' * bool(task)}{task}", "StartTime=now")
            assert time.monotonic() < deadline, jobs
            time.sleep(0.5)


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    """24 clips in the folders tt1 to tt3, one that is nowhere, and one whose file is empty."""
    folder = tmp_path_factory.mktemp("films")
    clips = []
    for i in range(CLIPS):
        movie = f"tt{1 + i % 3}"
        (folder / movie).mkdir(exist_ok=True)
        frames = (np.full((48, 64, 3), (7 * i + t) % 256, np.uint8) for t in range(12 + i))
        write_video(folder / movie / f"clip-{i:02d}.mp4", frames, 24)
        clips.append(Clip(f"{movie}-{i:03d}", movie, f"{movie}/clip-{i:02d}.mp4"))
    (folder / "tt1" / "empty.mp4").touch()
    clips += [Clip("tt1-900", "tt1", "tt1/empty.mp4"), Clip("tt1-901", "tt1", "tt1/absent.mp4")]
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[Slurm]:
    """A Slurm of three nodes, whose jobs find the backbone `nap`."""
    site = tmp_path_factory.mktemp("site")
    for name in ("nap.py", "stopping.py"):
        shutil.copy(Path(__file__).with_name(name), site)
    about = site / "nap-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nap\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[obygaze.backbones]\nnap = nap:nap\n", encoding="utf-8")
    others = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "SLURM"))}
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    folder = Path(tempfile.mkdtemp(prefix="slurm"))
    cluster = Slurm(folder, others | {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0"})
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def local(films, slurm, tmp_path_factory) -> Path:
    """What the local engine makes."""
    folder = tmp_path_factory.mktemp("local")
    done = subprocess.run(
        [sys.executable, "-m", "obygaze", *work(films), "--workers", "2", "--licence", "CC0-1.0"],
        cwd=folder,
        env=slurm.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    return folder / "films-1.0.0"


def work(films: Path) -> list[str]:
    return ["extract", str(films / "films.csv"), "films", "--backbone", "nap", "--corpus", "films"]


def arguments(films: Path) -> list[str]:
    return [*work(films)[1:], "--batch-size", "1"]


def logs(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.log")))


def words_of(pid: int) -> str:
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode().replace("\0", " ")


def journalled(folder: Path) -> list[JournalEntry]:
    with contextlib.suppress(OSError, StoreError):  # not begun yet
        return list(read_stage(folder / "films.staging").status().values())
    return []


def seal(slurm: Slurm, folder: Path) -> dict[str, str]:
    number = slurm.submit(folder, "seal.sbatch", "films", "--licence", "CC0-1.0")
    return slurm.wait(number)[""]


def states(jobs: Jobs) -> dict[str, tuple[str, str]]:
    return {task: (job["JobState"], job["ExitCode"].partition(":")[0]) for task, job in jobs.items()}


def test_an_array_whose_time_is_up_goes_on_in_another_turn_and_is_then_sealed(
    slurm, films, local, tmp_path, tree, hold
):
    # Slurm sends the signal half a minute to a minute after the begin, and each share waits for it.
    limits = ["--array=0-3", "--time=2", "--signal=B:USR1@60"]
    words = arguments(films)
    array = slurm.submit(tmp_path, "array.sbatch", *words, options=limits, SHORTEST=0, **hold.at(1))
    after = ["--dependency=afterok:" + array]
    sealing = slurm.submit(tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after)

    def seen(jobs: Jobs) -> None:
        if len(jobs) == SHARDS and all(int(job["Restarts"]) for job in jobs.values()):
            hold.release()

    ended = slurm.wait(array, seen=seen)
    assert states(ended) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}, logs(tmp_path)
    assert "turn 2 of 20" in logs(tmp_path)
    assert slurm.wait(sealing)[""]["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_scancel_cancels_and_what_is_done_is_kept(slurm, films, tmp_path, hold):
    both = ["--array=0-1"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=both, **hold.at(1))
    hold.wait(2)
    slurm.ask("scancel", array)
    time.sleep(10)  # it came back after seconds
    ended = slurm.wait(array)
    assert {job["JobState"] for job in ended.values()} == {"CANCELLED"}, ended
    assert {job["Restarts"] for job in ended.values()} == {"0"}
    assert len(re.findall("obygaze: stopped; .* clips are left", logs(tmp_path))) == 2
    assert slurm.ask("squeue", "-h", "-j", array).split() == []
    assert not (tmp_path / "films-1.0.0").exists()


def test_one_task_is_run_again_by_its_number_and_never_seals(slurm, films, local, tmp_path, tree, hold):
    every = ["--array=0-3"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=every, TURNS=1, **hold.at(1))
    [last] = [pid for pid in hold.wait(SHARDS) if f"--shard 3/{SHARDS}" in words_of(pid)]
    os.kill(last, signal.SIGKILL)
    hold.release()
    ended = slurm.wait(array)
    assert {task: state for task, (state, _) in states(ended).items()} == {
        "0": "COMPLETED", "1": "COMPLETED", "2": "COMPLETED", "3": "FAILED"
    }  # fmt: skip
    assert "turn 1 of 1: not queued again" in logs(tmp_path)
    before = len(journalled(tmp_path))
    again = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=3"])
    assert states(slurm.wait(again)) == {"3": ("COMPLETED", "0")}, logs(tmp_path)
    assert before < len(journalled(tmp_path)) == CLIPS + 2
    assert not (tmp_path / "films-1.0.0").exists()
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_failed_task_is_queued_again_by_scontrol_with_its_share(slurm, films, tmp_path, hold):
    one = ["--array=1"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=one, TURNS=1, **hold.at(1))
    os.kill(hold.wait(1)[0], signal.SIGKILL)
    hold.release()
    assert states(slurm.wait(array))["1"][0] == "FAILED"
    assert slurm.ask("scontrol", "requeue", f"{array}_1") == ""
    slurm.wait(array)
    assert "share 1 of 4, turn 2" in logs(tmp_path)


def test_a_task_that_dies_is_queued_again(slurm, films, tmp_path, hold):
    one = ["--array=2"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=one, **hold.at(1))
    os.kill(hold.wait(1)[0], signal.SIGKILL)
    hold.release()
    ended = slurm.wait(array)
    assert states(ended) == {"2": ("COMPLETED", "0")}, logs(tmp_path)
    assert ended["2"]["Restarts"] == "1"


def test_a_refused_requeue_is_a_failed_job(slurm, films, tmp_path, hold):
    limits = ["--array=0", "--no-requeue"]
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=limits, **hold.at(1))
    hold.wait(1)
    slurm.ask("scancel", "--batch", "--signal=USR1", f"{array}_0")
    assert states(slurm.wait(array)) == {"0": ("FAILED", "143")}, logs(tmp_path)
    assert "Slurm refused another turn" in logs(tmp_path)


def test_a_time_limit_that_is_too_short_and_a_share_that_is_none_are_usage_errors(slurm, films, tmp_path):
    short = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=0", "--time=3"])
    beyond = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=7"])
    for array, words in ((short, r"--time=3:00 is too short"), (beyond, "'7/4' is not i/n")):
        assert [code for _, code in states(slurm.wait(array)).values()] == ["2"], logs(tmp_path)
        assert re.search(words, logs(tmp_path))


def test_a_job_that_finds_no_obygaze_says_where_to_put_the_lines(slurm, films, tmp_path):
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=0", "--export=NONE"])
    assert [code for _, code in states(slurm.wait(array)).values()] == ["127"], logs(tmp_path)
    assert "marked place of this script" in logs(tmp_path)


def test_a_node_killed_under_an_array_costs_its_tasks_a_turn(slurm, films, local, tmp_path, tree, hold):
    spread = ["--array=0-3", "--cpus-per-task=2"]  # two tasks fill a node of four cores
    array = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=spread, **hold.at(1))
    hold.wait(SHARDS)
    victim = slurm.jobs(array)["0"]["NodeList"]
    slurm.kill_node(victim)
    hold.release()
    ended = slurm.wait(array)
    slurm.start_node(victim)
    assert states(ended) == {str(task): ("COMPLETED", "0") for task in range(SHARDS)}, logs(tmp_path)
    assert int(ended["0"]["Restarts"]) == 1
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_node_without_the_videos_leaves_no_hole(slurm, films, local, tmp_path, tree):
    slurm.kill_node("n3")
    slurm.start_node("n3", hidden=films / "tt3")
    try:
        seeing = slurm.submit(
            tmp_path, "array.sbatch", *arguments(films), options=["--array=0-2", "-w", "n1"]
        )
        slurm.wait(seeing)
        words, only = arguments(films), ["--array=3", "--nodelist=n3"]
        blind = slurm.submit(tmp_path, "array.sbatch", *words, options=only, TURNS=2)
        after = ["--dependency=afterok:" + blind]
        sealing = slurm.submit(tmp_path, "seal.sbatch", "films", "--licence", "CC0-1.0", options=after)
        assert states(slurm.wait(blind)) == {"3": ("FAILED", "1")}, logs(tmp_path)
        assert re.search(
            r"n3 does not find the videos of 8 clips, such as .*/tt3/.*, and n1 does", logs(tmp_path)
        )
        assert slurm.wait(sealing)[""]["JobState"] == "CANCELLED"  # its dependency can never be met
        assert {entry.clip_id for entry in journalled(tmp_path) if "no such file" in entry.reason} <= {
            "tt1-901"
        }
        assert not (tmp_path / "films-1.0.0").exists()
    finally:
        slurm.kill_node("n3")
        slurm.start_node("n3")
    again = slurm.submit(tmp_path, "array.sbatch", *arguments(films), options=["--array=3"])
    assert states(slurm.wait(again)) == {"3": ("COMPLETED", "0")}, logs(tmp_path)
    assert seal(slurm, tmp_path)["JobState"] == "COMPLETED", logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_one_allocation_of_three_nodes_is_a_ray_cluster(slurm, films, local, tmp_path, tree):
    pytest.importorskip("ray")
    words = [*arguments(films), "--licence", "CC0-1.0"]
    number = slurm.submit(
        tmp_path,
        "ray.sbatch",
        *words,
        options=["--mem=2000", "--overcommit"],
        ADDRESS="127.0.0.1",
        OBJECT_STORE=80000000,
        RAY_memory_monitor_refresh_ms=0,
    )
    assert states(slurm.wait(number)) == {"": ("COMPLETED", "0")}, logs(tmp_path)
    assert tree(tmp_path / "films-1.0.0") == tree(local)
