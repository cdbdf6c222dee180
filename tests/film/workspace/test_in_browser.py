"""The desk in a real browser, acted on twice and thrice: what is on the screen, and what is in the tables."""

import re
import shutil

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film import Timeline
from obygaze_film.workspace.decisions import JUDGEMENTS, PASSAGES, Decisions
from tests.browsers import LONG_MS
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly
from tests.film.workspace.driving import (
    IS_LOOPING,
    PRESSED_CONCEPTS,
    PROGRESS,
    SCROLLING,
    TITLE,
    VIDEO,
    decided_texts,
    drag,
    give_name,
    open_desk,
    position_of,
    press_and_hear,
    seek,
    wait_until,
    wait_until_said,
)
from tests.film.workspace.test_definitions import reworded
from tests.planted_models import codebook

pytestmark = pytest.mark.long


ONCE = """([start, status, body]) => {
    const real = fetch;
    window.fetch = (url, ...more) => {
        if (!url.startsWith(start)) return real(url, ...more);
        window.fetch = real;
        if (!status) return Promise.reject(new TypeError("refused"));
        return Promise.resolve(new Response(body, {status}));
    };
}"""
"""What the next request to an address gets; Playwright's routes come into force at times of their own."""


def test_a_sitting_of_reading(opened):
    page, requests, errors, folder = opened
    page.get_by_role("link", name="A Planted Film").first.click()
    wait_until(page, TITLE)
    page.keyboard.press("n")
    press_and_hear(page, "1", "name")  # who decides is asked first
    page.keyboard.type("AB")
    page.keyboard.press("Tab")
    wait_until(page, f"!{VIDEO}.paused && {VIDEO}.currentTime > 30")
    passages = Timeline.read(folder).segments().query("reaches == 1").sort_values("start_s")
    start, end = passages[["start_s", "end_s"]].to_numpy()[0]
    page.evaluate(f"{VIDEO}.currentTime = {end} - .3")
    wait_until(page, f"{VIDEO}.currentTime < {start} + 5")  # it began again
    press_and_hear(page, "3")
    assert "judged: 1 of 4 (agree 1" in page.locator("#d-progress").inner_text()
    drag(page, 240, 262)
    press_and_hear(page, "3")
    page.get_by_label("Note").fill("=a note")
    page.get_by_role("button", name="Keep the note").click()
    wait_until_said(page, "kept")
    assert "added: 1" in page.locator("#d-progress").inner_text()
    assert page.locator("#d-count").inner_text() == "judged: 2, notes: 1"
    (own,) = rows_of(folder / PASSAGES)
    assert (own["note"][-7:], own["level"], own["origin"]) == ("=a note", "violent", "own")
    assert abs(float(own["start_s"]) - 240) < 1 > abs(float(own["end_s"]) - 262)
    assert float(own["start_s"]) * 5 == pytest.approx(
        round(float(own["start_s"]) * 5)
    )  # five frames a second
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    cited = page.locator("#d-citation").inner_text()
    assert "A Planted Film (1950), 0:0" in cited
    assert "Marked violent by AB" in cited
    assert f"tt1.webm#t={float(own['start_s']):g}," in cited
    kinds = {"Save the still": ".png", "Save the figure": ".svg", "Save it as PDF": ".pdf"}
    for link, kind in kinds.items():
        with page.expect_download() as kept:
            page.get_by_role("link", name=link).click()
        assert kept.value.suggested_filename.endswith(kind)
        assert kept.value.path().stat().st_size > 100
    page.keyboard.press("Escape")
    press_and_hear(page, "7", "keys 1 to 3")  # what does nothing says so
    page.keyboard.press("n")
    page.get_by_role("button", name="Keep the note").click()
    wait_until_said(page, "note is empty")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert errors == []
    assert {url.split("/")[2] for url in requests} == {"", page.url.split("/")[2]}  # "" of the file


