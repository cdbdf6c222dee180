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

PICTURES_PER_SECOND = 24
SECONDS = {"short": 1.0, "long": 3.5}
"""Video -> its length."""
QUIET = {"licence": "CC0-1.0", "note": lambda _: None}
"""Arguments with which an extraction notes nothing."""


@pytest.fixture(scope="module")
def folder_of_two_videos_and_a_span(tmp_path_factory):
    """A folder with films.csv: videos of 1 s and 3.5 s, a span of 1.5 s in the latter and no video."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    for name, seconds in SECONDS.items():
        n_pictures = round(PICTURES_PER_SECOND * seconds)
        pictures = (rng.integers(0, 255, (48, 64, 3), np.uint8) for _ in range(n_pictures))
        write_video(folder / f"{name}.mp4", pictures, PICTURES_PER_SECOND)
    (folder / "none.mp4").write_bytes(b"no video")
    clips = [of.Clip(name, "tt1", f"{name}.mp4") for name in (*SECONDS, "none")]
    clips.append(of.Clip("span", "tt1", "long.mp4", start_s=1.0, end_s=2.5))
    of.write_manifest(of.Manifest(tuple(clips), folder), folder / "films.csv")
    return folder


def number_of_frames(group):
    """Return clip -> the number of its frames in a group."""
    return dict(zip(group.clip_ids, group.row_size.tolist(), strict=True))


def encoded_one_by_one(path, backbone, span=(None, None)):
    """Encode each frame of a span, two a second, alone; return the vectors, times and indices of frames."""
    frames = read_frames(path, fps(rate=2), start_s=span[0], end_s=span[1])
    vectors = []
    for image in frames.images:
        batch_of_one = backbone.prepare(image)[np.newaxis, np.newaxis]
        vectors.append(backbone.encode(batch_of_one)["frames"][0, 0])
    return np.stack(vectors), frames.time_s, frames.index


@pytest.mark.long
def test_a_clip_has_two_frames_for_each_of_its_seconds_each_encoded_alone(
    folder_of_two_videos_and_a_span, tmp_path
):
    """At two frames a second, a video of 3.5 s has 7 frames, one of 1 s has 2, and a span of 1.5 s has 3.

    The clip `none` is no video and has no frames. Each frame's vector, time and number is what one gets by
    encoding it here alone.
    """
    store = of.extract(
        folder_of_two_videos_and_a_span / "films.csv",
        tmp_path / "s",
        ["descriptors"],
        per_second=2,
        workers=2,
        **QUIET,
    )

    group = store["descriptors"]
    assert group.ragged  # clips have unequal numbers of frames
    assert group.arrays == ("frames",)
    assert number_of_frames(group) == {"long": 7, "none": 0, "short": 2, "span": 3}
    assert group.provenance["sampling"] == {"policy": "fps", "rate": 2.0, "n": None}
    assert of.verify(store, "full").ok

    backbone = load_backbone("descriptors", n_frames=1)
    whole_file = (None, None)  # neither a start nor an end
    for clip, file, span_s in (
        ("short", "short.mp4", whole_file),
        ("long", "long.mp4", whole_file),
        ("span", "long.mp4", (1.0, 2.5)),
    ):
        vectors, times, indices = encoded_one_by_one(folder_of_two_videos_and_a_span / file, backbone, span_s)
        assert np.array_equal(group.read(clip, "frames"), vectors)
        assert np.array_equal(group.read(clip, "time_s"), times)
        assert np.array_equal(group.read(clip, "frame_index"), indices)


@pytest.mark.long
def test_the_bytes_do_not_depend_on_workers_and_batches(folder_of_two_videos_and_a_span, tmp_path):
    """The fingerprint of a store is the digest of its bytes."""
    films_csv = folder_of_two_videos_and_a_span / "films.csv"

    by_one_worker = of.extract(films_csv, tmp_path / "one", per_second=3, workers=1, batch_size=1, **QUIET)
    by_two_workers = of.extract(films_csv, tmp_path / "two", per_second=3, workers=2, batch_size=3, **QUIET)

    assert by_one_worker.fingerprint == by_two_workers.fingerprint


@pytest.mark.long
def test_frames_that_a_network_encodes_together_have_the_vectors_of_each_alone(
    folder_of_two_videos_and_a_span, tmp_path
):
    """A tiny CLIP, a network, encodes two frames a second of videos of 1 s and 3.5 s, and a span of 1.5 s.

    It encodes frames together, and each of the two videos' frames has the vector that it gets here alone.
    """
    options = {"weights": str(tiny_checkpoint("clip", tmp_path / "weights"))}

    store = of.extract(
        folder_of_two_videos_and_a_span / "films.csv",
        tmp_path / "s",
        [Recipe("clip", options=options)],
        per_second=2,
        workers=1,
        **QUIET,
    )

    group = store["clip"]
    assert number_of_frames(group) == {"long": 7, "none": 0, "short": 2, "span": 3}
    backbone = load_backbone("clip", n_frames=1, **options)
    for clip in ("short", "long"):
        vectors_of_each_alone, _times, _indices = encoded_one_by_one(
            folder_of_two_videos_and_a_span / f"{clip}.mp4", backbone
        )
        # Batches of another size may be summed in another order; vectors of two frames differ by .2 or more.
        np.testing.assert_allclose(group.read(clip, "frames"), vectors_of_each_alone, rtol=1e-2, atol=1e-3)


def test_a_backbone_that_gives_tokens_too_is_refused():
    """In a store all clips have one number of tokens, so tokens cannot go with a rate of frames.

    An error says so; the tokens are not silently left out.
    """
    descriptors = load_backbone("descriptors", n_frames=1)
    (frames,) = [output for output in descriptors.outputs if output.name == "frames"]
    tokens = BackboneOutput("tokens", (5, 6), "float16")
    backbone_with_tokens = replace(descriptors, outputs=(frames, tokens))

    with pytest.raises(ExtractError, match="--tokens"):
        encode_each_frame(backbone_with_tokens)


@pytest.mark.parametrize(
    ("backbones", "other_options", "message"),
    [
        (["descriptors"], {"n_frames": 4}, "--n"),
        (["descriptors"], {"sampling": "keyframes"}, "keyframes"),
        (["descriptors"], {"per_second": 0}, "above 0"),
        (["camera"], {}, "joins frames"),
        (["sound"], {}, "hears"),
        ([Recipe("descriptors", n_frames=4)], {}, "4 frames"),
    ],
)
def test_options_and_backbones_that_do_not_go_with_a_rate_are_refused(
    folder_of_two_videos_and_a_span, tmp_path, backbones, other_options, message
):
    """A rate, here two frames a second, gives each clip a number of frames of its own.

    So it excludes a fixed number, key frames, backbones that join frames, and those that hear.
    """
    options = {"per_second": 2, "workers": 1} | other_options

    with pytest.raises(ExtractError, match=message):
        of.extract(folder_of_two_videos_and_a_span / "films.csv", tmp_path / "s", backbones, **options)

    assert not (tmp_path / "s-1.0.0").exists()


@pytest.mark.long
@pytest.mark.nightly
def test_the_disk_that_is_estimated_grows_with_the_number_of_frames(
    folder_of_two_videos_and_a_span, tmp_path
):
    """Four clips of 3 s are extracted at 2 frames a second, and then at 2000, which is 4 * 3 * 1998 more.

    Each takes its vector, with four bytes a number, its time and its index, with eight bytes each; the
    estimate of the store's size grows by this, but for 5 %.
    """
    n_clips = 4
    seconds = 3
    clips = tuple(
        of.Clip(f"c{n}", "tt1", "long.mp4", start_s=0.0, end_s=float(seconds)) for n in range(n_clips)
    )
    of.write_manifest(
        of.Manifest(clips, folder_of_two_videos_and_a_span), folder_of_two_videos_and_a_span / "spans.csv"
    )

    def estimated_bytes(per_second):
        cost = estimate(
            folder_of_two_videos_and_a_span / "spans.csv",
            tmp_path / "s",
            per_second=per_second,
            workers=1,
            **QUIET,
        )
        return cost.room.store_bytes

    more_bytes = estimated_bytes(per_second=2000) - estimated_bytes(per_second=2)

    outputs = load_backbone("descriptors", n_frames=1).outputs
    (output_of_frames,) = [output for output in outputs if output.name == "frames"]
    vector_bytes = 4 * output_of_frames.shape[1]
    time_bytes = 8
    index_bytes = 8
    n_more_frames = n_clips * seconds * (2000 - 2)
    expected_bytes = n_more_frames * (vector_bytes + time_bytes + index_bytes)
    assert more_bytes == pytest.approx(expected_bytes, rel=0.05)
