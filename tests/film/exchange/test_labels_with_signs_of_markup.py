"""A label whose signs players take for markup comes back from SRT, which shows it with other signs."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import codebook_of_text, import_spans
from obygaze_film.exchange import Decided, export
from tests.film.page.invented import fake_scored_film

SIGNS = """\
name = "signs"
version = "1"
levels = ["<low>", "high"]
concepts = ["<i>", "{on top}", "Look"]
"""


@pytest.mark.parametrize("kind", ["srt", "vtt"])
def test_levels_and_concepts_in_angles_and_braces_come_back(tmp_path, kind):
    """SubRip has no escapes: a player would obey `<i>`, so that `‹i›` is written; WebVTT has some."""
    book = codebook_of_text(SIGNS)
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    decided = [
        Decided(
            start_s=5.0,
            end_s=15.0,
            judges=("AB",),
            level="<low>",
            concepts=("<i>", "{on top}"),
            is_blind=True,
        ),
        Decided(start_s=25.0, end_s=35.0, judges=("AB",), level="high", concepts=("Look",), is_blind=True),
    ]

    text = export(film, kind, people=decided, tiers=("people",))
    path = tmp_path / f"decided.{kind}"
    path.write_text(text, encoding="utf-8")
    clips = import_spans([path], tmp_path, codebook=book, movie=film.movie).manifest

    assert "<i>" not in text
    assert [(clip.level, clip.concepts) for clip in clips if clip.level] == [
        ("<low>", ("<i>", "{on top}")),
        ("high", ("Look",)),
    ]


def test_a_label_that_is_spelled_so_is_itself():
    """A codebook may have both: what is written is then the label of that very spelling."""
    book = codebook_of_text('name = "both"\nversion = "1"\nlevels = ["a"]\nconcepts = ["<i>", "‹i›"]\n')
    assert [book.concept_spelled(text) for text in ("<i>", "‹i›")] == ["<i>", "‹i›"]


def test_a_spelling_that_two_labels_would_have_is_neithers():
    book = codebook_of_text('name = "two"\nversion = "1"\nlevels = ["a"]\nconcepts = ["<i}", "<i)"]\n')
    with pytest.raises(ManifestError, match="unknown concept"):
        book.concept_spelled("‹i)")
