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
