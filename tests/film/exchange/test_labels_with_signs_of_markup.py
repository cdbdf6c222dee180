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
    """AB gives spans of a film labels of a codebook with the level "<low>" and concepts "<i>" and "{on top}".

    A player of subtitles would obey `<i>` as markup: WebVTT has escapes for such signs, and SubRip, which has
    none, gets `‹i›`. Read again, the labels are as they were.
    """
    book = codebook_of_text(SIGNS)
    film = fake_scored_film(n_rows=60, duration_s=600.0)
    with_signs = Decided(
        start_s=5.0, end_s=15.0, judges=("AB",), level="<low>", concepts=("<i>", "{on top}"), is_blind=True
    )
    without_signs = Decided(
        start_s=25.0, end_s=35.0, judges=("AB",), level="high", concepts=("Look",), is_blind=True
    )

    subtitles = export(film, kind, people=[with_signs, without_signs], tiers=("people",))
    path = tmp_path / f"decided.{kind}"
    path.write_text(subtitles, encoding="utf-8")
    clips = import_spans([path], tmp_path, codebook=book, movie=film.movie).manifest

    assert "<i>" not in subtitles
    first, second = [clip for clip in clips if clip.level]
    assert first.level == "<low>"
    assert first.concepts == ("<i>", "{on top}")
    assert second.level == "high"
    assert second.concepts == ("Look",)


def test_a_label_spelled_exactly_as_in_subtitles_is_not_taken_for_another():
    """A codebook has the concepts "<i>" and "‹i›", and SubRip writes ‹ and › for < and >.

    What is read is the label of that very spelling.
    """
    book = codebook_of_text('name = "both"\nversion = "1"\nlevels = ["a"]\nconcepts = ["<i>", "‹i›"]\n')
    assert [book.concept_spelled(text) for text in ("<i>", "‹i›")] == ["<i>", "‹i›"]


def test_a_spelling_in_subtitles_that_stands_for_two_labels_is_read_as_neither():
    """SubRip is written with ‹ for <, and with ) for }: both "<i}" and "<i)" become "‹i)" there.

    The codebook has both, so that nobody can tell which was meant: the spelling is refused.
    """
    book = codebook_of_text('name = "two"\nversion = "1"\nlevels = ["a"]\nconcepts = ["<i}", "<i)"]\n')
    with pytest.raises(ManifestError, match="unknown concept"):
        book.concept_spelled("‹i)")
