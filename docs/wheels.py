"""Find for which systems and Pythons there are wheels of all that obygaze and its extras need.

Writes the table of docs/installing.md. Run it with: python docs/wheels.py (needs uv and a network). Nothing
is installed: uv resolves for each system as `pip install --only-binary :all:` would there, and takes older
versions within the bounds of pyproject.toml where the newest have no wheel.
"""

import os
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "installing.md"
BEGIN, END = "<!-- wheels: python docs/wheels.py -->\n", "<!-- end -->\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LEFT_OUT = {"benchmarks", "dev", "docs", "saliency"}
"""Not for users, or, as grad-cam of saliency, a source of Python alone, which needs no wheel."""
SYSTEMS = {
    "Linux x86-64, glibc 2.28 or newer": ("x86_64-manylinux_2_28", ""),
    "Linux x86-64, glibc 2.17 (CentOS 7)": ("x86_64-manylinux_2_17", ""),
    "Linux ARM, glibc 2.28 or newer": ("aarch64-manylinux_2_28", ""),
    "Windows x86-64": ("x86_64-pc-windows-msvc", ""),
    "Windows ARM": ("aarch64-pc-windows-msvc", ""),
    "macOS 14 or newer, Apple silicon": ("aarch64-apple-darwin", "14.0"),
    "macOS 12, Apple silicon": ("aarch64-apple-darwin", "12.0"),
    "macOS 14 or newer, Intel": ("x86_64-apple-darwin", "14.0"),
}
"""System -> uv's name for it, and the release of macOS."""


def resolves(system: str, python: str, extras: tuple[str, ...]) -> bool:
    """Return whether all packages of an install with some extras have wheels.

    Raises
    ------
    RuntimeError
        uv failed otherwise, such as without a network.
    """
    platform, macos = SYSTEMS[system]
    words = ["uv", "pip", "compile", "pyproject.toml", "--quiet", "--only-binary", ":all:", "--no-config"]
    words += ["--python-platform", platform, "--python-version", python]
    done = subprocess.run(  # noqa: S603 - words of our own
        words + [f"--extra={extra}" for extra in extras if extra],
        cwd=ROOT,
        env=os.environ | ({"MACOSX_DEPLOYMENT_TARGET": macos} if macos else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "No solution found" not in done.stderr:
        raise RuntimeError(f"{system}, Python {python}, {extras}: {done.stderr}")
    return done.returncode == 0


def available(system: str, python: str, extras: tuple[str, ...]) -> set[str]:
    """Return the extras that can be had, "" the base; all in one step where they can be had together."""
    if resolves(system, python, extras):
        return set(extras)
    if not resolves(system, python, ()):
        return set()
    return {extra for extra in extras if resolves(system, python, (extra,))}


def table(extras: tuple[str, ...], there: dict[tuple[str, str], set[str]]) -> str:
    """Write a line for each system and a column for each extra: the Pythons for which it can be had."""
    lines = [["", *(extra or "base" for extra in extras)], ["---"] * (len(extras) + 1)]
    for system in SYSTEMS:
        cells = []
        for extra in extras:
            pythons = [python for python in PYTHONS if extra in there[system, python]]
            cells.append("yes" if len(pythons) == len(PYTHONS) else ", ".join(pythons) or "no")
        lines.append([system, *cells])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Resolve everything, and write the table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("", *(name for name in project["optional-dependencies"] if name not in LEFT_OUT))
    asked = list(product(SYSTEMS, PYTHONS))
    with ThreadPoolExecutor(8) as threads:
        there = dict(zip(asked, threads.map(lambda each: available(*each, extras), asked), strict=True))
    page = PAGE.read_text(encoding="utf-8")
    block = f"{BEGIN}\n{table(extras, there)}\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: block, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
