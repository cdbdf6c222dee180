"""Write down in a stage into how many shares jobs divide its clips, which shares have begun, and where.

Every task of a job array does one share. The first task writes the number of shares into the stage, all
others read it, and each leaves a note of its share. So all tasks use the same division, no share is
forgotten, and two clusters do not do the same share.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from obygaze_features.door import read_bytes
from obygaze_features.errors import StoreError
from obygaze_features.io import write_once, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.machine import Machine

SHARES: Final = "shares"
"""Folder of a stage: the file NUMBER, and for every share that has begun a file, named by its number."""

NUMBER: Final = "number"
"""File with the number of shares."""


class ShareNote(msgspec.Struct, frozen=True):
    """Note of the last task that worked on a share.

    Attributes
    ----------
    cluster, host
        Cluster and node that it ran on.
    done
        Whether nothing of the share is left to do.
    """

    cluster: str
    host: str
    done: bool = False


def number_of_shares(stage: Path) -> int | None:
    """Read into how many shares the clips of a stage are divided, one for each task of a job array.

    None if no share has begun, or there is no stage.

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


def check_shares(stage: Path, shard: tuple[int, int], machine: Machine) -> None:
    """Refuse a share if the stage is divided into another number of shares, or another cluster has begun it.

    The first share that begins decides the number; until then every share is allowed.

    Parameters
    ----------
    stage
        The staging folder.
    shard
        The share (i, n): number i of n.
    machine
        Where the share is to be done.

    Raises
    ------
    StoreError
        If the stage is divided into another number of shares, or a task of another cluster has begun this
        one and not finished it.
    """
    n_shares = number_of_shares(stage)
    share, n_here = shard
    if n_shares is None or n_here == 1:  # all clips at once is no division
        return
    if n_here != n_shares:
        raise StoreError(
            f"{stage}: its clips are divided into {n_shares} shares, 0 to {n_shares - 1}, and this is share "
            f"{share} of {n_here}: clips would be done twice or never. Give --shard i/{n_shares}, or "
            f"number the job array 0 to {n_shares - 1}; to divide what is left anew, delete "
            f"{stage / SHARES} when no task runs"
        )
    elsewhere = shares_elsewhere(stage, machine)
    if share in elsewhere:
        raise StoreError(other_cluster_message(stage, elsewhere, machine))


def other_cluster_message(stage: Path, elsewhere: dict[int, ShareNote], machine: Machine) -> str:
    """Return a message that another cluster does some of the shares, with advice what to run on this one.

    Parameters
    ----------
    stage
        The staging folder.
    elsewhere
        Shares that another cluster does, as `shares_elsewhere` returns them; at least one.
    machine
        Where the message is shown.
    """
    n_shares = number_of_shares(stage) or 0
    free = [share for share in range(n_shares) if share not in elsewhere]
    advice = "leave them to that cluster"
    if free:
        advice = f"submit the others here, --array={shown_shares(free)}"
    noun = "share" if len(elsewhere) == 1 else "shares"
    shares = f"{noun} {shown_shares(list(elsewhere))} of {n_shares}"
    first, note = next(iter(elsewhere.items()))
    return (
        f"{stage}: cluster {note.cluster} (node {note.host}) has begun {shares}, and not finished; cluster "
        f"{machine.cluster} would do the same again: {advice}. If no task runs there any more, delete the "
        f"files with these numbers in {stage / SHARES}, such as {first}"
    )


def begin_share(stage: Path, shard: tuple[int, int], machine: Machine) -> None:
    """Note that a share (i, n) has begun; the first one decides into how many shares the stage is divided.

    Raises
    ------
    StoreError
        As `check_shares` does.
    """
    share, n_shares = shard
    (stage / SHARES).mkdir(exist_ok=True)
    with suppress(FileExistsError):
        write_once(stage / SHARES / NUMBER, f"{n_shares}\n".encode())
    check_shares(stage, shard, machine)
    file = stage / SHARES / str(share)
    note = _note_bytes(machine)
    try:
        write_once(file, note)
    except FileExistsError:
        check_shares(stage, shard, machine)  # another cluster may have been faster
        write_whole(file, note)


def finish_share(stage: Path, shard: tuple[int, int], machine: Machine) -> None:
    """Note that nothing of a share (i, n) is left to do."""
    share, _ = shard
    write_whole(stage / SHARES / str(share), _note_bytes(machine, done=True))


def _note_bytes(machine: Machine, *, done: bool = False) -> bytes:
    """Return the content of a share's note: where it is done, and whether it is finished."""
    return json_bytes(msgspec.to_builtins(ShareNote(machine.cluster, machine.host, done)))


def shares_elsewhere(stage: Path, machine: Machine) -> dict[int, ShareNote]:
    """Return the shares that another cluster has begun and not finished: number -> note.

    Empty if this cluster has no name, as outside of Slurm; notes without a name count as those of this
    cluster.
    """
    if not machine.cluster:
        return {}
    ours = {"", machine.cluster}
    return {share: note for share, note in _notes(stage) if note.cluster not in ours and not note.done}


def _notes(stage: Path) -> Iterator[tuple[int, ShareNote]]:
    """Yield the shares that have begun, in order, each with its note."""
    for share in range(number_of_shares(stage) or 0):
        file = stage / SHARES / str(share)
        if not file.exists():
            continue
        try:
            yield share, msgspec.json.decode(read_bytes(file), type=ShareNote)
        except msgspec.DecodeError as error:
            raise StoreError(f"{file}: expected the note of a share; delete it ({error})") from None


def shares_not_begun(stage: Path) -> list[int]:
    """List the shares of a stage that no task has begun; empty where it is not divided."""
    number = number_of_shares(stage) or 0
    return [share for share in range(number) if not (stage / SHARES / str(share)).exists()]


def shown_shares(shares: list[int]) -> str:
    """Return rising numbers of shares as text that Slurm reads: `2,4-7`."""
    runs: list[list[int]] = []
    for share in shares:
        if runs and share == runs[-1][-1] + 1:
            runs[-1].append(share)
        else:
            runs.append([share])
    shown_runs = []
    for run in runs:
        first = run[0]
        last = run[-1]
        shown_runs.append(str(first) if first == last else f"{first}-{last}")
    return ",".join(shown_runs)
