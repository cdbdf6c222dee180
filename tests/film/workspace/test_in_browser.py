"""The desk in a real browser, acted on twice and thrice: what is on the screen, and what is in the tables."""

import re
import shutil
from typing import NamedTuple

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film import Timeline
from obygaze_film.workspace.decisions import JUDGEMENTS, PASSAGES, Decisions
from tests.browsers import LONG_MS
from tests.files import rows_of
from tests.film.workspace.deciding import judge, judge_blindly
from tests.film.workspace.driving import (
    BEGIN_HERE,
    CALM,
    CITE,
    DELETE,
    ELEMENTS_THAT_SCROLL,
    END_HERE,
    HELP,
    IS_LOOPING,
    NEXT_PASSAGE,
    NEXT_WEAK_PLACE,
    PRESSED_CONCEPTS,
    REDO,
    TITLE,
    UNDO,
    UNSURE,
    VIDEO,
    VIOLENT,
    decided_texts,
    drag,
    give_name,
    open_desk,
    position_of,
    press_key_and_wait,
    progress_of,
    seek,
    wait_for_announcement,
    wait_for_progress,
    wait_for_title,
    wait_until,
    wait_until_script_runs,
)
from tests.film.workspace.test_definitions import NEW_MEANING_OF_VIOLENT, with_other_meaning_of_violent
from tests.planted_models import codebook

pytestmark = pytest.mark.long


ANSWER_NEXT_REQUEST = """([start, status, body]) => {
    const real = fetch;
    window.fetch = (url, ...more) => {
        if (!url.startsWith(start)) return real(url, ...more);
        window.fetch = real;
        if (!status) return Promise.reject(new TypeError("refused"));
        return Promise.resolve(new Response(body, {status}));
    };
}"""
"""What the next request to an address gets; Playwright's routes come into force at times of their own."""


def test_a_person_judges_marks_and_cites_a_passage(desk_in_browser):
    """AB opens a film of which a model marks four passages as violent, and judges the first: AB agrees.

    AB then marks another passage, from 240 to 262 s, with a note, and cites it. Nothing is loaded from
    another machine meanwhile.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    page.get_by_role("link", name="A Planted Film").first.click()
    wait_until_script_runs(page)
    give_name_when_asked(page)
    watch_first_passage_again(page, folder)

    # The model's passage is judged violent.
    press_key_and_wait(page, VIOLENT)
    assert "judged: 1 of 4 (agree 1" in progress_of(page)

    # Another passage is marked as violent, with a note.
    drag(page, start=240, end=262)
    press_key_and_wait(page, VIOLENT)
    page.get_by_label("Note").fill("=a note")
    page.get_by_role("button", name="Keep the note").click()
    wait_for_announcement(page, "kept")
    assert "added: 1" in progress_of(page)
    count_of_decisions = page.locator("#d-count").inner_text()
    assert count_of_decisions == "judged: 2, notes: 1"  # both passages count as judged
    marked_passage = row_of_own_passage(folder)

    # It is cited: the film, who marked it, and where it is in the file.
    page.keyboard.press("Escape")
    page.keyboard.press(CITE)
    citation = page.locator("#d-citation").inner_text()
    assert "A Planted Film (1950), 0:0" in citation
    assert "Marked violent by AB" in citation
    start_in_file = f"{float(marked_passage['start_s']):g}"
    assert f"tt1.webm#t={start_in_file}," in citation
    save_all_files_of_citation(page)
    page.keyboard.press("Escape")

    # A key that is of no level says which ones are; an empty note is refused; there is help.
    press_key_and_wait(page, "7", "keys 1 to 3")
    page.keyboard.press(NEXT_PASSAGE)
    page.get_by_role("button", name="Keep the note").click()
    wait_for_announcement(page, "note is empty")
    page.keyboard.press(HELP)
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")

    # No script failed, and all was loaded from the desk, or the file that opened it.
    assert desk_in_browser.errors == []
    host_of_desk = host_of(page.url)
    no_host = ""  # of a file
    assert {host_of(url) for url in desk_in_browser.requested_addresses} == {host_of_desk, no_host}


def host_of(url):
    """Return the part of an address between // and the next /."""
    return url.split("/")[2]


def give_name_when_asked(page):
    """Judge the first passage without a name: who decides is asked first, and nothing is kept."""
    page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(page, CALM, "name")
    page.keyboard.type("AB")
    page.keyboard.press("Tab")


