"""Commands and readers in processes of their own, which survive.py disturbs."""

import contextlib
import ctypes
import hashlib
import importlib
import io
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import numpy as np
from survive_works import serve

from obygaze.cli import main as obygaze
from obygaze_features.errors import StoreError
from obygaze_features.io import sha256_of
from obygaze_features.store import open_store, verify
from obygaze_features.store.arrays import row_view

# What Python imports late, nobody may not read, where Python is root's.
for module in ("encodings.utf_8_sig", "encodings.cp437", "importlib.readers"):
    importlib.import_module(module)
COMMANDS = ("extract_command", "store_combine", "store_exchange", "store_transfer")
EXCHANGE = ("export", "import_features", "import_tables", "merge", "publish", "transfer")
for module in (
    "extraction",
    *(f"commands.{name}" for name in COMMANDS),
    *(f"exchange.{name}" for name in EXCHANGE),
):
    importlib.import_module(f"obygaze_features.{module}")
# Rooms load a module when one of its names is asked for.
for room in ("manifest", "store", "exchange", "extraction"):
    offered = importlib.import_module(f"obygaze_features.{room}")
    for name in offered.__all__:
        getattr(offered, name)

# Every command runs in a fork of this process, which has imported all and opens no store itself: zarr's
# threads would not survive a fork. A start costs milliseconds then, and a kill hits work, not imports.
FORK = multiprocessing.get_context("fork")


class Running:
    """A command in a process of its own, and what it said."""

    def __init__(self, words: list[object], said: Path, first: Callable[[], None] = lambda: None) -> None:
        self.said = said
        self.process = FORK.Process(target=self._run, args=([str(word) for word in words], first))
        self.process.start()

    def _run(self, words: list[str], first: Callable[[], None]) -> None:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        first()
        obygaze(words)

    def finish(self, codes: tuple[int, ...] = (0,)) -> int:
        """Wait for the end; fail if it ends with another code."""
        self.process.join()
        code = self.process.exitcode
        if code is None or (code not in codes and code != -signal.SIGKILL):
            raise SystemExit(f"exit code {code}\n{self.said.read_text(encoding='utf-8')}")
        return code


STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
"""What Python's audit knows of work on files."""


@dataclass(frozen=True)
class Steps:
    """Count what a command does to files, in its own process, and kill it at one step: no clock decides.

    A step is a file below `folder` that is opened, renamed, removed or made, or any `os.write`. Threads share
    the work, so two runs may differ a little in their number.
    """

    folder: Path
    kill_at: int = 0
    group: bool = False
    done: Any = field(default_factory=lambda: FORK.Value(ctypes.c_long))

    def __call__(self) -> None:
        """Begin to count; called in the process."""
        write = os.write

        def counted(descriptor: int, data: Any, /) -> int:
            self._step()
            return write(descriptor, data)

        def hook(event: str, given: tuple[Any, ...]) -> None:
            if event in STEPS and str(given[0]).startswith(str(self.folder)):
                self._step()

        os.write = counted
        sys.addaudithook(hook)

    def _step(self) -> None:
        with self.done:
            self.done.value += 1
            if self.done.value != self.kill_at:
                return
        (os.killpg if self.group else os.kill)(os.getpid(), signal.SIGKILL)


def ask(function: Callable[..., Any], *words: Any) -> Any:
    """Call a function in a process of its own."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=lambda: theirs.send(function(*words)))
    process.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        raise SystemExit(f"{function.__name__}{words} failed") from None
    finally:
        process.join()


def undisturbed(words: list[str]) -> None:
    """Run obygaze in this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        obygaze(words)


def content(place: str) -> str:
    """Digest what work made, after checking it in full."""
    if place.endswith(".h5"):
        return hashlib.sha256(Path(place).read_bytes()).hexdigest()
    report = verify(place, "full")
    assert report.ok, report.problems
    return report.fingerprint


def watch(place: str, truth: str, good: str, stop: Event, seen: Any) -> None:
    """Open what is there again and again; count what opens, and every clip that is not as in `truth`."""
    if place.endswith(".h5"):
        while not stop.is_set():
            if Path(place).exists():
                seen[0] += 1
                seen[1] += content(place) != good
            time.sleep(0.005)
        return
    digests = {clip.clip_id: clip.digests for clip in open_store(truth).clips}
    while not stop.wait(0.005):
        try:
            store = open_store(place)
        except (StoreError, OSError):
            continue
        seen[0] += 1
        with contextlib.suppress(StoreError, OSError):  # not there yet, and said so
            seen[1] += store.fingerprint != good
        for name in store:
            with contextlib.suppress(StoreError, OSError):
                group = store[name]
                for clip in np.array(group.clip_ids)[group.usable].tolist():
                    for array in group.arrays:
                        with contextlib.suppress(StoreError, OSError):
                            found = sha256_of(row_view(group.read(clip, array)))
                            seen[1] += found != digests[clip][f"{name}/{array}"]


@contextlib.contextmanager
def servers(inputs: Path, *, s3: bool) -> Iterator[dict[str, str]]:
    """Have the inputs served; the environment then says where S3 is."""
    ours, theirs = FORK.Pipe()
    server = FORK.Process(target=serve, args=(inputs, theirs), kwargs={"s3": s3})
    server.start()
    theirs.close()
    places: dict[str, str] = ours.recv()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": places["s3"],
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        yield places
    finally:
        ours.send("")
        server.join(5)
        server.kill()
