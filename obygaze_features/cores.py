"""Count the cores that this process may use, and tell whether this machine has a GPU at all."""

import os
import sys
from pathlib import Path

NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # of NVIDIA's driver: a folder each, whoever may use them

DEVICES = Path("/dev")
GPU_DEVICES = ("nvidia[0-9]*", "nvidiactl", "nvmap", "kfd", "dxg")
"""What GPUs are called there: NVIDIA's, those on one chip with a processor, AMD's, Windows' under WSL."""


def no_gpu_here() -> str:
    """Say why this process can have no GPU, without loading what would run on it; empty if it may have one.

    Libraries for networks take seconds to say so.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in {"", "-1", "NoDevFiles"}:
        return "CUDA_VISIBLE_DEVICES hides all GPUs; under Slurm, ask for one with --gres=gpu:1"
    if sys.platform != "linux" or NODE_GPUS.is_dir():
        return ""
    if any(next(DEVICES.glob(name), None) for name in GPU_DEVICES):
        return ""
    return "this machine has no GPU; under Slurm, ask for one with --gres=gpu:1"


def usable_cores(shards: int = 1) -> int:
    """Count the cores that this process may use; of a Slurm task no more than were asked for.

    Slurm binds tasks to their cores only where its site has set that up.

    Parameters
    ----------
    shards
        Into how many the work is divided. One of several that is given some of the node's GPUs
        (CUDA_VISIBLE_DEVICES) takes the same share of its cores, unless a scheduler gave it cores: the others
        are taken to run beside it.
    """
    there = os.cpu_count() or 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    allotted = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
    if allotted.isdecimal():
        return min(cores, int(allotted))
    gpus = len(list(NODE_GPUS.iterdir())) if NODE_GPUS.is_dir() else 0
    given = len([each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()])
    if shards == 1 or cores < there or not 0 < given < gpus:
        return cores
    return max(cores * given // gpus, cores // shards, 1)
