"""Tell machines apart: by their host, the cluster that it belongs to, and their clock."""

import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

MAX_GAP_S: Final = 60.0
"""Clocks that differ by less are not spoken of: a file system may be some seconds late."""


class Machine(NamedTuple):
    """A host and its cluster.

    Attributes
    ----------
    cluster
        Name of the Slurm cluster; empty outside of one.
    host
        Name of the host.
    """

    cluster: str
    host: str


def host_name() -> str:
    """Return the name of this machine; under Slurm the node name, as used by `scontrol show node`."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def this_machine() -> Machine:
    """Return this machine, whose cluster is what Slurm calls it."""
    return Machine(os.environ.get("SLURM_CLUSTER_NAME", ""), host_name())


def clock_problem(folder: Path) -> str:
    """Return a warning if the clock of a file server differs from this machine's; empty if it does not.

    On a disk of the machine itself no difference can be seen, because the machine sets the times of files.

    Parameters
    ----------
    folder
        Folder on the server. A temporary file without a name is written there.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    time_before = time.time()
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(b"now")
        os.fsync(file.fileno())
        time_of_server = os.fstat(file.fileno()).st_mtime
    time_after = time.time()
    # If the clocks agree, the server's time lies between this machine's two times.
    ahead_s = time_before - time_of_server  # this machine's clock is ahead of the server's, if above 0
    behind_s = time_of_server - time_after
    if ahead_s >= MAX_GAP_S:
        difference = f"{ahead_s:.0f} s ahead of"
    elif behind_s >= MAX_GAP_S:
        difference = f"{behind_s:.0f} s behind"
    else:
        return ""
    return (
        f"the clock of {host_name()} is {difference} that of the disk of {folder}: nothing is decided by "
        "clocks, but the times of logs and files do not agree, and servers may refuse what it sends"
    )
