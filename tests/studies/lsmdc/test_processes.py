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
from tests.later import later
from tests.ports import free_ports

from .three_steps import VARIANTS, furthest, three_steps

torch = later("torch")
load_file = later("safetensors.torch", "load_file")
train = later("obygaze_studies.lsmdc", "train")
Processes = later("obygaze_studies.lsmdc.execution", "Processes")
choose_device = later("obygaze_studies.lsmdc.execution", "choose_device")

pytestmark = [pytest.mark.long, pytest.mark.nightly]


@pytest.fixture(scope="module")
def two(oracle, clip, corpus, tmp_path_factory):
    """Run two processes over gloo; gives the folder of what they wrote."""
    out = tmp_path_factory.mktemp("two")
    (port,) = free_ports(1)
    settings = {"clip": str(clip), "batch": 5, "epochs": 1, "lr": 3e-4, "clip_lr_scale": 1.0, "chunk": 2}
    settings |= {
        "annotations": str(corpus / "annotations"),
        "videos": str(corpus / "videos"),
        "device": "cpu",
    }
    settings |= {"out": str(out / "run"), "cache": str(corpus / "cache"), "workers": 1}
    arguments = [oracle.folder, out, json.dumps(settings)]
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "three_steps", *map(str, arguments)],
            env=os.environ
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2"}
            | {
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            },
        )
        for rank in range(2)
    ]
    assert [process.wait(timeout=1800) for process in running] == [0, 0]
    return out


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_oracles_steps_in_two_processes(oracle, two, variant):
    name = variant.replace("/", " of ")
    first, second = (two / f"{name}.{rank}" for rank in range(2))
    assert first.read_bytes() == second.read_bytes()
    tensors = load_file(first)
    share = VARIANTS[variant].get("gather_share", 1)
    if share == 0.25:
        expected = three_steps(oracle, gather_share=0.25)[0]
    else:
        expected = oracle.load("after_3_steps" if share == 1 else "after_3_steps_two_processes")
    assert furthest(tensors, expected) <= 2e-6


def test_a_training_in_two_processes_is_that_of_one(two, settings):
    of_one = settings(batch=5, epochs=1, chunk=2)
    train(of_one)
    first = load_file(of_one.out / "model.safetensors")
    second = load_file((two / "run") / "model.safetensors")
    assert furthest(second, first) <= 2e-6
    measures = [json.loads((folder / "test.json").read_text()) for folder in (of_one.out, two / "run")]
    assert measures[0] == measures[1]
    assert json.loads((two / "run" / "run.json").read_text())["processes"] == 2


def test_shares_are_contiguous_and_complete_even_where_processes_outnumber_pairs():
    for items in (1, 3, 6, 7):
        shares = [Processes(rank, 4).share(items) for rank in range(4)]
        assert [share.start for share in shares[1:]] == [share.stop for share in shares[:-1]]
        assert (shares[0].start, shares[-1].stop) == (0, items)


def test_a_gpu_that_is_not_there_is_refused():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BackboneError, match="'cuda'"):
        choose_device("cuda")
    with pytest.raises(BackboneError, match="'tpu'"):
        choose_device("tpu")
    assert choose_device("auto").type == "cpu"
