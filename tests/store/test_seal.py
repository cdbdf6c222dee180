"""Sealing: same clips in, same bytes out, in exactly the layout of the format."""

import json
import os
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from zarr.core.buffer import default_buffer_prototype

from obygaze_features.errors import StoreError
from obygaze_features.locks import locked
from obygaze_features.store import Stage, open_store, staging_path, verify
from obygaze_features.store.group import rows_of
from obygaze_features.store.sealing import FRAMES_AT_ONCE
from obygaze_features.store.testing import seal_frames
from tests.process import python

from .toy_stores import (
    CORPUS,
    LICENSED,
    bytes_of_files,
    commit_clips,
    group,
    make_sealed_store,
    make_stage,
    no_link,
    plan,
    planted_features,
    ragged_group,
    result,
    seal_stage_of,
    status_of,
)

FIXED_GROUP = group()
RAGGED_GROUP = ragged_group()
ROOT = Path(__file__).parents[2]


def parts_of_work(data, clips):
    """Draw an order of the clips' ids and divide them among three writers, each of which has two parts.

    The parts of all writers are a list of pairs; any part may be empty.
    """
    order = data.draw(st.permutations([clip.clip_id for clip in clips]))
    writer_of_clip = data.draw(st.lists(st.integers(0, 2), min_size=len(clips), max_size=len(clips)))
    parts = []
    for number in range(3):
        of_writer = [clip for clip, writer in zip(order, writer_of_clip, strict=True) if writer == number]
        n_of_first_part = data.draw(st.integers(0, len(of_writer)))
        parts.append((of_writer[:n_of_first_part], of_writer[n_of_first_part:]))
    return parts


@given(data=st.data())
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_the_order_and_sharing_of_work_change_no_byte(
    tmp_path_factory, fixed_or_ragged_group, undisturbed_files, data
):
    """Three writers share 20 clips in a drawn order; each commits its own in two parts.

    The store has the same files, byte for byte, as one whose clips were committed in order by one writer.
    """
    clips = data.draw(st.permutations(plan(20)))
    destination = tmp_path_factory.mktemp("order") / "other"
    stage = Stage.open(staging_path(destination), clips, [fixed_or_ragged_group], CORPUS)

    for first_part, second_part in parts_of_work(data, clips):
        writer_announces_its_clips = data.draw(st.booleans())
        announced = first_part + second_part if writer_announces_its_clips else None
        with stage.writer(announced) as writer:
            writer.commit([result(clip, [fixed_or_ragged_group], status_of(clip)) for clip in first_part])
            writer.commit([result(clip, [fixed_or_ragged_group], status_of(clip)) for clip in second_part])
    n_workers = data.draw(st.integers(1, 3))
    store = seal_stage_of(destination, workers=n_workers, **LICENSED)

    assert bytes_of_files(store) == undisturbed_files


SEALED_KINDS = [
    FIXED_GROUP,
    group("alone", ["pooled"]),
    ragged_group("theirs"),
    ragged_group("times", ["pooled"]),
]
"""Groups with and without frames: `group` has as many of each clip, `ragged_group` any number."""
STATUS_OF_CODE = ("missing", "ok", "partial", "failed")


@pytest.fixture(scope="module")
def store_of_72_clips(tmp_path_factory):
    return open_store(make_sealed_store(tmp_path_factory.mktemp("rows"), 72, SEALED_KINDS))


def assert_is_an_empty_row(row_size, values):
    """`values` is array -> the row's part of it. Empty is -1 in the index of frames, and NaN elsewhere."""
    assert row_size == 0
    assert (values.pop("frame_index") == -1).all()
    assert all(np.isnan(array).all() for array in values.values())


def assert_holds_what_was_committed(row_size, values, clip, kind):
    """`values` is array -> the row's part of it."""
    planted = planted_features(clip, kind)
    assert row_size == len(planted.time_s)
    expected = {**planted.arrays, "time_s": planted.time_s, "frame_index": planted.frame_index}
    for name, array in values.items():
        assert np.array_equal(array, expected[name])


