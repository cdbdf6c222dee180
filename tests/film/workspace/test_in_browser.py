"""The workspace in a real browser: a passage that loops, judgements by keys alone, axe, widths, copies."""

import re
import shutil
import time

import numpy as np
import pytest

from obygaze_features.manifest import import_spans
from obygaze_film import Timeline
from obygaze_film.workspace.decisions import JUDGEMENTS, NOTES, PASSAGES
from obygaze_film.workspace.server import _door
from tests.files import rows_of
from tests.film.conftest import LONG_MS, axe_violations
from tests.planted_models import codebook
from tests.video.encoding import encode

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """Ten minutes that browsers play, five pictures a second."""
    pictures = (np.full((48, 64, 3), number % 200, np.uint8) for number in range(3000))
    quick = {"deadline": "realtime", "cpu-used": "8"}
    return encode(tmp_path_factory.mktemp("film") / "tt1.webm", pictures, "libvpx", 5, options=quick)


@pytest.fixture
def opened(serve, films, film, tmp_path, browser):
    """The workspace in a browser: its page, all requests, all errors, and the folders."""
    ignored = shutil.ignore_patterns("*-1.0.0", "*.staging")
    shutil.copytree(films / "scored", tmp_path / "scored", ignore=ignored)
    book = films / "violence.codebook.toml"
    served = serve(tmp_path / "scored", book, "--film", str(film), enter=False)
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(LONG_MS)
    page = context.new_page()
    requests, errors = [], []
    page.on("request", lambda one: requests.append(one.url))
    page.on("console", lambda one: errors.append(one.text))
    page.on("pageerror", lambda one: errors.append(str(one)))
    with _door(served.address) as door:
        page.goto(door)
        page.wait_for_url("http://**/films")
    yield page, requests, errors, tmp_path / "scored" / "tt1"
    context.close()


CUT = """[...document.querySelectorAll("body *")]
    .filter((one) => !one.closest(".wide, .unseen, svg, .track"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 99))"""
"""What lies right of the window, other than what scrolls, and what is only read aloud."""


def until(page, true):
    """Wait until an expression is true; the policy forbids Playwright's own way."""
    ends = time.monotonic() + LONG_MS / 1000
    while not page.evaluate(true):
        assert time.monotonic() < ends, true
        page.wait_for_timeout(50)


def said(page, text):
    until(page, f"document.querySelector('#said').textContent.includes({text!r})")
    page.evaluate("document.querySelector('#said').textContent = ''")


def test_a_sitting_by_keys(opened, tmp_path):
    page, requests, errors, folder = opened
    assert page.url.endswith("/films")
    page.get_by_role("link", name="A Planted Film").first.click()
    page.get_by_label("Your name").fill("AB")
    page.keyboard.press("Tab")  # out of the name's field; the next Tab stop is a level's button
    page.keyboard.press("n")
    until(page, "!video.paused && video.currentTime > 30")
    span = page.evaluate("span")
    assert Timeline.read(folder).segments()["start_s"].min() <= span[0] < 60
    page.evaluate("player.go(span[1] - .3)")
    until(page, "video.currentTime < span[0] + 5")  # it began again
    page.keyboard.press("1")
    said(page, "kept")
    page.evaluate("video.pause(); player.go(250)")
    until(page, "!video.seeking")
    page.keyboard.press("i")
    page.evaluate("player.go(262)")
    until(page, "!video.seeking")
    page.keyboard.press("o")
    page.keyboard.press("3")
    said(page, "kept")
    page.get_by_label("Note").fill("=a note")
    page.get_by_role("button", name="Keep", exact=True).click()
    said(page, "kept")
    assert page.locator("#decided li").count() == 3
    assert page.locator("#you rect").count() == 3
    page.get_by_role("button", name="Copy citation").click()
    until(page, "document.querySelector('#said').textContent")
    page.keyboard.press("z")
    said(page, "taken back")
    assert rows_of(folder / NOTES) == []
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")

    page.get_by_role("link", name="Judge blind").click()
    assert page.get_by_label("Your name", exact=True).input_value() == "AB"
    page.get_by_role("button", name="Begin").click()
    for number in range(1, 41):
        until(page, f"document.querySelector('#target').textContent.startsWith('Window {number} of 40')")
        page.keyboard.press("1" if number % 4 else "3")
        if number == 20:
            until(page, "document.querySelector('#target').textContent.startsWith('Window 21')")
            page.get_by_role("button", name="Show the interval so far").click()
            page.get_by_text(re.compile("whenever you stop")).wait_for()
    page.get_by_text(re.compile("from 40 windows")).wait_for()

    files = [folder / JUDGEMENTS, folder / PASSAGES]
    clips = import_spans(files, tmp_path, "judgements", codebook=codebook(tmp_path)).manifest
    seen = [clip.extras["seen_score"] for clip in clips]
    assert (seen.count("0"), seen.count("1")) == (40, 2)
    (own,) = (clip for clip in clips if clip.start_s == 250)
    assert (own.end_s, own.level) == (262, "violent")
    assert errors == []
    assert {url.split("/")[2] for url in requests} == {"", page.url.split("/")[2]}  # "" of the file