def watch_first_passage_again(page, folder):
    """See that the passage plays, and begins again where it ends."""
    wait_until(page, f"!{VIDEO}.paused && {VIDEO}.currentTime > 30")
    passages = Timeline.read(folder).segments().query("reaches == 1").sort_values("start_s")
    first = passages.iloc[0]
    page.evaluate(f"{VIDEO}.currentTime = {first['end_s']} - .3")
    wait_until(page, f"{VIDEO}.currentTime < {first['start_s']} + 5")


def row_of_own_passage(folder):
    """Return the only row of the table of own passages, which was marked from 240 to 262 s."""
    (row,) = rows_of(folder / PASSAGES)
    assert row["note"].endswith("=a note")  # a quote before it keeps spreadsheets from computing it
    assert row["level"] == "violent"
    assert row["origin"] == "own"
    assert float(row["start_s"]) == pytest.approx(240, abs=1)  # one pixel is about half a second
    assert float(row["end_s"]) == pytest.approx(262, abs=1)
    frame_number = float(row["start_s"]) * 5  # five frames a second
    assert frame_number == pytest.approx(round(frame_number))
    return row


def save_all_files_of_citation(page):
    """Save what the dialog of a citation offers: a picture, a figure and a PDF."""
    endings = {"Save the still": ".png", "Save the figure": ".svg", "Save it as PDF": ".pdf"}
    for link, ending in endings.items():
        with page.expect_download() as download:
            page.get_by_role("link", name=link).click()
        assert download.value.suggested_filename.endswith(ending)
        assert download.value.path().stat().st_size > 100


def pause(page):
    """Stop the video, and wait until it stands."""
    page.evaluate(f"{VIDEO}.pause()")
    wait_until(page, f"{VIDEO}.paused")


def test_space_plays_after_a_click_but_presses_a_focused_button(desk_in_browser):
    """A browser's Space presses the button that was clicked last, which here would decide twice.

    So after a click Space plays the film; but one who reaches a button by Tab needs Space to press it. The
    desk is at the model's first passage, and has a button for each level and concept.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    page.keyboard.press(NEXT_PASSAGE)
    wait_for_title(page, "Passage")
    button_of_level = page.locator("[data-level=violent]").first
    button_of_concept = page.locator("[data-concept]").first

    # A level and a concept are clicked, and Space plays: it does not press the button again.
    for button in (button_of_level, button_of_concept):
        pause(page)
        button.click()
        wait_for_announcement(page, "kept")
        rows_before = rows_of(folder / JUDGEMENTS)
        page.keyboard.press("Space")
        wait_until(page, f"!{VIDEO}.paused")
        assert rows_of(folder / JUDGEMENTS) == rows_before
    assert page.evaluate(f"{PRESSED_CONCEPTS}.length") == 1

    # Who uses no pointer reaches the concept by Tab: Enter and Space press it, and nothing plays.
    page.evaluate(f"{VIDEO}.pause()")
    button_of_concept.focus()
    page.keyboard.press("Enter")
    wait_for_announcement(page, "kept")
    wait_until(page, f"{PRESSED_CONCEPTS}.length === 0")
    page.keyboard.press("Space")
    wait_for_announcement(page, "kept")
    wait_until(page, f"{PRESSED_CONCEPTS}.length === 1")
    assert page.evaluate(f"{VIDEO}.paused")
    assert desk_in_browser.errors == []


def test_forty_windows_are_judged_in_two_sittings(desk_in_browser, tmp_path):
    """A person judges 14 of 40 windows blindly, and the others another day; every fourth one is violent.

    The number of windows is fixed in the first sitting and cannot be changed in the second. Of the first five
    windows, one is called violent afterwards.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    go_to_blind_desk(page)
    begin_without_a_name(page)

    # First sitting
    page.reload()
    give_name(page)
    page.get_by_label("How many in all").fill("40")
    page.get_by_role("button", name="Begin").click()
    judge_windows_every_fourth_violent(page, first=1, last=5)
    call_the_last_row_violent(page)
    judge_windows_every_fourth_violent(page, first=6, last=14)

    # Second sitting: the number is fixed by the first one. Once 20 are judged, the interval is looked at.
    page.reload()
    give_name(page)
    wait_until_number_of_windows_is_fixed(page)
    assert page.get_by_label("How many in all").input_value() == "40"
    page.get_by_role("button", name="Begin").click()
    judge_windows_every_fourth_violent(page, first=15, last=20)
    wait_for_progress(page, "Window 21 of 40")
    page.get_by_role("button", name="Show the interval so far").click()
    page.get_by_text(re.compile("whenever you stop")).wait_for()
    judge_windows_every_fourth_violent(page, first=21, last=40)
    page.get_by_text(re.compile("from 40 windows")).wait_for()

    # The table has 40 blind judgements, and each says how many there were to be.
    rows = rows_of(folder / JUDGEMENTS)
    assert {row["windows"] for row in rows} == {"40"}
    judgements = import_spans([folder / JUDGEMENTS], tmp_path, "judgements", codebook=codebook(tmp_path))
    clips = judgements.manifest
    has_seen_score = "0"  # no: the judgement is blind
    assert [clip.extras["seen_score"] for clip in clips] == [has_seen_score] * 40

    # Every fourth of 40 is violent, and the edited one, which may be the fourth itself.
    n_violent = sum(clip.level == "violent" for clip in clips)
    assert n_violent in {10, 11}
    assert desk_in_browser.errors == []


