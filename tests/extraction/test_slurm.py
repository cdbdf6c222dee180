"""Job arrays: which share is whose, and the job scripts."""

import json
import signal
import sys
from pathlib import Path

import pytest

from obygaze_features.errors import ExtractError, StoreError
from obygaze_features.extraction import Site, array_shard, stop_on_signals, write_job_scripts
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.process import execute

from .clusters import EXITS_0_ON_TERM, EXITS_143_ON_SECOND_TERM, EXITS_143_ON_TERM, SCRIPTS, Folder


def array(task: int, first: int, last: int, count: int, step: int = 1) -> dict[str, str]:
    values = {"ID": task, "MIN": first, "MAX": last, "COUNT": count, "STEP": step}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, None),
        (array(task=3, first=0, last=7, count=8), (3, 8)),
        (array(task=0, first=0, last=0, count=1), (0, 1)),
    ],
)
def test_a_task_of_an_array_knows_its_share(variables, shard):
    assert array_shard(variables) == shard


@pytest.mark.parametrize(
    "variables",
    [
        array(task=3, first=3, last=3, count=1),
        array(task=5, first=3, last=5, count=2),
        array(task=4, first=3, last=4, count=2),
        array(task=8, first=1, last=8, count=8),
        array(task=4, first=0, last=6, count=4, step=2),
    ],
    ids=["--array=3", "--array=3,5", "--array=3,4", "--array=1-8", "--array=0-6:2"],
)
def test_tasks_of_an_incomplete_array_cannot_tell_their_share(variables):
    with pytest.raises(ExtractError, match="cannot tell its share"):
        array_shard(variables)


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        (array(task=3, first=3, last=3, count=1), (3, 8)),
        (array(task=5, first=3, last=5, count=2), (5, 8)),
        (array(task=2, first=0, last=7, count=8), (2, 8)),
    ],
    ids=["--array=3", "--array=3,5", "all again"],
)
def test_a_later_array_keeps_the_number_of_shares(variables, shard):
    assert array_shard(variables, 8) == shard


@pytest.mark.parametrize(
    "variables",
    [array(task=2, first=0, last=15, count=16), array(task=8, first=8, last=8, count=1)],
    ids=["--array=0-15", "--array=8"],
)
def test_a_later_array_of_more_tasks_than_shares_is_refused_by_every_task(variables):
    with pytest.raises(ExtractError, match="8 shares"):
        array_shard(variables, 8)


def test_signals_of_a_scheduler_may_repeat_but_a_second_ctrl_c_interrupts(monkeypatch):
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


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda path: path.name)
def test_the_scripts_are_shell(script):
    result = execute("bash", "-n", script, code=None)
    assert (result.returncode, result.stderr) == (0, "")
    page = Path(__file__).parents[2] / "docs" / "slurm.md"
    assert script.name in page.read_text(encoding="utf-8")


ARRAY = ("array.sbatch", "films.csv", "my store")


@pytest.mark.parametrize(
    ("command", "signals", "code", "asked"),
    [
        ("exit 0", [], 0, ""),
        ("exit 3", [], 0, ""),
        ("exit 2", [], 2, ""),
        ("exit 1", [], 1, "requeue 9_2"),
        ("kill -9 $$", [], 137, "requeue 9_2"),
        (EXITS_143_ON_TERM, [signal.SIGUSR1], 143, "requeue 9_2"),
        (EXITS_0_ON_TERM, [signal.SIGUSR1], 0, ""),
        (EXITS_143_ON_TERM, [signal.SIGTERM], 143, ""),
        (EXITS_143_ON_SECOND_TERM, [signal.SIGUSR1, signal.SIGTERM], 143, "requeue 9_2"),
    ],
)
def test_the_array_script_asks_for_another_turn_unless_it_was_cancelled(
    tmp_path, command, signals, code, asked
):
    site = Folder(tmp_path, command)
    ended, output = site.run(*ARRAY, signals=signals)
    assert ended == code
    assert output.splitlines()[-1].endswith(f"share 2 ended with {code}")
    assert site.asked == asked
    assert (tmp_path / "arguments").read_text(encoding="utf-8") == "extract films.csv my store\n"


