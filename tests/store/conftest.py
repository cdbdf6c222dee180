"""Tests about anything but power cuts need not wait for the disk."""

import os

import pytest

from .s3_server import Endpoint, real_endpoint, s3_server, s3_settings


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


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
