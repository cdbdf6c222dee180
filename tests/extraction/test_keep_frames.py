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
    from_jpeg,
    to_jpeg,
    with_frame_cache,
)
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store.provenance import same_numerics
from tests.video.encoding import encode

SETTINGS = {"corpus": "clips", "licence": "CC0-1.0", "workers": 1, "n_frames": 4}


def wandering_blocks(seed, n=24, height=300, width=400):
    """Draw pictures of random colours in blocks of 20 pixels, which move by 4 pixels from one to the next."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 256, (height // 20, (width + 4 * n) // 20 + 1, 3), np.uint8)
    wide = wide.repeat(20, axis=0).repeat(20, axis=1)
    return [np.ascontiguousarray(wide[:, 4 * frame : 4 * frame + width]) for frame in range(n)]


@pytest.fixture
def two_videos_and_a_span(tmp_path) -> Manifest:
    """Two videos, and a span of the first."""
    for number in range(2):
        encode(tmp_path / f"{number}.mp4", wandering_blocks(number), options={"preset": "ultrafast"})
    whole_files = [Clip(f"tt{number}-0", f"tt{number}", f"{number}.mp4") for number in range(2)]
    span = Clip("tt0-1", "tt0", "0.mp4", start_s=0.2, end_s=0.8)
    return Manifest((*whole_files, span), tmp_path)


def extract_and_keep_frames(manifest, out, folder, backbones=("descriptors",), **settings):
    """Extract and keep the frames in a folder; return the store and the report.

    `extract` gives no report: the work is done by `prepare`, and `extract` then only seals it.
    """
    settings = SETTINGS | settings | {"keep_frames": folder}
    _, report = prepare(manifest, out, backbones, **settings).run()
    store = extract(manifest, out, backbones, **settings)
    return store, report


def decode_and_keep(manifest, folder, backbones=("descriptors",), n_frames=4, **settings):
    """Decode the clips as a worker does and keep frames in a folder, or read those that are kept there.

    Without a folder (None) nothing is kept. The results are in the order of the clips.
    """
    built = tuple(load_backbone(name, n_frames) for name in backbones)
    job = Job(manifest, "clips", built, keep_frames=folder, **settings)
    clip_ids = [clip.clip_id for clip in manifest]
    clip_of_id = {}
    for pass_tasks in group_into_passes(job.tasks(clip_ids), workers=1):
        for _, clip in decode_clips(pass_tasks, with_frame_cache(decode_with_av)):
            clip_of_id[clip.clip_id] = clip
    return [clip_of_id[clip_id] for clip_id in clip_ids]


def assert_same_features(decoded_clips, expected_clips):
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


def n_frames_decoded(clips):
    return sum(clip.n_decoded for clip in clips)


def remarks(clips):
    """List what decoding remarked on the clips, such as that a file has sound that nothing here hears."""
    return [remark for clip in clips for remark in clip.remarks]


def files_below(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.long
def test_a_later_run_reads_the_kept_frames_and_gives_the_same(two_videos_and_a_span, tmp_path):
    """Frames of clips are kept as JPEG in a folder, so that a later run need not decode the videos.

    The first run has two backbones, the second one of them.
    """
    kept = tmp_path / "kept"

    first_store, first_report = extract_and_keep_frames(
        two_videos_and_a_span, tmp_path / "a", kept, ("descriptors", "signature")
    )
    second_store, second_report = extract_and_keep_frames(
        two_videos_and_a_span, tmp_path / "b", kept, ("descriptors",)
    )

    assert first_report.n_decoded > 0
    assert second_report.n_decoded == 0
    assert [clip.source for clip in first_store.clips] == [clip.source for clip in second_store.clips]

    first = first_store["descriptors"]
    second = second_store["descriptors"]
    assert first.provenance == second.provenance
    np.testing.assert_array_equal(first.frames(), second.frames())
    np.testing.assert_array_equal(first.time_s, second.time_s)


@pytest.mark.long
def test_features_of_kept_frames_are_near_those_of_the_exact_frames(two_videos_and_a_span, tmp_path):
    """Frames of clips are kept as JPEG in a folder. JPEG changes pixels, here by at most 3 of 255 levels.

    The first run finds the folder empty, decodes the videos and keeps the frames; the second one finds the
    kept frames and reads them. The first computes features from the frames as kept too, so that both agree. A
    third run keeps nothing, and computes from the exact frames. All say the same of the clips but for the
    small difference in the features.
    """
    folder = tmp_path / "kept"
    of_run_that_keeps = decode_and_keep(two_videos_and_a_span, folder)
    of_run_that_reads = decode_and_keep(two_videos_and_a_span, folder)
    of_exact_frames = decode_and_keep(two_videos_and_a_span, folder=None)

    assert_same_features(of_run_that_reads, of_run_that_keeps)
    assert remarks(of_run_that_keeps) == remarks(of_exact_frames)
    assert remarks(of_run_that_reads) == remarks(of_exact_frames)
    assert [clip.source for clip in of_run_that_keeps] == [clip.source for clip in of_exact_frames]

    for kept_clip, exact_clip in zip(of_run_that_keeps, of_exact_frames, strict=True):
        near = kept_clip.encoded["descriptors"]
        exact = exact_clip.encoded["descriptors"]
        np.testing.assert_array_equal(near.frame_index, exact.frame_index)
        np.testing.assert_allclose(near.arrays["frames"], exact.arrays["frames"], atol=3)
        assert not np.array_equal(near.arrays["frames"], exact.arrays["frames"])


def test_the_provenance_names_kept_frames(two_videos_and_a_span, tmp_path):
    """Features of kept frames are not those of the video, so a store must say which of them it has.

    The provenance of jobs that do and do not keep frames differs in this key alone.
    """
    backbones = (load_backbone("descriptors", n_frames=4),)
    (keeping_group,) = Job(two_videos_and_a_span, "clips", backbones, keep_frames=tmp_path / "kept").groups()
    (exact_group,) = Job(two_videos_and_a_span, "clips", backbones, keep_frames=None).groups()

    keys_that_differ = same_numerics(keeping_group.provenance, exact_group.provenance)

    assert keys_that_differ == ["decoder.kept_frames"]


def test_a_large_picture_is_kept_with_a_shorter_side_of_256_pixels():
    """A picture of 300 x 400 pixels becomes one of 256 x 341: 400 * 256 / 300, rounded down."""
    wide = wandering_blocks(seed=0, height=300, width=400)[0]
    high = wide.swapaxes(0, 1)

    kept_wide = from_jpeg(to_jpeg(wide).item())
    kept_high = from_jpeg(to_jpeg(high).item())

    assert kept_wide.shape == (256, 341, 3)
    assert kept_high.shape == (341, 256, 3)


def test_a_small_picture_is_kept_in_its_size_and_nearly_as_it_is():
    """JPEG changes its pixels by less than 3 of 255 levels in the mean."""
    small = wandering_blocks(seed=0, height=300, width=400)[0][:100, :120]

    kept = from_jpeg(to_jpeg(small).item())

    assert kept.shape == (100, 120, 3)
    assert np.abs(kept.astype(int) - small).mean() < 3


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
def test_damaged_frames_are_noted_decoded_again_and_replaced(two_videos_and_a_span, tmp_path, damage):
    """A run keeps the frames of each clip in a file, and a later run reads them instead of the videos.

    The file of one clip is damaged between two runs: this clip gets a remark, its frames are decoded again,
    and the file becomes what it was.
    """
    first_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")
    file_of_a_clip = files_below(tmp_path / "kept")[0]
    undamaged = file_of_a_clip.read_bytes()
    damage(file_of_a_clip)

    second_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")

    assert_same_features(second_run, first_run)
    assert remarks(second_run).count(DAMAGED_REMARK) == 1
    assert n_frames_decoded(second_run) > 0
    assert file_of_a_clip.read_bytes() == undamaged
    assert not file_of_a_clip.is_symlink()


@pytest.mark.long
def test_frames_that_cannot_be_kept_are_noted_and_the_features_are_the_same(two_videos_and_a_span, tmp_path):
    """Files lie in the place of the folders of kept frames, so that writing fails as on a full disk.

    Each of three clips has a remark on that.
    """
    first_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")
    for folder in (tmp_path / "kept").iterdir():
        shutil.rmtree(folder)
        folder.write_text("in the way", encoding="utf-8")

    second_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")

    assert_same_features(second_run, first_run)
    remarks_on_keeping = [remark for remark in remarks(second_run) if "could not be kept" in remark]
    assert len(remarks_on_keeping) == 3


@pytest.mark.long
def test_another_video_of_the_same_name_has_frames_of_its_own(two_videos_and_a_span, tmp_path):
    """Kept frames belong to a digest of the video, and not to its name.

    After the first run, another film is written to the file 0.mp4.
    """
    decode_and_keep(two_videos_and_a_span, tmp_path / "kept")
    encode(tmp_path / "0.mp4", wandering_blocks(seed=7), options={"preset": "ultrafast"})

    second_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")

    assert n_frames_decoded(second_run) > 0
    without_earlier_frames = decode_and_keep(two_videos_and_a_span, tmp_path / "other")
    assert_same_features(second_run, without_earlier_frames)


def test_another_number_of_frames_has_files_of_its_own(two_videos_and_a_span, tmp_path):
    """Frames of a clip are kept in one file. Three clips have three files, and with another number six."""
    decode_and_keep(two_videos_and_a_span, tmp_path / "kept", n_frames=4)
    n_files = len(files_below(tmp_path / "kept"))

    decode_and_keep(two_videos_and_a_span, tmp_path / "kept", n_frames=2)

    assert len(files_below(tmp_path / "kept")) == n_files + 3


def test_a_run_without_a_folder_and_an_estimate_keep_nothing(two_videos_and_a_span, tmp_path):
    """Without a folder, a run keeps no frames; an estimate is given one, and tries some clips only."""
    no_folder = None
    decode_and_keep(two_videos_and_a_span, no_folder)
    prepare(two_videos_and_a_span, tmp_path / "b", keep_frames=tmp_path / "kept", **SETTINGS).estimate()

    assert not (tmp_path / "kept").exists()


def cut_off_after_share(file, share):
    """Leave a share of a file's bytes, from the first on."""
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])


