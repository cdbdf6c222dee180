"""Kill, flip, start twice: does a store survive? Every trial must end in what an undisturbed one gives.

- extract, seal, pack, unpack, pull, pull-zip, pull-more (the rest of a partial copy), merge, import, export,
  push, push-s3: the command is killed (SIGKILL, its whole group or the first process alone) at a random step
  (a file opened, written, renamed or removed) and started again, up to three times; then it is let finish. A
  reader looks all the while: whatever it can open must hold nothing but whole clips. Then the same is started
  twice at once, as if by mistake, and spoilt: a full disk, a limit to the size of files, a folder or file
  that may not be used, a clock put back;
- flips: one random bit of a random file of a sealed store is flipped, and `verify --full` must name the file;
- zip-flips: the same in its zip, a third of the bits each in headers, data and directory.

    python benchmarks/survive.py [kinds...] [--number 50] [--flips 1000] [--seed 0] [--quick]

Exit code 1 if anything was torn, wrong, or not found.
"""

import argparse
import ctypes
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from survive_faults import Faults, begin
from survive_flips import flips, zip_flips
from survive_processes import FORK, Running, Steps, ask, content, servers, undisturbed, watch
from survive_works import COPIED, Work, make_corpus, make_inputs, works

KILLS = ["extract", "seal", "pack", "unpack", "pull", "pull-zip", "pull-more"]
KILLS += ["merge", "import", "export", "push", "push-s3"]
UNFINISHED = {"staging", "building", "pulling", "merging", "importing", "partial"}
"""Endings of what is worked on."""


@dataclass
class Tally:
    """What was counted over the trials of one kind of work."""

    kills: int = 0
    wrong: int = 0
    litter: int = 0
    when: Counter[str] = field(default_factory=Counter)


class Trials:
    """One kind of work, killed again and again, each trial in a folder of its own."""

    def __init__(self, name: str, work: Work, inputs: Path, folder: Path) -> None:
        self.name, self.work, self.inputs, self.folder = name, work, inputs, folder
        self.codes = (0, 3) if name == "extract" else (0,)
        self.tally = Tally()
        self.seen = FORK.Array(ctypes.c_long, 2, lock=False)
        trial = self.begin("undisturbed")
        steps = Steps(self.folder)
        self.start(trial, steps).finish(self.codes)
        self.truth, self.steps = self.place(trial), steps.done.value
        self.good = ask(content, self.truth)

    def begin(self, called: str) -> Path:
        """Make the folder of a trial."""
        trial = self.folder / f"{self.name}-{called}"
        trial.mkdir()
        begin(self.name, self.work, self.inputs, trial)
        return trial

    def place(self, trial: Path) -> str:
        """Say where the result of a trial will be."""
        made = self.work.result
        return made.format(trial.name) if "://" in made else str(trial / made)

    def start(self, trial: Path, first: Callable[[], None] = lambda: None, said: str = "said") -> Running:
        """Start the command."""
        return Running(self.work.words(self.inputs, trial), self.folder / said, first)

    def kill(self, number: int, rng: np.random.Generator) -> bool:
        """Kill the command so often; say whether all went well."""
        trials = 0
        while self.tally.kills < number:
            trials += 1
            trial = self.begin(str(trials))
            stop = FORK.Event()
            words = (self.place(trial), self.truth, self.good, stop, self.seen)
            reader = FORK.Process(target=watch, args=words, daemon=True)
            reader.start()
            self.disturb(trial, min(3, number - self.tally.kills), rng)
            done = self.is_done(trial)
            self.start(trial).finish((1, *self.codes) if done else self.codes)
            stop.set()
            reader.join()
            assert reader.exitcode == 0
            self.tally.wrong += ask(content, self.place(trial)) != self.good
            kept = {Path(self.work.result).name, *COPIED.values(), "out.staging"}
            self.tally.litter += any(path.name not in kept for path in trial.iterdir())
            shutil.rmtree(trial)
        print(
            f"{self.name}: {self.tally.kills} kills in {trials} trials of {self.steps} steps "
            f"({dict(self.tally.when)}); {self.tally.wrong} wrong, {self.tally.litter} with litter; a reader "
            f"opened it {self.seen[0]} times and found {self.seen[1]} torn",
            flush=True,
        )
        return not (self.tally.wrong or self.tally.litter or self.seen[1])

    def disturb(self, trial: Path, most: int, rng: np.random.Generator) -> None:
        """Start and kill until it is done, or was killed often enough."""
        for _ in range(most):
            # If alone, its decoders live on for a moment, beside the next run.
            steps = Steps(self.folder, int(rng.integers(1, self.steps + 1)), group=rng.random() < 0.5)
            if self.start(trial, steps).finish(self.codes) != -signal.SIGKILL:
                return
            self.tally.kills += 1
            left = {path.name.rpartition(".")[2] for path in trial.iterdir()} & UNFINISHED
            self.tally.when[", ".join(sorted(left)) or "before or after"] += 1
            if self.is_done(trial):
                return

    def is_done(self, trial: Path) -> bool:
        """Whether it was killed after the end: a second run would be refused."""
        return self.name != "pull-more" and Path(self.place(trial)).exists()

    def twins(self) -> bool:
        """Start the same work twice at once; the result must be right, and who is refused be told so."""
        trial = self.begin("twins")
        both = [self.start(trial, said=f"said-{i}") for i in range(2)]
        codes = [running.finish((0, 1, 3)) for running in both]
        told = [running.said.read_text(encoding="utf-8").strip().splitlines() for running in both]
        errors = [lines[-1] for lines, code in zip(told, codes, strict=True) if code == 1]
        for running in both:
            running.said.unlink()
        if 1 in codes and not self.is_done(trial):  # both were refused: each by what the other began
            self.start(trial).finish(self.codes)
        fine = ask(content, self.place(trial)) == self.good
        plain = all(line.startswith("obygaze: error: ") for line in errors)
        print(
            f"{self.name}, twice at once: ended with {codes}, {'right' if fine else 'WRONG'}; "
            f"{'; '.join(errors)}",
            flush=True,
        )
        return fine and plain


