"""Job arrays: which share is whose, and the job scripts."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import Site, array_shard, stop_on_signals, write_job_scripts
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.process import execute

from .clusters import EXITS_0_ON_TERM, EXITS_143_ON_SECOND_TERM, EXITS_143_ON_TERM, SCRIPTS, FakeSlurm


def task_of_array(task: int, first: int, last: int, count: int, step: int = 1) -> dict[str, str]:
    """Make the variables that Slurm gives a task of an array of `count` tasks from first to last."""
    values = {"ID": task, "MIN": first, "MAX": last, "COUNT": count, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, None),
        (task_of_array(task=3, first=0, last=7, count=8), (3, 8)),
        (task_of_array(task=0, first=0, last=0, count=1), (0, 1)),
    ],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    """Slurm tells a job by variables which task of an array it is.

    Task 3 of the tasks 0 to 7 does share 3 of 8; outside an array there are no shares.
    """
    assert array_shard(variables) == shard


def test_the_refusal_of_an_array_of_one_task_says_1_task_and_not_1_tasks():
    """The first array of a store was submitted with `--array=3`: it has one task, of the number 3.

    The first array says how many shares there are, so its tasks must be numbered from 0. This one is refused.
    """
    with pytest.raises(ExtractError, match="task 3 of a job array with 1 task from 3 to 3 cannot tell"):
        array_shard(task_of_array(task=3, first=3, last=3, count=1))


@pytest.mark.parametrize(
    "variables",
    [
        task_of_array(task=3, first=3, last=3, count=1),
        task_of_array(task=5, first=3, last=5, count=2),
        task_of_array(task=4, first=3, last=4, count=2),
        task_of_array(task=8, first=1, last=8, count=8),
        task_of_array(task=4, first=0, last=6, count=4, step=2),
    ],
    ids=["--array=3", "--array=3,5", "--array=3,4", "--array=1-8", "--array=0-6:2"],
)
def test_tasks_of_an_incomplete_array_cannot_tell_their_share(variables):
    """Only an array that counts from 0 without gaps says how many shares there are."""
    with pytest.raises(ExtractError, match="cannot tell its share"):
        array_shard(variables)


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        (task_of_array(task=3, first=3, last=3, count=1), (3, 8)),
        (task_of_array(task=5, first=3, last=5, count=2), (5, 8)),
        (task_of_array(task=2, first=0, last=7, count=8), (2, 8)),
    ],
    ids=["--array=3", "--array=3,5", "--array=0-7 again"],
)
def test_a_later_array_keeps_the_number_of_shares(variables, shard):
    """The first array had 8 tasks; later ones do some of these 8 shares again.

    A share is its number and how many there are: task 3 of a later array does share 3 of 8.
    """
    n_shares_of_stage = 8

    assert array_shard(variables, n_shares_of_stage) == shard


@pytest.mark.parametrize(
    "variables",
    [task_of_array(task=2, first=0, last=15, count=16), task_of_array(task=8, first=8, last=8, count=1)],
    ids=["--array=0-15", "--array=8"],
)
def test_a_later_array_of_more_tasks_than_shares_is_refused_by_every_task(variables):
    """The first array had 8 tasks, so that the stage is in 8 shares, with numbers from 0 to 7.

    Tasks with a number below 8 refuse too, so that nobody takes the later array for a division by 16.
    """
    n_shares_of_stage = 8

    with pytest.raises(ExtractError, match="8 shares"):
        array_shard(variables, n_shares_of_stage)


@pytest.fixture
def interrupted_by_ctrl_c(monkeypatch):
    """Let Python believe that Ctrl-C interrupts it.

    Where tests run in the background of a shell, Python finds that SIGINT is ignored, and so does the code
    that they try.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    reported_handlers = handlers | {signal.SIGINT: signal.default_int_handler}
    monkeypatch.setattr(signal, "getsignal", lambda number: reported_handlers[number])
    yield
    # The code under test has put back the handler that was reported: now put back the real one.
    signal.signal(signal.SIGINT, handlers[signal.SIGINT])


