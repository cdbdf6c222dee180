"""The page of compared films in a real browser: axe, widths, no request, hostile titles."""

from dataclasses import replace
from pathlib import Path

import pytest

from obygaze_features.manifest import Manifest
from obygaze_film import compare_films
from obygaze_film.page.side_by_side import comparison_page
from obygaze_film.windows_to_judge import choose_next
from tests.film.conftest import axe_violations
from tests.film.page.invented import fake_scored_film

pytestmark = pytest.mark.long

HOSTILE_TITLE = "</svg><script>document.title='broken'</script> \"quoted\" & <b>"


def judged_by_ab(clip):
    """AB calls the first windows of a film's draw S, 2 to 5 of them by the film's number, all others HN."""
    film_number, place = int(clip.movie[2:]), int(clip.extras["place"])
    level = "S" if place <= 2 + film_number % 4 else "HN"
    return replace(clip, level=level, annotator="AB")


@pytest.fixture(scope="module")
def page_of_12_films(tmp_path_factory):
    """The page of films of 1995 to 2006, so of two decades: AB judged ten windows of each of the first ten.

    The film of number 3 has the hostile title.
    """
    films = [
        fake_scored_film(
            f"tt{number:02}",
            HOSTILE_TITLE if number == 3 else f"Film {number}",
            year=1995 + number,
            n_rows=60,
            duration_s=900,
            seed=number,
        )
        for number in range(12)
    ]
    judged = Manifest(tuple(judged_by_ab(clip) for clip in choose_next(films[:10], 10, blind=True)), Path())
    compared = compare_films(films, judged, by="decade", trend="year")
    path = tmp_path_factory.mktemp("compared") / "films.html"
    path.write_text(comparison_page(compared), "utf-8")
    return path


STROKE_WIDTH = "(line) => parseFloat(getComputedStyle(line).strokeWidth)"
"""JavaScript: how broad a line is drawn, in pixels."""


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 400)])
def test_the_page_is_accessible_fits_and_requests_nothing(open_page, page_of_12_films, theme, width):
    """Axe finds no barrier for people with disabilities, and the page loads nothing but itself."""
    seen = open_page(page_of_12_films, theme=theme, width=width)
    assert axe_violations(seen.page) == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.requests == [page_of_12_films.as_uri()]
    assert seen.errors == []


def test_a_hostile_title_is_text(open_page, page_of_12_films):
    """The fourth film's title is HTML that would run a script: it must be shown as it is written.

    The script would set the title of the page.
    """
    page = open_page(page_of_12_films).page
    assert page.title() == "12 films by decade"
    assert HOSTILE_TITLE in page.locator(".row.film").nth(3).inner_text()


def test_each_film_has_a_row_with_its_curve(open_page, page_of_12_films):
    """Twelve films are compared on a page. Each has a row, and in it the curve of the model's probabilities.

    A curve has a path for each colour, and so more than one: there are more paths than films.
    """
    page = open_page(page_of_12_films).page
    assert page.locator(".row.film").count() == 12
    assert page.locator(".row.film svg.strip path").count() > 12


def test_the_interval_of_each_decades_share_stands_out_from_the_axis_that_it_lies_on(
    open_page, page_of_12_films
):
    """Each of two decades has an axis from 0 to 100 % (class base), with the interval of its share on it.

    An interval (class reach) is over three times as broad as the axis, and of another colour.
    """
    page = open_page(page_of_12_films).page
    axes = page.locator(".share svg line.base")
    intervals = page.locator(".share svg line.reach")

    widths = f"lines => lines.map({STROKE_WIDTH})"
    widths_of_axes = axes.evaluate_all(widths)
    widths_of_intervals = intervals.evaluate_all(widths)
    assert len(widths_of_axes) == 2
    assert len(widths_of_intervals) == 2
    assert max(widths_of_axes) * 3 < min(widths_of_intervals)

    colours = "lines => lines.map((line) => getComputedStyle(line).stroke)"
    (colour_of_axes,) = set(axes.evaluate_all(colours))
    (colour_of_intervals,) = set(intervals.evaluate_all(colours))
    assert colour_of_axes != colour_of_intervals
    assert set(page.locator(".share svg line").evaluate_all(colours)) == {colour_of_axes, colour_of_intervals}


def test_the_figure_draws_films_their_intervals_the_decades_and_the_trend(open_page, page_of_12_films):
    """12 films have a dot: ten are judged and have an interval, and two nobody judged (c-alone).

    There are two decades, each with its mean and interval (c-reach), and one trend.
    """
    figure = open_page(page_of_12_films).page.locator(".c-figure")
    assert figure.locator(".c-film").count() == 12
    assert figure.locator(".c-alone").count() == 2
    assert figure.locator(".c-interval").count() == 10
    assert figure.locator(".c-mean").count() == 2
    assert figure.locator(".c-reach").count() == 2
    assert figure.locator(".c-trend").count() == 1


def test_the_figure_names_its_axes(open_page, page_of_12_films):
    """Twelve films are drawn along their years, by the share of their time; S is the positive level."""
    figure = open_page(page_of_12_films).page.locator(".c-figure")
    texts = figure.locator("text").all_text_contents()
    assert "year" in texts
    assert "share of a film’s time, marked or expected as S" in texts


def test_the_figure_draws_intervals_broader_than_its_grid(open_page, page_of_12_films):
    """Intervals and grid are lines, and an interval must not be taken for a line of the grid behind it.

    So it is over twice as broad, in pixels.
    """
    figure = open_page(page_of_12_films).page.locator(".c-figure")
    interval_width = figure.locator(".c-interval").first.evaluate(STROKE_WIDTH)
    grid_width = figure.locator(".c-grid").first.evaluate(STROKE_WIDTH)
    assert interval_width > 2 * grid_width


def test_the_page_says_what_the_trend_is_per(open_page, page_of_12_films):
    """The films are of twelve years, 1995 to 2006, and the trend is by ten."""
    assert "10 years later" in open_page(page_of_12_films).page.inner_text("main")
