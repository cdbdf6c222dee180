"""Feed damaged and hostile files to whatever reads files of strangers: no crash, hang, stray write or flood.

Every target takes the bytes of one file and reads it as obygaze would. Allowed are success and the errors
meant for users; anything else is a finding, which is printed with the bytes that cause it. Inputs are mutated
bytes, and for JSON also single values replaced. Every target runs in a process of its own with 1 GB of memory
more than it begins with, 20 s an input, and an audit of every file that is opened for writing.

    python benchmarks/fuzz.py [targets...] [--seconds 300] [--seed 0]
    python benchmarks/fuzz.py manifest --atheris          guided by coverage, where atheris is installed
"""

import argparse
import copy
import json
import logging
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import h5py
import numpy as np

from obygaze_features.manifest import ManifestError, read_manifest
from obygaze_features.store import StoreError, open_store, read_stage, seal, verify
from obygaze_features.store.import_sources import hdf5_pieces, read_npy
from obygaze_features.store.testing import seal_arrays

Target = Callable[[bytes], None]
MEMORY = 1 << 30
HANGS_S = 20
ODD = (
    *(None, True, -1, 0, 1, 2**31, 2**40, 2**63, -(2**70), 10**400, 1.5, 1e308),
    *("", "NaN", "x" * 5000, "../../../etc", "/etc/passwd", "\ud800", "\x00", "float64", "object", "gzip"),
    *([], {}, [[]], [2**40, 2**40], [0], [-1], {"a": {}}, [None]),
)
PIECES = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b",", b";", b"=", b"{", b"}", b"null", b"../"),
    *(b"9" * 5000, b"-1", b"nan", b"inf", b"1e999", b"\xe2\x80\xa8", b"[" * 3000),
)


class Hang(BaseException):
    """An input took too long; not an Exception, so that nobody catches it on the way."""


class StrayWriteError(BaseException):
    """Something was written outside the target, or a program started; nobody catches it either."""


def make_store(folder: Path) -> Path:
    """Seal a store with all kinds of arrays, and leave its stage."""
    rng = np.random.default_rng(0)
    arrays = {
        "pooled": rng.standard_normal((5, 4)).astype(np.float32),
        "frames": rng.standard_normal((5, 2, 4)).astype(np.float16),
        "tokens": rng.standard_normal((5, 3, 2)).astype(np.float16),
    }
    clips = {f"clip-{i}": "m" for i in range(5)}
    return seal_arrays(folder / "s", clips, {"toy": arrays}, failed={"clip-1": 'no, such "file"'})


def read_store(path: Path) -> None:
    """Open a store, read all of it, verify it."""
    try:
        store = open_store(path)
        assert len(store.clips) >= 0
        for name in store:
            group = store[name]
            for array in (*group.arrays, "time_s", "frame_index"):
                group.raw(array)
            for clip in group.clip_ids[:2]:
                group.read(clip, group.arrays[0])
    except StoreError:
        pass
    verify(path, "full")


def read_staging(path: Path) -> None:
    """Read a stage and seal it."""
    stage = read_stage(path)
    stage.status()
    stage.damage()
    stage.missing()
    seal(path, path.with_name("again"), licence="MIT", allow_missing=True)


def file_target(path: Path, read: Callable[[], object], undo: Callable[[], object] = lambda: None) -> Target:
    """Write the bytes to a file, read it, put everything back."""
    good = path.read_bytes()

    def run(data: bytes) -> None:
        path.write_bytes(data)
        try:
            read()
        except (StoreError, ManifestError):
            pass
        finally:
            path.write_bytes(good)
            undo()

    return run


