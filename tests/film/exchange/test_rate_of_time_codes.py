"""Time codes mean seconds at a rate: an export whose rate nobody stated says which one it took."""

import pytest

from tests.command import obygaze

NOTE = "time codes of 24 frames a second; give --fps"
"""What an export says that took 24 frames a second, as no rate was stated."""


@pytest.mark.parametrize("kind", ["markers", "edl"])
def test_an_export_with_time_codes_notes_the_rate_that_it_took_if_none_was_stated(
    scored, tmp_path, capsys, kind
):
    """A film is exported as markers or an edit list, without `--fps`: time codes count 24 frames a second.

    A note says so. An editor reads the codes at the rate of its own timeline: if that is 23.976, an hour of
    them is 3.6 s longer, and all places are wrong.
    """
    folder, _ = scored

    assert obygaze("film", "export", folder, "--as", kind, "--out", tmp_path / "film") == 0

    assert f"{kind}: {NOTE}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("markers", "--fps", "25"), ("edl", "--fps", "24"), ("eaf",)], ids=["25", "24", "no frames"]
)
def test_a_stated_rate_and_formats_without_frames_need_no_note(scored, tmp_path, capsys, words):
    """The rate is stated by `--fps`; ELAN's file, eaf, has milliseconds and no frames."""
    folder, _ = scored

    assert obygaze("film", "export", folder, "--as", *words, "--out", tmp_path / "film") == 0

    assert NOTE not in capsys.readouterr().err
