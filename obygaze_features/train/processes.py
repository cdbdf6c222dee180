"""The processes of one training: one alone, or those that torchrun started."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from obygaze_features.errors import TrainError

DEVICES = ("auto", "cpu", "cuda")
WAIT = timedelta(hours=1)  # the longest that processes wait for each other: the first writes states meanwhile


@dataclass(frozen=True, slots=True)
class Processes:
    """Which of how many processes this is; with one, nothing is exchanged."""

    rank: int = 0
    count: int = 1

    def share(self, items: int) -> slice:
        """Return this process's contiguous share of a batch; shares differ by one at most."""
        return slice(self.rank * items // self.count, (self.rank + 1) * items // self.count)

    def gather(self, part: torch.Tensor, items: int) -> torch.Tensor:
        """Put the parts of all processes together, in the order of the items; no gradient passes through."""
        if self.count == 1:
            return part.detach()
        whole = part.new_zeros((items, *part.shape[1:]))
        whole[self.share(items)] = part.detach()
        dist.all_reduce(whole)  # every row is zero in all processes but one, so the sum is exact
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
        """Return whether some process says yes."""
        if self.count == 1:
            return wish
        told = torch.tensor(int(wish), device=device)
        dist.all_reduce(told)
        return bool(told)

    def wait(self) -> None:
        """Wait until all are here."""
        if self.count > 1:
            dist.barrier()


def choose_device(wanted: str) -> torch.device:
    """Choose the device: of several processes on a machine, each takes the GPU of its LOCAL_RANK.

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
    """Join the processes that torchrun started (RANK, WORLD_SIZE); without torchrun there is one."""
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