def targets(folder: Path) -> dict[str, tuple[bytes, Target]]:
    """Give name -> (a good file, what reads it)."""
    store = make_store(folder)
    stage = folder / "s.staging"
    journal = next((stage / "journal").iterdir())

    def unseal() -> None:
        import shutil

        for left in folder.glob("again*"):
            shutil.rmtree(left)
        for extra in (stage / "journal").iterdir():
            if extra != journal:
                extra.unlink()

    manifest = folder / "m.csv"
    manifest.write_text(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,note\n"
        "a-1,a,a/1.mp4,0.0,1.5,S,Look;Body,x,hm\n"
        'b-2,b,"b, 2.mp4",,,EN,,,"a\n"\n',
        encoding="utf-8",
    )
    np.save(folder / "x.npy", np.ones((3, 4), np.float32))
    with h5py.File(folder / "x.h5", "w") as file:
        for clip in "abc":
            file[f"{clip}/pooled"] = np.ones(4, np.float32)

    def read_hdf5() -> None:
        with hdf5_pieces(folder / "x.h5") as (found, _):
            for piece in found.values():
                piece.load()

    zarr = store / "data/features.zarr"
    found = {"manifest": file_target(manifest, lambda: read_manifest(manifest))}
    paths = {"manifest": manifest, "npy": folder / "x.npy", "hdf5": folder / "x.h5"}
    found["npy"] = file_target(paths["npy"], lambda: read_npy(folder / "x.npy"))
    found["hdf5"] = file_target(paths["hdf5"], read_hdf5)
    for name, path in {
        "root": zarr / "zarr.json",
        "group": zarr / "toy/zarr.json",
        "array": zarr / "toy/frames/zarr.json",
        "ids": zarr / "toy/clip/c/0",
        "shard": zarr / "toy/tokens/c/0/0/0",
        "clips.csv": store / "data/clips.csv",
        "bag-info": store / "bag-info.txt",
        "digests": store / "manifest-sha256.txt",
    }.items():
        paths[name] = path
        found[name] = file_target(path, lambda: read_store(store))
    for name, path in {
        "journal": journal,
        "plan": stage / "plan.jsonl",
        "staged": stage / "stage.zarr/toy/pooled/zarr.json",
    }.items():
        paths[name] = path
        found[name] = file_target(path, lambda: read_staging(stage), unseal)
    return {name: (paths[name].read_bytes(), run) for name, run in found.items()}


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a file a little; half of the time by its structure, where it is JSON."""
    if data[:1] == b"{" and rng.random() < 0.5:
        try:
            return mutate_json(data, rng)
        except ValueError:
            pass
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(6):
            case 0:
                changed[at : at + rng.randint(1, 40)] = b""
            case 1:
                changed[at:at] = rng.choice(PIECES)
            case 2 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 3:
                begin = rng.randrange(len(changed) + 1)
                changed[at:at] = changed[begin : begin + rng.randint(1, 200)]
            case 4 if rng.random() < 0.2:
                del changed[at:]
            case _:
                changed[at : at + 4] = rng.randbytes(4)
    return bytes(changed)


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Replace one value anywhere in a JSON document, or in one line of them (with a right checksum)."""
    if data.startswith(b'{"crc32"'):
        from obygaze_features.store.lines import frame

        lines = data.splitlines()
        at = rng.randrange(len(lines))
        entry = json.loads(lines[at])["entry"]
        entry = replace_one(entry, rng)
        try:
            lines[at] = frame(entry).rstrip(b"\n")
        except UnicodeEncodeError:
            return data
        return b"\n".join(lines) + b"\n"
    document = json.loads(data)
    if rng.random() < 0.2:
        return json.dumps(
            resized(document, rng.choice((2, 3, 4, 5)), rng.choice((2**27, 2**31, 2**40)))
        ).encode()
    for _ in range(rng.randint(1, 3)):
        document = replace_one(document, rng)
    return json.dumps(document).encode()


def resized(node: object, old: int, new: int) -> object:
    """Say another size everywhere: metadata that agree with themselves get further."""
    if isinstance(node, dict):
        return {key: resized(item, old, new) for key, item in node.items()}
    if isinstance(node, list):
        return [resized(item, old, new) for item in node]
    return new if node == old and not isinstance(node, bool) else node


