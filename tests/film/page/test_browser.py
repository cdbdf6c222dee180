"""The page in a real browser: no request, keys, screen reader, printing, sizes.

What only a browser can find: errors of the script and of the policy, what is read out, what does not fit.
"""

import shutil
from dataclasses import replace
from time import monotonic

import numpy as np
import pandas as pd
import pytest

from obygaze_film.claims.words import clock
from obygaze_film.exchange import Decided
from obygaze_film.page import Owned, ScoredCopy, write_film_page
from obygaze_film.workspace.proxy import content_key
from obygaze_models import evaluate, linear_probe, run_report, write_html
from obygaze_models.report import Block
from tests.browsers import LONG_MS
from tests.conftest import planted
from tests.film.conftest import axe_violations
from tests.film.page.invented import invented_film
from tests.video.encoding import encode

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
    return page.locator(".d-over").first.get_attribute("aria-valuetext")


def test_nothing_is_requested_and_nothing_is_wrong_under_the_policy(visit, page):
    seen = visit(page)
    seen.page.locator(".d-over").focus()
    seen.page.keyboard.press("ArrowRight")
    assert seen.requests == [page.as_uri()]
    assert seen.errors == []
    policy = seen.page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "media-src blob:" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
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
    track = seen.locator(".d-over")
    track.focus()
    assert track.get_attribute("role") == "slider"
    said = [value_text(seen)]
    for key in ("ArrowRight", "ArrowRight", "PageDown", "End", "Home", "ArrowLeft"):
        seen.keyboard.press(key)
        said.append(value_text(seen))
    assert said[0] == said[-1] == said[-2]
    assert len(set(said)) == 5
    assert "unlike training" in said[0]
    for _ in range(11):
        seen.keyboard.press("PageDown")
    assert "probability 0." in value_text(seen)
    assert "80% band" in value_text(seen)
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
    lines = seen.locator("#f1-said-list li")
    seen.locator(".said summary").click()
    # Drawn after it has opened.
    seen.wait_for_function("document.querySelectorAll('#f1-said-list li').length === 3")
    seen.locator("#f1-search").fill("GUN")
    seen.wait_for_function("document.querySelectorAll('#f1-said-list li').length === 2")
    lines.locator("button").first.click()
    rows = film.rows()
    (start,) = rows.loc[(rows["start_s"] <= 70) & (rows["end_s"] > 70), "start_s"]
    assert value_text(seen).startswith(clock(start))


def test_the_script_says_below_a_hundredth_and_no_concept_that_is_absent(visit, tmp_path):
    film = invented_film(n_rows=60, duration_s=600, unlike_parts=())
    table = film.table.copy()
    table[["p", "p_low", "p_high"]] *= 0.004
    table["Clothing_p"] = 0.3
    write_film_page([replace(film, table=table)], tmp_path / "small.html")
    seen = visit(tmp_path / "small.html").page
    seen.locator(".d-over").focus()
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
    assert seen.page.locator("h2.d-name").nth(0).text_content().startswith(NASTY)
    assert seen.errors == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_overflows(visit, page, several, width):
    for path in (page, several):
        seen = visit(path, width=width, height=844).page
        seen.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
        seen.keyboard.press("n")
        assert seen.evaluate("document.documentElement.scrollWidth") == width
        loose = seen.evaluate(
            """[...document.querySelectorAll('body *')].filter((one) => {
                const box = one.getBoundingClientRect();
                const isCut = box.width && box.right > innerWidth + 1;
                return isCut && !one.closest('.wide, svg, .unseen, .skip, .d-above');
            }).map((one) => one.outerHTML)"""
        )
        assert loose == []


def test_without_script_everything_can_be_read(visit, page):
    seen = visit(page, script=False).page
    text = seen.inner_text("body")
    for words in (
        "The Planted Film",
        "17%",
        "threshold 0.30",
        "Body",
        "passages reach",
        "no verdict",
        "scripts",
    ):
        assert words in text
    assert not seen.get_by_label("Open your own copy").is_visible()
    assert seen.locator("noscript tbody tr").count() > 3


