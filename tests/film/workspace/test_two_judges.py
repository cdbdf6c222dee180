"""The day of two scholars at the desk: they judge apart, differ, and settle it by keys; nothing is lost."""

import random
import shutil
from typing import NamedTuple

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film import Timeline
from obygaze_film.claims import Words
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.workspace.address import _redirecting_file
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.judged_tables import read_judged
from obygaze_film.workspace.open_film import shown_judgements
from obygaze_film.workspace.pages import desk_page, visible_decisions
from tests.browsers import LONG_MS
from tests.files import rows_of
from tests.film.workspace.deciding import film_at_desk, judge_blindly, reopen
from tests.film.workspace.driving import (
    CALM,
    DELETE,
    NEXT_DIFFERENCE,
    NEXT_KIND_OF_ROWS,
    UNDO,
    VIOLENT,
    Keyboard,
    decided_texts,
    wait_for_announcement,
    wait_for_title,
    wait_until,
    wait_until_script_runs,
)
from tests.film.workspace.test_people import synchronise
from tests.planted_models import codebook

N_WINDOWS, N_UNLIKE = 30, 14
HOSTILE_NAME = "<img src=x onerror=window.ran=1></script><script>window.ran=1</script>"


@pytest.fixture
def sit_down(browser):
    """Open the desk of the only film at an address, in a browser of its own."""
    contexts = []

    def open_desk(address, mode="read"):
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(LONG_MS)
        contexts.append(context)
        page = context.new_page()
        with _redirecting_file(address) as untrusted:
            page.goto(untrusted)
            page.wait_for_url("http://**/film/0/read")
        page.goto(page.url.rpartition("/")[0] + f"/{mode}")
        return Keyboard(page)

    yield open_desk
    for context in contexts:
        context.close()


@pytest.fixture
def machine(process, sit_down):
    """Start `film open` on a folder as a process of its own, and sit down before it."""

    def start(folder, book, mode="read"):
        started, address = process(folder, book)
        return started, sit_down(address, mode)

    return start


def levels_of_both():
    """Return what each of two people calls 30 windows; at 14 of them, drawn at random, they differ."""
    by_first = ["violent", "calm"] * (N_WINDOWS // 2)
    differing = random.Random(3).sample(range(N_WINDOWS), N_UNLIKE)
    by_second = by_first.copy()
    for place in differing:
        by_second[place] = "calm" if by_first[place] == "violent" else "violent"
    return by_first, by_second


def both_judged(folder, book):
    """Plant what AB and a person with a hostile name judged of 30 windows each: at 14 they differ."""
    decisions = Decisions(folder, Timeline.read(folder), book)
    by_first, by_second = levels_of_both()
    judge_blindly(decisions, *by_first, in_all=N_WINDOWS)
    judge_blindly(decisions, *by_second, annotator=HOSTILE_NAME, in_all=N_WINDOWS)
    decisions.ledger.close()


class Settled(NamedTuple):
    """Of a folder: the spans on which two judges differ, and how many of them they agreed on afterwards."""

    n_differing: int
    n_agreed: int


def settled_in(folder, book):
    """Count the differences of two judges in a folder, and how many of them are settled."""
    decisions = Decisions(folder, Timeline.read(folder), book)
    disagreements = decisions.disagreements()
    n_agreed = sum(bool(disagreement.agreed) for disagreement in disagreements)
    return Settled(len(disagreements), n_agreed)


def stop(process):
    """End a process, and wait until it has ended."""
    process.terminate()
    process.wait()


def judge_on_the_page_of_windows(machine, folder, path):
    """Two people judge 30 windows each, one after the other, with the keys of the page of windows."""
    for name, levels in zip(("AB", HOSTILE_NAME), levels_of_both(), strict=True):
        process, desk = machine(folder, path, "blind")
        desk.judge_blindly(name, levels)
        assert desk.errors == []
        stop(process)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["read", "blind"])
