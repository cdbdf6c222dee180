"""A real Ray cluster of three nodes on loopback: nodes that die, miss videos, are busy or absent.

Only here do nodes differ in what they find and in when they end: all the rest runs on one.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from obygaze_features.store import read_stage
from tests.later import needs
from tests.ports import free_ports
from tests.process import execute

from .clusters import descendants_of, run_locally, wait_until, with_backbone, write_films

pytestmark = [
    needs("ray"),
    pytest.mark.long,
    pytest.mark.nightly,  # waits for Ray's clocks
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="several nodes on one machine need Linux"
    ),
]
CLIPS = 24
GATED = 20
NAP_S = 0.1
HALF_AN_HOUR_S = 1800

# Holds the cores of all nodes but one until its input ends.
HOLDER = """
import sys, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(log_to_driver=False)
@ray.remote(num_cpus=1)
class Held:
    def ready(self): return True
nodes = [node for node in ray.nodes() if node["Alive"] and node["NodeManagerAddress"] != sys.argv[1]]
places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
held = [Held.options(scheduling_strategy=place).remote() for place in places]
ray.get([each.ready.remote() for each in held])
print("held", flush=True)
sys.stdin.read()
"""
JOINING = """
import os, sys
from obygaze_features.extraction import ray_leader
ray_leader.JOIN_S = float(os.environ["JOIN_S"])
from obygaze.cli import main
main(sys.argv[1:])
"""
# Waits until the head counts so many nodes.
COUNTING = """
import sys, time, ray
ray.init(log_to_driver=False)
while sum(node["Alive"] for node in ray.nodes()) != int(sys.argv[1]):
    time.sleep(0.2)
