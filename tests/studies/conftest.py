"""The command as people call it."""

from collections.abc import Callable

import pytest

from obygaze.cli import main


@pytest.fixture(scope="session")
def obygaze() -> Callable[..., int]:
    """Run a command in the present folder; gives its exit code."""

    def run(*arguments: object) -> int:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        return int(left.value.code or 0)

    return run
