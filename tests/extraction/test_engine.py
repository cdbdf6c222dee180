"""Real files through workers, backbone and stage into a sealed store, and a report of where the time went."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from obygaze.demo_corpus import write_video
from obygaze_features.backbones import load_backbone
from obygaze_features.extraction import Job, RunReport, run_local
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import Stage, open_store, read_stage, seal, staging_path
from obygaze_features.video import read_frames, uniform

from .conftest import begin_stage, last_report


def moving_square(n_frames: int, offset: int):
    """Yield pictures of 64 by 48 pixels with a square that moves by two pixels each, from `offset` on."""
    for t in range(n_frames):
        frame = np.full((48, 64, 3), 40, np.uint8)
        frame[10:30, (offset + 2 * t) % 44 : (offset + 2 * t) % 44 + 20] = (200, 90, 40)
        yield frame


@pytest.fixture(scope="module")
def manifest_of_14_clips(tmp_path_factory) -> Manifest:
    """14 clips of three movies, of which those of tt3 cannot be read.

    tt1-000 to tt1-007 are files of their own; tt2-001 and tt2-002 are spans of one file. Of tt3, the file of
    clip 001 holds garbage and that of 002 is empty, that of 003 is absent, and 004 names none.
    """
    folder = tmp_path_factory.mktemp("films")
    clips = []
    for i in range(8):
        write_video(folder / f"clip-{i}.mp4", moving_square(20 + 3 * i, 5 * i), rate=24)
        clips.append(Clip(f"tt1-{i:03d}", "tt1", f"clip-{i}.mp4"))
    write_video(folder / "film.mkv", moving_square(n_frames=96, offset=3), rate=24)
    clips += [
        Clip("tt2-001", "tt2", "film.mkv", start_s=0.0, end_s=2.0),
        Clip("tt2-002", "tt2", "film.mkv", start_s=2.0, end_s=4.0),
    ]
    (folder / "garbage.mp4").write_bytes(np.random.default_rng(0).bytes(5000))
    (folder / "empty.mp4").touch()
    clips += [Clip("tt3-001", "tt3", "garbage.mp4"), Clip("tt3-002", "tt3", "empty.mp4")]
    clips += [Clip("tt3-003", "tt3", "absent.mp4"), Clip("tt3-004", "tt3")]
    manifest = Manifest(tuple(clips), folder)
    write_manifest(manifest, folder / "films.csv")
    return manifest


def job_of(manifest: Manifest) -> Job:
    return Job(manifest, "films", (load_backbone("descriptors", n_frames=4),))


def begin_with(manifest: Manifest, store: Path, **changes: object) -> tuple[Job, Stage]:
    """Begin a job whose backbone has some fields changed."""
    job = job_of(manifest)
    job = replace(job, backbones=(replace(job.backbones[0], **changes),))
    return job, begin_stage(job, store)


def extract(manifest: Manifest, store: Path, workers=1, batch_size=3, **settings) -> tuple[Stage, object]:
    """Extract all clips into a stage; return it and the last report."""
    job = job_of(manifest)
    stage = begin_stage(job, store)
    settings = {"timeout_s": 600, **settings}
    run = run_local(job, stage, stage.missing(), workers=workers, batch_size=batch_size, **settings)
    return stage, last_report(run)


@dataclass(frozen=True)
class Extraction:
    """An extraction that nobody interrupted."""

    stage: Stage
    last_report: RunReport
    store: Path


@pytest.fixture(scope="module")
def uninterrupted_run(manifest_of_14_clips, tmp_path_factory):
    store = tmp_path_factory.mktemp("undisturbed") / "films"
    stage, report = extract(manifest_of_14_clips, store)
    return Extraction(stage, report, seal(staging_path(store), store, licence="CC0-1.0"))


@pytest.mark.long
def test_every_clip_of_a_corpus_is_ok_or_has_failed_for_a_reason_of_one_line(
    uninterrupted_run, manifest_of_14_clips
):
    """Of 14 clips, those of movie tt3 cannot be read.

    Their files are garbage (tt3-001), empty (002) and absent (003), and the manifest names none for 004.
    """
    clips_in_stage = uninterrupted_run.stage.status()

    assert set(clips_in_stage) == {clip.clip_id for clip in manifest_of_14_clips}
    reason_of = {clip_id: clip.reason for clip_id, clip in clips_in_stage.items() if clip.status == "failed"}
    assert set(reason_of) == {"tt3-001", "tt3-002", "tt3-003", "tt3-004"}
    assert "empty" in reason_of["tt3-002"]
    assert reason_of["tt3-004"] == "the manifest names no video for this clip"
    for reason in reason_of.values():
        assert reason
        assert "\n" not in reason


@pytest.mark.long
def test_the_last_report_of_an_extraction_counts_clips_and_decoded_frames(uninterrupted_run):
    """Of 14 clips, four cannot be read. Of each of the others, four frames are taken, so 40 at least."""
    report = uninterrupted_run.last_report

    assert report.ok == 10
    assert report.failed == 4
    assert report.clips == 14
    assert report.n_decoded >= 40


@pytest.mark.long
def test_features_are_those_of_the_very_frames(uninterrupted_run, manifest_of_14_clips):
    """A store has features of four frames of each clip, which workers have decoded.

    Frames that are read and encoded here, without workers, give the same for three clips: a whole file, and
    two spans of one file.
    """
    group = open_store(uninterrupted_run.store)["descriptors"]
    backbone = load_backbone("descriptors", n_frames=4)
    whole_file_and_two_spans = manifest_of_14_clips.clips[7:10]
    for clip in whole_file_and_two_spans:
        path = manifest_of_14_clips.video_path(clip)
        frames = read_frames(path, uniform(4), start_s=clip.start_s, end_s=clip.end_s, each=backbone.prepare)
        batch_of_one_clip = np.stack(frames.images)[np.newaxis]
        expected = backbone.encode(batch_of_one_clip)
        assert np.array_equal(group.read(clip.clip_id, "frames"), expected["frames"][0])
        assert np.array_equal(group.read(clip.clip_id, "pooled"), expected["pooled"][0])
        row = group.clip_ids.index(clip.clip_id)
        assert np.array_equal(group.time_s[row], frames.time_s)


@pytest.mark.long
def test_the_sealed_bytes_do_not_depend_on_workers_or_batches(
    uninterrupted_run, manifest_of_14_clips, tmp_path, file_digests
):
    """The undisturbed store was made by one worker, in batches of 3 clips."""
    extract(manifest_of_14_clips, tmp_path / "films", workers=3, batch_size=16)
    store = seal(staging_path(tmp_path / "films"), tmp_path / "films", licence="CC0-1.0")

    assert file_digests(store) == file_digests(uninterrupted_run.store)


@pytest.mark.long
def test_a_killed_extraction_resumes_to_the_same_bytes(
    uninterrupted_run, manifest_of_14_clips, tmp_path, file_digests, obygaze, stop_by
):
    """It is killed twice: when one clip is in its journal, and when five are.

    The exit code 3 says that some clips have failed: four of this corpus cannot be read.
    """
    command = [
        "extract",
        manifest_of_14_clips.root / "films.csv",
        "films",
        "--n",
        4,
        "--licence",
        "CC0-1.0",
    ]
    command += ["--workers", 1, "--batch-size", 1]
    for n_clips in (1, 5):
        stop_by(signal.SIGKILL, tmp_path, n_clips, *command)
        assert not (tmp_path / "films-1.0.0").exists()

    result = obygaze(tmp_path, *command)

    assert result.returncode == 3, result.stderr
    assert file_digests(tmp_path / "films-1.0.0") == file_digests(uninterrupted_run.store)


@pytest.mark.long
@pytest.mark.parametrize(
    "signal_to_stop",
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    ids=["Ctrl-C", "a stop by the system", "a closed terminal"],
)
def test_a_signal_stops_an_extraction_which_then_says_that_the_same_command_goes_on(
    manifest_of_14_clips, tmp_path, stop_by, signal_to_stop
):
    """The command gets the signal when the first of 14 clips is in its journal.

    It ends with some clips done, and not all, and tells the user how to go on in place of a traceback.
    """
    n_clips_before_the_signal = 1
    command = [
        "extract",
        manifest_of_14_clips.root / "films.csv",
        "films",
        "--n",
        4,
        "--workers",
        1,
        "--batch-size",
        1,
    ]

    messages = stop_by(signal_to_stop, tmp_path, n_clips_before_the_signal, *command).stderr

    assert "Run the same command again to go on" in messages
    assert "Traceback" not in messages
    n_done = len(read_stage(tmp_path / "films.staging").status())
    assert 1 <= n_done < 14


def crash(frame: np.ndarray) -> np.ndarray:
    """Take the process down, as a decoder with a fault does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return frame


