"""The page of compared films in a real browser: axe, widths, no request, hostile titles."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.windows_to_judge import choose_next
from tests.film.conftest import axe_violations
from tests.film.page.invented import invented_film

pytestmark = pytest.mark.long

NASTY = "</svg><script>document.title='broken'</script> \"quoted\" & <b>"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    films = [
        invented_film(
            f"tt{n:02}", NASTY if n == 3 else f"Film {n}", year=1995 + n, n_rows=60, duration_s=900, seed=n
        )
        for n in range(12)
    ]
    clips = [
        replace(
            clip,
            level="S" if int(clip.extras["place"]) <= 2 + int(clip.movie[2:]) % 4 else "HN",
            annotator="AB",
        )
        for clip in choose_next(films[:10], 10, blind=True)
    ]
    path = tmp_path_factory.mktemp("compared") / "films.html"
    found = compare_films(films, Manifest(tuple(clips), Path()), by="decade", trend="year")
    path.write_text(comparison_page(found), "utf-8")
    return path


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 400)])
def test_axe_finds_nothing_nothing_overflows_and_nothing_is_requested(visit, compared, theme, width):
    seen = visit(compared, theme=theme, width=width)
    assert axe_violations(seen.page) == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert (seen.requests, seen.errors) == ([compared.as_uri()], [])
    assert seen.page.title() == "12 films by decade"
    assert seen.page.locator(".row.film svg.strip path").count() > 12
    assert NASTY in seen.page.locator(".row.film").nth(3).inner_text()


def test_an_interval_is_seen_against_its_line_and_decades_and_trend_are_drawn(visit, compared):
    page = visit(compared).page
    width = "(one) => parseFloat(getComputedStyle(one).strokeWidth)"
    lines = page.locator(".share svg line.base").evaluate_all(f"all => all.map({width})")
    reach = page.locator(".share svg line.reach").evaluate_all(f"all => all.map({width})")
    assert len(lines) == len(reach) == 2
    assert max(lines) * 3 < min(reach)
    colours = "all => new Set(all.map((one) => getComputedStyle(one).stroke)).size"
    assert page.locator(".share svg line").evaluate_all(colours) == 2
    assert page.locator(".c-figure .c-film").count() == 12
    assert page.locator(".c-figure .c-alone").count() == 2  # that nobody judged
    assert page.locator(".c-figure .c-interval").count() == 10
    assert page.locator(".c-figure .c-reach").count() == page.locator(".c-figure .c-mean").count() == 2
    assert page.locator(".c-figure .c-trend").count() == 1
    texts = set(page.locator(".c-figure text").all_text_contents())
    assert {"year", "share of a film’s time, marked or expected as S"} < texts
    own, grid = (
        page.locator(f".c-figure .{name}").first.evaluate(width) for name in ("c-interval", "c-grid")
    )
    assert own > 2 * grid
    assert "10 years later" in page.inner_text("main")