def go_to_blind_desk(page):
    """Go to the page on which windows are judged without the model's scores."""
    page.goto(page.url.rpartition("/films")[0] + "/film/0/blind")
    wait_until_script_runs(page)


def begin_without_a_name(page):
    """See that who judges is asked first; typing there alone begins nothing."""
    page.get_by_role("button", name="Begin").click()
    wait_for_announcement(page, "name")
    page.keyboard.type("AB")


def wait_until_number_of_windows_is_fixed(page):
    """Wait until the field for the number of windows can no longer be changed."""
    wait_until(page, "document.querySelector('#d-n').disabled")


def judge_windows_every_fourth_violent(page, first, last):
    """Judge the windows of the draw with these numbers: every fourth violent, the others calm."""
    for number in range(first, last + 1):
        wait_for_progress(page, f"Window {number} of 40")
        page.keyboard.press(VIOLENT if number % 4 == 0 else CALM)


def call_the_last_row_violent(page):
    """Edit the last of the five rows in the table; then the queue goes on with the window it was at, 6."""
    wait_for_progress(page, "Window 6 of 40")
    title_of_sixth = page.evaluate(TITLE)
    page.get_by_role("button", name="Edit").last.click()
    press_key_and_wait(page, VIOLENT)
    wait_until(page, f"{TITLE} === {title_of_sixth!r}")
    assert len(decided_texts(page)) == 5


def first_two_concepts(page):
    """Return the names of the first two concepts on the desk."""
    first, second, *_ = page.locator("[data-concept]").all()
    return first.get_attribute("data-concept"), second.get_attribute("data-concept")


def ticked_concepts(page):
    """Return the names of the concepts that are ticked for what is looked at."""
    return page.evaluate(PRESSED_CONCEPTS)


def judge_next_passage_calm_with(page, concept):
    """Go to the next passage, without ticked concepts, tick one and judge; return the model's evidence."""
    page.keyboard.press(NEXT_PASSAGE)
    assert ticked_concepts(page) == []
    page.get_by_role("button", name=concept).click()
    wait_until(page, "document.querySelector('#d-p').textContent")  # p, the probability
    evidence = page.locator("#d-why").inner_text()
    press_key_and_wait(page, CALM)
    return evidence


def wait_for_text_in_place_of_probability(page, text):
    """Wait until the desk shows this text where the probability of what is looked at would be."""
    wait_until(page, f"document.querySelector('#d-p').textContent === {text!r}")


def wait_for_probability(page, comparison):
    """Wait until the probability of what is looked at is, for example, "< 0.3"."""
    wait_until(page, f"parseFloat(document.querySelector('#d-p').textContent) {comparison}")


