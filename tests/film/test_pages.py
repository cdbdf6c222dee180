"""The page for programmers runs, and prints what it says; the page for people names people's agreement."""

import doctest
from pathlib import Path

from obygaze_film.score import MOBYGAZE

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_for_programmers_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "examples"))
    from toy_films import write_toy_films

    monkeypatch.chdir(tmp_path)
    write_toy_films(Path())
    write_toy_films(Path(), "more", first=6)
    found = doctest.testfile(str(DOCS / "film-programmers.md"), module_relative=False, encoding="utf-8")
    assert found.attempted > 10
    assert found.failed == 0


def test_the_page_for_people_has_the_agreement_that_was_measured():
    text = (DOCS / "film.md").read_text(encoding="utf-8")
    for name in ("kappa", "second_f1", "segment_f1", "boundary_f1", "rank_correlation"):
        assert f"{getattr(MOBYGAZE, name):.2f}" in text
