"""A command of obygaze, in this process."""

from typing import NamedTuple

import pytest

from obygaze.cli import main


class EndedCommand(NamedTuple):
    """What is left of a command."""

    exit_code: int
    out: str
    """Its output."""
    err: str
    """Its messages."""


def obygaze(*words: object) -> int:
    """Run a command in the present folder; gives its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)
