"""While a network runs, PyTorch multiplies with the precision that we set; before and after, with the user's.

PyTorch has two interfaces for that, an older and a newer one, and warns or fails where one process uses both.
"""

import subprocess
import sys

import pytest

from tests.lazy_import import lazy_import

torch = lazy_import("torch")
Compute = lazy_import("obygaze_features.backbones.compute", "Compute")
inference = lazy_import("obygaze_features.backbones.compute", "inference")
matmul_precision = lazy_import("obygaze_features.backbones.compute", "matmul_precision")
WARNING_OF_OLDER_INTERFACE = "Please use the new API settings"
"""Of torch 2.9."""
SETTINGS_OF_USERS = """
pass
torch.set_float32_matmul_precision("high")
torch.backends.fp32_precision = "tf32"
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cuda.matmul.fp32_precision = "tf32"
torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = False
"""
"""One a line: none, and by either interface."""
# Each line is run in a fork of its own, since torch never forgets which of its two interfaces was used.
TRY_SETTINGS = """
import os, sys, torch
from obygaze_features.backbones.compute import matmul_precision
backends = torch.backends
places = (backends.cuda.matmul, backends.cudnn.conv, backends.mkldnn.matmul, backends.mkldnn.conv)
def precisions(): return [place.fp32_precision for place in places]
def check_set_and_put_back():
    for tf32 in (False, True):
        before = precisions()
        with matmul_precision(tf32=tf32):
            assert precisions() == (["tf32"] * 2 if tf32 else ["ieee"] * 2) + ["ieee"] * 2, precisions()
        assert precisions() == before, (before, precisions())
for setting in sys.argv[1].strip().splitlines():
    child = os.fork()
    if child == 0:
        try:
            exec(setting)
            check_set_and_put_back()
            exec(setting)  # the user sets it again after us, and while our network runs
            with matmul_precision(tf32=False):
                exec(setting)
            check_set_and_put_back()
            if setting.startswith("torch.backends.fp32_precision"):  # other backends still inherit it
                backends.fp32_precision = "ieee"
                assert precisions() == ["ieee"] * 4, precisions()
        except BaseException as error:
            print(setting, "->", repr(error)[:200], flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, setting
"""


@pytest.mark.long  # in processes of their own
def test_the_precision_set_by_the_user_is_put_back_after_a_network_ran():
    """PyTorch has several ways to set how precisely products are computed; SETTINGS_OF_USERS lists them.

    The script TRY_SETTINGS sets each of them, runs our network, and ends with an error if the network did not
    run with our precision, or if the user's setting is not the same afterwards. It runs in a process of its
    own, as settings cannot be undone, and with warnings as errors, but for one that an older way gives.
    """
    command = [
        sys.executable,
        "-W",
        "error",
        "-W",
        f"ignore:{WARNING_OF_OLDER_INTERFACE}",
        "-c",
        TRY_SETTINGS,
        SETTINGS_OF_USERS,
    ]

    result = subprocess.run(command, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("tf32", [False, True])
def test_a_network_may_use_the_older_interface_while_it_runs(tf32):
    """PyTorch has an older and a newer interface for the precision of products.

    `cudnn.flags` reads the older one, `allow_tf32`, and would raise an error if the two disagreed.
    """
    with matmul_precision(tf32=tf32), torch.backends.cudnn.flags(enabled=False):
        pass


@pytest.mark.filterwarnings(f"ignore:{WARNING_OF_OLDER_INTERFACE}")
def test_products_on_a_cpu_are_in_float32_whatever_the_user_allows():
    """The user sets torch's precision of float32 products to "medium", for which bfloat16 is enough.

    On processors that have bfloat16, torch would use it for products on the CPU then. While a network of ours
    runs (`matmul_precision`), it must not: the product is the same to the last bit as with torch's default.
    `tf32=True` allows the shorter numbers of NVIDIA's GPUs, on which alone it has an effect.
    """
    setting_before = torch.get_float32_matmul_precision()
    torch.manual_seed(0)
    a = torch.randn(64, 256)
    b = torch.randn(256, 64)
    with matmul_precision(tf32=True):
        product_by_default = a @ b

    try:
        torch.set_float32_matmul_precision("medium")
        with matmul_precision(tf32=True):
            product_with_users_setting = a @ b
    finally:
        torch.set_float32_matmul_precision(setting_before)

    assert torch.equal(product_with_users_setting, product_by_default)


def test_a_network_runs_in_float32_inside_an_autocast_of_the_user():
    """Inside `torch.autocast` products are in bfloat16, but for those of our network."""
    compute = Compute(device="cpu")
    matrix = torch.ones(2, 2)

    with torch.autocast("cpu", torch.bfloat16), inference(compute, torch.device("cpu")):
        product = matrix @ matrix

    assert product.dtype == torch.float32
