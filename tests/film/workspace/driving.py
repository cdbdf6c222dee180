"""Drive the desk in a browser: keys, drags, and what it says."""

import time

from tests.browsers import LONG_MS

VIDEO = "document.querySelector('video')"
PRESSED = (
    "[...document.querySelectorAll('[data-concept][aria-pressed=true]')].map((one) => one.dataset.concept)"
)
LOOPS = "document.querySelector('#d-loop').ariaPressed"
SCROLLS = """[...document.querySelectorAll("html, main > section, #d-why, .d-judge, #d-parts")]
    .filter((one) => one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.className || one.id)"""
"""What does not fit on one screen: neither the page nor what is said of a passage scrolls."""

KEYS = {"calm": "1", "violent": "3"}
"""Key of each level of the films here; another codebook has its own, from 1 on."""
PROGRESS = "document.querySelector('#d-progress').textContent"
TITLE = "(document.querySelector('#d-title')?.textContent ?? '')"


def until(page, true):
    """Wait until an expression is true; the policy forbids Playwright's own way."""
    ends = time.monotonic() + LONG_MS / 1000
    while not page.evaluate(true):
        assert time.monotonic() < ends, true
        page.wait_for_timeout(50)


def said(page, text):
    until(page, f"document.querySelector('#d-spoken').textContent.includes({text!r})")
    page.evaluate("document.querySelector('#d-spoken').textContent = ''")


def read(page, name="AB", mode="read"):
    """Go to a film's desk and give a name."""
    page.goto(page.url.rpartition("/films")[0] + f"/film/0/{mode}")
    named(page, name)


def named(page, name="AB"):
    until(page, TITLE)  # its script runs
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Tab")


def look(page, second):
    page.evaluate(f"{VIDEO}.pause(); {VIDEO}.currentTime = {second}")
    until(page, f"!{VIDEO}.seeking")


def press(page, key, text="kept"):
    page.keyboard.press(key)
    said(page, text)


def at(page, second):
    """Where a time of the film is on the tier of probabilities, while all of it is shown: x, y."""
    box = page.locator(".d-tiers .plot").bounding_box()
    return box["x"] + box["width"] * second / 600, box["y"] + box["height"] / 2


def drag(page, start, end, y=None):
    page.mouse.move(at(page, start)[0], y or at(page, start)[1])
    page.mouse.down()
    page.mouse.move(at(page, (start + end) / 2)[0], y or at(page, end)[1])
    page.mouse.move(at(page, end)[0], y or at(page, end)[1])
    page.mouse.up()


def decided(page):
    return [
        " ".join(text.split()) for text in page.locator("#d-table tbody td:nth-child(2)").all_inner_texts()
    ]


class Keyboard:
    """A person at the desk who touches nothing but the keys, and counts them."""

    def __init__(self, page):
        self.page, self.n_pressed = page, 0
        self.errors = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def press(self, key):
        self.page.keyboard.press(key)
        self.n_pressed += 1

    def named(self, name):
        until(self.page, TITLE)
        self.page.locator("#d-who").focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(name)
        while self.page.evaluate("document.activeElement.matches('input:not([type=checkbox])')"):
            self.page.keyboard.press("Tab")  # keys are signs in a field
        until(self.page, "document.querySelector('#d-hidden').textContent === ''")

    def settle(self, level):
        """Go to the next span that they differ on, and give what they agree on."""
        self.press("d")
        until(self.page, f"{TITLE}.includes('agree on')")
        self.press(level)
        said(self.page, "kept")

    def judge_blindly(self, name, levels, keys=KEYS):
        """Write a name, and judge the windows of the draw."""
        until(self.page, TITLE)
        self._write("Your name", name)
        self._write("How many in all", str(len(levels)))
        self.page.get_by_role("button", name="Begin").focus()
        self.page.keyboard.press("Enter")
        for number, level in enumerate(levels, 1):
            until(self.page, f"{PROGRESS}.includes('Window {number} of {len(levels)}')")
            self.page.keyboard.press(keys[level])
        until(self.page, f"!{PROGRESS}.includes('Window {len(levels)} of')")

    def _write(self, label, text):
        self.page.get_by_label(label).focus()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Tab")

    def count(self):
        return self.page.locator("#d-differ").inner_text()
