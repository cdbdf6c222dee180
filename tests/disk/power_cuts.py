"""Log one kind of work, cut the power at every moment, and judge what is left."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from obygaze_features.store import read_stage
from obygaze_features.store.journal import is_done

from .harness import Runner, Tree, Work, begin, is_sound_partial_copy, lost_records, tree
from .replay import Disk, Log, before_of

STAGE = "new/toy.staging"
DONE = 0
REFUSED = 1
"""Exit code of a command that ends with one line of error."""


@dataclass(frozen=True)
class Cut:
    """A power cut: after which moment, which of the disks it may leave (their number), and that disk."""

    moment: int
    disk_number: int
    disk: Disk


class Cuts:
    """Power cuts during one kind of work."""

    def __init__(self, runner: Runner, work: Work, inputs: Path, folder: Path) -> None:
        """Do the work once, undisturbed, below `folder`, and log what it does to the disk."""
        self._runner = runner
        self._work = work
        self._inputs = inputs
        self._trial = folder / "trial"
        self._complaints: dict[object, str] = {}
        folder.mkdir(exist_ok=True)
        begin(work, inputs, self._trial)
        before = before_of(self._trial)
        self.old = tree(self._trial / work.result)

        answer = self._ask(log=str(folder / "log"))
        assert answer["code"] == DONE, answer["said"]

        self.truth: Tree = tree(self._trial / work.result) or {}
        self.log = Log(self._trial, before, folder / "log")
        self._check_that_the_log_is_complete()
        rmtree(self._trial)

    def _check_that_the_log_is_complete(self) -> None:
        """Replay all of the log, and compare with the folder in which it was written."""
        replayed = self.log.disk(len(self.log.moments), lambda _: True)
        assert replayed.files() == tree(self._trial)

    def every_cut(self, seed: int = 0) -> Iterator[Cut]:
        """Yield every power cut that is tried: after each moment, with each disk that it may leave.

        What had not been forced to the disk is there or not, by chance (`seed`).
        """
        rng = random.Random(seed)
        for moment in range(len(self.log.moments)):
            for disk_number, disk in enumerate(self.log.disks(moment, rng)):
                yield Cut(moment, disk_number, disk)

    def complaint_about_result(self, cut: Cut) -> str:
        """Look at the disk after a cut; return a complaint, or "" if the result is absent, old or whole."""
        lost = self._lost_from_stage(cut)
        if lost:
            return lost
        found = cut.disk.files(self._work.result)
        was_reported_done = cut.moment >= self.log.marks["exit 0"]
        if found == self.truth:
            return ""
        if was_reported_done:
            return "was said to be done, and is not whole"
        if found in (None, self.old) or is_sound_partial_copy(found, self.old, self.truth):
            return ""
        return f"torn: {sorted(name for name in found if found[name] != self.truth.get(name))[:3]}"

    def _lost_from_stage(self, cut: Cut) -> str:
        """Open the stage that a cut leaves, and return which promises of the work it does not keep, or "".

        The promises are marks of the log: "made" (the stage opens), "had CLIP" (the clip is recorded) and
        "had CLIP ok" (its rows can be read). Only works that make a stage mark "made"; the records of the
        others are seen by `unlike`, whose next run says what it finds.
        """
        if "made" not in self.log.marks:
            return ""
        marks = self._marks_until(cut)
        promises = [text for text in marks if text == "made" or text.startswith("had ")]
        if not promises:
            return ""
        # Many cuts leave the same stage; each is opened once.
        files = cut.disk.files(STAGE) or {}
        key = (*promises, *files.items())
        if key not in self._complaints:
            cut.disk.put(self._trial)
            kept = self._kept_by_stage()
            rmtree(self._trial)
            lost = [text for text in promises if text not in kept]
            self._complaints[key] = f"lost what was committed: {lost}" if lost else ""
        return self._complaints[key]

    def _kept_by_stage(self) -> set[str]:
        """List the promises that the stage on the disk keeps, in the words of the marks."""
        stage = read_stage(self._trial / STAGE)
        reader = stage.reader()
        kept = {"made"}
        for clip, entry in stage.status().items():
            kept.add(f"had {clip}")
            small_rows = reader.small_rows(entry)
            sharded_rows = [reader.sharded_row(entry, array) for array in stage.layout.sharded_arrays]
            # None stands for bytes that differ from their digest.
            is_readable = small_rows is not None and None not in sharded_rows
            if is_done(entry) and is_readable:
                kept.add(f"had {clip} ok")
        return kept

    def difference_after_next_run(self, cut: Cut) -> str:
        """Run the work again after a cut; return how its end differs from undisturbed work, or ""."""
        rmtree(self._trial, ignore_errors=True)
        cut.disk.put(self._trial)
        left = cut.disk.files(self._work.result)

        # A partial copy may be used before it is completed: what is there of it must be right.
        if is_sound_partial_copy(left, self.old, self.truth):
            verify = ["store", "verify", "--full", str(self._trial / self._work.result)]
            checked = self._runner.ask(self._trial, words=verify)
            if checked["code"] != DONE:
                return f"is refused by verify: {checked['said']}"

        answer = self._ask()
        ending = f"the next run ends with {answer['code']}"

        # What was recorded before the cut must be found after it, not be made again.
        lost = lost_records(self._marks_until(cut), answer["marks"])
        if lost:
            return f"lost what was committed: {lost}"

        if tree(self._trial / self._work.result) != self.truth:
            return f"{ending} and another result: {answer['said'][-800:]}"

        # Where the cut left the whole result, the next run may refuse to write over it.
        is_refused_as_existing = left == self.truth and answer["code"] == REFUSED
        if answer["code"] != DONE and not is_refused_as_existing:
            return f"{ending}: {answer['said'][-800:]}"
        return ""

    def _marks_until(self, cut: Cut) -> Iterable[str]:
        return [text for text, moment in self.log.marks.items() if moment <= cut.moment]

    def _ask(self, **more: Any) -> Mapping[str, Any]:
        request = {**self._work.asked(self._inputs, self._trial), "exits": self._work.exits}
        return self._runner.ask(self._trial, **request, **more)