def test_space_plays_after_a_click_on_a_level_or_a_concept_and_presses_what_keys_have_reached(opened):
    page, _, errors, folder = opened
    open_desk(page)
    page.keyboard.press("n")
    wait_until(page, f"{TITLE}.startsWith('Passage')")
    for button in ("[data-level=violent]", "[data-concept]"):
        page.evaluate(f"{VIDEO}.pause()")
        wait_until(page, f"{VIDEO}.paused")
        page.locator(button).first.click()
        wait_until_said(page, "kept")
        kept = rows_of(folder / JUDGEMENTS)
        page.keyboard.press("Space")
        wait_until(page, f"!{VIDEO}.paused")
        assert rows_of(folder / JUDGEMENTS) == kept
    assert page.evaluate(f"{PRESSED_CONCEPTS}.length") == 1
    page.evaluate(f"{VIDEO}.pause()")
    page.locator("[data-concept]").first.focus()
    page.keyboard.press("Enter")
    wait_until_said(page, "kept")
    wait_until(page, f"{PRESSED_CONCEPTS}.length === 0")
    page.keyboard.press("Space")  # the button's, as for whoever uses no pointer
    wait_until_said(page, "kept")
    wait_until(page, f"{PRESSED_CONCEPTS}.length === 1")
    assert page.evaluate(f"{VIDEO}.paused")
    assert errors == []


def test_forty_windows_in_two_sittings(opened, tmp_path):
    page, _, errors, folder = opened
    page.goto(page.url.rpartition("/films")[0] + "/film/0/blind")
    wait_until(page, TITLE)
    page.get_by_role("button", name="Begin").click()
    wait_until_said(page, "name")
    page.keyboard.type("AB")
    for number in range(1, 41):
        if number in {1, 15}:  # the number is fixed by the first sitting
            page.reload()
            give_name(page)
            how_many = page.get_by_label("How many in all")
            if number == 1:
                how_many.fill("40")
            else:
                wait_until(page, "document.querySelector('#d-n').disabled")
                assert how_many.input_value() == "40"
            page.get_by_role("button", name="Begin").click()
        wait_until(
            page, f"document.querySelector('#d-progress').textContent.includes('Window {number} of 40')"
        )
        page.keyboard.press("1" if number % 4 else "3")
        if number == 5:  # another judgement for the one before, and then the queue goes on
            wait_until(page, "document.querySelector('#d-progress').textContent.includes('Window 6 of 40')")
            following = page.evaluate(TITLE)
            page.get_by_role("button", name="Edit").last.click()
            press_and_hear(page, "3")
            wait_until(page, f"{TITLE} === {following!r}")
            assert len(decided_texts(page)) == 5
        if number == 20:
            wait_until(page, "document.querySelector('#d-progress').textContent.includes('Window 21')")
            page.get_by_role("button", name="Show the interval so far").click()
            page.get_by_text(re.compile("whenever you stop")).wait_for()
    page.get_by_text(re.compile("from 40 windows")).wait_for()
    clips = import_spans([folder / JUDGEMENTS], tmp_path, "judgements", codebook=codebook(tmp_path)).manifest
    assert [clip.extras["seen_score"] for clip in clips] == ["0"] * 40
    assert {row["windows"] for row in rows_of(folder / JUDGEMENTS)} == {"40"}
    assert sum(clip.level == "violent" for clip in clips) in {10, 11}
    assert errors == []


def test_concepts_and_evidence_are_of_the_passage_that_is_judged(opened):
    page, _, errors, folder = opened
    open_desk(page)
    first, second = (one.get_attribute("data-concept") for one in page.locator("[data-concept]").all()[:2])
    seen = []
    for concept in (first, second):  # ticked anew at each passage, or not recorded
        page.keyboard.press("n")
        assert page.evaluate(PRESSED_CONCEPTS) == []
        page.get_by_role("button", name=concept).click()
        wait_until(page, "document.querySelector('#d-p').textContent")
        seen.append(page.locator("#d-why").inner_text())
        press_and_hear(page, "1")
    assert seen[0] != seen[1]
    page.keyboard.press("n")
    press_and_hear(page, "2")
    page.keyboard.press("n")
    assert page.evaluate(PRESSED_CONCEPTS) == []
    for expected in ([first], [second], []):  # what was kept of a passage is shown where it is met again
        page.keyboard.press("n")
        assert page.evaluate(PRESSED_CONCEPTS) == expected
    drag(page, 92, 104)  # where nothing was planted: its own evidence, not that of the passage before
    wait_until(page, "document.querySelector('#d-p').textContent < '0.3'")
    assert page.evaluate(PRESSED_CONCEPTS) == []
    drag(page, 160, 170)
    wait_until(page, "document.querySelector('#d-p').textContent > '0.6'")
    assert "Gun" in page.locator("#d-sentence").inner_text()
    assert "→" in page.locator("#d-parts").inner_text()
    assert page.locator("#d-like li").count() == 4
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.evaluate(SCROLLING) == []
    assert [row["concepts"] for row in rows_of(folder / JUDGEMENTS)] == [first, second, ""]
    assert errors == []