def test_it_prints(visit, page, tmp_path):
    av = pytest.importorskip("av")  # noqa: F841 - the machine that prints is the one with the films
    seen = visit(page, theme="dark").page
    seen.emulate_media(media="print", color_scheme="dark")
    assert seen.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 250, 247)"
    assert not seen.get_by_role("button", name="Zoom in").is_visible()
    assert seen.locator(".caveat").is_visible()
    seen.evaluate("dispatchEvent(new Event('beforeprint'))")
    seen.wait_for_function("document.querySelectorAll('.minutes tbody tr').length === 121")
    assert seen.locator("#f1-table tbody tr").count() > 3
    assert "For it" in seen.locator("#f1-table").inner_text()
    seen.pdf(path=tmp_path / "film.pdf", format="A4")
    data = (tmp_path / "film.pdf").read_bytes()
    assert 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page>") + data.count(b"/Type /Page ") <= 20


def test_twelve_hours_are_small_and_quick(visit, tmp_path):
    duration_s = 12 * 3600.0
    film = invented_film(duration_s=duration_s, n_rows=round(duration_s / 4.7), traced=True)
    starts = np.arange(0, duration_s - 10, 4.5)
    text = "She said this; nobody looked."
    lines = pd.DataFrame({"start_s": starts, "end_s": starts + 3, "text": text})
    write_film_page([film], tmp_path / "silent.html")
    write_film_page([replace(film, subtitles=lines)], tmp_path / "said.html")
    silent, said = ((tmp_path / name).stat().st_size for name in ("silent.html", "said.html"))
    assert silent < 500_000
    assert (said - silent) / len(lines) < 80
    seen = visit(tmp_path / "said.html").page
    assert seen.evaluate("document.querySelectorAll('*').length") <= 1500
    session = seen.context.new_cdp_session(seen)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    seen.reload()
    seen.locator(".d-over").focus()
    seen.keyboard.press("+")
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    assert metrics["ScriptDuration"] < 1.0


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A page of a film of a minute, written beside the owner's copy, with what two people decided."""
    folder = tmp_path_factory.mktemp("watched")
    quick = {"deadline": "realtime", "cpu-used": "8"}
    pictures = [np.full((48, 64, 3), number % 200, np.uint8) for number in range(600)]
    for name, frames in (("own.webm", pictures), ("shorter.webm", pictures[:500])):
        encode(folder / name, iter(frames), "libvpx", 10, options=quick)
    encode(folder / "old.mpg", iter(pictures), "mpeg2video", 10)
    film = invented_film(duration_s=60.0, n_rows=30, unlike_parts=())
    people = [
        Decided(5.0, 15.0, ("AB",), level="S", note="=1+1"),
        Decided(5.0, 15.0, ("CD",), level="HN", is_blind=True),
        Decided(5.0, 15.0, ("AB", "CD"), level="S", is_agreed=True),
    ]
    copy = ScoredCopy(60.0, 10.0, content_key(folder / "own.webm"), {})
    write_film_page([film], folder / "film.html", owned={film.movie: Owned(people=people, copy=copy)})
    return folder


def is_true(page, expression):
    """Wait until an expression is true; the policy forbids Playwright's own way."""
    ends = monotonic() + LONG_MS / 1000
    while not page.evaluate(expression):
        assert monotonic() < ends, expression
        page.wait_for_timeout(50)


def test_from_a_cited_number_to_the_scene_in_two_clicks(visit, watched):
    seen = visit(watched / "film.html")
    page = seen.page
    start = page.evaluate("JSON.parse(document.querySelector('.data').textContent).passages[0].start")
    page.get_by_label("Open your own copy").set_input_files(watched / "own.webm")
    is_true(page, "document.querySelector('#f1-own').textContent")
    assert "the file that was scored" in page.locator("#f1-own").inner_text()
    page.locator("#f1-table tbody button").first.click()
    is_true(page, f"document.querySelector('video').currentTime >= {start}")
    is_true(page, "!document.querySelector('video').paused")
    assert [url for url in seen.requests if not url.startswith(("file:", "blob:", "data:"))] == []
    assert seen.errors == []


