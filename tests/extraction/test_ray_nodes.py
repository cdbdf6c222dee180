"""A real Ray cluster of three nodes on loopback: nodes that die, miss videos, are busy or absent.

Only here do nodes differ in what they find and in when they end: all the rest runs on one.
"""

import contextlib
import json
import os
import re
import shlex
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
from tests.lazy_import import needs
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
N_CLIPS = 24
GATED_CLIP = 20
"""The clip that is decoded only when the file that NAP_GATE names is gone."""
NAP_S = 0.1
HALF_AN_HOUR_S = 1800

TAKE_CORES = """
import sys, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(log_to_driver=False)
@ray.remote(num_cpus=1)
class Taken:
    def ready(self): return True
nodes = [node for node in ray.nodes() if node["Alive"] and node["NodeManagerAddress"] != sys.argv[1]]
places = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
taken = [Taken.options(scheduling_strategy=place).remote() for place in places]
ray.get([core.ready.remote() for core in taken])
print("taken", flush=True)
sys.stdin.read()
"""
"""Takes the cores of all nodes but the one of an address, until its input ends."""
EXTRACT_WITH_JOIN_LIMIT = """
import os, sys
from obygaze_features.extraction import ray_leader
ray_leader.JOIN_S = float(os.environ["JOIN_S"])
from obygaze.cli import main
main(sys.argv[1:])
"""
"""`obygaze`, which waits JOIN_S seconds at most for a cluster to let it in."""
WAIT_FOR_NODES = """
import sys, time, ray
ray.init(log_to_driver=False)
while sum(node["Alive"] for node in ray.nodes()) != int(sys.argv[1]):
    time.sleep(0.2)
"""
"""Waits until the head counts so many nodes."""


class Nodes:
    """Raylets on 127.0.0.1, 127.0.0.2, ...: the first is the head."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.environment = environment | {"RAY_ADDRESS": self.address}
        self.folder, self.order = folder, folder / "order.json"
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, host: int, hidden: Path | None = None) -> None:
        """Start a node with one core; `hidden` is a folder that it finds empty.

        Ray gives up a node that is not up after half a minute: it is started again when it ends.
        """
        command = self._command_of_node(host, is_head=not self.running, hidden=hidden)
        log = self.folder / f"{name}.log"
        self._start(name, command, log)
        deadline = time.monotonic() + HALF_AN_HOUR_S
        while "Ray runtime started" not in log.read_text(errors="replace"):
            if time.monotonic() > deadline:
                pytest.skip(f"the Ray node {name} did not come up on this machine within half an hour")
            time.sleep(0.2)
            has_ended = self.running[name].poll() is not None
            if has_ended:
                self._start(name, command, log)

    def _command_of_node(self, host: int, *, is_head: bool, hidden: Path | None) -> list[str]:
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
        start += ["--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]
        start += [f"--node-ip-address=127.0.0.{host}", f"--temp-dir={self.folder}"]
        if is_head:
            _, _, port = self.address.rpartition(":")
            start += ["--head", f"--port={port}", "--include-dashboard=false"]
        else:
            start += [f"--address={self.address}"]
        if hidden is None:
            return start
        # In a name space of its own, an empty file system covers the folder.
        return ["unshare", "-m", "bash", "-c", f"mount -t tmpfs none {hidden} && exec {shlex.join(start)}"]

    def _start(self, name: str, command: list[str], log: Path) -> None:
        environment = self.environment | {"STOP_ORDER": str(self.order)}
        del environment["RAY_ADDRESS"]  # `ray start` would connect to it
        with log.open("wb") as file:
            self.running[name] = subprocess.Popen(
                command, env=environment, stdout=file, stderr=file, start_new_session=True
            )

    def wait_for_number(self, nodes: int) -> None:
        """Wait until the head counts so many nodes."""
        words = [sys.executable, "-c", WAIT_FOR_NODES, str(nodes)]
        execute(*words, env=self.environment)

    @contextlib.contextmanager
    def pausing(self, pause, after_clips: int) -> Iterator[None]:
        """Have each encoder pause once so many clips stand in its journal."""
        self.order.write_text(json.dumps(pause.variables(after_clips)), encoding="utf-8")
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
        self.wait_for_number(len(self.running))

    def stop(self) -> None:
        for name in list(self.running):
            self.kill(name)


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    return write_films(tmp_path_factory.mktemp("films"), N_CLIPS, GATED_CLIP)


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
def local_store(films, environment, tmp_path_factory) -> Path:
    """The store of the films that one process makes without Ray."""
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
    """What is typed to extract the films."""
    words = [sys.executable, *program, "extract", str(films / "films.csv"), "films"]
    return [*words, "--backbone", "nap", "--corpus", "films", "--licence", "CC0-1.0", *more]


@contextlib.contextmanager
def extraction_by_ray(
    films: Path, folder: Path, environment: dict[str, str], program: tuple[str, str] = ("-m", "obygaze")
) -> Iterator[subprocess.Popen[str]]:
    """Begin to extract the films by Ray in a folder; give the process, which ends with the block."""
    with (folder / "messages").open("w", encoding="utf-8") as messages_file:
        process = subprocess.Popen(
            command(films, "--engine", "ray", "--batch-size", "2", program=program),
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=messages_file,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cores_taken(nodes: Nodes, except_of: str = "") -> Iterator[None]:
    """Take the cores of all nodes but the one of an address, until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", TAKE_CORES, except_of],
        env=nodes.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as taking:
        assert taking.stdout.readline() == "taken\n"
        yield
        taking.stdin.close()
        taking.wait(timeout=1200)


