"""`obygaze train xclip-lsmdc`: what it prints and how it ends; what it does is tested beside."""

import signal
from types import SimpleNamespace

import pytest

from obygaze_studies import lsmdc
from tests.command import obygaze
from tests.extraction.clusters import EXITS_0_ON_TERM, EXITS_143_ON_TERM, FakeSlurm

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
    calls = SimpleNamespace(settings=None, stop=False, test=MEASURES)

    def train(settings, *, watch, stopped):
        calls.settings = settings
        watch.say("ObyGaze12 films in the training data: Pulp Fiction")
        for step in (5, 6):
            watch.progress(step, 10, what="training", unit="step", note="loss 2.5")
        if calls.stop:
            signal.raise_signal(signal.SIGTERM)
            assert stopped()
        return lsmdc.Outcome(steps=6, total=10, left_out={}, epochs=(), best_epoch=3, test=calls.test)

    monkeypatch.setattr("obygaze_studies.lsmdc.run.train", train)
    return calls


def run(*arguments):
    return obygaze(*REQUIRED, *arguments)


def test_options_become_settings_and_the_outcome_is_printed(library, capsys):
    assert run("--gather-share", "1/2", "--arithmetic", "published", "--chunk", "20", "--resume") == 0
    settings = library.settings
    assert (settings.gather_share, settings.arithmetic, settings.chunk, settings.resume) == (
        0.5,
        "published",
        20,
        True,
    )
    assert (settings.batch, settings.epochs, settings.lr, settings.clip_lr_scale) == (None, 5, 1e-4, 1e-3)
    shown = capsys.readouterr()

    assert shown.out.startswith("run: epoch 3")
    assert "25.0 (tie-safe 20.0)" in shown.out
    assert "ObyGaze12 films in the training data" in shown.err
    assert run("--json") == 0
    assert library.settings.gather_share == 0.25, "as published"


def test_a_training_stopped_by_a_signal_exits_with_the_signals_code(library, capsys):
    """Shells expect 128 plus the number of the signal."""
    library.stop = True
    library.test = None  # a stopped training is not tested
    assert run() == 128 + signal.SIGTERM
    assert "step 6 of 10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--gather-share", "1/0"], 2, "--gather-share"),
        (["--gather-share", "a quarter"], 2, "--gather-share"),
        (["--gather-share", "4"], 1, "--gather-share 4"),
        ([], 1, "a/LSMDC16_annos_training.csv"),
    ],
    ids=["a division by zero", "words", "above 1", "missing inputs"],
)
def test_a_share_or_inputs_that_cannot_be_are_refused(tmp_path, monkeypatch, capsys, options, code, message):
    monkeypatch.chdir(tmp_path)
    assert run(*options) == code
    assert message in capsys.readouterr().err


TIME_LIMIT_SIGNAL = signal.SIGUSR1
"""What Slurm sends a job, as the script asks it to, before the time limit."""


@pytest.mark.parametrize(
    ("training", "signals", "exit_code", "asked_of_slurm"),
    [
        (EXITS_143_ON_TERM, [TIME_LIMIT_SIGNAL], 143, "requeue 11"),  # the number of the job
        (EXITS_0_ON_TERM, [TIME_LIMIT_SIGNAL], 0, ""),
        (EXITS_143_ON_TERM, [signal.SIGTERM], 143, ""),
        ("exit 1", [], 1, ""),
    ],
    ids=["stopped by the time limit", "finished at the time limit", "cancelled", "failed"],
)
def test_the_slurm_script_requeues_only_after_the_time_limit(
    tmp_path, training, signals, exit_code, asked_of_slurm
):
    """A job that was cancelled, failed or finished must not be started again."""
    cluster = FakeSlurm(tmp_path, training, name="torchrun")
    code, _ = cluster.run("train.sbatch", "--out", "my run", signals=signals)
    assert code == exit_code
    assert cluster.asked_of_slurm == asked_of_slurm


def test_the_slurm_script_starts_a_training_on_four_gpus_that_resumes(tmp_path):
    FakeSlurm(tmp_path, "exit 0", name="torchrun").run("train.sbatch", "--out", "my run")
    arguments = (tmp_path / "arguments").read_text()
    assert arguments == "--standalone --nproc-per-node 4 -m obygaze train xclip-lsmdc --out my run --resume\n"
