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
from tests.film.page.invented import fake_scored_film
from tests.film.workspace.conftest import desks_in_threads
from tests.film.workspace.deciding import judge_blindly
from tests.film.workspace.driving import (
    BEGIN_HERE,
    ELEMENTS_THAT_SCROLL,
    END_HERE,
    NEXT_PASSAGE,
    UNDO,
    VIDEO,
    VIOLENT,
    decided_texts,
    drag,
    give_name,
    press_key_and_wait,
    progress_of,
    seek,
    wait_for_announcement,
    wait_for_title,
    wait_until,
    wait_until_script_runs,
)
from tests.video.encoding import encode

pytestmark = pytest.mark.long

ELEMENTS_CUT_OFF = """[...document.querySelectorAll("body *")]
    .filter((one) => !one.closest(".wide, .unseen, .skip, svg, .d-tiers"))
    .filter((one) => one.offsetWidth && one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.outerHTML.slice(0, 99))"""
"""What lies right of the window, other than what scrolls, and what is only read aloud."""

NAMES_CUT_IN_HALF = """[...document.querySelectorAll(".d-tiers .label span")]
    .filter((one) => one.getBoundingClientRect().bottom > one.parentNode.getBoundingClientRect().bottom + 1)
    .map((one) => one.textContent)"""
"""Tiers whose names are cut."""


def go_to(page, path):
    """Go to a page of the workspace: its address begins with http://HOST/TOKEN."""
    root = "/".join(page.url.split("/")[:4])
    page.goto(f"{root}/{path}")


def show_evidence(page):
    """Go to the model's first passage, and wait until its probability is there."""
    page.keyboard.press(NEXT_PASSAGE)
    wait_until(page, "document.querySelector('#d-p').textContent")


WIDTH_OF_A4 = 718
"""Pixels of CSS between the margins of a printed page."""


@pytest.mark.nightly
@pytest.mark.parametrize("path", ["films", "film/0/read", "film/0/blind"])
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 400)])
def test_pages_are_accessible_and_nothing_overflows(desk_in_browser, path, theme, width):
    """The pages are the list of films, the desk with a passage's evidence, and a window to judge blindly.

    Axe, a program that checks pages for people with disabilities, finds no barrier. Nothing is cut off at any
    width, nor in print, and on a wide screen nothing of the two pages to judge on has to be scrolled.
    """
    page = desk_in_browser.page
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 720})
    go_to(page, path)
    if path == "film/0/blind":
        give_name(page)
        page.get_by_role("button", name="Begin").click()
        wait_for_title(page, "Window")
    if path == "film/0/read":
        give_name(page)
        show_evidence(page)

    assert axe_violations(page) == []
    if width == 1280 and path != "films":
        assert page.evaluate(ELEMENTS_THAT_SCROLL) == []  # the desk fits on a wide screen
    for screen_width in (width, 620, 900, 1600):
        assert_nothing_overflows(page, screen_width, "screen")
    assert_nothing_overflows(page, WIDTH_OF_A4, "print")


def assert_nothing_overflows(page, width, media):
    """See that nothing reaches beyond a window, or a printed page, of this width in pixels."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media=media)
    assert page.evaluate(ELEMENTS_CUT_OFF) == [], (width, media)
    assert page.evaluate("document.documentElement.scrollWidth") == width


OBYGAZE12_FILE = Path(obygaze_features.__file__).parent / "manifest" / "codebooks" / "obygaze12.codebook.toml"


def open_desk_in_browser(served, browser, *, width=1280, height=720):
    """Open the desk of the only film that is served and entered, and give a name."""
    context = browser.new_context(viewport={"width": width, "height": height})
    name, _, value = served.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": f"http://{served.host}{served.base}/"}])
    page = context.new_page()
    page.set_default_timeout(LONG_MS)
    page.goto(f"http://{served.host}{served.base}/film/0/read")
    give_name(page)
    return page


@pytest.fixture(scope="module")
def served_scholar(film, tmp_path_factory, cache_of_film):
    """A served film with traces and subtitles, in a real codebook."""
    folder = tmp_path_factory.mktemp("scholar")
    subtitles = pd.DataFrame(
        {"start_s": [119.0, 305.0], "end_s": [122.0, 309.0], "text": ["Look at her", "No"]}
    )
    scored = replace(fake_scored_film(n_rows=100, duration_s=600.0, traced=True), subtitles=subtitles)
    scored.write(folder / "tt1")
    with pytest.MonkeyPatch.context() as patch, desks_in_threads() as start:
        patch.setenv("XDG_CACHE_HOME", str(cache_of_film))
        yield start(folder / "tt1", OBYGAZE12_FILE, "--film", str(film))


@pytest.fixture
def desk_of_a_scholar(served_scholar, browser):
    """The desk of `served_scholar` in a browser, at the model's first passage."""
    page = open_desk_in_browser(served_scholar, browser)
    show_evidence(page)
    yield page
    page.context.close()


