"""Frames of each second: a clip has as many as it is long, each encoded alone."""

from dataclasses import replace

import numpy as np
import pytest

import obygaze_features as of
from obygaze.demo_corpus import write_video
from obygaze_features.backbones import BackboneOutput, load_backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction import Recipe, estimate
from obygaze_features.extraction.each_frame import encode_each_frame
from obygaze_features.video import fps, read_frames
from tests.tiny_checkpoints import tiny_checkpoint

RATE = 24
SECONDS = {"short": 1.0, "long": 3.5}
QUIET = {"licence": "CC0-1.0", "note": lambda _: None}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Two videos of unlike length, a span of the longer one, and a file that is none."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    for name, seconds in SECONDS.items():
        pictures = (rng.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(round(RATE * seconds)))
        write_video(folder / f"{name}.mp4", pictures, RATE)
    (folder / "none.mp4").write_bytes(b"no video")
    clips = [of.Clip(name, "tt1", f"{name}.mp4") for name in (*SECONDS, "none")]
    clips.append(of.Clip("span", "tt1", "long.mp4", 1.0, 2.5))
    of.write_manifest(of.Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def by_hand(path, backbone, span=(None, None)):
    """The vector and the time of each frame, encoded alone."""
    taken = read_frames(path, fps(2), start_s=span[0], end_s=span[1])
    vectors = [backbone.encode(backbone.prepare(frame)[None, None])["frames"][0, 0] for frame in taken.images]
    return np.stack(vectors), taken.time_s, taken.index


def test_a_clip_has_the_frames_of_its_seconds_and_their_times(films, tmp_path):
    store = of.extract(films / "films.csv", tmp_path / "s", ["descriptors"], per_second=2, workers=2, **QUIET)
    group, alone = store["descriptors"], load_backbone("descriptors", 1)
    assert group.ragged
    assert group.arrays == ("frames",)
    assert dict(zip(group.clip_ids, group.row_size.tolist(), strict=True)) == {
        "long": 7,
        "none": 0,
        "short": 2,
        "span": 3,
    }
    for clip, file, span in (
        ("short", "short", (None, None)),
        ("long", "long", (None, None)),
        ("span", "long", (1.0, 2.5)),
    ):
        vectors, times, indices = by_hand(films / f"{file}.mp4", alone, span)
        assert np.array_equal(group.read(clip, "frames"), vectors)
        assert np.array_equal(group.read(clip, "time_s"), times)
        assert np.array_equal(group.read(clip, "frame_index"), indices)
    assert group.provenance["sampling"] == {"policy": "fps", "rate": 2.0, "n": None}
    assert of.verify(store, "full").ok


def test_the_bytes_do_not_depend_on_workers_and_batches(films, tmp_path):
    prints = {
        of.extract(
            films / "films.csv",
            tmp_path / f"{workers}-{size}",
            per_second=3,
            workers=workers,
            batch_size=size,
            **QUIET,
        ).fingerprint
        for workers, size in ((1, 1), (2, 3))
    }
    assert len(prints) == 1


def test_a_store_of_frames_a_second_grows(films, tmp_path):
    settings = {"per_second": 2, "workers": 1, **QUIET}
    whole = of.extract(films / "films.csv", tmp_path / "whole", **settings)
    clips = of.read_manifest(films / "films.csv").clips
    of.write_manifest(of.Manifest(clips[1:3], films), films / "some.csv")
    some = of.extract(films / "some.csv", tmp_path / "some", **settings)
    grown = of.extract(films / "films.csv", tmp_path / "some", append=some.path, version="1.1.0", **settings)
    for array in ("frames", "time_s", "frame_index"):
        assert grown["descriptors"].digests(array) == whole["descriptors"].digests(array)


def test_a_network_encodes_frames_of_several_clips_together_and_each_as_if_it_were_alone(films, tmp_path):
    options = {"weights": str(tiny_checkpoint("clip", tmp_path / "weights"))}
    store = of.extract(
        films / "films.csv",
        tmp_path / "s",
        [Recipe("clip", options=options)],
        per_second=2,
        workers=1,
        **QUIET,
    )
    alone = load_backbone("clip", 1, **options)
    for clip in SECONDS:
        vectors, _, _ = by_hand(films / f"{clip}.mp4", alone)
        # Batches of another size may be summed in another order; vectors of two frames differ by .2 or more.
        np.testing.assert_allclose(store["clip"].read(clip, "frames"), vectors, rtol=1e-2, atol=1e-3)
    frames_of_clips = dict(zip(store["clip"].clip_ids, store["clip"].row_size.tolist(), strict=True))
    assert frames_of_clips == {"long": 7, "none": 0, "short": 2, "span": 3}


def test_a_backbone_that_gives_tokens_too_is_refused():
    """A store has one number of tokens for all clips; they are not left out without a word."""
    alone = load_backbone("descriptors", 1)
    frames = next(output for output in alone.outputs if output.name == "frames")
    with_tokens = replace(alone, outputs=(frames, BackboneOutput("tokens", (5, 6), "float16")))
    with pytest.raises(ExtractError, match="--tokens"):
        encode_each_frame(with_tokens)


@pytest.mark.parametrize(
    ("backbones", "more", "message"),
    [
        (["descriptors"], {"n_frames": 4}, "--n"),
        (["descriptors"], {"sampling": "keyframes"}, "keyframes"),
        (["descriptors"], {"per_second": 0}, "above 0"),
        (["camera"], {}, "joins frames"),
        (["sound"], {}, "hears"),
        ([Recipe("descriptors", 4)], {}, "4 frames"),
    ],
)
def test_options_and_backbones_that_do_not_go_with_a_rate_are_refused(
    films, tmp_path, backbones, more, message
):
    with pytest.raises(ExtractError, match=message):
        of.extract(films / "films.csv", tmp_path / "s", backbones, **{"per_second": 2, "workers": 1} | more)
    assert not (tmp_path / "s-1.0.0").exists()


def test_the_disk_is_estimated_by_the_lengths_of_the_clips(films, tmp_path):
    n_clips, seconds = 4, 3
    clips = tuple(of.Clip(f"c{n}", "tt1", "long.mp4", 0.0, float(seconds)) for n in range(n_clips))
    of.write_manifest(of.Manifest(clips, films), films / "spans.csv")
    (width,) = (own.shape[1] for own in load_backbone("descriptors", 1).outputs if own.name == "frames")
    frame_bytes = 4 * width + 8 + 8  # its vector in float32, its time and its index
    few, many = 2, 2000  # frames a second
    store_bytes = {}
    for rate in (few, many):
        result = estimate(films / "spans.csv", tmp_path / "s", per_second=rate, workers=1, **QUIET)
        store_bytes[rate] = result.room.store_bytes
    more_frames = n_clips * seconds * (many - few)
    # Chunks have a little more than their numbers.
    assert store_bytes[many] - store_bytes[few] == pytest.approx(more_frames * frame_bytes, rel=0.05)