def main() -> None:
    """Run the trials asked for and print a line of figures for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", default=[*KILLS, "flips", "zip-flips"])
    parser.add_argument("--number", type=int, default=50, help="kills of each kind")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--clips", type=int, default=12, help="to extract")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="fewer faults, and no waiting for the disk")
    asked = parser.parse_args()
    if asked.quick:
        os.fsync = lambda _descriptor: None  # a kill is not a power cut
    fine = True
    with tempfile.TemporaryDirectory() as name:
        folder, inputs = Path(name), Path(name) / "inputs"
        inputs.mkdir()
        folder.chmod(0o755)  # some trials are not root's
        ask(make_inputs, inputs, undisturbed)
        if "extract" in asked.kinds:
            ask(make_corpus, inputs / "films", asked.clips, undisturbed)
        words: list[object] = ["extract", inputs / "films" / "few.csv", "--licence", "CC0-1.0"]
        words += ["--corpus", "few", "--batch-size", 2, "--workers", 1]
        with servers(inputs, s3="push-s3" in asked.kinds) as places:
            found = works(places["site"], "s3://bucket", words)
            for kind in asked.kinds:
                rng = np.random.default_rng(asked.seed)
                if kind in found:
                    trials = Trials(kind, found[kind], inputs, folder)
                    if asked.number:
                        fine &= trials.kill(asked.number, rng)
                    if kind != "push-s3":  # the others work on this machine's files alone
                        fine &= trials.twins()
                        faults = Faults(kind, found[kind], inputs, folder, trials.steps, quick=asked.quick)
                        fine &= faults.all(trials.truth, trials.good)
                else:
                    look = {"flips": flips, "zip-flips": zip_flips}[kind]
                    fine &= ask(look, inputs, asked.flips, asked.seed)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