@pytest.mark.parametrize("limit", ["4:00", "9:59"])
def test_a_time_limit_under_ten_minutes_is_refused(tmp_path, limit):
    code, output = Folder(tmp_path, limit=limit).run(*ARRAY)
    assert code == 2
    assert "is too short" in output


@pytest.mark.parametrize("limit", ["10:00", "1:00:00", "2-00:00:00", "UNLIMITED", ""])
def test_a_time_limit_of_ten_minutes_or_more_is_taken(tmp_path, limit):
    code, output = Folder(tmp_path, limit=limit).run(*ARRAY)
    assert code == 0
    assert "is too short" not in output


# --- scripts for a site
# ---------------------------------------------------------------------------
def directives(script: Path) -> dict[str, str]:
    lines = script.read_text(encoding="utf-8").splitlines()
    words = (line.removeprefix("#SBATCH --").split()[0] for line in lines if line.startswith("#SBATCH --"))
    return dict(word.partition("=")[::2] for word in words)


SITE = Site(
    licence="CC-BY-4.0",
    tasks=16,
    sbatch={"account": "film", "partition": "gpu", "gres": "gpu:a100:1"},
    setup=["module load x"],
)


def test_the_scripts_of_a_site_have_its_options_of_sbatch(tmp_path):
    paths = {path.name: path for path in write_job_scripts(tmp_path / "jobs", SITE)}
    array, sealing = directives(paths["array.sbatch"]), directives(paths["seal.sbatch"])
    assert {"account": "film", "partition": "gpu"}.items() <= array.items() & sealing.items()
    assert (array["array"], array["gres"], array["time"]) == ("0-15", "gpu:a100:1", "04:00:00")
    assert "gres" not in sealing


@pytest.mark.parametrize("name", ["array.sbatch", "seal.sbatch", "ray.sbatch", "train.sbatch"])
def test_a_script_of_a_site_loads_its_modules_before_it_sets_the_path(tmp_path, name):
    write_job_scripts(tmp_path / "jobs", SITE)
    lines = (tmp_path / "jobs" / name).read_text(encoding="utf-8").splitlines()
    sets_path = f"export PATH={Path(sys.executable).parent}:$PATH"
    assert lines.index("module load x") < lines.index(sets_path)


def test_the_scripts_of_a_site_are_shell(tmp_path):
    for path in write_job_scripts(tmp_path / "jobs", SITE):
        assert execute("bash", "-n", path, code=None).stderr == ""


def test_scripts_that_a_site_may_have_changed_are_not_replaced(tmp_path):
    (tmp_path / "seal.sbatch").write_text("mine", encoding="utf-8")
    with pytest.raises(ExtractError, match=r"seal\.sbatch"):
        write_job_scripts(tmp_path, Site(licence="CC0-1.0"))
    assert [path.name for path in tmp_path.iterdir()] == ["seal.sbatch"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"licence": "mine"},
        {"sbatch": {"account": "a b"}},
        {"sbatch": {"partition": "gpu\n#SBATCH --wrap=x"}},
        {"sbatch": {"a b": "c"}},
        {"sbatch": {"array": "1-4"}},
        {"sbatch": {"output": "logs/%A.log"}},
        {"setup": ["true\nfalse"]},
        {"sbatch": {"time": "4h"}},
        {"sbatch": {"time": "5"}},
        {"sbatch": {"time": "08:00"}},
        {"sbatch": {"mem": "48GB"}},
        {"sbatch": {"mem": "48"}},
        {"sbatch": {"partition": "gpu,"}},
        {"sbatch": {"gres": "gpu=1"}},
        {"sbatch": {"cpus-per-task": "all"}},
        {"tasks": 0},
    ],
)
def test_wrong_options_of_sbatch_are_refused_before_anything_is_written(tmp_path, wrong):
    with pytest.raises((ExtractError, StoreError)):
        write_job_scripts(tmp_path / "jobs", Site(**{"licence": "CC0-1.0", **wrong}))
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize(
    "right",
    [
        *(
            {"time": time}
            for time in ("600", "30:00", "8:00:00", "1-0", "2-12:30", "2-12:30:00", "UNLIMITED")
        ),
        {"mem": "0"},
        {
            "mem": "64G",
            "gpus": "a100:2",
            "nodes": "1-3",
            "partition": "gpu,long",
            "mail-user": "me@lab.example",
        },
    ],
    ids=lambda sbatch: " ".join(sbatch.values()),
)
def test_options_that_sbatch_takes_are_written(tmp_path, right):
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", sbatch=right))
    assert right.items() <= directives(tmp_path / "jobs" / "array.sbatch").items()