def test_an_address_with_a_time_leads_to_the_scene_once_a_film_is_opened(visit, watched):
    page = visit(watched / "film.html").page
    page.goto((watched / "film.html").as_uri() + "#t=30,40")
    page.reload()
    assert "0:00:30–0:00:40" in page.locator("#f1-title").inner_text()
    page.get_by_label("Open your own copy").set_input_files(watched / "own.webm")
    is_true(page, "document.querySelector('video').currentTime >= 30")


def test_another_cut_and_a_film_that_is_not_played_are_said(visit, watched):
    page = visit(watched / "film.html").page
    page.get_by_label("Open your own copy").set_input_files(watched / "shorter.webm")
    is_true(page, "document.querySelector('#f1-own').textContent.includes('Another cut')")
    page.get_by_label("Open your own copy").set_input_files(watched / "old.mpg")
    is_true(page, "!document.querySelector('#f1-command').hidden")
    assert 'ffmpeg -i "old.mpg"' in page.locator("#f1-command").inner_text()
    assert not page.locator("video").is_visible()


def test_nothing_hostile_runs_on_a_page_with_a_local_film(visit, watched, tmp_path):
    """Title, subtitles, names and notes of people, the name of the reader's file, and the address."""
    film = invented_film("tt1", NASTY, duration_s=60.0, n_rows=30, unlike_parts=())
    lines = pd.DataFrame({"start_s": [4.0], "end_s": [9.0], "text": [NASTY]})
    people = [Decided(5.0, 15.0, (NASTY,), level="S", note=NASTY, is_blind=True)]
    path = tmp_path / "hostile.html"
    write_film_page([replace(film, subtitles=lines)], path, owned={film.movie: Owned(people=people)})
    seen = visit(path)
    page = seen.page
    page.goto(f"{path.as_uri()}#t=5,15<img src=x onerror=document.title='broken'>")
    page.reload()
    hostile = tmp_path / "<img src=x onerror=document.title='broken'>.webm"
    hostile.write_bytes((watched / "own.webm").read_bytes())
    page.get_by_label("Open your own copy").set_input_files(hostile)
    is_true(page, "document.querySelector('#f1-own').textContent")
    damaged = tmp_path / "a\";'$(touch x)`.webm"
    damaged.write_bytes(b"\x1aE\xdf\xa3 no film")
    page.get_by_label("Open your own copy").set_input_files(damaged)
    is_true(page, "!document.querySelector('#f1-command').hidden")
    assert 'ffmpeg -i "FILM"' in page.locator("#f1-command").inner_text()
    page.get_by_role("button", name="All", exact=True).click()
    page.locator("#f1-table tbody button").first.click()
    is_true(page, "document.querySelector('#f1-said').textContent.includes('<script>')")
    page.locator("#f1-lines summary").click()
    assert "broken" not in page.title().replace(NASTY, "")
    assert page.locator("img, iframe, main script:not([type='application/json'])").count() == 0
    assert [url for url in seen.requests if not url.startswith(("file:", "blob:", "data:"))] == []


def test_people_who_decided_have_tiers_and_their_decisions_say_how(visit, watched):
    page = visit(watched / "film.html").page
    names = page.locator(".d-tiers [data-who]").evaluate_all("all => all.map((one) => one.dataset.who)")
    assert names == ["AB", "CD"]
    page.get_by_role("button", name="All", exact=True).click()
    rows = page.locator("#f1-table tbody tr").all_inner_texts()
    assert len(rows) == 3
    assert any("CD, blind" in row for row in rows)
    assert any("settled between AB, CD" in row for row in rows)
    page.locator("#f1-table tbody button").first.click()
    assert "AB" in page.locator("#f1-title").inner_text()


