"""Set the precision of torch's products while a network runs, regardless of the process's settings."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from obygaze_features.backbones.compute import Compute

AUTOCAST = {"bfloat16": torch.bfloat16, "float16": torch.float16}
BACKENDS: Any = torch.backends  # parts of it have no types


@contextmanager
def products(*, tf32: bool) -> Iterator[None]:
    """Allow or forbid TF32 in float32 products on CUDA; products on a CPU keep full precision.

    Torch has two interfaces for this. Reading the older one (`allow_tf32`) fails once the newer one
    (`fp32_precision`) was used, as transformers and many notebooks do, so the newer one is used here. On a
    CPU, `torch.set_float32_matmul_precision("medium")` makes oneDNN round to bfloat16.
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
            place.fp32_precision = "none"  # inherit again
            if place.fp32_precision != value:
                place.fp32_precision = value


def autocast(compute: Compute, device: torch.device) -> Any:
    """Return the autocast context for the requested precision; disable autocast for others."""
    dtype = AUTOCAST.get(compute.precision)
    if dtype is not None:
        return torch.autocast(device.type, dtype)
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


@contextmanager
def _older_products(*, tf32: bool) -> Iterator[None]:
    """Do the same with the interface of torch 2.6 to 2.8."""
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
