"""Fix the precision of torch's products while a network runs, whatever the rest of the process has set."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from obygaze_features.backbones.compute import Compute

AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}
BACKENDS: Any = torch.backends  # parts of it have no types


@contextmanager
def products(*, tf32: bool) -> Iterator[None]:
    """Decide whether float32 products on CUDA may drop mantissa bits; those of a CPU never may.

    Torch has two interfaces for this and refuses to answer by the older one (`allow_tf32`) once anybody used
    the newer one (`fp32_precision`), as its documentation, transformers and many notebooks do; so the newer
    one is used. On a CPU `torch.set_float32_matmul_precision("medium")` would have oneDNN round to bfloat16.
    """
    if not hasattr(BACKENDS.cudnn, "conv"):  # torch 2.6 to 2.8
        with _older_products(tf32=tf32):
            yield
        return
    on_cuda = (BACKENDS.cuda.matmul, BACKENDS.cudnn.conv)
    places = (*on_cuda, BACKENDS.mkldnn.matmul, BACKENDS.mkldnn.conv)
    before = [place.fp32_precision for place in places]
    for place in places:
        place.fp32_precision = "tf32" if tf32 and place in on_cuda else "ieee"
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.fp32_precision = "none"  # which inherits: what was inherited goes on being so
            if place.fp32_precision != value:
                place.fp32_precision = value


def autocast(compute: Compute, device: torch.device) -> Any:
    """Let torch compute in half precision where that was asked for, and in no other precision."""
    dtype = AUTOCAST.get(compute.precision)
    if dtype is not None:
        return torch.autocast(device.type, dtype)
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


@contextmanager
def _older_products(*, tf32: bool) -> Iterator[None]:
    """Do the same by the interface of torch 2.6 to 2.8."""
    matmul, cudnn = BACKENDS.cuda.matmul, BACKENDS.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, torch.get_float32_matmul_precision()
    matmul.allow_tf32, cudnn.allow_tf32 = tf32, tf32
    if before[2] == "medium":
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[2])
        matmul.allow_tf32, cudnn.allow_tf32 = before[:2]