@pytest.mark.parametrize("there", ["video", "click", "key"])
def test_a_look_elsewhere_leaves_the_passage(opened, there):
    page = opened[0]
    open_desk(page)
    for _ in range(2):
        page.keyboard.press("n")
        wait_until(page, f"!{VIDEO}.paused && !{VIDEO}.seeking && {VIDEO}.currentTime < 480")
        assert page.evaluate(IS_LOOPING) == "true"
        if there == "video":
            page.evaluate(f"{VIDEO}.currentTime = 560")
        elif there == "click":
            page.mouse.click(*position_of(page, 560))
        else:
            page.locator(".d-over").focus()
            page.keyboard.press("End")
        wait_until(page, f"!{VIDEO}.seeking && {VIDEO}.currentTime > 560.3")
        assert page.evaluate(IS_LOOPING) == "false"
    page.keyboard.press("n")
    page.keyboard.press("Escape")
    assert page.evaluate(IS_LOOPING) == "false"


def test_decisions_are_marked_moved_edited_deleted_undone_and_done_again(opened):
    page, _, errors, folder = opened
    open_desk(page)

    def ends():
        rows = rows_of(folder / PASSAGES)
        return [(round(float(row["start_s"])), round(float(row["end_s"])), row["level"]) for row in rows]

    drag(page, 240, 262)
    press_and_hear(page, "3")
    box = page.locator("#d-you").bounding_box()
    drag(page, 261.8, 280, box["y"] + box["height"] / 2)  # its end
    wait_until_said(page, "kept")
    assert ends() == [(240, 280, "violent")]
    drag(page, 255, 265, box["y"] + box["height"] / 2)  # the whole
    wait_until_said(page, "kept")
    assert ends() == [(250, 290, "violent")]
    press_and_hear(page, "1")
    assert ends() == [(250, 290, "calm")]
    assert page.locator("#d-table .d-was div").count() == 3
    press_and_hear(page, "x", "deleted")
    assert (ends(), decided_texts(page)) == ([], [])
    for expected in (
        [(250, 290, "calm")],
        [(250, 290, "violent")],
        [(240, 280, "violent")],
        [(240, 262, "violent")],
        [],
    ):
        press_and_hear(page, "z", "undo")
        assert ends() == expected
    press_and_hear(page, "z", "nothing")
    for _ in range(4):
        press_and_hear(page, "y", "redo")
    assert ends() == [(250, 290, "calm")]
    press_and_hear(page, "z", "undo")
    press_and_hear(page, "y", "redo")
    page.reload()
    assert len(decided_texts(page)) == 1
    page.get_by_role("button", name="Edit").click()
    assert page.evaluate(TITLE).startswith("Your passage")
    press_and_hear(page, "2")
    assert ends() == [(250, 290, "unsure")]
    seek(page, 400)
    page.keyboard.press("n")  # a passage of the model: its end moved, it is one's own
    page.keyboard.press("Escape")
    seek(page, 500)
    page.keyboard.press("i")
    seek(page, 503)
    page.keyboard.press("o")
    press_and_hear(page, "3")
    assert ends() == [(250, 290, "unsure"), (500, 503, "violent")]
    page.get_by_role("button", name="Delete").last.click()
    wait_until_said(page, "deleted")
    drag(page, 100, 120)  # keys that are pressed before the answer comes are of one decision
    for key in "312":
        page.keyboard.press(key)
    wait_until(page, "document.querySelector('#d-table tr.d-on .d-was')?.children.length === 3")
    assert sorted(ends()) == [(100, 120, "unsure"), (250, 290, "unsure")]
    assert errors == []


