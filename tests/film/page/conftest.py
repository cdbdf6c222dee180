"""Pages opened from the disk in a browser."""

from pathlib import Path

import pytest

from tests.browsers import LONG_MS


class Visit:
    """A page opened from the disk, with everything it asked for and complained of."""

    def __init__(self, page, path: Path) -> None:
        self.page, self.requests, self.errors = page, [], []
        page.on("request", lambda one: self.requests.append(one.url))
        page.on("console", lambda one: self.errors.append(one.text))
        page.on("pageerror", lambda one: self.errors.append(str(one)))
        page.goto(path.as_uri())


@pytest.fixture
def open_page(browser):
    """Open a file at a size and in a theme; scripts may be switched off."""
    opened = []

    def go(path, *, width=1440, height=900, theme="light", script=True) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, java_script_enabled=script
        )
        context.set_default_timeout(LONG_MS)
        opened.append(context)
        return Visit(context.new_page(), path)

    yield go
    for context in opened:
        context.close()