def test_fourteen_disagreements_are_settled_by_keys_alone(machine, films, tmp_path, mode):
    """AB and a person with a hostile name judged the same 30 windows of a film, and differ on 14 of them.

    On two machines, whose folders of the film are synchronised now and then, they settle the 14 with at most
    45 keys: about three a window. The program is killed once, and yet all 14 agreements and all 60 judgements
    are there at the end.
    """
    book = codebook(tmp_path)
    path_of_book = films / "violence.codebook.toml"
    folder_here = tmp_path / "here" / "tt1"
    folder_there = tmp_path / "there" / "tt1"
    shutil.copytree(films / "scored" / "tt1", folder_here)

    # Given: both judged the same 30 windows apart.
    if mode == "blind":
        judge_on_the_page_of_windows(machine, folder_here, path_of_book)
    else:
        both_judged(folder_here, book)
    shutil.copytree(folder_here, folder_there)

    # They sit down together. Before anybody has written a name, the 60 judgements are hidden.
    process, desk = machine(folder_here, path_of_book, mode)
    wait_until_script_runs(desk.page)
    assert "60" in desk.page.locator("#d-hidden").inner_text()
    desk.press(NEXT_DIFFERENCE)
    wait_for_announcement(desk.page, "hidden")
    desk.give_name("AB")
    assert desk.count_of_differences() == "differ: 14, settled: 0"

    # Five are settled, one of them after the page was loaded again. Keys are counted from here.
    desk.n_pressed = 0
    for _ in range(4):
        desk.settle(VIOLENT)
    assert desk.count_of_differences() == "differ: 14, settled: 4"
    desk.page.reload()
    desk.give_name("AB")
    desk.settle(CALM)
    assert desk.count_of_differences() == "differ: 14, settled: 5"

    # The program is killed, and the page says that what is decided then is not kept.
    process.kill()
    process.wait()
    desk.press(NEXT_DIFFERENCE)
    desk.press(CALM)
    wait_for_announcement(desk.page, "Not kept")

    # Started again it has all five.
    _process, desk_again = machine(folder_here, path_of_book, mode)
    desk_again.give_name("AB")
    assert desk_again.count_of_differences() == "differ: 14, settled: 5"

    # On another machine two are settled, here one, and neither has seen what the other settles.
    synchronise(folder_here, folder_there)
    _process, desk_there = machine(folder_there, path_of_book, mode)
    desk_there.give_name("AB")
    desk_there.settle(VIOLENT)
    desk_there.settle(VIOLENT)
    desk_again.settle(VIOLENT)

    # The folders are synchronised, and the others are settled here.
    synchronise(folder_here, folder_there)
    desk_again.page.reload()
    desk_again.give_name("AB")
    while "settled: 14" not in desk_again.count_of_differences():
        desk_again.settle(CALM)
    assert desk.n_pressed + desk_again.n_pressed + desk_there.n_pressed <= 45

    # Both folders have the same 14 agreed spans.
    synchronise(folder_here, folder_there)
    assert settled_in(folder_here, book) == Settled(n_differing=14, n_agreed=14)
    assert settled_in(folder_there, book) == Settled(n_differing=14, n_agreed=14)
    agreed = rows_of(folder_here / SETTLED)
    assert len({(row["start_s"], row["end_s"]) for row in agreed}) == 14
    saw_scores = "0" if mode == "blind" else "1"
    assert {row["seen_score"] for row in agreed} == {saw_scores}

    # Every judgement of the two people is still there.
    decisions = Decisions(folder_here, Timeline.read(folder_here), book)
    n_blind_of_judge = {judge: len(windows) for judge, windows in decisions.blind_judgements().items()}
    assert n_blind_of_judge == {"AB": 30, HOSTILE_NAME: 30}
    judgements = import_spans([folder_here / JUDGEMENTS], tmp_path, "judgements", codebook=book)
    assert len(judgements.manifest) == 30 + 30

    # A model learns the 14 that are agreed, in place of the two judgements of each that differ.
    decided_tables = (JUDGEMENTS, PASSAGES)
    to_learn_from = read_judged({folder_here: decisions.film}, book, decided_tables, settled=True)
    assert len(to_learn_from.manifest) == 60 - 2 * 14 + 14

    for used_desk in (desk, desk_again, desk_there):
        assert used_desk.errors == []
        assert used_desk.page.evaluate("window.ran") is None  # what a script in the hostile name would set


