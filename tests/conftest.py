"""What every test may ask for."""

import os
from pathlib import Path

import pytest

SHARED_DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real annotations, videos and oracles, which the project's licence forbids to carry along."""
    if not SHARED_DATA.is_dir():
        message = (
            f"no test data at {SHARED_DATA}: fetch the annotations and videos that tests/README.md names, "
            "or point OBYGAZE_TEST_DATA at them"
        )
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return SHARED_DATA