@pytest.mark.usefixtures("interrupted_by_ctrl_c")
def test_repeated_signals_stop_no_sooner_and_the_exit_code_is_that_of_the_first():
    """Schedulers may repeat SIGTERM, here three times; then comes Ctrl-C (SIGINT).

    The exit code is 128 and the number of the first signal.
    """
    with stop_on_signals() as stop:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)

        is_stop_wished = stop()
        assert is_stop_wished
        assert stop.exit_code == 128 + signal.SIGTERM


@pytest.mark.usefixtures("interrupted_by_ctrl_c")
def test_a_second_ctrl_c_interrupts_at_once():
    """The first one lets the clips in hand be finished."""
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        is_stop_wished = stop()
        assert is_stop_wished

        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda path: path.name)
def test_job_scripts_have_no_error_of_syntax(script):
    """With -n, Bash reads a script and runs nothing."""
    result = execute("bash", "-n", script, code=None)

    assert result.returncode == 0
    assert result.stderr == ""


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda path: path.name)
def test_job_scripts_are_explained_on_the_page_on_slurm(script):
    """The page docs/slurm.md names each script that comes with the package, such as array.sbatch."""
    page = Path(__file__).parents[2] / "docs" / "slurm.md"

    assert script.name in page.read_text(encoding="utf-8")


ARRAY_SCRIPT = ("array.sbatch", "films.csv", "my store")
"""The script of a task that extracts, and what is typed behind it."""


TIME_IS_UP = signal.SIGUSR1
"""Slurm sends this signal some minutes before a task's time is up."""
CANCELLED = signal.SIGTERM


def run_task_2_of_array_9(folder, command, signals, exit_code):
    """Run the script of an array with a command in place of `obygaze`; return what it asks of Slurm.

    The command gets what was typed behind the script, and the log's last line says how it ended.
    """
    slurm = FakeSlurm(folder, command)
    code_of_script, output = slurm.run("array.sbatch", "films.csv", "my store", signals=signals)
    arguments_of_obygaze = (folder / "arguments").read_text(encoding="utf-8")
    assert arguments_of_obygaze == "extract films.csv my store\n"
    assert code_of_script == exit_code
    assert output.splitlines()[-1].endswith(f"share 2 ended with {exit_code}")
    return slurm.asked_of_slurm


@pytest.mark.parametrize(
    ("command", "signals", "exit_code"),
    [
        pytest.param("exit 0", [], 0, id="done"),
        pytest.param("exit 3", [], 0, id="done but for clips that failed"),
        pytest.param("exit 2", [], 2, id="a mistake in what is typed"),
        pytest.param(EXITS_0_ON_TERM, [TIME_IS_UP], 0, id="its time is up as it ends"),
        pytest.param(EXITS_143_ON_TERM, [CANCELLED], 143, id="cancelled"),
    ],
)
def test_a_task_that_is_done_or_cancelled_is_not_queued_again(tmp_path, command, signals, exit_code):
    """A task of Slurm runs `obygaze extract`, here replaced by a command that ends as the case says.

    The exit codes 2 (a typing error) and 3 (clips failed) would be the same in another turn, so that nothing
    is asked of Slurm; of these, 3 counts as done.
    """
    request_to_slurm = run_task_2_of_array_9(tmp_path, command, signals, exit_code)

    assert request_to_slurm == ""


