"""Progress is a bar on a terminal, and lines in a log."""

import inspect
import sys
from types import SimpleNamespace

import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze.safe_output import safe_streams
from obygaze_features import screen
from obygaze_features.screen import progress_bar
from obygaze_features.store import verify
from obygaze_film.claims import Words
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models import linear_probe
from tests.command import obygaze
from tests.conftest import planted
from tests.process import python
from tests.store.toy_stores import make_sealed_store


def test_a_probability_is_rounded_as_in_the_sentences_on_films():
    """Halves go up, of the digits that are written: 0.285 is 0.29, although its float lies a little below."""
    words = Words("en")
    thousandths = [n / 1000 for n in range(1001)]
    assert screen.probability(0.285) == "0.29"
    assert screen.probability(0.004) == "below 0.01"
    assert [screen.probability(p) for p in thousandths] == [words.probability(p) for p in thousandths]


def pretend_that_stderr_is_a_terminal(monkeypatch):
    monkeypatch.setattr(screen.sys.stderr, "isatty", lambda: True, raising=False)


def test_on_a_terminal_progress_is_a_bar_with_the_name_of_the_work(capsys, monkeypatch):
    """Two files are verified: `show` says how many are done, of how many."""
    pretend_that_stderr_is_a_terminal(monkeypatch)

    with progress_bar("verify", "file") as show:
        show(1, 2)
        show(2, 2)

    assert "verify" in capsys.readouterr().err


def test_the_bar_of_a_command_moves_the_cursor_although_its_output_makes_control_characters_visible(
    capsys, monkeypatch
):
    """A bar is drawn anew from the beginning of its line, to which a carriage return goes back."""
    pretend_that_stderr_is_a_terminal(monkeypatch)

    with safe_streams([]), progress_bar("verify", "file") as show:
        show(1, 2)

    written = capsys.readouterr().err
    assert written.startswith("\rverify")
    carriage_return_made_visible = "u000d"
    assert carriage_return_made_visible not in written


@pytest.fixture
def set_clock(monkeypatch):
    """A function that sets the time, in seconds, by which a log tells the progress; it begins at 0."""
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(screen, "time", SimpleNamespace(monotonic=lambda: clock.seconds))

    def set_clock(seconds):
        clock.seconds = seconds

    return set_clock


def test_a_log_says_how_long_work_will_take_once_a_tenth_is_done(capsys, set_clock):
    """Ten of 100 models took 2 minutes: the other 90 will take 18."""
    with progress_bar("training", "model") as show:
        set_clock(60.0)
        show(1, 100, "table2")
        set_clock(120.0)
        show(10, 100, "table2")

    after_1, after_10 = capsys.readouterr().err.splitlines()
    assert "table2" in after_1
    assert "left" not in after_1
    assert "table2" in after_10
    assert "about 18 min left" in after_10


def test_in_a_log_each_work_has_a_pace_of_its_own(capsys, set_clock):
    """Two works are shown one after the other; the first, "table2", has taken long.

    Of the second, "table4", one of ten models was done at 600 s, and five more in the minute after. So the
    other four will take 4/5 of a minute.
    """
    with progress_bar("training", "model") as show:
        set_clock(120.0)
        show(10, 100, "table2")

        set_clock(600.0)
        show(1, 10, "table4")
        set_clock(660.0)
        show(6, 10, "table4")

    *_, last_line = capsys.readouterr().err.splitlines()
    assert "table4" in last_line
    assert "about 1 min left" in last_line


class NotebookKernel:
    """IPython's, as a notebook has it."""

    config = ("IPKernelApp",)


@pytest.fixture
def shows_a_bar(capsys):
    """Whether evaluating a model shows a progress bar."""

    def shows_a_bar(**options):
        evaluate(planted(direction=2.0), {"linear": linear_probe()}, task="hn_s", **options)
        return "training" in "".join(capsys.readouterr())

    return shows_a_bar


def test_evaluating_shows_no_bar_in_a_script(shows_a_bar):
    """The tests run in no notebook, and their output is no terminal: so it is with a script in a log."""
    assert not shows_a_bar()


def test_verifying_shows_a_bar_in_a_terminal_by_the_command_but_not_by_the_function(
    tmp_path, capsys, monkeypatch
):
    """Who verifies a large store by the command waits for hours at a terminal."""
    pretend_that_stderr_is_a_terminal(monkeypatch)
    path = make_sealed_store(tmp_path, 3)

    assert verify(path).ok
    assert "verify" not in capsys.readouterr().err
    assert obygaze("store", "verify", path) == 0
    assert "verify" in capsys.readouterr().err


@pytest.mark.long
def test_evaluating_shows_a_bar_in_a_notebook_unless_asked_to_be_quiet(shows_a_bar, monkeypatch):
    """IPython says that a notebook's kernel runs. A function of one's own takes the place of the bar."""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=NotebookKernel))

    assert shows_a_bar()
    assert not shows_a_bar(progress=False)
    assert not shows_a_bar(progress=lambda _done, _total: None)


@pytest.mark.long
def test_evaluating_shows_a_bar_in_a_terminal_on_request(shows_a_bar, monkeypatch):
    """The request is `evaluate(..., progress=True)`."""
    pretend_that_stderr_is_a_terminal(monkeypatch)

    assert not shows_a_bar()
    assert shows_a_bar(progress=True)


def test_a_function_that_takes_the_progress_is_called_after_each_step_and_no_bar_is_shown(shows_a_bar):
    """A model is evaluated, with a function as `progress`, which gets the numbers of steps done and of all.

    It is called once a step: the last time, as many are done as there were calls, and these are all.
    """
    steps = []

    def note(n_done, n_total):
        steps.append((n_done, n_total))

    is_bar_shown = shows_a_bar(progress=note)

    assert not is_bar_shown
    n_calls = len(steps)
    assert steps[-1] == (n_calls, n_calls)


def test_every_function_that_may_take_long_has_the_parameter_progress():
    """It is None by default, and may be true, false or a function."""
    functions_that_may_take_long = (
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
    for function in functions_that_may_take_long:
        parameter = inspect.signature(function).parameters["progress"]
        assert parameter.default is None
        assert "bool" in str(parameter.annotation)


def test_a_notebook_without_widgets_shows_a_bar_and_no_warning_of_a_library():
    """In JupyterLab without the package ipywidgets, tqdm would print a warning for each bar.

    A new Python process believes that it is such a notebook: the modules that tqdm looks for are pretended.
    With `-W default` it prints all warnings. Only the bar, called "training", may be printed.
    """
    script = """
import sys
from types import SimpleNamespace
shell_of_notebook = SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell_of_notebook)
sys.modules["ipykernel.zmqshell"] = sys  # any module: tqdm only asks whether this name is there
sys.modules["ipywidgets"] = None  # cannot be imported
from obygaze_features.screen import progress_bar
with progress_bar("training", "model") as show:
    show(1, 2)
"""
    stderr = python("-W", "default", "-c", script).stderr

    assert "training" in stderr
    assert "Warning" not in stderr
