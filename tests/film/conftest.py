"""One set of models and one scored film for all tests of this folder."""

import pytest

from obygaze_film.exchange import FORMATS
from tests.film.films import MODELS, scored_film
from tests.planted_models import train_and_save_models

AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

UNSTICK = """document.querySelectorAll('.d-film, .d-overview').forEach(
    (element) => element.style.position = 'static')"""
"""Let what sticks to the top of the screen scroll with the page: it always covers a part of what is below it,
which axe would call hidden, though one can scroll to it."""


def axe_violations(page):
    """Return what axe finds against WCAG 2.2 A and AA: the rule, and the beginning of the element's HTML.

    Without axe the test is skipped.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed (axe-playwright-python)"
    )
    page.evaluate(UNSTICK)
    # The visible text of a control must be in its name (WCAG 2.5.3): this rule is off, as axe calls it
    # experimental.
    rules = {"label-content-name-mismatch": {"enabled": True}}
    options = {"runOnly": {"type": "tag", "values": AXE_TAGS}, "rules": rules}
    report = axe.Axe().run(page, options=options).response
    assert len(report["passes"]) > 15  # else axe looked at an empty page
    violations = []
    for violation in report["violations"]:
        first_element = violation["nodes"][0]["html"]
        violations.append((violation["id"], first_element[:200]))
    return violations


@pytest.fixture(scope="session")
def trained_models(tmp_path_factory):
    """Models of planted clips of six films, some of them with guns: calm or violent."""
    return train_and_save_models(tmp_path_factory.mktemp("trained"), MODELS)


@pytest.fixture(scope="session")
def scored(tmp_path_factory, trained_models):
    """The folder of a scored film with known segments, and its timeline."""
    return scored_film(tmp_path_factory.mktemp("scored"), trained_models, models=("pcbm_lr", "bank"))


@pytest.fixture(scope="session")
def planted_timeline(scored):
    """The timeline of a scored film of ten minutes with known segments, `films.PLANTED`."""
    _, timeline = scored
    return timeline


@pytest.fixture(params=FORMATS)
def export_format(request):
    """The name of a format of exports, such as "eaf"; skipped if the package that writes it is missing."""
    if request.param in {"otio", "fcpxml7"}:
        pytest.importorskip("opentimelineio")
    return request.param
