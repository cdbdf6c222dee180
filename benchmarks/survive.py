"""Kill, flip, fill: does a store survive? Every trial must end in the fingerprint of the undisturbed one.

A small corpus is drawn and extracted once undisturbed. Then, as often as asked:

- kills: `obygaze extract` is killed (SIGKILL, its whole group or the first process alone) after a random time
  and started again, until it ends by itself;
- seals: the same with `obygaze store seal`;
- flips: one random bit of a random file of a sealed store is flipped, and `verify --full` must name the file;
- twins: the same extraction is started twice at once by mistake, and then the same sealing.

After every kill `open_store` must find nothing, or the whole store: anything else is a violation.

    python benchmarks/survive.py [kills seals flips twins] [--number 200] [--flips 1000] [--seed 0]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from obygaze_features.demo import write_corpus
from obygaze_features.store import StoreError, open_store, verify
from obygaze_features.store.testing import seal_arrays

NO_STORE = ("no such store", "a staging folder, not a store yet", "being sealed")


def start(*words: object) -> subprocess.Popen[str]:
    """Run obygaze in a group of processes of its own."""
    command = [sys.executable, "-m", "obygaze", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(*words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run obygaze to its end; fail if it ends with another code."""
    process = start(*words)
    out, err = process.communicate()
    if process.returncode not in codes:
        raise SystemExit(f"{words}: exit code {process.returncode}\n{out}{err}")
    return out + err


