"""One set of models and one scored film for all tests of this folder."""

import pytest

from obygaze_film.exchange import FORMATS
from tests.film.films import MODELS, scored_film
from tests.planted_models import make_shelf


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    return make_shelf(tmp_path_factory.mktemp("trained"), MODELS)


@pytest.fixture(scope="session")
def scored(tmp_path_factory, trained):
    """The folder of a scored film with known segments, and its timeline."""
    return scored_film(tmp_path_factory.mktemp("scored"), trained, models=("pcbm_lr", "bank"))


@pytest.fixture(scope="session")
def timeline(scored):
    return scored[1]


@pytest.fixture(params=FORMATS)
def kind(request):
    """A format of exports, with what it needs."""
    if request.param in {"otio", "fcpxml7"}:
        pytest.importorskip("opentimelineio")
    return request.param
