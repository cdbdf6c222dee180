"""Time codes mean seconds at a rate: an export whose rate nobody stated says which one it took."""

import pytest

from tests.command import obygaze

NOTE = "time codes of 24 frames a second; give --fps"


@pytest.mark.parametrize("kind", ["markers", "edl"])
def test_time_codes_of_a_rate_that_nobody_stated_are_said_to_have_it(scored, tmp_path, capsys, kind):
    """An editor reads the codes at its timeline's rate: at 23.976, an hour of them is 3.6 s longer."""
    folder, _ = scored

    assert obygaze("film", "export", folder, "--as", kind, "--out", tmp_path / "film") == 0

    assert f"{kind}: {NOTE}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("markers", "--fps", "25"), ("edl", "--fps", "24"), ("eaf",)], ids=["25", "24", "no frames"]
)
def test_a_stated_rate_and_formats_without_frames_need_no_note(scored, tmp_path, capsys, words):
    """ELAN has milliseconds."""
    folder, _ = scored

    assert obygaze("film", "export", folder, "--as", *words, "--out", tmp_path / "film") == 0

    assert NOTE not in capsys.readouterr().err
