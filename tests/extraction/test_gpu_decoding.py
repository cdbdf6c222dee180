"""A GPU decodes beside the cores: the clips and the store are those of cores alone, whatever the GPU does.

The GPUs are pretended ones (`pretended_gpus`): nothing here was decoded on a GPU.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import extract
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import gpu_pool
from obygaze_features.extraction.decode_clips import PASS_CLIPS, DecodeTask, Request
from obygaze_features.extraction.gpu_pool import BY_CORES, ON_GPU, PASSES_AHEAD, GpuPool
from obygaze_features.extraction.gpu_process import GPU_THREADS
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import staging_path
from obygaze_features.video import fps, keyframes, uniform
from obygaze_features.video.hardware import group_around
from obygaze_features.video.index import index_packets

from ..files import written
from ..video.conftest import draw_number, spoiled
from ..video.encoding import encode
from .pretended_gpus import Breaks, FallsBack, Narrow, NoGpu, Noted, PretendedGpu, WrongBit
from .test_decode_pool import assert_same, decoded_alone, in_order, quarter

N_FRAMES = 100
LIMIT_S = 600.0


def pictures(n=N_FRAMES):
    return map(draw_number, range(n))


@pytest.fixture(scope="module")
def folder_of_films(tmp_path_factory) -> Path:
    """Films of several codecs, depths and ranges, with B-frames and groups of 25 pictures."""
    folder = tmp_path_factory.mktemp("films")
    options = {"g": "25", "bf": "2"}
    encode(folder / "h264.mp4", pictures(), options=options)
    encode(folder / "interlaced.mkv", pictures(), options=options | {"x264-params": "tff=1"})
    encode(folder / "ten-bits.mkv", pictures(), pix_fmt="yuv420p10le", options=options)
    encode(folder / "full-range.mp4", pictures(), pix_fmt="yuvj420p", options=options)
    encode(folder / "hevc.mkv", pictures(), "libx265", options={"x265-params": "keyint=25:log-level=0"})
    encode(folder / "vp9.webm", pictures(), "libvpx-vp9", options={"g": "25", "cpu-used": "8"})
    return folder


def windows_of(path: Path, number=4, prepare=quarter, **changes) -> list[DecodeTask]:
    """Make tasks of windows of a second of a film, which begin every .6 s."""
    requests = {"five": Request(uniform(5), prepare), "two": Request(fps(rate=2), prepare)}
    return [
        DecodeTask(f"{path.name}-{i}", path, 0.6 * i, 0.6 * i + 1.0, requests, **changes)
        for i in range(number)
    ]


def remarks_on_decoders(clips) -> Counter:
    """Count the remarks that say what decoded a clip: ON_GPU, or BY_CORES with a reason."""
    counts = Counter()
    for clip in clips:
        counts.update(remark for remark in clip.remarks if is_on_decoder(remark))
    return counts


def is_on_decoder(remark: str) -> bool:
    return remark == ON_GPU or remark.startswith(BY_CORES)


def without_remarks_on_decoders(clip):
    return replace(clip, remarks=tuple(remark for remark in clip.remarks if not is_on_decoder(remark)))


def assert_equal_clips_of_cores(clips, tasks):
    """Assert that clips are those that one core gives for the same tasks."""
    assert len(clips) == len(tasks)
    for clip, task in zip(clips, tasks, strict=True):
        assert_same(without_remarks_on_decoders(clip), decoded_alone(task))


FILMS = ("h264.mp4", "interlaced.mkv", "ten-bits.mkv", "full-range.mp4", "hevc.mkv", "vp9.webm")


def wait_for_gpu(pool):
    """Wait until a pool's GPU is opened, so that a test does not depend on who is quicker.

    Until then, the only events are of that process, and none of them brings a clip.
    """
    while not pool._is_open:
        event = pool._pool.get(1.0)
        if event is not None:
            clips = pool._handle_gpu_event(event)
            assert not clips
    return pool


def decode_with(gpu, tasks, timeout_s=LIMIT_S):
    """Decode clips by one worker and a GPU that is there before the first is begun."""
    with GpuPool(workers=1, timeout_s=timeout_s, batch_size=1, gpu=gpu) as pool:
        wait_for_gpu(pool)
        return in_order(pool.decode(tasks), tasks)


@pytest.mark.long
def test_clips_that_a_gpu_decodes_equal_those_of_cores_in_every_codec_and_depth(folder_of_films):
    """Six films of several codecs, depths and ranges have two windows each, which makes 12 clips.

    All clips are equal to those of cores. A clip that was decoded on the GPU has a remark that says so: at
    least 8 have. The others may have gone to the one worker, a core, which takes clips while it is free; they
    have no remark on the decoder, as a clip would have that the GPU has handed back.
    """
    tasks = []
    for name in ("h264.mp4", "interlaced.mkv", "ten-bits.mkv", "full-range.mp4", "hevc.mkv", "vp9.webm"):
        tasks += windows_of(folder_of_films / name, number=2)

    clips = decode_with(PretendedGpu(), tasks)

    assert_equal_clips_of_cores(clips, tasks)
    remarks = remarks_on_decoders(clips)
    assert set(remarks) == {ON_GPU}
    assert remarks[ON_GPU] >= 8


@pytest.mark.long
def test_key_frames_of_a_whole_film_come_from_a_gpu_too(folder_of_films):
    """A key frame is a picture that is stored without reference to others; three of a film are asked for.

    The clip is the same as if a core had decoded it, and its remark says that the GPU did.
    """
    three_key_frames = {"keys": Request(keyframes(3), quarter)}
    whole_film = DecodeTask(
        "whole", folder_of_films / "h264.mp4", start_s=None, end_s=None, requests=three_key_frames
    )

    clips = decode_with(PretendedGpu(), [whole_film])

    assert_equal_clips_of_cores(clips, [whole_film])
    assert remarks_on_decoders(clips) == {ON_GPU: 1}


@pytest.mark.long
def test_films_of_a_codec_of_which_a_gpu_gives_a_wrong_bit_are_decoded_on_cores(folder_of_films):
    """The first group of pictures of each codec and pixel format is decoded by a core too, and compared.

    Both films are of one codec and pixel format, and have two clips each. The GPU changes a bit in every
    picture, so that the comparison fails, and cores decode all four clips. A remark on each says why.
    """
    tasks = windows_of(folder_of_films / "h264.mp4", number=2) + windows_of(
        folder_of_films / "interlaced.mkv", number=2
    )

    clips = decode_with(WrongBit(), tasks)

    assert_equal_clips_of_cores(clips, tasks)
    remarks = remarks_on_decoders(clips)
    assert all("other bits of h264, yuv420p" in remark for remark in remarks)
    assert remarks.total() == 4  # one for each clip


@pytest.mark.long
def test_a_file_of_which_a_gpu_gives_a_wrong_bit_is_decoded_on_cores_although_the_codec_was_tried(
    folder_of_films,
):
    """Pictures of a GPU are compared with a core's for the first file of a codec, and then for each file.

    The GPU here gives the right pictures of the first group of frames (those up to the second key frame), by
    which the codec is tried. Each picture from then on has a wrong bit. So the comparison for the file fails,
    and cores decode its clips; a remark says why.
    """
    film = folder_of_films / "h264.mp4"
    n_in_first_group = len(group_around(index_packets(film), frame=0))
    gpu = WrongBit(right=n_in_first_group)
    tasks = windows_of(film, number=2)

    clips = decode_with(gpu, tasks)

    assert_equal_clips_of_cores(clips, tasks)
    (remark,) = remarks_on_decoders(clips)
    assert "other bits of this file" in remark


@pytest.mark.long
def test_films_of_a_codec_that_ffmpeg_silently_decodes_without_the_gpu_are_left_to_our_workers(
    folder_of_films,
):
    """Where a GPU has no decoder of a codec, here VP9, FFmpeg decodes on a core and does not say so.

    Such pictures do not come out of the GPU's memory, by which it is noticed. Our own workers on cores then
    decode the clips, and a remark says that the GPU does not decode VP9.
    """
    tasks = windows_of(folder_of_films / "vp9.webm")

    clips = decode_with(FallsBack(), tasks)

    assert_equal_clips_of_cores(clips, tasks)
    (remark,) = remarks_on_decoders(clips)
    assert "does not decode vp9, yuv420p" in remark


@pytest.mark.long
def test_only_clips_of_a_size_that_a_gpu_does_not_decode_are_decoded_on_cores(folder_of_films, tmp_path):
    """A GPU stands in that decodes pictures of up to 96 pixels in width. One film is 192 wide, the other 96.

    Clips of both are those that cores give; remarks say that the GPU decoded those of the narrow film alone.
    """
    wide_pictures = (np.tile(draw_number(number), (2, 2, 1)) for number in range(50))
    wide_tasks = windows_of(encode(tmp_path / "wide.mp4", wide_pictures), number=2)
    narrow_tasks = windows_of(folder_of_films / "h264.mp4", number=1)

    with GpuPool(workers=1, timeout_s=LIMIT_S, batch_size=1, gpu=Narrow()) as pool:
        wait_for_gpu(pool)
        wide_clips = in_order(pool.decode(wide_tasks), wide_tasks)
        narrow_clips = in_order(pool.decode(narrow_tasks), narrow_tasks)

    assert_equal_clips_of_cores(wide_clips, wide_tasks)
    assert_equal_clips_of_cores(narrow_clips, narrow_tasks)
    assert ON_GPU not in remarks_on_decoders(wide_clips)
    assert set(remarks_on_decoders(narrow_clips)) == {ON_GPU}


@pytest.mark.long
def test_films_with_synthetic_grain_are_decoded_on_cores(tmp_path):
    """In AV1 the grain of a film need not be stored: the decoder draws it, and a GPU may draw it otherwise.

    A film has such grain. Its clips are decoded on cores, and have a remark that says why.
    """
    with_grain = {"g": "25", "preset": "10", "svtav1-params": "film-grain=30:lp=1"}
    film = encode(tmp_path / "grain.mkv", pictures(50), "libsvtav1", options=with_grain)
    tasks = windows_of(film, number=2)

    clips = decode_with(PretendedGpu(), tasks)

    assert_equal_clips_of_cores(clips, tasks)
    (remark,) = remarks_on_decoders(clips)
    assert "film grain" in remark


@pytest.mark.long
def test_files_that_are_not_for_a_gpu_are_decoded_on_cores(folder_of_films, tmp_path):
    """Five files, with two windows each, are not for a GPU: one is absent, one no video, one too small.

    The fourth is an AVI, whose frames are found by decoding all, and the fifth is to be refused at the first
    damage. Each of the ten clips has a remark on why cores decoded it.
    """
    pictures_of_48_by_32 = (draw_number(number)[:32, :48] for number in range(100))
    small = encode(tmp_path / "small.mp4", pictures_of_48_by_32)
    without_index = encode(tmp_path / "raw.avi", pictures(), options={"g": "25"})  # H.264 in AVI
    no_video = written(tmp_path / "noise.mp4", bytes(range(256)) * 40)
    tasks = [
        *windows_of(small, number=2),
        *windows_of(without_index, number=2),
        *windows_of(no_video, number=2),
        *windows_of(tmp_path / "absent.mp4", number=2),
        *windows_of(folder_of_films / "hevc.mkv", number=2, strict=True),
    ]
    gpu_of_larger_pictures = PretendedGpu(min_pixels=48 * 32 + 1)

    clips = decode_with(gpu_of_larger_pictures, tasks)

    assert_equal_clips_of_cores(clips, tasks)
    remarks = remarks_on_decoders(clips)
    assert ON_GPU not in remarks
    assert remarks.total() == 10


@pytest.mark.long
def test_clips_of_a_damaged_file_equal_those_of_cores_where_a_gpu_decodes(folder_of_films, tmp_path):
    """Packet 30 of the film holds zeros, so that some clip lacks a picture and has the status partial.

    The GPU decodes undamaged clips; damaged ones are left to cores, which describe the damage.
    """
    damaged_film = spoiled(folder_of_films / "h264.mp4", tmp_path / "damaged.mp4", numbers=[30])
    tasks = windows_of(damaged_film)

    clips = decode_with(PretendedGpu(), tasks)

    assert_equal_clips_of_cores(clips, tasks)
    assert "partial" in {clip.status for clip in clips}


@pytest.mark.long
@pytest.mark.parametrize("hangs", [False, True], ids=["dies", "hangs"])
def test_a_gpu_that_dies_or_hangs_loses_no_clip(folder_of_films, hangs):
    """Nine clips are of three films. The GPU's process ends at the fifth frame whenever it is begun.

    It dies, or it hangs and is ended after 4 s. Cores decode what it had begun, and remarks say so.
    """
    tasks = []
    for name in ("h264.mp4", "interlaced.mkv", "ten-bits.mkv"):
        tasks += windows_of(folder_of_films / name, number=3)
    gpu = Breaks(n=4, hangs=hangs)

    clips = decode_with(gpu, tasks, timeout_s=4.0 if hangs else 600.0)

    assert_equal_clips_of_cores(clips, tasks)
    assert any("its process ended" in remark for remark in remarks_on_decoders(clips))


@pytest.mark.long
def test_a_codec_that_the_gpu_does_not_decode_is_tried_on_it_once(folder_of_films, tmp_path):
    """A GPU stands in that decodes no codec, and notes the name of each file that it opens: only one.

    A worker decodes many clips of a film in one pass. The clips of one film here are more than two passes, so
    that the GPU could have been offered several.
    """
    two_frames = {"two": Request(uniform(2), quarter)}
    n_clips = 2 * PASS_CLIPS + 2
    tasks = []
    for number in range(n_clips):
        start_s = 0.1 * number
        end_s = start_s + 0.2
        tasks.append(DecodeTask(str(number), folder_of_films / "h264.mp4", start_s, end_s, two_frames))
    names_of_opened_files = tmp_path / "opened"
    gpu_that_notes_files = Noted(notes=names_of_opened_files)

    clips = decode_with(gpu_that_notes_files, tasks)

    assert_equal_clips_of_cores(clips, tasks)
    assert names_of_opened_files.read_text(encoding="utf-8").split() == ["h264.mp4"]


def manifest_of(folder: Path) -> Manifest:
    clips = [
        Clip(f"tt{film}-{i}", f"tt{film}", name, start_s=0.6 * i, end_s=0.6 * i + 1.0)
        for film, name in enumerate(FILMS)
        for i in range(3)
    ]
    return Manifest((*clips, Clip("tt9-0", "tt9", "absent.mp4", start_s=0.0, end_s=1.0)), folder)


def extract_films(folder: Path, out: Path, **settings):
    """Extract three windows of each film and a file that is absent; return the store and the report."""
    store = extract(
        manifest_of(folder), out, n_frames=4, workers=1, licence="CC0-1.0", corpus="films", **settings
    )
    (report,) = (staging_path(out) / "reports").iterdir()
    return store, json.loads(report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def store_by_cores(folder_of_films, tmp_path_factory):
    """The store that cores alone give."""
    return extract_films(folder_of_films, tmp_path_factory.mktemp("cores") / "s")[0]


@pytest.fixture
def install_gpu(monkeypatch):
    """Let extractions by `cuda` use a pretended GPU, which is there before the first clip is begun."""

    def install(gpu):
        monkeypatch.setattr(gpu_pool, "MAKE_GPU", lambda _number: gpu)
        monkeypatch.setattr(GpuPool, "__enter__", wait_for_gpu)

    return install


@pytest.mark.long
@pytest.mark.parametrize(
    "gpu", [PretendedGpu(), Breaks(n=60), WrongBit()], ids=["right", "dies", "a wrong bit"]
)
def test_a_store_that_is_extracted_with_a_gpu_is_that_of_the_cores(
    folder_of_films, tmp_path, gpu, install_gpu, file_digests, store_by_cores
):
    """Films are decoded on a pretended GPU that is right, that dies at frame 60, or that gives a wrong bit.

    Each time the store must have the very files of a store whose films were decoded on the processor's cores.
    The report says what decoded the clips, and counts the one clip that failed, as its file is absent.
    """
    install_gpu(gpu)

    store, report = extract_films(folder_of_films, tmp_path / "s", decoder="cuda")

    assert file_digests(store.path) == file_digests(store_by_cores.path)
    assert report["failed"] == 1
    remarks_on_what_decoded = [remark for remark in report["remarks"] if is_on_decoder(remark)]
    assert remarks_on_what_decoded != []


@pytest.mark.long
def test_frames_that_are_kept_with_a_gpu_are_those_of_the_cores(
    folder_of_films, tmp_path, install_gpu, file_digests
):
    """One extraction decodes on cores alone, another one with a GPU. Both keep the frames of their clips.

    The folders with the frames have the same files.
    """
    install_gpu(PretendedGpu())
    kept_by_cores = tmp_path / "kept_by_cores"
    kept_with_gpu = tmp_path / "kept_with_gpu"

    extract_films(folder_of_films, tmp_path / "cores", keep_frames=kept_by_cores)
    extract_films(folder_of_films, tmp_path / "card", decoder="cuda", keep_frames=kept_with_gpu)

    assert file_digests(kept_with_gpu) == file_digests(kept_by_cores)


@pytest.mark.long
def test_an_extraction_on_a_machine_without_a_gpu_begins_no_stage(folder_of_films, tmp_path, monkeypatch):
    """The library libcuda.so.1 of NVIDIA's driver is not found, which the error says.

    That is found out before anything is written.
    """
    monkeypatch.setattr(gpu_pool, "MAKE_GPU", lambda _number: NoGpu())

    with pytest.raises(ExtractError, match=r"libcuda\.so\.1"):
        extract(manifest_of(folder_of_films), tmp_path / "s", n_frames=4, decoder="cuda", licence="CC0-1.0")
    assert not staging_path(tmp_path / "s").exists()


@pytest.mark.long
def test_a_gpu_that_is_gone_when_decoding_begins_ends_the_run(folder_of_films):
    """The pretended GPU `NoGpu` lacks the library of NVIDIA's driver, libcuda.so.1, which the error names."""
    with pytest.raises(ExtractError, match=r"libcuda\.so\.1"):
        decode_with(NoGpu(), windows_of(folder_of_films / "h264.mp4"))


