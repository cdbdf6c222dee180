"""Read a corpus's pooled vectors and its tokens from a store and from what else people keep them in.

All peers run in this one process, in turn, on the same numbers; look at the ratios. The files have just been
written, so they come from the page cache: this measures the formats, not the disk. Times are medians, of CPU
milliseconds of all threads, which a busy machine distorts little, and of the clock.

Pooled vectors: from a store, one .npy and one .pth a clip. Tokens (3,137 x 768 float16, 4.8 MB a clip): from
a store, one safetensors file a clip, h5py, zarr-python on the store's own files, and Lance, where it is
installed (`obygaze[benchmarks]`); streamed in the order of the rows, and single clips at random.

    python benchmarks/read.py [--clips 7637] [--features 512] [--repeats 99] [--tokens 128]
"""

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np
import torch
import zarr
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tabulate import tabulate

from obygaze_features.exchange.publish import pack
from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
)
from obygaze_features.store.format import FEATURES
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import toy_group

SLOW_REPEATS = 5


def write_store(folder: Path, ids: list[str], vectors: NDArray[np.float32]) -> Path:
    """Stage and seal the vectors; report what a clip costs."""
    group = toy_group("noise", {"pooled": vectors}, n_frames=1)
    begin = time.perf_counter()
    stage = Stage.open(
        staging_path(folder / "noise"), [PlannedClip(clip, "") for clip in ids], [group], {"name": "noise"}
    )
    zero = (np.zeros(1), np.zeros(1, np.int64))
    results = [
        ClipResult(clip, "ok", groups={"noise": ClipFeatures(*zero, {"pooled": vector})})
        for clip, vector in zip(ids, vectors, strict=True)
    ]
    with stage.writer() as writer:
        writer.commit(results)
    staged = time.perf_counter()
    path = seal(None, folder / "noise", licence="NOASSERTION")
    sealed = time.perf_counter()
    commit_ms, seal_ms = (1000 * span / len(ids) for span in (staged - begin, sealed - staged))
    print(f"commit {commit_ms:.2f} ms a clip, seal {seal_ms:.2f} ms a clip")
    return path


TOKENS, WIDTH = 3137, 768
TURNS = 5
"""Interleaved readings of all tokens."""
Peers = dict[str, tuple[Callable[[], object], Callable[[int], object]]]
"""What streams the tokens, and what reads one clip's, for each peer."""


def write_tokens(folder: Path, n_clips: int) -> Peers:
    """Write the same tokens in every format; give what streams them and what reads one clip, for each."""
    rng = np.random.default_rng(0)
    clip = rng.standard_normal((TOKENS, WIDTH)).astype(np.float16)
    group = toy_group("vivit", {"tokens": clip[None]}, n_frames=1)
    ids = [f"clip-{number:05d}" for number in range(n_clips)]
    stage = Stage.open(
        staging_path(folder / "t"), [PlannedClip(name, "") for name in ids], [group], {"name": "t"}
    )
    zero = (np.zeros(1), np.zeros(1, np.int64))
    (folder / "safetensors").mkdir()
    with stage.writer() as writer, h5py.File(folder / "t.h5", "w") as file:
        every = file.create_dataset("tokens", (n_clips, *clip.shape), clip.dtype, chunks=(1, *clip.shape))
        for number, name in enumerate(ids):
            clip[0, :8] = number
            features = {"vivit": ClipFeatures(*zero, {"tokens": clip})}
            writer.commit([ClipResult(name, "ok", groups=features)])
            save_file({"tokens": clip}, folder / "safetensors" / name)
            every[number] = clip
    store = seal(None, folder / "t", licence="NOASSERTION")
    ours = open_store(store)["vivit"]
    node = zarr.open_group(str(store / FEATURES), mode="r")["vivit/tokens"]
    file = h5py.File(folder / "t.h5")

    def one_by_one(read: Callable[[int], object]) -> Callable[[], object]:
        return lambda: [read(number) is None for number in range(n_clips)]

    def safetensors(number: int) -> NDArray[Any]:
        return load_file(folder / "safetensors" / ids[number])["tokens"]

    def blocks() -> None:
        for _, _block in ours.blocks("tokens"):
            pass

    def of_zarr() -> None:
        for start in range(0, n_clips, 16):
            node[start : start + 16]

    peers: Peers = {
        "safetensors a clip": (one_by_one(safetensors), safetensors),
        "h5py": (one_by_one(lambda number: file["tokens"][number]), lambda number: file["tokens"][number]),
        "store": (blocks, lambda number: ours.read(ids[number], "tokens")),
        "zarr-python, the store's files": (of_zarr, lambda number: node[number]),
    }
    with contextlib.suppress(ImportError):
        peers["Lance"] = write_lance(folder, node, n_clips)
    for name, (_, read) in peers.items():
        assert np.array_equal(np.asarray(read(n_clips - 1)).reshape(clip.shape), clip), name
    return peers