def test_blind_judgements_are_of_the_name_typed_before_the_mode_changes(opened):
    """CD decides, then AB types their name, changes to blind judging, and judges a window."""
    page, _, errors, folder = opened
    open_desk(page)
    give_name(page, "CD")
    page.keyboard.press("n")
    press_and_hear(page, "3")
    give_name(page, "AB")
    page.get_by_role("link", name="Judge blind").click()
    wait_until(page, f"location.pathname.endsWith('/blind') && {TITLE}")
    assert page.locator("#d-who").input_value() == "AB"
    page.get_by_role("button", name="Begin").click()
    wait_until(page, f"{PROGRESS}.includes('Window 1 of')")
    page.keyboard.press("3")
    wait_until(page, f"{PROGRESS}.includes('Window 2 of')")
    judges = {row["seen_score"]: row["annotator"] for row in rows_of(folder / JUDGEMENTS)}
    assert judges == {"1": "CD", "0": "AB"}
    assert not errors


def test_two_windows_of_one_film_see_each_other(opened):
    page, _, errors, folder = opened
    open_desk(page)
    other = page.context.new_page()
    other.goto(page.url)
    give_name(other)
    page.keyboard.press("n")
    press_and_hear(page, "3")
    other.evaluate("dispatchEvent(new Event('focus'))")
    wait_until(other, "document.querySelectorAll('#d-table tbody tr').length === 1")
    other.get_by_role("button", name="Edit").click()
    press_and_hear(page, "x", "deleted")
    press_and_hear(other, "1", "Not kept")  # it was deleted meanwhile
    assert rows_of(folder / JUDGEMENTS) == []
    wait_until(other, "document.querySelectorAll('#d-table tbody tr').length === 0")
    other.keyboard.press("n")
    press_and_hear(other, "1")
    page.evaluate("dispatchEvent(new Event('focus'))")
    wait_until(page, "document.querySelectorAll('#d-table tbody tr').length === 1")
    assert [row["level"] for row in rows_of(folder / JUDGEMENTS)] == ["calm"]
    assert errors == []


def test_what_the_server_refuses_or_answers_no_more_is_said(opened):
    page, *_ = opened
    open_desk(page)
    page.keyboard.press("n")
    for status in (403, None):
        page.evaluate(ONCE, ["decide", status, "not this address"])
        page.keyboard.press("1")
        wait_until_said(page, "Not kept: the workspace was stopped")
    page.evaluate(ONCE, ["span", 400, '{"said": "no features"}'])
    page.keyboard.press("n")
    wait_until(page, "document.querySelector('#d-p').textContent === 'no features'")
    page.keyboard.press("n")
    wait_until(page, "document.querySelector('#d-p').textContent > '0'")
    press_and_hear(page, "1")


def test_single_letters_can_be_switched_off_and_all_is_done_by_the_keyboard(opened):
    page, _, errors, folder = opened
    open_desk(page)
    page.keyboard.press("?")
    page.get_by_label(re.compile("Single letters")).uncheck()
    page.keyboard.press("Escape")
    page.reload()
    give_name(page)
    for key in ("n", "3", "i", ","):
        page.keyboard.press(key)
    assert page.evaluate(TITLE).startswith("Nothing")
    for name, done in (
        ("Next", f"{TITLE}.startsWith('Passage 1')"),
        ("violent", "document.querySelector('#d-table tbody tr')"),
    ):
        for _ in range(120):
            page.keyboard.press("Tab")
            words = page.evaluate("document.activeElement.closest('button')?.textContent ?? ''").split()
            if name in words and "differs" not in words:
                break
        else:
            pytest.fail(f"no button {name} by Tab")
        page.keyboard.press("Enter")
        wait_until(page, done)
    assert len(rows_of(folder / JUDGEMENTS)) == 1
    assert errors == []


