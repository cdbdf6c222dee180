"""Define the three named arithmetics (numeric precisions) of training.

`float32` equals the original modules run in float32. `bfloat16` autocasts the towers and keeps weights,
moments and scores in float32. `published` reproduces the original code: CLIP's linear, attention, convolution
and projection weights, their gradients and their moments are float16, without loss scaling. Its updates then
differ from Adam's, because the second moment of small gradients underflows to 0.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import nn

from obygaze_features.backbones.xclip_lsmdc_checkpoint import Architecture, tensors_of
from obygaze_features.backbones.xclip_lsmdc_network import XClipLsmdc

Arithmetic = Literal["float32", "bfloat16", "published"]
ARITHMETICS: tuple[Arithmetic, ...] = ("float32", "bfloat16", "published")

_HALF = re.compile(
    r"clip\.(visual\.)?(transformer\.resblocks\.\d+\.(attn|mlp)\..*|conv1\.weight|proj|text_projection)"
)


def is_half(original: str) -> bool:
    """Return whether the original keeps a tensor in float16."""
    return _HALF.fullmatch(original) is not None


def towers(arithmetic: Arithmetic, device: torch.device) -> AbstractContextManager[Any]:
    """Return the context in which towers and temporal transformer run."""
    return torch.autocast(device.type, torch.bfloat16) if arithmetic == "bfloat16" else nullcontext()


def convert(network: XClipLsmdc, size: Architecture, arithmetic: Arithmetic) -> None:
    """Convert the weights to the data types of an arithmetic, and set the network to compute in them."""
    network.float()
    if arithmetic != "published":
        return
    parameters = dict(network.named_parameters())
    for tensor in tensors_of(size):
        if is_half(tensor.original):
            for name in tensor.port:
                parameters[name].data = parameters[name].data.half()
    for tower in (network.vision.vision_model, network.text.text_model):
        tower.embeddings.register_forward_hook(_to_half)
        for module in tower.modules():
            if isinstance(module, nn.LayerNorm):
                module.register_forward_pre_hook(_to_float)
                module.register_forward_hook(_to_half)


def _to_half(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
    return output.half()


def _to_float(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(value.float() for value in inputs)


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Make CUDA deterministic and disable TF32; a CPU needs neither."""
    if device.type != "cuda":
        yield
        return
    backends: Any = torch.backends
    before = (
        torch.are_deterministic_algorithms_enabled(),
        backends.cuda.matmul.allow_tf32,
        backends.cudnn.allow_tf32,
    )
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before[1:]
