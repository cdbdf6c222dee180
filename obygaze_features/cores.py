"""Count the cores that this process may use."""

import os
from pathlib import Path

NODE_GPUS = Path("/proc/driver/nvidia/gpus")  # of NVIDIA's driver: a folder each, whoever may use them


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
