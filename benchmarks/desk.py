"""Desk and page of a film of two and of twelve hours: CPU seconds to open, until drawn, to jump, to zoom.

Invented scored films of one window every 4.7 s, with values of frames for every second and what is said, are
opened by `obygaze film open`, and written by `obygaze film report`. CPU seconds are those of the main thread
(Chromium's TaskDuration), the median of several. It needs the extra dev and chromium. The address of the desk
is measured before, in CPU seconds of the command until it prints it, in turn with `import pandas` alone.

    python benchmarks/desk.py [--hours 2 12] [--times 7] [--check]
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from measure import arguments, in_turn, show
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from obygaze_film import read_films
from obygaze_film.page import write_film_page
from tests.film.page.invented import fake_scored_film

GOALS = {2.0: (1.0, 0.3, None, 100.0), 12.0: (3.0, None, 16.0, None)}
"""Hours -> the most CPU seconds to draw and to jump, milliseconds to zoom, kilobytes sent."""

ADDRESS_GOAL = {12.0: 2.4}
"""Hours -> the most CPU time until the address is printed, in times that of `import pandas`."""


def scored(folder: Path, hours: float) -> Path:
    """Write a scored film of some hours."""
    length = 3600 * hours
    film = fake_scored_film(duration_s=length, n_rows=round(length / 4.7), traced=True)
    starts = np.arange(0, length - 10, 4.5)
    subtitles = pd.DataFrame(
        {"start_s": starts, "end_s": starts + 3, "text": "She said this; nobody looked."}
    )
    replace(film, subtitles=subtitles).write(folder)
    return folder


def opening(folder: Path) -> list[str]:
    """Return the words that open a scored film."""
    return [sys.executable, "-m", "obygaze", "film", "open", str(folder), "--no-browser"]


def print_address(folder: Path) -> None:
    """Open a scored film, and stop as soon as the address is printed."""
    with subprocess.Popen(opening(folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        next(iter(running.stdout or ()))
        running.kill()


def import_pandas() -> None:
    """Import what every command that reads tables imports."""
    subprocess.run([sys.executable, "-c", "import pandas"], check=True)


def measured(browser: Any, address: str, times: int) -> tuple[float, float, float, float]:
    """Open the desk; give CPU seconds to draw it and to jump, milliseconds to zoom, and kilobytes."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.goto(address)
    page.wait_for_url("**/read")
    where = page.url

    def opened() -> tuple[Any, Callable[[], float]]:
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable")

        def busy() -> float:
            page.wait_for_timeout(400)
            metrics = {
                metric["name"]: metric["value"]
                for metric in session.send("Performance.getMetrics")["metrics"]
            }
            return float(metrics["TaskDuration"])

        page.goto(where)
        page.locator("#d-model rect").first.wait_for(state="attached")
        return page, busy

    drawn = []
    for _ in range(times):
        page.close()
        page, busy = opened()
        drawn.append(busy())

    def of(act: Callable[[], object]) -> float:
        spent = []
        for _ in range(times):
            before = busy()
            act()
            spent.append(busy() - before)
        return median(spent)

    idle = of(lambda: None)
    page.locator("#d-title").click()
    jump = of(lambda: page.keyboard.press("n"))
    keys = iter("+-" * times)
    zoom = of(lambda: page.keyboard.press(next(keys)))
    sent = gzip.compress(context.request.get(where).body())
    return median(drawn), jump - idle, 1000 * (zoom - idle), len(sent) / 1000


def measured_page(browser: Any, path: Path, times: int) -> tuple[str, str, str]:
    """Open a film's page from the disk; give kilobytes, elements, and CPU seconds until it is drawn."""
    drawn, elements = [], 0
    for _ in range(times):
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        page.wait_for_timeout(1000)
        metrics = session.send("Performance.getMetrics")["metrics"]
        drawn += [metric["value"] for metric in metrics if metric["name"] == "TaskDuration"]
        elements = page.evaluate("document.querySelectorAll('*').length")
        context.close()
    return f"{path.stat().st_size / 1000:.0f}", str(elements), f"{median(drawn):.3f}"


def main() -> None:
    """Print the tables."""
    options = arguments(__doc__, hours=[2.0, 12.0], times=7, check=False)
    rows, page_rows, address_rows = [], [], []
    missed = False
    with tempfile.TemporaryDirectory(prefix="obygaze-desk-") as name, sync_playwright() as driver:
        path = os.environ.get("OBYGAZE_CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for hours in options.hours:
            folder = scored(Path(name) / f"film{hours:g}", hours)
            works = {"address": partial(print_address, folder), "pandas": import_pandas}
            took = in_turn(works, options.times)
            address_s, pandas_s = took["address"].cpu_s, took["pandas"].cpu_s
            times_pandas = address_s / pandas_s
            goal = ADDRESS_GOAL.get(hours)
            missed |= goal is not None and times_pandas > goal
            shown = f"{times_pandas:.2f}" + (f" (goal {goal:g})" if goal else "")
            address_rows.append((f"{hours:g}", f"{address_s:.2f}", f"{pandas_s:.2f}", shown))
            with subprocess.Popen(opening(folder), stdout=subprocess.PIPE, text=True) as running:
                try:
                    address = next(iter(running.stdout or ())).strip()
                    taken = measured(browser, address, options.times)
                finally:
                    running.terminate()
            page = folder.with_suffix(".html")
            write_film_page(read_films([folder]), page)
            page_rows.append((f"{hours:g}", *measured_page(browser, page, options.times)))
            goals = GOALS.get(hours, (None,) * 4)
            missed |= any(goal is not None and value > goal for value, goal in zip(taken, goals, strict=True))
            cells = [
                f"{value:.3g}" + (f" (goal {goal:g})" if goal else "")
                for value, goal in zip(taken, goals, strict=True)
            ]
            rows.append((f"{hours:g}", *cells))
        browser.close()
    show(address_rows, ("hours", "address, CPU s", "import pandas, CPU s", "times"))
    show(rows, ("hours", "drawn, CPU s", "jump, CPU s", "zoom, CPU ms", "sent, kB"))
    show(page_rows, ("hours", "page, kB", "elements", "drawn, CPU s"))
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
