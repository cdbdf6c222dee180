"""What survive.py spoils: full disks, folders not to be written, files not to be read, clocks put back."""

import contextlib
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from survive_processes import Running, Steps, ask, content
from survive_works import COPIED, Work

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store

NOBODY = 65534
FRACTIONS = (0.02, 0.3, 0.9)
"""Of the room that the result takes: full at the beginning, in the middle, and towards the end."""
LATER = 4e9
"""A time of modification far in the future: what one finds whose clock was put back."""

DENIED = {
    "seal": "{trial}/toy.staging/pieces/0.*.rows",
    "pack": "{inputs}/toy-1.0.0/data/clips.csv",
    "unpack": "{inputs}/toy-1.0.0.zip",
    "merge": "{inputs}/b-1.0.0/data/features.zarr/toy/frames/c/0/0/0",
    "import": "{inputs}/npy/clip-0003.npy",
    "export": "{inputs}/toy-1.0.0/data/features.zarr/toy/tokens/c/1/0/0",
    "push": "{inputs}/toy-1.0.0/data/features.zarr/toy/tokens/c/1/0/0",
}
"""A file that each work needs; a star stands for the writer."""

Hook = Callable[[], None]


def room_of(path: Path) -> int:
    """Count the bytes that a file or a folder takes on a disk with pages of 4 KiB."""
    files = [path] if path.is_file() else [node for node in path.rglob("*") if node.is_file()]
    return sum(-(-file.stat().st_size // 4096) * 4096 for file in files)


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[], None]]:
    """Mount a small file system on a folder; yield what makes it large."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield lambda: subprocess.run(
            ["mount", "-o", "remount,size=256m", str(folder)], check=True, capture_output=True
        )
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def may_mount(folder: Path) -> bool:
    """Whether a file system can be mounted here."""
    probe = folder / "probe"
    probe.mkdir()
    try:
        with small_disk(probe, 4096):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
    finally:
        probe.rmdir()


def smaller_files(most: int) -> Hook:
    """Forbid files of more bytes: what a quota does, and needs no rights."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def be_nobody() -> None:
    """Give up the rights of root, whom no permission stops."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def clock_runs_back() -> None:
    """Let every look at the clock show an earlier time."""
    state = [time.time()]

    def earlier() -> float:
        state[0] -= 3600
        return state[0]

    time.time = earlier
    time.time_ns = lambda: int(earlier() * 1e9)


def from_the_future(folder: Path) -> None:
    """Give everything in a folder a time of modification far ahead."""
    for node in folder.rglob("*"):
        os.utime(node, (LATER, LATER))


def begin(name: str, work: Work, inputs: Path, trial: Path) -> None:
    """Put into a trial's folder what the work needs there."""
    if name in COPIED:
        shutil.copytree(inputs / COPIED[name], trial / COPIED[name])
    for before in work.before:
        Running(before(inputs, trial), trial.with_name("said")).finish()


