"""What the desk shows in a real browser: nothing cut, both languages, answers to a scholar's questions."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import obygaze_features
from obygaze_features.manifest import builtin_codebook
from obygaze_film.workspace.decisions import Decisions
from tests.browsers import LONG_MS
from tests.film.conftest import axe_violations
from tests.film.page.invented import invented_film
from tests.film.workspace.deciding import judge_blindly
from tests.film.workspace.driving import (
    SCROLLING,
    TITLE,
    VIDEO,
    decided_texts,
    drag,
    give_name,
    press_and_hear,
    seek,
    wait_until,
    wait_until_said,
)
from tests.video.encoding import encode

pytestmark = pytest.mark.long

CUT = """[...document.querySelectorAll("body *")]
    .filter((one) => !one.closest(".wide, .unseen, .skip, svg, .d-tiers"))
    .filter((one) => one.offsetWidth && one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 99))"""
"""What lies right of the window, other than what scrolls, and what is only read aloud."""

HALVED = """[...document.querySelectorAll(".d-tiers .label span")]
    .filter((one) => one.getBoundingClientRect().bottom > one.parentNode.getBoundingClientRect().bottom + 1)
    .map((one) => one.textContent)"""
"""Tiers whose names are cut."""


@pytest.mark.parametrize("mode", ["films", "film/0/read", "film/0/blind"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing_and_nothing_overflows(opened, mode, theme, width):
    page = opened[0]
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 720})
    page.goto("/".join(page.url.split("/")[:4]) + f"/{mode}")
    if mode != "films":
        give_name(page)
    if mode.endswith("blind"):
        page.get_by_role("button", name="Begin").click()
        wait_until(page, f"{TITLE}.startsWith('Window')")
    if mode.endswith("read"):
        page.keyboard.press("n")
        wait_until(page, "document.querySelector('#d-p').textContent")
    assert axe_violations(page) == []
    if width == 1280 and mode != "films":
        assert page.evaluate(SCROLLING) == []
    for size, media in (
        (width, "screen"),
        (620, "screen"),
        (900, "screen"),
        (1600, "screen"),
        (718, "print"),
    ):
        page.set_viewport_size({"width": size, "height": 900})  # 718: A4
        page.emulate_media(media=media)
        assert page.evaluate(CUT) == [], (size, media)
        assert page.evaluate("document.documentElement.scrollWidth") == size


def test_seven_questions_of_a_scholar_are_answered_on_the_desk(serve, browser, film, tmp_path):
    lines = pd.DataFrame({"start_s": [119.0, 305.0], "end_s": [122.0, 309.0], "text": ["Look at her", "No"]})
    scored = replace(invented_film(n_rows=100, duration_s=600.0, traced=True), subtitles=lines)
    scored.write(tmp_path / "tt1")
    book = Path(obygaze_features.__file__).parent / "manifest" / "codebooks" / "obygaze12.codebook.toml"
    served = serve(tmp_path / "tt1", book, "--film", str(film), enter=False)
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.set_default_timeout(LONG_MS)
    page.goto(served.address)
    page.wait_for_url("**/read")
    give_name(page)
    page.keyboard.press("n")
    wait_until(page, "document.querySelector('#d-p').textContent")
    shown = page.locator("#d-why").inner_text()
    assert re.search(r"0\.\d\d\s\[0\.\d\d–0\.\d\d\]", shown)  # how sure is this, of this passage
    page.get_by_role("button", name="How sure is this?").click()
    sure = page.get_by_role("dialog").inner_text()
    assert all(words in sure for words in ("films left out", "kappa", "cannot be judged"))
    page.locator("#d-minutes summary").click()  # the tiers as a table
    wait_until(page, "document.querySelectorAll('#d-minutes tbody tr').length === 10")
    page.keyboard.press("Escape")
    seen = page.locator("#d-parts tbody tr").all_inner_texts()  # what does it look at, and how does it count
    assert len(seen) > 1
    assert all(re.search(r"[+−]?\d\.\d\d", text) for text in seen)
    page.get_by_role("button", name="Hard Negative").hover()  # what does Hard Negative mean
    assert "can objectify a character, and do not here" in page.locator("#d-means").inner_text()
    page.get_by_role("button", name="Posture").focus()
    assert page.locator("#d-means").inner_text().startswith("Posture: ")
    press_and_hear(page, "1")  # what did I already do
    assert "not 1" in page.locator("#d-progress").inner_text()
    assert decided_texts(page) == ["Easy Negative"]
    page.get_by_role("button", name="Learn").click()  # what if I disagree
    assert "--learn clips.csv features" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    wait_until(
        page, "document.querySelector('#d-stills').clientHeight"
    )  # stills and colours are made meanwhile
    assert page.evaluate(SCROLLING) == []
    assert page.locator("#d-colours image").get_attribute("width") == "6000"
    assert not page.locator("#d-sound").is_visible()  # it has none
    drag(page, 110, 130)  # what is said here, and on the picture
    wait_until(page, "document.querySelector('#d-said').textContent.includes('Look at her')")
    wait_until(page, f"{VIDEO}.textTracks[0].cues?.length === 2")
    assert page.evaluate(SCROLLING) == []
    page.keyboard.press("Escape")
    seek(page, 300)  # an end before the beginning
    page.keyboard.press("i")
    seek(page, 290)
    page.keyboard.press("o")
    wait_until_said(page, "after the beginning")
    page.set_viewport_size({"width": 400, "height": 720})
    assert page.evaluate(HALVED) == []
    page.context.close()


DRAWN_OVER = """(() => {
    const box = (node) => node.getBoundingClientRect();
    const lowest = (node) => {
        let bottom = box(node).bottom;
        for (let above = node.parentElement; above !== document.body; above = above.parentElement) {
            if (getComputedStyle(above).overflowY !== "visible") bottom = Math.min(bottom, box(above).bottom);
        }
        return bottom;
    };
    const top = box(document.querySelector(".d-overview")).top;
    return [...document.querySelectorAll(":is(.d-film, .d-span, .d-side) *")]
        .filter((one) => one.offsetHeight && lowest(one) > top + 1 && box(one).top < lowest(one))
        .map((one) => one.outerHTML.slice(0, 99));
})()"""
"""What of film, evidence and decisions is drawn over the timeline below them."""


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1280, 720), (1024, 768), (900, 640)])
def test_nothing_is_drawn_over_the_timeline_and_the_film_stays_large(serve, browser, tmp_path, width, height):
    """With all that a desk can have: a film that is encoded while it plays, two judges, what is said."""
    lines = pd.DataFrame(
        {"start_s": np.arange(0.0, 590.0, 6.0), "end_s": np.arange(3.0, 593.0, 6.0), "text": "Look"}
    )
    scored = replace(invented_film(n_rows=100, duration_s=600.0), subtitles=lines)
    scored.write(tmp_path / "tt1")
    book = Path(obygaze_features.__file__).parent / "manifest" / "codebooks" / "obygaze12.codebook.toml"
    made = Decisions(tmp_path / "tt1", scored, builtin_codebook("obygaze12"))
    for who in ("AB", "CD"):
        judge_blindly(made, *["S", "HN"] * 5, who=who, in_all=10)
    made.ledger.close()
    pictures = (np.full((48, 64, 3), number % 200, np.uint8) for number in range(600))
    path = encode(tmp_path / "tt1.mkv", pictures, "mpeg2video", 1)
    served = serve(tmp_path / "tt1", book, "--film", str(path), enter=False)
    page = browser.new_page(viewport={"width": width, "height": height})
    page.set_default_timeout(LONG_MS)
    page.goto(served.address)
    page.wait_for_url("**/read")
    give_name(page)
    page.keyboard.press("n")
    wait_until(page, "document.querySelector('#d-p').textContent")
    wait_until(page, "document.querySelectorAll('#d-table tbody tr').length")
    assert page.evaluate(DRAWN_OVER) == []
    assert page.locator("video").bounding_box()["height"] >= 120
    page.context.close()


ENGLISH = r"\b(the|and|judged?|films? by|all films|minus|above|up to|Loop|Note:|undefined|\{\w+\})\b"


def test_a_french_browser_gets_french(opened):
    page = opened[0]
    page.set_extra_http_headers({"Accept-Language": "fr-CH, fr;q=0.9, en;q=0.8"})
    page.reload()
    for mode in ("films", "film/0/read", "film/0/blind"):
        page.goto("/".join(page.url.split("/")[:4]) + f"/{mode}")
        assert page.evaluate("document.documentElement.lang") == "fr"
        if mode != "films":
            wait_until(page, TITLE)
            page.get_by_label("Votre nom").fill("AB")
        if mode == "film/0/read":
            page.locator("#d-title").click()
            page.keyboard.press("n")
            press_and_hear(page, "3", "gardé")
            press_and_hear(page, "z", "annulé")
            assert "jugés : 0 sur 4" in page.locator("#d-progress").inner_text()
        if mode == "film/0/blind":
            page.get_by_role("button", name="Commencer").click()
            wait_until(page, f"{TITLE}.startsWith('Fenêtre')")
        page.evaluate("document.querySelectorAll('dialog').forEach((one) => one.show())")
        shown = page.inner_text("body").replace("A Planted Film", "")
        assert re.findall(ENGLISH, shown) == [], mode


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
    wait_until(page, "document.querySelector('video')?.duration > 595")


GREY = """(() => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 8, height: 8});
    canvas.getContext("2d").drawImage(document.querySelector("video"), 0, 0, 8, 8);
    return canvas.getContext("2d").getImageData(4, 4, 1, 1).data[0];
})()"""
"""How light the picture is that the player shows."""


def test_a_film_that_browsers_do_not_play_plays_while_it_is_encoded_from_where_one_looks(
    opened, serve, films, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page, requests, errors, _ = opened
    pictures = (np.full((48, 64, 3), 4 * (number // 25), np.uint8) for number in range(25 * 60))
    path = encode(tmp_path / "tt2.mkv", pictures, "mpeg2video")
    book = films / "violence.codebook.toml"
    served = serve(films / "scored" / "tt2", book, "--film", str(path), enter=False)
    page.goto(served.address)
    page.wait_for_url("**/read")
    for second in (40.5, 12.5, 41.5, 3.5):  # there and back: what is there is not encoded again
        seek(page, second)
        wait_until(page, f"{VIDEO}.readyState >= 2 && Math.abs({GREY} - {4 * int(second)}) < 8")
    starts = [url.partition("/stream?t=")[2] for url in requests if "/stream?" in url]
    assert len(starts) == len(set(starts))
    page.evaluate(f"{VIDEO}.muted = true; {VIDEO}.play()")
    wait_until(page, f"{VIDEO}.currentTime > 5")
    assert page.get_by_role("button", name="Make the copy").is_visible()
    assert errors == []
