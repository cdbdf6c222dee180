"""Define where and how a training computes: processes, device, and three named arithmetics.

A single process, or those started by torchrun, share a batch. Of the arithmetics (numeric precisions),
`float32` equals the original modules run in float32. `bfloat16` autocasts the towers and keeps weights,
moments and scores in float32. `published` reproduces the original code: CLIP's linear, attention, convolution
and projection weights, their gradients and their moments are float16, without loss scaling. Its updates then
differ from Adam's, because the second moment of small gradients underflows to 0.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn

from obygaze_features.backbones import Compute, LsmdcFormat, matmul_precision

LONGEST_WAIT = timedelta(hours=1)
"""How long processes wait for each other; process 0 may be writing a state meanwhile."""

Arithmetic = Literal["float32", "bfloat16", "published"]
ARITHMETICS: tuple[Arithmetic, ...] = ("float32", "bfloat16", "published")
_HALF_TENSORS = re.compile(
    r"clip\.(visual\.)?(transformer\.resblocks\.\d+\.(attn|mlp)\..*|conv1\.weight|proj|text_projection)"
)
"""Names of the tensors that the original code keeps in float16."""


@dataclass(frozen=True, slots=True)
class Processes:
    """Rank and number of processes; with one process, nothing is exchanged."""

    rank: int = 0
    count: int = 1

    def share(self, n_items: int) -> slice:
        """Return this process's contiguous share of `n_items`; the sizes of shares differ by at most one."""
        return slice(self.rank * n_items // self.count, (self.rank + 1) * n_items // self.count)

    def gather(self, part: torch.Tensor, n_items: int) -> torch.Tensor:
        """Concatenate the parts of all processes to a tensor [n_items, ...], without gradient.

        `part` has the rows of this process's share; every process must call this, and gets the same tensor.
        """
        if self.count == 1:
            return part.detach()
        gathered = part.new_zeros((n_items, *part.shape[1:]))
        gathered[self.share(n_items)] = part.detach()
        dist.all_reduce(gathered)  # each row is non-zero in one process only, so the sum is exact
        return gathered

    def sum_in_place(self, tensors: Iterable[torch.Tensor]) -> None:
        """Overwrite each tensor with its sum over the processes; every process must call this."""
        if self.count > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def copy_from_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Overwrite each tensor with that of process 0; every process must call this."""
        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def any(self, flag: bool, device: torch.device) -> bool:
        """Return whether a flag is true in at least one process; every process must call this.

        `device` is where this process computes; numbers are exchanged between the processes' devices.
        """
        n_true = torch.tensor(int(flag), device=device)
        self.sum_in_place([n_true])
        return bool(n_true)

    def wait(self) -> None:
        """Wait for all processes (barrier)."""
        if self.count > 1:
            dist.barrier()


def choose_device(name: str) -> torch.device:
    """Choose the device; with several processes per machine, each takes the GPU of its LOCAL_RANK.

    Raises
    ------
    BackboneError
        If there is no such device.
    """
    device = Compute(name).torch_device()
    names_one_gpu = ":" in name  # as in cuda:1
    if device.type == "cpu" or names_one_gpu:
        return device
    local_rank = os.environ.get("LOCAL_RANK", "0")
    return Compute(f"cuda:{local_rank}").torch_device()


@contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that torchrun started, for the time of the block; without torchrun there is one.

    torchrun sets RANK and WORLD_SIZE, by which the processes find each other. They exchange tensors by NCCL
    if they compute on GPUs, else by Gloo.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if is_cuda else "gloo", timeout=LONGEST_WAIT)
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()


def is_half(original_name: str) -> bool:
    """Return whether the original code keeps a tensor in float16; `original_name` is its name there."""
    return _HALF_TENSORS.fullmatch(original_name) is not None


def tower_precision(arithmetic: Arithmetic, device: torch.device) -> AbstractContextManager[Any]:
    """Return the context manager that sets the precision in which towers and temporal transformer run.

    It is bfloat16 autocast for that arithmetic, and nothing for the others.
    """
    if arithmetic == "bfloat16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def convert(network: Any, size: LsmdcFormat, arithmetic: Arithmetic) -> None:
    """Convert the weights to the data types of an arithmetic, and set the network to compute in them.

    All weights are float32, except in the published arithmetic. There most of CLIP's weights are float16
    (`is_half`), and its towers compute in float16. Their layer norms and embeddings keep float32 weights, and
    hooks convert what goes in and comes out.

    Parameters
    ----------
    network
        The LSMDC X-CLIP, which is changed in place.
    size
        Its format, which knows the original names of the tensors.
    arithmetic
        The arithmetic.
    """
    network.float()
    if arithmetic != "published":
        return
    for name, value in network.named_parameters():
        if is_half(size.original_name(name)):
            value.data = value.data.half()
    for tower in (network.vision.vision_model, network.text.text_model):
        tower.embeddings.register_forward_hook(_to_half)
        for module in tower.modules():
            if isinstance(module, nn.LayerNorm):
                module.register_forward_pre_hook(_to_float)  # computes in float32
                module.register_forward_hook(_to_half)


def _to_half(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
    """Convert the output of a module to float16 (a forward hook)."""
    return output.half()


def _to_float(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Convert the inputs of a module to float32 (a forward pre-hook)."""
    return tuple(value.float() for value in inputs)


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """Disable TF32 and, on CUDA, use deterministic algorithms while the block runs.

    An operation without a deterministic algorithm gives a warning, or an error if the caller had asked for
    deterministic algorithms before.
    """
    was_deterministic = torch.are_deterministic_algorithms_enabled()
    is_cuda = device.type == "cuda"
    torch.use_deterministic_algorithms(mode=was_deterministic or is_cuda, warn_only=not was_deterministic)
    try:
        with matmul_precision(tf32=False):
            yield
    finally:
        torch.use_deterministic_algorithms(mode=was_deterministic)
