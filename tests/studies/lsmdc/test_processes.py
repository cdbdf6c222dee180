"""Two processes give what one gives, and both the same bytes (checks 4 and 5).

Long: they alone start two processes with torch, and so alone see gathers and sums between processes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import
from tests.ports import free_ports

from .three_steps import VARIANTS, furthest, three_steps

torch = lazy_import("torch")
load_file = lazy_import("safetensors.torch", "load_file")
train = lazy_import("obygaze_studies.lsmdc", "train")
Processes = lazy_import("obygaze_studies.lsmdc.execution", "Processes")
choose_device = lazy_import("obygaze_studies.lsmdc.execution", "choose_device")

pytestmark = [pytest.mark.long, pytest.mark.nightly]


N_PROCESSES = 2


def environment_of_process(rank, port):
    """Return the environment by which torch finds the other process, with one core and our test modules."""
    return os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": str(N_PROCESSES),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }


@pytest.fixture(scope="module")
def folder_of_two_processes(oracle, clip, corpus, tmp_path_factory):
    """The folder of what two processes of `three_steps.py` wrote.

    Each process writes the tensors after three steps of each variant to `VARIANT.0` or `VARIANT.1`. Both
    together then train on the corpus, into the folder `run`.
    """
    folder = tmp_path_factory.mktemp("two")
    settings = {
        "clip": str(clip),
        "annotations": str(corpus / "annotations"),
        "videos": str(corpus / "videos"),
        "out": str(folder / "run"),
        "cache": str(corpus / "cache"),
        "workers": 1,
        "device": "cpu",
        "batch": 5,
        "epochs": 1,
        "lr": 3e-4,
        "clip_lr_scale": 1.0,
        "chunk": 2,
    }
    arguments = [str(oracle.folder), str(folder), json.dumps(settings)]
    command = [sys.executable, "-W", "error", "-m", "three_steps", *arguments]
    (port,) = free_ports(1)
    processes = [
        subprocess.Popen(command, env=environment_of_process(rank, port)) for rank in range(N_PROCESSES)
    ]
    for process in processes:
        assert process.wait(timeout=1800) == 0
    return folder


def tensors_file(folder, variant, rank):
    """Return the file of tensors that the process of a rank wrote for a variant."""
    return folder / f"{variant.replace('/', ' of ')}.{rank}"


def test_three_steps_of_two_processes_give_the_tensors_of_the_original(oracle, folder_of_two_processes):
    """Both processes have the same bytes."""
    original_of_variant = {
        "share 1": "after_3_steps",
        "share 1, uneven, chunks of 3": "after_3_steps",
        "share 1/2": "after_3_steps_two_processes",
    }
    for variant in VARIANTS:
        first, second = (tensors_file(folder_of_two_processes, variant, rank) for rank in range(2))
        assert first.read_bytes() == second.read_bytes()
    for variant, original in original_of_variant.items():
        tensors = load_file(tensors_file(folder_of_two_processes, variant, rank=0))
        assert furthest(tensors, oracle.load(original)) <= 2e-6, variant


def test_two_processes_with_a_quarter_of_the_gradient_equal_one(oracle, folder_of_two_processes):
    """The original multiplies gradients before its gather by 1 / processes, of which it had four.

    One process does the same with `gather_share` 1/4. Two processes took the same three steps, in chunks of
    two pairs, and wrote their tensors.
    """
    variant = "share 1/4, chunks of 2"
    of_two_processes = load_file(tensors_file(folder_of_two_processes, variant, rank=0))

    of_one_process, *_ = three_steps(oracle, gather_share=0.25)

    assert furthest(of_two_processes, of_one_process) <= 2e-6


def test_a_training_in_two_processes_is_that_of_one(folder_of_two_processes, settings):
    """Its weights are those of one process but for rounding, and its measures on the test clips the same."""
    by_one = settings(batch=5, epochs=1, chunk=2)
    train(by_one)
    run_of_one = by_one.out
    run_of_two = folder_of_two_processes / "run"

    weights_of_one = load_file(run_of_one / "model.safetensors")
    weights_of_two = load_file(run_of_two / "model.safetensors")
    assert furthest(weights_of_two, weights_of_one) <= 2e-6
    assert json.loads((run_of_two / "test.json").read_text()) == json.loads(
        (run_of_one / "test.json").read_text()
    )
    assert json.loads((run_of_two / "run.json").read_text())["processes"] == 2


@pytest.mark.parametrize("n_pairs", [1, 3, 6, 7])
def test_four_processes_share_any_number_of_pairs_without_gap_or_overlap(n_pairs):
    shares = [Processes(rank, 4).share(n_pairs) for rank in range(4)]
    assert [pair for share in shares for pair in range(n_pairs)[share]] == list(range(n_pairs))


def test_a_gpu_that_is_not_there_is_refused():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BackboneError, match="'cuda'"):
        choose_device("cuda")
    with pytest.raises(BackboneError, match="'tpu'"):
        choose_device("tpu")
    assert choose_device("auto").type == "cpu"
