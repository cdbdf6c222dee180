"""One shelf of models for all tests of this folder."""

import pytest

from tests.planted_models import make_shelf


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    return make_shelf(tmp_path_factory.mktemp("shelf"), concept="Gun")