DRAW_ALL_ROWS = "dispatchEvent(new Event('beforeprint'))"
"""A long table is drawn as far as it is seen, and as a whole to be printed."""

COUNT_ROWS_OF_TABLE = f"({DRAW_ALL_ROWS}, document.querySelectorAll('#d-table tbody tr').length)"

N_KINDS_OF_ROWS = 7
"""Kinds of rows, of which a key shows one after the other."""


def is_shown(name):
    """Return an expression of JavaScript: whether a kind of rows is shown."""
    return f"document.querySelector('[data-filter={name}]').ariaPressed === 'true'"


def show_kind_of_rows(desk, name):
    """Press the key that shows the next kind of rows until this kind is shown."""
    for _ in range(N_KINDS_OF_ROWS):
        if desk.page.evaluate(is_shown(name)):
            return
        desk.press(NEXT_KIND_OF_ROWS)
    wait_until(desk.page, is_shown(name))


@pytest.fixture(scope="module")
def folder_of_both(films, tmp_path_factory):
    """The folder of a film that AB and another person judged; nobody may change it."""
    parent = tmp_path_factory.mktemp("both")
    folder = shutil.copytree(films / "scored" / "tt1", parent / "tt1")
    both_judged(folder, codebook(parent))
    return folder


@pytest.fixture
def desk_of_both(serve, sit_down, films, folder_of_both, tmp_path):
    """The desk of AB on a film that AB and another person judged: at 14 of 30 windows they differ."""
    folder = shutil.copytree(folder_of_both, tmp_path / "tt1")
    # The address opens once: it is left to the browser.
    served = serve(folder, films / "violence.codebook.toml", enter=False)
    desk = sit_down(served.address)
    desk.give_name("AB")
    return desk


@pytest.mark.long
def test_pressing_f_shows_the_next_of_seven_kinds_of_rows_in_the_table_of_the_desk(desk_of_both):
    """AB and another person judged 30 windows blindly, 14 of them differently. The model found four passages.

    AB sits at the desk. Its table lists all decisions at first, 60, and one kind of rows after each press:
    AB's own decisions, the other's, the windows on which both differ, the passages on which nobody has
    decided, the blind decisions, all passages, and all decisions again.
    """
    n_rows_of_kind = {
        "mine": 30,
        "theirs": 30,
        "differ": 14,
        "undecided": 4,
        "blind": 60,
        "passages": 4,
        "all": 60,
    }
    for kind, n_rows in n_rows_of_kind.items():
        desk_of_both.press(NEXT_KIND_OF_ROWS)
        wait_until(desk_of_both.page, is_shown(kind))
        assert desk_of_both.page.evaluate(COUNT_ROWS_OF_TABLE) == n_rows, kind
    assert desk_of_both.errors == []


@pytest.mark.long
def test_undecided_passages_leave_the_table_when_decided(desk_of_both):
    """The model found four passages. Sorted by probability, the strongest is judged: three are left."""
    page = desk_of_both.page
    show_kind_of_rows(desk_of_both, "undecided")
    page.locator("#d-order").focus()
    page.keyboard.press("ArrowDown")  # strongest first
    probabilities = page.locator("#d-table td.n").all_inner_texts()
    assert probabilities == sorted(probabilities, reverse=True)

    page.locator("#d-table button").first.focus()
    page.keyboard.press("Enter")
    wait_for_title(page, "Passage")
    desk_of_both.press(VIOLENT)
    wait_for_announcement(page, "kept")
    assert page.evaluate(COUNT_ROWS_OF_TABLE) == 4 - 1
    assert desk_of_both.errors == []


