"""`obygaze train xclip-lsmdc`: what it prints and how it ends; what it does is tested beside."""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from obygaze_studies import lsmdc
from obygaze_studies.commands import train as command
from tests.command import obygaze

MEASURES = {
    counting: {
        direction: {"R@1": 25.0} if counting == "published" else {"mean": {"R@1": 20.0}}
        for direction in ("text_to_video", "video_to_text")
    }
    for counting in ("published", "tie_safe")
} | {"sentences": 7408, "clips": 7400}
REQUIRED = ["train", "xclip-lsmdc", "--clip", "clip", "--annotations", "a", "--videos", "v", "--out", "run"]


@pytest.fixture
def library(monkeypatch):
    """Stand in for the library; what it was called with is kept."""
    seen = SimpleNamespace(settings=None, stop=False, test=MEASURES)

    def train(settings, *, watch, stopped):
        seen.settings = settings
        watch.say("ObyGaze12 films in the training data: Pulp Fiction")
        for step in (5, 6):
            watch.progress(step, 10, what="training", unit="step", note="loss 2.5")
        if seen.stop:
            signal.raise_signal(signal.SIGTERM)
            assert stopped()
        return lsmdc.Outcome(6, 10, left_out={}, epochs=(), best_epoch=3, test=seen.test)

    monkeypatch.setattr(lsmdc, "train", train)
    return seen


def run(*arguments):
    return obygaze(*REQUIRED, *arguments)


def test_options_reach_the_library_and_the_outcome_is_a_line(library, capsys):
    assert run("--gather-share", "1/2", "--arithmetic", "published", "--chunk", "20", "--resume") == 0
    given = library.settings
    assert (given.gather_share, given.arithmetic, given.chunk, given.resume) == (0.5, "published", 20, True)
    assert (given.batch, given.epochs, given.lr, given.clip_lr_scale) == (None, 5, 1e-4, 1e-3)
    shown = capsys.readouterr()
    assert shown.out.startswith("run: epoch 3")
    assert "25.0 (tie-safe 20.0)" in shown.out
    assert "ObyGaze12 films in the training data" in shown.err
    assert run("--json") == 0
    assert library.settings.gather_share == 0.25, "as published"


def test_a_signal_ends_with_its_code_and_says_where(library, capsys):
    library.stop, library.test = True, None
    assert run() == 128 + signal.SIGTERM
    assert "step 6 of 10" in capsys.readouterr().out


def test_bad_shares_are_usage_errors(capsys):
    assert run("--gather-share", "a quarter") == 2
    assert "--gather-share" in capsys.readouterr().err
    with pytest.raises(click.BadParameter):
        command.Share().convert("1/0", None, None)
    assert run("--gather-share", "4") == 1
    assert "--gather-share 4" in capsys.readouterr().err


TIME_LIMIT, CANCEL = signal.SIGUSR1, signal.SIGTERM


@pytest.mark.parametrize(
    ("code", "stop", "asked"),
    [(1, TIME_LIMIT, "requeue 7\n"), (0, TIME_LIMIT, ""), (1, CANCEL, ""), (1, None, "")],
)
def test_the_slurm_script_asks_for_another_turn_after_a_time_limit_alone(tmp_path, code, stop, asked):
    script = Path(__file__).parents[3] / "docs" / "slurm" / "train.sbatch"
    wait = f"trap 'exit {code}' TERM; touch ready; for i in {{1..6000}}; do sleep 0.05; done"
    commands = {
        "torchrun": f'echo "$@" > given; {wait if stop else f"exit {code}"}',
        "scontrol": 'echo "$@" > asked',
    }
    for name, body in commands.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"SLURM_JOB_ID": "7", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(["bash", script, "--out", "my run"], cwd=tmp_path, env=environment) as running:
        if stop:
            while not (tmp_path / "ready").exists():
                time.sleep(0.01)
            running.send_signal(stop)
        assert running.wait(timeout=600) == code
    given = (tmp_path / "given").read_text()
    assert given == "--standalone --nproc-per-node 4 -m obygaze train xclip-lsmdc --out my run --resume\n"
    assert ((tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else "") == asked


def test_missing_inputs_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run() == 1
    assert "a/LSMDC16_annos_training.csv" in capsys.readouterr().err
