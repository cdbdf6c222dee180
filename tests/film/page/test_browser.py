"""The page in a real browser: no request, keys, screen reader, printing, sizes.

What only a browser can find: errors of the script and of the policy, what is read out, what does not fit.
"""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from obygaze_film.claims.words import clock
from obygaze_film.exchange import Decided
from obygaze_film.page import Owned, ScoredCopy, write_film_page
from obygaze_film.workspace.proxy import content_key
from obygaze_models import evaluate, linear_probe, run_report, write_html
from obygaze_models.report import Block
from tests.browsers import LONG_MS, expect
from tests.conftest import planted
from tests.film.conftest import axe_violations
from tests.film.page.invented import fake_scored_film
from tests.film.workspace.driving import wait_until
from tests.video.encoding import encode

pytestmark = pytest.mark.long

NASTY = '</script><script>document.title="broken"</script> =1+1 "quoted" \'a\' & <b>'


@pytest.fixture(scope="module")
def page_of_one_film(tmp_path_factory):
    """The page of one invented film, with traces."""
    path = tmp_path_factory.mktemp("page") / "film.html"
    write_film_page([fake_scored_film(traced=True)], path)
    return path


@pytest.fixture(scope="module")
def page_of_ten_minutes(tmp_path_factory):
    """The page of a shorter film, with traces, for what looks at every element."""
    path = tmp_path_factory.mktemp("page") / "short.html"
    write_film_page([fake_scored_film(n_rows=60, duration_s=600, traced=True)], path)
    return path


