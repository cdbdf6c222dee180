"""What fuzzing and bit flips found, once each: see benchmarks/fuzz.py and benchmarks/survive.py."""

import json
from typing import NamedTuple

import numpy as np
import pytest
from numcodecs.zstd import Zstd

from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import download
from obygaze_features.store import Stage, open_store, staging_path, verify
from obygaze_features.store.arrays import _zstd_size
from obygaze_features.store.store import STATED
from obygaze_features.store.store_files import FolderFiles, digests_bytes, parse_digests
from obygaze_features.store.testing import seal_arrays
from tests.process import python

from .hostile_stores import STRING_BOMBS, change_attributes, compress_otherwise, resealed, retag
from .toy_stores import CORPUS, LICENSED, commit_clips, make_sealed_store, plan, ragged_group, seal_stage_of

MANIFEST = "manifest-sha256.txt"


@pytest.fixture
def path_of_store(tmp_path):
    return make_sealed_store(tmp_path)


@pytest.mark.parametrize("file_of_every_store", ["data/clips.csv", "data/features.zarr/zarr.json"])
def test_a_store_whose_list_of_digests_lacks_a_file_that_every_store_has_is_not_pulled(
    path_of_store, tmp_path, file_of_every_store
):
    """A pull fetches the files that the list of digests names. One is left out of the list.

    The store would be copied without this file, and nobody would notice. (The list of the lists, which has
    the digest of this one, is made to fit by `retag`.) The pull is refused with the name of the list, and
    leaves no folder of unfinished files behind.
    """
    digests, _ = parse_digests((path_of_store / MANIFEST).read_bytes())
    del digests[file_of_every_store]
    (path_of_store / MANIFEST).write_bytes(digests_bytes(digests))
    retag(path_of_store)

    with pytest.raises(StoreError, match=MANIFEST):
        download(FolderFiles(path_of_store), tmp_path / "copy")

    folder_of_unfinished_files = tmp_path / "copy.pulling"
    assert not folder_of_unfinished_files.exists()


def test_a_damaged_chunk_is_named_by_row_if_the_table_is_damaged_too(path_of_store):
    """Verify usually names the clips of a damaged chunk; without a readable table it names the first row.

    The last byte of a chunk of pooled vectors is changed, and the table of clips is not one any more.
    """
    chunk = path_of_store / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\x00")
    (path_of_store / "data/clips.csv").write_text("torn", encoding="utf-8")

    problems = [problem.what for problem in verify(path_of_store).problems]
    assert any("rows from 0 on of toy/pooled" in problem for problem in problems)


@pytest.mark.parametrize("name", STATED)
def test_a_store_without_a_required_attribute_is_refused(path_of_store, name):
    """The attribute is removed, and the digests are made to fit. Opening names it, and verifying too."""
    change_attributes(path_of_store, lambda attributes, _: attributes.pop(name))

    with pytest.raises(StoreError, match=name):
        open_store(path_of_store)
    assert any(name in problem.what for problem in verify(path_of_store).problems)


# --- a few bytes that ask for much memory


def test_a_chunk_that_lacks_bytes_is_refused_as_damaged(path_of_store):
    """The metadata of a store say how large a chunk of an array is; that of pooled vectors lacks 5 bytes.

    Whoever reads it is told that it is damaged, and to run `obygaze store verify`. Verifying finds the same
    damage, and does not advise to verify.
    """
    chunk = path_of_store / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-5])

    with pytest.raises(StoreError, match=r"pooled/c/0/0: this chunk is damaged.*; run: obygaze store verify"):
        open_store(path_of_store)["toy"].raw("pooled")

    problems = [problem.what for problem in verify(path_of_store, "full").problems]
    assert any("this chunk is damaged" in problem for problem in problems)
    assert not any("obygaze store verify" in problem for problem in problems)


def test_metadata_that_state_10_to_the_12_clips_are_refused_unread(path_of_store):
    """The table of clips has 20 rows: arrays of 10^12 are refused before memory is allocated for them.

    Even the last chunk of statuses is there; chunks have 1,024 rows.
    """
    n_clips = 10**12
    root = path_of_store / "data/features.zarr"
    document = json.loads((root / "zarr.json").read_bytes())
    for node in document["consolidated_metadata"]["metadata"].values():
        if node["node_type"] == "array":
            node["shape"][0] = n_clips
    (root / "zarr.json").write_text(json.dumps(document), encoding="utf-8")
    last_chunk = (n_clips - 1) // 1024
    (root / f"toy/status/c/{last_chunk}").write_bytes(b"x")

    with pytest.raises(StoreError):
        open_store(path_of_store)["toy"]


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        ("frames", [0, 0]),
        ("frames", [-1, 4]),
        ("frames", [0]),
        ("frames", [4, 0]),
        ("status", [0]),
    ],
    ids=["rows of no number", "fewer rows than none", "too few axes", "vectors of no number", "no clip"],
)
def test_an_array_without_numbers_is_refused_unless_all_clips_failed(tmp_path, array, shape):
    """All clips failed, so that the ragged array of their frames, [0, 4], has no row; all else has one."""
    stage = Stage.open(staging_path(tmp_path / "toy"), plan(3), [ragged_group(arrays=["frames"])], CORPUS)
    commit_clips(stage, stage.missing(), status=lambda _: "failed")
    path = seal_stage_of(tmp_path / "toy", **LICENSED)
    assert open_store(path)["toy"].frames().shape == (0, 4)

    root = path / "data/features.zarr/zarr.json"
    document = json.loads(root.read_bytes())
    document["consolidated_metadata"]["metadata"][f"toy/{array}"]["shape"] = shape
    root.write_text(json.dumps(document), encoding="utf-8")

    with pytest.raises(StoreError, match=f"toy/{array}: .* does not fit the format"):
        open_store(path)["toy"].frames()