def test_a_partial_clip_is_partial_where_its_kept_frames_are_read_too(tmp_path):
    """Of the only film, 60 % of the bytes are there: the clip is partial, also when kept frames are read.

    Where damage is refused (`strict`), the clip fails, although frames of it are kept.
    """
    film = tmp_path / "1.mkv"
    encode(film, wandering_blocks(seed=1, n=96), options={"preset": "ultrafast", "g": "12"})
    cut_off_after_share(film, 0.6)
    manifest = Manifest((Clip("tt1-0", "tt1", "1.mkv"),), tmp_path)

    from_film = decode_and_keep(manifest, tmp_path / "kept")
    from_kept_frames = decode_and_keep(manifest, tmp_path / "kept")
    refusing_damage = decode_and_keep(manifest, tmp_path / "kept", strict=True)

    assert [clip.status for clip in from_film] == ["partial"]
    assert_same_features(from_kept_frames, from_film)
    assert n_frames_decoded(from_kept_frames) == 0
    assert [clip.status for clip in refusing_damage] == ["failed"]


def bytes_below(folder):
    return {file.name: file.read_bytes() for file in files_below(folder)}


@pytest.mark.long
def test_windows_of_a_film_whose_shots_are_found_keep_the_same_frames_and_give_the_same_shots(tmp_path):
    """Thirty windows of 1.5 s overlap in a film of 9.6 s, whose shots are found in the same pass.

    Whether shots are found or not, the windows have the same frames, and the same are kept. A second run with
    shots reads the kept frames, and decodes the film for its shots alone: these are the same again.
    """
    pictures = wandering_blocks(seed=3, n=240, height=96, width=96)
    encode(tmp_path / "film.mp4", pictures, options={"g": "24", "bf": "2"})
    windows = []
    for number in range(30):
        start_s = number / 4
        windows.append(Clip(f"film-{number:02d}", "film", "film.mp4", start_s, start_s + 1.5))
    manifest = Manifest(tuple(windows), tmp_path)

    def frames_of_store(name, kept, shots=None):
        store, _report = extract_and_keep_frames(manifest, tmp_path / name, tmp_path / kept, shots=shots)
        return store["descriptors"].frames()

    without_shots = frames_of_store("a", kept="kept-without")
    with_shots = frames_of_store("b", kept="kept-with", shots=tmp_path / "first.csv")
    of_kept_frames = frames_of_store("c", kept="kept-with", shots=tmp_path / "second.csv")

    np.testing.assert_array_equal(with_shots, without_shots)
    np.testing.assert_array_equal(of_kept_frames, without_shots)
    assert bytes_below(tmp_path / "kept-with") == bytes_below(tmp_path / "kept-without")
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()