def test_the_desks_evidence_on_a_passage_has_its_probability_with_a_band_and_numbers_of_concepts(
    desk_of_a_scholar,
):
    """The desk is at the model's first passage, as "0.87 [0.71–0.94]"; each concept's row has a number."""
    page = desk_of_a_scholar
    evidence = page.locator("#d-why").inner_text()
    probability_with_band = r"0\.\d\d\s\[0\.\d\d–0\.\d\d\]"
    assert re.search(probability_with_band, evidence)
    rows_of_concepts = page.locator("#d-parts tbody tr").all_inner_texts()
    assert len(rows_of_concepts) > 1
    for text in rows_of_concepts:
        assert re.search(r"[+−]?\d\.\d\d", text)


def test_the_desk_answers_how_sure_the_model_is_and_has_a_table_by_the_minute(desk_of_a_scholar):
    """A button opens an answer: how well the model does in films left out, how far experts agree (kappa).

    It also says what cannot be judged, and has a table of the film of ten minutes with a row a minute.
    """
    page = desk_of_a_scholar
    page.get_by_role("button", name="How sure is this?").click()
    answer = page.get_by_role("dialog").inner_text()
    for words in ("films left out", "kappa", "cannot be judged"):
        assert words in answer

    heading_that_opens_the_table = page.locator("#d-minutes summary")
    heading_that_opens_the_table.click()
    wait_until(page, "document.querySelectorAll('#d-minutes tbody tr').length === 10")


def test_a_desk_without_a_corpus_says_with_which_option_it_learns(desk_of_a_scholar):
    """The button "Learn" opens a dialog, which names the option of `film open` with a corpus's files."""
    page = desk_of_a_scholar
    page.get_by_role("button", name="Learn").click()
    assert "--learn clips.csv features" in page.get_by_role("dialog").inner_text()


def test_the_desk_defines_levels_and_concepts(desk_of_a_scholar):
    """The definition comes by pointing at a button, or by reaching it with keys.

    Of the level Hard Negative the codebook says that elements "can objectify a character, and do not here".
    """
    page = desk_of_a_scholar
    shown_definition = page.locator("#d-means")

    page.get_by_role("button", name="Hard Negative").hover()
    assert "can objectify a character, and do not here" in shown_definition.inner_text()

    page.get_by_role("button", name="Posture").focus()
    assert shown_definition.inner_text().startswith("Posture: ")


def test_the_desk_lists_a_judgement_and_counts_that_it_disagrees_with_the_model(desk_of_a_scholar):
    """AB calls the model's first passage Easy Negative by its key. The model finds another level there.

    The line on progress counts one judgement that does not agree. With a row in its table, the desk still
    fits on the screen.
    """
    page = desk_of_a_scholar
    key_of_easy_negative = "1"
    press_key_and_wait(page, key_of_easy_negative)
    one_disagreement = "not 1"
    assert one_disagreement in progress_of(page)
    assert decided_texts(page) == ["EN (Easy Negative)"]
    assert page.evaluate(ELEMENTS_THAT_SCROLL) == []


def test_the_desk_shows_stills_and_colours(desk_of_a_scholar):
    """Stills and colours are made in the background; the film has no sound, and the desk none to show.

    The strip of colours is as long as the film of 600 s, in tenths of a second.
    """
    page = desk_of_a_scholar
    wait_until(page, "document.querySelector('#d-stills').clientHeight")
    assert page.evaluate(ELEMENTS_THAT_SCROLL) == []
    assert page.locator("#d-colours image").get_attribute("width") == str(10 * 600)
    assert not page.locator("#d-sound").is_visible()