def test_each_passage_has_ticked_concepts_of_its_own(desk_in_browser):
    """Of a film's four passages the first is judged calm with one concept, the second calm with another.

    The third is judged unsure without any, and the fourth is left. A concept ticked at one passage must not
    be ticked at the next one; back at the first passage, its concept is shown again.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    concept_of_first, concept_of_second = first_two_concepts(page)

    evidence_of_first = judge_next_passage_calm_with(page, concept_of_first)
    evidence_of_second = judge_next_passage_calm_with(page, concept_of_second)
    page.keyboard.press(NEXT_PASSAGE)  # the third
    press_key_and_wait(page, UNSURE)
    page.keyboard.press(NEXT_PASSAGE)  # the fourth
    assert ticked_concepts(page) == []
    assert evidence_of_first != evidence_of_second

    # After the fourth comes the first passage again.
    for concepts in ([concept_of_first], [concept_of_second], []):
        page.keyboard.press(NEXT_PASSAGE)
        assert ticked_concepts(page) == concepts
    concepts_in_table = [row["concepts"] for row in rows_of(folder / JUDGEMENTS)]
    assert concepts_in_table == [concept_of_first, concept_of_second, ""]
    assert desk_in_browser.errors == []


def test_a_dragged_span_has_evidence_and_concepts_of_its_own(desk_in_browser):
    """One drags over the timeline of a film to choose a span: a gun is planted at 160 s, and nothing at 92 s.

    Probability, sentence and concepts are those of the span; a concept that was ticked for a passage of the
    model is not ticked there. With all of this the desk still fits on a small screen.
    """
    page = desk_in_browser.page
    open_desk(page)
    concept, _second_concept = first_two_concepts(page)
    page.keyboard.press(NEXT_PASSAGE)
    page.get_by_role("button", name=concept).click()
    press_key_and_wait(page, CALM)

    # Nothing was planted from 92 to 104 s, and the concept of the passage is not ticked there.
    drag(page, start=92, end=104)
    wait_for_probability(page, "< 0.3")
    assert ticked_concepts(page) == []

    # From 160 to 170 s a gun was, of which a sentence speaks; and four other spans are like it.
    drag(page, start=160, end=170)
    wait_for_probability(page, "> 0.6")
    sentence_of_reasons = page.locator("#d-sentence").inner_text()
    assert "Gun" in sentence_of_reasons
    parts_of_probability = page.locator("#d-parts").inner_text()
    assert "→" in parts_of_probability
    n_similar_spans = page.locator("#d-like li").count()
    assert n_similar_spans == 4

    # Nothing has to be scrolled on a small screen.
    page.set_viewport_size({"width": 1280, "height": 720})
    assert page.evaluate(ELEMENTS_THAT_SCROLL) == []
    assert desk_in_browser.errors == []


def test_looking_elsewhere_stops_the_repetition_of_a_passage(desk_in_browser):
    """The player repeats the passage that one is at; all four passages of the film end before 530 s.

    Whoever goes to 560 s, or to the end, is not taken back. One leaves the first passage by the player, the
    second by a click, and the third by a key; at the fourth Escape stops the repetition.
    """
    page = desk_in_browser.page
    open_desk(page)

    def go_to_next_passage():
        page.keyboard.press(NEXT_PASSAGE)
        wait_until(page, f"!{VIDEO}.paused && !{VIDEO}.seeking && {VIDEO}.currentTime < 530")
        assert page.evaluate(IS_LOOPING) == "true"

    def see_that_it_plays_on_behind_560_s():
        wait_until(page, f"!{VIDEO}.seeking && {VIDEO}.currentTime > 560.3")
        assert page.evaluate(IS_LOOPING) == "false"

    go_to_next_passage()
    page.evaluate(f"{VIDEO}.currentTime = 560")
    see_that_it_plays_on_behind_560_s()

    go_to_next_passage()
    page.mouse.click(*position_of(page, second=560))
    see_that_it_plays_on_behind_560_s()

    go_to_next_passage()
    slider_of_film = page.locator(".d-over")
    slider_of_film.focus()
    page.keyboard.press("End")
    see_that_it_plays_on_behind_560_s()

    go_to_next_passage()
    page.keyboard.press("Escape")
    assert page.evaluate(IS_LOOPING) == "false"


class SpanAndLevel(NamedTuple):
    """A passage that a person marked, to whole seconds."""

    start_s: int
    end_s: int
    level: str


def own_passages(folder):
    """Return the rows of the table of own passages."""
    return [
        SpanAndLevel(round(float(row["start_s"])), round(float(row["end_s"])), row["level"])
        for row in rows_of(folder / PASSAGES)
    ]


def drag_decision(page, start, end):
    """Drag on the tier of one's own decisions, where an end is moved, or the whole between the ends."""
    box = page.locator("#d-you").bounding_box()
    drag(page, start, end, y=box["y"] + box["height"] / 2)
    wait_for_announcement(page, "kept")


MARKED = SpanAndLevel(start_s=240, end_s=262, level="violent")
WITH_END_MOVED = SpanAndLevel(start_s=240, end_s=280, level="violent")
MOVED = SpanAndLevel(start_s=250, end_s=290, level="violent")
MOVED_AND_CALM = SpanAndLevel(start_s=250, end_s=290, level="calm")


