"""Fail the n-th call of a kind in one kind of work, or leave too little space, and judge what is left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any

from .harness import ERRORS, USED_UP, Runner, Tree, Work, begin, grown, not_found, tree

KINDS = ("write", "fsync", "close", "rename", "open", "unlink")
SPACE = "space"
"""Kind of a case in which nothing is made to fail: a small disk has so many bytes left, and fills up."""
MUST_BE_TOLD = ("write", "fsync", "rename")
"""Where such a call fails on something that is written, no work may end as done."""


@dataclass(frozen=True)
class Truth:
    """What undisturbed work ends with: the result, the names beside it, its number of calls, its bytes."""

    result: Tree
    beside: set[str]
    counts: dict[str, int]
    octets: int


@dataclass(frozen=True)
class Case:
    """The call that fails, alone or with all of its kind after it."""

    kind: str
    n: int
    error: str
    lasting: bool = False


class Trials:
    """Trials of one kind of work."""

    def __init__(self, runner: Runner, work: Work, inputs: Path, folder: Path) -> None:
        self._runner, self._work, self._inputs, self._folder = runner, work, inputs, folder
        folder.mkdir(exist_ok=True)
        self._trial = folder / "trial"
        begin(work, inputs, self._trial)
        before = disk_usage(folder).used
        answer = self._ask()
        assert answer["code"] == 0, answer["said"]
        octets = disk_usage(folder).used - before
        result = tree(self._trial / work.result)
        assert result
        self.truth = Truth(result, self._names(), answer["counts"], octets)
        self.old = None
        if work.old or work.result in work.copied.values():
            self._clear()
            begin(work, inputs, self._trial)
            self.old = tree(self._trial / work.result)
        self._clear()

    def cases(self, stride: int = 1, errors: tuple[str, ...] = ("EIO",)) -> Iterator[Case]:
        """List every `stride`-th call of each kind, first and last among them."""
        for error in errors:
            for kind in ("write", "open") if error in USED_UP else KINDS:
                n = self.truth.counts[kind]
                for number in sorted({*range(1, n + 1, stride), *([n] if n else [])}):
                    yield Case(kind, number, error, lasting=error in USED_UP)

    def spaces(self, parts: int) -> Iterator[Case]:
        """List disks that have 0 to `parts` - 1 parts of the space that the work takes."""
        for part in range(parts):
            yield Case(SPACE, part * self.truth.octets // parts, "ENOSPC")

    def problems(self, case: Case) -> list[str]:
        """Run a case, then the same undisturbed; say what is not as it should be."""
        begin(self._work, self._inputs, self._trial)
        if case.kind == SPACE:
            with _nearly_full(self._folder, case.n):
                answer = self._ask()
        else:
            answer = self._ask(kind=case.kind, n=case.n, error=ERRORS[case.error], lasting=case.lasting)
        said = list(self._wrong(case, answer))
        whole = tree(self._trial / self._work.result) == self.truth.result
        again = self._ask()
        after = tree(self._trial / self._work.result)
        if lost := not_found(answer["marks"], again["marks"]):
            said.append(f"lost what was committed: {lost}")
        if after != self.truth.result:
            said.append(f"the next run (exit code {again['code']}) leaves another result: {again['said']}")
        elif again["code"] and not (whole and again["code"] == 1):
            said.append(f"the next run ends with {again['code']}: {again['said']}")
        elif more := self._names() - self.truth.beside:
            said.append(f"litter: {sorted(more)}")
        self._clear()
        return [f"{case}, {'; '.join(answer['hits'][:2])}: {one}" for one in said]

    def _wrong(self, case: Case, answer: dict[str, Any]) -> Iterator[str]:
        found = tree(self._trial / self._work.result)
        whole = found == self.truth.result
        parts = self._work.grows or grown(found, self.old, self.truth.result)
        if not whole and found not in (None, self.old) and not parts:
            yield "the result is torn"
        lines = answer["said"].splitlines()
        if self._work.talks and "Traceback" not in answer["said"]:
            lines = lines[-1:]
        if answer["code"] == 0:
            if not whole:
                yield "done, it says, and the result is not there"
            elif case.kind in MUST_BE_TOLD and any(hit[0] == "w" for hit in answer["hits"]):
                yield "done, it says, and a call failed"
        elif answer["code"] != (-9 if case.error == "KILL" else 1):
            yield f"exit code {answer['code']}: {answer['said'][-1500:]}"
        elif case.error == "KILL":
            return
        elif len(lines) != 1 or not lines[0].startswith("obygaze: error: "):
            yield f"not one line: {answer['said'][-1500:]}"
        elif str(self._folder.parent) not in lines[0] and (
            case.kind == SPACE or any(hit[0] == "w" for hit in answer["hits"])
        ):
            yield f"no file is named: {lines[0]}"

    def _ask(self, **fault: Any) -> dict[str, Any]:
        asked = {**self._work.asked(self._inputs, self._trial), "exits": self._work.exits}
        return self._runner.ask(self._trial, **asked, **fault)

    def _names(self) -> set[str]:
        return {
            path.relative_to(self._trial).as_posix()
            for folder in (self._trial, (self._trial / self._work.result).parent)
            for path in folder.iterdir()
        }

    def _clear(self) -> None:
        rmtree(self._trial)


@contextmanager
def _nearly_full(folder: Path, left: int) -> Iterator[None]:
    """Leave so many bytes of the disk of a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk_usage(folder).free - left)
    yield
    ballast.unlink()