@pytest.mark.parametrize(
    ("command", "signals", "exit_code"),
    [
        pytest.param("exit 1", [], 1, id="an error"),
        pytest.param("kill -9 $$", [], 128 + signal.SIGKILL, id="killed"),
        pytest.param(EXITS_143_ON_TERM, [TIME_IS_UP], 143, id="its time is up"),
        pytest.param(
            EXITS_143_ON_SECOND_TERM, [TIME_IS_UP, CANCELLED], 143, id="its time is up, and is up again"
        ),
    ],
)
def test_a_task_that_failed_or_whose_time_is_up_is_queued_again(tmp_path, command, signals, exit_code):
    """A task of Slurm runs `obygaze extract`, here replaced by a command that ends as the case says.

    Another turn may do the clips that are left, so the task asks to be queued again. Slurm warns a task some
    minutes before its time is up, and then sends it the signal that it also sends to cancel one: TERM, by
    which a command ends with 128 + 15. After a warning it means that the time is up.
    """
    request_to_slurm = run_task_2_of_array_9(tmp_path, command, signals, exit_code)

    assert request_to_slurm == "requeue 9_2"


WRONG_SITES = {
    "licence": {"licence": "mine"},
    "account of two words": {"sbatch": {"account": "a b"}},
    "a line break": {"sbatch": {"partition": "gpu\n#SBATCH --wrap=x"}},
    "option of two words": {"sbatch": {"a b": "c"}},
    "array, which is ours": {"sbatch": {"array": "1-4"}},
    "output, which is ours": {"sbatch": {"output": "logs/%A.log"}},
    "two lines of set-up in one": {"setup": ["true\nfalse"]},
    "hours by a letter": {"sbatch": {"time": "4h"}},
    "five minutes, which is too short": {"sbatch": {"time": "5"}},
    "eight minutes, which is too short": {"sbatch": {"time": "08:00"}},
    "memory with GB": {"sbatch": {"mem": "48GB"}},
    "memory without a unit": {"sbatch": {"mem": "48"}},
    "a comma at the end": {"sbatch": {"partition": "gpu,"}},
    "an equals sign": {"sbatch": {"gres": "gpu=1"}},
    "no number of cores": {"sbatch": {"cpus-per-task": "all"}},
    "no tasks": {"tasks": 0},
}


@pytest.mark.parametrize("limit", ["4:00", "9:59"])
def test_a_time_limit_under_ten_minutes_is_refused(tmp_path, limit):
    """A task gets its signal minutes before the end, and would have no time to work.

    The exit code 2 is that of a typing error, after which a task is not queued again.
    """
    slurm = FakeSlurm(tmp_path, limit=limit)

    exit_code, output = slurm.run(*ARRAY_SCRIPT)

    assert exit_code == 2
    assert "is too short" in output


@pytest.mark.parametrize("limit", ["10:00", "1:00:00", "2-00:00:00", "UNLIMITED", ""])
def test_a_time_limit_of_ten_minutes_or_more_or_none_is_accepted(tmp_path, limit):
    """Limits are as Slurm prints them: days-hours:minutes:seconds."""
    slurm = FakeSlurm(tmp_path, limit=limit)

    exit_code, output = slurm.run(*ARRAY_SCRIPT)

    assert exit_code == 0
    assert "is too short" not in output


# --- scripts for a site
def options_of_sbatch_in(script: Path) -> dict[str, str]:
    """Read the options of sbatch that a script states: name -> value."""
    value_of_option = {}
    for line in script.read_text(encoding="utf-8").splitlines():
        if line.startswith("#SBATCH --"):
            option, *_comment = line.removeprefix("#SBATCH --").split()
            name, _, value = option.partition("=")
            value_of_option[name] = value
    return value_of_option


@pytest.fixture
def scripts_of_a_lab(tmp_path) -> dict[str, Path]:
    """Name of a job script -> its path, as they are written for a lab."""
    site = Site(
        licence="CC-BY-4.0",
        tasks=16,
        sbatch={"account": "film", "partition": "gpu", "gres": "gpu:a100:1"},
        setup=["module load x"],
    )
    return {path.name: path for path in write_job_scripts(tmp_path / "jobs", site)}


