"""Log one kind of work, cut the power at every moment, and judge what is left."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from obygaze_features.store import read_stage
from obygaze_features.store.journal import is_done

from .harness import Runner, Tree, Work, begin, grown, not_found, tree
from .replay import Disk, Log, before_of

STAGE = "new/toy.staging"


@dataclass(frozen=True)
class Cut:
    """A power cut: after which moment, which of the disks it may leave, and that disk."""

    moment: int
    which: int
    disk: Disk


class Cuts:
    """Power cuts during one kind of work."""

    def __init__(self, runner: Runner, work: Work, inputs: Path, folder: Path) -> None:
        self._runner, self._work, self._inputs = runner, work, inputs
        folder.mkdir(exist_ok=True)
        self._trial = folder / "trial"
        begin(work, inputs, self._trial)
        before = before_of(self._trial)
        self.old = tree(self._trial / work.result)
        answer = self._ask(log=str(folder / "log"))
        assert answer["code"] == 0, answer["said"]
        self.truth: Tree = tree(self._trial / work.result) or {}
        self.log = Log(self._trial, before, folder / "log")
        # The log says all: what it ends with is what is there.
        end = self.log.disk(len(self.log.moments), lambda _: True)
        assert end.files() == tree(self._trial)
        rmtree(self._trial)
        self._folder, self._judged = folder, dict[object, str]()

    def cuts(self, seed: int = 0) -> Iterator[Cut]:
        """Yield every power cut that is tried."""
        rng = random.Random(seed)
        for moment in range(len(self.log.moments)):
            for which, disk in enumerate(self.log.disks(moment, rng)):
                yield Cut(moment, which, disk)

    def torn(self, cut: Cut) -> str:
        """Say what is torn after a power cut; nothing, if there is nothing or all."""
        if lost := self._lost(cut):
            return lost
        found = cut.disk.files(self._work.result)
        done = cut.moment >= self.log.marks["exit 0"]
        if found == self.truth:
            return ""
        if done:
            return "was said to be done, and is not whole"
        if found in (None, self.old) or grown(found, self.old, self.truth):
            return ""
        return f"torn: {sorted(name for name in found if found[name] != self.truth.get(name))[:3]}"

    def _lost(self, cut: Cut) -> str:
        """Say what a stage lost of what was promised before a power cut; `unlike` sees it of other works."""
        if "made" not in self.log.marks:
            return ""
        promised = [text for text, moment in self.log.marks.items() if moment <= cut.moment]
        promised = [text for text in promised if text == "made" or text.startswith("had ")]
        files = cut.disk.files(STAGE) or {}
        key = (*promised, *files.items())
        if not promised or key in self._judged:
            return self._judged.get(key, "")
        cut.disk.put(self._trial)
        stage = read_stage(self._trial / STAGE)
        reader, entries = stage.reader(), stage.status()
        had = {f"had {clip}" for clip in entries}
        for clip, entry in entries.items():
            rows = [
                reader.record(entry),
                *(reader.row(entry, array) for array in stage.layout.sharded_arrays),
            ]
            if is_done(entry) and None not in rows:
                had.add(f"had {clip} ok")
        rmtree(self._trial)
        lost = [text for text in promised if text not in {"made", *had}]
        self._judged[key] = f"lost what was committed: {lost}" if lost else ""
        return self._judged[key]

    def unlike(self, cut: Cut) -> str:
        """Run the work again after a power cut; say in what it does not end as undisturbed work."""
        rmtree(self._trial, ignore_errors=True)
        cut.disk.put(self._trial)
        whole = cut.disk.files(self._work.result) == self.truth
        if grown(cut.disk.files(self._work.result), self.old, self.truth):
            checked = self._runner.ask(
                self._trial, words=["store", "verify", "--full", str(self._trial / self._work.result)]
            )
            if checked["code"]:
                return f"is refused by verify: {checked['said']}"
        answer = self._ask()
        promised = [text for text, moment in self.log.marks.items() if moment <= cut.moment]
        if lost := not_found(promised, answer["marks"]):
            return f"lost what was committed: {lost}"
        if tree(self._trial / self._work.result) != self.truth:
            return f"the next run ends with {answer['code']} and another result: {answer['said'][-800:]}"
        if answer["code"] and not (whole and answer["code"] == 1):
            return f"the next run ends with {answer['code']}: {answer['said'][-800:]}"
        return ""

    def _ask(self, **more: Any) -> Mapping[str, Any]:
        asked = {**self._work.asked(self._inputs, self._trial), "exits": self._work.exits}
        return self._runner.ask(self._trial, **asked, **more)