def mark_move_and_edit(page, folder):
    """Mark a passage, move its end, move it as a whole, and call it calm."""
    drag(page, start=240, end=262)
    press_key_and_wait(page, VIOLENT)
    drag_decision(page, start=261.8, end=280)
    assert own_passages(folder) == [WITH_END_MOVED]
    drag_decision(page, start=255, end=265)  # 10 s later
    assert own_passages(folder) == [MOVED]
    press_key_and_wait(page, CALM)
    assert own_passages(folder) == [MOVED_AND_CALM]
    n_earlier_versions = page.locator("#d-table .d-was div").count()
    assert n_earlier_versions == 3


def test_all_changes_of_a_passage_are_undone_and_redone(desk_in_browser):
    """A passage is marked, its end and then all of it is moved, its level is changed, and it is deleted.

    So it has four states (MARKED is 240 to 262 s, violent). Undo leads back through every state, and redo
    forth again; after the page is loaded again, the passage can be edited.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    states = [MARKED, WITH_END_MOVED, MOVED, MOVED_AND_CALM]
    mark_move_and_edit(page, folder)
    press_key_and_wait(page, DELETE, "deleted")
    assert own_passages(folder) == []
    assert decided_texts(page) == []

    # Undo: first of the deletion, then of each change, last of the mark itself
    for passage in reversed(states):
        press_key_and_wait(page, UNDO, "undo")
        assert own_passages(folder) == [passage]
    press_key_and_wait(page, UNDO, "undo")
    assert own_passages(folder) == []
    press_key_and_wait(page, UNDO, "nothing")

    # Redo: the passage is marked and changed again, but not deleted.
    for passage in states:
        press_key_and_wait(page, REDO, "redo")
        assert own_passages(folder) == [passage]
    press_key_and_wait(page, UNDO, "undo")
    press_key_and_wait(page, REDO, "redo")

    # After the page is loaded again, the passage is edited in the table.
    page.reload()
    assert len(decided_texts(page)) == 1
    page.get_by_role("button", name="Edit").click()
    assert page.evaluate(TITLE).startswith("Your passage")
    press_key_and_wait(page, UNSURE)
    assert own_passages(folder) == [SpanAndLevel(start_s=250, end_s=290, level="unsure")]
    assert desk_in_browser.errors == []


def test_a_typed_name_holds_when_the_mode_changes(desk_in_browser):
    """CD decides in sight of the score; then AB types their name, and goes on to the page of blind judging.

    The name is there, and the window that AB judges is AB's.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    give_name(page, "CD")
    page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(page, VIOLENT)
    give_name(page, "AB")
    page.get_by_role("link", name="Judge blind").click()
    wait_until(page, f"location.pathname.endsWith('/blind') && {TITLE}")
    assert page.get_by_label("Your name").input_value() == "AB"

    page.get_by_role("button", name="Begin").click()
    wait_for_progress(page, "Window 1 of")
    page.keyboard.press(VIOLENT)
    wait_for_progress(page, "Window 2 of")

    judge_by_seen_score = {row["seen_score"]: row["annotator"] for row in rows_of(folder / JUDGEMENTS)}
    in_sight, blind = "1", "0"  # cells of `seen_score`
    assert judge_by_seen_score == {in_sight: "CD", blind: "AB"}
    assert desk_in_browser.errors == []


def test_a_passage_is_marked_by_keys_and_deleted_in_the_table(desk_in_browser):
    """A person marks a passage from 500 to 503 s as violent, and deletes it by a button of its row.

    The keys `BEGIN_HERE` and `END_HERE` take the time at which the film stands.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    seek(page, second=400)
    page.keyboard.press(NEXT_PASSAGE)
    page.keyboard.press("Escape")  # leaves the model's passage, so that the keys below begin another one
    seek(page, second=500)
    page.keyboard.press(BEGIN_HERE)
    seek(page, second=503)
    page.keyboard.press(END_HERE)
    press_key_and_wait(page, VIOLENT)
    assert own_passages(folder) == [SpanAndLevel(start_s=500, end_s=503, level="violent")]

    page.get_by_role("button", name="Delete").last.click()
    wait_for_announcement(page, "deleted")
    assert own_passages(folder) == []
    assert desk_in_browser.errors == []


def wait_for_versions_of_current_row(page, n):
    """Wait until the row of what is looked at has n versions in the table of decisions."""
    wait_until(page, f"document.querySelector('#d-table tr.d-on .d-was')?.children.length === {n}")


def test_keys_pressed_in_quick_succession_are_one_decision(desk_in_browser):
    """A span is dragged, and the keys of three levels are pressed before the server has answered.

    This gives one passage, of which the last level counts. The two others are its history, and not passages
    of their own: the table shows three versions of one row.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)

    drag(page, start=100, end=120)
    for key_of_level in (VIOLENT, CALM, UNSURE):
        page.keyboard.press(key_of_level)
    wait_for_versions_of_current_row(page, n=3)

    assert own_passages(folder) == [SpanAndLevel(start_s=100, end_s=120, level="unsure")]
    assert desk_in_browser.errors == []