@pytest.mark.parametrize(
    ("sbatch", "device"),
    [({}, "cuda"), ({"gres": "gpu:a100:1"}, "cuda"), ({"gres": "none"}, "cpu"), ({"gpus": "1"}, "cuda")],
)
def test_the_scripts_name_the_device_that_the_site_asks_slurm_for(tmp_path, sbatch, device):
    write_job_scripts(tmp_path / "jobs", Site(licence="CC0-1.0", sbatch=sbatch))
    for name in ("array.sbatch", "ray.sbatch"):
        script = (tmp_path / "jobs" / name).read_text(encoding="utf-8")
        assert f"export OBYGAZE_DEVICE=${{OBYGAZE_DEVICE:-{device}}}" in script


def test_the_job_that_seals_tells_the_last_error_of_each_task_that_failed(tmp_path):
    first, second = "obygaze: error: no GPU here", "obygaze: error: st/pieces/0: Disk quota exceeded"
    preempted = "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-01-01 DUE TO PREEMPTION ***"
    logs = {
        "0": [first, "--- 2026-01-01 10:00:00 share 0 ended with 0"],
        "1": [first, second, "--- 2026-01-01 10:00:00 share 1 ended with 1"],
        "2": ["--- 2026-01-01 10:00:00 n1 (n1): share 2, turn 1 of 20", preempted],
    }
    for task, lines in logs.items():
        (tmp_path / f"extract-9_{task}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, output = Folder(tmp_path).run("seal.sbatch", "stores/films", "--licence", "CC0-1.0", ARRAY="9")
    errors = [line.partition("last error: ")[2] for line in output.splitlines() if "last error: " in line]
    assert (code, errors) == (0, [second, preempted])


def test_the_job_that_seals_names_the_tasks_that_failed_or_were_killed(tmp_path):
    begun = "--- 2026-01-01 10:00:00 node (n1): share 0, turn 1 of 20\n"
    logs = {"0": "ended with 0\n", "1": "ended with 1\n", "2": ""}
    for task, end in logs.items():
        output = f"--- 2026-01-01 11:00:00 share {task} {end}" if end else "obygaze: note\n"
        (tmp_path / f"extract-9_{task}.log").write_text(begun + output, encoding="utf-8")
    site = Folder(tmp_path, "exit 1")
    code, output = site.run("seal.sbatch", "stores/films", "--licence", "CC0-1.0", ARRAY="9")
    assert code == 1
    named = [line for line in output.splitlines() if line.startswith(("failed: ", "killed: "))]
    assert [line.split()[1].rstrip(":") for line in named] == ["extract-9_1.log", "extract-9_2.log"]


def test_a_second_error_of_the_first_minute_gets_no_more_turn(tmp_path):
    site = Folder(tmp_path, "exit 1")
    code, output = site.run(*ARRAY, SLURM_RESTART_COUNT="1")
    assert (code, site.asked) == (1, "")
    assert "--array=2" in output


def test_a_second_error_after_the_first_minute_gets_one_more_turn(tmp_path):
    site = Folder(tmp_path, "exit 1")
    code, _ = site.run(*ARRAY, SLURM_RESTART_COUNT="1", QUICK="0")  # no run counts as a quick one
    assert (code, site.asked) == (1, "requeue 9_2")


SBATCH = """#!/bin/bash
case "$*" in
    --test-only*) [[ -n "${REFUSED:-}" && "$2" = *"$REFUSED"* ]] && exit 1; exit 0 ;;
esac
echo "$ARRAY $@" >> asked
echo 17
"""
"""A stand-in that notes what it is asked for, but for trials; of these it refuses the script REFUSED."""


@pytest.fixture
def site(tmp_path):
    """A site's scripts, and a manifest of one clip; sbatch notes what it is asked for."""
    write_job_scripts(tmp_path / "jobs", Site(licence="CC-BY-4.0"))
    (tmp_path / "clip.mp4").write_bytes(b"no video is opened")
    write_manifest(Manifest((Clip("a-0", "a", "clip.mp4"),), tmp_path), tmp_path / "films.csv")
    site = Folder(tmp_path, "exit 0", name="sbatch")
    (tmp_path / "sbatch").write_text(SBATCH, encoding="utf-8")
    return site


def submit(site: Folder, *words: str, **variables: str) -> tuple[int, str]:
    return site.run(str(site.folder / "jobs" / "submit.sh"), *words, **variables)


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["--licence", "CC0-1.0"],
        ["--licence=CC0-1.0", "--store-version", "1.1.0"],
        ["--citation", "Doe and Roe, 2026"],
    ],
    ids=" ".join,
)
def test_the_store_is_sealed_as_the_site_says_unless_something_else_is_typed(site, typed):
    code, output = submit(site, "films.csv", "films", *typed)
    assert code == 0, output
    extraction, sealing = site.asked.splitlines()
    assert extraction.endswith(" ".join(["array.sbatch films.csv films", *typed]))
    assert sealing.startswith("17 --dependency=afterany:17 ")
    assert sealing.endswith(" ".join(["seal.sbatch films --licence CC-BY-4.0", *typed]))


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
def test_mistakes_that_would_stop_the_tasks_are_found_before_anything_is_queued(site, words, named):
    code, output = submit(site, *words)
    assert (code, site.asked) == (1, "")
    assert named in output
    assert "Traceback" not in output


