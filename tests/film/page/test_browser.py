"""The page in a real browser: no request, keys, screen reader, printing, sizes.

What only a browser can find: errors of the script and of the policy, what is read out, what does not fit.
"""

from dataclasses import replace

import pandas as pd
import pytest

from obygaze_film.claims.words import clock
from obygaze_film.page import write_film_page
from obygaze_models import evaluate, linear_probe, run_report, write_html
from obygaze_models.report import Block
from tests.conftest import planted
from tests.film.conftest import axe_violations
from tests.film.page.invented import invented_film

pytestmark = pytest.mark.long

NASTY = '</script><script>document.title="broken"</script> =1+1 "quoted" \'a\' & <b>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "film.html"
    write_film_page([invented_film(traced=True)], path)
    return path


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "films.html"
    films = [
        invented_film("tt1", "Later", year=2009, n_rows=60, duration_s=600, seed=1),
        invented_film("=cmd()", NASTY, year=1989, n_rows=60, duration_s=600, seed=2),
        invented_film("tt3", "Seen", year=None, n_rows=60, duration_s=600, trained_on=True),
    ]
    write_film_page(films, path)
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A run's tables, and one of more columns than any of ours."""
    made = run_report(evaluate(planted(), {"linear": linear_probe(), "other": linear_probe()}, task="hn_s"))
    cells = ("-0.123 [-0.456, +0.789]",) * 11
    headers = ("film", *(f"within-movie AUC {number} [95 %]" for number in range(11)))
    wide = Block("wide", headers, ((NASTY, *cells), ("b", *cells)))
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(replace(made, blocks=(*made.blocks, wide)), path)
    return path


def value_text(page):
    return page.locator(".track").first.get_attribute("aria-valuetext")


def test_nothing_is_requested_and_nothing_is_wrong_under_the_policy(visit, page):
    seen = visit(page)
    seen.page.locator(".track").focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.requests == [page.as_uri()]
    assert seen.errors == []
    blocked = seen.page.evaluate("fetch('https://example.org').then(() => 'through', () => 'blocked')")
    assert blocked == "blocked"


@pytest.mark.parametrize(
    ("which", "theme", "width"),
    [("page", "light", 1440), ("several", "dark", 390), ("report", "light", 390), ("report", "dark", 1440)],
)
def test_axe_finds_nothing(visit, request, which, theme, width):
    seen = visit(request.getfixturevalue(which), theme=theme, width=width).page
    seen.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
    seen.evaluate("scrollTo(0, 0)")  # a timeline that sticks covers a part of what scrolls below it
    assert axe_violations(seen) == []


def test_keys_move_the_cursor_and_are_announced(visit, page):
    seen = visit(page).page
    seen.keyboard.press("Tab")
    assert seen.evaluate("document.activeElement.className") == "skip"
    track = seen.locator(".track")
    track.focus()
    assert track.get_attribute("role") == "slider"
    said = [value_text(seen)]
    for key in ("ArrowRight", "ArrowRight", "PageDown", "End", "Home", "ArrowLeft"):
        seen.keyboard.press(key)
        said.append(value_text(seen))
        assert seen.locator(".live").text_content() == said[-1]
    assert said[0] == said[-1] == said[-2]
    assert len(set(said)) == 5
    assert "unlike training" in said[0]
    for _ in range(11):
        seen.keyboard.press("PageDown")
    assert "probability 0." in value_text(seen)
    assert "80% band" in value_text(seen)
    # The slider is read out by its value; the region does not say it a second time.
    assert seen.locator(".live").get_attribute("aria-live") == "off"
    before = value_text(seen)
    seen.keyboard.press("+")
    seen.keyboard.press("+")
    assert value_text(seen) == before
    assert float(seen.locator("svg.z").first.get_attribute("viewBox").split()[2]) == pytest.approx(72120 / 4)
    seen.keyboard.press("0")
    assert float(seen.locator("svg.z").first.get_attribute("viewBox").split()[2]) == pytest.approx(72120)


def test_what_is_said_is_searched_and_moves_the_cursor(visit, tmp_path):
    lines = [(10.0, 12.0, NASTY), (70.0, 72.0, "Give me the gun"), (80.0, 81.5, "No gun")]
    subtitles = pd.DataFrame(lines, columns=["start_s", "end_s", "text"])
    film = replace(invented_film(n_rows=60, duration_s=600.0), subtitles=subtitles)
    write_film_page([film], tmp_path / "said.html")
    seen = visit(tmp_path / "said.html").page
    assert seen.title() != "broken"
    seen.locator(".said summary").click()
    assert seen.locator(".said li:visible").count() == 3
    seen.locator("[data-search]").fill("GUN")
    assert seen.locator(".said li:visible").count() == 2
    seen.locator(".said li:visible button").first.click()
    rows = film.rows()
    (start,) = rows.loc[(rows["start_s"] <= 70) & (rows["end_s"] > 70), "start_s"]
    assert value_text(seen).startswith(clock(start))