CHANGES_READ_ALOUD = """() => {
    window.spoken = [];
    const regions = [...document.querySelectorAll("[role=status], [aria-live], output, [role=slider]")];
    const quiet = (node) => node.ariaLive === "off";
    const observer = new MutationObserver((changes) => {
        for (const {target} of changes) {
            const region = regions.find((one) => one.contains(target));
            if (region && !quiet(region)) spoken.push(region.id || region.className);
        }
    });
    const what = {subtree: true, childList: true, characterData: true, attributeFilter: ["aria-valuetext"]};
    for (const region of regions) observer.observe(region, what);
}"""


def test_nothing_is_read_aloud_while_the_film_plays_and_the_time_is_when_it_stands(visit, watched):
    page = visit(watched / "film.html").page
    page.get_by_label("Open your own copy").set_input_files(watched / "own.webm")
    is_true(page, "document.querySelector('#f1-own').textContent")
    page.keyboard.press("n")
    is_true(page, "!document.querySelector('video').paused")
    page.evaluate(CHANGES_READ_ALOUD)
    before = page.evaluate("document.querySelector('video').currentTime")
    is_true(page, f"document.querySelector('video').currentTime > {before} + 2")
    assert page.evaluate("spoken") == []
    page.evaluate("document.querySelector('video').pause()")
    is_true(page, "spoken.includes('d-track d-over')")


FOCUSED = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const isOutlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
    const name = one.id || one.dataset.key || one.dataset.filter || one.className || one.tagName;
    return [name, isOutlined && one.getBoundingClientRect().bottom > 0];
}"""
"""What has the focus, and whether that is seen."""


def test_the_page_is_toured_by_the_keyboard_alone_and_focus_is_seen(visit, watched):
    page = visit(watched / "film.html").page
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUSED)
        if where[0] == "BODY":
            break
        reached.append(where)
    names = [name for name, _ in reached]
    for name in ("skip", "f1-file", "N", "f1-order", "passages", "d-track d-over", "d-scroll", "d-strips"):
        assert name in names
    assert [name for name, is_seen in reached if not is_seen] == []
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.locator("[data-change=n]").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("m")  # the key of the next passage
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert "Nothing selected" in page.locator("#f1-title").inner_text()
    page.keyboard.press("m")
    assert "Passage 1" in page.locator("#f1-title").inner_text()
    assert page.locator("[data-key=N] kbd").inner_text() == "M"
    page.keyboard.press("v")
    assert page.locator("#f1-order").input_value() == "strength"
    page.keyboard.press("f")
    assert page.locator("[data-filter=weak]").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1280, 720), (1024, 768), (700, 450), (390, 844)])
def test_film_and_cursor_are_in_view_at_every_size(visit, watched, tmp_path, width, height):
    page = visit(watched / "film.html", width=width, height=height).page
    own = shutil.copy(watched / "own.webm", tmp_path / "Harbour Lights (1954), mine.webm")
    page.get_by_label("Open your own copy").set_input_files(own)
    is_true(page, "document.querySelector('#f1-own').textContent")
    said, shown = page.locator("#f1-own").bounding_box(), page.locator(".d-none").bounding_box()
    assert said["y"] + said["height"] <= shown["y"] + shown["height"] + 1  # no line of it is cut
    page.keyboard.press("n")
    assert page.locator("video").bounding_box()["height"] > 120
    assert page.locator(".d-before").is_hidden()
    page.evaluate("document.querySelector('.d-desk').scrollIntoView()")
    deepest = page.evaluate("document.querySelector('.d-desk').offsetHeight") - height
    for down in (0, max(deepest, 0) // 2, max(deepest, 0)):
        page.evaluate(f"scrollTo(0, document.querySelector('.d-desk').offsetTop + {down})")
        for name in ("video", ".d-here"):
            box = page.evaluate(f"document.querySelector({name!r}).getBoundingClientRect().toJSON()")
            assert box["top"] >= -1, (name, down)
            assert box["bottom"] <= height + 1, (name, down)
    assert page.evaluate("document.documentElement.scrollWidth") == width


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
