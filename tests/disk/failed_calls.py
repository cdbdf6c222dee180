"""Fail the n-th call of a kind in one kind of work, or leave too little space, and judge what is left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Any

from .harness import (
    ERRORS,
    Runner,
    Tree,
    Work,
    begin,
    is_sound_partial_copy,
    is_whole_by_file,
    lost_records,
    tree,
)

WRITING = ("write", "fsync", "close", "rename", "open", "unlink")
"""Kinds of calls that are made to fail in every work."""
READING_TOO = (*WRITING, "link", "read", "lock")
"""All kinds of calls that can be made to fail."""
KINDS_OF_ERRORS = {
    "ENOSPC": ("write", "open"),
    "EDQUOT": ("write", "open"),
    "EROFS": ("open", "rename", "unlink", "link"),
    "EACCES": ("open", "rename", "unlink", "link"),
    "EINTR": ("write", "read", "open"),
    "ENOLCK": ("lock",),
}
"""Which calls can end with an error; all of them with any other."""
LASTING = {"ENOSPC", "EDQUOT", "EROFS", "ENOLCK"}
"""Errors of a disk that stays as it is: every later call of the kind fails too."""
REPEATED = "EINTR"
"""The error of a call that a signal interrupted: it is made again, and nobody need be told."""
SPACE = "space"
"""Kind of a case in which nothing is made to fail: a small disk has so many bytes left, and fills up."""
MUST_BE_TOLD = ("write", "fsync", "rename")
"""Where such a call fails on something that is written, no work may end as done."""

DONE = 0
REFUSED = 1
"""Exit code of a command that ends with one line of error."""
KILLED = -9
"""Exit code of a process that SIGKILL ended."""
MAX_SHOWN = 1500
"""So many last signs of stderr are shown with a problem: enough for a traceback."""


@dataclass(frozen=True)
class Truth:
    """What undisturbed work ends with.

    Attributes
    ----------
    result
        The file or folder it was to make.
    beside
        The names in the folder of the trial and in that of the result.
    counts
        Kind of call -> how many calls of the kind it made.
    octets
        How many bytes of disk it took.
    """

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
        """Do the work once undisturbed, below `folder`, to know what every trial must end with."""
        self._runner = runner
        self._work = work
        self._inputs = inputs
        self._folder = folder
        self._trial = folder / "trial"
        folder.mkdir(exist_ok=True)
        self.truth = self._undisturbed()
        self.old = self._old_result()

    def _undisturbed(self) -> Truth:
        begin(self._work, self._inputs, self._trial)
        used_before = disk_usage(self._folder).used
        answer = self._ask()
        assert answer["code"] == DONE, answer["said"]
        octets = disk_usage(self._folder).used - used_before
        result = self._result()
        assert result
        truth = Truth(result, self._names(), answer["counts"], octets)
        self._clear()
        return truth

    def _old_result(self) -> Tree | None:
        """Read what is at the place of the result before the work; None where it replaces nothing."""
        begin(self._work, self._inputs, self._trial)
        old = self._result()
        self._clear()
        return old

    def cases(
        self, stride: int = 1, errors: tuple[str, ...] = ("EIO",), kinds: tuple[str, ...] = WRITING
    ) -> Iterator[Case]:
        """List every `stride`-th call of each kind that can end with an error, first and last among them.

        A disk that is full, for example, stays full: with the errors of `LASTING` every later call of the
        kind fails too.
        """
        for error in errors:
            lasting = error in LASTING
            for kind in KINDS_OF_ERRORS.get(error, kinds):
                last = self.truth.counts[kind]
                for n in range(1, last + 1):
                    if n == last or (n - 1) % stride == 0:
                        yield Case(kind, n, error, lasting)

    def spaces(self, parts: int) -> Iterator[Case]:
        """List disks that have 0 to `parts` - 1 parts of the space that the work takes."""
        for part in range(parts):
            yield Case(SPACE, part * self.truth.octets // parts, "ENOSPC")

    def problems(self, case: Case) -> list[str]:
        """Run a case, then the same undisturbed; say what is not as it should be."""
        begin(self._work, self._inputs, self._trial)
        answer = self._disturbed(case)
        was_whole = self._result() == self.truth.result
        problems = [*self._problems_of_result(), *self._problems_of_answer(case, answer)]

        again = self._ask()
        problems += self._problems_of_next_run(answer, again, was_whole)
        self._clear()

        failed_calls = "; ".join(answer["hits"][:2])
        return [f"{case}, {failed_calls}: {problem}" for problem in problems]

    def _disturbed(self, case: Case) -> dict[str, Any]:
        if case.kind == SPACE:
            with _nearly_full(self._folder, case.n):
                return self._ask()
        return self._ask(kind=case.kind, n=case.n, error=ERRORS[case.error], lasting=case.lasting)

    def _problems_of_result(self) -> Iterator[str]:
        """Find a result that is torn: neither absent nor old nor whole, nor one that may be there in part."""
        found = self._result()
        states = (found, self.old, self.truth.result)
        may_be_partial = (
            self._work.grows
            or is_sound_partial_copy(*states)
            or (self._work.by_file and is_whole_by_file(*states))
        )
        if found not in (None, self.old, self.truth.result) and not may_be_partial:
            yield "the result is torn"

    def _problems_of_answer(self, case: Case, answer: dict[str, Any]) -> Iterator[str]:
        """Find what is wrong in how the work ended: done in spite of a failure, killed, or with an error."""
        if answer["code"] == DONE:
            yield from self._problems_of_success(case, answer)
        elif case.error == "KILL":
            if answer["code"] != KILLED:
                yield f"exit code {answer['code']}: {answer['said'][-MAX_SHOWN:]}"
        elif answer["code"] != REFUSED:
            yield f"exit code {answer['code']}: {answer['said'][-MAX_SHOWN:]}"
        else:
            yield from self._problems_of_message(answer)

    def _problems_of_success(self, case: Case, answer: dict[str, Any]) -> Iterator[str]:
        if self._result() != self.truth.result:
            yield "done, it says, and the result is not there"
        elif case.kind in MUST_BE_TOLD and case.error != REPEATED and _failed_in_writing(answer):
            yield "done, it says, and a call failed"

    def _problems_of_message(self, answer: dict[str, Any]) -> Iterator[str]:
        """Find an error that is not said in one line, or does not name the file that it is about."""
        lines = answer["said"].splitlines()
        if self._work.talks and "Traceback" not in answer["said"]:
            lines = lines[-1:]  # before it may stand notes
        if len(lines) != 1 or not lines[0].startswith("obygaze: error: "):
            yield f"not one line: {answer['said'][-MAX_SHOWN:]}"
            return
        if str(self._folder.parent) not in lines[0]:
            yield f"no file is named: {lines[0]}"

    def _problems_of_next_run(
        self, answer: dict[str, Any], again: dict[str, Any], was_whole: bool
    ) -> Iterator[str]:
        """Find what the next run lost, made otherwise, refused or left lying about."""
        lost = lost_records(answer["marks"], again["marks"])
        if lost:
            yield f"lost what was committed: {lost}"
        # A result that was whole already is refused as one that exists, rightly.
        ends_well = again["code"] == DONE or (was_whole and again["code"] == REFUSED)
        if self._result() != self.truth.result:
            yield f"the next run (exit code {again['code']}) leaves another result: {again['said']}"
        elif not ends_well:
            yield f"the next run ends with {again['code']}: {again['said']}"
        elif litter := self._names() - self.truth.beside:
            yield f"litter: {sorted(litter)}"

    def _ask(self, **fault: Any) -> dict[str, Any]:
        request = {**self._work.asked(self._inputs, self._trial), "exits": self._work.exits}
        return self._runner.ask(self._trial, **request, **fault)

    def _result(self) -> Tree | None:
        return tree(self._trial / self._work.result)

    def _names(self) -> set[str]:
        return {
            path.relative_to(self._trial).as_posix()
            for folder in (self._trial, (self._trial / self._work.result).parent)
            for path in folder.iterdir()
        }

    def _clear(self) -> None:
        rmtree(self._trial)


def _failed_in_writing(answer: dict[str, Any]) -> bool:
    """Whether a call failed on a file that was being written.

    Each failed call is a line of interpose.c: "w PATH" if it was on something written, "r PATH" if not.
    """
    return any(hit.startswith("w ") for hit in answer["hits"])


@contextmanager
def _nearly_full(folder: Path, left: int) -> Iterator[None]:
    """Leave so many bytes of the disk of a folder."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk_usage(folder).free - left)
    yield
    ballast.unlink()
