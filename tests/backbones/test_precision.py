"""The precision of products is ours while a network runs and everybody else's before and after."""

import subprocess
import sys

import pytest

from tests.later import later

torch = later("torch")
Compute = later("obygaze_features.backbones.compute", "Compute")
inference = later("obygaze_features.backbones.compute", "inference")
matmul_precision = later("obygaze_features.backbones.compute", "matmul_precision")

OLD = "Please use the new API settings"
"""What torch 2.9 says of its older interface."""

# Each in a process of its own, since torch never forgets which of its two interfaces was used.
PRELUDES = """
pass
torch.set_float32_matmul_precision("high")
torch.backends.fp32_precision = "tf32"
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cuda.matmul.fp32_precision = "tf32"
torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = False
"""
SCRIPT = """
import os, sys, torch
from obygaze_features.backbones.compute import matmul_precision
backends = torch.backends
places = (backends.cuda.matmul, backends.cudnn.conv, backends.mkldnn.matmul, backends.mkldnn.conv)
def now(): return [place.fp32_precision for place in places]
def check():
    for tf32 in (False, True):
        before = now()
        with matmul_precision(tf32=tf32):
            assert now() == (["tf32"] * 2 if tf32 else ["ieee"] * 2) + ["ieee"] * 2, now()
        assert now() == before, (before, now())
for prelude in sys.argv[1].strip().splitlines():
    child = os.fork()
    if child == 0:
        try:
            exec(prelude)
            check()
            exec(prelude)  # set again, after and in between
            with matmul_precision(tf32=False):
                exec(prelude)
            check()
            if prelude.startswith("torch.backends.fp32_precision"):  # what was inherited still is
                backends.fp32_precision = "ieee"
                assert now() == ["ieee"] * 4, now()
        except BaseException as error:
            print(prelude, "->", repr(error)[:200], flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, prelude
"""


@pytest.mark.long  # in processes of their own
def test_set_elsewhere_before_or_after_it_never_fails_and_is_put_back():
    command = [sys.executable, "-W", "error", "-W", f"ignore:{OLD}", "-c", SCRIPT, PRELUDES]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("tf32", [False, True])
def test_a_network_may_read_the_older_interface(tf32):
    with matmul_precision(tf32=tf32), torch.backends.cudnn.flags(enabled=False):
        pass


@pytest.mark.filterwarnings(f"ignore:{OLD}")
def test_products_on_a_cpu_never_drop_bits():
    """Where the processor has bfloat16, oneDNN would use it for float32 products."""
    before = torch.get_float32_matmul_precision()
    torch.manual_seed(0)
    a, b = torch.randn(64, 256), torch.randn(256, 64)
    with matmul_precision(tf32=True):
        exact = a @ b
    try:
        torch.set_float32_matmul_precision("medium")
        with matmul_precision(tf32=True):
            assert torch.equal(a @ b, exact)
    finally:
        torch.set_float32_matmul_precision(before)


def test_an_autocast_around_ours_is_not_obeyed():
    compute = Compute(device="cpu")
    a = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16), inference(compute, torch.device("cpu")):
        assert (a @ a).dtype == torch.float32