def test_groups_of_a_store_are_in_the_order_of_their_names_and_clips_in_that_of_their_ids(store_of_72_clips):
    """A store was sealed with the groups toy, alone, theirs and times, and 72 clips in no order (`plan`)."""
    assert store_of_72_clips.names == ("alone", "theirs", "times", "toy")
    sorted_ids = sorted(clip.clip_id for clip in plan(72))
    for name in store_of_72_clips.names:
        assert list(store_of_72_clips[name].clip_ids) == sorted_ids


@pytest.mark.parametrize("kind", SEALED_KINDS, ids=lambda kind: kind.name)
def test_the_row_of_a_clip_holds_its_status_and_what_was_committed(store_of_72_clips, kind):
    """The status of each of 72 clips is planted by `status_of`: "ok", "partial" or "failed".

    A failed clip has an empty row in every array, and its reason is kept; of others, the features are kept.
    `kind` is a group of features, with as many frames for every clip or with each clip's own number.
    """
    group = store_of_72_clips[kind.name]
    names_of_arrays = (*group.arrays, "time_s", "frame_index")

    for row, clip in enumerate(group.clip_ids):
        assert store_of_72_clips.clips[row].status == status_of(clip)
        assert STATUS_OF_CODE[group.status[row]] == status_of(clip)

        values = {name: next(rows_of(group, name, [row])) for name in names_of_arrays}
        if status_of(clip) == "failed":
            assert store_of_72_clips.clips[row].reason == "the file is failed"
            assert_is_an_empty_row(group.row_size[row], values)
        else:
            assert_holds_what_was_committed(group.row_size[row], values, clip, kind)


@pytest.fixture(scope="module")
def ragged_store(tmp_path_factory):
    """A store of 20 clips, each with its own number of frames."""
    return make_sealed_store(tmp_path_factory.mktemp("ragged"), groups=[RAGGED_GROUP])


def test_xarray_opens_ragged_frames_in_one_dimension(ragged_store):
    """Frames of all clips lie one after the other; `row_size` says how many of them are of each clip."""
    import xarray

    group = open_store(ragged_store)["toy"]
    data = xarray.open_zarr(ragged_store / "data/features.zarr", group="toy", consolidated=True)
    try:
        assert data.frames.dims == ("row", "feature")
        assert np.array_equal(data.frames.values, group.frames())
        assert np.array_equal(data.row_size.values, group.row_size)
    finally:
        data.close()


def test_to_xarray_of_a_ragged_group_names_the_clip_of_each_frame(ragged_store):
    """The frames of all clips lie one after the other, `[row, feature]`.

    `row_clip` has the clip of each row, so that frames can be chosen and averaged by clip. By the attribute
    `sample_dimension` of the CF conventions other programs know a ragged array.
    """
    group = open_store(ragged_store)["toy"]
    data = group.to_xarray()
    assert data.frames.dims == ("row", "feature")
    assert data.row_size.attrs == {"sample_dimension": "row"}

    is_of_one_clip = (data.row_clip == "tt0001-é").values
    expected = planted_features("tt0001-é", RAGGED_GROUP).arrays["frames"]
    assert np.array_equal(data.frames[is_of_one_clip].values, expected)
    means_by_clip = data.groupby("row_clip").mean()
    n_clips_with_frames = group.usable.sum()
    assert means_by_clip.sizes["row_clip"] == n_clips_with_frames
    assert np.array_equal(data.frames[3:9].values, group.frames()[3:9])  # of several clips


def test_xarray_opens_a_group_of_a_sealed_store_by_its_path(tmp_path):
    """The store has 20 clips, each with 3 frames of 4 features and 5 tokens of 6 features.

    Clip tt0001 is ok, which the array `status` says by a 1.
    """
    path = make_sealed_store(tmp_path)
    import xarray

    data = xarray.open_zarr(path / "data/features.zarr", group="toy", consolidated=True)
    try:
        assert data.sizes == {"clip": 20, "frame": 3, "feature": 4, "token": 5, "token_feature": 6}
        clip = data.sel(clip="tt0001-é")
        assert clip.frames.dims == ("frame", "feature")
        assert np.array_equal(clip.frames.values, planted_features("tt0001-é", FIXED_GROUP).arrays["frames"])
        assert int(clip.status) == 1
    finally:
        data.close()