def test_the_script_says_below_a_hundredth_and_no_concept_that_is_absent(visit, tmp_path):
    film = invented_film(n_rows=60, duration_s=600, unlike=())
    table = film.table.copy()
    table[["p", "p_low", "p_high"]] *= 0.004
    table["Clothing_p"] = 0.3
    write_film_page([replace(film, table=table)], tmp_path / "small.html")
    seen = visit(tmp_path / "small.html").page
    seen.locator(".track").focus()
    said = set()
    for _ in range(60):
        said.add(value_text(seen))
        seen.keyboard.press("ArrowRight")
    credits_said = [text for text in said if "credits" in text]
    assert credits_said
    assert not any("probability" in text or "0." in text for text in credits_said)
    others = said - set(credits_said)
    assert all("; probability below 0.01" in text and "band" not in text for text in others)
    assert not any("0.00" in text or "Clothing" in text for text in said)
    assert any("Body 0." in text for text in said)


def test_no_title_breaks_the_page(visit, several):
    seen = visit(several)
    assert seen.page.title() == "3 films, scored"
    assert seen.page.locator("h2.title").nth(0).text_content() == NASTY
    assert seen.errors == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_overflows(visit, page, several, width):
    for path in (page, several):
        seen = visit(path, width=width, height=844).page
        seen.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
        seen.locator("[data-t]").first.click()
        assert seen.evaluate("document.documentElement.scrollWidth") == width
        loose = seen.evaluate(
            """[...document.querySelectorAll('body *')].filter((one) => {
                const box = one.getBoundingClientRect();
                return !one.closest('.wide, svg, .unseen, .skip') && box.width && box.right > innerWidth + 1;
            }).map((one) => one.outerHTML)"""
        )
        assert loose == []


def test_without_script_everything_can_be_read(visit, page):
    seen = visit(page, script=False).page
    text = seen.inner_text("body")
    for words in ("The Planted Film", "17%", "threshold 0.30", "Body", "passages reach", "no verdict"):
        assert words in text
    assert not seen.get_by_role("button", name="Zoom in").is_visible()
    seen.locator("summary", has_text="as a table").click()
    assert seen.locator(".minutes tbody tr").count() == 121
    assert seen.locator(".minutes tbody tr").first.is_visible()


def test_it_prints(visit, page, tmp_path):
    av = pytest.importorskip("av")  # noqa: F841 - the machine that prints is the one with the films
    seen = visit(page, theme="dark").page
    seen.emulate_media(media="print", color_scheme="dark")
    assert seen.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 247)"
    assert not seen.get_by_role("button", name="Zoom in").is_visible()
    assert seen.locator(".caveat").is_visible()
    seen.pdf(path=tmp_path / "film.pdf", format="A4")
    data = (tmp_path / "film.pdf").read_bytes()
    assert 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page>") + data.count(b"/Type /Page ") <= 20


def test_three_hours_of_three_thousand_windows_are_small_and_quick(visit, tmp_path):
    path = tmp_path / "long.html"
    write_film_page([invented_film(duration_s=10_800.0, n_rows=3000, traced=True)], path)
    assert path.stat().st_size < 1_000_000
    seen = visit(path).page
    session = seen.context.new_cdp_session(seen)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    seen.reload()
    seen.locator(".track").focus()
    seen.keyboard.press("+")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert metrics["ScriptDuration"] < 1.0


@pytest.mark.parametrize(("width", "media"), [(718, "print"), (1440, "screen"), (390, "screen")])
def test_no_column_of_a_report_is_cut(visit, report, width, media):
    """718 pixels: A4 without its margins."""
    seen = visit(report, width=width).page
    seen.emulate_media(media=media)
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    cells = (
        "Math.max(...[...document.querySelectorAll('td')].map((one) => one.getBoundingClientRect().right))"
    )
    if media == "print":
        assert seen.evaluate(cells) <= width
    else:  # what is wider than the window scrolls in its own region, to the last column
        seen.locator(".wide").evaluate_all("all => all.forEach((one) => one.scrollTo(1e6, 0))")
        assert seen.evaluate(cells) <= width