def write_lance(
    folder: Path, node: Any, n_clips: int
) -> tuple[Callable[[], object], Callable[[int], object]]:
    """Write a Lance dataset of one row of fixed size a clip."""
    import lance
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        for number in range(n_clips):
            flat = pa.array(np.asarray(node[number]).reshape(-1))
            yield pa.record_batch([pa.FixedSizeListArray.from_arrays(flat, TOKENS * WIDTH)], ["tokens"])

    schema = pa.schema([("tokens", pa.list_(pa.float16(), TOKENS * WIDTH))])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    data = lance.write_dataset(reader, str(folder / "t.lance"))

    def values(table: Any) -> NDArray[Any]:
        return table["tokens"].combine_chunks().values.to_numpy(zero_copy_only=False)

    def stream() -> None:
        for batch in data.to_batches(batch_size=16):
            batch["tokens"].values.to_numpy(zero_copy_only=False)

    return stream, lambda number: values(data.take([number]))


def tokens(n_clips: int) -> None:
    """Stream all tokens and read clips at random, turn by turn; print CPU milliseconds a clip."""
    with tempfile.TemporaryDirectory() as name:
        peers = write_tokens(Path(name), n_clips)
        order = np.random.default_rng(1).permutation(n_clips)
        taken: dict[str, list[tuple[float, float]]] = {peer: [] for peer in peers}
        for _ in range(TURNS):
            for peer, (stream, read) in peers.items():
                begin = time.process_time()
                stream()
                middle = time.process_time()
                for number in order:
                    read(int(number))
                end = time.process_time()
                taken[peer].append((1e3 * (middle - begin) / n_clips, 1e3 * (end - middle) / n_clips))
        found = {peer: [median(some) for some in zip(*turns, strict=True)] for peer, turns in taken.items()}
        streamed, single = found["safetensors a clip"][0], found["h5py"][1]
        rows = [
            (peer, f"{all_:.2f}", f"{all_ / streamed:.2f}", f"{one:.2f}", f"{one / single:.2f}")
            for peer, (all_, one) in found.items()
        ]
        titles = ("tokens by", "stream, ms a clip", "of safetensors", "one at random", "of h5py")
        print(tabulate(rows, headers=titles, disable_numparse=True))


def main() -> None:
    """Write the same vectors in three ways, read them back in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=7637)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=99)
    parser.add_argument("--tokens", type=int, default=128, help="clips with tokens; 0 leaves them out")
    asked = parser.parse_args()
    if asked.tokens:
        tokens(asked.tokens)
    if not asked.clips:
        return
    vectors = np.random.default_rng(0).standard_normal((asked.clips, asked.features)).astype(np.float32)
    ids = [f"clip-{number:05d}" for number in range(asked.clips)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = write_store(folder, ids, vectors)
        np.save(folder / "all.npy", vectors)
        (folder / "pth").mkdir()
        for clip, vector in zip(ids, vectors, strict=True):
            torch.save(torch.from_numpy(vector.copy()), folder / "pth" / f"{clip}.pth")
        opened = open_store(store)["noise"]
        zipped = open_store(pack(FolderFiles(store), folder / "noise.zip"))["noise"]

        def opened_anew() -> NDArray[np.float32]:
            return open_store(store)["noise"].pooled()

        def one_by_one() -> NDArray[np.float32]:
            files = (folder / "pth" / f"{clip}.pth" for clip in ids)
            return np.stack([torch.load(file, weights_only=True).numpy() for file in files])

        peers: dict[str, Callable[[], NDArray[Any]]] = {
            "np.load of one file": partial(np.load, folder / "all.npy"),
            "store, already open": opened.pooled,
            "its zip, already open": zipped.pooled,
            "store, opened anew": opened_anew,
            "torch.load of a .pth a clip": one_by_one,
        }
        slow = "torch.load of a .pth a clip"
        taken: dict[str, list[tuple[float, float]]] = {peer: [] for peer in peers}
        for turn in range(asked.repeats):
            for peer, read in peers.items():
                if peer == slow and turn >= SLOW_REPEATS:
                    continue
                read()  # so that no peer pays for what the one before it left in the caches
                begin = time.process_time(), time.perf_counter()
                found = read()
                taken[peer].append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
                assert np.array_equal(found, vectors)
                del found
    spans = {
        peer: [1000 * median(spans) for spans in zip(*some, strict=True)] for peer, some in taken.items()
    }
    base = spans["np.load of one file"]
    rows = [
        (peer, f"{cpu:.2f}", f"{cpu / base[0]:.2f}", f"{wall:.2f}", f"{wall / base[1]:.2f}")
        for peer, (cpu, wall) in spans.items()
    ]
    print(
        f"{asked.clips} vectors of {asked.features} float32, median of {asked.repeats}, .pth {SLOW_REPEATS}"
    )
    headers = ("read by", "CPU ms", "times np.load", "wall ms", "times np.load")
    print(tabulate(rows, headers=headers, disable_numparse=True))


if __name__ == "__main__":
    main()
