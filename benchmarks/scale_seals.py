"""Seals of one stage, each of a copy: the most disk space that one takes, and one that is killed many times.

Nothing depends on time. The disk is measured whenever rows of the stage are about to be freed, as what is
taken only grows in between. A killed seal is killed (SIGKILL, in the middle of a write if it is one) at a
counted call to the system: most of them while parts are written, the last ones after that.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from obygaze_features.io import file_sha256
from obygaze_features.store import part_writer as parts
from obygaze_features.store import seal, sealing, writer

CALLS = ("write", "fsync", "replace", "rename", "unlink", "mkdir")
LATE = 3
"""How many of the kills hit what is done after the parts: tables, the bag, the rename, the removal."""
WALKED_CLIPS = 20_000
"""Up to so many clips every part is looked at; of more, some."""


def room(folder: Path) -> int:
    """Count the bytes that a folder takes on the disk."""
    total = 0
    for place, _, names in os.walk(folder):  # what vanishes meanwhile is left out
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += 512 * Path(place, name).lstat().st_blocks
    return total


def disk(folder: Path, copy: Path, n_clips: int) -> float:
    """Seal a copy with --consume; return the most disk space taken, in stores."""
    _copied(folder, copy)
    most, calls = 0, 0
    every = max(1, n_clips // WALKED_CLIPS)

    def look() -> None:
        nonlocal most
        most = max(most, room(copy))

    free, remove = writer.Consumption.free, sealing.remove_tree

    def freed(self: Any, name: str, lines: Any) -> None:
        nonlocal calls
        calls += 1
        if calls % every == 0:
            look()
        free(self, name, lines)

    def removed(place: Path, **how: Any) -> None:
        look()
        remove(place, **how)

    writer.Consumption.free = freed  # type: ignore[method-assign]  # looks at the disk first
    sealing.remove_tree = removed
    try:
        sealed = seal(None, copy / "s", licence="NOASSERTION", consume=True)
        look()
    finally:
        writer.Consumption.free = free  # type: ignore[method-assign]  # as it was
        sealing.remove_tree = remove
    taken = room(sealed)
    shutil.rmtree(copy)
    return most / taken


def kills(folder: Path, copy: Path, times: int) -> dict[str, float]:
    """Kill the sealing of a copy so many times; compare its bytes and its work with an undisturbed one's.

    Raises
    ------
    SystemExit
        If the stores differ, a seal was not killed as planned, or parts were written again.
    """
    _copied(folder, copy)
    undisturbed = _sealed(copy, 0, "parts")
    expected = _digests(copy / "s-1.0.0")
    shutil.rmtree(copy)
    _copied(folder, copy)
    rng = np.random.default_rng(0)
    early = times - LATE
    step = undisturbed["parts calls"] // (early + 1)
    plan = [("parts", int(step * rng.uniform(0.5, 1.3))) for _ in range(early)]
    plan += [("after", int(undisturbed["after calls"] * share)) for share in (0.1, 0.6, 0.98)[:LATE]]
    killed = 0
    for where, call in plan:
        killed += _sealed(copy, call, where) == {}
    last = _sealed(copy, 0, "parts")
    written = len((copy / "written").read_text(encoding="utf-8").splitlines())
    cpu = sum(map(float, (copy / "cpu").read_text(encoding="utf-8").split()))
    same = _digests(copy / "s-1.0.0") == expected
    shutil.rmtree(copy)
    found = {
        "kills": killed,
        "parts": undisturbed["parts"],
        "parts begun in all": written,
        "seal s": undisturbed["cpu"],
        "last seal s": last["cpu"],
        "measured of killed ones s": cpu,
    }
    # At most the parts that were being written when a seal was killed are begun again.
    bound = undisturbed["parts"] + killed * (os.cpu_count() or 1)
    if not same or killed != times or written > bound:
        sys.exit(
            f"same bytes: {same}; {killed} of {times} killed; {written} parts begun, at most {bound}: {found}"
        )
    return found


def _copied(folder: Path, copy: Path) -> None:
    copy.mkdir()
    shutil.copytree(folder / "s.staging", copy / "s.staging")


def _digests(store: Path) -> dict[str, str]:
    return {str(path.relative_to(store)): file_sha256(path) for path in store.rglob("*") if path.is_file()}


def _sealed(copy: Path, call: int, where: str) -> dict[str, float]:
    """Seal in another process that kills itself at a counted call (0: at none); return its facts, or none."""
    words = [sys.executable, __file__, str(copy), str(call), where]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return {}
    if done.returncode:
        sys.exit(done.stderr)
    facts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return facts


_THREAD = threading.local()


def _of_a_part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function's calls to the system as those of a part."""

    def called(*args: Any, **how: Any) -> Any:
        _THREAD.part = True
        try:
            return function(*args, **how)
        finally:
            _THREAD.part = False

    return called


def _run(copy: Path, call: int, where: str) -> None:
    """Seal in this process, counting calls to the system: of the parts' threads, and of what follows them."""
    counted = {"parts": 0, "after": 0, "poured": 0}
    lock, after = threading.Lock(), threading.Event()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **how: Any) -> Any:
            kind = "parts" if getattr(_THREAD, "part", False) else "after" if after.is_set() else ""
            if kind:
                with lock:
                    counted[kind] += 1
                    now = counted[kind] == call and kind == where
                if now:
                    if name == "write":
                        function(args[0], memoryview(args[1])[: len(args[1]) // 2])
                    with (copy / "cpu").open("a", encoding="utf-8") as file:
                        file.write(f"{time.process_time()}\n")
                    os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **how)

        return called

    for name in CALLS:
        setattr(os, name, counting(name, getattr(os, name)))
    punch, pour, tables = writer.punch, parts.PartWriter._pour_into, sealing.write_all_but_parts

    def poured(self: Any, part: Any, lines: Any) -> Any:
        with lock:
            counted["poured"] += 1
            with (copy / "written").open("a", encoding="utf-8") as file:
                file.write(f"{part.file}\n")
        return pour(self, part, lines)

    def begun(*args: Any, **how: Any) -> None:
        after.set()
        tables(*args, **how)

    writer.punch = counting("punch", punch)
    writer.Consumption.free = _of_a_part(writer.Consumption.free)  # type: ignore[method-assign]  # a step that may be killed
    parts.PartWriter.write = _of_a_part(parts.PartWriter.write)  # type: ignore[method-assign]  # another
    parts.PartWriter._pour_into = poured  # type: ignore[method-assign]  # counts
    sealing.write_all_but_parts = begun
    began = time.process_time()
    seal(None, copy / "s", licence="NOASSERTION", consume=True)
    facts = {f"{kind} calls": counted[kind] for kind in ("parts", "after")}
    print(json.dumps({**facts, "parts": counted["poured"], "cpu": time.process_time() - began}))


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
