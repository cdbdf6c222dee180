"""Job arrays: which share is whose, and the job scripts of docs/slurm.md."""

import signal

import pytest

from obygaze_features.errors import ExtractError
from obygaze_features.extraction import array_shard, stop_on_signals
from tests.process import execute

from .clusters import FINISHES, SCRIPTS, STOPS, STOPS_LATER, Site


def array(task: int, first: int, last: int, count: int, step: int = 1) -> dict[str, str]:
    values = {"ID": task, "MIN": first, "MAX": last, "COUNT": count, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [({}, None), ({"SLURM_JOB_ID": "7"}, None), (array(3, 0, 7, 8), (3, 8)), (array(0, 0, 0, 1), (0, 1))],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    assert array_shard(variables) == shard


@pytest.mark.parametrize(
    "variables",
    [array(3, 3, 3, 1), array(5, 3, 5, 2), array(4, 3, 4, 2), array(8, 1, 8, 8), array(4, 0, 6, 4, step=2)],
    ids=["--array=3", "--array=3,5", "--array=3,4", "--array=1-8", "--array=0-6:2"],
)
def test_some_tasks_of_an_array_cannot_tell_their_share(variables):
    with pytest.raises(ExtractError, match="--shard"):
        array_shard(variables)


def test_a_scheduler_may_ask_twice_but_a_second_ctrl_c_is_meant(monkeypatch):
    # A shell's background jobs, of which the tests may be one, begin with Ctrl-C ignored.
    real = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    pretended = real | {signal.SIGINT: signal.default_int_handler}
    monkeypatch.setattr(signal, "getsignal", lambda number: pretended[number])
    with stop_on_signals() as stop:
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert (stop(), stop.exit_code) == (True, 143)
        signal.raise_signal(signal.SIGINT)
        assert stop.exit_code == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, real[signal.SIGINT])


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sbatch")), ids=lambda path: path.name)
def test_the_scripts_are_shell(script):
    done = execute("bash", "-n", script, code=None)
    assert (done.returncode, done.stderr) == (0, "")
    assert script.name in (SCRIPTS.parent / "slurm.md").read_text(encoding="utf-8")


ARRAY = ("array.sbatch", "films.csv", "my store")


@pytest.mark.parametrize(
    ("command", "signals", "code", "asked"),
    [
        ("exit 0", [], 0, ""),
        ("exit 3", [], 0, ""),
        ("exit 2", [], 2, ""),
        ("exit 1", [], 1, "requeue 9_2"),
        ("kill -9 $$", [], 137, "requeue 9_2"),
        (STOPS, [signal.SIGUSR1], 143, "requeue 9_2"),
        (FINISHES, [signal.SIGUSR1], 0, ""),
        (STOPS, [signal.SIGTERM], 143, ""),
        (STOPS_LATER, [signal.SIGUSR1, signal.SIGTERM], 143, "requeue 9_2"),
    ],
)
def test_the_array_script_asks_for_another_turn_unless_it_was_cancelled(
    tmp_path, command, signals, code, asked
):
    site = Site(tmp_path, command)
    assert site.run(*ARRAY, signals=signals)[0] == code
    assert site.asked == asked
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == "extract films.csv my store --shard 2/8\n"


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        *[("4:00", True), ("9:59", True), ("10:00", False), ("1:00:00", False), ("2-00:00:00", False)],
        *[("UNLIMITED", False), ("", False)],
    ],
)
def test_a_time_limit_that_is_too_short_is_refused(tmp_path, limit, refused):
    code, said = Site(tmp_path, limit=limit).run(*ARRAY)
    assert code == (2 if refused else 0)
    assert ("is too short" in said) == refused
