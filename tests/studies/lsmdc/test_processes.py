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

from .three_steps import VARIANTS, largest_difference, three_steps

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


@pytest.mark.parametrize("variant", VARIANTS)
def test_after_three_steps_both_processes_have_the_same_tensors(folder_of_two_processes, variant):
    """Each process computes the gradients of its own pairs; then they are added up between processes.

    Both take the same steps by these sums, so the files of their tensors have to have the same bytes.
    """
    file_of_first = tensors_file(folder_of_two_processes, variant, rank=0)
    file_of_second = tensors_file(folder_of_two_processes, variant, rank=1)

    assert file_of_first.read_bytes() == file_of_second.read_bytes()


@pytest.mark.parametrize(
    ("variant", "recorded"),
    [
        ("share 1", "after_3_steps"),
        ("share 1, uneven, chunks of 3", "after_3_steps"),
        ("share 1/2", "after_3_steps_two_processes"),
    ],
)
def test_three_steps_of_two_processes_give_the_tensors_of_the_original_code(
    oracle, folder_of_two_processes, variant, recorded
):
    """The original code took the steps in one process, and in two.

    In two, it halves the gradients of all that comes before embeddings are gathered, which we do only if
    asked ("share 1/2"). With whole gradients ("share 1"), two processes of ours give what one process gave
    there. How pairs are divided among processes, and computed in chunks, changes nothing but rounding.
    """
    tensors = load_file(tensors_file(folder_of_two_processes, variant, rank=0))

    assert largest_difference(tensors, oracle.load(recorded)) <= 2e-6


def test_two_processes_with_a_quarter_of_the_gradient_give_the_tensors_of_one_process(
    oracle, folder_of_two_processes
):
    """The published model was trained in four processes, by a quarter of the gradients before the gather.

    We keep this factor (`gather_share`) however many processes there are. Two processes took the three steps
    in chunks of two pairs and wrote their tensors; one process takes them here.
    """
    variant = "share 1/4, chunks of 2"
    tensors_of_two_processes = load_file(tensors_file(folder_of_two_processes, variant, rank=0))

    tensors_of_one_process = three_steps(oracle, gather_share=0.25).parameters

    assert largest_difference(tensors_of_two_processes, tensors_of_one_process) <= 2e-6


def test_a_training_in_two_processes_has_the_weights_and_measures_of_one_in_one_process(
    folder_of_two_processes, settings
):
    """The weights may differ by rounding, and the measures on the test clips must not differ at all."""
    by_one = settings(batch=5, epochs=1, chunk=2)
    train(by_one)
    run_of_one = by_one.out
    run_of_two = folder_of_two_processes / "run"

    weights_of_one = load_file(run_of_one / "model.safetensors")
    weights_of_two = load_file(run_of_two / "model.safetensors")
    assert largest_difference(weights_of_two, weights_of_one) <= 2e-6
    assert json.loads((run_of_two / "test.json").read_text()) == json.loads(
        (run_of_one / "test.json").read_text()
    )
    assert json.loads((run_of_two / "run.json").read_text())["processes"] == 2


@pytest.mark.parametrize("n_pairs", [1, 3, 6, 7])
def test_four_processes_share_any_number_of_pairs_without_gap_or_overlap(n_pairs):
    """A process has a slice of the pairs. Those of processes 0 to 3, one after the other, are all pairs."""
    all_pairs = range(n_pairs)
    shares = [Processes(rank, 4).share(n_pairs) for rank in range(4)]

    assert [pair for share in shares for pair in all_pairs[share]] == list(all_pairs)


def test_a_gpu_that_is_not_there_is_refused():
    """A computer without a GPU is asked for one by name. Asked for any device ("auto"), it takes the CPU."""
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BackboneError, match="'cuda'"):
        choose_device("cuda")
    with pytest.raises(BackboneError, match="'tpu'"):
        choose_device("tpu")
    assert choose_device("auto").type == "cpu"
