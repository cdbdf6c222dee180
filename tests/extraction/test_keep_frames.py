"""Frames that are kept are read in place of the video, by all backbones alike; damaged ones never are."""

import hashlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import Job, extract, prepare
from obygaze_features.extraction.decode_clips import decode_clips, decode_with_av, group_into_passes
from obygaze_features.extraction.keep_frames import (
    DAMAGED_REMARK,
    SHORT_SIDE,
    from_jpeg,
    to_jpeg,
    with_frame_cache,
)
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store.provenance import same_numerics
from tests.video.encoding import encode

N = 4
"""Frames of a clip."""
NAMED = {"corpus": "clips", "licence": "CC0-1.0", "workers": 1, "n_frames": N}


def moving(seed, n=24, height=300, width=400):
    """Draw pictures of blocks that wander."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 256, (height // 20, (width + 4 * n) // 20 + 1, 3), np.uint8)
    wide = wide.repeat(20, axis=0).repeat(20, axis=1)
    return [np.ascontiguousarray(wide[:, 4 * frame : 4 * frame + width]) for frame in range(n)]


@pytest.fixture
def clips(tmp_path) -> Manifest:
    """Two videos, and a span of the first."""
    for number in range(2):
        encode(tmp_path / f"{number}.mp4", moving(number), options={"preset": "ultrafast"})
    whole_files = [Clip(f"tt{number}-0", f"tt{number}", f"{number}.mp4") for number in range(2)]
    span = Clip("tt0-1", "tt0", "0.mp4", 0.2, 0.8)
    return Manifest((*whole_files, span), tmp_path)


def run(manifest, out, folder, backbones=("descriptors",), **settings):
    """Extract and keep the frames in a folder; return the store and the report.

    `extract` gives no report: the work is done by `prepare`, and `extract` then only seals it.
    """
    settings = NAMED | settings | {"keep_frames": folder}
    _, report = prepare(manifest, out, backbones, **settings).run()
    store = extract(manifest, out, backbones, **settings)
    return store, report


def decoded(manifest, folder, backbones=("descriptors",), n_frames=N, **settings):
    """Decode the clips as a worker does, in their order."""
    built = tuple(load_backbone(name, n_frames) for name in backbones)
    job = Job(manifest, "clips", built, keep_frames=folder, **settings)
    clip_ids = [clip.clip_id for clip in manifest]
    clip_of_id = {}
    for pass_tasks in group_into_passes(job.tasks(clip_ids), 1):
        for _, clip in decode_clips(pass_tasks, with_frame_cache(decode_with_av)):
            clip_of_id[clip.clip_id] = clip
    return [clip_of_id[clip_id] for clip_id in clip_ids]


def assert_equal(decoded_clips, expected_clips):
    """Compare clips but for what it cost to decode them, and for remarks."""
    for clip, expected in zip(decoded_clips, expected_clips, strict=True):
        for fact in ("clip_id", "status", "reason", "source"):
            assert getattr(clip, fact) == getattr(expected, fact)
        assert clip.encoded.keys() == expected.encoded.keys()
        for name, features in clip.encoded.items():
            expected_features = expected.encoded[name]
            for array in features.arrays:
                np.testing.assert_array_equal(features.arrays[array], expected_features.arrays[array])
            np.testing.assert_array_equal(features.time_s, expected_features.time_s)
            np.testing.assert_array_equal(features.frame_index, expected_features.frame_index)


def n_decoded(clips):
    return sum(clip.n_decoded for clip in clips)


def remarks(clips):
    return [remark for clip in clips for remark in clip.remarks]


def files(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.long
def test_a_later_run_reads_the_kept_frames_and_gives_the_same(clips, tmp_path):
    """Frames of clips are kept as JPEG in a folder, so that a later run need not decode the videos."""
    first_store, first_report = run(clips, tmp_path / "a", tmp_path / "kept", ("descriptors", "signature"))
    second_store, second_report = run(clips, tmp_path / "b", tmp_path / "kept")

    assert first_report.n_decoded > 0
    assert second_report.n_decoded == 0
    assert [clip.source for clip in first_store.clips] == [clip.source for clip in second_store.clips]

    first = first_store["descriptors"]
    second = second_store["descriptors"]
    assert first.provenance == second.provenance
    np.testing.assert_array_equal(first.frames(), second.frames())
    np.testing.assert_array_equal(first.time_s, second.time_s)


@pytest.mark.long
def test_kept_frames_are_near_the_exact_ones(clips, tmp_path):
    """JPEG changes pixels a little.

    The run that keeps frames computes from them too, so that both runs agree.
    """
    kept = decoded(clips, tmp_path / "kept")
    read = decoded(clips, tmp_path / "kept")
    exact = decoded(clips, None)

    assert_equal(read, kept)
    assert remarks(kept) == remarks(read) == remarks(exact)
    assert [clip.source for clip in kept] == [clip.source for clip in exact]

    for kept_clip, exact_clip in zip(kept, exact, strict=True):
        near = kept_clip.encoded["descriptors"]
        expected = exact_clip.encoded["descriptors"]
        np.testing.assert_array_equal(near.frame_index, expected.frame_index)
        np.testing.assert_allclose(near.arrays["frames"], expected.arrays["frames"], atol=3)
        assert not np.array_equal(near.arrays["frames"], expected.arrays["frames"])


def test_the_provenance_names_kept_frames(clips, tmp_path):
    """Features of kept frames are not those of the video, so a store must say which of them it has."""

    def provenance(folder):
        job = Job(clips, "clips", (load_backbone("descriptors", N),), keep_frames=folder)
        (group,) = job.groups()
        return group.provenance

    assert same_numerics(provenance(tmp_path / "kept"), provenance(None)) == ["decoder.kept_frames"]


def test_a_large_picture_is_kept_with_a_short_side_and_a_small_one_in_its_size():
    """The shorter side of the picture, 300 pixels, becomes `SHORT_SIDE`, and the other one in proportion."""
    wide = moving(0, height=300, width=400)[0]
    high = wide.swapaxes(0, 1)
    long_side = 400 * SHORT_SIDE // 300
    assert from_jpeg(to_jpeg(wide).item()).shape == (SHORT_SIDE, long_side, 3)
    assert from_jpeg(to_jpeg(high).item()).shape == (long_side, SHORT_SIDE, 3)

    small = wide[:100, :120]
    near = from_jpeg(to_jpeg(small).item())
    assert near.shape == small.shape
    assert np.abs(near.astype(int) - small).mean() < 3  # of 255 levels


def flip_a_bit(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)


def make_a_link(file):
    other = file.with_name("other")
    file.rename(other)
    file.symlink_to(other)


def remove_a_frame(file):
    """Remove the last frame, and make the digest that of the rest."""
    kept = msgspec.msgpack.decode(file.read_bytes().partition(b"\n")[2])
    for name in ("index", "time_s", "jpegs"):
        kept[name].pop()
    rest = msgspec.msgpack.encode(kept)
    file.write_bytes(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)


def make_a_pipe(file):
    """Replace a file by a named pipe, at which a reader would wait forever."""
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:-100]), id="cut off"),
        pytest.param(lambda file: file.write_bytes(b""), id="empty"),
        flip_a_bit,
        make_a_link,
        remove_a_frame,
        make_a_pipe,
    ],
)
def test_damaged_frames_are_noted_decoded_again_and_replaced(clips, tmp_path, damage):
    first = decoded(clips, tmp_path / "kept")
    file, *_ = files(tmp_path / "kept")
    content = file.read_bytes()

    damage(file)
    again = decoded(clips, tmp_path / "kept")

    assert_equal(again, first)
    assert remarks(again).count(DAMAGED_REMARK) == 1
    assert n_decoded(again) > 0
    assert file.read_bytes() == content
    assert not file.is_symlink()


@pytest.mark.long
def test_frames_that_cannot_be_kept_are_noted_and_the_features_are_the_same(clips, tmp_path):
    """Files lie in the place of folders, so that writing fails as on a full disk."""
    first = decoded(clips, tmp_path / "kept")
    for folder in (tmp_path / "kept").iterdir():
        shutil.rmtree(folder)
        folder.write_text("in the way", encoding="utf-8")

    again = decoded(clips, tmp_path / "kept")

    assert_equal(again, first)
    assert len([remark for remark in remarks(again) if "could not be kept" in remark]) == 3


@pytest.mark.long
def test_another_video_of_the_same_name_has_frames_of_its_own(clips, tmp_path):
    """Kept frames belong to a digest of the video, and not to its name."""
    decoded(clips, tmp_path / "kept")
    encode(tmp_path / "0.mp4", moving(7), options={"preset": "ultrafast"})
    changed = decoded(clips, tmp_path / "kept")
    assert n_decoded(changed) > 0
    assert_equal(changed, decoded(clips, tmp_path / "other"))


def test_another_number_of_frames_has_files_of_its_own(clips, tmp_path):
    """Three clips, so three files more."""
    decoded(clips, tmp_path / "kept")
    n_files = len(files(tmp_path / "kept"))
    decoded(clips, tmp_path / "kept", n_frames=2)
    assert len(files(tmp_path / "kept")) == n_files + 3


def test_nothing_is_kept_where_it_is_not_asked_for(clips, tmp_path):
    decoded(clips, None)
    prepare(clips, tmp_path / "b", keep_frames=tmp_path / "kept", **NAMED).estimate()
    assert not (tmp_path / "kept").exists()


def test_a_partial_clip_is_partial_where_its_kept_frames_are_read_too(tmp_path):
    """Of the film, 60 % of the bytes are there. Where damage is refused, the clip fails all the same."""
    encode(tmp_path / "1.mkv", moving(1, n=96), options={"preset": "ultrafast", "g": "12"})
    data = (tmp_path / "1.mkv").read_bytes()
    (tmp_path / "1.mkv").write_bytes(data[: int(0.6 * len(data))])
    manifest = Manifest((Clip("tt1-0", "tt1", "1.mkv"),), tmp_path)

    from_film = decoded(manifest, tmp_path / "kept")
    from_kept_frames = decoded(manifest, tmp_path / "kept")
    assert [clip.status for clip in from_film] == ["partial"]
    assert_equal(from_kept_frames, from_film)
    assert n_decoded(from_kept_frames) == 0

    (clip,) = decoded(manifest, tmp_path / "kept", strict=True)
    assert clip.status == "failed"


def bytes_below(folder):
    return {file.name: file.read_bytes() for file in files(folder)}


@pytest.mark.long
def test_windows_of_a_film_whose_shots_are_found_keep_the_same_frames_and_give_the_same_shots(tmp_path):
    """Where the frames of the windows are kept ones, the film is decoded for its shots alone."""
    encode(tmp_path / "film.mp4", moving(3, n=240, height=96, width=96), options={"g": "24", "bf": "2"})
    windows = [
        Clip(f"film-{start:02d}", "film", "film.mp4", start / 4, start / 4 + 1.5) for start in range(30)
    ]
    manifest = Manifest(tuple(windows), tmp_path)

    def frames_of(name, kept, shots=None):
        store, _ = run(manifest, tmp_path / name, tmp_path / kept, shots=shots)
        return store["descriptors"].frames()

    without_shots = frames_of("a", "kept-without")
    with_shots = frames_of("b", "kept-with", shots=tmp_path / "first.csv")
    np.testing.assert_array_equal(with_shots, without_shots)
    assert bytes_below(tmp_path / "kept-with") == bytes_below(tmp_path / "kept-without")

    of_kept_frames = frames_of("c", "kept-with", shots=tmp_path / "second.csv")
    np.testing.assert_array_equal(of_kept_frames, without_shots)
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()


@pytest.mark.long
def test_two_runs_may_keep_in_one_folder_at_once(clips, tmp_path):
    """Both write the same three files; afterwards nothing has to be decoded."""
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(decoded, clips, tmp_path / "kept") for _ in range(2)]
        first, second = [run.result() for run in runs]

    assert_equal(first, second)
    assert n_decoded(decoded(clips, tmp_path / "kept")) == 0
    assert len(files(tmp_path / "kept")) == 3


def test_frames_are_not_kept_in_a_file_or_for_a_backbone_that_only_hears(clips, tmp_path):
    a_video = tmp_path / "0.mp4"
    with pytest.raises(ExtractError, match=str(a_video)):
        prepare(clips, tmp_path / "a", ("descriptors",), keep_frames=a_video, **NAMED)
    with pytest.raises(ExtractError, match=str(tmp_path / "kept")):
        prepare(clips, tmp_path / "a", ("sound",), keep_frames=tmp_path / "kept", **NAMED)
