"""Progress is a bar on a terminal, and lines in a log."""

import inspect
import sys
from types import SimpleNamespace

import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features import screen
from obygaze_features.screen import progress_bar
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models import linear_probe
from tests.conftest import planted
from tests.process import python


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


class Kernel:
    """IPython's, as a notebook has it."""

    config = ("IPKernelApp",)


@pytest.fixture
def shows_a_bar(capsys):
    """Whether evaluating a model shows a progress bar."""

    def shows_a_bar(**options):
        evaluate(planted(direction=2.0), {"linear": linear_probe()}, task="hn_s", **options)
        return "training" in "".join(capsys.readouterr())

    return shows_a_bar


def test_library_calls_show_no_bar_in_a_script(shows_a_bar):
    assert not shows_a_bar()


@pytest.mark.long
def test_library_calls_show_a_bar_in_a_notebook_unless_asked_to_be_quiet(shows_a_bar, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=Kernel))
    assert shows_a_bar()
    assert not shows_a_bar(progress=False)
    assert not shows_a_bar(progress=lambda _done, _total: None)


@pytest.mark.long
def test_library_calls_show_a_bar_in_a_terminal_on_request(shows_a_bar, monkeypatch):
    monkeypatch.setattr(screen.sys.stderr, "isatty", lambda: True, raising=False)
    assert not shows_a_bar()
    assert shows_a_bar(progress=True)


def test_progress_is_told_step_by_step_to_a_function(shows_a_bar):
    steps = []
    assert not shows_a_bar(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (len(steps), len(steps))


def test_every_long_call_takes_progress():
    long = (
        of.extract,
        of.merge,
        of.pack,
        of.pull,
        of.push,
        of.verify,
        om.evaluate,
        om.load_dataset,
        om.predict,
    )
    for call in long:
        parameter = inspect.signature(call).parameters["progress"]
        assert parameter.default is None
        assert "bool" in str(parameter.annotation)


def test_a_notebook_without_widgets_shows_its_bar_and_no_warning_of_a_library():
    script = """
import sys
from types import SimpleNamespace
shell = SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
sys.modules["ipykernel.zmqshell"] = sys
sys.modules["ipywidgets"] = None
from obygaze_features.screen import progress_bar
with progress_bar("training", "model") as show:
    show(1, 2)
"""
    said = python("-W", "default", "-c", script).stderr
    assert "training" in said
    assert "Warning" not in said
