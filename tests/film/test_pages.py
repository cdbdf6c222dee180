"""The page for people names people's agreement."""

from pathlib import Path

from obygaze_film.score import MOBYGAZE

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_for_people_has_the_agreement_that_was_measured():
    text = (DOCS / "film.md").read_text(encoding="utf-8")
    for name in ("kappa", "second_f1", "segment_f1", "boundary_f1", "rank_correlation"):
        assert f"{getattr(MOBYGAZE, name):.2f}" in text