def read(page, name="AB"):
    """Go to a film and give a name."""
    page.get_by_role("link", name="A Planted Film").first.click()
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Tab")


def look(page, second):
    page.evaluate(f"video.pause(); player.go({second})")
    until(page, "!video.seeking")


def decide(page, key):
    page.keyboard.press(key)
    said(page, "kept")


TICKED = "ticked()"
EVIDENCE = (
    "[document.querySelector('#why .p')?.textContent, cardsOf[target.place]?.querySelector('.p').textContent]"
)


def test_concepts_and_evidence_are_of_the_passage_that_is_judged(opened):
    page, _, errors, folder = opened
    read(page)
    first, second = (box.get_attribute("value") for box in page.locator(".ticks input").all()[:2])
    for concept in (first, second):  # ticked anew at each passage, or not recorded
        page.keyboard.press("n")
        assert page.evaluate(TICKED) == []
        page.get_by_label(concept).check()
        shown, own = page.evaluate(EVIDENCE)
        assert shown == own
        decide(page, "1")
    page.keyboard.press("n")
    decide(page, "3")
    for start, concept in ((250, first), (400, second)):
        look(page, start)
        page.keyboard.press("i")
        assert page.evaluate(TICKED) == []
        assert page.locator("#why *").count() == 0  # nothing is known of a passage of one's own
        page.get_by_label(concept).check()
        look(page, start + 12)
        page.keyboard.press("o")
        assert page.evaluate(TICKED) == [concept]  # the same passage, its end moved
        decide(page, "1")
    page.keyboard.press("n")
    for expected in ([first], [second], []):  # what was kept of a passage is shown where it is met again
        assert page.evaluate(TICKED) == expected
        page.keyboard.press("n")
    page.keyboard.press("p")
    page.get_by_role("button", name="Move its ends").click()
    assert page.locator("#why *").count() == 0
    assert [row["concepts"] for row in rows_of(folder / JUDGEMENTS)] == [first, second, ""]
    assert [row["concepts"] for row in rows_of(folder / PASSAGES)] == [first, second]
    assert errors == []


WAITING = "video.currentTime = 500; video.dispatchEvent(new Event('timeupdate'))"
"""An event of before the look elsewhere, which browsers hand on after it."""


@pytest.mark.parametrize(
    "there", ["film.timeline.go(500)", "player.go(500)", "video.currentTime = 500", WAITING]
)
def test_a_look_elsewhere_leaves_the_passage(opened, there):
    page = opened[0]
    read(page)
    for _ in range(2):
        page.keyboard.press("n")
        until(page, "!video.paused && !video.seeking && video.currentTime > 30 && video.currentTime < 480")
        page.evaluate("player.go(span[1] - .3)")
        until(page, "video.currentTime < span[1] - .5")  # it began again
        page.evaluate(there)
        until(page, "!video.seeking && video.currentTime > 500.7")
        assert page.evaluate("[video.paused, span]") == [False, None]


@pytest.mark.parametrize("mode", ["films", "film/0/read", "film/0/blind"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1400), ("dark", 400)])
def test_axe_finds_nothing_and_nothing_overflows(opened, mode, theme, width):
    page = opened[0]
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/".join(page.url.split("/")[:4]) + f"/{mode}")
    if mode.endswith("blind"):
        page.get_by_role("button", name="Begin").click()
    if mode.endswith("read"):
        page.keyboard.press("n")
    assert axe_violations(page) == []
    for size, media in ((width, "screen"), (620, "screen"), (900, "screen"), (718, "print")):  # 718: A4
        page.set_viewport_size({"width": size, "height": 900})
        page.emulate_media(media=media)
        assert page.evaluate(CUT) == [], (size, media)
        assert page.evaluate("document.documentElement.scrollWidth") == size


def test_a_film_that_browsers_do_not_play_gets_a_copy(opened, serve, films, film, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = opened[0]
    path = tmp_path / "tt2.mkv"
    shutil.copy(film, path)  # the same codec in a container that not all browsers open
    book = films / "violence.codebook.toml"
    served = serve(films / "scored" / "tt2", book, "--film", str(path), enter=False)
    page.goto(served.address)
    page.wait_for_url("**/read")
    with page.expect_event("load"):  # it shows the copy as soon as there is one
        page.get_by_role("button", name="Make the copy").click()
    until(page, "document.querySelector('video')?.duration > 595")
