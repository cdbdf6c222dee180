"""Frames that are kept are read in place of the video, by all backbones alike; damaged ones never are."""

import hashlib
import os
import threading
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from obygaze_features.backbones import load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import Job, extract, prepare
from obygaze_features.extraction.decode_clips import decode_clips, decode_with_av, passes
from obygaze_features.extraction.keep_frames import DAMAGED, SHORT, from_jpeg, keeping, to_jpeg
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store.provenance import same_numerics
from tests.video.encoding import encode

N = 4
NAMED = {"corpus": "clips", "licence": "CC0-1.0", "workers": 1, "n_frames": N}


def moving(seed, n=24, height=300, width=400):
    """Draw pictures of blocks that wander."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(0, 256, (height // 20, (width + 4 * n) // 20 + 1, 3), np.uint8)
    wide = wide.repeat(20, axis=0).repeat(20, axis=1)
    return [np.ascontiguousarray(wide[:, 4 * frame : 4 * frame + width]) for frame in range(n)]


@pytest.fixture
def clips(tmp_path) -> Manifest:
    for number in range(2):
        encode(tmp_path / f"{number}.mp4", moving(number), options={"preset": "ultrafast"})
    known = [Clip(f"tt{number}-0", f"tt{number}", f"{number}.mp4") for number in range(2)]
    return Manifest((*known, Clip("tt0-1", "tt0", "0.mp4", 0.2, 0.8)), tmp_path)


def run(manifest, out, folder, backbones=("descriptors",), **settings):
    """Extract; return the store and the report."""
    work = prepare(manifest, out, backbones, keep_frames=folder, **NAMED | settings)
    _, report = work.run()
    return extract(manifest, out, backbones, keep_frames=folder, **NAMED | settings), report


def decoded(manifest, folder, backbones=("descriptors",), n_frames=N, **settings):
    """Decode the clips as a worker does, in their order."""
    built = tuple(map(partial(load_backbone, n_frames=n_frames), backbones))
    job = Job(manifest, "clips", built, keep_frames=folder, **settings)
    ids = [clip.clip_id for clip in manifest]
    every = [decode_clips(some, keeping(decode_with_av)) for some in passes(job.tasks(ids), 1)]
    return sorted((clip for some in every for _, clip in some), key=lambda clip: ids.index(clip.clip_id))


def equal(ours, theirs):
    """Whether clips are the same but for what it cost to decode them."""
    for a, b in zip(ours, theirs, strict=True):
        assert (a.clip_id, a.status, a.reason, a.source) == (b.clip_id, b.status, b.reason, b.source)
        assert a.encoded.keys() == b.encoded.keys()
        for name, features in a.encoded.items():
            other = b.encoded[name]
            for array in features.arrays:
                np.testing.assert_array_equal(features.arrays[array], other.arrays[array])
            np.testing.assert_array_equal(features.time_s, other.time_s)
            np.testing.assert_array_equal(features.frame_index, other.frame_index)
    return True


def n_decoded(clips):
    return sum(clip.n_decoded for clip in clips)


def remarks(clips):
    return [remark for clip in clips for remark in clip.remarks]


def files(folder: Path):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_later_run_reads_what_the_first_kept_and_gives_the_same(clips, tmp_path):
    first, decoding = run(clips, tmp_path / "a", tmp_path / "kept", ("descriptors", "signature"))
    later_on, reading = run(clips, tmp_path / "b", tmp_path / "kept")
    assert decoding.n_decoded > 0
    assert reading.n_decoded == 0
    assert [clip.source for clip in first.clips] == [clip.source for clip in later_on.clips]
    a, b = first["descriptors"], later_on["descriptors"]
    assert a.provenance == b.provenance
    np.testing.assert_array_equal(a.frames(), b.frames())
    np.testing.assert_array_equal(a.time_s, b.time_s)


def test_kept_frames_are_near_the_exact_ones_and_named(clips, tmp_path):
    kept, again, exact = (decoded(clips, folder) for folder in (tmp_path / "kept", tmp_path / "kept", None))
    assert equal(kept, again)
    assert remarks(kept) == remarks(again) == remarks(exact)
    assert [clip.source for clip in kept] == [clip.source for clip in exact]
    for near, clip in zip(kept, exact, strict=True):
        a, b = near.encoded["descriptors"], clip.encoded["descriptors"]
        np.testing.assert_array_equal(a.frame_index, b.frame_index)
        np.testing.assert_allclose(a.arrays["frames"], b.arrays["frames"], atol=3)
        assert not np.array_equal(a.arrays["frames"], b.arrays["frames"])
    of_kept, of_exact = (
        Job(clips, "clips", (load_backbone("descriptors", N),), keep_frames=folder).groups()[0].provenance
        for folder in (tmp_path / "kept", None)
    )
    assert same_numerics(of_kept, of_exact) == ["decoder.kept_frames"]


def test_a_picture_is_kept_small_and_one_that_is_small_as_it_is():
    picture = moving(0)[0]
    assert from_jpeg(to_jpeg(picture).item()).shape == (SHORT, 400 * SHORT // 300, 3)
    assert from_jpeg(to_jpeg(picture.swapaxes(0, 1)).item()).shape == (400 * SHORT // 300, SHORT, 3)
    small = picture[:100, :120]
    near = from_jpeg(to_jpeg(small).item())
    assert near.shape == small.shape
    assert np.abs(near.astype(int) - small).mean() < 3


def cut(file):
    file.write_bytes(file.read_bytes()[:-100])


def flipped(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)


def linked(file):
    other = file.with_name("other")
    file.rename(other)
    file.symlink_to(other)


def fewer(file):
    """Leave out the last frame, and make the digest that of the rest."""
    kept = msgspec.msgpack.decode(file.read_bytes().partition(b"\n")[2])
    for name in ("index", "time_s", "jpegs"):
        kept[name].pop()
    rest = msgspec.msgpack.encode(kept)
    file.write_bytes(hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)


def piped(file):
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("damage", [cut, flipped, linked, fewer, piped, lambda file: file.write_bytes(b"")])
def test_damaged_frames_are_said_and_decoded_again(clips, tmp_path, damage):
    first = decoded(clips, tmp_path / "kept")
    every = files(tmp_path / "kept")
    whole = every[0].read_bytes()
    damage(every[0])
    again = decoded(clips, tmp_path / "kept")
    assert equal(first, again)
    assert remarks(again).count(DAMAGED) == 1
    assert n_decoded(again) > 0
    assert every[0].read_bytes() == whole
    assert not every[0].is_symlink()


def test_what_cannot_be_kept_is_said_and_the_features_are_the_same(clips, tmp_path):
    """As on a full disk, or where nobody may write."""
    first = decoded(clips, tmp_path / "kept")
    for folder in (tmp_path / "kept").iterdir():
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        folder.write_text("in the way", encoding="utf-8")
    again = decoded(clips, tmp_path / "kept")
    assert equal(first, again)
    assert sum("could not be kept" in remark for remark in remarks(again)) == 3


def test_another_video_of_the_name_other_frames_and_other_spans_have_their_own(clips, tmp_path):
    decoded(clips, tmp_path / "kept")
    encode(tmp_path / "0.mp4", moving(7), options={"preset": "ultrafast"})
    changed = decoded(clips, tmp_path / "kept")
    assert n_decoded(changed) > 0
    assert equal(changed, decoded(clips, tmp_path / "other"))
    before = files(tmp_path / "kept")
    decoded(clips, tmp_path / "kept", n_frames=2)
    assert len(files(tmp_path / "kept")) == len(before) + 3


def test_nothing_is_kept_where_it_is_not_asked_for(clips, tmp_path):
    decoded(clips, None)
    prepare(clips, tmp_path / "b", keep_frames=tmp_path / "kept", **NAMED).estimate()
    assert not (tmp_path / "kept").exists()


def test_a_clip_in_part_stays_one(tmp_path):
    encode(tmp_path / "1.mkv", moving(1, n=96), options={"preset": "ultrafast", "g": "12"})
    data = (tmp_path / "1.mkv").read_bytes()
    (tmp_path / "1.mkv").write_bytes(data[: int(0.6 * len(data))])
    cut_off = Manifest((Clip("tt1-0", "tt1", "1.mkv"),), tmp_path)
    first, again = decoded(cut_off, tmp_path / "kept"), decoded(cut_off, tmp_path / "kept")
    assert [clip.status for clip in first] == ["partial"]
    assert equal(first, again)
    assert n_decoded(again) == 0
    assert [clip.status for clip in decoded(cut_off, tmp_path / "kept", strict=True)] == ["failed"]


@pytest.mark.long
def test_windows_of_a_film_whose_shots_are_found_keep_the_same_frames(tmp_path):
    encode(tmp_path / "film.mp4", moving(3, n=240, height=96, width=96), options={"g": "24", "bf": "2"})
    windows = [
        Clip(f"film-{start:02d}", "film", "film.mp4", start / 4, start / 4 + 1.5) for start in range(30)
    ]
    manifest = Manifest(tuple(windows), tmp_path)
    alone, *others = (
        run(manifest, tmp_path / out, tmp_path / kept, shots=table)[0]["descriptors"]
        for out, kept, table in (
            ("a", "kept", None),
            ("b", "other", tmp_path / "s.csv"),
            ("c", "other", tmp_path / "t.csv"),
        )
    )
    for other in others:
        np.testing.assert_array_equal(alone.frames(), other.frames())
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()
    kept, other = files(tmp_path / "kept"), files(tmp_path / "other")
    assert [(file.name, file.read_bytes()) for file in kept] == [
        (file.name, file.read_bytes()) for file in other
    ]


def test_two_runs_may_keep_in_one_folder_at_once(clips, tmp_path):
    stores = {}

    def do(name):
        stores[name] = decoded(clips, tmp_path / "kept")

    threads = [threading.Thread(target=do, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert equal(stores["a"], stores["b"])
    assert n_decoded(decoded(clips, tmp_path / "kept")) == 0
    assert len(files(tmp_path / "kept")) == 3


def test_a_file_in_the_place_of_the_folder_and_what_only_hears_are_refused(clips, tmp_path):
    for folder, backbones in ((tmp_path / "0.mp4", ("descriptors",)), (tmp_path / "kept", ("sound",))):
        with pytest.raises(ExtractError, match=str(folder)):
            prepare(clips, tmp_path / "a", backbones, keep_frames=folder, **NAMED)
