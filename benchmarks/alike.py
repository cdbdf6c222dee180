"""Search a large store by example, and look for copies in it: CPU seconds and memory.

Search: drawn pooled vectors of 512 values, the first search of an opened store and the next one, beside a
flat index of faiss, where that is installed: reading the vectors, standardising and indexing them, and one
query. Memory is that above the open store. Each is a process of its own.

Copies: drawn signatures of 16 frames. Once all clips have the same one, which should cost little more than
reading the store (opening it, its table of clips, its frames, from the page cache); once all look alike,
frames by frames: the scene of one camera. Beside these the matrix products that compare all frames of all
clips at all shifts, in one view.

    python benchmarks/alike.py [--clips 100000] [--signatures 2000]      0 leaves a part out

With --check, exit code 1 if a search takes over 25 MB or more CPU than faiss in all, the same signatures more
than 3 times what reading them takes, or those alike more than twice the products.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import arguments, peak_mb, show, timed, verdict

from obygaze_features.same_pictures import BLOCK, FEATURES, duplicates
from obygaze_features.signature_likeness import SHIFTS, SIGNS
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_features.text_search import search_like

WIDTH = 512
FRAMES = 16
TOP = 20
MAX_MB = 25
MAX_READING = 3
QUERY = "c0000005"


def ids(n_clips: int) -> dict[str, str]:
    """Name clips, 40 a movie."""
    return {f"c{row:07d}": f"m{row // 40}" for row in range(n_clips)}


def ours(store: Path) -> None:
    """Print the CPU seconds of a search, of the next, and the memory above the open store."""
    opened = open_store(store)
    assert opened["drawn"].clip_ids
    before = peak_mb()
    first, second_s = (timed(lambda: search_like(opened, QUERY, top=TOP)).cpu_s for _ in range(2))
    print(first, second_s, peak_mb() - before)


def faiss_flat(store: Path) -> None:
    """Print the same of faiss."""
    import faiss

    faiss.omp_set_num_threads(1)
    group = open_store(store)["drawn"]
    before = peak_mb()
    index = faiss.IndexFlatIP(WIDTH)

    def build() -> None:
        X = group.pooled()
        X -= X.mean(axis=0)
        X /= X.std(axis=0)
        faiss.normalize_L2(X)
        index.add(X)

    built = timed(build).cpu_s
    query = timed(lambda: index.search(index.reconstruct(5)[None], TOP)).cpu_s
    print(built + query, query, peak_mb() - before)


def search(folder: Path, n_clips: int) -> list[str]:
    """Measure search; return what missed its goal."""
    rng = np.random.default_rng(0)
    pooled = (rng.normal(size=WIDTH) + rng.standard_normal((n_clips, WIDTH), np.float32)).astype(np.float32)
    store = seal_arrays(folder / "drawn", ids(n_clips), {"drawn": {"pooled": pooled}}, n_frames=1)
    rows = {}
    for name, work in (("obygaze", ours), ("faiss, flat", faiss_flat)):
        command = [sys.executable, __file__, work.__name__, str(store)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode == 0:
            rows[name] = [float(word) for word in process.stdout.split()]
    title = f"search of {n_clips} x {WIDTH}"
    show(([name, *row] for name, row in rows.items()), ("", "first, CPU s", "next, CPU s", "MB"), title)
    mine = rows["obygaze"]
    peer = rows.get("faiss, flat")
    wrong = [f"a search took {mine[2]:.0f} MB"] if mine[2] > MAX_MB else []
    return wrong + (["a search took more than faiss"] if peer and mine[0] > peer[0] else [])


def read(place: Path) -> None:
    """Read a store's signatures: what it is, its table of clips, the frames."""
    store = open_store(place)
    assert len(store.clips) == sum(len(block) for _, block in store["signature"].blocks("frames"))


def copies(folder: Path, n_clips: int) -> list[str]:
    """Measure looking for copies; return what missed its goal."""
    rng = np.random.default_rng(0)
    scene = rng.integers(-1, 2, len(FEATURES)).astype(np.float16)
    scene[-1] = 0.5
    same = np.broadcast_to(scene, (n_clips, FRAMES, len(scene)))
    drawn = same.copy()
    changed = rng.random((n_clips, FRAMES, len(scene) - 1)) < 0.1
    drawn[..., :-1][changed] = 0
    rows = []
    wrong = []
    for name, frames in (("the same", same), ("alike", drawn)):
        provenance = {"architecture": {"features": FEATURES}}
        groups = {"signature": {"frames": frames}}
        store = open_store(seal_arrays(folder / name, ids(n_clips), groups, n_frames=FRAMES, **provenance))
        where = store.path
        reading = timed(lambda where=where: read(where)).cpu_s
        looked = timed(lambda where=where: duplicates(open_store(where), progress=False)).cpu_s
        rows.append((name, reading, looked, looked / reading))
        if name == "the same" and looked > MAX_READING * reading:
            wrong.append(f"the same signatures took {looked / reading:.1f} times reading them")
    signs = rng.standard_normal((FRAMES, n_clips, SIGNS), np.float32)

    def multiply() -> None:
        for a in range(0, n_clips, BLOCK):
            for shift in SHIFTS:
                for frame in range(max(0, -shift), min(FRAMES, FRAMES - shift)):
                    signs[frame, a : a + BLOCK] @ signs[frame + shift, a:].T

    products = timed(multiply).cpu_s
    rows.append(("products alone", float("nan"), products, float("nan")))
    if rows[1][2] > 2 * products:
        wrong.append(f"those alike took {rows[1][2] / products:.1f} times the products")
    show(rows, ("", "reading, CPU s", "looking, CPU s", "times"), f"copies among {n_clips} clips")
    return wrong


def main() -> None:
    """Print both tables."""
    options = arguments(__doc__, clips=100_000, signatures=2_000, check=False)
    with tempfile.TemporaryDirectory() as name:
        wrong = search(Path(name), options.clips) if options.clips else []
        wrong += copies(Path(name), options.signatures) if options.signatures else []
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    if sys.argv[1:2] and (work := {"ours": ours, "faiss_flat": faiss_flat}.get(sys.argv[1])):
        work(Path(sys.argv[2]))
    else:
        main()