@pytest.mark.long
def test_two_runs_may_keep_in_one_folder_at_once(two_videos_and_a_span, tmp_path):
    """Both write the same files, one for each of three clips; afterwards nothing has to be decoded."""
    with ThreadPoolExecutor(2) as threads:
        first_run = threads.submit(decode_and_keep, two_videos_and_a_span, tmp_path / "kept")
        second_run = threads.submit(decode_and_keep, two_videos_and_a_span, tmp_path / "kept")
        assert_same_features(first_run.result(), second_run.result())

    assert len(files_below(tmp_path / "kept")) == 3
    third_run = decode_and_keep(two_videos_and_a_span, tmp_path / "kept")
    assert n_frames_decoded(third_run) == 0


def test_a_file_is_refused_as_the_folder_of_kept_frames(two_videos_and_a_span, tmp_path):
    """The video 0.mp4 is named where a folder for frames should be; the refusal has its path."""
    file = tmp_path / "0.mp4"

    with pytest.raises(ExtractError, match=str(file)):
        prepare(two_videos_and_a_span, tmp_path / "a", ("descriptors",), keep_frames=file, **SETTINGS)


def test_to_keep_frames_for_a_backbone_that_only_hears_is_refused(two_videos_and_a_span, tmp_path):
    """The backbone `sound` takes no frames, so nothing could be kept in the folder."""
    folder = tmp_path / "kept"

    with pytest.raises(ExtractError, match=str(folder)):
        prepare(two_videos_and_a_span, tmp_path / "a", ("sound",), keep_frames=folder, **SETTINGS)