def test_consolidated_metadata_name_all_that_the_folders_hold(tmp_path):
    """Zarr opens a store by one file, its consolidated metadata, or by a file in each folder: both agree.

    Over a network only the first is fast. It has copies of all others, for the root and for each group.
    """
    path = make_sealed_store(tmp_path, 20, [FIXED_GROUP, group("alone", ["pooled"])]) / "data/features.zarr"
    the_root = ""
    for place in (the_root, "toy", "alone"):
        consolidated = zarr.open_group(path, path=place, mode="r", use_consolidated=True)
        by_folders = zarr.open_group(path, path=place, mode="r", use_consolidated=False)
        assert consolidated.attrs.asdict() == by_folders.attrs.asdict()

        members = dict(consolidated.members(max_depth=None))  # like "toy/pooled", from the root
        members_by_folders = dict(by_folders.members(max_depth=None))
        assert set(members) == set(members_by_folders)
        assert {"clip", "status", "pooled"} <= {Path(name).name for name in members}

        arrays = {name: member for name, member in members.items() if isinstance(member, zarr.Array)}
        for name, array in arrays.items():
            in_folder = json.loads((path / place / name / "zarr.json").read_bytes())
            assert metadata_document(array) == in_folder


def metadata_document(array):
    """Return the metadata of an array as zarr would write them in its zarr.json."""
    buffers = array.metadata.to_buffer_dict(default_buffer_prototype())
    return json.loads(buffers["zarr.json"].to_bytes())


@pytest.mark.long
def test_python_without_assertions_seals_the_same_bytes(tmp_path):
    """`python -O` leaves out assertions, so no check of the format may be one.

    The same store is sealed by such a process and by this one.
    """
    path = tmp_path / "optimised-1.0.0"
    code = (
        f"from tests.store.toy_stores import *; make_sealed_store(Path({str(tmp_path)!r}), name='optimised')"
    )
    python("-O", "-c", code, cwd=ROOT)

    assert bytes_of_files(path) == bytes_of_files(make_sealed_store(tmp_path))
    python("-O", "-m", "obygaze", "store", "verify", "--full", path)


@pytest.mark.parametrize(
    "kind",
    [FIXED_GROUP, group(arrays=["pooled"]), RAGGED_GROUP, ragged_group(arrays=["frames"])],
    ids=["tokens", "pooled", "ragged", "ragged frames"],
)
def test_missing_clips_forbid_sealing_unless_allowed(tmp_path, kind):
    """Of 40 clips, written in pieces of 16, the first 16 are committed and the first of the third piece.

    The 23 others are missing: the first of them, tt0016-é, is named by the refusal, and nothing is written.
    """
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(40), [kind], CORPUS)
    ids = stage.missing()
    first_piece, first_of_third_piece = ids[:16], ids[32]
    commit_clips(stage, [*first_piece, first_of_third_piece])

    with pytest.raises(StoreError, match="tt0016-é"):
        seal_stage_of(tmp_path / "toy", licence="MIT")
    assert [path.name for path in tmp_path.iterdir()] == ["toy.staging"]

    path = seal_stage_of(tmp_path / "toy", licence="MIT", allow_missing=True)
    assert [clip.status for clip in open_store(path).clips].count("missing") == 23
    assert verify(path, "full").ok
    assert "23 missing" in (path / "README.md").read_text(encoding="utf-8")


def test_a_sealed_store_is_never_overwritten(tmp_path):
    """Another version is another folder beside it."""
    path = make_sealed_store(tmp_path)
    before = bytes_of_files(path)

    with pytest.raises(StoreError, match=r"toy-1\.0\.0"):
        seal_stage_of(tmp_path / "toy", licence="MIT")
    assert bytes_of_files(path) == before

    assert seal_stage_of(tmp_path / "toy", licence="MIT", version="1.0.1").name == "toy-1.0.1"