def test_the_scripts_of_a_site_have_its_options_of_sbatch(scripts_of_a_lab):
    """The lab has 16 tasks, the account `film`, the partition `gpu`, and GPUs `gpu:a100:1`.

    Both jobs have the account and the partition; the job that seals needs no GPU.
    """
    array = options_of_sbatch_in(scripts_of_a_lab["array.sbatch"])
    sealing = options_of_sbatch_in(scripts_of_a_lab["seal.sbatch"])

    assert array["account"] == "film"
    assert array["partition"] == "gpu"
    assert array["array"] == "0-15"
    assert array["gres"] == "gpu:a100:1"
    assert array["time"] == "04:00:00"  # unless the site states another
    assert sealing["account"] == "film"
    assert sealing["partition"] == "gpu"
    assert "gres" not in sealing


def test_the_scripts_of_a_site_have_no_error_of_syntax(scripts_of_a_lab):
    """With -n, Bash reads a script and runs nothing."""
    for path in scripts_of_a_lab.values():
        assert execute("bash", "-n", path, code=None).stderr == ""


def test_the_scripts_of_a_site_load_its_modules_before_they_set_the_path(scripts_of_a_lab):
    """The lab's set-up is `module load x`, which may change PATH; ours must then come first in it."""
    line_that_sets_path = f"export PATH={Path(sys.executable).parent}:$PATH"

    for name in ("array.sbatch", "seal.sbatch", "ray.sbatch", "train.sbatch"):
        lines = scripts_of_a_lab[name].read_text(encoding="utf-8").splitlines()
        assert lines.index("module load x") < lines.index(line_that_sets_path)


def test_scripts_that_a_site_may_have_changed_are_not_replaced(tmp_path):
    """One of the scripts is there already; then no script is written."""
    (tmp_path / "seal.sbatch").write_text("changed by the site", encoding="utf-8")

    with pytest.raises(ExtractError, match=r"seal\.sbatch"):
        write_job_scripts(tmp_path, Site(licence="CC0-1.0"))

    assert [path.name for path in tmp_path.iterdir()] == ["seal.sbatch"]
    assert (tmp_path / "seal.sbatch").read_text(encoding="utf-8") == "changed by the site"


@pytest.mark.parametrize("wrong_options", WRONG_SITES.values(), ids=WRONG_SITES)
def test_wrong_options_of_a_site_are_refused_before_anything_is_written(tmp_path, wrong_options):
    """Of the options of a site one is wrong, such as "hours by a letter"; the id of the case says which."""
    options = {"licence": "CC0-1.0"} | wrong_options

    with pytest.raises((ExtractError, StoreError)):
        write_job_scripts(tmp_path / "jobs", Site(**options))

    assert not (tmp_path / "jobs").exists()


TIME_LIMITS = ("600", "30:00", "8:00:00", "1-0", "2-12:30", "2-12:30:00", "UNLIMITED")
OPTIONS_THAT_SBATCH_TAKES = [
    *({"time": time} for time in TIME_LIMITS),
    {"mem": "0"},
    {"mem": "64G", "gpus": "a100:2", "nodes": "1-3", "partition": "gpu,long", "mail-user": "me@lab.example"},
]


@pytest.mark.parametrize("options", OPTIONS_THAT_SBATCH_TAKES, ids=lambda options: " ".join(options.values()))
def test_options_that_sbatch_takes_are_written(tmp_path, options):
    """A site states options of sbatch, such as its memory; the script of the array has them."""
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", sbatch=options))

    written_options = options_of_sbatch_in(tmp_path / "jobs" / "array.sbatch")
    for name, value in options.items():
        assert written_options[name] == value