@pytest.fixture(scope="module")
def page_of_three_films(tmp_path_factory):
    """A page of three films, one of them with a hostile name and title."""
    path = tmp_path_factory.mktemp("page") / "films.html"
    films = [
        fake_scored_film("tt1", "Later", year=2009, n_rows=60, duration_s=600, seed=1),
        fake_scored_film("=cmd()", NASTY, year=1989, n_rows=60, duration_s=600, seed=2),
        fake_scored_film("tt3", "Seen", year=None, n_rows=60, duration_s=600, trained_on=True),
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


def spoken_time(page):
    """Return what the timeline's slider says of the time under the cursor."""
    return page.locator(".d-over").first.get_attribute("aria-valuetext")


def tenths_shown(page):
    """Return how many tenths of a second of the film the timeline shows."""
    return float(page.locator("svg.z").first.get_attribute("viewBox").split()[2])


def test_a_page_requests_nothing_when_its_timeline_is_moved(open_page, page_of_one_film):
    """A page is one file, which can be read without a network: its own address is all that is asked for.

    A key moves the cursor on the timeline (the slider, of class `d-over`), and no script fails.
    """
    seen = open_page(page_of_one_film)

    seen.page.locator(".d-over").focus()
    seen.page.keyboard.press("ArrowRight")

    assert seen.requests == [page_of_one_film.as_uri()]
    assert seen.errors == []


def test_a_pages_policy_lets_it_play_a_local_film_and_ask_nobody(open_page, page_of_one_film):
    """The policy in the page's head is enforced by the browser, whatever a script tries.

    A local film has an address that begins with blob:; a request to another machine is blocked.
    """
    seen = open_page(page_of_one_film).page
    policy = seen.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "media-src blob:" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy

    outcome = seen.evaluate("fetch('https://example.org').then(() => 'through', () => 'blocked')")
    assert outcome == "blocked"


@pytest.mark.parametrize(
    ("fixture", "theme", "width"),
    [
        ("page_of_ten_minutes", "light", 1440),
        ("page_of_three_films", "dark", 390),
        ("report", "light", 390),
        ("report", "dark", 1440),
    ],
)
def test_pages_are_accessible(open_page, request, fixture, theme, width):
    """Axe finds no barrier for people with disabilities (WCAG), with all details opened."""
    seen = open_page(request.getfixturevalue(fixture), theme=theme, width=width).page
    seen.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
    seen.evaluate("scrollTo(0, 0)")  # a timeline that sticks covers a part of what scrolls below it
    assert axe_violations(seen) == []


def test_the_first_tab_reaches_a_link_that_skips_to_the_content(open_page, page_of_one_film):
    """The link has the class `skip`: people who use the keyboard need not go through all that is before."""
    seen = open_page(page_of_one_film).page
    seen.keyboard.press("Tab")
    assert seen.evaluate("document.activeElement.className") == "skip"


def test_keys_move_the_cursor_and_each_time_is_announced(open_page, page_of_one_film):
    """The timeline is a slider, whose text a screen reader says: the time, and what is known of it.

    At its start the film is unlike training. Each of four keys leads to another time.
    """
    seen = open_page(page_of_one_film).page
    timeline = seen.locator(".d-over")
    assert timeline.get_attribute("role") == "slider"
    timeline.focus()
    at_start = spoken_time(seen)
    assert "unlike training" in at_start

    announced = [at_start]
    for key in ("ArrowRight", "ArrowRight", "PageDown", "End"):
        seen.keyboard.press(key)
        announced.append(spoken_time(seen))

    assert len(set(announced)) == 5


def test_keys_move_the_cursor_to_the_start_and_no_farther(open_page, page_of_one_film):
    """The timeline is a slider (of class `d-over`), which says the time under its cursor.

    From the end of the film Home leads to the start, and the left arrow leads nowhere from there.
    """
    seen = open_page(page_of_one_film).page
    seen.locator(".d-over").focus()
    at_start = spoken_time(seen)
    seen.keyboard.press("End")
    assert spoken_time(seen) != at_start

    for key in ("Home", "ArrowLeft"):
        seen.keyboard.press(key)
        assert spoken_time(seen) == at_start


def test_a_time_that_is_judged_is_announced_with_its_probability_and_band(open_page, page_of_one_film):
    """After twelve steps of a minute or more the cursor is beyond the part that is unlike training."""
    seen = open_page(page_of_one_film).page
    seen.locator(".d-over").focus()
    for _ in range(12):  # a minute or more each
        seen.keyboard.press("PageDown")
    assert "probability 0." in spoken_time(seen)
    assert "80% band" in spoken_time(seen)


def test_keys_zoom_into_the_timeline_and_leave_the_cursor(open_page, page_of_one_film):
    """Each + halves the part of the film that is shown: two of them show a quarter. 0 shows all.

    The film has 7212 s, which are 72120 tenths of a second.
    """
    seen = open_page(page_of_one_film).page
    seen.locator(".d-over").focus()
    seen.keyboard.press("PageDown")
    time_before = spoken_time(seen)

    seen.keyboard.press("+")
    seen.keyboard.press("+")
    assert tenths_shown(seen) == pytest.approx(72120 / 4)
    assert spoken_time(seen) == time_before

    seen.keyboard.press("0")
    assert tenths_shown(seen) == pytest.approx(72120)


LINES_SAID = [(10.0, 12.0, NASTY), (70.0, 72.0, "Give me the gun"), (80.0, 81.5, "No gun")]
"""Start, end and text of three subtitles, of which the first is hostile."""


def test_subtitles_are_searched_and_a_line_that_is_chosen_moves_the_cursor(open_page, tmp_path):
    """A film has three subtitles, of which two have the word "gun": that at 70 s, and one at 80 s.

    A reader searches for "GUN" on the film's page and chooses the first line that is left: the cursor moves
    to the row of the film of 70 s. The subtitle at 10 s is hostile: it would set the title to "broken".
    """
    subtitles = pd.DataFrame(LINES_SAID, columns=["start_s", "end_s", "text"])
    film = replace(fake_scored_film(n_rows=60, duration_s=600.0), subtitles=subtitles)
    write_film_page([film], tmp_path / "said.html")
    page = open_page(tmp_path / "said.html").page
    assert page.title() != "broken"  # what the hostile line would set

    lines = page.locator("#f1-said-list li")
    page.locator(".said summary").click()
    expect(lines).to_have_count(3)  # they are drawn after the list has opened
    page.locator("#f1-search").fill("GUN")
    expect(lines).to_have_count(2)  # "Give me the gun" at 70 s, and "No gun"

    lines.locator("button").first.click()
    rows = film.rows()
    (row_at_70_s,) = rows[(rows["start_s"] <= 70) & (rows["end_s"] > 70)].to_dict("records")
    assert spoken_time(page).startswith(clock(row_at_70_s["start_s"]))


@pytest.fixture(scope="module")
def announced(browser, tmp_path_factory):
    """All that the timeline announces of a film of low probabilities.

    Clothing is below its threshold, and in the credits nothing is judged.
    """
    film = fake_scored_film(n_rows=60, duration_s=600, unlike_parts=())
    table = film.table.copy()
    table[["p", "p_low", "p_high"]] *= 0.004
    table["Clothing_p"] = 0.3
    path = tmp_path_factory.mktemp("announced") / "small.html"
    write_film_page([replace(film, table=table)], path)

    page = browser.new_page()
    page.set_default_timeout(LONG_MS)
    page.goto(path.as_uri())
    page.locator(".d-over").focus()
    texts = set()
    for _ in range(60):
        texts.add(spoken_time(page))
        page.keyboard.press("ArrowRight")
    page.close()
    return texts


def test_a_probability_below_a_hundredth_is_announced_as_such_without_a_band(announced):
    """All probabilities of a film are below .004. As "0.00" one would seem to be impossible.

    `announced` is all that a screen reader says of the film's times; in the credits nothing is judged.
    """
    for text in announced:
        assert "0.00" not in text
        if "credits" not in text:
            assert "; probability below 0.01" in text
            assert "band" not in text


def test_of_credits_no_probability_is_announced(announced):
    """Credits are no content of the film, and nothing is judged there.

    `announced` is all that a screen reader says of the film's times: what it says of credits has no number.
    """
    of_credits = [text for text in announced if "credits" in text]
    assert of_credits
    for text in of_credits:
        assert "probability" not in text
        assert "0." not in text


def test_no_concept_below_its_threshold_is_announced(announced):
    """Clothing has the probability .3 throughout, below its threshold .5: the model does not see it.

    `announced` is all that a screen reader says of the film's times. Body is seen at some of them.
    """
    all_announced = "\n".join(announced)
    assert "Body 0." in all_announced
    assert "Clothing" not in all_announced


def test_no_title_breaks_the_page(open_page, page_of_three_films):
    """Of three films one has a title that is written like the end of a script, and a script: it is text.

    Run, it would set the title of the page.
    """
    seen = open_page(page_of_three_films)
    assert seen.page.title() == "3 films, scored"
    assert seen.page.locator("h2.d-name").nth(0).text_content().startswith(NASTY)
    assert seen.errors == []


CUT_AT_THE_RIGHT = """[...document.querySelectorAll('body *')].filter((one) => {
    const box = one.getBoundingClientRect();
    const isCut = box.width && box.right > innerWidth + 1;
    return isCut && !one.closest('.wide, svg, .unseen, .skip, .d-above');
}).map((one) => one.outerHTML)"""
"""JavaScript: what reaches beyond the window, other than what scrolls, is drawn, or is only read aloud."""


@pytest.mark.parametrize("width", [1440, 1024, 390])
@pytest.mark.parametrize("fixture", ["page_of_one_film", "page_of_three_films"])
def test_nothing_overflows(open_page, request, fixture, width):
    """No text is cut at the right, at the widths of a desktop, a tablet and a telephone."""
    seen = open_page(request.getfixturevalue(fixture), width=width, height=844).page
    seen.locator("details").evaluate_all("all => all.forEach((one) => one.open = true)")
    seen.keyboard.press("n")  # the next passage, whose evidence is shown
    assert seen.evaluate("document.documentElement.scrollWidth") == width
    assert seen.evaluate(CUT_AT_THE_RIGHT) == []


def test_without_script_everything_can_be_read(open_page, page_of_one_film):
    """Only what needs a script, such as playing one's own copy, is hidden."""
    seen = open_page(page_of_one_film, script=False).page
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


def n_pages(pdf):
    """Count the pages of a PDF by their objects, whose type ends in one of these ways."""
    return sum(pdf.count(b"/Type /Page" + end) for end in (b"\n", b">", b" "))


def test_a_page_prints_on_few_sheets(open_page, page_of_one_film, tmp_path):
    """Two hours of film fit on 20 sheets of A4, though the table of minutes is long."""
    pytest.importorskip("av")  # printing is tested on machines that are set up for films alone
    opened = open_page(page_of_one_film).page
    opened.pdf(path=tmp_path / "film.pdf", format="A4")
    assert 2 <= n_pages((tmp_path / "film.pdf").read_bytes()) <= 20


def test_a_page_prints_on_white_without_buttons_and_with_its_caveat(open_page, page_of_one_film):
    """The page is shown on a dark ground, and printed on the light one of the other theme, nearly white."""
    nearly_white = "rgb(251, 250, 247)"
    seen = open_page(page_of_one_film, theme="dark").page
    seen.emulate_media(media="print", color_scheme="dark")
    assert seen.evaluate("getComputedStyle(document.body).backgroundColor") == nearly_white
    assert not seen.get_by_role("button", name="Zoom in").is_visible()
    assert seen.locator(".caveat").is_visible()


def test_a_page_prints_every_minute_and_the_reasons_of_passages(open_page, page_of_one_film):
    """A film lasts 120 minutes and 12 seconds: its table of minutes has 121 rows.

    On the screen only those rows are made that are in sight. Before it is printed, the page must make all of
    them; and the table of passages has more than three rows, and reasons ("For it").
    """
    seen = open_page(page_of_one_film).page
    seen.emulate_media(media="print")
    seen.evaluate("dispatchEvent(new Event('beforeprint'))")

    rows_of_minutes = seen.locator(".minutes tbody tr")
    table_of_passages = seen.locator("#f1-table")
    expect(rows_of_minutes).to_have_count(121)
    assert table_of_passages.locator("tbody tr").count() > 3
    assert "For it" in table_of_passages.inner_text()


TWELVE_HOURS_S = 12 * 3600.0


@pytest.fixture(scope="module")
def film_of_twelve_hours():
    """A film of twelve hours with values of frames, and rows of 4.7 s, as shots are long."""
    return fake_scored_film(duration_s=TWELVE_HOURS_S, n_rows=round(TWELVE_HOURS_S / 4.7), traced=True)


@pytest.fixture(scope="module")
def spoken_film_of_twelve_hours(film_of_twelve_hours):
    """The same film with a subtitle every 4.5 s."""
    starts = np.arange(0, TWELVE_HOURS_S - 10, 4.5)
    text = "She said this; nobody looked."
    subtitles = pd.DataFrame({"start_s": starts, "end_s": starts + 3, "text": text})
    return replace(film_of_twelve_hours, subtitles=subtitles)


@pytest.mark.nightly
def test_the_page_of_twelve_hours_is_below_half_a_megabyte(
    film_of_twelve_hours, spoken_film_of_twelve_hours, tmp_path
):
    """Pages are sent by e-mail. Subtitles come on top, with 80 bytes each at most."""
    write_film_page([film_of_twelve_hours], tmp_path / "silent.html")
    write_film_page([spoken_film_of_twelve_hours], tmp_path / "said.html")
    n_bytes = (tmp_path / "silent.html").stat().st_size
    assert n_bytes < 500_000
    n_bytes_of_subtitles = (tmp_path / "said.html").stat().st_size - n_bytes
    assert n_bytes_of_subtitles / len(spoken_film_of_twelve_hours.subtitles) < 80


@pytest.mark.nightly
def test_the_page_of_a_film_of_twelve_hours_has_few_elements_and_its_scripts_take_less_than_a_second(
    open_page, spoken_film_of_twelve_hours, tmp_path
):
    """The film has some 9,000 rows and 9,600 subtitles: elements are made only for what is seen.

    The scripts' CPU time is measured while the page is loaded and its timeline is enlarged by the key +.
    """
    write_film_page([spoken_film_of_twelve_hours], tmp_path / "said.html")
    page = open_page(tmp_path / "said.html").page
    n_elements = page.evaluate("document.querySelectorAll('*').length")
    assert n_elements <= 1500

    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU time, and no time of waiting
    page.reload()
    timeline = page.locator(".d-over")
    timeline.focus()
    page.keyboard.press("+")
    metrics = {
        metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]
    }

    seconds_of_scripts = metrics["ScriptDuration"]
    assert seconds_of_scripts < 1.0


