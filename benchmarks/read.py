"""Read a corpus's pooled vectors and its tokens from a store and from what else people keep them in.

All peers run in this one process, in turn, on the same numbers; look at the ratios. The files have just been
written, so they come from the page cache: this measures the formats, not the disk. Times are medians, of CPU
milliseconds of all threads, which a busy machine distorts little.

Pooled vectors, 7,637 x 512 float32: from a store, one .npy and one .pth a clip. Tokens (3,137 x 768 float16,
4.8 MB a clip): from a store, one safetensors file a clip, h5py, zarr-python on the store's own files, and,
where they are installed (pylance, vortex-data, litdata, webdataset), Lance, Vortex, LitData and WebDataset,
which has no access at random; streamed in the order of the rows, and single clips at random. The same tokens
by PyTorch's DataLoader, shuffled: from the store by `Pieces`, from a mapped .npy by the same loader.

    python benchmarks/read.py [--clips 7637] [--tokens 128] [--repeats 19]      0 clips leave a part out
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import h5py
import numpy as np
import torch
import zarr
from measure import Took, arguments, cpu_s, in_turn, show
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from torch.utils.data import DataLoader, Dataset

from obygaze_features.exchange.publish import pack
from obygaze_features.loading import Pieces
from obygaze_features.store import open_store
from obygaze_features.store.format import FEATURES
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

FEATURE = 512
TOKENS = 3137
WIDTH = 768
Peer = tuple[Callable[[], object], Callable[[int], object] | None]
Peers = dict[str, Peer]
"""What streams the tokens, and what reads one clip's, for each peer."""


def write_tokens(folder: Path, n_clips: int) -> Peers:
    """Write the same tokens in every format; give what streams them and what reads one clip, for each."""
    rng = np.random.default_rng(0)
    clips = np.empty((n_clips, TOKENS, WIDTH), np.float16)
    for clip in clips:
        clip[:] = rng.standard_normal(clip.shape, np.float32)
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
    for write in (lance, vortex, litdata, webdataset):
        try:
            peers[write.__name__] = write(folder / write.__name__, clips)
        except ImportError as error:
            print(f"left out: {error}")
    for name, (_, read) in peers.items():
        if read is None:
            continue
        assert np.array_equal(np.asarray(read(n_clips - 1)).reshape(TOKENS, WIDTH), clips[-1]), name
    return peers


def _flat(batch: Any) -> NDArray[Any]:
    """Give the numbers of an Arrow array of lists, without a copy."""
    return batch.flatten().to_numpy(zero_copy_only=False)


def _table(clips: NDArray[Any]) -> Any:
    import pyarrow as pa

    lists = pa.FixedSizeListArray.from_arrays(pa.array(clips.reshape(-1)), clips[0].size)
    return pa.table({"tokens": lists})


def lance(place: Path, clips: NDArray[Any]) -> Peer:
    """Write a Lance dataset."""
    import lance as library

    dataset = library.write_dataset(_table(clips), str(place))
    return (
        lambda: [_flat(batch.column(0)).size for batch in dataset.to_batches(batch_size=1)],
        lambda number: _flat(dataset.take([number]).column(0).combine_chunks()),
    )


def vortex(place: Path, clips: NDArray[Any]) -> Peer:
    """Write a Vortex file, compressed as it chooses."""
    import pyarrow as pa
    import vortex as library

    library.io.write(library.array(_table(clips)), str(place))
    file = library.open(str(place))

    def read(number: int) -> NDArray[Any]:
        position = library.array(pa.array([number], pa.uint64()))
        return _flat(file.scan(indices=position).read_all().to_arrow_array().field(0))

    return lambda: [_flat(batch.column(0)).size for batch in file.to_arrow(batch_size=1)], read


def litdata(place: Path, clips: NDArray[Any]) -> Peer:
    """Write chunks of LitData."""
    from litdata import StreamingDataset
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(place), chunk_bytes=1 << 26)
    for number, clip in enumerate(clips):
        writer[number] = {"tokens": clip}
    writer.done()
    writer.merge()
    dataset = StreamingDataset(str(place), shuffle=False)
    return lambda: [row["tokens"].size for row in dataset], lambda number: dataset[number]["tokens"]


def webdataset(place: Path, clips: NDArray[Any]) -> Peer:
    """Write a tar of .npy files."""
    import webdataset as library

    with library.TarWriter(str(place)) as tar:
        for number, clip in enumerate(clips):
            tar.write({"__key__": f"clip-{number:05d}", "tokens.npy": clip})
    files = library.WebDataset(str(place), shardshuffle=False).decode()
    return lambda: [row["tokens.npy"].size for row in files], None