def replace_one(document: object, rng: random.Random) -> object:
    """Walk down at random and replace what is there."""
    document = copy.deepcopy(document)
    node, holder, key = document, None, None
    while isinstance(node, dict | list) and node and rng.random() < 0.85:
        holder, key = node, rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = node[key]
    if holder is None:
        return rng.choice(ODD)
    if isinstance(holder, dict) and rng.random() < 0.15:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(rng.choice(ODD))
    return document


def guard(folder: Path) -> None:
    """Forbid this process more memory, and to write outside the folder."""
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGALRM, hang)
    sys.addaudithook(lambda event, words: audit(event, words, str(folder)))


def hang(_signal: int, _frame: FrameType | None) -> None:
    """Say that an input took too long."""
    raise Hang


def audit(event: str, words: tuple[object, ...], folder: str) -> None:
    """Stop at anything that writes elsewhere, or starts a program."""
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.fork"):
        raise StrayWriteError(f"{event} of {words}")
    writes = event in ("os.rename", "os.mkdir", "os.link", "os.symlink", "os.truncate")
    if event == "open" and isinstance(words[2], int):
        writes = bool(words[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if writes and isinstance(words[0], str | bytes):
        path = Path(os.fsdecode(words[0])).resolve()
        if not path.is_relative_to(folder) and path != Path(os.devnull):
            raise StrayWriteError(f"{event} of {path}")


def fuzz(name: str, seconds: float, seed: int) -> None:
    """Mutate one target's file until the time is over; print every new kind of finding."""
    warnings.simplefilter("ignore")
    logging.disable()
    rng = random.Random(f"{name} {seed}")
    os.fsync = lambda _: None  # type: ignore[assignment]  # no power cut is expected, and waiting is dear
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        good, run = targets(folder)[name]
        run(good)
        guard(folder)
        end = time.monotonic() + seconds
        runs, slowest, seen = 0, 0.0, set()
        while time.monotonic() < end:
            data = mutate(good, rng)
            begin = time.monotonic()
            signal.alarm(HANGS_S)
            try:
                run(data)
            except BaseException as error:  # noqa: BLE001 - that is what is looked for
                where = traceback.extract_tb(error.__traceback__)[-1]
                kind = (type(error).__name__, where.filename, where.lineno)
                if kind not in seen:
                    seen.add(kind)
                    print(f"{name}: FINDING {type(error).__name__}: {str(error)[:200]}")
                    print(f"    {where.filename}:{where.lineno}")
                    for frame in traceback.extract_tb(error.__traceback__):
                        if "obygaze" in frame.filename:
                            print(f"    {frame.filename}:{frame.lineno} {frame.line}")
                    print(f"    {data[:400]!r}", flush=True)
            finally:
                signal.alarm(0)
            runs += 1
            slowest = max(slowest, time.monotonic() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{name}: {runs} inputs, {len(seen)} findings, slowest {slowest:.2f} s, peak {peak} MB",
            flush=True,
        )


def guided(name: str, seconds: float) -> None:
    """Let atheris choose the inputs."""
    import atheris

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        corpus = folder / "corpus"
        corpus.mkdir()
        good, run = targets(folder)[name]
        (corpus / "good").write_bytes(good)
        atheris.instrument_all()
        atheris.Setup(
            [
                sys.argv[0],
                f"-max_total_time={seconds:.0f}",
                "-max_len=20000",
                "-rss_limit_mb=1500",
                "-timeout=20",
                str(corpus),
            ],
            run,
        )
        atheris.Fuzz()


def main() -> None:
    """Fuzz every target asked for, one after another."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=float, default=300, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", action="store_true", help="one target, guided by coverage")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        names = asked.targets or list(targets(Path(place)))
    if asked.atheris:
        guided(names[0], asked.seconds)
        return
    context = multiprocessing.get_context("spawn")
    for name in names:
        child = context.Process(target=fuzz, args=(name, asked.seconds / len(names), asked.seed))
        child.start()
        child.join()
        if child.exitcode:
            print(f"{name}: FINDING the process ended with {child.exitcode}")


if __name__ == "__main__":
    main()