@pytest.fixture(scope="module")
def page_with_videos(tmp_path_factory):
    """A folder with the page of a film of a minute, on which two people decided, and copies of the film.

    Beside the page `film.html` are `own.webm`, the owner's copy; `shorter.webm`, which ends after 50 s; and
    `old.mpg`, which browsers do not play.
    """
    folder = tmp_path_factory.mktemp("watched")
    fps, duration_s = 10, 60
    pictures = [np.full((48, 64, 3), frame % 200, np.uint8) for frame in range(fps * duration_s)]
    quick = {"deadline": "realtime", "cpu-used": "8"}
    encode(folder / "own.webm", iter(pictures), "libvpx", fps, options=quick)
    encode(folder / "shorter.webm", iter(pictures[: fps * 50]), "libvpx", fps, options=quick)
    encode(folder / "old.mpg", iter(pictures), "mpeg2video", fps)

    film = fake_scored_film(duration_s=60.0, n_rows=30, unlike_parts=())
    people = [
        Decided(start_s=5.0, end_s=15.0, judges=("AB",), level="S", note="=1+1"),
        Decided(start_s=5.0, end_s=15.0, judges=("CD",), level="HN", is_blind=True),
        Decided(start_s=5.0, end_s=15.0, judges=("AB", "CD"), level="S", is_agreed=True),
    ]
    copy = ScoredCopy(
        duration_s=float(duration_s), fps=float(fps), key=content_key(folder / "own.webm"), stills={}
    )
    owned = Owned(people=people, copy=copy)
    write_film_page([film], folder / "film.html", owned={film.movie: owned})
    return folder