def test_a_chunk_file_of_a_terabyte_is_refused_unread(path_of_store):
    """No chunk of the format can be so large, so the file is refused by its size."""
    opened = open_store(path_of_store)["toy"]
    with (path_of_store / "data/features.zarr/toy/pooled/c/0/0").open("r+b") as chunk:
        chunk.truncate(2**40)  # sparse: takes no disk

    with pytest.raises(StoreError, match="pooled/c/0/0"):
        opened.pooled()


def test_strings_of_more_than_one_chunk_are_read_as_sealed(tmp_path):
    """1,500 ids are more than one chunk of strings holds; each has signs of 4 bytes in UTF-8."""
    clapper_board = "\U0001f3ac"
    movies = {f"clip {row:05d} {clapper_board}" * 3: "m" for row in range(1500)}
    pooled = np.zeros((1500, 2), np.float32)

    path = seal_arrays(tmp_path / "many", movies, {"toy": {"pooled": pooled}})

    assert open_store(path)["toy"].clip_ids == tuple(sorted(movies))


@pytest.mark.parametrize("size", [1, 255, 256, 300, 65791, 65792])
def test_the_stated_size_of_a_zstandard_frame_is_read(size):
    """Zstandard writes sizes with 1, 2 or 4 bytes; 255/256 and 65,791/65,792 are where the width changes."""
    frame = Zstd().encode(bytes(size))

    assert _zstd_size(frame) == size


MAX_MB = 200
CPU_S = 300
"""Ends a reader that takes the bomb; on an idle machine each needs less than a tenth of a second."""

READERS = """
import json, resource, sys
from pathlib import Path
from obygaze.cli import main
from obygaze_features.store import open_store

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

def peak_mb():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    # Not ru_maxrss, in which Linux counts the process that started this one.
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1024

uses = {
    "open": lambda: open_store(path)["toy"].pooled(),
    "verify": lambda: main(["store", "verify", "--full", path]),
    "inspect": lambda: main(["store", "inspect", path]),
    "pull": lambda: main(["store", "pull", path, path + "-copy"]),
}
for path in sys.argv[2:]:
    codes = {}  # use -> exit code; 1 for an exception
    message = ""
    for name, use in uses.items():
        try:
            use()
            codes[name] = 0
        except SystemExit as left:
            codes[name] = left.code
        except ValueError as error:
            codes[name], message = 1, str(error)
    print(json.dumps([codes, message, peak_mb()]))
"""


def with_string_bomb(folder, bomb):
    """Seal a store whose ids of clips are a few bytes that decode to gigabytes."""
    store = make_sealed_store(folder)
    (store / "data/features.zarr/toy/clip/c/0").write_bytes(bomb)
    resealed(store)
    return store


def with_bomb_of_another_compressor(folder):
    """Seal a store with a chunk of 1 GB of zeros, packed by a compressor that the format does not allow."""
    store = make_sealed_store(folder)
    compress_otherwise(store, size=1_000_000_000)
    resealed(store)
    return store


class Outcome(NamedTuple):
    """What the uses of READERS made of one store."""

    codes: dict[str, int]
    message: str
    peak_mb: float


def run_readers(*stores):
    """Run READERS on stores in a process of their own: an outcome for each store."""
    process = python("-c", READERS, CPU_S, *stores)
    lines = [line for line in process.stdout.splitlines() if line.startswith('[{"open"')]
    return [Outcome(*json.loads(line)) for line in lines], process.stderr


REFUSED = {"open": 1, "verify": 3, "inspect": 1, "pull": 1}
"""Use -> exit code."""


def assert_every_reader_refused_in_little_memory(outcome, store, message):
    assert outcome.codes == REFUSED
    assert message in outcome.message
    assert outcome.peak_mb < MAX_MB
    assert not store.with_name(f"{store.name}-copy").exists()


@pytest.mark.long
def test_readers_refuse_strings_that_decode_to_gigabytes(tmp_path):
    """Opening, verifying, inspecting and pulling all refuse, and none takes more than 200 MB of memory."""
    stores = [with_string_bomb(tmp_path / str(n), bomb) for n, bomb in enumerate(STRING_BOMBS.values())]

    outcomes, errors = run_readers(*stores)
    for store, outcome in zip(stores, outcomes, strict=True):
        assert_every_reader_refused_in_little_memory(outcome, store, "clip/c/0: this chunk")
    assert errors.count("clip/c/0: this chunk") == 2 * len(stores)  # inspect and pull print it


@pytest.mark.long
def test_readers_refuse_a_gigabyte_in_another_compressor(tmp_path):
    """The format allows one compressor; a chunk packed by gzip is refused before it is decompressed.

    Opening, verifying, inspecting and pulling all refuse, and none takes more than 200 MB of memory.
    """
    store = with_bomb_of_another_compressor(tmp_path)

    (outcome,), _ = run_readers(store)

    assert_every_reader_refused_in_little_memory(outcome, store, "codecs: not as the format demands")
