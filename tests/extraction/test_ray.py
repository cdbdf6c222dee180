"""The Ray engine: the same bytes as the local one, whoever dies on the way; only its processes are real.

Only here do clips kill decoders and encoders that Ray holds, and Ray's workers die under a run.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store
from tests.lazy_import import needs
from tests.process import execute

from .brittle import CRASHES_DECODER
from .clusters import grey_frames, run_locally, with_backbone

pytestmark = [
    needs("ray"),
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]

# Holds a cluster of two workers until its input ends, by our own code for clusters.
HOLDER = """
import sys, tempfile
from obygaze_features.extraction.ray_cluster import join_or_start, ray
with tempfile.TemporaryDirectory(prefix="oby", dir="/tmp", ignore_cleanup_errors=True) as folder:
    print(join_or_start(None, 2, folder), flush=True)
    sys.stdin.read()
    ray.shutdown()
"""

CRASHED, GARBAGE, DEADLY = "tt1-003", "tt2-001", "tt1-999"
"""Clips that fail: one crashes decoders, one is no video, and one kills encoders."""


@pytest.fixture(scope="module")
def films(tmp_path_factory) -> Path:
    """Twelve clips: ten that can be read, one that crashes the decoder and one of garbage; films.csv.

    In deadly.csv the clip DEADLY comes second, which is white and crashes the encoder.
    """
    folder = tmp_path_factory.mktemp("films")
    clips = []
    for number in range(11):
        clip_id = f"tt1-{number:03d}"
        width = CRASHES_DECODER if clip_id == CRASHED else 64
        frames = grey_frames(20 + 3 * number, first_grey=7 * number, width=width)
        write_video(folder / f"clip-{number:02d}.mp4", frames, rate=24)
        clips.append(Clip(clip_id, "tt1", f"clip-{number:02d}.mp4"))
    (folder / "garbage.mp4").write_bytes(np.random.default_rng(0).bytes(5000))
    clips.append(Clip(GARBAGE, "tt2", "garbage.mp4"))
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")

    white = [np.full((48, 64, 3), 255, np.uint8)] * 8
    write_video(folder / "white.mp4", white, rate=24)
    first, *others = clips
    with_deadly_clip = (first, Clip(DEADLY, "tt1", "white.mp4"), *others)
    write_manifest(Manifest(with_deadly_clip, folder), folder / "deadly.csv")
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """An environment with a lab's own backbone installed."""
    site = tmp_path_factory.mktemp("site")
    (site / "crashes").touch()
    files = {"BRITTLE_CRASHES": str(site / "crashes")}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "5e" * 32}
    return with_backbone(site, "brittle") | token | files


@pytest.fixture(scope="module")
def starting(environment):
    """A process that starts a cluster, which takes a while."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        process.stdin.close()
        process.wait(timeout=3000)


@pytest.fixture(scope="module")
def local_store(films, environment, starting, tmp_path_factory) -> Path:
    """The store of films.csv that the local engine makes; meanwhile the cluster starts, to save time."""
    assert starting.poll() is None
    words = words_of_command(films / "films.csv", "local")
    return run_locally(tmp_path_factory.mktemp("local"), environment, *words)


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Attributes
    ----------
    folder
        Where it made its store.
    result
        The JSON that it printed.
    messages
        What it wrote to its standard error.
    n_decoder_crashes
        How often the clip CRASHED crashed a decoder.
    batches_of_dead_encoders
        How many clips each encoder had in hand that the clip DEADLY killed.
    """

    folder: Path
    result: dict
    messages: str
    n_decoder_crashes: int
    batches_of_dead_encoders: tuple[int, ...]


@pytest.fixture(scope="module")
def holder(starting):
    """The process that holds the cluster, and its address."""
    address = starting.stdout.readline().strip()
    assert address, "no cluster could be started"
    return starting.pid, address


def words_of_command(manifest: Path, engine: str) -> list[str]:
    """Return the words, behind `obygaze`, that extract a manifest with the brittle backbone by an engine."""
    words = ["extract", str(manifest), "films", "--json", "--corpus", "films", "--licence", "CC0-1.0"]
    return [*words, "--backbone", "brittle", "--engine", engine, "--workers", "2", "--batch-size", "2"]