def open_own_copy(page, path):
    """Choose the reader's own file of the film, and wait until the page says what it is."""
    page.get_by_label("Open your own copy").set_input_files(path)
    wait_until(page, "document.querySelector('#f1-own').textContent")


def requests_elsewhere(seen):
    """Return what a page asked for other than files, and data of its own."""
    return [url for url in seen.requests if not url.startswith(("file:", "blob:", "data:"))]


def test_two_clicks_lead_from_a_number_to_its_scene(open_page, page_with_videos):
    """One click opens the reader's own copy of the film, and one plays the passage in it.

    Nothing is uploaded.
    """
    seen = open_page(page_with_videos / "film.html")
    page = seen.page
    start_s = page.evaluate("JSON.parse(document.querySelector('.data').textContent).passages[0].start")
    open_own_copy(page, page_with_videos / "own.webm")
    assert "the file that was scored" in page.locator("#f1-own").inner_text()

    page.locator("#f1-table tbody button").first.click()
    wait_until(page, f"document.querySelector('video').currentTime >= {start_s}")
    wait_until(page, "!document.querySelector('video').paused")
    assert requests_elsewhere(seen) == []
    assert seen.errors == []


def test_an_address_with_a_time_leads_to_its_scene(open_page, page_with_videos):
    """`#t=30,40` is a span of a film in seconds, as citations have it."""
    page = open_page(page_with_videos / "film.html").page
    page.goto((page_with_videos / "film.html").as_uri() + "#t=30,40")
    page.reload()
    assert "0:00:30–0:00:40" in page.locator("#f1-title").inner_text()
    open_own_copy(page, page_with_videos / "own.webm")
    wait_until(page, "document.querySelector('video').currentTime >= 30")


