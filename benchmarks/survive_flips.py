"""Single bits flipped in a sealed store and in its zip: each is found, or without effect."""

import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

from obygaze_features.errors import StoreError
from obygaze_features.store import verify


def flips(folder: Path, number: int, seed: int) -> bool:
    """Flip bits one at a time; every file is hit as likely as any other, so that small ones are too."""
    rng = np.random.default_rng(seed)
    store = folder / "toy-1.0.0"
    files = sorted(path for path in store.rglob("*") if path.is_file())
    kinds: Counter[str] = Counter()
    found = named = 0
    for _ in range(number):
        path = files[int(rng.integers(len(files)))]
        name = path.relative_to(store).as_posix()
        problems = flipped(store, path, int(rng.integers(8 * path.stat().st_size)))
        found += bool(problems)
        hit = any(name in file or name in what for file, what in problems)
        named += hit
        kinds["tags" if path.parent == store else "zarr.json" if path.name == "zarr.json" else "data"] += 1
        if not hit:
            print(f"  not named: {name}: {problems}")
    print(
        f"flips: {number} bits in {len(files)} files {dict(kinds)}; {found} found, {named} named", flush=True
    )
    return named == number and verify(store, "full").ok


def zip_flips(folder: Path, number: int, seed: int) -> bool:
    """Flip bits of a zip, whose parts are headers, data and directory; those of the data must be found."""
    rng = np.random.default_rng(seed)
    path = folder / "toy-1.0.0.zip"
    with zipfile.ZipFile(path) as archive:
        members, directory = archive.infolist(), archive.start_dir
    starts = [member.header_offset for member in members] + [directory]
    data = [stop - member.file_size for member, stop in zip(members, starts[1:], strict=True)]
    kinds: Counter[str] = Counter()
    found = named = 0
    for turn in range(number):
        kind = ("header", "data", "directory")[turn % 3]
        i = int(rng.integers(len(members)))
        first, last = {
            "header": (starts[i], data[i]),
            "data": (data[i], starts[i + 1]),
            "directory": (directory, path.stat().st_size),
        }[kind]
        problems = flipped(path, path, 8 * int(rng.integers(first, last)) + int(rng.integers(8)))
        if not problems and kind != "data":
            kinds["of them without effect"] += 1
            continue
        found += bool(problems)
        name = path.name if kind == "directory" else members[i].filename.partition("/")[2]
        # The directory tells of all members: which one is wrong then depends on the bit.
        hit = any(kind == "directory" or name in file or name in what for file, what in problems)
        hit |= any(path.name in what for _, what in problems)
        named += hit
        kinds[kind] += 1
        if not hit:
            print(f"  not named: {kind} of {name}: {problems}")
    print(f"zip-flips: {number} bits {dict(kinds)}; {found} found, {named} named", flush=True)
    return named == number - kinds["of them without effect"] and verify(path, "full").ok


def flipped(store: Path, path: Path, bit: int) -> list[tuple[str, str]]:
    """Verify a store of which one bit of one file is wrong; give the problems."""
    good = path.read_bytes()
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bad)
    try:
        return [(problem.file, problem.what) for problem in verify(store, "full").problems]
    except StoreError as error:  # it cannot even be opened
        return [(str(store), str(error))]
    finally:
        path.write_bytes(good)
