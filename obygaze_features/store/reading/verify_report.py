"""What a verification says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["quick", "manifest", "full"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: the file it is in, relative to the store, and what it is."""

    file: str
    what: str


@dataclass(frozen=True)
class VerifyReport:
    """What a verification found.

    Attributes
    ----------
    where, name
        The store's path or URL, and its name with its version.
    problems
        Everything that is wrong, sorted by file.
    counts
        Files and bytes of the payload; after a full verification, clips by status; in a partial
        copy, the files that it leaves out ("not pulled").
    fingerprint
        SHA-256 of the digest manifest as it is now.
    """

    where: str
    name: str
    level: Level
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]
    fingerprint: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def record(self) -> dict[str, object]:
        """Give the report as plain JSON."""
        return {
            "store": self.name,
            "level": self.level,
            "ok": self.ok,
            "problems": [{"file": problem.file, "what": problem.what} for problem in self.problems],
            "counts": dict(self.counts),
            "fingerprint": self.fingerprint,
        }
