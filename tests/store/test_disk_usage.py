"""The room of a stage and its store is known before either is made."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from obygaze_features.store import (
    ArraySpec,
    GroupSpec,
    PlannedClip,
    Stage,
    metadata,
    seal,
    sealing,
    staging_path,
)
from obygaze_features.store import part_writer as parts
from obygaze_features.store.arrays import all_finite
from obygaze_features.store.disk_usage import estimate_disk, free_space
from obygaze_features.store.writer import may_punch

from .toy_stores import CORPUS, provenance, result


def taken(folder):
    """Count the bytes that a folder takes on the disk, and its files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(512 * path.stat().st_blocks for path in files), len(files)


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("array", ["frames", "tokens"])
def test_the_peak_on_the_disk_is_within_five_percent(tmp_path, monkeypatch, array, consume):
    if consume and not may_punch(tmp_path):
        pytest.skip("this file system can't free parts of files")
    arrays = (ArraySpec("pooled", (256,), "float32"), ArraySpec(array, (16, 256), "float16"))
    kind = GroupSpec("big", arrays, 16, provenance("big"))
    clips = [PlannedClip(f"tt{row:07d}-001", f"tt{row:07d}", float(row), row + 8.5) for row in range(320)]
    stage = Stage.open(staging_path(tmp_path / "s"), clips, [kind], CORPUS)
    with stage.writer() as writer:
        writer.commit([result(clip, [kind]) for clip in stage.missing()])
    expected = estimate_disk(clips, [kind], consume=consume)
    stage_bytes, stage_files = taken(stage.path)
    seen = []

    def free(self, name, lines, real=sealing.Consumption.free):
        seen.append(taken(tmp_path)[0])
        real(self, name, lines)

    def bag(*words, real=metadata.write_bag):
        real(*words)
        seen.append(taken(tmp_path)[0])

    monkeypatch.setattr(sealing.Consumption, "free", free)
    monkeypatch.setattr(metadata, "write_bag", bag)
    store_bytes, store_files = taken(seal(None, tmp_path / "s", licence="MIT", consume=consume))
    assert expected.stage_bytes == pytest.approx(stage_bytes, rel=0.05)
    assert expected.store_bytes == pytest.approx(store_bytes, rel=0.05)
    assert expected.peak_bytes == pytest.approx(max(seen), rel=0.05)
    assert abs(expected.stage_files - stage_files) <= 1  # a report of the run
    assert expected.store_files == store_files


def test_few_parts_are_written_at_a_time_where_one_copy_must_do():
    kind = GroupSpec("big", (ArraySpec("tokens", (4, 8), "float16"),), 1, provenance("big"))
    for n_clips, most in ((16, 1), (16 * 40, 2), (16 * 400, 8)):
        arrays = parts.stored_arrays([kind], ["big/frame_index", "big/time_s", "big/tokens"], n_clips)
        made = [part for array in arrays[2:] for part in array.parts()]
        assert parts.workers_at_once(made, 8) == most


def test_the_free_room_of_a_place_that_is_not_there_yet_is_that_of_its_disk(tmp_path):
    free = free_space(tmp_path / "not" / "there")
    assert free.bytes > 0
    assert free.files is None or free.files > 0


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(width=16, allow_nan=True, allow_infinity=True), min_size=1, max_size=40),
    st.integers(0, 2),
)
def test_finiteness_on_the_bits_is_numpys(values, shape):
    for dtype in ("<f2", ">f2", "<f4"):
        array = np.array(values, dtype).reshape([(-1,), (1, -1), (-1, 1)][shape])
        assert all_finite(array) == bool(np.isfinite(array).all())
    assert all_finite(np.arange(3))


def test_every_part_has_the_size_that_is_reckoned_with(tmp_path):
    arrays = (ArraySpec("pooled", (4,), "float32"), ArraySpec("tokens", (2, 3), "float16"))
    kind = GroupSpec("toy", arrays, 2, provenance("toy", sampling={"policy": "uniform", "n": 2}))
    stage = Stage.open(
        staging_path(tmp_path / "s"), [PlannedClip("a", "m"), PlannedClip("b", "m")], [kind], CORPUS
    )
    with stage.writer() as writer:
        writer.commit([result(clip, [kind]) for clip in stage.missing()])
    store = seal(None, tmp_path / "s", licence="MIT")
    made = [part for array in parts.stored_arrays(stage.groups, stage.names, 2) for part in array.parts()]
    assert {part.file: part.size for part in made} == {
        part.file: (store / part.file).stat().st_size for part in made
    }


def test_each_file_of_a_further_writer_counts_for_half_a_page():
    kind = GroupSpec("toy", (ArraySpec("pooled", (4,), "float32"),), 2, provenance("toy"))
    one, many = (estimate_disk([PlannedClip("a", "m")], [kind], n_writers=n) for n in (1, 41))
    assert many.stage_files - one.stage_files == 40 * 4  # pooled, two of times, the journal
    assert many.stage_bytes - one.stage_bytes == 40 * 4 * 4096 // 2


def test_provenance_counts_three_times_in_a_store():
    small, large = (
        estimate_disk(
            [PlannedClip("a", "m")],
            [GroupSpec("toy", (ArraySpec("pooled", (4,), "float32"),), 2, provenance("toy", citation=text))],
        )
        for text in ("", "x" * 100_000)
    )
    assert large.store_bytes - small.store_bytes == 300_000  # in the group, and in two consolidated places


def test_the_table_is_reckoned_from_clips_of_all_lengths():
    kind = GroupSpec("toy", (ArraySpec("pooled", (4,), "float32"),), 2, provenance("toy"))
    short = [PlannedClip(f"{row:04d}", "m") for row in range(640)]
    mixed = [PlannedClip(f"{row:04d}" + "x" * (0 if row % 3 else 100), "m") for row in range(640)]
    more = estimate_disk(mixed, [kind]).store_bytes - estimate_disk(short, [kind]).store_bytes
    assert more == pytest.approx(214 * 100, rel=0.1)
