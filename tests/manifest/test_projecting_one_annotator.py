"""`project --merge NAME` labels all clips by one annotator, also of films that they did not annotate."""

import pytest

from obygaze_features.manifest import read_manifest
from tests.command import obygaze

HEADER = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
CLIPS = HEADER + "one,f,,0,10,,,\ntwo,f,,10,20,,,\nthree,g,,0,10,,,\n"
SEGMENTS = HEADER + "a,f,,0,10,S,Body,AB\nb,f,,0,20,HN,,CD\nc,g,,0,10,HN,,CD\n"
"""AB annotated the film f alone, CD f and g."""


@pytest.fixture
def run_projection(tmp_path, monkeypatch, capsys):
    """Return a function that projects the segments of AB and CD by `--merge` onto the clips, to out.csv.

    It returns the exit code and what is printed.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clips.csv").write_text(CLIPS)
    (tmp_path / "segments.csv").write_text(SEGMENTS)

    def run_projection(merge):
        words = ["segments.csv", "--onto", "clips.csv", "--merge", merge, "--out", "out.csv"]
        code = obygaze("manifest", "project", *words)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run_projection


def test_a_film_that_the_annotator_did_not_annotate_keeps_its_clips_without_a_level(run_projection):
    """The clips one and two are of film f, in which AB said S of the first, and three is of film g.

    AB did not annotate g, though CD did: its clip gets no level, as AB's labels alone are asked for.
    """
    code, printed = run_projection(merge="AB")

    assert code == 0
    rows = [(clip.clip_id, clip.level, clip.annotator) for clip in read_manifest("out.csv")]
    assert rows == [("one", "S", "AB"), ("two", "EN", "AB"), ("three", None, "")]
    assert "AB did not annotate g: no level for their clips" in printed
    assert "marked nothing there" not in printed  # who marks S alone answers for what is not marked


def test_clips_where_nothing_is_marked_by_who_marks_the_lowest_level_too_are_named(run_projection, tmp_path):
    """AB marks S and EN in film f, up to 10 s: the second clip, from there on, has no answer of AB."""
    rows = "a,f,,0,5,S,,AB\nb,f,,5,10,EN,,AB\n"
    (tmp_path / "segments.csv").write_text(HEADER + rows)

    _code, printed = run_projection(merge="AB")

    assert "no level for 1 clip (two)" in printed
    assert "marked nothing there" in printed


def test_an_unknown_annotator_is_told_the_nearest_name(run_projection):
    """The annotators are AB and CD."""
    code, printed = run_projection(merge="ab")

    assert code == 1
    assert "no annotator 'ab' (did you mean 'AB'?)" in printed