def test_the_version_that_is_proposed_is_not_there_yet(tmp_path):
    """Versions 1.0.0 and 1.0.1 are sealed, and each is asked for once more."""
    make_sealed_store(tmp_path)
    seal_stage_of(tmp_path / "toy", licence="MIT", version="1.0.1")

    for version in ("1.0.0", "1.0.1"):
        with pytest.raises(StoreError, match=r"choose another version \(--store-version 1\.0\.2\)"):
            seal_stage_of(tmp_path / "toy", licence="MIT", version=version)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"licence": "mine, all mine"}, "licence"),
        ({"version": "v1"}, "'v1'"),
        ({"parent": "toy-1.0.0"}, r"'toy-1.0.0'"),
        ({"citation": "a\nb"}, "citation"),
    ],
)
def test_sealing_with_a_bad_argument_leaves_the_stage_alone(tmp_path, arguments, message):
    """A licence is an SPDX expression, a version three numbers, a parent a fingerprint, a citation a line."""
    make_stage(tmp_path)

    with pytest.raises(StoreError, match=message):
        seal_stage_of(tmp_path / "toy", **{"licence": "MIT", **arguments})

    assert [path.name for path in tmp_path.iterdir()] == ["toy.staging"]


def flip_a_bit(content, _content_of_next):
    return bytes([content[0] ^ 4]) + content[1:]


def fill_with_zeros(content, _content_of_next):
    """Give what a power cut leaves of a file that grew."""
    return bytes(len(content))


def take_bytes_of_the_next_clip(_content, content_of_next):
    return content_of_next


def change_second_clip(file, n_bytes, harm):
    """Put `harm(bytes of the second clip, bytes of the third)` in place of the second clip of a piece.

    Every clip has `n_bytes` bytes in the file, and keeps as many.
    """
    data = file.read_bytes()
    first = data[:n_bytes]
    second = data[n_bytes : 2 * n_bytes]
    third = data[2 * n_bytes : 3 * n_bytes]
    harmed = harm(second, third)
    assert len(harmed) == n_bytes
    file.write_bytes(first + harmed + data[2 * n_bytes :])


def assert_second_clip_is_refused_and_can_be_done_again(stage, store, undisturbed_files, **options):
    clip = stage.clips[1].clip_id
    with pytest.raises(StoreError, match=f"{clip}"):
        seal_stage_of(store, **options, **LICENSED)
    assert [path.name for path in store.parent.iterdir()] == ["toy.staging"]
    assert stage.missing() == [clip]
    commit_clips(stage, [clip])
    assert bytes_of_files(seal_stage_of(store, **LICENSED)) == undisturbed_files


# The records of a piece, with times, statuses and pooled vectors, are in its file `rows`; tokens and ragged
# frames have files of their own. A digest of each clip's part of a file is in the journal: where it differs,
# that clip alone has to be done again.


@pytest.mark.parametrize(
    ("harm", "allow_missing"),
    [(flip_a_bit, False), (flip_a_bit, True), (take_bytes_of_the_next_clip, False)],
)
def test_sealing_refuses_a_clip_whose_record_changed(
    tmp_path, harm, allow_missing, fixed_or_ragged_group, undisturbed_files
):
    """The file `rows` of a piece has a record of each clip: times, status and pooled vector.

    That of the second clip is changed. The journal has a digest of each, so that clip alone is refused and
    done again; the store is then the same as without the change. A damaged clip is not a missing one, so that
    it is refused also if clips may be missing.
    """
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])
    (file_of_records,) = (stage.path / "pieces").glob("0.*.rows")  # of the first piece
    bytes_of_a_record = stage.layout.small_row_bytes
    change_second_clip(file_of_records, bytes_of_a_record, harm)
    assert_second_clip_is_refused_and_can_be_done_again(
        stage, tmp_path / "toy", undisturbed_files, allow_missing=allow_missing
    )


@pytest.mark.parametrize("harm", [flip_a_bit, fill_with_zeros])
def test_sealing_refuses_a_clip_whose_tokens_changed(
    tmp_path, harm, fixed_or_ragged_group, undisturbed_files
):
    """The tokens of a piece have a file of their own, in which those of the second clip are changed.

    The journal has a digest of each clip's tokens, so that clip alone has to be done again.
    """
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])
    (file,) = (stage.path / "pieces").glob("0.*.toy.tokens")
    bytes_of_a_clip = stage.layout.sharded_arrays[0].offset(1)
    change_second_clip(file, bytes_of_a_clip, harm)
    assert_second_clip_is_refused_and_can_be_done_again(stage, tmp_path / "toy", undisturbed_files)


