"""The day of two scholars at the desk: they judge apart, differ, and settle it by keys; nothing is lost."""

import random
import shutil

import pytest

from obygaze_features.manifest import import_spans
from obygaze_film import Timeline
from obygaze_film.claims import Words
from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, SETTLED
from obygaze_film.workspace.address import _door
from obygaze_film.workspace.decisions import Decisions
from obygaze_film.workspace.judged_tables import read_judged
from obygaze_film.workspace.open_film import OpenFilm, shown_judgements
from obygaze_film.workspace.pages import desk_page, visible_decisions
from tests.browsers import LONG_MS
from tests.files import rows_of
from tests.film.workspace.deciding import judge_blindly, open_again
from tests.film.workspace.driving import TITLE, Keyboard, decided_texts, wait_until, wait_until_said
from tests.film.workspace.test_people import synchronise
from tests.planted_models import codebook

N, N_UNLIKE, MOST_KEYS = 30, 14, 45
HOSTILE = "<img src=x onerror=window.ran=1></script><script>window.ran=1</script>"


@pytest.fixture
def machine(process, browser):
    """Start `film open` on a folder, and sit down before it."""
    contexts = []

    def start(folder, book, mode="read"):
        started, address = process(folder, book)
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(LONG_MS)
        contexts.append(context)
        page = context.new_page()
        with _door(address) as door:
            page.goto(door)
            page.wait_for_url("http://**/film/0/read")
        page.goto(page.url.rpartition("/")[0] + f"/{mode}")
        return started, Keyboard(page)

    yield start
    for context in contexts:
        context.close()


