"""Write down in a stage into how many shares jobs divide its clips, which shares have begun, and where.

Share (i, n) is the pieces k of the stage with k % n == i; the option for it is --shard. Every task of a job
array does one share. The first task writes the number of shares into the stage, all others read it, and each
leaves a note of its share. So all tasks use the same division, no share is forgotten, and two clusters do not
do the same share.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from obygaze_features.errors import StoreError
from obygaze_features.io import write_once, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.machine import Machine
from obygaze_features.untrusted import read_bytes

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


def check_shares(stage: Path, share: tuple[int, int], machine: Machine) -> None:
    """Refuse a share if the stage is divided into another number of shares, or another cluster has begun it.

    The first share that begins decides the number; until then every share is allowed. Share (0, 1), which is
    all clips, is always allowed.

    Parameters
    ----------
    stage
        The staging folder.
    share
        The share (i, n): number i of n.
    machine
        Where the share is to be done.

    Raises
    ------
    StoreError
        If the stage is divided into another number of shares, or a task of another cluster has begun this
        one and not finished it.
    """
    n_in_stage = number_of_shares(stage)
    number, n_shares = share
    if n_in_stage is None or n_shares == 1:
        return
    if n_shares != n_in_stage:
        raise StoreError(
            f"{stage}: its clips are divided into {n_in_stage} shares, 0 to {n_in_stage - 1}, and this is "
            f"share {number} of {n_shares}: clips would be done twice or never. "
            f"Give --shard i/{n_in_stage}, or number the job array 0 to {n_in_stage - 1}; "
            f"to divide what is left anew, delete {stage / SHARES} when no task runs"
        )
    elsewhere = shares_elsewhere(stage, machine)
    if number in elsewhere:
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
    noun = "share" if len(elsewhere) == 1 else "shares"
    shares = f"{noun} {shown_shares(list(elsewhere))} of {n_shares}"

    for_this_cluster = [number for number in range(n_shares) if number not in elsewhere]
    advice = "leave them to that cluster"
    if for_this_cluster:
        advice = f"submit the others here, --array={shown_shares(for_this_cluster)}"

    first = min(elsewhere)
    note = elsewhere[first]
    return (
        f"{stage}: cluster {note.cluster} (node {note.host}) has begun {shares}, and not finished; cluster "
        f"{machine.cluster} would do the same again: {advice}. If no task runs there any more, delete the "
        f"files with these numbers in {stage / SHARES}, such as {first}"
    )


def begin_share(stage: Path, share: tuple[int, int], machine: Machine) -> None:
    """Note in a stage that a share of its clips has begun, and on which cluster.

    The first share that begins decides into how many shares the stage is divided. Several tasks may begin at
    the same time: of each note the first writer wins (`write_once`), and who comes later is checked against
    it.

    Parameters
    ----------
    stage
        The staging folder.
    share
        The share (i, n): number i of n.
    machine
        Where the share is done.

    Raises
    ------
    StoreError
        If the stage is divided into another number of shares, or a task of another cluster has begun this
        one and not finished it.
    """
    number, n_shares = share
    (stage / SHARES).mkdir(exist_ok=True)
    with suppress(FileExistsError):  # a share has begun before, and its number of shares stays
        write_once(stage / SHARES / NUMBER, f"{n_shares}\n".encode())
    check_shares(stage, share, machine)

    note_file = stage / SHARES / str(number)
    note = _note_bytes(machine)
    try:
        write_once(note_file, note)
    except FileExistsError:
        # The share was begun before. A task of another cluster may have begun it since the check above, so
        # that it is checked again. Otherwise this task goes on with the share, and says so in the note.
        check_shares(stage, share, machine)
        write_whole(note_file, note)


def finish_share(stage: Path, share: tuple[int, int], machine: Machine) -> None:
    """Note in a stage that nothing of a share (number, number of shares) of its clips is left to do."""
    number, _n_shares = share
    write_whole(stage / SHARES / str(number), _note_bytes(machine, done=True))


def _note_bytes(machine: Machine, *, done: bool = False) -> bytes:
    """Return the content of a share's note: where it is done, and whether it is finished."""
    note = ShareNote(machine.cluster, machine.host, done)
    return json_bytes(msgspec.to_builtins(note))


def shares_elsewhere(stage: Path, machine: Machine) -> dict[int, ShareNote]:
    """Return the shares of a stage that another cluster has begun and not finished: number -> note.

    Empty if this cluster has no name, as outside of Slurm. A note without the name of a cluster counts as one
    of this cluster.

    Parameters
    ----------
    stage
        The staging folder.
    machine
        This machine, with the name of its cluster.
    """
    if not machine.cluster:
        return {}
    elsewhere = {}
    for number, note in _notes(stage):
        is_of_this_cluster = note.cluster in {"", machine.cluster}
        if not is_of_this_cluster and not note.done:
            elsewhere[number] = note
    return elsewhere


def _notes(stage: Path) -> Iterator[tuple[int, ShareNote]]:
    """Yield the number of each share that has begun, in order, with the note that its last task has left.

    Raises
    ------
    StoreError
        A note cannot be read.
    """
    n_shares = number_of_shares(stage) or 0  # none before the first share
    for number in range(n_shares):
        file = stage / SHARES / str(number)
        if not file.exists():
            continue
        try:
            yield number, msgspec.json.decode(read_bytes(file), type=ShareNote)
        except msgspec.DecodeError as error:
            raise StoreError(f"{file}: expected the note of a share; delete it ({error})") from None


def shares_not_begun(stage: Path) -> list[int]:
    """List the shares of a stage that no task has begun; empty where it is not divided."""
    n_shares = number_of_shares(stage) or 0
    return [number for number in range(n_shares) if not (stage / SHARES / str(number)).exists()]


def shown_shares(shares: list[int]) -> str:
    """Write rising numbers as Slurm's --array reads them: `2,4-7` for 2, 4, 5, 6 and 7."""
    runs: list[list[int]] = []  # of consecutive numbers
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