def change_frames_of_second_clip(file, stage, harm):
    """Put `harm(bytes of the second clip, bytes of the third)` in place of the second clip's frames.

    The third clip's bytes are cut to the length of the second's, or filled up with blanks.
    """
    data = file.read_bytes()
    second = bytes_of_frames(stage, stage.clips[1])
    third = bytes_of_frames(stage, stage.clips[2])
    n_bytes = second.stop - second.start
    harmed = harm(data[second], data[third][:n_bytes].ljust(n_bytes))
    file.write_bytes(data[: second.start] + harmed + data[second.stop :])


@pytest.mark.parametrize("harm", [flip_a_bit, fill_with_zeros, take_bytes_of_the_next_clip])
def test_sealing_refuses_a_clip_whose_ragged_frames_changed(tmp_path, ragged_store, harm):
    """Frames are ragged where each clip has its own number of them; a piece of a stage has a file of them.

    In it the frames of the second clip are changed. The journal has a digest of each clip's frames, so that
    clip alone is refused, and can be done again.
    """
    stage = make_stage(tmp_path / "work", groups=[RAGGED_GROUP])
    (file_of_frames,) = (stage.path / "pieces").glob("0.*.toy.ragged")

    change_frames_of_second_clip(file_of_frames, stage, harm)

    assert_second_clip_is_refused_and_can_be_done_again(
        stage, tmp_path / "work" / "toy", undisturbed_files=bytes_of_files(ragged_store)
    )


def bytes_of_frames(stage, clip):
    """Return where a clip's frames are in the file of its piece, as a slice of bytes."""
    (layout,) = stage.layout.ragged_groups
    first_frame, n_frames = stage.status()[clip.clip_id].frames["toy"]
    return slice(first_frame * layout.frame_bytes, (first_frame + n_frames) * layout.frame_bytes)


def frames_of_clips(n_clips):
    """Clips of 1 to 799 frames: clip -> vectors [frames, 1], and clip -> times of the frames in seconds.

    No number is 0, as places are that nobody wrote, and no two clips begin at the same time.
    """
    rng = np.random.default_rng(5)
    vectors, times_s = {}, {}
    for number in range(n_clips):
        clip = f"c{number:03d}"
        n_frames = int(rng.integers(1, 800))
        vectors[clip] = 4 + rng.random((n_frames, 1), np.float32)
        times_s[clip] = np.arange(n_frames) + float(number)
    return vectors, times_s


@pytest.mark.parametrize("workers", [1, 3])
def test_clips_whose_frames_span_several_chunks_are_read_whole(tmp_path, workers):
    """Frames of all clips lie one after the other, so a clip may begin in one chunk and end in the next.

    200 clips of 1 to 799 frames have more in all than a chunk holds. A clip is read whole however it is
    asked for: all at once, by its id, or in pieces, which are ranges of clips.
    """
    vectors, times_s = frames_of_clips(n_clips=200)
    movies = dict.fromkeys(vectors, "m")
    path = seal_frames(tmp_path / "toy", movies, vectors, times=times_s, workers=workers)

    group = open_store(path)["toy"]
    all_vectors = np.concatenate(list(vectors.values()))
    assert len(all_vectors) > FRAMES_AT_ONCE
    assert np.array_equal(group.frames(), all_vectors)
    assert np.array_equal(group.time_s, np.concatenate(list(times_s.values())))

    for clip, expected in vectors.items():
        assert np.array_equal(group.read(clip, "frames"), expected)

    pieces = list(group.pieces("frames"))
    assert sum(piece.stop - piece.start for piece in pieces) == len(vectors)
    vectors_of_pieces = [group.rows("frames", piece) for piece in pieces]
    assert np.array_equal(np.concatenate(vectors_of_pieces), all_vectors)

    assert verify(path, "full").ok


