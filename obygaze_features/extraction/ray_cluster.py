"""Join a Ray cluster, or start one on this machine. Only the process that leads the cluster imports this.

Ray may end its process at any time with `_exit` and without a message, prints from threads of its own and
replaces signal handlers. So it never runs in the process that writes the stage and talks to the user.
"""

import logging
import os
import signal
from typing import Any

# Ray is imported from this module, so that the settings below apply.
__all__ = ["join_error_message", "join_or_start", "ray"]

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports to the developers of Ray
os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # no call may start or join another cluster
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # the C++ part then prints only why it ends
# Seconds after which Ray ends a process that has lost the head [60 without this].
os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "30")
# Ray gives its workers nice 15: beside four busy processes on two cores they wait for minutes.
os.environ.setdefault("RAY_worker_niceness", "0")

import ray
import ray.data

from obygaze_features.cores import usable_cores
from obygaze_features.errors import ExtractError

# Holds hundreds of prepared clips. Ray's default, 30 % of the machine, is too much for a job that shares it.
OBJECT_STORE_BYTES = 2_000_000_000
MAX_STARTS = 5
"""Attempts to start a cluster: Ray gives up one that is not up after 30 s, which a busy machine may need."""
START_TIMED_OUT = "timed out during startup"
"""Words of Ray's error when it gives up."""
QUIET_SETTINGS: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
"""Settings of `ray.init` under which nothing but errors is printed."""


def join_or_start(address: str | None, workers: int | None, folder: str | None) -> str:
    """Join the Ray cluster at an address, or start one on this machine; return the address of its head.

    The head is the cluster's first node. SIGINT and SIGTERM are ignored from then on, because the main
    process kills this process at the end.

    Parameters
    ----------
    address
        HOST:PORT of the head; None starts a cluster that ends with the calling thread.
    workers
        Cores of a cluster started here; None uses all cores available to this process. Its GPUs are those in
        CUDA_VISIBLE_DEVICES.
    folder
        Folder of a cluster started here: for its sockets and logs.

    Raises
    ------
    ExtractError
        If the cluster refuses the connection, or none can be started.
    """
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors that it logs are also raised
    if address:
        settings: dict[str, Any] = {"address": address}
    else:
        # Without an address Ray would join the latest cluster on this machine, even another user's.
        settings = {
            "address": "local",
            "num_cpus": workers or usable_cores(),
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_temp_dir": folder,
        }

    for attempt in range(1, MAX_STARTS + 1):
        try:
            ray.init(**settings, **QUIET_SETTINGS)
            break
        except Exception as error:
            # Only the start of a cluster on this machine that took too long is tried again.
            took_too_long = START_TIMED_OUT in str(error)
            is_own_cluster = not address
            may_try_again = took_too_long and is_own_cluster and attempt < MAX_STARTS
            if not may_try_again:
                raise ExtractError(join_error_message(address, error)) from error
            ray.shutdown()  # the processes that Ray has started already end with this process

    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop_signal, signal.SIG_IGN)
    address_of_head: str = ray.get_runtime_context().gcs_address
    return address_of_head


def join_error_message(address: str | None, error: Exception) -> str:
    """Return the message for a Ray cluster that could not be joined, or not be started on this machine.

    Parameters
    ----------
    address
        Address of the cluster that could not be joined; None if one could not be started.
    error
        Ray's error, which is shown in one line.
    """
    reason = " ".join(str(error).split()) or type(error).__name__  # the class if the error has no text
    if address is None:
        return f"no Ray cluster could be started on this machine: {reason}"
    if "Version mismatch" in reason:
        return f"the Ray cluster at {address} runs other versions than this process: {reason}"
    return (
        f"RAY_ADDRESS={address}: no Ray cluster can be joined there ({reason}); "
        "is RAY_AUTH_TOKEN that of the cluster? Unset RAY_ADDRESS to start one on this machine"
    )