def come_back_to(page):
    """Let a page know that it is looked at again, on which it asks what was decided meanwhile."""
    page.evaluate("dispatchEvent(new Event('focus'))")


def wait_for_rows(page, n):
    """Wait until the table of decisions has n rows."""
    wait_until(page, f"document.querySelectorAll('#d-table tbody tr').length === {n}")


def test_two_pages_of_one_film_show_what_was_decided_in_the_other(desk_in_browser):
    """AB has the desk of one film open in two pages of a browser.

    A page asks what was decided meanwhile when somebody looks at it again. A judgement that was deleted in
    the other page cannot be changed.
    """
    first_page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(first_page)
    second_page = first_page.context.new_page()
    second_page.goto(first_page.url)
    give_name(second_page)

    # What is judged in the first page is shown in the second.
    first_page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(first_page, VIOLENT)
    come_back_to(second_page)
    wait_for_rows(second_page, n=1)

    # It is deleted in the first page while it is edited in the second.
    second_page.get_by_role("button", name="Edit").click()
    press_key_and_wait(first_page, DELETE, "deleted")
    press_key_and_wait(second_page, CALM, "Not kept")
    assert rows_of(folder / JUDGEMENTS) == []
    wait_for_rows(second_page, n=0)

    # What is judged in the second page is shown in the first.
    second_page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(second_page, CALM)
    come_back_to(first_page)
    wait_for_rows(first_page, n=1)
    assert [row["level"] for row in rows_of(folder / JUDGEMENTS)] == ["calm"]
    assert desk_in_browser.errors == []


NO_ANSWER = None
"""In place of a status: the request fails, as of a server that was stopped."""


def answer_next_request(page, path, status, body):
    """Let the next request to a path get this answer; see `ANSWER_NEXT_REQUEST`."""
    page.evaluate(ANSWER_NEXT_REQUEST, [path, status, body])


def test_the_page_says_when_a_decision_is_not_kept(desk_in_browser):
    """Once the workspace was stopped nothing is kept, and the judge must learn it at once.

    Then a request fails, or another program answers at its address that it is forbidden (403).
    """
    page = desk_in_browser.page
    open_desk(page)
    page.keyboard.press(NEXT_PASSAGE)
    for status in (403, NO_ANSWER):
        answer_next_request(page, "decide", status, "not this address")
        page.keyboard.press(CALM)
        wait_for_announcement(page, "Not kept: the workspace was stopped")


def test_a_passage_without_evidence_says_why(desk_in_browser):
    """The desk asks its server what the model finds in a passage, and shows the answer in place of p.

    Of the first passage the server answers that features are missing (400). The next one has a probability
    again.
    """
    page = desk_in_browser.page
    open_desk(page)
    answer_next_request(page, "span", status=400, body='{"said": "no features"}')
    page.keyboard.press(NEXT_PASSAGE)
    wait_for_text_in_place_of_probability(page, "no features")
    page.keyboard.press(NEXT_PASSAGE)
    wait_for_probability(page, "> 0")
    press_key_and_wait(page, CALM)


def switch_off_single_letters(page):
    """Switch off keys of one letter, which disturb people who dictate."""
    page.keyboard.press(HELP)
    page.get_by_label(re.compile("Single letters")).uncheck()
    page.keyboard.press("Escape")


def tab_to_button(page, word):
    """Press Tab until a button is reached that has this word in its text.

    "Next" is the button to the model's next passage, and not "Next that differs".
    """
    for _ in range(120):
        page.keyboard.press("Tab")
        text = page.evaluate("document.activeElement.closest('button')?.textContent ?? ''")
        if word in text.split() and "differs" not in text.split():
            return
    pytest.fail(f"no button {word} by Tab")


