"""A card decodes beside the cores: the clips and the store are those of cores alone, whatever the card does.

The cards are pretended ones (`pretended_cards`): nothing here was decoded on a card.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from obygaze_features import extract
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import card_pool
from obygaze_features.extraction.card_pool import BY_CORES, ON_CARD, PASSES_AHEAD, CardPool
from obygaze_features.extraction.card_process import CARD_THREADS
from obygaze_features.extraction.decode_clips import PASS_CLIPS, DecodeTask, Request
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import staging_path
from obygaze_features.video import fps, keyframes, uniform
from obygaze_features.video.hardware import group_around
from obygaze_features.video.index import index_packets

from ..files import written
from ..video.conftest import draw, spoiled
from ..video.encoding import encode
from .pretended_cards import Breaks, FallsBack, Narrow, NoCard, Noted, PretendedCard, WrongBit
from .test_decode_pool import assert_same, decoded_alone, in_order, quarter

N_FRAMES = 100
LIMIT_S = 600.0


def pictures(n=N_FRAMES):
    return map(draw, range(n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
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
    """Windows of a second, that begin every .6 s."""
    requests = {"five": Request(uniform(5), prepare), "two": Request(fps(2), prepare)}
    return [
        DecodeTask(f"{path.name}-{i}", path, 0.6 * i, 0.6 * i + 1.0, requests, **changes)
        for i in range(number)
    ]


def hands_of(clips) -> Counter:
    """Count the hands that decoded clips, and the reasons, by the remarks on them."""
    hands = Counter()
    for clip in clips:
        hands.update(remark for remark in clip.remarks if remark == ON_CARD or remark.startswith(BY_CORES))
    return hands


def without_hands(clip):
    """Return a clip without the remark on the hand that decoded it."""
    kept = [remark for remark in clip.remarks if remark != ON_CARD and not remark.startswith(BY_CORES)]
    return replace(clip, remarks=tuple(kept))


def assert_as_by_cores(clips, tasks):
    assert len(clips) == len(tasks)
    for clip, task in zip(clips, tasks, strict=True):
        assert_same(without_hands(clip), decoded_alone(task))


FILMS = ("h264.mp4", "interlaced.mkv", "ten-bits.mkv", "full-range.mp4", "hevc.mkv", "vp9.webm")


def wait_for_card(pool):
    """Wait until the process of a card is there, so that a test does not depend on who is quicker."""
    while not pool._is_open:
        event = pool._pool.get(1.0)
        if event is not None:
            assert not pool._take_from_card(event)
    return pool


def all_on_card(tasks, card, timeout_s=LIMIT_S):
    """Decode clips with a card that is there before the first is begun."""
    with CardPool(1, timeout_s, 1, card) as pool:
        wait_for_card(pool)
        return in_order(pool.decode(tasks), tasks)


def test_a_card_gives_the_clips_of_cores_in_every_codec_and_depth(folder):
    tasks = [task for name in FILMS for task in windows_of(folder / name, number=2)]
    clips = all_on_card(tasks, PretendedCard())
    assert_as_by_cores(clips, tasks)
    hands = hands_of(clips)
    assert set(hands) == {ON_CARD}
    assert hands[ON_CARD] >= 8  # the rest may have waited for a worker


def test_whole_clips_and_key_frames_come_from_a_card_too(folder):
    requests = {"keys": Request(keyframes(3), quarter)}
    tasks = [DecodeTask("whole", folder / "h264.mp4", None, None, requests)]
    clips = all_on_card(tasks, PretendedCard())
    assert_as_by_cores(clips, tasks)
    assert hands_of(clips) == {ON_CARD: 1}


def test_a_kind_with_another_bit_goes_to_the_cores_and_other_kinds_do_not(folder):
    """The first group of the first kind has a wrong bit; the card is right from then on."""
    wrong = windows_of(folder / "h264.mp4", number=2) + windows_of(folder / "interlaced.mkv", number=2)
    clips = all_on_card(wrong, WrongBit())
    assert_as_by_cores(clips, wrong)
    assert all("other bits of h264, yuv420p" in reason for reason in hands_of(clips))
    assert sum(hands_of(clips).values()) == 4


def test_a_file_with_another_bit_in_its_first_picture_goes_to_the_cores(folder):
    """The kind was equal in all frames of a group, and the card is wrong from then on."""
    tasks = windows_of(folder / "h264.mp4", number=2)
    n_in_group = len(group_around(index_packets(folder / "h264.mp4"), 0))
    clips = all_on_card(tasks, WrongBit(right=n_in_group))
    assert_as_by_cores(clips, tasks)
    (reason,) = hands_of(clips)
    assert "other bits of this file" in reason


def test_frames_that_ffmpeg_decodes_by_a_core_are_known_by_their_format(folder):
    tasks = windows_of(folder / "vp9.webm")
    clips = all_on_card(tasks, FallsBack())
    assert_as_by_cores(clips, tasks)
    (reason,) = hands_of(clips)
    assert "does not decode vp9, yuv420p" in reason


def test_a_size_that_a_card_does_not_decode_refuses_no_other_size(folder, tmp_path):
    wide = encode(tmp_path / "wide.mp4", (np.tile(draw(number), (2, 2, 1)) for number in range(50)))
    tasks = windows_of(wide, number=2)
    with CardPool(1, LIMIT_S, 1, Narrow()) as pool:
        wait_for_card(pool)
        of_wide = in_order(pool.decode(tasks), tasks)
        narrow = windows_of(folder / "h264.mp4", number=1)
        clips = in_order(pool.decode(narrow), narrow)
    assert_as_by_cores(of_wide, tasks)
    assert_as_by_cores(clips, narrow)
    assert ON_CARD not in hands_of(of_wide)
    assert set(hands_of(clips)) == {ON_CARD}


def test_films_with_film_grain_are_decoded_by_cores(tmp_path):
    options = {"g": "25", "preset": "10", "svtav1-params": "film-grain=30:lp=1"}
    film = encode(tmp_path / "grain.mkv", pictures(50), "libsvtav1", options=options)
    tasks = windows_of(film, number=2)
    clips = all_on_card(tasks, PretendedCard())
    assert_as_by_cores(clips, tasks)
    (reason,) = hands_of(clips)
    assert "film grain" in reason


def test_small_damaged_and_undecodable_files_are_left_to_cores(folder, tmp_path):
    """Small pictures, damage, files whose frames are chosen by decoding all, files that cannot be read."""
    small = encode(tmp_path / "small.mp4", (draw(number)[:32, :48] for number in range(N_FRAMES)))
    damaged = spoiled(folder / "h264.mp4", tmp_path / "damaged.mp4", [30])
    raw = encode(tmp_path / "raw.avi", pictures(), options={"g": "25"})
    noise = written(tmp_path / "noise.mp4", bytes(range(256)) * 40)
    tasks = [task for path in (small, raw, noise, tmp_path / "absent.mp4") for task in windows_of(path, 2)]
    tasks += windows_of(folder / "hevc.mkv", 2, strict=True)
    of_damaged = windows_of(damaged)
    clips = all_on_card(tasks + of_damaged, PretendedCard(least_pixels=48 * 32 + 1))
    assert_as_by_cores(clips, tasks + of_damaged)
    hands = hands_of(clips[: len(tasks)])
    assert ON_CARD not in hands
    assert sum(hands.values()) == len(tasks)
    assert "partial" in {clip.status for clip in clips[len(tasks) :]}


@pytest.mark.parametrize("hangs", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_card_that_dies_or_hangs_loses_no_clip(folder, hangs):
    """Each of its three processes ends within the first pictures; cores decode what it had begun."""
    tasks = [task for name in FILMS[:3] for task in windows_of(folder / name, number=3)]
    clips = all_on_card(tasks, Breaks(n=4, hangs=hangs), timeout_s=4.0 if hangs else LIMIT_S)
    assert_as_by_cores(clips, tasks)
    assert any("its process ended" in reason for reason in hands_of(clips))


def test_a_kind_that_was_refused_is_not_opened_on_the_card_again(folder, tmp_path):
    requests = {"two": Request(uniform(2), quarter)}
    film = folder / "h264.mp4"
    tasks = [DecodeTask(str(i), film, 0.1 * i, 0.1 * i + 0.2, requests) for i in range(2 * PASS_CLIPS + 2)]
    clips = all_on_card(tasks, Noted(notes=tmp_path / "notes"))
    assert_as_by_cores(clips, tasks)
    assert (tmp_path / "notes").read_text(encoding="utf-8").split() == ["h264.mp4"]


def manifest_of(folder: Path) -> Manifest:
    clips = [
        Clip(f"tt{film}-{i}", f"tt{film}", name, start_s=0.6 * i, end_s=0.6 * i + 1.0)
        for film, name in enumerate(FILMS)
        for i in range(3)
    ]
    return Manifest((*clips, Clip("tt9-0", "tt9", "absent.mp4", start_s=0.0, end_s=1.0)), folder)


def stored(folder: Path, out: Path, tree, **settings):
    """Extract, and return the store's files and the run's report."""
    store = extract(
        manifest_of(folder), out, n_frames=4, workers=1, licence="CC0-1.0", corpus="films", **settings
    )
    (report,) = (staging_path(out) / "reports").iterdir()
    return tree(store.path), json.loads(report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def by_cores(folder, tree, tmp_path_factory):
    """The store's files that cores alone give."""
    return stored(folder, tmp_path_factory.mktemp("cores") / "s", tree)[0]