def write_logs_of_tasks(folder: Path, lines_of_task: dict[int, list[str]]) -> None:
    """Write the logs that tasks of the array job 9 left."""
    for task, lines in lines_of_task.items():
        (folder / f"extract-9_{task}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def ended_with(task: int, code: int) -> str:
    return f"--- 2026-01-01 11:00:00 share {task} ended with {code}"


SEAL_AFTER_JOB_9 = ("seal.sbatch", "stores/films", "--licence", "CC0-1.0")


@pytest.mark.parametrize(
    ("sbatch", "device"),
    [({}, "cuda"), ({"gres": "gpu:a100:1"}, "cuda"), ({"gres": "none"}, "cpu"), ({"gpus": "1"}, "cuda")],
)
def test_the_scripts_name_the_device_that_the_site_asks_slurm_for(tmp_path, sbatch, device):
    """A GPU is asked for by default, and `gres: none` asks for none.

    Whoever sets OBYGAZE_DEVICE chooses another device.
    """
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", sbatch=sbatch))

    for name in ("array.sbatch", "ray.sbatch"):
        script = (tmp_path / "jobs" / name).read_text(encoding="utf-8")
        assert f"export OBYGAZE_DEVICE=${{OBYGAZE_DEVICE:-{device}}}" in script


def test_the_job_that_seals_repeats_the_last_error_of_each_task_that_failed(tmp_path):
    """Before it seals, the job prints of each task of the array that has not ended well the log's last error.

    Task 0 has an error in its log, of an earlier turn, but ended with the code 0. Task 1 has two errors and
    failed. Task 2 has no end: Slurm has cancelled it for a job of higher priority (preemption). So errors of
    the tasks 1 and 2 are printed. Slurm is pretended, with commands that say what Slurm would.
    """
    no_gpu = "obygaze: error: no GPU here"
    no_room = "obygaze: error: st/pieces/0: Disk quota exceeded"
    preempted = "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-01-01 DUE TO PREEMPTION ***"
    lines_of_task = {
        0: [no_gpu, ended_with(task=0, code=0)],
        1: [no_gpu, no_room, ended_with(task=1, code=1)],
        2: ["--- 2026-01-01 10:00:00 n1 (n1): share 2, turn 1 of 20", preempted],
    }
    write_logs_of_tasks(tmp_path, lines_of_task)

    number_of_array = "9"
    exit_code, output = FakeSlurm(tmp_path).run(*SEAL_AFTER_JOB_9, ARRAY=number_of_array)

    assert exit_code == 0  # of the command that seals, which decides whether clips are missing
    last_errors = re.findall("last error: (.*)", output)
    assert last_errors == [no_room, preempted]


def test_the_job_that_seals_names_the_tasks_that_failed_or_were_killed(tmp_path):
    """Logs of three tasks: 0 was right, 1 failed, and 2 was killed, so that no line says how it ended.

    The command that seals fails.
    """
    begun = "--- 2026-01-01 10:00:00 node (n1): share 0, turn 1 of 20"
    lines_of_task = {
        0: [begun, ended_with(task=0, code=0)],
        1: [begun, ended_with(task=1, code=1)],
        2: [begun, "obygaze: note"],
    }
    write_logs_of_tasks(tmp_path, lines_of_task)

    exit_code, output = FakeSlurm(tmp_path, "exit 1").run(*SEAL_AFTER_JOB_9, ARRAY="9")

    assert exit_code == 1
    outcomes_and_logs = re.findall(r"^(failed|killed): (\S+?):? ", output, re.MULTILINE)
    assert outcomes_and_logs == [("failed", "extract-9_1.log"), ("killed", "extract-9_2.log")]


SECOND_TURN = {"SLURM_RESTART_COUNT": "1"}
"""Slurm tells a task by this variable how often it was queued again: once, so this is its second turn."""

NO_ERROR_COMES_AT_ONCE = {"QUICK": "0"}
"""Errors within so many seconds count as quick in array.sbatch. With 0 every error counts as a late one."""


def test_a_task_that_fails_at_once_in_two_turns_is_not_queued_again(tmp_path):
    """A fault that comes within a minute is likely to come again for ever.

    This is the second turn of task 2. The output says how to run it again, by --array=2.
    """
    slurm = FakeSlurm(tmp_path, "exit 1")

    exit_code, output = slurm.run(*ARRAY_SCRIPT, **SECOND_TURN)

    assert exit_code == 1
    assert slurm.asked_of_slurm == ""
    assert "--array=2" in output


def test_a_task_that_fails_in_its_second_turn_but_not_at_once_is_queued_again(tmp_path):
    """Task 2 of the array job 9 fails with the exit code 1, in its second turn (SLURM_RESTART_COUNT).

    An error that comes late is often trouble of a node, which may pass; so Slurm is asked to queue the task
    9_2 once more. Within QUICK seconds an error would count as one that comes at once, and end the task;
    QUICK is 0 here, so that the test need not wait.
    """
    slurm = FakeSlurm(tmp_path, "exit 1")

    exit_code, output = slurm.run(*ARRAY_SCRIPT, **SECOND_TURN, **NO_ERROR_COMES_AT_ONCE)

    assert exit_code == 1
    assert slurm.asked_of_slurm == "requeue 9_2"
    assert "--array=2" not in output


FAKE_SBATCH = """#!/bin/bash
case "$*" in
    --test-only*) [[ -n "${REFUSED:-}" && "$2" = *"$REFUSED"* ]] && exit 1; exit 0 ;;
esac
echo "$ARRAY $@" >> asked
echo 17
"""
"""Writes down the jobs that it is given, each after the variable ARRAY, and gives each the number 17.

Of trials (--test-only) it refuses that of the script which the variable REFUSED names.
"""


@pytest.fixture
def cluster(tmp_path):
    """A folder with films.csv of one clip, the scripts of a site whose licence is CC-BY-4.0, and a sbatch."""
    write_job_scripts(tmp_path / "jobs", Site(licence="CC-BY-4.0"))
    (tmp_path / "clip.mp4").write_bytes(b"no video is opened")
    write_manifest(Manifest((Clip("a-0", "a", "clip.mp4"),), tmp_path), tmp_path / "films.csv")
    cluster = FakeSlurm(tmp_path, "exit 0", name="sbatch")
    (tmp_path / "sbatch").write_text(FAKE_SBATCH, encoding="utf-8")
    return cluster


def submit(cluster: FakeSlurm, *words: str, **variables: str) -> tuple[int, str]:
    """Run the site's script submit.sh; return its exit code and output."""
    return cluster.run(str(cluster.folder / "jobs" / "submit.sh"), *words, **variables)


def assert_nothing_was_queued(cluster: FakeSlurm) -> None:
    """Assert that Slurm was not asked to run any job."""
    assert cluster.asked_of_slurm == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["--licence", "CC0-1.0"],
        ["--licence=CC0-1.0", "--store-version", "1.1.0"],
        ["--citation", "Doe and Roe, 2026"],
    ],
    ids=["nothing", "a licence", "a licence and a version", "a citation"],
)
def test_options_that_are_typed_are_given_to_the_array_and_to_the_job_that_seals(cluster, typed):
    """Somebody types `submit.sh films.csv films` and options. It submits an array, and a job that seals.

    The job that seals also gets the licence of the site, CC-BY-4.0. The typed options stand behind it: of two
    licences the last one counts, so that a typed one wins.
    """
    exit_code, output = submit(cluster, "films.csv", "films", *typed)

    assert exit_code == 0, output
    array, sealing = cluster.asked_of_slurm.splitlines()
    words_of_array = ["array.sbatch", "films.csv", "films", *typed]
    words_of_sealing = ["seal.sbatch", "films", "--licence", "CC-BY-4.0", *typed]
    assert array.endswith(" ".join(words_of_array))
    assert sealing.endswith(" ".join(words_of_sealing))