def levels_of_both():
    """What two people call 30 windows, of which 14 are unlike."""
    first = ["violent", "calm"] * (N // 2)
    unlike = set(random.Random(3).sample(range(N), N_UNLIKE))
    turned = {"violent": "calm", "calm": "violent"}
    return first, [turned[level] if place in unlike else level for place, level in enumerate(first)]


def both_judged(folder, book):
    """Two people judge 30 windows each, of which 14 are unlike; one of them is called a tag."""
    made = Decisions(folder, Timeline.read(folder), book)
    first, second = levels_of_both()
    judge_blindly(made, *first, in_all=N)
    judge_blindly(made, *second, who=HOSTILE, in_all=N)
    made.ledger.close()


def settled_in(folder, book):
    made = Decisions(folder, Timeline.read(folder), book)
    differ = made.disagreements()
    return sum(bool(one.agreed) for one in differ), len(differ), len(made.kept["agreed"])


@pytest.mark.long
@pytest.mark.parametrize("mode", ["read", "blind"])
def test_fourteen_disagreements_are_settled_by_keys_alone(machine, films, tmp_path, mode):
    """On two machines with a folder each, of which one is killed meanwhile; a level is settled by a key."""
    book, path = codebook(tmp_path), films / "violence.codebook.toml"
    here, there = (tmp_path / name / "tt1" for name in ("here", "there"))
    shutil.copytree(films / "scored" / "tt1", here)

    # Two people judge 30 windows each: on the page of windows, each on a day of their own, or by the library.
    if mode == "blind":
        for name, levels in zip(("AB", HOSTILE), levels_of_both(), strict=True):
            started, judging = machine(here, path, mode)
            judging.judge_blindly(name, levels)
            assert judging.errors == []
            started.terminate()
            started.wait()
    else:
        both_judged(here, book)
    shutil.copytree(here, there)

    # They sit down together. Before anybody has written a name, the 60 judgements are hidden.
    started, desk = machine(here, path, mode)
    wait_until(desk.page, TITLE)
    assert "60" in desk.page.locator("#d-hidden").inner_text()
    desk.press("d")
    wait_until_said(desk.page, "hidden")
    desk.give_name("AB")
    assert desk.count_of_differences() == "differ: 14, settled: 0"

    # Five are settled, one of them after the page was loaded again; then the program is killed.
    desk.n_pressed = 0
    for _ in range(4):
        desk.settle("3")
    assert desk.count_of_differences() == "differ: 14, settled: 4"
    desk.page.reload()
    desk.give_name("AB")
    desk.settle("1")
    assert desk.count_of_differences() == "differ: 14, settled: 5"
    started.kill()
    started.wait()
    desk.press("d")
    desk.press("1")
    wait_until_said(desk.page, "Not kept")

    # Started again it has all five. Both machines go on, and neither has seen what the other settles.
    _, again = machine(here, path, mode)
    again.give_name("AB")
    assert again.count_of_differences() == "differ: 14, settled: 5"
    synchronise(here, there)
    _, elsewhere = machine(there, path, mode)
    elsewhere.give_name("AB")
    for _ in range(2):
        elsewhere.settle("3")
    again.settle("3")
    synchronise(here, there)
    again.page.reload()
    again.give_name("AB")
    while "settled: 14" not in again.count_of_differences():
        again.settle("1")
    assert desk.n_pressed + again.n_pressed + elsewhere.n_pressed <= MOST_KEYS

    # Both folders have the same 14 agreed spans, and every judgement of the two people is still there.
    synchronise(here, there)
    assert settled_in(here, book)[:2] == settled_in(there, book)[:2] == (14, 14)
    agreed = rows_of(here / SETTLED)
    assert len({(row["start_s"], row["end_s"]) for row in agreed}) == 14
    assert {row["seen_score"] for row in agreed} == {"0" if mode == "blind" else "1"}
    made = Decisions(here, Timeline.read(here), book)
    assert {who: len(places) for who, places in made.blind_judgements().items()} == {"AB": 30, HOSTILE: 30}
    judgements = import_spans([here / JUDGEMENTS], tmp_path, "judgements", codebook=book)
    assert len(judgements.manifest) == 60
    to_learn_from = read_judged({here: made.film}, book, (JUDGEMENTS, PASSAGES), settled=True)
    assert len(to_learn_from.manifest) == 60 - 2 * 14 + 14  # what is agreed is in the place of the two
    for one in (desk, again, elsewhere):
        assert one.errors == []
        assert one.page.evaluate("window.ran") is None  # what `HOSTILE` would set


@pytest.mark.long
def test_rows_are_of_one_kind_and_one_order_by_keys_alone(machine, films, tmp_path):
    folder, path = tmp_path / "tt1", films / "violence.codebook.toml"
    shutil.copytree(films / "scored" / "tt1", folder)
    both_judged(folder, codebook(tmp_path))
    _, desk = machine(folder, path)
    desk.give_name("AB")
    page = desk.page
    all_drawn = "dispatchEvent(new Event('beforeprint'))"  # a long table is drawn as far as it is seen
    n_rows = f"({all_drawn}, document.querySelectorAll('#d-table tbody tr').length)"

    # The key f shows one kind after the other.
    n_of_kind = {
        "mine": 30,
        "theirs": 30,
        "differ": 14,
        "undecided": 4,
        "blind": 60,
        "passages": 4,
        "all": 60,
    }
    for name, n in n_of_kind.items():
        desk.press("f")
        wait_until(page, f"document.querySelector('[data-filter={name}]').ariaPressed === 'true'")
        assert page.evaluate(n_rows) == n, name

    # Undecided passages by strength: the first is chosen and decided, and is a row less.
    for _ in range(4):
        desk.press("f")
    page.locator("#d-order").focus()
    page.keyboard.press("ArrowDown")  # strongest first
    numbers = page.locator("#d-table td.n").all_inner_texts()
    assert numbers == sorted(numbers, reverse=True)
    page.locator("#d-table button").first.focus()
    page.keyboard.press("Enter")
    wait_until(page, f"{TITLE}.startsWith('Passage')")
    desk.press("3")
    wait_until_said(page, "kept")
    assert page.evaluate(n_rows) == 3

    # All of them: a span on which both differ is settled, which is deleted and undone.
    for _ in range(3):
        desk.press("f")
    page.evaluate(all_drawn)
    desk.press("d")
    desk.press("3")
    wait_until_said(page, "kept")
    assert any("settled by" in text for text in decided_texts(page))
    desk.press("x")
    wait_until_said(page, "deleted")
    assert desk.count_of_differences() == "differ: 14, settled: 0"
    desk.press("z")
    wait_until_said(page, "undo")
    assert desk.count_of_differences() == "differ: 14, settled: 1"
    assert desk.errors == []


@pytest.fixture
def unfinished(decisions):
    """AB has judged ten windows of ten, all calm, and CD six of ten, all violent."""
    judge_blindly(decisions, *["calm"] * 10, who="AB", in_all=10)
    judge_blindly(decisions, *["violent"] * 6, who="CD", in_all=10)
    return decisions


@pytest.mark.long
@pytest.mark.parametrize(
    ("viewer", "n_differ", "n_hidden"),
    [("AB", 6, 0), ("CD", 0, 10), ("", 0, 16)],
    ids=["who is finished", "who is not", "who gives no name"],
)
def test_only_who_is_finished_sees_others_blind_judgements_and_where_they_differ(
    unfinished, viewer, n_differ, n_hidden
):
    shown = visible_decisions(OpenFilm(0, unfinished.film, unfinished), viewer)
    assert len(shown["differ"]) == n_differ
    assert shown["hidden"] == n_hidden


def test_until_a_judge_is_finished_films_are_compared_by_the_judgements_of_that_judge_alone(unfinished):
    """CD judged last. From a comparison by both CD could tell what AB judged."""
    shown = shown_judgements(OpenFilm(0, unfinished.film, unfinished))
    assert {clip.annotator for clip in shown.clips} == {"CD"}
    assert shown.note.endswith("10")  # AB's, which are left out


@pytest.mark.long
def test_once_both_are_finished_they_see_where_they_differ_and_films_are_compared_by_both(unfinished):
    judge_blindly(unfinished, *["violent"] * 4, who="CD", in_all=10)
    film = OpenFilm(0, unfinished.film, unfinished)
    assert len(visible_decisions(film, "CD")["differ"]) == 10
    assert {clip.annotator for clip in shown_judgements(film).clips} == {"AB", "CD"}


@pytest.mark.parametrize(
    ("language", "reason"), [("en", "their judges are finished"), ("fr", "leurs juges aient fini")]
)
def test_a_desk_that_is_opened_anew_compares_films_by_nobody_while_somebody_is_unfinished(
    unfinished, language, reason
):
    """Whoever opened it has not given a name yet: it may be either judge."""
    film = OpenFilm(0, unfinished.film, open_again(unfinished))
    assert film.decisions.default_annotator == ""
    shown = shown_judgements(film)
    assert shown.clips == ()
    note = Words(language).translated(shown.note)
    assert "16" in note
    assert reason in note


def test_a_desk_that_is_opened_anew_compares_films_by_all_once_they_are_finished(unfinished):
    judge_blindly(unfinished, *["violent"] * 4, who="CD", in_all=10)
    film = OpenFilm(0, unfinished.film, open_again(unfinished))
    assert {clip.annotator for clip in shown_judgements(film).clips} == {"AB", "CD"}


@pytest.fixture
def shown_without_scores(decisions):
    """What a desk without scores shows AB, who decided some things in sight of the score.

    AB and CD differ on ten windows that they judged blindly. They settled the first blindly, and the second
    in sight; a passage was marked in sight.
    """
    judge_blindly(decisions, *["calm"] * 10, who="AB", in_all=10)
    judge_blindly(decisions, *["violent"] * 10, who="CD", in_all=10)
    decisions.keep("passage", 50, 60, "AB", level="violent")
    first, second, *_ = decisions.disagreements()
    for disagreement, mode in ((first, "blind"), (second, "read")):
        span = disagreement.start_s, disagreement.end_s
        decisions.keep("agreed", *span, "AB", level="calm", parents=disagreement.decisions, mode=mode)
    return visible_decisions(OpenFilm(0, decisions.film, decisions), "AB", blind=True)


@pytest.mark.long
def test_a_desk_without_scores_shows_nothing_that_was_decided_in_sight_of_them(shown_without_scores):
    kinds = [decision["kind"] for decision in shown_without_scores["you"]]
    assert set(kinds) == {"judgement", "agreed"}
    assert kinds.count("agreed") == 1


@pytest.mark.long
def test_a_desk_without_scores_shows_no_probability_of_a_decisions_span(shown_without_scores):
    for decision in shown_without_scores["you"]:
        assert not decision.keys() & {"p", "value"}


def test_a_desk_without_scores_shows_where_people_differ(shown_without_scores):
    """Their blind judgements are of windows drawn at random, which say nothing of the score."""
    assert len(shown_without_scores["differ"]) == 10


def test_a_hostile_name_or_note_is_text_in_the_page(decisions):
    judge_blindly(decisions, *["calm"] * 10, who=HOSTILE, in_all=10)
    decisions.keep("passage", 50, 60, "AB", level="violent", note=HOSTILE)
    film = OpenFilm(0, decisions.film, decisions)
    page = desk_page([film], film, "read", "en")
    assert "<img" not in page
    assert page.count("</script>") == page.count("<script") == 2  # the page's own