class Faults:
    """One kind of work, spoilt in every way: it must end with one line, and then be done again."""

    def __init__(self, name: str, work: Work, inputs: Path, folder: Path, steps: int, *, quick: bool) -> None:
        self.steps, self.quick = steps, quick
        self.name, self.work, self.inputs, self.folder = name, work, inputs, folder
        self.codes = (0, 3) if name == "extract" else (0,)
        self.errors: list[str] = []
        self.fine = True

    def all(self, truth: str, good: str) -> bool:
        """Try every fault; say whether all went well."""
        self.truth, self.good = truth, good
        mounts = may_mount(self.folder)
        if mounts:
            self.full()
        if not (mounts and self.quick):
            self.smaller()
        self.read_only()
        self.denied()
        self.clock()
        print(
            f"{self.name}, spoilt: {'right' if self.fine else 'WRONG'}; {len(self.errors)} errors, such as:"
        )
        for error in self.errors[:: max(1, len(self.errors) - 1)]:
            print(f"    {error}", flush=True)
        return self.fine

    def full(self) -> None:
        """Fill the disk, then make room again."""
        for fraction in FRACTIONS[1:2] if self.quick else FRACTIONS:
            with self.trial(f"full-{fraction}") as trial:
                begin(self.name, self.work, self.inputs, trial)
                copied = room_of(trial)
                shutil.rmtree(trial)
                trial.mkdir()
                needed = room_of(Path(self.truth)) - (copied if self.work.before else 0)
                size = copied + max(4096, int(fraction * needed) - 4096)
                with small_disk(trial, size) as enlarge:
                    begin(self.name, self.work, self.inputs, trial)
                    self.refused(trial)
                    enlarge()
                    self.done(trial)

    def smaller(self) -> None:
        """Limit the size of files."""
        for most in (1500,) if self.quick else (300, 1500, 4000):
            with self.trial(f"smaller-{most}") as trial:
                begin(self.name, self.work, self.inputs, trial)
                self.refused(trial, smaller_files(most))
                self.done(trial)

    def read_only(self) -> None:
        """Forbid to write the folder."""
        with self.trial("read-only") as trial:
            begin(self.name, self.work, self.inputs, trial)
            nodes = [trial, *trial.rglob("*")]
            modes = [node.stat().st_mode for node in nodes]
            for node, mode in zip(nodes, modes, strict=True):
                node.chmod(mode & ~0o222)
            self.refused(trial, be_nobody)
            for node, mode in zip(nodes, modes, strict=True):
                node.chmod(mode)
            self.done(trial)

    def denied(self) -> None:
        """Forbid to read a file."""
        if self.name not in DENIED:
            return
        with self.trial("denied") as trial:
            begin(self.name, self.work, self.inputs, trial)
            trial.chmod(0o777)
            for node in trial.rglob("*"):
                node.chmod(0o777 if node.is_dir() else 0o666)
            wanted = Path(DENIED[self.name].format(inputs=self.inputs, trial=trial))
            file = next(wanted.parent.glob(wanted.name))
            mode = file.stat().st_mode
            file.chmod(0)
            self.refused(trial, be_nobody, names=file.name)
            file.chmod(mode)
            self.done(trial)

    def clock(self) -> None:
        """Put the clock back, over work that a kill interrupted."""
        with self.trial("clock") as trial:
            begin(self.name, self.work, self.inputs, trial)
            self.start(trial, Steps(self.folder, self.steps // 2)).finish(self.codes)
            from_the_future(trial)
            if self.name == "pull-more" or not Path(self.place(trial)).exists():
                self.start(trial, clock_runs_back).finish(self.codes)
            self.judge(ask(content, self.place(trial)) == self.good, "the clock")

    @contextlib.contextmanager
    def trial(self, called: str) -> Iterator[Path]:
        """Have a folder for a trial."""
        trial = self.folder / f"{self.name}-{called}"
        trial.mkdir()
        try:
            yield trial
        finally:
            shutil.rmtree(trial)

    def place(self, trial: Path) -> str:
        """Say where the result will be."""
        return str(trial / self.work.result)

    def start(self, trial: Path, first: Hook = lambda: None) -> Running:
        """Start the command."""
        said = self.folder / "said"
        said.unlink(missing_ok=True)
        return Running(self.work.words(self.inputs, trial), said, first)

    def refused(self, trial: Path, first: Hook = lambda: None, names: str = "") -> None:
        """Run what cannot be done: one line for the user, exit code 1, and no torn store."""
        running = self.start(trial, first)
        running.process.join()
        said = running.said.read_text(encoding="utf-8")
        lines = [line for line in said.splitlines() if line.strip()]
        plain = running.process.exitcode == 1 and len(lines) == 1 and lines[0].startswith("obygaze: error: ")
        self.judge(plain and names in said, f"{trial.name}: exit code {running.process.exitcode}, {said}")
        self.errors += [line.replace(str(self.folder), "...") for line in lines[:1]]
        self.judge(ask(whole_or_none, self.place(trial), self.good), f"{trial.name}: a torn store is there")

    def done(self, trial: Path) -> None:
        """Run it again, and compare."""
        self.start(trial).finish(self.codes)
        self.judge(ask(content, self.place(trial)) == self.good, f"{trial.name}: another result")

    def judge(self, fine: bool, what: str) -> None:
        """Note what went wrong."""
        if not fine:
            self.fine = False
            print(f"{self.name}: WRONG, {what}", flush=True)


def whole_or_none(place: str, good: str) -> bool:
    """Whether there is nothing to be opened, or something whole."""
    if place.endswith(".h5"):
        return not Path(place).exists()
    try:
        open_store(place)
    except (StoreError, OSError):
        return True
    return content(place) == good