@pytest.mark.long
def test_an_agreement_is_deleted_and_brought_back_by_keys(desk_of_both):
    """Two people differ on 14 windows. One window is settled, then open again, and settled again by undo."""
    page = desk_of_both.page
    show_kind_of_rows(desk_of_both, "all")
    page.evaluate(DRAW_ALL_ROWS)

    desk_of_both.press(NEXT_DIFFERENCE)
    desk_of_both.press(VIOLENT)
    wait_for_announcement(page, "kept")
    assert any("settled by" in text for text in decided_texts(page))

    desk_of_both.press(DELETE)
    wait_for_announcement(page, "deleted")
    assert desk_of_both.count_of_differences() == "differ: 14, settled: 0"

    desk_of_both.press(UNDO)
    wait_for_announcement(page, "undo")
    assert desk_of_both.count_of_differences() == "differ: 14, settled: 1"
    assert desk_of_both.errors == []


@pytest.fixture
def cd_is_unfinished(decisions):
    """AB has judged ten windows of ten, all calm, and CD six of ten, all violent."""
    judge_blindly(decisions, *["calm"] * 10, annotator="AB", in_all=10)
    judge_blindly(decisions, *["violent"] * 6, annotator="CD", in_all=10)
    return decisions


@pytest.mark.parametrize(
    ("viewer", "n_differ", "n_hidden"),
    [("AB", 6, 0), ("CD", 0, 10), ("", 0, 16)],
    ids=["who is finished", "who is not", "who gives no name"],
)
def test_only_finished_judges_see_others_blind_judgements(cd_is_unfinished, viewer, n_differ, n_hidden):
    """AB has judged all ten windows planned: AB sees CD's six, and differs on all of them.

    CD has judged six of ten, so that AB's ten are hidden. Without a name all 16 are.
    """
    film = film_at_desk(cd_is_unfinished)
    shown = visible_decisions(film, viewer)
    assert len(shown["differ"]) == n_differ
    assert shown["hidden"] == n_hidden


def judges_shown(film):
    """Return whose judgements the pages on a film are made of."""
    return {clip.annotator for clip in shown_judgements(film).clips}


def test_a_judge_who_is_not_finished_is_not_compared_with_others(cd_is_unfinished):
    """CD, who judged last, has judged six of ten windows, and AB ten of ten.

    From a comparison by both CD could tell what AB judged: AB's ten are left out, and the note says so.
    """
    film = film_at_desk(cd_is_unfinished)
    assert judges_shown(film) == {"CD"}
    assert shown_judgements(film).note.endswith("10")


def test_judges_are_compared_once_both_are_finished(cd_is_unfinished):
    """CD judges the last four of ten windows: AB and CD called all ten differently."""
    decisions = cd_is_unfinished
    film = film_at_desk(decisions)

    judge_blindly(decisions, *["violent"] * 4, annotator="CD", in_all=10)

    assert len(visible_decisions(film, "CD")["differ"]) == 10
    assert judges_shown(film) == {"AB", "CD"}
    newly_opened = film_at_desk(reopen(decisions))
    assert judges_shown(newly_opened) == {"AB", "CD"}


@pytest.mark.parametrize(
    ("language", "reason"), [("en", "their judges are finished"), ("fr", "leurs juges aient fini")]
)
def test_a_newly_opened_desk_shows_no_blind_judgement_while_one_of_two_judges_is_unfinished(
    cd_is_unfinished, language, reason
):
    """AB has judged ten windows of ten, and CD six of ten. Who opened the desk has not given a name yet.

    It may be CD, who must not see AB's judgements, or AB, who must not see CD's six. So none of the 10 + 6 is
    shown, for a share or to compare films, and the note counts them and says why.
    """
    film = film_at_desk(reopen(cd_is_unfinished))
    name_of_who_opened_it = film.decisions.default_annotator
    assert name_of_who_opened_it == ""

    shown = shown_judgements(film)

    assert shown.clips == ()
    note = Words(language).translated(shown.note)
    n_left_out = 10 + 6
    assert str(n_left_out) in note
    assert reason in note


