"""Peak memory while all tokens of a store are read, block by block, here and over loopback HTTP; and reduced.

The size is simulated: a store whose shards of tokens, 3,137 x 768 float16 a clip, are hard links to one
valid shard, so that 9 GB need 77 MB of disk and of page cache. Readers cannot tell: every shard is opened,
read, checked and decoded. Every reading is a process of its own; the server is nginx.

    python benchmarks/stream.py [--gigabytes 1 2 9] [--reduce mean:16 top:8]

With --reduce tokens are reduced by each rule, from a folder, beside reading alone in turns: CPU a clip above
reading is the difference of medians.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import zarr
from store import nginx
from tabulate import tabulate
from zarr.storage import LocalStore

from obygaze_features.store import open_store
from obygaze_features.store.arrays import create_array
from obygaze_features.store.format import ARRAYS, FEATURES
from obygaze_features.store.testing import seal_arrays
from obygaze_models.reduction import reduce_tokens

TOKENS, WIDTH = 3137, 768
CLIP = TOKENS * WIDTH * 2
SHARD = ARRAYS["tokens"].chunk


def write(folder: Path, gigabytes: float) -> Path:
    """Seal pooled vectors, then add tokens of about so many GB, all of them the same shard."""
    shards = max(1, round(gigabytes * 1e9 / CLIP / SHARD))
    clips = shards * SHARD
    ids = {f"clip-{number:05d}": "m" for number in range(clips)}
    pooled = np.zeros((clips, WIDTH), np.float32)
    store = seal_arrays(folder / f"films-{shards}", ids, {"toy": {"pooled": pooled}}, n_frames=1)
    root = LocalStore(store / FEATURES)
    node = zarr.open_group(root, mode="r+", use_consolidated=False)["toy"]
    assert isinstance(node, zarr.Group)
    array = create_array(node, "tokens", (clips, TOKENS, WIDTH), "float16", ARRAYS["tokens"].dims)
    rng = np.random.default_rng(0)
    array[:SHARD] = rng.standard_normal((SHARD, TOKENS, WIDTH), np.float32)
    chunks = store / FEATURES / "toy/tokens/c"
    for number in range(1, shards):
        (chunks / str(number) / "0").mkdir(parents=True)
        os.link(chunks / "0/0/0", chunks / str(number) / "0/0")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
        for path in ("toy", None):
            zarr.consolidate_metadata(root, path=path)
    return store


def peak() -> float:
    """Give the most memory that this process has had, in MB; Linux alone tells it apart from its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


def read(place: str, how: str) -> None:
    """Read all tokens of a store, and print clips, GB, seconds and MB at the beginning and at most."""
    group = open_store(place)["toy"]
    begin, before, clips, size = time.perf_counter(), peak(), 0, 0
    if how == "blocks":
        for _, block in group.blocks("tokens"):
            clips, size = clips + len(block), size + block.nbytes
    else:
        for clip in group.clip_ids:
            clips, size = clips + 1, size + group.read(clip, "tokens").nbytes
    print(clips, size / 1e9, time.perf_counter() - begin, before, peak())


def reduce(place: str, rule: str) -> None:
    """Reduce all tokens of a store, or read them alone; print clips, CPU seconds, MB at most."""
    store = open_store(place)
    group, begin = store["toy"], time.process_time()
    if rule == "read":
        for _, _block in group.blocks("tokens"):
            pass
    else:
        shutil.rmtree(reduce_tokens(store, "toy", rule).path)
    print(len(group), time.process_time() - begin, peak())


def reductions(place: str, rules: list[str], repeats: int = 3) -> str:
    """Measure rules and reading alone in turns, each in a process of one thread, and lay out a table."""
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    seconds: dict[str, list[float]] = {rule: [] for rule in ("read", *rules)}
    most = dict.fromkeys(seconds, 0.0)
    for _ in range(repeats):
        for rule, found in seconds.items():
            command = [sys.executable, __file__, "--one", place, rule]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=alone)
            clips, spent, memory = map(float, done.stdout.split())
            found.append(1000 * spent / clips)
            most[rule] = max(most[rule], memory)
    reading = statistics.median(seconds["read"])
    rows = [
        (rule, f"{(own := statistics.median(found)):.2f}", f"{own - reading:.2f}", round(most[rule]))
        for rule, found in seconds.items()
    ]
    headers = ("rule", "CPU ms a clip", "above reading", "MB at most")
    return tabulate(rows, headers=headers, disable_numparse=True)


def main() -> None:
    """Make stores of several sizes, read them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[1, 2, 9])
    parser.add_argument("--read", nargs=2, metavar=("PLACE", "HOW"))
    parser.add_argument("--reduce", nargs="+", metavar="RULE")
    parser.add_argument("--one", nargs=2, metavar=("PLACE", "RULE"))
    asked = parser.parse_args()
    if asked.one:
        reduce(*asked.one)
        return
    if asked.reduce:
        with tempfile.TemporaryDirectory() as name:
            for gigabytes in asked.gigabytes:
                store = write(Path(name), gigabytes)
                print(f"{gigabytes:g} GB of tokens")
                print(reductions(str(store), asked.reduce))
        return
    if asked.read:
        read(*asked.read)
        return
    rows = []
    with tempfile.TemporaryDirectory() as name, nginx(Path(name)) as url:
        for gigabytes in asked.gigabytes:
            store = write(Path(name), gigabytes)
            for how in ("blocks", "read"):
                for place in (str(store), f"{url}/{store.name}"):
                    done = subprocess.run(
                        [sys.executable, __file__, "--read", place, how],
                        check=True,
                        capture_output=True,
                        text=True,
                    )
                    clips, size, seconds, before, most = map(float, done.stdout.split())
                    where = "URL" if "://" in place else "folder"
                    rows.append(
                        (
                            f"{size:.1f}",
                            int(clips),
                            where,
                            how,
                            round(before),
                            round(most),
                            f"{size / seconds:.1f}",
                        )
                    )
    headers = ("GB", "clips", "from", "by", "MB once open", "MB at most", "GB/s")
    print(tabulate(rows, headers=headers, disable_numparse=True))


if __name__ == "__main__":
    main()