def messages(folder: Path) -> str:
    """Read what the extraction in a folder has printed so far."""
    return (folder / "messages").read_text(encoding="utf-8")


DONE_BUT_FOR_CLIPS_THAT_FAILED = 3


@pytest.fixture
def blind_node(films, nodes):
    """The address of a node, in place of the third, that finds the folder of the videos empty."""
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("hiding a folder from one node needs root and mount namespaces")
    nodes.leave("third")
    nodes.start("blind", 4, hidden=films)
    yield "127.0.0.4"
    nodes.leave("blind")
    nodes.start("third", 3)


def test_a_node_that_does_not_find_the_videos_stops_the_run_and_is_named(films, nodes, blind_node, tmp_path):
    """Of the nodes that share an extraction by Ray, that at 127.0.0.4 finds the folder of videos empty.

    Its clips do not fail for that, since other nodes find them: the run ends with an error that names the
    node. Only the clip tt1-901, whose file is nowhere, fails for want of a file.
    """
    # The other nodes find the videos but have no core free, so that the blind one gets the first clips.
    with (
        cores_taken(nodes, except_of=blind_node),
        extraction_by_ray(films, tmp_path, nodes.environment) as extraction,
    ):
        exit_code = extraction.wait(timeout=1200)

    output = messages(tmp_path)
    assert exit_code == 1, output
    assert re.search(r"error: node \S+ \(127.0.0.4\) does not find .*/tt\d/clip-\d+.mp4, and", output)
    assert "Traceback" not in output
    assert not (tmp_path / "films-1.0.0").exists()

    clips_in_stage = read_stage(tmp_path / "films.staging").status().values()
    clips_without_file = {clip.clip_id for clip in clips_in_stage if "no such file" in clip.reason}
    assert clips_without_file == {"tt1-901"}


def test_a_run_goes_on_to_the_same_bytes_when_a_node_is_killed(
    films, local_store, nodes, tmp_path, file_digests, pause
):
    """Of three nodes of Ray one is killed while an encoder pauses, so that the run surely has clips left.

    The other two do them. The store then has the bytes of the store that one process made without Ray.
    """
    nodes.wait_for_number(3)
    with (
        nodes.pausing(pause, after_clips=3),
        extraction_by_ray(films, tmp_path, nodes.environment) as extraction,
    ):
        pause.wait_until_paused(number=1, exit_code=extraction.poll)
        nodes.kill("third")
        pause.end()
        exit_code = extraction.wait(timeout=1200)

    assert exit_code == DONE_BUT_FOR_CLIPS_THAT_FAILED, messages(tmp_path)
    assert "3 nodes with 3 cores, 3 decoders, 3 encoders" in messages(tmp_path)
    nodes.wait_for_number(2)  # before the next test begins: the head takes a while to notice
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


def test_a_run_that_waits_for_busy_cores_says_so_and_can_be_stopped(films, nodes, tmp_path):
    """Of 26 clips, 25 are left: the one whose file is absent is noted as failed before the wait."""
    with cores_taken(nodes), extraction_by_ray(films, tmp_path, nodes.environment) as extraction:
        wait_until(lambda: "free in the Ray cluster: 0 of " in messages(tmp_path), extraction.poll)
        extraction.terminate()
        exit_code = extraction.wait(timeout=1200)

    code_of_a_stopped_command = 128 + signal.SIGTERM
    assert exit_code == code_of_a_stopped_command, messages(tmp_path)
    assert "stopped; 25 clips are left" in messages(tmp_path)
    assert "Traceback" not in messages(tmp_path)


@pytest.fixture
def closed_gate(environment) -> Iterator[None]:
    """Let one clip not be decoded while the test runs, so that no extraction can end."""
    gate = Path(environment["NAP_GATE"])
    gate.touch()
    yield
    gate.unlink(missing_ok=True)


