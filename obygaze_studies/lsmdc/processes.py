"""Coordinate the processes of a training: a single one, or those started by torchrun."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from obygaze_studies.errors import TrainError

DEVICES = ("auto", "cpu", "cuda")
WAIT = timedelta(hours=1)  # timeout between processes: process 0 writes states meanwhile


@dataclass(frozen=True, slots=True)
class Processes:
    """Rank and number of processes; with one process, nothing is exchanged."""

    rank: int = 0
    count: int = 1

    def share(self, items: int) -> slice:
        """Return this process's contiguous share of a batch; share sizes differ by at most one."""
        return slice(self.rank * items // self.count, (self.rank + 1) * items // self.count)

    def gather(self, part: torch.Tensor, items: int) -> torch.Tensor:
        """Concatenate the parts of all processes, in the order of the items, without gradient."""
        if self.count == 1:
            return part.detach()
        whole = part.new_zeros((items, *part.shape[1:]))
        whole[self.share(items)] = part.detach()
        dist.all_reduce(whole)  # each row is non-zero in one process only, so the sum is exact
        return whole

    def add_up(self, tensors: Iterable[torch.Tensor]) -> None:
        """Replace each tensor by its sum over the processes."""
        if self.count > 1:
            for tensor in tensors:
                dist.all_reduce(tensor)

    def take_first(self, tensors: Iterable[torch.Tensor]) -> None:
        """Replace each tensor by that of process 0."""
        if self.count > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def any(self, wish: bool, device: torch.device) -> bool:
        """Return whether `wish` is true in any process."""
        if self.count == 1:
            return wish
        told = torch.tensor(int(wish), device=device)
        dist.all_reduce(told)
        return bool(told)

    def wait(self) -> None:
        """Wait for all processes (barrier)."""
        if self.count > 1:
            dist.barrier()


def choose_device(wanted: str) -> torch.device:
    """Choose the device; with several processes per machine, each takes the GPU of its LOCAL_RANK.

    Raises
    ------
    TrainError
        If there is no such device.
    """
    if wanted not in DEVICES:
        raise TrainError(f"device '{wanted}': expected {', '.join(DEVICES)}")
    gpus = torch.cuda.device_count()
    if wanted == "cpu" or (wanted == "auto" and not gpus):
        return torch.device("cpu")
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= gpus:
        raise TrainError(
            f"--device {wanted}: process {local} of this machine has no GPU, torch sees {gpus}; "
            "start as many processes as there are GPUs, or use --device cpu"
        )
    return torch.device("cuda", local)


@contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """Join the processes started by torchrun (RANK, WORLD_SIZE); without torchrun there is one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=WAIT)
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()