def test_what_was_undone_is_changed_again_and_a_note_that_is_emptied_goes(opened):
    page, _, errors, folder = opened
    open_desk(page)
    page.locator("#d-title").click()
    page.keyboard.press("n")
    for key, text in (
        ("3", "kept"),
        ("1", "kept"),
        ("z", "undo"),
        ("x", "deleted"),
        ("x", "nothing of yours"),
    ):
        press_and_hear(page, key, text)
    press_and_hear(page, "z", "undo")
    assert decided_texts(page) == ["violent"]
    page.reload()
    give_name(page)
    for text, answer in (("", "note is empty"), ("here", "kept"), ("", "deleted: 0:00:00")):
        page.locator("#d-note").fill(text)
        page.get_by_role("button", name="Keep the note").click()
        wait_until_said(page, answer)
    page.get_by_role("link", name="Judge blind").click()
    page.wait_for_url("**/blind")
    give_name(page)
    page.get_by_role("button", name="Begin").click()
    wait_until(page, f"{TITLE}.startsWith('Window to judge')")
    page.locator("#d-title").click()
    for key in "cnw":  # of passages, which are not shown here
        press_and_hear(page, key, "only the windows")
    page.locator("#d-note").fill("dark")
    page.get_by_role("button", name="Keep the note").click()
    wait_until_said(page, "with it")
    page.locator("#d-title").click()
    press_and_hear(page, "1")
    (row,) = [row for row in rows_of(folder / JUDGEMENTS) if row["seen_score"] == "0"]
    assert row["note"] == "dark"
    wait_until(page, "document.querySelector('#d-progress').textContent.includes('Window 2')")
    page.locator("#d-table").get_by_role("button", name="Delete").click()
    wait_until(page, "document.querySelector('#d-progress').textContent.includes('Window 1')")
    assert errors == []


def test_the_film_as_a_figure_shows_what_is_shown_to_whoever_saves_it(opened):
    page, *_ = opened
    open_desk(page)
    drag(page, 240, 262)
    press_and_hear(page, "3")
    with page.expect_download() as downloading:
        page.evaluate("document.querySelector('#d-away a[href^=\"figure.svg\"]').click()")
    name = page.get_by_label("Your name").input_value()
    assert name
    assert f"who={name.replace(' ', '+')}" in downloading.value.url


def test_what_was_judged_under_other_words_is_judged_again(serve, browser, film, scored_once, tmp_path):
    """Windows and a passage are judged, then the codebook is reworded: the dialog has both texts."""
    folder = shutil.copytree(scored_once[0], tmp_path / "tt1")
    book = codebook(tmp_path)
    made = Decisions(folder, scored_once[1], book)
    judge_blindly(made, *["violent"] * 10, in_all=10)
    judge(made, 10, 20, "violent")
    path = tmp_path / "other.codebook.toml"
    path.write_text(reworded(book).to_toml(), "utf-8")
    served = serve(folder, path, "--film", str(film), enter=False)
    page = browser.new_page()
    page.set_default_timeout(LONG_MS)
    page.goto(served.address)
    page.wait_for_url("**/read")
    wait_until(page, TITLE)
    page.get_by_label("Your name").fill("")

    def again():
        page.get_by_role("button", name="decided under other words").click()
        dialog = page.get_by_role("dialog")
        shown = dialog.inner_text()
        dialog.get_by_role("button", name="Judge these again").click()
        return shown

    shown = again()
    assert "any shot in which a weapon is on the table" in shown
    assert book.levels[-1].means in shown
    wait_until_said(page, "name")  # nobody has said whose they are
    give_name(page)
    again()
    wait_until(page, "document.querySelector('#d-title').textContent.includes('0:10')")
    press_and_hear(page, "1")  # the passage
    again()  # the windows of the draw come again by themselves
    page.wait_for_url("**/blind")
    give_name(page)
    page.get_by_label("How many in all").fill("10")
    page.get_by_role("button", name="Begin").click()
    for number in range(1, 11):
        wait_until(
            page, f"document.querySelector('#d-progress').textContent.includes('Window {number} of 10')"
        )
        page.keyboard.press("1")
    wait_until(page, "document.querySelector('#d-progress').textContent.includes('judged: 10 of 10')")
    assert {row["level"] for row in rows_of(folder / JUDGEMENTS)} == {"calm"}
    page.goto(page.url.replace("/blind", "/read"))
    wait_until(page, TITLE)
    assert page.get_by_role("button", name="under other words").count() == 0
    page.context.close()