@pytest.mark.usefixtures("closed_gate")
def test_a_run_whose_head_node_is_killed_can_be_finished_without_the_cluster(
    films, local_store, nodes, environment, tmp_path, file_digests, pause
):
    """A cluster of Ray is lost when its head node is killed: the run ends with an error, and clips are left.

    The run is paused after three clips, and goes on once the head is killed. So that it cannot end before it
    notices, one clip is not decoded as long as a certain file, the gate, is there (`closed_gate`).

    Then the gate is opened, and a run without Ray finishes what is left. It gives the bytes of a store that
    was made without Ray from the beginning. Its exit code says that all is done, but for the clips of the
    corpus that cannot be read.
    """
    with (
        nodes.pausing(pause, after_clips=3),
        extraction_by_ray(films, tmp_path, nodes.environment) as extraction,
    ):
        pause.wait_until_paused(number=1, exit_code=extraction.poll)
        nodes.kill("head")
        pause.end()
        exit_code = extraction.wait(timeout=1200)

    assert exit_code == 1, messages(tmp_path)
    assert re.search(r"error: the Ray cluster at \S+ was lost: .* \d+ clips are left", messages(tmp_path))

    gate = Path(environment["NAP_GATE"])
    gate.unlink()
    without_naps = environment | {"NAP_S": "0"}  # seconds that the backbone `nap` waits at each clip
    execute(*command(films), code=DONE_BUT_FOR_CLIPS_THAT_FAILED, cwd=tmp_path, env=without_naps)

    assert file_digests(tmp_path / "films-1.0.0") == file_digests(local_store)


@pytest.mark.parametrize(
    ("address", "reason"),
    [("127.0.0.1:9", "nobody answers there"), ("ray://127.0.0.1:9", "clients outside")],
    ids=["a port that is closed", "an address for clients"],
)
def test_an_address_that_is_not_of_a_cluster_is_refused_at_once(
    films, environment, tmp_path, address, reason
):
    """Port 9 is closed; addresses that begin with ray:// are for clients outside of a cluster."""
    with extraction_by_ray(films, tmp_path, environment | {"RAY_ADDRESS": address}) as extraction:
        exit_code = extraction.wait(timeout=1200)

    assert exit_code == 1
    assert re.search(f"error: RAY_ADDRESS={address}: .*{reason}", messages(tmp_path))


@pytest.fixture
def environment_with_mute_head(environment) -> Iterator[dict[str, str]]:
    """The environment of an extraction whose cluster accepts its connection and never answers."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        yield environment | {"RAY_ADDRESS": f"127.0.0.1:{mute.getsockname()[1]}"}


def test_a_head_that_never_answers_is_given_up(films, environment_with_mute_head, tmp_path):
    """The cluster's head accepts the connection and is silent; JOIN_S limits the wait to 5 seconds."""
    environment = environment_with_mute_head | {"JOIN_S": "5"}
    program = ("-c", EXTRACT_WITH_JOIN_LIMIT)

    with extraction_by_ray(films, tmp_path, environment, program) as extraction:
        exit_code = extraction.wait(timeout=1200)

    assert exit_code == 1, messages(tmp_path)
    assert "did not let this process in within 5 s" in messages(tmp_path)
    assert "Traceback" not in messages(tmp_path)


def test_the_wait_for_a_head_that_never_answers_can_be_stopped(films, environment_with_mute_head, tmp_path):
    """The cluster's head accepts the connection and is silent, so that the run waits to be let in.

    It would wait for ever, as the usual limit to the wait is set to infinity (JOIN_S). Then it gets SIGTERM,
    and must end as any stopped command does, without a traceback.
    """
    environment = environment_with_mute_head | {"JOIN_S": "inf"}
    program = ("-c", EXTRACT_WITH_JOIN_LIMIT)

    with extraction_by_ray(films, tmp_path, environment, program) as extraction:
        # The command handles signals by the time that its stage has a journal.
        wait_until(lambda: list(tmp_path.glob("films.staging/journal/*.jsonl")), extraction.poll)
        extraction.terminate()
        exit_code = extraction.wait(timeout=1200)

    code_of_a_stopped_command = 128 + signal.SIGTERM
    assert exit_code == code_of_a_stopped_command, messages(tmp_path)
    assert "obygaze: stopped" in messages(tmp_path)
    assert "Traceback" not in messages(tmp_path)


def test_a_user_hears_of_a_wait_for_a_ray_cluster_within_a_minute():
    """These are the limits of time, in seconds, after which a message comes."""
    from obygaze_features.extraction import ray_driver, ray_leader

    until_a_head_is_given_up_s = ray_leader.ANSWER_S + ray_leader.JOIN_S
    until_busy_cores_are_noted_s = ray_driver.FIRST_NOTE_S

    assert until_a_head_is_given_up_s <= 60
    assert until_busy_cores_are_noted_s <= 60