def test_a_copy_of_another_length_is_said_to_be_another_cut(open_page, page_with_videos):
    """The film that was scored has 60 s. The reader's own copy ends after 50 s: it may be another cut.

    So its times may be of other scenes, and the page says so below the button that opens it.
    """
    page = open_page(page_with_videos / "film.html").page
    page.get_by_label("Open your own copy").set_input_files(page_with_videos / "shorter.webm")
    expect(page.locator("#f1-own")).to_contain_text("Another cut")


def test_an_unplayable_file_gets_a_command_that_converts_it(open_page, page_with_videos):
    """Browsers do not play MPEG-2. The command calls the program ffmpeg, and nothing is played."""
    page = open_page(page_with_videos / "film.html").page
    page.get_by_label("Open your own copy").set_input_files(page_with_videos / "old.mpg")
    expect(page.locator("#f1-command")).to_be_visible()
    assert 'ffmpeg -i "old.mpg"' in page.locator("#f1-command").inner_text()
    assert not page.locator("video").is_visible()


@pytest.fixture
def hostile(open_page, tmp_path):
    """A page whose title, subtitle, judge and note are hostile, and whose address is so, too."""
    film = fake_scored_film("tt1", NASTY, duration_s=60.0, n_rows=30, unlike_parts=())
    subtitles = pd.DataFrame({"start_s": [4.0], "end_s": [9.0], "text": [NASTY]})
    decided = [Decided(start_s=5.0, end_s=15.0, judges=(NASTY,), level="S", note=NASTY, is_blind=True)]
    path = tmp_path / "hostile.html"
    write_film_page([replace(film, subtitles=subtitles)], path, owned={"tt1": Owned(people=decided)})
    seen = open_page(path)
    seen.page.goto(f"{path.as_uri()}#t=5,15<img src=x onerror=document.title='broken'>")
    seen.page.reload()
    return seen


