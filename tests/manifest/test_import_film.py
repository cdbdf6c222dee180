"""Films become windows of one length that cover them; what is odd about a film is said."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from obygaze.cli import table_of_contents
from obygaze_features.manifest import Film, ManifestError, import_film, read_manifest
from obygaze_features.manifest.importers import automatic_hop

ROOT = Path("/corpus")


def spans(end_s: float, window_s: float, hop_s: float | None = None) -> list[tuple[float, float]]:
    clips = import_film([Film(ROOT / "a.mkv", end_s)], ROOT, window_s, hop_s).manifest.clips
    return [(clip.start_s, clip.end_s) for clip in clips]


def test_windows_follow_each_other_and_the_last_ends_with_the_film():
    assert spans(30.0, 10.0, 5.0) == [(0, 10), (5, 15), (10, 20), (15, 25), (20, 30)]
    assert spans(32.5, 10.0, 10.0) == [(0, 10), (10, 20), (20, 30), (22.5, 32.5)]
    assert spans(7.0, 10.0, 5.0) == [(0, 7)]
    assert spans(10.0, 10.0, 5.0) == [(0, 10)]


def test_an_automatic_hop_is_a_quarter_of_the_window_but_at_least_five_seconds():
    assert [automatic_hop(window) for window in (46.0, 20.0, 8.0, 2.0)] == [11.5, 5.0, 5.0, 2.0]
    assert spans(60.0, 40.0) == [(0, 40), (10, 50), (20, 60)]


@settings(deadline=None)
@given(st.floats(0.5, 300), st.floats(0.5, 60), st.floats(0.05, 1))
def test_windows_have_one_length_and_leave_nothing_out(end_s, window_s, share):
    found = np.array(spans(end_s, window_s, window_s * share))
    assert found[0, 0] == 0
    assert found[-1, 1] == pytest.approx(end_s, abs=0.001)
    assert (found[1:, 0] <= found[:-1, 1]).all()
    np.testing.assert_allclose(found[:, 1] - found[:, 0], min(window_s, end_s), atol=0.0021)
    assert len(set(map(tuple, found))) == len(found)


def test_clips_are_named_by_film_and_number_and_point_to_the_file():
    films = [Film(ROOT / "films" / "a.mkv", 12.0), Film(ROOT / "b.mp4", 4.0, "the file is cut off: 3 of 9")]
    imported = import_film(films, ROOT, 6.0, 6.0)
    assert [(clip.clip_id, clip.movie, clip.video) for clip in imported.manifest] == [
        ("a-0001", "a", "films/a.mkv"),
        ("a-0002", "a", "films/a.mkv"),
        ("b-0001", "b", "b.mp4"),
    ]
    assert imported.notices == (
        "b.mp4 is shorter (4.0 s) than a window: it is one clip",
        "b.mp4: the file is cut off: 3 of 9",
        "2 films: windows of 6 s every 6 s, the last one of a film moved back to end with it",
    )
    assert "left out 4 s between windows" in import_film(films, ROOT, 2.0, 6.0).notices[-1]


def test_films_of_one_name_and_lengths_that_are_none_are_refused():
    with pytest.raises(ManifestError, match="both would be movie 'a'"):
        import_film([Film(ROOT / "a.mkv", 9.0), Film(ROOT / "a.mp4", 9.0)], ROOT, 3.0)
    with pytest.raises(ManifestError, match="window 0: expected a number of seconds"):
        import_film([Film(ROOT / "a.mkv", 9.0)], ROOT, 0.0)
    with pytest.raises(ManifestError, match="hop nan: expected"):
        import_film([Film(ROOT / "a.mkv", 9.0)], ROOT, 3.0, float("nan"))
    with pytest.raises(ManifestError, match="does not say when its pictures are shown"):
        import_film([Film(ROOT / "a.h264", float("nan"))], ROOT, 3.0)


def test_the_command_reads_the_length_of_real_films(shared_data, tmp_path):
    out, film = tmp_path / "windows.csv", shared_data / "videos" / "arm_wrestling.mp4"
    words = ["manifest", "import", "film", str(film), "--window", "4", "--hop", "auto", "--out", str(out)]
    result = CliRunner().invoke(table_of_contents(), words)
    assert result.exit_code == 0, result.output
    clips = read_manifest(out).clips
    assert [(clip.start_s, clip.end_s) for clip in clips[:2]] == [(0.0, 4.0), (4.0, 8.0)]
    assert clips[-1].end_s == pytest.approx(10.0, abs=0.1)
    assert "windows of 4 s every 4 s" in result.output
