"""Drive the desk in a browser: keys, drags, and what it says."""

import time

from tests.browsers import LONG_MS

VIDEO = "document.querySelector('video')"
PRESSED_CONCEPTS = (
    "[...document.querySelectorAll('[data-concept][aria-pressed=true]')].map((one) => one.dataset.concept)"
)
IS_LOOPING = "document.querySelector('#d-loop').ariaPressed"
ELEMENTS_THAT_SCROLL = """[...document.querySelectorAll("html, main > section, #d-why, .d-judge, #d-parts")]
    .filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.className || one.id)"""
"""JavaScript: what does not fit on one screen, so that it would scroll; empty if all fits."""

CALM, UNSURE, VIOLENT = "1", "2", "3"
"""Keys of the levels of the films here; another codebook has its own, from 1 on."""

KEYS = {"calm": CALM, "violent": VIOLENT}

NEXT_PASSAGE, NEXT_WEAK_PLACE = "n", "w"
"""Go to the model's next passage, or to the next place below its threshold."""

BEGIN_HERE, END_HERE = "i", "o"
"""Begin or end one's own passage where the film is."""

UNDO, REDO, DELETE = "z", "y", "x"

CITE, HELP = "c", "?"

NEXT_DIFFERENCE = "d"
"""Go to the next span that two judges differ on."""

NEXT_KIND_OF_ROWS = "f"
"""Show other rows in the table of decisions."""

PROGRESS = "document.querySelector('#d-progress').textContent"
"""Which window of how many a judge is at."""
TITLE = "(document.querySelector('#d-title')?.textContent ?? '')"
"""The heading of what is looked at; empty until the page's script has run."""


def wait_until(page, expression):
    """Wait until an expression of JavaScript is true; the page's policy forbids Playwright's own way."""
    ends = time.monotonic() + LONG_MS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < ends, expression
        page.wait_for_timeout(50)


def wait_until_script_runs(page):
    """Wait until the page's script has run, which then gives the desk a title."""
    wait_until(page, TITLE)


def wait_for_announcement(page, text):
    """Wait until the page says a text to a screen reader, and empty what it said."""
    wait_until(page, f"document.querySelector('#d-spoken').textContent.includes({text!r})")
    page.evaluate("document.querySelector('#d-spoken').textContent = ''")


def wait_for_progress(page, text):
    """Wait until the line of progress, such as "Window 2 of 40", has this text in it."""
    wait_until(page, f"{PROGRESS}.includes({text!r})")


def wait_for_title(page, beginning):
    """Wait until the heading of what is looked at begins so."""
    wait_until(page, f"{TITLE}.startsWith({beginning!r})")


def progress_of(page):
    """Return the line that says how much is judged."""
    return page.locator("#d-progress").inner_text()


def open_desk(page, name="AB", mode="read"):
    """Go to a film's desk and give a name."""
    page.goto(page.url.rpartition("/films")[0] + f"/film/0/{mode}")
    give_name(page, name)


def give_name(page, name="AB"):
    """Type a judge's name, once the page's script runs."""
    wait_until_script_runs(page)
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Tab")


def seek(page, second):
    """Stop the video at a second, and wait until its picture is there."""
    page.evaluate(f"{VIDEO}.pause(); {VIDEO}.currentTime = {second}")
    wait_until(page, f"!{VIDEO}.seeking")


def press_key_and_wait(page, key, text="kept"):
    """Press a key, and wait until the page says what came of it."""
    page.keyboard.press(key)
    wait_for_announcement(page, text)


def position_of(page, second):
    """Where a time of the film is on the tier of probabilities, while all 600 s are shown: x, y in pixels."""
    box = page.locator(".d-tiers .plot").bounding_box()
    return box["x"] + box["width"] * second / 600, box["y"] + box["height"] / 2


def drag(page, start, end, y=None):
    """Drag from one second of the film to another, at `y` pixels or along the tier of probabilities."""
    page.mouse.move(position_of(page, start)[0], y or position_of(page, start)[1])
    page.mouse.down()
    page.mouse.move(position_of(page, (start + end) / 2)[0], y or position_of(page, end)[1])
    page.mouse.move(position_of(page, end)[0], y or position_of(page, end)[1])
    page.mouse.up()


def decided_texts(page):
    """The texts of all decisions in the table, from top to bottom."""
    return [
        " ".join(text.split()) for text in page.locator("#d-table tbody td:nth-child(2)").all_inner_texts()
    ]


class Keyboard:
    """A person at the desk who touches nothing but the keys.

    Attributes
    ----------
    n_pressed
        Keys that decide or move; typing a name is not counted.
    errors
        Errors of the page's scripts.
    """

    def __init__(self, page):
        self.page, self.n_pressed = page, 0
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def press(self, key):
        """Press a key, and count it."""
        self.page.keyboard.press(key)
        self.n_pressed += 1

    def give_name(self, name):
        """Type a name in place of the one there, and wait until nothing is hidden any more.

        The focus leaves the fields of text, in which keys would be letters.
        """
        wait_until_script_runs(self.page)
        self.page.locator("#d-who").focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(name)
        while self.page.evaluate("document.activeElement.matches('input:not([type=checkbox])')"):
            self.page.keyboard.press("Tab")
        # "60 judgements are hidden" is there as long as no name is.
        wait_until(self.page, "document.querySelector('#d-hidden').textContent === ''")

    def settle(self, level):
        """Go to the next span that they differ on, and give what they agree on."""
        self.press("d")
        wait_until(self.page, f"{TITLE}.includes('agree on')")
        self.press(level)
        wait_for_announcement(self.page, "kept")

    def judge_blindly(self, name, levels, keys=KEYS):
        """Write a name, and judge the windows of the draw."""
        wait_until_script_runs(self.page)
        self._write("Your name", name)
        self._write("How many in all", str(len(levels)))
        self.page.get_by_role("button", name="Begin").focus()
        self.page.keyboard.press("Enter")
        for number, level in enumerate(levels, 1):
            wait_until(self.page, f"{PROGRESS}.includes('Window {number} of {len(levels)}')")
            self.page.keyboard.press(keys[level])
        wait_until(self.page, f"!{PROGRESS}.includes('Window {len(levels)} of')")

    def _write(self, label, text):
        self.page.get_by_label(label).focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Tab")

    def count_of_differences(self):
        """The text that says how many spans two judges differ on."""
        return self.page.locator("#d-differ").inner_text()
