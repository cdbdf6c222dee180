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
    """Return the anchors of a page's headings, as GitHub makes them: "Label policies" -> "label-policies"."""
    lines = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL).splitlines()
    headings = [line.lstrip("#").strip().lower() for line in lines if re.match(r"#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_to_a_file_and_a_heading(page):
    """A link is `target#anchor`; without a target it leads to a heading of the page itself.

    LINK finds the links that do not lead to the web.
    """
    links = LINK.findall(page.read_text(encoding="utf-8"))
    for target, anchor in links:
        linked_file = (page.parent / target).resolve() if target else page
        assert linked_file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(linked_file), f"{page.name}: {target}#{anchor}"


def test_following_links_from_the_readme_one_reaches_every_page_of_docs():
    """Who reads README.md and every page that a page links to finds all pages of docs/."""
    reached = set()
    pages_to_read = [ROOT / "README.md"]
    while pages_to_read:
        page = pages_to_read.pop()
        reached.add(page)
        links = LINK.findall(page.read_text(encoding="utf-8"))
        for target, _anchor in links:
            linked_file = (page.parent / target).resolve()
            if linked_file.suffix == ".md" and linked_file not in reached:
                pages_to_read.append(linked_file)

    pages_of_docs = set((ROOT / "docs").rglob("*.md"))
    assert pages_of_docs - reached == set()
