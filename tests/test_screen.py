"""Progress is a bar on a terminal, and lines in a log."""

from types import SimpleNamespace

from obygaze_features import screen
from obygaze_features.screen import progress_bar


def test_on_a_terminal_progress_is_a_bar_that_goes_away(capsys, monkeypatch):
    monkeypatch.setattr(screen.sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar("verify", "file") as show:
        show(1, 2)
        show(2, 2)
    assert "verify" in capsys.readouterr().err


def test_no_time_is_promised_before_a_tenth_is_done_and_other_work_has_a_pace_of_its_own(capsys, monkeypatch):
    clock = iter([0.0, 60.0, 120.0, 600.0, 660.0])
    monkeypatch.setattr(screen, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with progress_bar("training", "model") as show:
        show(1, 100, "table2")
        show(10, 100, "table2")
        show(1, 10, "table4")
        show(6, 10, "table4")
    lines = capsys.readouterr().err.splitlines()
    assert "left" not in lines[0]
    assert all(name in line for name, line in zip(("table2", "table2", "table4"), lines, strict=False))
    assert "about 18 min left" in lines[1]
    assert "about 1 min left" in lines[-1]