class Mapped(Dataset[Any]):
    """A memory-mapped .npy, read a clip at a time; PyTorch wants what can be written, a copy."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        clip = torch.from_numpy(np.array(self.values[number : number + 1]))
        return clip, torch.zeros(1, dtype=torch.int64)


def epoch(source: Any, workers: int) -> Took:
    """Give the seconds of a loader's epoch, the clock's from the first batch on."""
    loader = DataLoader(source, batch_size=None, shuffle=True, num_workers=workers)
    before = cpu_s()
    batches = iter(loader)
    next(batches)
    start = time.perf_counter()
    for batch, _ in batches:
        assert batch.shape[1:] == (TOKENS, WIDTH)
    wall = time.perf_counter() - start
    del batches  # its workers end, and are counted
    return Took(cpu_s() - before, wall)


def loaders(folder: Path, n_clips: int, repeats: int) -> None:
    """Read the tokens that `write_tokens` wrote by loaders, from the store and from one .npy, in turn."""
    group = open_store(folder / "t")["vivit"]
    np.save(folder / "t.npy", group.tokens())
    npy = "memory-mapped .npy"
    sources: dict[str, Any] = {
        "store": Pieces(group, "tokens", np.zeros(n_clips, np.int64)),
        npy: Mapped(np.load(folder / "t.npy", mmap_mode="r")),
    }
    rows = []
    for workers in (0, 1, 2):
        took: dict[str, list[Took]] = {name: [] for name in sources}
        for _ in range(repeats):
            for name, source in sources.items():
                took[name].append(epoch(source, workers))
        for name, several in took.items():
            turns = list(zip(several, took[npy], strict=True))
            rows.append(
                {
                    "tokens by a DataLoader": name,
                    "workers": workers,
                    "CPU ms a clip": 1e3 * median(taken.cpu_s for taken in several) / n_clips,
                    "clips a second": (n_clips - 1) / median(taken.wall_s for taken in several),
                    "speed of the .npy's, CPU": median(
                        taken_by_numpy.cpu_s / taken.cpu_s for taken, taken_by_numpy in turns
                    ),
                    "clock": median(taken_by_numpy.wall_s / taken.wall_s for taken, taken_by_numpy in turns),
                }
            )
    show(rows)


def tokens(folder: Path, n_clips: int, repeats: int) -> None:
    """Stream all tokens and read clips at random, and by loaders."""
    peers = write_tokens(folder, n_clips)
    order = np.random.default_rng(1).permutation(n_clips).tolist()
    streamed = in_turn({peer: stream for peer, (stream, _) in peers.items()}, repeats)
    works = {peer: lambda r=read: [*map(r, order)] for peer, (_, read) in peers.items() if read}
    single = in_turn(works, repeats)
    rows = []
    for peer in peers:
        all_ = streamed[peer].cpu_s
        ours_s = single[peer].cpu_s if peer in single else float("nan")
        rows.append(
            {"tokens by": peer, "stream, ms a clip": 1e3 * all_ / n_clips}
            | {"of safetensors": all_ / streamed["safetensors a clip"].cpu_s}
            | {"one at random": 1e3 * ours_s / n_clips, "of h5py": ours_s / single["h5py"].cpu_s}
        )
    show(rows)
    loaders(folder, n_clips, repeats)


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
    taken = in_turn(peers, repeats) | in_turn(slow, min(repeats, 5))
    base = taken["np.load of one file"].cpu_s
    show({"read by": peer, "CPU ms": 1e3 * t.cpu_s, "times": t.cpu_s / base} for peer, t in taken.items())


def rows_at_random(folder: Path, repeats: int, n_clips: int = 8_000, n_rows: int = 1_000) -> None:
    """Read pooled vectors of clips at random, from the store by blocks and from HDF5 row by row."""
    vectors = np.random.default_rng(0).standard_normal((n_clips, FEATURE)).astype(np.float32)
    ids = [f"clip-{number:05d}" for number in range(n_clips)]
    store = seal_arrays(folder / "rows", dict.fromkeys(ids, "m"), {"noise": {"pooled": vectors}})
    with h5py.File(folder / "rows.h5", "w") as file:
        file.create_dataset("pooled", data=vectors)
    dataset = h5py.File(folder / "rows.h5")["pooled"]
    rows = np.random.default_rng(1).choice(n_clips, n_rows, replace=False).tolist()
    clips = [ids[row] for row in rows]

    def by_blocks() -> NDArray[Any]:
        return open_store(store)["noise"].read_many(clips, "pooled")

    def row_by_row() -> NDArray[Any]:
        return np.stack([dataset[row] for row in rows])

    assert np.array_equal(by_blocks(), row_by_row())
    taken = in_turn({"read_many": by_blocks, "h5py": row_by_row}, repeats)
    ours_ms = 1e3 * taken["read_many"].cpu_s
    theirs_ms = 1e3 * taken["h5py"].cpu_s
    row = {"rows": n_rows, "read_many, CPU ms": ours_ms, "h5py": theirs_ms, "ratio": ours_ms / theirs_ms}
    show([row | {"goal": 3}])


def main() -> None:
    """Write the same numbers in several ways, read them back in turn."""
    options = arguments(__doc__, clips=7637, tokens=128, repeats=19)
    with tempfile.TemporaryDirectory() as name:
        if options.tokens:
            tokens(Path(name), options.tokens, min(options.repeats, 5))
        if options.clips:
            pooled(Path(name), options.clips, options.repeats)
        rows_at_random(Path(name), options.repeats)


if __name__ == "__main__":
    main()
