"""A browser for the tests of pages: any Chromium, driven by Playwright; skipped where there is none."""

import os
import shutil
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
)
LONG_MS = 600_000  # a limit that ends what hangs, and nothing on a slow machine
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser():
    """A running browser; OBYGAZE_CHROMIUM names one that is not on the path."""
    found = os.environ.get("OBYGAZE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's package chromium, or name one in OBYGAZE_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=list(FLAGS), timeout=LONG_MS)
        yield running
        running.close()


class Visit:
    """A page opened from the disk, with everything it asked for and complained of."""

    def __init__(self, page, path: Path) -> None:
        self.page, self.requests, self.errors = page, [], []
        page.on("request", lambda one: self.requests.append(one.url))
        page.on("console", lambda one: self.errors.append(one.text))
        page.on("pageerror", lambda one: self.errors.append(str(one)))
        page.goto(path.as_uri())


@pytest.fixture
def visit(browser):
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