def test_without_single_letter_keys_one_judges_by_tab_and_enter(desk_in_browser):
    """Keys of one letter disturb people who dictate, and can be switched off in the dialog of help.

    The switch is remembered when the page is loaded again, and letters then do nothing. By Tab and Enter one
    goes to the model's first passage and judges it.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    switch_off_single_letters(page)
    page.reload()
    give_name(page)
    one_frame_back = ","
    for key in (NEXT_PASSAGE, VIOLENT, BEGIN_HERE, one_frame_back):
        page.keyboard.press(key)
    assert page.evaluate(TITLE).startswith("Nothing")  # is selected

    tab_to_button(page, "Next")
    page.keyboard.press("Enter")
    wait_for_title(page, "Passage 1")
    tab_to_button(page, "violent")
    page.keyboard.press("Enter")
    wait_for_rows(page, n=1)
    assert len(rows_of(folder / JUDGEMENTS)) == 1
    assert desk_in_browser.errors == []


def keep_note(page, text):
    """Write a note on the span that the desk is at, and press the button that keeps it."""
    page.locator("#d-note").fill(text)
    page.get_by_role("button", name="Keep the note").click()


def leave_fields(page):
    """Click on the title, so that keys are not letters of a field."""
    page.locator("#d-title").click()


def test_an_empty_note_deletes_the_note_that_is_there_and_is_refused_where_there_is_none(desk_in_browser):
    """AB is at the beginning of the film, and keeps an empty note, then "here", then an empty one again."""
    page = desk_in_browser.page
    open_desk(page)

    keep_note(page, "")
    wait_for_announcement(page, "note is empty")
    keep_note(page, "here")
    wait_for_announcement(page, "kept")
    keep_note(page, "")
    wait_for_announcement(page, "deleted: 0:00:00")
    assert desk_in_browser.errors == []


def test_a_judgement_can_be_deleted_after_a_change_of_it_was_undone(desk_in_browser):
    """AB calls the model's first passage violent, then calm, and undoes the change.

    Each change of a judgement has an id of its own. To delete the judgement the desk must name the first id,
    as the second is undone: then nothing of AB is there. After another undo the passage is violent again.
    """
    page = desk_in_browser.page
    open_desk(page)

    page.keyboard.press(NEXT_PASSAGE)
    press_key_and_wait(page, VIOLENT)
    press_key_and_wait(page, CALM)
    press_key_and_wait(page, UNDO, "undo")
    press_key_and_wait(page, DELETE, "deleted")
    press_key_and_wait(page, DELETE, "nothing of yours")
    press_key_and_wait(page, UNDO, "undo")
    assert decided_texts(page) == ["violent"]
    assert desk_in_browser.errors == []


def test_a_blind_judgement_keeps_its_note_and_is_asked_again_when_deleted(desk_in_browser):
    """AB judges windows blindly. A note written before a level is kept with the judgement of its window.

    When the judgement is deleted, its window, the first of the draw, is to be judged again. Keys that lead to
    the model's passages say that only windows are shown here.
    """
    page = desk_in_browser.page
    folder = desk_in_browser.folder_of_film
    open_desk(page)
    page.get_by_role("link", name="Judge blind").click()
    page.wait_for_url("**/blind")
    give_name(page)
    page.get_by_role("button", name="Begin").click()
    wait_for_title(page, "Window to judge")
    leave_fields(page)
    for key in (CITE, NEXT_PASSAGE, NEXT_WEAK_PLACE):
        press_key_and_wait(page, key, "only the windows")

    # The first window gets a note, and then a level.
    keep_note(page, "dark")
    wait_for_announcement(page, "with it")  # the note will be kept with the judgement
    leave_fields(page)
    press_key_and_wait(page, CALM)
    (judgement,) = rows_of(folder / JUDGEMENTS)
    assert judgement["seen_score"] == "0"  # blind
    assert judgement["note"] == "dark"

    # Its judgement is deleted while the second one is shown.
    wait_for_progress(page, "Window 2")
    page.locator("#d-table").get_by_role("button", name="Delete").click()
    wait_for_progress(page, "Window 1")
    assert desk_in_browser.errors == []


def test_a_blind_judgement_that_is_edited_in_reading_stays(desk_in_browser):
    """AB judged a window blindly, and edits the judgement in the mode Read, where the scores are shown.

    The change stands beside the blind judgement. The same passage stays selected: no next window comes here.
    """
    page = desk_in_browser.page
    open_desk(page, mode="blind")
    page.get_by_role("button", name="Begin").click()
    wait_for_title(page, "Window to judge")
    leave_fields(page)
    press_key_and_wait(page, CALM)
    wait_for_progress(page, "Window 2")

    page.goto(page.url.rpartition("/")[0] + "/read")
    give_name(page)
    page.locator("#d-table").get_by_role("button", name="Edit").click()
    for key in (VIOLENT, UNSURE):  # the second change replaces the first
        press_key_and_wait(page, key)

    rows = rows_of(desk_in_browser.folder_of_film / JUDGEMENTS)
    assert [(row["level"], row["seen_score"]) for row in rows] == [("calm", "0"), ("unsure", "1")]
    assert len({(row["start_s"], row["end_s"]) for row in rows}) == 1
    assert desk_in_browser.errors == []


def test_the_address_of_a_saved_figure_names_who_saves_it(desk_in_browser):
    """AB marks a passage, and saves the figure that the desk offers with its citation.

    The server leaves out others' judgements that the person may not see yet, and must know who asks.
    """
    page = desk_in_browser.page
    open_desk(page, name="AB")
    drag(page, start=240, end=262)
    press_key_and_wait(page, VIOLENT)

    with page.expect_download() as downloading:
        link_to_figure = "document.querySelector('#d-away a[href^=\"figure.svg\"]')"
        page.evaluate(f"{link_to_figure}.click()")

    assert page.get_by_label("Your name").input_value() == "AB"
    assert "who=AB" in downloading.value.url


def begin_to_judge_again(page):
    """Open the dialog on what was decided under another text of the codebook, begin, and return its text."""
    page.get_by_role("button", name="decided under other words").click()
    dialog = page.get_by_role("dialog")
    text = dialog.inner_text()
    dialog.get_by_role("button", name="Judge these again").click()
    return text


def judge_ten_windows_and_a_passage_violent(folder, timeline, book):
    """Judge as AB, under a codebook: ten windows blindly, and the span from 10 to 20 s in sight."""
    decisions = Decisions(folder, timeline, book)
    judge_blindly(decisions, *["violent"] * 10, in_all=10)
    judge(decisions, start=10, end=20, level="violent")


def open_page_of_single_film(browser, address):
    """Return a page of the desk that serves one film, once its script runs."""
    page = browser.new_page()
    page.set_default_timeout(LONG_MS)
    page.goto(address)
    page.wait_for_url("**/read")
    wait_until_script_runs(page)
    return page


def test_judgements_under_an_earlier_wording_are_made_again(serve, browser, film, scored_once, tmp_path):
    """AB judged ten windows and a passage violent; since then the codebook has another meaning of "violent".

    The desk, opened with the new codebook, offers to judge them again under the new text: all eleven become
    calm.
    """
    # Given: judgements under one codebook, and the desk opened with another
    scored_folder, timeline = scored_once
    folder = shutil.copytree(scored_folder, tmp_path / "tt1")
    earlier_codebook = codebook(tmp_path)
    judge_ten_windows_and_a_passage_violent(folder, timeline, earlier_codebook)
    path_of_new_codebook = tmp_path / "other.codebook.toml"
    path_of_new_codebook.write_text(with_other_meaning_of_violent(earlier_codebook).to_toml(), "utf-8")
    served = serve(folder, path_of_new_codebook, "--film", str(film), enter=False)
    page = open_page_of_single_film(browser, served.address)

    # The dialog shows the new text and the one that was judged under. Without a name nothing begins.
    page.get_by_label("Your name").fill("")
    text_of_dialog = begin_to_judge_again(page)
    former_meaning_of_violent = earlier_codebook.levels[-1].means
    assert NEW_MEANING_OF_VIOLENT in text_of_dialog
    assert former_meaning_of_violent in text_of_dialog
    wait_for_announcement(page, "name")
    give_name(page)

    # The passage from 10 to 20 s
    begin_to_judge_again(page)
    wait_until(page, f"{TITLE}.includes('0:10')")
    press_key_and_wait(page, CALM)

    # The ten windows, which come one after the other
    begin_to_judge_again(page)
    page.wait_for_url("**/blind")
    give_name(page)
    page.get_by_label("How many in all").fill("10")
    page.get_by_role("button", name="Begin").click()
    for number in range(1, 11):
        wait_for_progress(page, f"Window {number} of 10")
        page.keyboard.press(CALM)
    wait_for_progress(page, "judged: 10 of 10")
    levels = [row["level"] for row in rows_of(folder / JUDGEMENTS)]
    assert levels == ["calm"] * 11

    # Nothing is left to be judged again.
    page.goto(page.url.replace("/blind", "/read"))
    wait_until_script_runs(page)
    assert page.get_by_role("button", name="under other words").count() == 0
    page.context.close()
