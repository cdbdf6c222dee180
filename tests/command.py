"""A command of obygaze, in this process."""

import pytest

from obygaze.cli import main


def obygaze(*words: object) -> int:
    """Run a command in the present folder; gives its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)