"""


class Nodes:
    """Raylets on 127.0.0.1, 127.0.0.2, ...: the first is the head."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.environment = environment | {"RAY_ADDRESS": self.address}
        self.folder, self.order = folder, folder / "order.json"
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, host: int, hidden: Path | None = None) -> None:
        """Start a node with one core; `hidden` is a folder that it finds empty.

        It is started again when it ends: Ray gives up a node that is not up after half a minute.
        """
        words = ["ray", "start", "--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]
        words += ["--block", f"--node-ip-address=127.0.0.{host}", f"--temp-dir={self.folder}"]
        if self.running:
            words += [f"--address={self.address}"]
        else:
            words += ["--head", f"--port={self.address.rpartition(':')[2]}", "--include-dashboard=false"]
        command = f"exec {sys.executable} -m ray.scripts.scripts {' '.join(words[1:])}"
        if hidden is not None:
            command = f"mount -t tmpfs none {hidden} && {command}"
        shell = ["unshare", "-m"] if hidden is not None else []

        def begin() -> None:
            if name in self.running and self.running[name].poll() is None:
                return
            with (self.folder / f"{name}.log").open("wb") as log:
                self.running[name] = subprocess.Popen(
                    [*shell, "bash", "-c", command],
                    env={key: word for key, word in self.environment.items() if key != "RAY_ADDRESS"}
                    | {"STOP_ORDER": str(self.order)},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )

        deadline = time.monotonic() + HALF_AN_HOUR_S
        begin()
        while "Ray runtime started" not in (self.folder / f"{name}.log").read_text(errors="replace"):
            if time.monotonic() > deadline:
                pytest.skip(f"the Ray node {name} did not come up on this machine within half an hour")
            time.sleep(0.2)
            begin()

    def wait(self, nodes: int) -> None:
        """Wait until the head counts so many nodes."""
        words = [sys.executable, "-c", COUNTING, str(nodes)]
        execute(*words, env=self.environment)

    @contextlib.contextmanager
    def held(self, hold, lines: int) -> Iterator[None]:
        """Have each encoder wait once so many clips stand in its journal."""
        self.order.write_text(json.dumps(hold.after_clips(lines)), encoding="utf-8")
        try:
            yield
        finally:
            self.order.unlink()

    def kill(self, name: str) -> None:
        """Kill a node as a power cut would: its agents, its raylet and all workers at once."""
        process = self.running.pop(name)
        for pid in [*descendants_of(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def leave(self, name: str) -> None:
        """Let a node go as an administrator would, and wait until the head knows."""
        process = self.running.pop(name)
        process.terminate()
        process.wait(timeout=1200)
        self.wait(len(self.running))

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    return write_films(tmp_path_factory.mktemp("films"), CLIPS, GATED)


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """An environment with the backbone `nap` installed."""
    site = tmp_path_factory.mktemp("site")
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5e" * 32}
    # Three nodes share the memory of one machine here, and each would think that the others fill it; their
    # workers would wait for minutes beside other tests.
    quiet = {"RAY_memory_monitor_refresh_ms": "0", "RAY_worker_niceness": "0"}
    return with_backbone(site, "nap") | token | quiet | {"NAP_S": str(NAP_S), "NAP_GATE": str(site / "gate")}


@pytest.fixture(scope="module")
def local(films, environment, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("local")
    return run_locally(folder, environment | {"NAP_S": "0"}, *command(films, "--engine", "local")[3:])


@pytest.fixture(scope="module")
def nodes(environment) -> Iterator[Nodes]:
    """Three nodes of one core each."""
    folder = Path(tempfile.mkdtemp(prefix="oby", dir="/tmp"))  # sockets need a short path
    cluster = Nodes(environment, folder)
    try:
        for host, name in enumerate(("head", "second", "third"), 1):
            cluster.start(name, host)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def command(films: Path, *more: str, program: tuple[str, str] = ("-m", "obygaze")) -> list[str]:
    words = [sys.executable, *program, "extract", str(films / "films.csv"), "films"]
    return [*words, "--backbone", "nap", "--corpus", "films", "--licence", "CC0-1.0", *more]


@contextlib.contextmanager
def started(
    films: Path, folder: Path, environment: dict[str, str], program: tuple[str, str] = ("-m", "obygaze")
) -> Iterator[subprocess.Popen[str]]:
    """Run the Ray engine, with its messages in `said`."""
    with (folder / "said").open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            command(films, "--engine", "ray", "--batch-size", "2", program=program),
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=said,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def held(nodes: Nodes, spared: str = "") -> Iterator[None]:
    """Hold the cores of all nodes but one."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, spared],
        env=nodes.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        yield
        holder.stdin.close()
        holder.wait(timeout=1200)


def said(folder: Path) -> str:
    return (folder / "said").read_text(encoding="utf-8")


def test_a_node_that_does_not_find_videos_stops_the_run_by_name(films, local, nodes, tmp_path, tree):
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("hiding a folder from one node needs root and mount namespaces")
    nodes.leave("third")
    nodes.start("blind", 4, hidden=films)
    # The others find the videos but have no core free, so the blind node, 127.0.0.4, gets the first clips.
    with held(nodes, "127.0.0.4"), started(films, tmp_path, nodes.environment) as running:
        code = running.wait(timeout=1200)
    nodes.leave("blind")
    nodes.start("third", 3)  # back for the second run, and for other tests
    assert code == 1, said(tmp_path)
    assert re.search(r"error: node \S+ \(127.0.0.4\) does not find .*/tt\d/clip-\d+.mp4, and", said(tmp_path))
    assert "Traceback" not in said(tmp_path)
    assert not (tmp_path / "films-1.0.0").exists()
    entries = read_stage(tmp_path / "films.staging").status().values()
    # Only the clip that no node finds counts as missing, and not those that the blind one did not find.
    assert {entry.clip_id for entry in entries if "no such file" in entry.reason} == {"tt1-901"}
    with started(films, tmp_path, nodes.environment) as running:
        assert running.wait(timeout=1200) == 3, said(tmp_path)  # done, with clips that failed
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_node_killed_in_the_middle_costs_nothing(films, local, nodes, tmp_path, tree, hold):
    nodes.wait(3)
    with nodes.held(hold, 3), started(films, tmp_path, nodes.environment) as running:
        hold.wait_for_processes(1, running.poll)
        nodes.kill("third")
        hold.release()
        assert running.wait(timeout=1200) == 3, said(tmp_path)
    assert "3 nodes with 3 cores, 3 decoders, 3 encoders" in said(tmp_path)
    nodes.wait(2)  # the head takes a while to notice
    assert tree(tmp_path / "films-1.0.0") == tree(local)


def test_a_wait_for_busy_cores_of_a_cluster_is_noted_and_can_be_stopped(films, nodes, tmp_path):
    with held(nodes), started(films, tmp_path, nodes.environment) as running:
        wait_until(lambda: "free in the Ray cluster: 0 of " in said(tmp_path), running.poll)
        running.terminate()
        assert running.wait(timeout=1200) == 143, said(tmp_path)
    assert "stopped; 25 clips are left" in said(tmp_path)
    assert "Traceback" not in said(tmp_path)


def test_a_run_whose_head_was_lost_can_be_finished_elsewhere(
    films, local, nodes, environment, tmp_path, tree, hold
):
    gate = Path(environment["NAP_GATE"])
    gate.touch()  # what one clip waits for cannot have come before the head is lost
    try:
        with nodes.held(hold, 3), started(films, tmp_path, nodes.environment) as running:
            hold.wait_for_processes(1, running.poll)
            nodes.kill("head")
            hold.release()
            assert running.wait(timeout=1200) == 1, said(tmp_path)
    finally:
        gate.unlink()
    assert re.search(r"error: the Ray cluster at \S+ was lost: .* \d+ clips are left", said(tmp_path))
    result = subprocess.run(
        command(films), cwd=tmp_path, env=environment | {"NAP_S": "0"}, capture_output=True, check=False
    )
    assert result.returncode == 3
    assert tree(tmp_path / "films-1.0.0") == tree(local)


@pytest.mark.parametrize(
    ("address", "words"), [("127.0.0.1:9", "nobody answers there"), ("ray://127.0.0.1:9", "clients outside")]
)
def test_an_address_that_is_no_clusters_is_refused_at_once(films, environment, tmp_path, address, words):
    with started(films, tmp_path, environment | {"RAY_ADDRESS": address}) as running:
        assert running.wait(timeout=1200) == 1
    assert re.search(f"error: RAY_ADDRESS={address}: .*{words}", said(tmp_path))


def test_a_head_that_accepts_and_never_answers_is_given_up_and_the_wait_can_be_stopped(
    films, environment, tmp_path
):
    folders = [tmp_path / "patient", tmp_path / "stopped"]
    for folder in folders:
        folder.mkdir()
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        here = environment | {"RAY_ADDRESS": f"127.0.0.1:{mute.getsockname()[1]}"}
        # The limit of 50 s is held below.
        program = ("-c", JOINING)
        with (
            started(films, folders[0], here | {"JOIN_S": "5"}, program) as patient,
            started(films, folders[1], here | {"JOIN_S": "inf"}, program) as stopped,
        ):
            # The stage is begun: the signal handlers are in place before.
            wait_until(lambda: list(folders[1].glob("films.staging/journal/*.jsonl")), stopped.poll)
            stopped.terminate()
            assert stopped.wait(timeout=1200) == 143, said(folders[1])
            assert patient.wait(timeout=1200) == 1, said(folders[0])
    assert "did not let this process in within 5 s" in said(folders[0])
    assert "obygaze: stopped" in said(folders[1])
    assert "Traceback" not in said(folders[0]) + said(folders[1])


def test_the_waits_for_a_ray_cluster_are_noted_within_a_minute():
    from obygaze_features.extraction import ray_driver, ray_leader

    assert ray_leader.ANSWER_S + ray_leader.JOIN_S <= 60
    assert ray_driver.FIRST_NOTE_S <= 60
