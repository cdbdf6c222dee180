"""Reading: what comes back is what was committed, and nothing else is passed off as it."""

import json
import re
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from obygaze.cli import root_command
from obygaze_features.errors import StoreError
from obygaze_features.store import ArraySpec, GroupSpec, Stage, open_store, staging_path
from tests.process import python

from .toy_stores import (
    CORPUS,
    commit_clips,
    group,
    make_sealed_store,
    make_stage,
    plan,
    planted_features,
    provenance,
    read_all,
    respecify,
    seal_stage_of,
    status_of,
)

FIXED_GROUP = group()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with one store of 150 clips: chunks of 64, shards of 16, the last ones not full."""
    folder = tmp_path_factory.mktemp("shelf")
    make_sealed_store(folder, 150)
    return folder


def test_pooled_vectors_come_as_one_contiguous_array_with_a_mask(shelf):
    """Rows of failed clips are NaN and not usable; every other row is the planted vector of its clip.

    The store has 150 clips, with vectors of 4 numbers.
    """
    group = open_store(shelf / "toy-1.0.0")["toy"]

    pooled = group.pooled()

    assert pooled.dtype == np.float32
    assert pooled.flags.c_contiguous
    assert pooled.shape == (150, 4)

    assert group.usable.tolist() == [status_of(clip) != "failed" for clip in group.clip_ids]
    assert np.isnan(pooled[~group.usable]).all()
    for row in np.flatnonzero(group.usable):
        planted = planted_features(group.clip_ids[row], FIXED_GROUP)
        assert np.array_equal(pooled[row], planted.arrays["pooled"])


@pytest.mark.parametrize(("array", "block_rows"), [("pooled", 150), ("frames", 64), ("tokens", 16)])
def test_blocks_of_an_array_join_to_the_whole_and_clips_read_alone_are_its_rows(shelf, array, block_rows):
    """A block is read from whole chunks: 64 rows of frames, 16 of tokens, and all rows of pooled at once.

    The store has 150 clips, a row each.
    """
    group = open_store(shelf / "toy")["toy"]
    read_every_row = {"pooled": group.pooled, "frames": group.frames, "tokens": group.tokens}[array]
    every_row = read_every_row()
    assert group.shape(array) == every_row.shape
    assert group.dtype(array) == every_row.dtype

    blocks = list(group.blocks(array))
    assert [start for start, _ in blocks] == list(range(0, 150, block_rows))
    assert np.array_equal(np.concatenate([block for _, block in blocks]), every_row, equal_nan=True)

    some_usable_rows = np.flatnonzero(group.usable)[::17]
    for row in some_usable_rows:
        assert np.array_equal(group.read(group.clip_ids[row], array), every_row[row])


def test_reading_a_clip_that_failed_or_that_is_unknown_is_refused(shelf):
    """In the store, clips whose number is 3 modulo 7 have failed; the first is tt0003-é."""
    group = open_store(shelf / "toy")["toy"]
    with pytest.raises(StoreError, match="clip tt0003-é is failed"):
        group.read("tt0003-é", "pooled")
    with pytest.raises(StoreError):
        group.read("nobody", "pooled")


def test_a_name_without_version_opens_the_highest(tmp_path):
    """Versions are compared as numbers: 1.10.0 is higher than 1.9.9."""
    make_stage(tmp_path, 8)
    for version in ("1.0.0", "1.10.0", "1.9.9"):
        seal_stage_of(tmp_path / "toy", licence="MIT", version=version)
    assert open_store(tmp_path / "toy").version == "1.10.0"
    assert open_store(str(tmp_path / "toy-1.9.9")).version == "1.9.9"


def test_an_attribute_that_the_reader_does_not_know_is_kept(tmp_path):
    """A later version of the format may add attributes that do not change how the store is read."""
    path = make_sealed_store(tmp_path, 8)
    respecify(path, novelty={"kept": True})
    assert open_store(path).attributes["novelty"] == {"kept": True}


@pytest.mark.parametrize("version", ["1.5", "1.10", "2.0", "10.3"])
def test_a_store_of_a_newer_format_is_refused_with_its_version(tmp_path, version):
    """The message names the version twice: that of the store, and the one to update for."""
    path = make_sealed_store(tmp_path, 8)
    respecify(path, spec_version=version)
    with pytest.raises(StoreError, match=rf"{version}.*{version}"):
        open_store(path)


def test_a_version_that_is_no_version_is_refused(tmp_path):
    """A version of the format is a text of two numbers, such as "1.4"."""
    path = make_sealed_store(tmp_path, 8)
    for nonsense in ("one", None, 1.0, "1.0.0"):
        respecify(path, spec_version=nonsense)
        with pytest.raises(StoreError):
            open_store(path)


def test_a_path_or_url_that_is_no_sealed_store_is_refused_by_name(tmp_path):
    """A stage, a folder in the making and a plain file are none, and "toy" has no sealed version yet.

    A store may be opened by a URL of https or s3, and not of ftp.
    """
    make_stage(tmp_path, 8)
    (tmp_path / "other.building").mkdir()
    paths = ("toy.staging", "toy", "other.building", "nowhere", ".", "toy.staging/plan.jsonl")
    for place in (*(tmp_path / path for path in paths), "ftp://example.org/toy-1.0.0"):
        with pytest.raises(StoreError, match=re.escape(str(place))):
            open_store(place)


@pytest.mark.parametrize("suffix", ["building", "pulling"])
def test_a_half_made_store_is_neither_listed_nor_offered(tmp_path, suffix):
    """A process that seals or copies was stopped: its folder has features, and cannot be opened."""
    store = make_sealed_store(tmp_path, 8)
    half_made = tmp_path / "stores" / f"toy-1.0.0.{suffix}"
    half_made.parent.mkdir()
    store.rename(half_made)

    listed = CliRunner().invoke(root_command(), ["store", "ls", str(half_made.parent), "--json"])
    with pytest.raises(StoreError) as refused:
        open_store(half_made.parent)
    with pytest.raises(StoreError) as refused_by_name:
        open_store(half_made.with_name("toy-1.0.1"))

    assert json.loads(listed.stdout) == []
    assert f".{suffix}" not in str(refused.value)
    assert f".{suffix}" not in str(refused_by_name.value)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("data/features.zarr/zarr.json", "missing"),
        ("data/clips.csv", "missing"),
        ("data/features.zarr/toy/pooled/c/0/0", None),
        ("data/features.zarr/toy/frames/c/1/0/0", None),
        ("data/features.zarr/toy/tokens/c/2/0/0", None),
    ],
)
def test_reading_a_store_without_one_of_its_files_is_an_error(tmp_path, file, message):
    """Zarr fills missing chunks with NaN, which would look like failed clips."""
    path = make_sealed_store(tmp_path, 72)
    (path / file).unlink()
    with pytest.raises(StoreError, match=message):
        read_all(path)


def test_an_open_store_whose_table_was_removed_is_an_error(tmp_path):
    """The table of clips, which is read when clips are first asked for, is removed before."""
    path = make_sealed_store(tmp_path, 72)
    opened = open_store(path)

    (path / "data/clips.csv").unlink()

    with pytest.raises(StoreError, match="missing"):
        opened.clips_at([0])


@pytest.mark.parametrize("array", ["pooled", "frames", "tokens", "clip", "status", "time_s"])
def test_a_flipped_bit_in_a_chunk_is_an_error(tmp_path, array):
    """Chunks have checksums. Each array of this store of 8 clips is one file, which holds its only chunk."""
    path = make_sealed_store(tmp_path, 8)
    folder_of_chunks = path / "data/features.zarr/toy" / array / "c"
    (chunk,) = [file for file in folder_of_chunks.rglob("*") if file.is_file()]

    data = bytearray(chunk.read_bytes())
    data[len(data) // 3] ^= 0b00010000
    chunk.write_bytes(data)

    with pytest.raises(StoreError, match="damaged"):
        read_all(path)


@pytest.mark.long
def test_sealing_and_opening_load_nothing_heavy(tmp_path):
    """The light half of the package works without torch and the like, and the command starts fast.

    A new process seals a store of one clip and reads it, then prints which heavy packages it has imported.
    """
    code = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from obygaze_features.store import open_store\n"
        "from obygaze_features.store.testing import seal_arrays\n"
        "rows = {'toy': {'pooled': np.zeros((1, 2), np.float32)}}\n"
        f"open_store(seal_arrays(Path({str(tmp_path / 'one')!r}), {{'a': 'm'}}, rows))['toy'].pooled()\n"
        "heavy = 'torch transformers av sklearn pandas xarray zarr obstore huggingface_hub'.split()\n"
        "print([m for m in heavy if m in sys.modules])"
    )

    heavy_imports = python("-c", code).stdout.strip()

    assert heavy_imports == "[]"


STREAMING = """
import sys
from pathlib import Path
from obygaze_features.store import open_store

