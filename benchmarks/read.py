"""Read a corpus's pooled vectors and its tokens from a store and from what else people keep them in.

All peers run in this one process, in turn, on the same numbers; look at the ratios. The files have just been
written, so they come from the page cache: this measures the formats, not the disk. Times are medians, of CPU
milliseconds of all threads, which a busy machine distorts little.

Pooled vectors, 7,637 x 512 float32: from a store, one .npy and one .pth a clip. Tokens (3,137 x 768 float16,
4.8 MB a clip): from a store, one safetensors file a clip, h5py, zarr-python on the store's own files, and
Lance, where it is installed (`obygaze[benchmarks]`); streamed in the order of the rows, and single clips at
random.

    python benchmarks/read.py [--clips 7637] [--tokens 128] [--repeats 19]      0 clips leave a part out
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import zarr
from measure import arguments, in_turn, show
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from obygaze_features.exchange.publish import pack
from obygaze_features.store import open_store
from obygaze_features.store.format import FEATURES
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

FEATURE, TOKENS, WIDTH = 512, 3137, 768
Peers = dict[str, tuple[Callable[[], object], Callable[[int], object]]]
"""What streams the tokens, and what reads one clip's, for each peer."""


def write_tokens(folder: Path, n_clips: int) -> Peers:
    """Write the same tokens in every format; give what streams them and what reads one clip, for each."""
    rng = np.random.default_rng(0)
    clips = rng.standard_normal((1, TOKENS, WIDTH)).astype(np.float16).repeat(n_clips, axis=0)
    clips[:, 0, :8] = np.arange(n_clips)[:, None]
    ids = [f"clip-{number:05d}" for number in range(n_clips)]
    store = seal_arrays(folder / "t", dict.fromkeys(ids, "m"), {"vivit": {"tokens": clips}})
    (folder / "safetensors").mkdir()
    with h5py.File(folder / "t.h5", "w") as file:
        file.create_dataset("tokens", data=clips, chunks=(1, TOKENS, WIDTH))
    for name, clip in zip(ids, clips, strict=True):
        save_file({"tokens": clip}, folder / "safetensors" / name)
    ours = open_store(store)["vivit"]
    node = zarr.open_group(str(store / FEATURES), mode="r")["vivit/tokens"]
    dataset = h5py.File(folder / "t.h5")["tokens"]

    def safetensors(number: int) -> NDArray[Any]:
        return load_file(folder / "safetensors" / ids[number])["tokens"]

    def one_by_one(read: Callable[[int], object]) -> Callable[[], object]:
        return lambda: [read(number) is None for number in range(n_clips)]

    peers: Peers = {
        "safetensors a clip": (one_by_one(safetensors), safetensors),
        "h5py": (one_by_one(dataset.__getitem__), dataset.__getitem__),
        "store": (
            lambda: [len(block) for _, block in ours.blocks("tokens")],
            lambda number: ours.read(ids[number], "tokens"),
        ),
        "zarr-python, the store's files": (
            lambda: [len(node[start : start + 16]) for start in range(0, n_clips, 16)],
            node.__getitem__,
        ),
    }
    for name, (_, read) in peers.items():
        assert np.array_equal(np.asarray(read(n_clips - 1)).reshape(TOKENS, WIDTH), clips[-1]), name
    return peers


def tokens(folder: Path, n_clips: int, repeats: int) -> None:
    """Stream all tokens and read clips at random."""
    peers = write_tokens(folder, n_clips)
    order = np.random.default_rng(1).permutation(n_clips).tolist()
    streamed = in_turn({peer: stream for peer, (stream, _) in peers.items()}, repeats)
    single = in_turn({peer: lambda r=read: [*map(r, order)] for peer, (_, read) in peers.items()}, repeats)
    rows = []
    for peer in peers:
        all_, one = streamed[peer].cpu_s, single[peer].cpu_s
        rows.append(
            {"tokens by": peer, "stream, ms a clip": 1e3 * all_ / n_clips}
            | {"of safetensors": all_ / streamed["safetensors a clip"].cpu_s}
            | {"one at random": 1e3 * one / n_clips, "of h5py": one / single["h5py"].cpu_s}
        )
    show(rows)


def pooled(folder: Path, n_clips: int, repeats: int) -> None:
    """Read all pooled vectors."""
    vectors = np.random.default_rng(0).standard_normal((n_clips, FEATURE)).astype(np.float32)
    ids = [f"clip-{number:05d}" for number in range(n_clips)]
    store = seal_arrays(folder / "noise", dict.fromkeys(ids, "m"), {"noise": {"pooled": vectors}})
    np.save(folder / "all.npy", vectors)
    (folder / "pth").mkdir()
    files = [folder / "pth" / f"{clip}.pth" for clip in ids]
    for file, vector in zip(files, vectors, strict=True):
        torch.save(torch.from_numpy(vector.copy()), file)

    def anew() -> NDArray[Any]:
        return open_store(store)["noise"].pooled()

    peers: dict[str, Callable[[], NDArray[Any]]] = {
        "np.load of one file": partial(np.load, folder / "all.npy"),
        "store, already open": open_store(store)["noise"].pooled,
        "its zip, already open": open_store(pack(FolderFiles(store), folder / "noise.zip"))["noise"].pooled,
        "store, opened anew": anew,
    }
    slow = {
        "torch.load of a .pth a clip": lambda: np.stack(
            [torch.load(file, weights_only=True).numpy() for file in files]
        )
    }
    for read in (peers | slow).values():
        assert np.array_equal(read(), vectors)
    found = in_turn(peers, repeats) | in_turn(slow, min(repeats, 5))
    base = found["np.load of one file"].cpu_s
    show({"read by": peer, "CPU ms": 1e3 * t.cpu_s, "times": t.cpu_s / base} for peer, t in found.items())


def main() -> None:
    """Write the same numbers in several ways, read them back in turn."""
    asked = arguments(__doc__, clips=7637, tokens=128, repeats=19)
    with tempfile.TemporaryDirectory() as name:
        if asked.tokens:
            tokens(Path(name), asked.tokens, min(asked.repeats, 5))
        if asked.clips:
            pooled(Path(name), asked.clips, asked.repeats)


if __name__ == "__main__":
    main()