def assert_nothing_hostile_ran(seen):
    """Check that nothing hostile ran.

    Any of the texts would set the page's title to "broken", or add an element.
    """
    assert "broken" not in seen.page.title().replace(NASTY, "")  # which is the film's title
    elements = "img, iframe, main script:not([type='application/json'])"
    assert seen.page.locator(elements).count() == 0
    assert requests_elsewhere(seen) == []


def test_scripts_in_a_title_a_name_a_note_or_a_subtitle_stay_text_on_a_page(hostile):
    """A film's title, a judge's name, a note and a subtitle are HTML with a script, made by a stranger.

    The reader shows all decisions, opens the first passage, at which the subtitle is said, and the list of
    subtitles. The script is shown as text, "<script>...", and nothing of it runs.
    """
    page = hostile.page
    table_of_passages = page.locator("#f1-table")
    what_is_said = page.locator("#f1-said")
    subtitles = page.locator("#f1-lines")

    page.get_by_role("button", name="All", exact=True).click()
    table_of_passages.locator("tbody button").first.click()
    expect(what_is_said).to_contain_text("<script>")
    subtitles.locator("summary").click()

    assert_nothing_hostile_ran(hostile)


def test_no_hostile_name_of_a_readers_file_runs(hostile, page_with_videos, tmp_path):
    """The name of the reader's own copy is HTML with a script, and is shown on the page."""
    path = tmp_path / "<img src=x onerror=document.title='broken'>.webm"
    path.write_bytes((page_with_videos / "own.webm").read_bytes())
    open_own_copy(hostile.page, path)
    assert_nothing_hostile_ran(hostile)


def test_a_hostile_file_name_is_not_in_the_command_that_converts_it(hostile, tmp_path):
    """The page writes "FILM" for the file, whose name would end the quotes and run a command."""
    path = tmp_path / "a\";'$(touch x)`.webm"
    first_bytes_of_webm = b"\x1aE\xdf\xa3"
    path.write_bytes(first_bytes_of_webm + b" no film")
    hostile.page.get_by_label("Open your own copy").set_input_files(path)
    command = hostile.page.locator("#f1-command")
    expect(command).to_be_visible()

    assert 'ffmpeg -i "FILM"' in command.inner_text()
    assert_nothing_hostile_ran(hostile)


