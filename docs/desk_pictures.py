"""Make the pictures of the desk and of the page in docs/pictures anew, in Chromium.

Run it with: PYTHONPATH=. python docs/desk_pictures.py DEMO (the folder of `obygaze demo`, whose film the desk
shows; needs extra dev and chromium). The page is of a film that the tests invent.
The fifteen films of the comparison are the demo's film under other names, judged by chance: their numbers
mean nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from playwright.sync_api import sync_playwright

from obygaze_features.manifest import Manifest, builtin_codebook, write_manifest
from obygaze_film import Timeline
from obygaze_film.page import write_film_page
from obygaze_film.windows_to_judge import choose_next
from tests.film.page.invented import fake_scored_film, with_model

PICTURES = Path(__file__).parent / "pictures"
SIZE = {"width": 1280, "height": 800}


def judged_films(scored: Timeline, folder: Path) -> None:
    """Write fifteen films of three decades, of each ten windows judged blindly by chance."""
    rng = np.random.default_rng(0)
    for number in range(15):
        movie, year = f"film{number:02}", 1951 + 2 * number
        record = structs.replace(scored.record, movie=movie, title=f"Film {number + 1}", year=year)
        parts = {
            name: table.assign(movie=movie) if "movie" in table else table
            for name in ("table", "shots", "frames")
            if (table := getattr(scored, name)) is not None
        }
        film = replace(scored, record=record, **parts)
        film.write(folder / movie)
        levels = rng.choice(["S", "HN"], size=10, p=[0.3, 0.7]).tolist()
        clips = [
            replace(clip, level=level, annotator="AB")
            for clip, level in zip(choose_next([film], 10, blind=True), levels, strict=True)
        ]
        book = builtin_codebook(film.model().codebook)
        write_manifest(Manifest(tuple(clips), folder, book), folder / movie / "judgements.csv")


@contextmanager
def desk(*words: object) -> Iterator[str]:
    """Run `obygaze film open`; give its address."""
    command = [sys.executable, "-m", "obygaze", "film", "open", *map(str, words), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:  # noqa: S603 - ours
        try:
            yield next(iter(running.stdout or ())).strip()
        finally:
            running.terminate()


def take_pictures(page: Any, demo: Path, folder: Path) -> None:
    """Read, judge and compare as in docs/film.md."""
    film = next(demo.glob("films/tt9000007/*.mkv"))
    scored = Path(shutil.copytree(demo / "film", folder / "film")) / "scored"
    with desk(folder / "film", "--film", film) as address:
        page.goto(address)
        page.wait_for_url("**/read")
        with page.expect_event("load"):
            page.get_by_role("button", name="Make the copy").click()
        page.get_by_label("Your name").fill("AB")
        page.locator("#d-stills").wait_for()
        for name, key in (("Body", "4"), ("Look", "2")):
            page.locator("#d-title").click()
            page.keyboard.press("n")
            page.get_by_role("button", name=name, exact=True).click()
            page.keyboard.press(key)
            page.wait_for_timeout(1000)
        page.locator("#d-title").click()
        page.keyboard.press("n")
        page.locator("#d-sentence:not(:empty)").wait_for()
        page.wait_for_timeout(3000)
        page.get_by_role("button", name="Body", exact=True).hover()
        page.screenshot(path=PICTURES / "workspace-read.png")
        page.get_by_role("link", name="Judge blind").click()
        page.locator("#d-title:not(:empty)").wait_for()  # its script runs
        page.get_by_role("button", name="Begin").click()
        page.locator("[data-level]").first.wait_for()
        page.locator("#d-stills").wait_for()
        page.wait_for_timeout(3000)
        page.screenshot(path=PICTURES / "workspace-blind.png")
    judged_films(Timeline.read(scored), folder / "decades")
    with desk(folder / "decades", "--by", "decade") as address:
        page.goto(address)
        page.wait_for_url("**/films")
        page.set_viewport_size(SIZE | {"height": 860})
        page.screenshot(path=PICTURES / "workspace-compare.png")


def page_pictures(browser: Any, folder: Path) -> None:
    """Read the mailed page: its top, and the same in both themes."""
    means = builtin_codebook("obygaze12").means
    write_film_page([with_model(fake_scored_film(), means=means)], folder / "film.html")
    for name, theme, wide, high in (
        ("top", "light", 1200, 880), ("light", "light", 1280, 900), ("dark", "dark", 1280, 900)
    ):  # fmt: skip
        page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=theme)
        page.goto((folder / "film.html").as_uri())
        for _ in range(2):  # the second passage
            page.keyboard.press("n")
        page.screenshot(path=PICTURES / f"film-{name}.png")
        page.close()


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        os.environ["XDG_CACHE_HOME"] = name
        path = os.environ.get("OBYGAZE_CHROMIUM") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take_pictures(browser.new_page(viewport=SIZE, locale="en-GB"), Path(sys.argv[1]), Path(name))
        page_pictures(browser, Path(name))
        browser.close()


if __name__ == "__main__":
    main()
