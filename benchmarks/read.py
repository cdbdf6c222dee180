"""Read every pooled vector of a corpus from a store, from one .npy and from one .pth a clip.

All peers run in this one process, in turn, on the same numbers; look at the ratios. The files have just been
written, so they come from the page cache: this measures the formats, not the disk. Times are medians, of CPU
milliseconds of all threads, which a busy machine distorts little, and of the clock.

    python benchmarks/read.py [--clips 7637] [--features 512] [--repeats 99]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.store import (
    ClipFeatures,
    ClipResult,
    PlannedClip,
    Stage,
    open_store,
    seal,
    staging_path,
)
from obygaze_features.store.publish import pack
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


def main() -> None:
    """Write the same vectors in three ways, read them back in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=7637)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=99)
    asked = parser.parse_args()
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
