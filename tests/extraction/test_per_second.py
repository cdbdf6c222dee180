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


N_FRAMES = {"long": 7, "none": 0, "short": 2, "span": 3}
"""Clip -> number of its frames at two a second."""


def encoded_one_by_one(path, backbone, span=(None, None)):
    """Encode each frame of a span, two a second, alone; gives the vectors, times and indices of frames."""
    taken = read_frames(path, fps(2), start_s=span[0], end_s=span[1])
    batches_of_one = [backbone.prepare(frame)[np.newaxis, np.newaxis] for frame in taken.images]
    vectors = [backbone.encode(batch)["frames"][0, 0] for batch in batches_of_one]
    return np.stack(vectors), taken.time_s, taken.index


@pytest.mark.long
def test_a_clip_has_two_frames_for_each_of_its_seconds_each_encoded_alone(films, tmp_path):
    """3.5 s have 7 frames, 1 s has 2, a span of 1.5 s has 3, and what is no video has none."""
    store = of.extract(films / "films.csv", tmp_path / "s", ["descriptors"], per_second=2, workers=2, **QUIET)

    group = store["descriptors"]
    assert group.ragged
    assert group.arrays == ("frames",)
    assert dict(zip(group.clip_ids, group.row_size.tolist(), strict=True)) == N_FRAMES
    assert group.provenance["sampling"] == {"policy": "fps", "rate": 2.0, "n": None}
    assert of.verify(store, "full").ok

    backbone = load_backbone("descriptors", 1)
    for clip, file, span in (
        ("short", "short.mp4", (None, None)),
        ("long", "long.mp4", (None, None)),
        ("span", "long.mp4", (1.0, 2.5)),
    ):
        vectors, times, indices = encoded_one_by_one(films / file, backbone, span)
        assert np.array_equal(group.read(clip, "frames"), vectors)
        assert np.array_equal(group.read(clip, "time_s"), times)
        assert np.array_equal(group.read(clip, "frame_index"), indices)


@pytest.mark.long
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


@pytest.mark.long
def test_frames_that_a_network_encodes_together_have_the_vectors_of_each_alone(films, tmp_path):
    options = {"weights": str(tiny_checkpoint("clip", tmp_path / "weights"))}
    store = of.extract(
        films / "films.csv",
        tmp_path / "s",
        [Recipe("clip", options=options)],
        per_second=2,
        workers=1,
        **QUIET,
    )

    group = store["clip"]
    assert dict(zip(group.clip_ids, group.row_size.tolist(), strict=True)) == N_FRAMES

    backbone = load_backbone("clip", 1, **options)
    for clip in SECONDS:
        vectors, _, _ = encoded_one_by_one(films / f"{clip}.mp4", backbone)
        # Batches of another size may be summed in another order; vectors of two frames differ by .2 or more.
        np.testing.assert_allclose(group.read(clip, "frames"), vectors, rtol=1e-2, atol=1e-3)


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
    """A rate gives each clip a number of frames of its own.

    So it excludes a fixed number, key frames, backbones that join frames, and those that hear.
    """
    with pytest.raises(ExtractError, match=message):
        of.extract(films / "films.csv", tmp_path / "s", backbones, **{"per_second": 2, "workers": 1} | more)
    assert not (tmp_path / "s-1.0.0").exists()


@pytest.mark.long
@pytest.mark.nightly
def test_the_disk_that_is_estimated_grows_with_the_number_of_frames(films, tmp_path):
    """A frame has its vector in float32, its time and its index, and chunks a little more."""
    n_clips, seconds = 4, 3
    clips = tuple(of.Clip(f"c{n}", "tt1", "long.mp4", 0.0, float(seconds)) for n in range(n_clips))
    of.write_manifest(of.Manifest(clips, films), films / "spans.csv")

    def estimated_bytes(per_second):
        cost = estimate(films / "spans.csv", tmp_path / "s", per_second=per_second, workers=1, **QUIET)
        return cost.room.store_bytes

    (frames,) = [output for output in load_backbone("descriptors", 1).outputs if output.name == "frames"]
    frame_bytes = 4 * frames.shape[1] + 8 + 8

    few, many = 2, 2000
    n_more_frames = n_clips * seconds * (many - few)
    more_bytes = estimated_bytes(many) - estimated_bytes(few)
    assert more_bytes == pytest.approx(n_more_frames * frame_bytes, rel=0.05)
