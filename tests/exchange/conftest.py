"""An S3 server for the tests that send stores somewhere; none of them waits for the disk."""

import pytest

from ..store.conftest import _no_waiting_for_the_disk, root, site  # noqa: F401 - fixtures
from .s3_server import Endpoint, real_endpoint, s3_server, s3_settings


@pytest.fixture(scope="session")
def s3_endpoint():
    """An S3 server for all tests: moto's, or the one that OBYGAZE_TEST_S3 names."""
    if real := real_endpoint():
        yield Endpoint(real)
    else:
        with s3_server() as endpoint:
            yield endpoint


@pytest.fixture
def bucket(s3_endpoint):
    """The S3 server, with the environment pointing at its bucket `bucket`."""
    with s3_settings(s3_endpoint):
        yield s3_endpoint