def test_a_ragged_store_of_failed_clips_alone_opens_and_verifies(tmp_path):
    """All three clips failed, so the array of all their frames, each of four numbers, has no row.

    Zarr, the format of the arrays, writes an array without rows in a way of its own.
    """
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(3), [ragged_group(arrays=["frames"])], CORPUS)
    commit_clips(stage, stage.missing(), status=lambda _: "failed")

    path = seal_stage_of(tmp_path / "toy", **LICENSED)

    no_frames_of_four_numbers = (0, 4)
    assert open_store(path)["toy"].frames().shape == no_frames_of_four_numbers
    assert zarr.open_group(path / "data/features.zarr", mode="r")["toy/frames"].shape == (0, 4)
    assert verify(path, "full").ok


def test_a_file_that_is_gone_costs_the_clips_of_its_piece(tmp_path, fixed_or_ragged_group, undisturbed_files):
    """Of 20 clips, written in pieces of 16, the second piece has clips 16 to 19 and loses its tokens.

    Those of them that have features must be done again. Then the store has the same bytes as one made
    without this loss.
    """
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])
    for tokens_of_second_piece in (stage.path / "pieces").glob("1.*.toy.tokens"):
        tokens_of_second_piece.unlink()
    lost = [clip.clip_id for clip in stage.clips[16:] if status_of(clip.clip_id) != "failed"]

    with pytest.raises(StoreError, match=rf"{len(lost)}.*{lost[0]}"):
        seal_stage_of(tmp_path / "toy", **LICENSED)
    assert stage.missing() == lost

    commit_clips(stage, lost)
    sealed = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert bytes_of_files(sealed) == undisturbed_files


def test_two_writers_that_do_the_same_clips_by_mistake_change_no_byte(
    tmp_path, fixed_or_ragged_group, undisturbed_files
):
    """Two writers each do all 20 clips; the first fails at clips 0 to 4, and the second at 9 to 19.

    Each clip was done by one of them at least, and counts as done: the failure of the other does not. So the
    store has the same bytes (`undisturbed_files`) as one made by a single writer, in which a clip has the
    status that is planted for it (`status_of`).
    """
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(20), [fixed_or_ragged_group], CORPUS)
    clips = stage.missing()

    def results_with_failures(failed_clips):
        """Return the results of all clips, of which these failed by mistake."""
        results = []
        for clip in clips:
            status = "failed" if clip in failed_clips else status_of(clip)
            results.append(result(clip, [fixed_or_ragged_group], status))
        return results

    with stage.writer() as first, stage.writer() as second:
        first.commit(results_with_failures(clips[:5]))
        second.commit(results_with_failures(clips[9:]))

    statuses = {clip: entry.status for clip, entry in stage.status().items()}
    assert statuses == {clip: status_of(clip) for clip in clips}
    sealed = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert bytes_of_files(sealed) == undisturbed_files


@pytest.fixture
def stage_and_two_failed(tmp_path, fixed_or_ragged_group):
    """A stage in which all is done, and the first two clips have failed: the stage and the clips."""
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(20), [fixed_or_ragged_group], CORPUS)
    failed = sorted([stage.clips[0].clip_id, stage.clips[1].clip_id])
    commit_clips(stage, stage.missing(), lambda clip: "failed" if clip in failed else status_of(clip))
    return stage, failed


# A run that tries failed clips again copies the other rows of their piece at its last clip, and removes the
# old files. Of two such runs at once, the second finds files gone: before it copies rows, or while it does.


def test_two_runs_that_retry_the_same_failed_clips_and_commit_them_by_turns_lose_nothing(
    tmp_path, fixed_or_ragged_group, undisturbed_files, stage_and_two_failed
):
    """Of 20 clips of a stage the first two had failed; two runs were both told to try failed clips again.

    So both do the same two clips, and commit each by turns. A run that has done its last clip of a piece (16
    clips) writes the piece anew, and removes its old files: the other run then finds them gone. No clip must
    be lost by this: the store has the same bytes as one in which the two clips never failed.
    """
    stage, failed = stage_and_two_failed
    first_clip, second_clip = (result(clip, [fixed_or_ragged_group], status_of(clip)) for clip in failed)

    with stage.writer(failed) as one_run, stage.writer(failed) as other_run:
        one_run.commit([first_clip])
        other_run.commit([first_clip])
        one_run.commit([second_clip])
        other_run.commit([second_clip])

    sealed = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert bytes_of_files(sealed) == undisturbed_files


