"""`obygaze train xclip-lsmdc`: what it prints and how it ends; what it does is tested beside."""

import json
import signal
from types import SimpleNamespace

import pytest

from obygaze_studies import lsmdc
from tests.command import obygaze
from tests.extraction.clusters import EXITS_0_ON_TERM, EXITS_143_ON_TERM, FakeSlurm

RECALL_AS_PUBLISHED = {"R@1": 25.0}
RECALL_AS_MEAN_OVER_TIES = {"mean": {"R@1": 20.0}}
MEASURES_OF_TEST = {
    "published": {"text_to_video": RECALL_AS_PUBLISHED, "video_to_text": RECALL_AS_PUBLISHED},
    "tie_safe": {"text_to_video": RECALL_AS_MEAN_OVER_TIES, "video_to_text": RECALL_AS_MEAN_OVER_TIES},
    "sentences": 7408,
    "clips": 7400,
}
"""How well a trained network finds clips by sentences and back, counted in two ways."""


@pytest.fixture
def fake_training(monkeypatch):
    """Let the command train nothing: six of ten steps seem to be done, with epoch 3 as the best.

    The settings that the training was called with are kept as `settings`. If a test sets `stop`, the process
    gets a signal to stop in the sixth step. `test` is what the test clips gave.
    """
    fake = SimpleNamespace(settings=None, stop=False, test=MEASURES_OF_TEST)

    def train(settings, *, watch, stopped):
        fake.settings = settings
        watch.say("ObyGaze12 films in the training data: Pulp Fiction")
        for step in (5, 6):
            watch.progress(step, 10, what="training", unit="step", note="loss 2.5")
        if fake.stop:
            signal.raise_signal(signal.SIGTERM)
            assert stopped()
        return lsmdc.Outcome(steps=6, total=10, left_out={}, epochs=(), best_epoch=3, test=fake.test)

    monkeypatch.setattr("obygaze_studies.lsmdc.run.train", train)
    return fake


def train_command(*options):
    """Call `obygaze train xclip-lsmdc` with the required options and these; return its exit code."""
    required = ["--clip", "clip", "--annotations", "a", "--videos", "v", "--out", "run"]
    return obygaze("train", "xclip-lsmdc", *required, *options)


def test_options_of_the_command_become_settings_of_the_training(fake_training):
    """The share of the gradient is given as a fraction."""
    code = train_command("--gather-share", "1/2", "--arithmetic", "published", "--chunk", "20", "--resume")

    assert code == 0
    settings = fake_training.settings
    assert settings.gather_share == 0.5
    assert settings.arithmetic == "published"
    assert settings.chunk == 20
    assert settings.resume


def test_without_options_the_command_trains_with_the_published_settings(fake_training):
    """The batch is None where it is the published one."""
    assert train_command() == 0

    settings = fake_training.settings
    assert settings.batch is None
    assert settings.epochs == 5
    assert settings.lr == 1e-4
    assert settings.clip_lr_scale == 1e-3
    assert settings.gather_share == 0.25


@pytest.mark.usefixtures("fake_training")
def test_the_command_prints_the_best_epoch_and_its_recall_counted_in_two_ways(capsys):
    """The recall is 25 % as the published code counts it, and 20 % if equal scores are no advantage.

    What the training says on its way, as the films shared with ObyGaze12, goes to the error stream.
    """
    assert train_command() == 0

    shown = capsys.readouterr()
    assert shown.out.startswith("run: epoch 3")
    assert "25.0 (tie-safe 20.0)" in shown.out
    assert "ObyGaze12 films in the training data" in shown.err


@pytest.mark.usefixtures("fake_training")
def test_the_command_can_print_json(capsys):
    assert train_command("--json") == 0

    assert json.loads(capsys.readouterr().out)


def test_a_training_stopped_by_a_signal_exits_with_the_signals_code(fake_training, capsys):
    """Shells expect 128 plus the number of the signal."""
    fake_training.stop = True
    fake_training.test = None  # a stopped training is not tested
    assert train_command() == 128 + signal.SIGTERM
    assert "step 6 of 10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("share", "code", "message"),
    [
        ("1/0", 2, "--gather-share"),
        ("a quarter", 2, "--gather-share"),
        ("4", 1, "--gather-share 4"),
    ],
    ids=["a division by zero", "words", "above 1"],
)
def test_a_share_of_the_gradient_that_is_no_number_from_0_to_1_is_refused(capsys, share, code, message):
    """The command exits with 2 where an option can't be read, and with 1 where its value makes no sense."""
    assert train_command("--gather-share", share) == code

    assert message in capsys.readouterr().err


def test_the_command_names_the_annotations_that_are_missing(tmp_path, monkeypatch, capsys):
    """It is called in an empty folder, with a as the folder of annotations."""
    monkeypatch.chdir(tmp_path)

    assert train_command() == 1

    assert "a/LSMDC16_annos_training.csv" in capsys.readouterr().err


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
    """The job script train.sbatch calls torchrun, which starts a process for each GPU.

    `FakeSlurm` runs the script with a program in its place that writes its arguments to a file and ends.
    """
    cluster = FakeSlurm(tmp_path, command="exit 0", name="torchrun")

    cluster.run("train.sbatch", "--out", "my run")

    arguments_of_torchrun = (tmp_path / "arguments").read_text()
    on_four_gpus = "--standalone --nproc-per-node 4"
    training = "-m obygaze train xclip-lsmdc --out my run --resume"
    assert arguments_of_torchrun == f"{on_four_gpus} {training}\n"
