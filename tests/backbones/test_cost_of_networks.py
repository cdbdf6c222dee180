"""What full-size networks cost on a card, on shapes alone: nobody adds FLOP, kernels or bytes unseen."""

import importlib
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(
    not hasattr(torch._C, "_ensureCUDADeviceGuardSet"), reason="this torch cannot pretend to have a card"
)


@pytest.fixture(scope="module")
def counts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        yield importlib.import_module("gpu_counts")


@pytest.mark.parametrize(
    ("name", "precision", "gflop", "gigabytes", "kernels", "megabytes"),
    [
        ("vivit", "float32", 903.0, 4.9, 154, 140),
        ("vivit", "bfloat16", 903.0, 3.8, 350, 101),  # of these 8.2 GB and 446 with gelu_fast in nine kernels
        ("xclip", "bfloat16", 1128.8, 7.9, 671, 179),  # 10.2 GB and 697 with quick_gelu in three
        ("xclip", "bfloat16-weights", 1128.8, 5.1, 281, 150),
        ("xclip-lsmdc", "bfloat16", 421.8, 2.8, 476, 67),
    ],
)
def test_flop_bytes_kernels_and_memory_of_a_clip(
    counts, name, precision, gflop, gigabytes, kernels, megabytes
):
    found = counts.count(name, precision, at_once=8)
    assert found.flop / 1e9 == pytest.approx(gflop, abs=0.05)
    assert found.traffic / 1e9 <= gigabytes + 0.05
    assert found.kernels <= kernels
    assert found.activations / 1e6 <= megabytes + 0.5