@pytest.mark.long
def test_the_job_that_seals_waits_for_the_end_of_all_tasks_of_the_array(cluster):
    """Slurm gives the array the number 17, which the job that seals gets in its variable ARRAY.

    It waits by `afterany`, which also counts tasks that fail. A line of the fake sbatch begins with ARRAY,
    then come the options.
    """
    submit(cluster, "films.csv", "films")

    _array, sealing = cluster.asked_of_slurm.splitlines()
    assert sealing.startswith("17 --dependency=afterany:17 ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["absent.csv", "films"], "absent.csv"),
        (["films.csv", "films", "--licence", "mine"], "mine"),
        (["films.csv", "clip.mp4"], "clip.mp4"),
        (["films.csv", "clip.mp4/films"], "clip.mp4"),
        (["films.csv", "films", "--shard", "0/4"], "4"),
    ],
    ids=["manifest", "licence", "order", "place", "share"],
)
def test_mistakes_that_would_stop_the_tasks_are_found_before_anything_is_queued(cluster, words, named):
    """Right would be a manifest that is there (films.csv), the place of a store, and options that fit."""
    exit_code, output = submit(cluster, *words)

    assert exit_code == 1
    assert_nothing_was_queued(cluster)
    assert named in output
    assert "Traceback" not in output


@pytest.mark.long
@pytest.mark.parametrize("script", ["array.sbatch", "seal.sbatch"])
def test_neither_job_is_queued_where_slurm_would_refuse_one_of_them(cluster, script):
    """Slurm is asked about both with --test-only before. It is pretended to refuse one of the two scripts."""
    exit_code, output = submit(cluster, "films.csv", "films", REFUSED=script)

    assert exit_code == 1
    assert_nothing_was_queued(cluster)
    assert "nothing was submitted" in output


