"""One set of models and one scored film for all tests of this folder."""

import pytest

from obygaze_film.exchange import FORMATS
from tests.film.films import MODELS, scored_film
from tests.planted_models import make_shelf


def axe_violations(page):
    """What axe finds against WCAG 2.2 A and AA; without axe the test is skipped."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed (axe-playwright-python)"
    )
    # What sticks covers a part of what scrolls below it, wherever one stands.
    page.evaluate(
        "document.querySelectorAll('.d-film, .d-overview').forEach((one) => one.style.position = 'static')"
    )
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    # What is read on a control must be in its name (2.5.3): axe calls its rule experimental.
    rules = {"label-content-name-mismatch": {"enabled": True}}
    options = {"runOnly": {"type": "tag", "values": tags}, "rules": rules}
    found = axe.Axe().run(page, options=options).response
    assert len(found["passes"]) > 15
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Models of planted clips of six films, some of them with guns: calm or violent."""
    return make_shelf(tmp_path_factory.mktemp("trained"), MODELS)


@pytest.fixture(scope="session")
def scored(tmp_path_factory, trained):
    """The folder of a scored film with known segments, and its timeline."""
    return scored_film(tmp_path_factory.mktemp("scored"), trained, models=("pcbm_lr", "bank"))


@pytest.fixture(scope="session")
def timeline(scored):
    """The timeline of a scored film of ten minutes with known segments, `films.PLANTED`."""
    _, timeline = scored
    return timeline


@pytest.fixture(params=FORMATS)
def kind(request):
    """A format of exports, with what it needs."""
    if request.param in {"otio", "fcpxml7"}:
        pytest.importorskip("opentimelineio")
    return request.param
