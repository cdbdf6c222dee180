"""The browser of tests of pages: any Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

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


def running_chromium() -> Iterator[Any]:
    """Run Chromium; OBYGAZE_CHROMIUM names one that is not on the path. Without one the test is skipped."""
    found = os.environ.get("OBYGAZE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium here: install Debian's package chromium, or name one in OBYGAZE_CHROMIUM")
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=list(FLAGS), timeout=LONG_MS)
        yield running
        running.close()


def expect(locator: Any) -> Any:
    """Return Playwright's assertions on a locator, which wait until they hold."""
    from playwright.sync_api import expect as playwright_expect

    playwright_expect.set_options(timeout=LONG_MS)
    return playwright_expect(locator)
