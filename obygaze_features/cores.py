"""Count the cores that this process may use, and tell whether this machine has a GPU at all."""

import os
import sys
from pathlib import Path

NODE_GPUS = Path("/proc/driver/nvidia/gpus")
"""Folder of NVIDIA's driver with a folder for each GPU of the machine, also for those of other users."""

DEVICES = Path("/dev")
GPU_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvmap", "kfd", "dxg")
"""Names of GPUs in `DEVICES`: NVIDIA's, those on one chip with a processor, AMD's, Windows' under WSL."""


def no_gpu_here() -> str:
    """Return the reason if this process certainly has no GPU; "" if it may have one.

    Only the environment and device files are checked, because importing PyTorch to ask takes seconds.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in {"", "-1", "NoDevFiles"}:
        return "CUDA_VISIBLE_DEVICES hides all GPUs; under Slurm, ask for one with --gres=gpu:1"
    if sys.platform != "linux" or NODE_GPUS.is_dir():
        return ""
    for name in GPU_DEVICES:
        if list(DEVICES.glob(name)):
            return ""
    return "this machine has no GPU; under Slurm, ask for one with --gres=gpu:1"


def usable_cores(shards: int = 1) -> int:
    """Return the number of cores that this process may use.

    In a Slurm task these are at most the cores that the task requested, per task (SLURM_CPUS_PER_TASK), or
    else on the node: not every cluster binds tasks to their cores.

    Parameters
    ----------
    shards
        Number of jobs that share the work. If there are several, and this one sees only some of the node's
        GPUs (CUDA_VISIBLE_DEVICES), the others are assumed to run on the same node. It then uses the same
        share of the cores as of the GPUs, unless a scheduler has limited its cores.
    """
    n_cores_of_node = os.cpu_count() or 1
    n_cores = n_cores_of_node
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        n_cores = len(os.sched_getaffinity(0))

    requested = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
    if requested.isdecimal():
        return min(n_cores, int(requested))

    is_limited_by_scheduler = n_cores < n_cores_of_node
    if shards == 1 or is_limited_by_scheduler:
        return n_cores
    return _cores_of_one_job(n_cores, shards)


def _cores_of_one_job(n_cores: int, shards: int) -> int:
    """Return the number of cores for this job, which shares a node with others that have other GPUs of it.

    It is the same share of the cores as of the GPUs, and at least an equal share among the jobs. It is all
    cores if this process sees none or all of the GPUs, as nothing tells then whether others share the node.
    """
    n_gpus_of_node = len(list(NODE_GPUS.iterdir())) if NODE_GPUS.is_dir() else 0
    visible_gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")  # such as "0,1"
    n_gpus = len([name for name in visible_gpus if name.strip()])
    has_some_gpus = 0 < n_gpus < n_gpus_of_node
    if not has_some_gpus:
        return n_cores
    share_by_gpus = n_cores * n_gpus // n_gpus_of_node
    equal_share = n_cores // shards
    return max(share_by_gpus, equal_share, 1)