def before_closing_a_piece(monkeypatch, run, action):
    """Have `action` happen at the moment at which `run` has done the last clip of a piece and closes it."""
    close_piece = run._close_piece

    def close_piece_after_the_action(open_piece, *, whole):
        action()
        close_piece(open_piece, whole=whole)

    monkeypatch.setattr(run, "_close_piece", close_piece_after_the_action)


def test_two_runs_that_retry_the_same_failed_clips_and_close_their_piece_at_once_lose_nothing(
    tmp_path, fixed_or_ragged_group, undisturbed_files, stage_and_two_failed, monkeypatch
):
    """Of 20 clips of a stage the first two had failed; two runs were both told to try failed clips again.

    So both do the same two clips of a piece (16 clips). A run that has done its last clip of a piece closes
    the piece: it writes it anew, and removes its old files. Here the first run does so at the very moment at
    which the second is about to. The store has the same bytes as one in which the clips never failed.
    """
    stage, failed = stage_and_two_failed
    first_clip, last_clip = (result(clip, [fixed_or_ragged_group], status_of(clip)) for clip in failed)

    with stage.writer(failed) as first_run, stage.writer(failed) as second_run:
        first_run.commit([first_clip])
        second_run.commit([first_clip])

        def close_piece_by_first_run():
            first_run.commit([last_clip])

        before_closing_a_piece(monkeypatch, second_run, close_piece_by_first_run)
        second_run.commit([last_clip])  # which closes the piece, and before that lets the first run do so

    sealed = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert bytes_of_files(sealed) == undisturbed_files


def files_shared_by(stage, store):
    """Names of the store's files that are files of the stage."""
    inodes = {path.stat().st_ino for path in (stage.path / "pieces").iterdir()}
    return {name for name in bytes_of_files(store) if (store / name).stat().st_ino in inodes}


def test_shards_are_links_to_files_of_the_stage(tmp_path, fixed_or_ragged_group, undisturbed_files):
    """Tokens are large and are not written twice: their files in the store are hard links to the stage's."""
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])

    store = seal_stage_of(tmp_path / "toy", **LICENSED)

    files_of_tokens = {name for name in undisturbed_files if "/tokens/c/" in name}
    assert files_shared_by(stage, store) == files_of_tokens


def test_a_sealed_store_does_not_change_when_clips_of_its_stage_are_done_again(
    tmp_path, fixed_or_ragged_group, undisturbed_files
):
    """Files of tokens in the store are hard links to files of its stage: to write into one changes both.

    After the store is sealed, the clips that had failed are done again, and the stage is sealed as another
    version. The tokens of the piece of these clips must be written into new files for that: every file of the
    first store has the bytes that it had.
    """
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])
    store = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert files_shared_by(stage, store)

    failed_clips = stage.missing(retry_failed=True)
    commit_clips(stage, failed_clips, status=lambda _: "ok")
    seal_stage_of(tmp_path / "toy", version="1.0.1", **LICENSED)

    assert bytes_of_files(store) == undisturbed_files


def test_shards_are_copies_where_links_do_not_work(
    tmp_path, monkeypatch, fixed_or_ragged_group, undisturbed_files
):
    """The disk refuses to link the files of a stage. The store has the same bytes all the same."""
    monkeypatch.setattr(os, "link", no_link)
    stage = make_stage(tmp_path, groups=[fixed_or_ragged_group])

    store = seal_stage_of(tmp_path / "toy", **LICENSED)

    assert files_shared_by(stage, store) == set()
    assert bytes_of_files(store) == undisturbed_files


def test_a_store_that_another_process_is_sealing_is_not_sealed_twice(tmp_path):
    """A process that seals holds a lock on the folder "toy.building" until it ends."""
    make_stage(tmp_path, 8)
    (tmp_path / "toy.building").mkdir()
    with locked(tmp_path / "toy.building", wait=False) as has_lock:  # as the other process has
        assert has_lock
        with pytest.raises(StoreError):
            seal_stage_of(tmp_path / "toy", licence="MIT")

    store = seal_stage_of(tmp_path / "toy", licence="MIT")
    assert store.is_dir()
