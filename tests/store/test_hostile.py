"""What fuzzing and bit flips found, once each: see benchmarks/fuzz.py and benchmarks/survive.py."""

import json

import numpy as np
import pytest
from numcodecs.zstd import Zstd

from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store, verify
from obygaze_features.store.arrays import _zstd_size
from obygaze_features.store.store_files import FolderFiles, digests_bytes, parse_digests
from obygaze_features.store.testing import seal_arrays
from tests.process import python

from .hostile_stores import STRING_BOMBS, compress_otherwise, resealed, retag
from .toy_stores import sealed

MANIFEST = "manifest-sha256.txt"


@pytest.fixture
def store(tmp_path):
    return sealed(tmp_path)


@pytest.mark.parametrize("name", ["data/clips.csv", "data/features.zarr/zarr.json"])
def test_a_digest_manifest_must_list_what_every_store_has(store, tmp_path, name):
    digests, _ = parse_digests((store / MANIFEST).read_bytes())
    del digests[name]
    (store / MANIFEST).write_bytes(digests_bytes(digests))
    retag(store)
    with pytest.raises(StoreError, match=f"{MANIFEST}"):
        download(FolderFiles(store), tmp_path / "copy")
    assert not (tmp_path / "copy.pulling").exists()


def test_a_damaged_chunk_is_named_with_its_first_row_whatever_the_table_is(store):
    chunk = store / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\x00")
    (store / "data/clips.csv").write_text("torn", encoding="utf-8")
    whats = [problem.what for problem in verify(store).problems]
    assert any("rows from 0 on of toy/pooled" in what for what in whats)


# --- a few bytes that ask for much memory


def test_a_chunk_that_is_smaller_than_its_metadata_ask_for_is_refused_unread(store, monkeypatch):
    monkeypatch.setattr("obygaze_features.store.group.HARMLESS", 0)
    chunk = store / "data/features.zarr/toy/pooled/c/0/0"
    bare = chunk.stat().st_size - 4  # without its checksum
    chunk.write_bytes(chunk.read_bytes()[: bare - 1])
    with pytest.raises(StoreError, match=rf"{bare}.*{bare - 1}"):
        open_store(store)["toy"].raw("pooled")


def test_more_clips_than_the_table_has_are_refused_before_memory_is_asked_for(store):
    n_clips = 10**12
    root = store / "data/features.zarr"
    document = json.loads((root / "zarr.json").read_bytes())
    for node in document["consolidated_metadata"]["metadata"].values():
        if node["node_type"] == "array":
            node["shape"][0] = n_clips
    (root / "zarr.json").write_text(json.dumps(document), encoding="utf-8")
    (root / f"toy/status/c/{(n_clips - 1) // 1024}").write_bytes(b"x")
    with pytest.raises(StoreError):
        open_store(store)["toy"]


def test_a_chunk_that_is_larger_than_any_is_not_read(store):
    opened = open_store(store)["toy"]
    with (store / "data/features.zarr/toy/pooled/c/0/0").open("r+b") as chunk:
        chunk.truncate(1 << 40)  # sparse: takes no disk
    with pytest.raises(StoreError, match="pooled/c/0/0"):
        opened.pooled()


def test_strings_beyond_a_chunk_are_read_as_they_were_sealed(tmp_path):
    ids = {f"clip {row:05d} \U0001f3ac" * 3: "m" for row in range(1500)}
    path = seal_arrays(tmp_path / "many", ids, {"toy": {"pooled": np.zeros((1500, 2), np.float32)}})
    assert open_store(path)["toy"].clip_ids == tuple(sorted(ids))


@pytest.mark.parametrize("size", [1, 255, 256, 300, 65791, 65792])
def test_what_a_compressed_frame_says_of_its_size_is_read(size):
    assert _zstd_size(Zstd().encode(bytes(size))) == size


MOST_MB = 200
CPU_S = 300
"""Ends a reader that takes the bomb; on an idle machine each needs less than a tenth of a second."""

READERS = """
import json, resource, sys, time
from pathlib import Path
from obygaze.cli import main
from obygaze_features.store import open_store

path, limit = sys.argv[1], int(sys.argv[2])
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
found = {}
for name, use in uses.items():
    begin, said = time.process_time(), ""
    try:
        use()
        code = 0
    except SystemExit as left:
        code = left.code
    except ValueError as error:
        code, said = 1, str(error)
    found[name] = {"code": code, "cpu_s": time.process_time() - begin, "mb": peak_mb(), "said": said}
print(json.dumps(found))
"""

BOMBS = [*STRING_BOMBS, "a gzip stream of 1 GB"]


@pytest.mark.parametrize("bomb", BOMBS)
def test_every_reader_refuses_a_bomb_in_little_memory(tmp_path, bomb):
    store = sealed(tmp_path)
    if bomb in STRING_BOMBS:
        (store / "data/features.zarr/toy/clip/c/0").write_bytes(STRING_BOMBS[bomb])
    else:
        compress_otherwise(store, 1_000_000_000)
    resealed(store)
    done = python("-c", READERS, store, CPU_S)
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: use["code"] for name, use in found.items()} == {
        "open": 1,
        "verify": 3,
        "inspect": 1,
        "pull": 1,
    }
    what = "clip/c/0: this chunk" if bomb in STRING_BOMBS else "codecs: not as the format demands"
    assert what in found["open"]["said"]
    assert what.removeprefix("clip/c/0: ") in done.stdout
    assert done.stderr.count(what) == 2
    assert max(use["mb"] for use in found.values()) < MOST_MB
    assert not (tmp_path / f"{store.name}-copy").exists()