def hang(frame: np.ndarray) -> np.ndarray:
    time.sleep(600)
    return frame


@pytest.mark.long
@pytest.mark.parametrize(
    ("prepare", "limit_s", "reason"),
    [(crash, 600, "crashed on this file 3 times"), (hang, 1, "longer than the limit of 1 s")],
    ids=["crashes", "hangs"],
)
def test_a_clip_that_crashes_or_hangs_the_decoder_fails_alone(
    manifest_of_14_clips, tmp_path, prepare, limit_s, reason
):
    """Frames of clip tt1-000 are prepared, in the decoder's own process, by a function that crashes or hangs.

    The process is begun again, or ended when it has had its time, and only this clip fails for it. That of
    clip tt3-002 fails for a reason of its own: its file is empty.
    """
    job, stage = begin_with(manifest_of_14_clips, tmp_path / "s", prepare=prepare)

    last_report(run_local(job, stage, ["tt1-000"], workers=1, batch_size=4, timeout_s=limit_s))
    # Not under the short limit: a slow machine takes longer than a second for any clip.
    last_report(run_local(job, stage, ["tt3-002"], workers=1, batch_size=4, timeout_s=600))

    clip_of_id = stage.status()
    assert {clip.status for clip in clip_of_id.values()} == {"failed"}
    assert reason in clip_of_id["tt1-000"].reason
    assert "empty" in clip_of_id["tt3-002"].reason


