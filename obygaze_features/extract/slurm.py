"""What Slurm says of the job that this process is."""

from collections.abc import Mapping

from obygaze_features.extract.errors import ExtractError


def array_shard(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Give the shard (i, n) that a task of a job array is to do; None outside of a job array.

    Raises
    ------
    ExtractError
        If the array's indices are not evenly spaced: which shard is whose cannot be told then.
    """
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT")
    if not all(name in environment for name in names):
        return None
    task, count = (int(environment[name]) for name in names)
    step = int(environment.get("SLURM_ARRAY_TASK_STEP", "1"))
    first = int(environment.get("SLURM_ARRAY_TASK_MIN", "0"))
    last = int(environment.get("SLURM_ARRAY_TASK_MAX", first + step * (count - 1)))
    if last - first != step * (count - 1) or (task - first) % step:
        raise ExtractError(
            f"task {task} of a job array with {count} tasks from {first} to {last} cannot tell its shard: "
            "say it, as in --shard 3/8, or number the array from 0 without gaps, as in sbatch --array=0-7"
        )
    return (task - first) // step, count
