"""Every relative link of the documents leads to a file, and to a heading if it names one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "benchmarks/*.md",
        "tests/*.md",
        "manifests/*.md",
        "stores/README.md",
    )
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")


def anchors(page):
    """Name the headings of a page as hosts of repositories do."""
    lines = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL).splitlines()
    headings = [line.lstrip("#").strip().lower() for line in lines if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name}: {target}#{anchor}"


def test_the_readme_leads_to_every_page_of_the_docs():
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        reached.add(page)
        for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
            there = (page.parent / target).resolve()
            if there.suffix == ".md" and there not in reached:
                todo.append(there)
    assert set((ROOT / "docs").rglob("*.md")) <= reached
