"""One shelf of models for all tests of this folder."""

import pytest

from tests.planted_models import train_and_save_models


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """Models trained on the films f0 to f5: linear, mlp, pcbm_lr, pcbm_dt, bank, and cav of Gun."""
    return train_and_save_models(tmp_path_factory.mktemp("shelf"), concept="Gun")