def make_corpus(folder: Path, n_clips: int) -> Path:
    """Draw films and write a manifest of their first clips."""
    labels = write_corpus(folder, os.cpu_count() or 1)
    finish("manifest", "import", "folder", folder / "films", "--spans", labels, "--out", folder / "all.csv")
    lines = (folder / "all.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    few = folder / "few.csv"
    few.write_text("".join(lines[:1] + lines[1::7][:n_clips]), encoding="utf-8")
    return few


def violations(store: Path, fingerprint: str) -> int:
    """Count what must never be seen: a store that opens and is not the whole one."""
    try:
        found = open_store(store)
    except StoreError as error:
        return 0 if any(words in str(error) for words in NO_STORE) else 1
    return 0 if found.fingerprint == fingerprint and verify(found.path, "full").ok else 1


def kill_until_done(
    words: tuple[object, ...], rng: np.random.Generator, longest: float, left: int, look: Callable[[], int]
) -> tuple[int, int]:
    """Start and kill a command until it ends by itself; give the kills, and what `look` saw after them."""
    kills = bad = 0
    while kills < left:
        process = start(*words)
        try:
            out, err = process.communicate(timeout=rng.uniform(0, longest))
        except subprocess.TimeoutExpired:
            if rng.random() < 0.5:
                process.kill()  # its decoders live on for a moment, beside the next run
            else:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            bad += look()
            continue
        if process.returncode not in (0, 3):
            raise SystemExit(f"{words}: exit code {process.returncode}\n{out}{err}")
        break
    finish(*words, codes=(0, 3))
    return kills, bad


def kills(folder: Path, manifest: Path, number: int, rng: np.random.Generator) -> None:
    """Kill extractions."""
    words = (
        "extract",
        manifest,
        folder / "whole",
        "--licence",
        "CC0-1.0",
        "--corpus",
        "few",
        "--batch-size",
        2,
    )
    begin = time.perf_counter()
    finish(*words, codes=(0, 3))
    longest = 1.2 * (time.perf_counter() - begin)
    truth = open_store(folder / "whole").fingerprint
    done = bad = trials = wrong = 0
    while done < number:
        trials += 1
        store = folder / f"k{trials}"
        again = (*words[:2], store, *words[3:])
        killed, seen = kill_until_done(again, rng, longest, number - done, partial(violations, store, truth))
        done, bad = done + killed, bad + seen
        wrong += open_store(store).fingerprint != truth or not verify(store, "full").ok
        for path in folder.glob(f"k{trials}*"):
            shutil.rmtree(path)
    print(
        f"extract: {done} kills in {trials} trials; {wrong} wrong fingerprints, {bad} torn stores seen",
        flush=True,
    )


def seals(folder: Path, number: int, rng: np.random.Generator) -> None:
    """Kill sealings."""
    truth = open_store(make_stage(folder, "seal")).fingerprint
    words = ("store", "seal", folder / "seal", "--licence", "CC0-1.0")
    shutil.rmtree(folder / "seal-1.0.0")
    begin = time.perf_counter()
    finish(*words)
    longest = time.perf_counter() - begin
    done = bad = trials = wrong = 0
    phases: Counter[str] = Counter()
    while done < number:
        trials += 1
        shutil.rmtree(folder / "seal-1.0.0", ignore_errors=True)
        process = start(*words)
        try:
            process.communicate(timeout=rng.uniform(0.4 * longest, longest))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
            building = (folder / "seal.building").exists()
            phases["while building" if building else "before or after"] += 1
            bad += violations(folder / "seal-1.0.0", truth) + violations(folder / "seal", truth)
        finish(*words, codes=(0, 1))
        wrong += open_store(folder / "seal").fingerprint != truth
    print(
        f"seal: {done} kills in {trials} trials ({dict(phases)}); {wrong} wrong fingerprints, "
        f"{bad} torn stores",
        flush=True,
    )


def make_stage(folder: Path, name: str) -> Path:
    """Stage and seal random features of all three kinds."""
    rng = np.random.default_rng(1)
    arrays = {
        "pooled": rng.standard_normal((300, 64)).astype(np.float32),
        "frames": rng.standard_normal((300, 2, 64)).astype(np.float16),
        "tokens": rng.standard_normal((300, 8, 16)).astype(np.float16),
    }
    clips = {f"clip-{i:04d}": "m" for i in range(300)}
    return seal_arrays(folder / name, clips, {"toy": arrays}, failed={"clip-0007": "no such file"})


def flips(folder: Path, number: int, rng: np.random.Generator) -> None:
    """Flip bits one at a time; every file is hit as likely as any other, so that small ones are too."""
    store = make_stage(folder, "flips")
    files = sorted(path for path in store.rglob("*") if path.is_file())
    found = named = 0
    kinds: Counter[str] = Counter()
    for _ in range(number):
        path = files[int(rng.integers(len(files)))]
        name = path.relative_to(store).as_posix()
        good = path.read_bytes()
        bit = int(rng.integers(8 * len(good)))
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        problems = verify(store, "full").problems
        found += bool(problems)
        hit = any(
            name in (problem.file, *problem.what.split()) or name in problem.what for problem in problems
        )
        named += hit
        kinds[path.name if path.parent == store or path.name == "zarr.json" else "chunk or table"] += 1
        if not hit:
            print(f"  not named: {name}, bit {bit}: {problems}")
        path.write_bytes(good)
    assert verify(store, "full").ok
    print(
        f"flips: {number} bits in {len(files)} files; {found} found, {named} with the file named; "
        f"{dict(kinds)}",
        flush=True,
    )


def twins(folder: Path, manifest: Path) -> None:
    """Start the same work twice at once."""
    words = ("extract", manifest, folder / "twins", "--licence", "CC0-1.0", "--corpus", "few", "--no-seal")
    both = [start(*words), start(*words)]
    ended = [(process.communicate(), process.returncode) for process in both]
    print("twins: extractions ended with", [code for _, code in ended], flush=True)
    sealing = [start("store", "seal", folder / "twins", "--licence", "CC0-1.0") for _ in range(2)]
    told = [(process.communicate(), process.returncode) for process in sealing]
    print("  sealings ended with", [code for _, code in told], "|", *(out[1].strip() for out, _ in told))
    if (folder / "whole-1.0.0").exists():
        same = open_store(folder / "twins").fingerprint == open_store(folder / "whole").fingerprint
        print("  fingerprint of the undisturbed one:", same, flush=True)
    assert verify(folder / "twins", "full").ok


def main() -> None:
    """Run the trials asked for and print a line of figures for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trials", nargs="*", default=["kills", "seals", "flips", "twins"])
    parser.add_argument("--number", type=int, default=200, help="kills of each kind")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "flips" in asked.trials:
            flips(folder, asked.flips, rng)
        if "seals" in asked.trials:
            seals(folder, asked.number, rng)
        if {"kills", "twins"} & set(asked.trials):
            manifest = make_corpus(folder / "corpus", asked.clips)
            if "kills" in asked.trials:
                kills(folder, manifest, asked.number, rng)
            if "twins" in asked.trials:
                twins(folder, manifest)


if __name__ == "__main__":
    main()