@pytest.mark.parametrize(
    "card",
    [PretendedCard(), Breaks(n=60), pytest.param(WrongBit(), marks=pytest.mark.long)],
    ids=["right", "dies", "a wrong bit"],
)
def test_stores_are_equal_whoever_decoded(folder, tmp_path, card, monkeypatch, tree, by_cores):
    monkeypatch.setattr(card_pool, "MAKE_CARD", lambda _number: card)
    monkeypatch.setattr(CardPool, "__enter__", wait_for_card)
    with_card, report = stored(folder, tmp_path / "s", tree, decoder="cuda")
    assert with_card == by_cores
    assert report["failed"] == 1
    assert any(remark == ON_CARD or remark.startswith(BY_CORES) for remark in report["remarks"])


@pytest.mark.long
def test_frames_that_are_kept_are_equal_too(folder, tmp_path, monkeypatch, tree):
    monkeypatch.setattr(card_pool, "MAKE_CARD", lambda _number: PretendedCard())
    monkeypatch.setattr(CardPool, "__enter__", wait_for_card)
    settings = {"keep_frames": tmp_path / "kept"}
    by_cores, _ = stored(folder, tmp_path / "cores", tree, **settings)
    kept = tree(tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept")
    with_card, _ = stored(folder, tmp_path / "card", tree, decoder="cuda", **settings)
    assert with_card == by_cores
    assert tree(tmp_path / "kept") == kept


def test_an_extraction_by_card_without_a_card_begins_no_stage(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(card_pool, "MAKE_CARD", lambda _number: NoCard())
    with pytest.raises(ExtractError, match=r"libcuda\.so\.1"):
        extract(manifest_of(folder), tmp_path / "s", n_frames=4, decoder="cuda", licence="CC0-1.0")
    assert not staging_path(tmp_path / "s").exists()


def test_a_card_that_is_gone_when_work_begins_is_said(folder):
    with pytest.raises(ExtractError, match=r"libcuda\.so\.1"):
        all_on_card(windows_of(folder / "h264.mp4"), NoCard())


def test_clips_that_a_card_hands_back_wait_in_the_queue_not_in_memory(folder, tmp_path):
    """A corpus of which no file is for the card: what workers have at once is bounded as without a card."""
    requests = {"two": Request(uniform(2), quarter)}
    tasks = []
    for number in range(40):
        film = tmp_path / f"{number}.mp4"
        film.symlink_to(folder / "h264.mp4")
        tasks.append(DecodeTask(str(number), film, None, None, requests))
    most_out = 0
    with CardPool(1, LIMIT_S, 1, PretendedCard(least_pixels=1 << 30)) as pool:
        wait_for_card(pool)
        for _clip in pool.decode(tasks):
            most_out = max(most_out, len(pool._running) + len(pool._handed_back))
    assert most_out <= 3 + 2 * (CARD_THREADS + PASSES_AHEAD)


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def measured(*options, **environment) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK), "--decode", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.long
def test_the_benchmark_of_a_card_says_in_one_line_that_there_is_none():
    result = measured(CUDA_VISIBLE_DEVICES="")
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "CUDA_VISIBLE_DEVICES" in line


@pytest.mark.long
@pytest.mark.nightly
def test_the_benchmark_of_a_card_runs_with_a_pretended_one():
    result = measured("--tiny")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FAILED" not in result.stdout