@pytest.fixture(scope="module")
def run_by_ray(films, environment, holder, tmp_path_factory) -> Run:
    """A run of deadly.csv on two workers of Ray; its clips alone crash processes."""
    folder = tmp_path_factory.mktemp("ray")
    log = Path(environment["BRITTLE_CRASHES"])
    crashes_of_earlier_runs = log.read_text(encoding="utf-8")
    _, address = holder
    process = execute(
        *(sys.executable, "-m", "obygaze", *words_of_command(films / "deadly.csv", "ray")),
        code=3,
        cwd=folder,
        env=environment | {"RAY_ADDRESS": address},
    )
    crashes = log.read_text(encoding="utf-8").removeprefix(crashes_of_earlier_runs).splitlines()
    sizes_of_batches = [line.removeprefix("encoder ") for line in crashes if line.startswith("encoder ")]
    return Run(
        folder,
        json.loads(process.stdout),
        process.stderr,
        n_decoder_crashes=crashes.count("decoder"),
        batches_of_dead_encoders=tuple(int(size) for size in sizes_of_batches),
    )


def test_two_workers_of_ray_give_the_values_of_the_local_engine(local_store, run_by_ray):
    """The same films were extracted by Ray, where clips killed processes, and by the local engine."""
    store_by_ray = open_store(run_by_ray.folder / "films-1.0.0")
    store_made_locally = open_store(local_store)

    ok_clips = [clip.clip_id for clip in store_made_locally.clips if clip.status == "ok"]
    for clip in ok_clips:
        for array in ("pooled", "time_s", "frame_index"):
            values_by_ray = store_by_ray["brittle"].read(clip, array)
            local_values = store_made_locally["brittle"].read(clip, array)
            assert values_by_ray.tobytes() == local_values.tobytes()


def test_two_workers_of_ray_give_the_statuses_and_reasons_of_the_local_engine(local_store, run_by_ray):
    """The clip DEADLY, which kills encoders, was given to Ray alone."""
    store_by_ray = open_store(run_by_ray.folder / "films-1.0.0")
    store_made_locally = open_store(local_store)

    outcomes_by_ray = {clip.clip_id: (clip.status, clip.reason) for clip in store_by_ray.clips}
    local_outcomes = {clip.clip_id: (clip.status, clip.reason) for clip in store_made_locally.clips}

    del outcomes_by_ray[DEADLY]
    assert outcomes_by_ray == local_outcomes


def test_the_report_of_a_run_by_ray_says_its_engine_and_its_speed(run_by_ray):
    """The run was given 13 clips. It prints a result as JSON, and leaves a report in its stage."""
    assert run_by_ray.result["run"]["engine"] == "ray"
    assert run_by_ray.result["run"]["clips"] == 13
    assert "Traceback" not in run_by_ray.messages

    (report,) = (run_by_ray.folder / "films.staging" / "reports").iterdir()
    frames_per_second = json.loads(report.read_text(encoding="utf-8"))["decoded_frames_per_core_s"]
    assert frames_per_second > 0


def test_clips_that_kill_processes_of_ray_are_the_only_ones_that_fail_after_three_tries(run_by_ray):
    """The clip CRASHED crashes decoders, DEADLY kills encoders, and GARBAGE is no video."""
    reason_of = {clip["clip_id"]: clip["reason"] for clip in run_by_ray.result["not_ok"]}

    assert set(reason_of) == {CRASHED, GARBAGE, DEADLY}
    assert reason_of[CRASHED] == "the decoder crashed on this file 3 times (signal 11)"
    assert reason_of[DEADLY] == "the process that held the networks died on this clip 3 times"


def test_a_clip_of_a_batch_that_killed_an_encoder_of_ray_is_tried_alone_three_times(run_by_ray):
    """An encoder is a process of Ray that holds the networks. It gets clips in batches of two at most.

    The first encoder dies of a batch with the clip DEADLY, alone or with another clip, and nobody knows yet
    which of them killed it. So DEADLY is given to further encoders in a batch of its own; three of them die
    before it counts as failed.
    """
    first_size, *further_sizes = run_by_ray.batches_of_dead_encoders

    assert first_size in (1, 2)
    assert further_sizes == [1, 1, 1]


def test_a_clip_that_crashes_a_decoder_of_ray_is_tried_three_times_by_each_encoder(run_by_ray):
    """It is tried three times more if it was in the piece that was begun again as its encoder died."""
    assert run_by_ray.n_decoder_crashes in (3, 6)