def test_the_desk_shows_what_is_said_in_a_span(desk_of_a_scholar):
    """The line "Look at her" is said from 119 to 122 s. AB selects 110 to 130 s by dragging the mouse.

    The evidence on the span has the line. The video has both lines of the film as subtitles, and the desk
    still fits on the screen.
    """
    page = desk_of_a_scholar
    drag(page, start=110, end=130)
    wait_until(page, "document.querySelector('#d-said').textContent.includes('Look at her')")
    wait_until(page, f"{VIDEO}.textTracks[0].cues?.length === 2")
    assert page.evaluate(ELEMENTS_THAT_SCROLL) == []


def test_an_own_passage_cannot_end_before_it_begins(desk_of_a_scholar):
    """A person begins a passage at 300 s, and sets its end at 290 s: the desk says what is wrong.

    The keys `BEGIN_HERE` and `END_HERE` take the time at which the film stands.
    """
    page = desk_of_a_scholar
    page.keyboard.press("Escape")  # leaves the model's passage
    seek(page, second=300)
    page.keyboard.press(BEGIN_HERE)
    seek(page, second=290)
    page.keyboard.press(END_HERE)
    wait_for_announcement(page, "after the beginning")


def test_no_name_of_a_tier_is_cut_on_a_telephone(desk_of_a_scholar):
    """Tiers are the rows of the timeline, each with a name beside it. A telephone is 400 pixels wide."""
    page = desk_of_a_scholar
    page.set_viewport_size({"width": 400, "height": 720})
    assert page.evaluate(NAMES_CUT_IN_HALF) == []


ELEMENTS_OVER_THE_TIMELINE = """(() => {
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


@pytest.fixture(scope="module")
def served_with_everything(tmp_path_factory):
    """A served film with all that a desk can have: encoding as it plays, two judges, and subtitles."""
    folder = tmp_path_factory.mktemp("everything")
    starts = np.arange(0.0, 590.0, 6.0)
    subtitles = pd.DataFrame({"start_s": starts, "end_s": starts + 3.0, "text": "Look"})
    scored = replace(fake_scored_film(n_rows=100, duration_s=600.0), subtitles=subtitles)
    scored.write(folder / "tt1")
    decisions = Decisions(folder / "tt1", scored, builtin_codebook("obygaze12"))
    for annotator in ("AB", "CD"):
        judge_blindly(decisions, *["S", "HN"] * 5, annotator=annotator, in_all=10)
    decisions.ledger.close()
    # 600 s of one grey a second, in a format that browsers do not play
    pictures = (np.full((48, 64, 3), second % 200, np.uint8) for second in range(600))
    path = encode(folder / "tt1.mkv", pictures, "mpeg2video", rate=1)
    with pytest.MonkeyPatch.context() as patch, desks_in_threads() as start:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield start(folder / "tt1", OBYGAZE12_FILE, "--film", str(path))


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (1280, 720), (1024, 768), (900, 640)])
def test_nothing_is_drawn_over_the_timeline_and_the_film_stays_large(
    served_with_everything, browser, width, height
):
    """The desk with everything it can have, two judges, subtitles and a film, must fit on common screens.

    On each, the film stays at least 120 pixels high, and the evidence for a passage covers nothing of the
    timeline.
    """
    page = open_desk_in_browser(served_with_everything, browser, width=width, height=height)
    show_evidence(page)
    wait_until(page, "document.querySelectorAll('#d-table tbody tr').length")  # rows of decisions

    assert page.evaluate(ELEMENTS_OVER_THE_TIMELINE) == []
    height_of_film = page.locator("video").bounding_box()["height"]
    assert height_of_film >= 120

    page.context.close()


ENGLISH_WORDS = r"\b(the|and|judged?|films? by|all films|minus|above|up to|Loop|Note:|undefined|\{\w+\})\b"


def assert_all_is_french(page):
    """See that no English word is shown, not even in a dialog; the film's title is English."""
    assert page.evaluate("document.documentElement.lang") == "fr"
    page.evaluate("document.querySelectorAll('dialog').forEach((dialog) => dialog.show())")
    text = page.inner_text("body").replace("A Planted Film", "")
    assert re.findall(ENGLISH_WORDS, text) == []


def give_name_in_french(page):
    """Type a judge's name into the French page."""
    wait_until_script_runs(page)
    page.get_by_label("Votre nom").fill("AB")


