"""Remember in a stage into how many shares jobs divide its clips, and which shares have begun.

Every task of a job array does one share. That all tasks mean the same division, and that no share is
forgotten, is known nowhere else: the first task writes the number, and every other one reads it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from obygaze_features.door import read_bytes
from obygaze_features.errors import StoreError
from obygaze_features.io import write_once

SHARES: Final = "shares"
"""Folder of a stage: the file NUMBER, and a file for every share that has begun, called by its number."""

NUMBER: Final = "number"


def number_of_shares(stage: Path) -> int | None:
    """Read into how many shares a stage is divided; None if no share has begun, or there is no stage.

    Raises
    ------
    StoreError
        If the file does not hold a number.
    """
    file = stage / SHARES / NUMBER
    if not file.exists():
        return None
    text = read_bytes(file).strip()
    if not text.isdigit() or int(text) == 0:
        raise StoreError(f"{file}: expected the number of shares; delete the folder {SHARES} and begin again")
    return int(text)


def check_shares(stage: Path, shard: tuple[int, int]) -> None:
    """Refuse a share (i, n) of another division than the stage has; anything goes where none has begun.

    Raises
    ------
    StoreError
        If the stage is divided into another number of shares.
    """
    n_shares = number_of_shares(stage)
    n_here = shard[1]
    if n_shares is not None and n_here not in (1, n_shares):  # all clips at once is no division
        raise StoreError(
            f"{stage}: its clips are divided into {n_shares} shares, 0 to {n_shares - 1}, and this is share "
            f"{shard[0]} of {n_here}: clips would be done twice or never. Give --shard i/{n_shares}, or "
            f"number the job array 0 to {n_shares - 1}; to divide what is left anew, delete "
            f"{stage / SHARES} when no task runs"
        )


def begin_share(stage: Path, shard: tuple[int, int]) -> None:
    """Note that a share (i, n) has begun; the first one decides into how many shares the stage is divided.

    Raises
    ------
    StoreError
        If the stage is divided into another number of shares.
    """
    (stage / SHARES).mkdir(exist_ok=True)
    with suppress(FileExistsError):
        write_once(stage / SHARES / NUMBER, f"{shard[1]}\n".encode())
    check_shares(stage, shard)
    (stage / SHARES / str(shard[0])).touch()


def shares_not_begun(stage: Path) -> list[int]:
    """List the shares of a stage that no task has begun; empty where it is not divided."""
    number = number_of_shares(stage) or 0
    return [share for share in range(number) if not (stage / SHARES / str(share)).exists()]


def shown_shares(shares: list[int]) -> str:
    """Write numbers of shares as Slurm reads them: `2,4-7`."""
    runs: list[list[int]] = []
    for share in shares:
        if runs and share == runs[-1][-1] + 1:
            runs[-1].append(share)
        else:
            runs.append([share])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