def test_people_who_decided_have_tiers_of_their_own(open_page, page_with_videos):
    """AB and CD judged the film: each has a row (a tier) below the timeline, by the name in `data-who`."""
    page = open_page(page_with_videos / "film.html").page
    names = page.locator(".d-tiers [data-who]").evaluate_all("all => all.map((one) => one.dataset.who)")
    assert names == ["AB", "CD"]


def test_the_table_has_all_decisions_and_says_how_each_was_made(open_page, page_with_videos):
    """AB decided in sight of the score, CD blindly, and both settled it."""
    page = open_page(page_with_videos / "film.html").page
    page.get_by_role("button", name="All", exact=True).click()
    rows = page.locator("#f1-table tbody tr")
    expect(rows).to_have_count(3)
    texts = rows.all_inner_texts()

    assert any("CD, blind" in text for text in texts)
    assert any("settled between AB, CD" in text for text in texts)

    page.locator("#f1-table tbody button").first.click()
    expect(page.locator("#f1-title")).to_contain_text("AB")


RECORD_CHANGES_READ_ALOUD = """() => {
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
"""JavaScript: from now on collect in `spoken` which regions change that a screen reader reads aloud."""

SLIDER = "d-track d-over"
"""Class of the timeline's slider, whose text is the time."""


def test_a_screen_reader_is_told_the_time_only_when_the_film_stops(open_page, page_with_videos):
    """A time that is read out every second would drown the film's own sound.

    While the film plays for two seconds, nothing that a screen reader reads aloud changes. Stopped, the
    timeline's slider does.
    """
    page = open_page(page_with_videos / "film.html").page
    open_own_copy(page, page_with_videos / "own.webm")
    page.keyboard.press("n")
    wait_until(page, "!document.querySelector('video').paused")
    page.evaluate(RECORD_CHANGES_READ_ALOUD)
    started_at_s = page.evaluate("document.querySelector('video').currentTime")
    wait_until(page, f"document.querySelector('video').currentTime > {started_at_s} + 2")

    assert page.evaluate("spoken") == []

    page.evaluate("document.querySelector('video').pause()")
    wait_until(page, f"spoken.includes('{SLIDER}')")