def settle_as_calm(decisions, disagreement, mode):
    """Let AB call calm what two judges differ on, blindly or in sight of the score; return the id."""
    return decisions.keep(
        "agreed",
        disagreement.start_s,
        disagreement.end_s,
        "AB",
        level="calm",
        parents=disagreement.decisions,
        mode=mode,
    )


class DecidedByAbAndCd(NamedTuple):
    """What AB and CD decided on a film, partly in sight of the score.

    They differ on ten windows that they judged blindly, and AB settled two of these with CD: the first
    blindly, the second in sight. In sight AB also marked a passage, from 50 to 60 s.
    """

    decisions: Decisions
    id_agreed_blindly: str
    id_agreed_in_sight: str


@pytest.fixture
def decided_partly_in_sight(decisions):
    """What AB and CD decided on the film tt1, partly in sight of the score."""
    judge_blindly(decisions, *["calm"] * 10, annotator="AB", in_all=10)
    judge_blindly(decisions, *["violent"] * 10, annotator="CD", in_all=10)
    decisions.keep("passage", start_s=50, end_s=60, annotator="AB", level="violent")
    first, second, *_eight_others = decisions.disagreements()
    id_agreed_blindly = settle_as_calm(decisions, first, mode="blind")
    id_agreed_in_sight = settle_as_calm(decisions, second, mode="read")
    return DecidedByAbAndCd(decisions, id_agreed_blindly, id_agreed_in_sight)


def test_a_desk_that_hides_the_scores_shows_no_decision_that_was_made_in_sight_of_them(
    decided_partly_in_sight,
):
    """AB decided some in sight of the score: a passage, and an agreed level. These could give it away.

    A desk without scores shows AB's blind judgements and the level agreed blindly, with neither the model's
    probability (`p`) nor the score of a decision (`value`).
    """
    film = film_at_desk(decided_partly_in_sight.decisions)

    decisions_of_ab = visible_decisions(film, "AB", blind=True)["you"]

    assert {decision["kind"] for decision in decisions_of_ab} == {"judgement", "agreed"}
    shown_ids = {decision["id"] for decision in decisions_of_ab}
    assert decided_partly_in_sight.id_agreed_blindly in shown_ids
    assert decided_partly_in_sight.id_agreed_in_sight not in shown_ids
    for decision in decisions_of_ab:
        assert "p" not in decision
        assert "value" not in decision


def test_a_desk_that_hides_the_scores_says_that_a_difference_was_settled_in_sight_of_them(
    decided_partly_in_sight,
):
    """Of ten windows on which AB and CD differ the first was settled blindly, the second in sight.

    The list of differences names both agreements, so that nobody settles the second window again, although
    its level is not shown.
    """
    film = film_at_desk(decided_partly_in_sight.decisions)

    differences = visible_decisions(film, "AB", blind=True)["differ"]

    ids_of_agreements = [difference["agreed"] for difference in differences]
    assert ids_of_agreements == [
        decided_partly_in_sight.id_agreed_blindly,
        decided_partly_in_sight.id_agreed_in_sight,
        *[""] * 8,
    ]


def test_a_hostile_name_or_note_is_text_in_the_page(decisions):
    """A name or a note that is HTML, with an image and a script, must be shown as text.

    The page has no image, and two scripts of its own.
    """
    html_with_script = "<img src=x onerror=window.ran=1></script><script>window.ran=1</script>"
    judge_blindly(decisions, *["calm"] * 10, annotator=html_with_script, in_all=10)
    decisions.keep("passage", 50, 60, "AB", level="violent", note=html_with_script)
    film = film_at_desk(decisions)

    page = desk_page([film], film, "read", "en")

    assert "<img" not in page
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
