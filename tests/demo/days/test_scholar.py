"""A film scholar's day: read and judged at the desk, corrected in ELAN, and learnt from."""

import re
from pathlib import Path

import pytest

from obygaze_film.workspace.address import _redirecting_file
from tests.browsers import LONG_MS
from tests.files import rows_of, written
from tests.film.workspace.driving import Keyboard, give_name, wait_for_announcement, wait_until

pytestmark = [pytest.mark.long, pytest.mark.nightly]

SUBTITLES = "1\n00:00:01,000 --> 00:00:04,000\nWho is there?\n\n2\n00:00:30,000 --> 00:00:33,000\nNobody.\n"
KEY_OF_LEVEL = {"EN": "1", "S": "4"}


class Desk:
    """`film open`, running, and a page in front of it."""

    def __init__(self, person, browser, line):
        self.running = person.start(line)
        printed = []
        for text in self.running.stdout:
            if text.startswith("http://127.0.0.1:"):
                break
            printed.append(text)
        else:
            raise AssertionError("".join(printed))
        self.context = browser.new_context(viewport={"width": 1400, "height": 900})
        self.context.set_default_timeout(LONG_MS)
        self.page = self.context.new_page()
        with _redirecting_file(text.strip()) as untrusted:
            self.page.goto(untrusted)
            self.page.wait_for_url("http://**/film/0/read")

    def sit_down(self, mode="read"):
        """Go to a mode of the desk, under the scholar's name."""
        self.page.goto(self.page.url.rpartition("/")[0] + f"/{mode}")
        if mode == "read":
            give_name(self.page, "AB")

    def kill(self):
        """End it as a crash would."""
        self.running.kill()
        self.running.wait()
        self.running.stdout.close()
        self.context.close()


@pytest.fixture
def open_desk(person, browser):
    """Open the desk as a line says; what is open at the end is killed."""
    desks = []

    def start(line):
        desks.append(Desk(person, browser, line))
        return desks[-1]

    yield start
    for desk in desks:
        if desk.running.poll() is None:
            desk.kill()


def correct_in_elan(path: Path) -> None:
    """Change the level of one of the scholar's own annotations, as ELAN would save it."""
    text = path.read_text(encoding="utf-8")
    own = re.search(r'<TIER [^>]*TIER_ID="human: level, in sight@AB".*?</TIER>', text, re.DOTALL)
    assert own is not None
    changed = own.group().replace("<ANNOTATION_VALUE>S<", "<ANNOTATION_VALUE>EN<", 1)
    assert changed != own.group()
    path.write_text(text.replace(own.group(), changed), encoding="utf-8")


def test_a_scholar_reads_judges_corrects_and_learns(person, open_desk, demo_folder):
    """A scholar has a film with subtitles, and a lab's model with its features and labels.

    `person.types` runs a command in the scholar's folder, expects its exit code, and returns what it printed.
    The desk is `obygaze film open`, in a browser, where AB judges with the keys 1 (EN) and 4 (S).
    """
    (person.folder / "film.mkv").symlink_to(demo_folder / "films" / "tt9000007" / "tt9000007.mkv")
    written(person.folder / "film.srt", SUBTITLES)
    (person.folder / "gaze.model").symlink_to(demo_folder / "run" / "pcbm_lr.model")
    (person.folder / "features").symlink_to(demo_folder / "store-1.0.0")
    (person.folder / "clips.csv").write_bytes((demo_folder / "manifest.csv").read_bytes())

    # The film is scored.
    printed = person.types("obygaze film run film.mkv --model gaze.model --subtitles --out results")
    assert "The page: results/report.html" in printed
    passages = rows_of(person.folder / "results" / "scored" / "segments.csv")
    assert passages

    # At the desk the first passage is judged S; the desk dies, and nothing is lost.
    line = "obygaze film open results --film film.mkv --no-browser"
    desk = open_desk(line)
    desk.sit_down()
    desk.page.keyboard.press("n")
    desk.page.keyboard.press(KEY_OF_LEVEL["S"])
    wait_for_announcement(desk.page, "kept")
    desk.kill()
    judgements = person.folder / "results" / "scored" / "judgements.csv"
    (kept,) = rows_of(judgements)
    assert (kept["level"], kept["annotator"]) == ("S", "AB")

    # Opened again, twelve windows are judged blindly: every third is S.
    desk = open_desk(line)
    desk.sit_down("blind")
    levels = ["S", "EN", "EN"] * 4
    Keyboard(desk.page).judge_blindly("AB", levels, KEY_OF_LEVEL)
    desk.kill()
    assert len(rows_of(judgements)) == 1 + 12
    printed = person.types("obygaze film rate results/scored results/scored/judgements.csv")
    assert "12 windows" in printed

    # In ELAN the judgement of the passage, the only one in sight of the scores, is changed from S to EN.
    person.types("obygaze film export results/scored --as eaf --people --out film.eaf")
    correct_in_elan(person.folder / "film.eaf")
    person.types("obygaze film import film.eaf --into results/scored")
    (in_sight,) = (row for row in rows_of(judgements) if row["seen_score"] == "1")
    assert in_sight["level"] == "EN"

    # A model learns from the judgements; its desk shows all thirteen.
    person.types("obygaze film learn results --manifest clips.csv --store features --out learnt")
    assert list((person.folder / "learnt").glob("*.model"))
    desk = open_desk("obygaze film open learnt/scored --film film.mkv --no-browser")
    desk.sit_down()
    wait_until(desk.page, "document.querySelectorAll('#d-table tbody tr').length === 13")