def encode_with_a_nan(batch: np.ndarray) -> dict[str, np.ndarray]:
    """Encode a batch, but for one value of its first clip, which is NaN."""
    outputs = load_backbone("descriptors", n_frames=4).encode(batch)
    outputs["frames"][0, 0, 0] = np.nan
    return outputs


@pytest.mark.long
def test_values_that_are_not_finite_fail_their_clip_alone(manifest_of_14_clips, tmp_path):
    """Of a batch of two clips, the vector of the one that was decoded first gets a NaN."""
    job, stage = begin_with(
        manifest_of_14_clips, tmp_path / "s", encode=encode_with_a_nan, encode_in_worker=False
    )

    last_report(run_local(job, stage, ["tt1-000", "tt1-001"], workers=1, batch_size=2, timeout_s=600))

    clips = list(stage.status().values())
    assert sorted(clip.status for clip in clips) == ["failed", "ok"]
    (failed_clip,) = [clip for clip in clips if clip.status == "failed"]
    assert "not finite in 'frames'" in failed_clip.reason


@pytest.mark.long
def test_two_backbones_share_decoded_frames_and_give_the_features_of_each_alone(
    uninterrupted_run, manifest_of_14_clips, tmp_path
):
    """Of three clips one backbone takes four frames, and another one seven; they are extracted together.

    Fewer frames are decoded than for each in turn. The vectors of the four frames are those of a store that
    has this backbone alone, and the seven frames have as many vectors.
    """
    backbone_of_four = load_backbone("descriptors", n_frames=4)
    backbone_of_seven = replace(load_backbone("descriptors", n_frames=7), name="seven")
    clip_ids = ["tt1-000", "tt1-005", "tt2-002"]

    def n_frames_decoded_for(backbones, place):
        job = Job(manifest_of_14_clips, "films", backbones)
        stage = begin_stage(job, place)
        run = run_local(job, stage, clip_ids, workers=1, batch_size=2, timeout_s=600)
        return last_report(run).n_decoded

    n_for_both = n_frames_decoded_for((backbone_of_four, backbone_of_seven), tmp_path / "both")
    n_for_four = n_frames_decoded_for((backbone_of_four,), tmp_path / "four")
    n_for_seven = n_frames_decoded_for((backbone_of_seven,), tmp_path / "seven")
    assert n_for_both < n_for_four + n_for_seven

    stage_of_both = staging_path(tmp_path / "both")
    store_of_both = open_store(seal(stage_of_both, tmp_path / "both", licence="CC0-1.0", allow_missing=True))
    store_of_four = open_store(uninterrupted_run.store)
    for clip_id in clip_ids:
        vectors_of_four = store_of_both["descriptors"].read(clip_id, "frames")
        assert np.array_equal(vectors_of_four, store_of_four["descriptors"].read(clip_id, "frames"))
        n_descriptors = vectors_of_four.shape[1]
        vectors_of_seven = store_of_both["seven"].read(clip_id, "frames")
        assert vectors_of_seven.shape == (7, n_descriptors)
