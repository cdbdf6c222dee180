"""One shelf of models for all tests of this folder."""

import pytest

from tests.planted_models import make_shelf


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Models trained on the films f0 to f5: linear, mlp, pcbm_lr, pcbm_dt, bank, and cav of Gun."""
    return make_shelf(tmp_path_factory.mktemp("shelf"), concept="Gun")
