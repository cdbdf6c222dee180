"""An S3 server for the tests that send stores somewhere; none of them waits for the disk."""

import pytest

from ..store.conftest import _no_waiting_for_the_disk, fixed_or_ragged_group, served_folder, server_of_stores  # noqa: F401 - fixtures
from .s3_server import s3_server, s3_settings


@pytest.fixture(scope="session")
def s3_endpoint():
    """The S3 server of moto, for all tests."""
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(s3_endpoint):
    """The S3 server, with the environment pointing at its bucket `bucket`."""
    with s3_settings(s3_endpoint):
        yield s3_endpoint