@pytest.mark.long
def test_few_of_40_clips_are_begun_at_a_time_where_a_gpu_hands_all_back_to_one_worker(
    folder_of_films, tmp_path
):
    """A pool has one GPU and one worker on a core. The pictures of all 40 files are too small for the GPU.

    So it hands back every clip, faster than the worker decodes them. Clips that are begun take memory, so the
    pool may have begun only a few at any time: 3 for the worker (2 for each, and one of a batch of 1), as
    many as the GPU takes at once, and as many that it has handed back and that wait for the worker. Whenever
    a clip is finished, the test counts those that are given to either (`_running`) or wait (`_handed_back`).
    """
    two_frames = {"two": Request(uniform(2), quarter)}
    tasks = []
    for number in range(40):
        film = tmp_path / f"{number}.mp4"
        film.symlink_to(folder_of_films / "h264.mp4")
        tasks.append(DecodeTask(str(number), film, start_s=None, end_s=None, requests=two_frames))
    gpu_of_larger_pictures = PretendedGpu(min_pixels=2**30)

    most_begun = 0
    with GpuPool(workers=1, timeout_s=LIMIT_S, batch_size=1, gpu=gpu_of_larger_pictures) as pool:
        wait_for_gpu(pool)
        for _clip in pool.decode(tasks):
            n_begun = len(pool._running) + len(pool._handed_back)
            most_begun = max(most_begun, n_begun)

    most_for_worker = 3
    most_on_gpu = GPU_THREADS + PASSES_AHEAD
    most_handed_back = most_on_gpu
    assert most_begun <= most_for_worker + most_on_gpu + most_handed_back


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def run_benchmark_of_gpu(*options, **environment) -> subprocess.CompletedProcess[str]:
    """Run the benchmark of decoding on a GPU."""
    command = [sys.executable, str(BENCHMARK), "--decode", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.long
def test_the_benchmark_of_a_gpu_says_in_one_line_that_there_is_none():
    """An empty CUDA_VISIBLE_DEVICES hides all GPUs from a process."""
    result = run_benchmark_of_gpu(CUDA_VISIBLE_DEVICES="")

    assert result.returncode == 1
    assert result.stdout == ""
    (message,) = result.stderr.splitlines()
    assert "CUDA_VISIBLE_DEVICES" in message


@pytest.mark.long
@pytest.mark.nightly
def test_the_benchmark_of_a_gpu_runs_with_a_pretended_one():
    """With --tiny, the benchmark decodes little, on a GPU that is pretended."""
    result = run_benchmark_of_gpu("--tiny")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED" not in result.stdout