FOCUSED = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    const isOutlined = parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
    const name = one.id || one.dataset.key || one.dataset.filter || one.className || one.tagName;
    return [name, isOutlined && one.getBoundingClientRect().bottom > 0];
}"""
"""What has the focus, and whether that is seen."""


def focused_elements(page):
    """Press Tab through the page; return the name of each element, and whether its focus is seen."""
    elements = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name, is_seen = page.evaluate(FOCUSED)
        if name == "BODY":
            break
        elements.append((name, is_seen))
    return elements


def test_the_tab_key_reaches_all_controls_with_a_visible_focus(open_page, page_with_videos):
    """A control is called by its id, key or class. `skip` is the link that skips to the content.

    `d-track d-over` is the timeline, and N the button of the next passage.
    """
    elements = focused_elements(open_page(page_with_videos / "film.html").page)

    names = [name for name, _is_seen in elements]
    for name in ("skip", "f1-file", "N", "f1-order", "passages", "d-track d-over", "d-scroll", "d-strips"):
        assert name in names
    for name, is_seen in elements:
        assert is_seen, name


def test_a_key_of_the_page_can_be_changed_in_its_dialog(open_page, page_with_videos):
    """The key of the next passage is changed from n to m: then n does nothing."""
    page = open_page(page_with_videos / "film.html").page
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.locator("[data-change=n]").focus()  # the button that changes the key of the next passage, n
    page.keyboard.press("Enter")
    page.keyboard.press("m")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("#f1-title")).to_contain_text("Nothing selected")
    page.keyboard.press("m")
    expect(page.locator("#f1-title")).to_contain_text("Passage 1")

    assert page.locator("[data-key=N] kbd").inner_text() == "M"


def test_keys_order_and_filter_the_table_of_passages(open_page, page_with_videos):
    """The key v orders passages by strength, and f shows those below the threshold."""
    page = open_page(page_with_videos / "film.html").page
    page.keyboard.press("v")
    expect(page.locator("#f1-order")).to_have_value("strength")
    page.keyboard.press("f")
    expect(page.locator("[data-filter=weak]")).to_have_attribute("aria-pressed", "true")


SIZES = pytest.mark.parametrize(
    ("width", "height"), [(1400, 900), (1280, 720), (1024, 768), (700, 450), (390, 844)]
)


@SIZES
def test_the_text_on_the_readers_file_is_never_cut(open_page, page_with_videos, tmp_path, width, height):
    """The file has a long name. The text on it ends above the lower edge of the box around it."""
    page = open_page(page_with_videos / "film.html", width=width, height=height).page
    own_copy = shutil.copy(page_with_videos / "own.webm", tmp_path / "Harbour Lights (1954), mine.webm")

    open_own_copy(page, own_copy)

    text = page.locator("#f1-own").bounding_box()
    box = page.locator(".d-none").bounding_box()
    lower_edge_of_text = text["y"] + text["height"]
    lower_edge_of_box = box["y"] + box["height"]
    assert lower_edge_of_text <= lower_edge_of_box + 1


@SIZES
def test_film_and_cursor_stay_in_view_at_every_size(open_page, page_with_videos, width, height):
    """A reader watches a film beside its page, in windows of a large screen down to those of a telephone.

    The page is scrolled to the top, the middle and the end of what stands beside the film. Video and cursor
    lie within the window all the time, and nothing is wider than it.
    """
    page = open_page(page_with_videos / "film.html", width=width, height=height).page
    open_own_copy(page, page_with_videos / "own.webm")
    page.keyboard.press("n")  # to the next passage
    expect(page.locator(".d-before")).to_be_hidden()  # what stands in the film's place until it is shown
    least_height_to_watch = 120  # pixels
    assert page.locator("video").bounding_box()["height"] > least_height_to_watch

    end = max(page.evaluate("document.querySelector('.d-desk').offsetHeight") - height, 0)
    for scrolled in (0, end // 2, end):
        page.evaluate(f"scrollTo(0, document.querySelector('.d-desk').offsetTop + {scrolled})")
        for selector in ("video", ".d-here"):  # the cursor's line of text
            box = page.evaluate(f"document.querySelector({selector!r}).getBoundingClientRect().toJSON()")
            assert box["top"] >= -1, (selector, scrolled)
            assert box["bottom"] <= height + 1, (selector, scrolled)

    assert page.evaluate("document.documentElement.scrollWidth") == width


RIGHT_END_OF_CELLS = (
    "Math.max(...[...document.querySelectorAll('td')].map((one) => one.getBoundingClientRect().right))"
)


def test_no_column_of_a_report_is_cut_on_paper(open_page, report):
    """The report has a table of twelve columns. Printed, neither the page nor a cell reaches beyond A4."""
    a4_without_margins = 718  # pixels
    seen = open_page(report, width=a4_without_margins).page
    seen.emulate_media(media="print")
    assert seen.evaluate("document.documentElement.scrollWidth") <= a4_without_margins
    assert seen.evaluate(RIGHT_END_OF_CELLS) <= a4_without_margins


@pytest.mark.parametrize("width", [1440, 390])
def test_a_wide_table_of_a_report_scrolls_to_its_last_column(open_page, report, width):
    """The report has a table of twelve columns, wider than the window: the table scrolls, and not the page.

    Scrolled as far as it goes, the last column ends within the window.
    """
    seen = open_page(report, width=width).page
    assert seen.evaluate("document.documentElement.scrollWidth") <= width

    seen.locator(".wide").evaluate_all("all => all.forEach((one) => one.scrollTo(1e6, 0))")
    assert seen.evaluate(RIGHT_END_OF_CELLS) <= width