def test_a_french_browser_gets_all_pages_in_french(desk_in_browser):
    """A browser asks for French first, and the list of films, the desk and the page of windows are in French.

    So are their dialogs, and what the desk says when one of its four passages is judged and this is undone.
    """
    page = desk_in_browser.page
    page.set_extra_http_headers({"Accept-Language": "fr-CH, fr;q=0.9, en;q=0.8"})

    # The list of films
    go_to(page, "films")
    assert_all_is_french(page)

    # The desk
    go_to(page, "film/0/read")
    give_name_in_french(page)
    page.locator("#d-title").click()  # keys are not letters of the name any more
    page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(page, VIOLENT, "gardé")
    press_key_and_wait(page, UNDO, "annulé")
    assert "jugés : 0 sur 4" in progress_of(page)
    assert_all_is_french(page)

    # The page of windows to judge blindly
    go_to(page, "film/0/blind")
    give_name_in_french(page)
    page.get_by_role("button", name="Commencer").click()
    wait_for_title(page, "Fenêtre")
    assert_all_is_french(page)


@pytest.mark.nightly
def test_a_film_that_browsers_do_not_play_gets_a_copy(
    desk_in_browser, serve, films, film, tmp_path, monkeypatch
):
    """The film is in a container, Matroska, that not all browsers open: the desk offers to make a copy.

    Once the copy is made the page shows it: a video of ten minutes.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = desk_in_browser.page
    path = tmp_path / "tt2.mkv"
    shutil.copy(film, path)  # the same codec in a container that not all browsers open
    book = films / "violence.codebook.toml"
    served = serve(films / "scored" / "tt2", book, "--film", str(path), enter=False)
    page.goto(served.address)
    page.wait_for_url("**/read")
    with page.expect_event("load"):  # it shows the copy as soon as there is one
        page.get_by_role("button", name="Make the copy").click()
    wait_until(page, "document.querySelector('video')?.duration > 595")


GREY_OF_SHOWN_PICTURE = """(() => {
    const canvas = Object.assign(document.createElement("canvas"), {width: 8, height: 8});
    canvas.getContext("2d").drawImage(document.querySelector("video"), 0, 0, 8, 8);
    return canvas.getContext("2d").getImageData(4, 4, 1, 1).data[0];
})()"""
"""How light the picture is that the player shows."""


def pictures_as_grey_as_four_times_the_second(n_seconds):
    """Return 25 pictures a second, of one grey each: 0 in the first second, 4 in the next, and so on."""
    return (np.full((48, 64, 3), 4 * (frame // 25), np.uint8) for frame in range(n_seconds * 25))


def wait_for_picture_of_grey(page, grey):
    """Wait until the player shows a picture of this grey, but for the losses of compression."""
    wait_until(page, f"{VIDEO}.readyState >= 2 && Math.abs({GREY_OF_SHOWN_PICTURE} - {grey}) < 8")


def test_a_film_that_browsers_do_not_play_is_encoded_from_where_one_looks(
    desk_in_browser, serve, films, tmp_path, monkeypatch
):
    """A film in MPEG-2 is encoded anew, as it is asked for; soon the picture of each time is shown.

    No part is encoded twice, wherever one looks. In the film of 60 s, second n is as grey as 4 n (0 is black,
    255 white), so that the grey of a picture tells which second is shown.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = desk_in_browser.page
    path = encode(tmp_path / "tt2.mkv", pictures_as_grey_as_four_times_the_second(n_seconds=60), "mpeg2video")
    book = films / "violence.codebook.toml"
    served = serve(films / "scored" / "tt2", book, "--film", str(path), enter=False)
    page.goto(served.address)
    page.wait_for_url("**/read")

    # One looks here and there: 41.5 s is encoded already when one comes back from 12.5 s.
    for second in (40.5, 12.5, 41.5, 3.5):
        seek(page, second)
        wait_for_picture_of_grey(page, 4 * int(second))
    times_encoded_from = [
        url.partition("/stream?t=")[2] for url in desk_in_browser.requested_addresses if "/stream?" in url
    ]
    assert len(times_encoded_from) == len(set(times_encoded_from))

    # It plays, and a copy of the whole film is offered.

    page.evaluate(f"{VIDEO}.muted = true; {VIDEO}.play()")
    wait_until(page, f"{VIDEO}.currentTime > 5")
    assert page.get_by_role("button", name="Make the copy").is_visible()
    assert desk_in_browser.errors == []