def peak_mb():  # not ru_maxrss, in which Linux counts the process that started this one
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024

group = open_store(sys.argv[1])["big"]
group.read(group.clip_ids[0], "tokens")
before = peak_mb()
if sys.argv[2] == "blocks":
    n = sum(len(block) for _, block in group.blocks("tokens"))
else:
    n = sum(group.read(clip, "tokens") is not None for clip in group.clip_ids)
print(n, peak_mb() - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc for its memory")
@pytest.mark.parametrize(
    ("how", "max_mb"), [("blocks", 20), ("read", 8)], ids=["in blocks of clips", "clip by clip"]
)
def test_32_mb_of_tokens_are_streamed_in_less_memory(tmp_path, how, max_mb):
    """160 clips of 100 x 1000 numbers of two bytes are 32 MB; a file of them has 16 clips, 3.2 MB.

    A program reads them all, and prints how many clips it read and by how many MB its memory grew. A block
    holds several files, and reading clip by clip needs one at a time.
    """
    tokens = ArraySpec("tokens", shape=(100, 1000), dtype="float16")
    kind = GroupSpec("big", (tokens,), n_frames=1, provenance=provenance("big"))
    stage = Stage.open(staging_path(tmp_path / "big"), plan(160), [kind], CORPUS)
    commit_clips(stage, stage.missing(), status=lambda _: "ok")
    store = seal_stage_of(tmp_path / "big", licence="MIT")

    n_clips, grown_mb = python("-c", STREAMING, store, how).stdout.split()

    assert int(n_clips) == 160
    assert int(grown_mb) < max_mb
