"""The command as people call it."""

from collections.abc import Callable

import pytest

from tests import command


@pytest.fixture(scope="session")
def obygaze() -> Callable[..., int]:
    return command.obygaze