@pytest.mark.long
def test_an_unfinished_store_in_four_shares_is_found_before_eight_tasks_are_queued(cluster):
    """An extraction of the store `films` began in four shares, as its file shares/number says.

    At this site an array has eight tasks, each for one share of eight. They would all be refused, so
    submit.sh refuses to queue them.
    """
    shares = cluster.folder / "films.staging" / "shares"
    shares.mkdir(parents=True)
    n_shares_of_unfinished_store = 4
    (shares / "number").write_text(f"{n_shares_of_unfinished_store}\n", encoding="utf-8")

    exit_code, _ = submit(cluster, "films.csv", "films")

    assert exit_code == 1
    assert_nothing_was_queued(cluster)


@pytest.mark.long
def test_shares_that_another_cluster_does_are_found_before_anything_is_queued(cluster):
    """The jobs are for cluster alpha. A machine of cluster beta has begun share 0 of 8."""
    write_stage_with_share_0_of(cluster, name_of_cluster="beta")

    exit_code, output = submit(cluster, "films.csv", "films")

    assert exit_code == 1
    assert_nothing_was_queued(cluster)
    assert "beta" in output


@pytest.mark.long
def test_shares_that_the_same_cluster_has_begun_are_no_obstacle(cluster):
    """The jobs are for cluster alpha, a machine of which has begun share 0 of 8."""
    write_stage_with_share_0_of(cluster, name_of_cluster="alpha")

    _, output = submit(cluster, "films.csv", "films")

    assert "cluster" not in output


def write_stage_with_share_0_of(cluster: FakeSlurm, name_of_cluster: str) -> None:
    """Write a stage of eight shares, of which a machine of a cluster has begun the first."""
    shares = cluster.folder / "films.staging" / "shares"
    shares.mkdir(parents=True)
    (shares / "number").write_text("8\n", encoding="utf-8")
    owner = {"cluster": name_of_cluster, "host": "n7"}
    (shares / "0").write_text(json.dumps(owner), encoding="utf-8")


def test_jobs_are_submitted_unchecked_if_check_is_no(cluster):
    """The login node may not see the folders that the compute nodes see, so the manifest may be absent here.

    Two jobs are submitted: the array, and the job that seals.
    """
    exit_code, output = submit(cluster, "absent.csv", "films", CHECK="no")

    assert exit_code == 0, output
    assert len(cluster.asked_of_slurm.splitlines()) == 2