def test_a_store_divided_among_another_number_of_tasks_is_found_before_anything_is_queued(site):
    shares = site.folder / "films.staging" / "shares"
    shares.mkdir(parents=True)
    (shares / "number").write_text("4\n", encoding="utf-8")
    assert submit(site, "films.csv", "films")[0] == 1
    assert site.asked == ""


@pytest.mark.parametrize("script", ["array.sbatch", "seal.sbatch"])
def test_a_script_that_slurm_refuses_is_found_before_the_other_is_queued(site, script):
    code, output = submit(site, "films.csv", "films", REFUSED=script)
    assert (code, site.asked) == (1, "")
    assert "nothing was submitted" in output


@pytest.fixture
def first_share_begun_by(site):
    """Let a machine of a cluster begin the first of eight shares."""

    def begin(cluster):
        shares = site.folder / "films.staging" / "shares"
        shares.mkdir(parents=True)
        (shares / "number").write_text("8\n", encoding="utf-8")
        (shares / "0").write_text(json.dumps({"cluster": cluster, "host": "n7"}), encoding="utf-8")

    return begin


def test_shares_that_another_cluster_does_are_found_before_anything_is_queued(site, first_share_begun_by):
    first_share_begun_by("beta")
    code, output = submit(site, "films.csv", "films")
    assert (code, site.asked) == (1, "")
    assert "beta" in output


def test_shares_that_the_same_cluster_has_begun_are_submitted_again(site, first_share_begun_by):
    first_share_begun_by("alpha")
    assert "cluster" not in submit(site, "films.csv", "films")[1]


def test_a_site_whose_login_node_is_unlike_the_others_submits_without_looking(site):
    code, output = submit(site, "absent.csv", "films", CHECK="no")
    assert code == 0, output
    assert len(site.asked.splitlines()) == 2
