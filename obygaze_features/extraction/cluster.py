"""Connect to a Ray cluster: the one at RAY_ADDRESS, or a new one on this machine."""

import logging
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

__all__ = ["cluster", "ray"]  # whoever needs Ray imports it from here, so that it finds what is set here

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # once ours is gone, no call may start or join another one
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # the C++ part writes to stderr as it likes

import ray
import ray.data

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.pool import usable_cores

# Hundreds of prepared clips. Ray would take 30 % of the machine, of which a job on a shared node owns a part.
OBJECT_STORE_BYTES = 2_000_000_000
LONGEST_FOLDER = 40  # Ray's sockets lie up to 60 characters below it, and AF_UNIX allows 107
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


@contextmanager
def cluster(workers: int | None) -> Iterator[None]:
    """Be connected to a cluster: RAY_ADDRESS's, or one that is started here and ends with this context.

    Nobody else's is ever joined. Whatever Ray prints goes to stderr.

    Parameters
    ----------
    workers
        Cores of a cluster of our own, None for all that this process may use. Its GPUs are those of
        CUDA_VISIBLE_DEVICES.

    Raises
    ------
    ExtractError
        If there is no cluster at RAY_ADDRESS.
    """
    address = os.environ.get("RAY_ADDRESS")
    folder = None if address else tempfile.mkdtemp(prefix="oby", dir=_short_folder())
    with redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about changes in future versions of Ray
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        try:
            with _signal_handlers_kept():
                if address:
                    _join(address)
                else:
                    # Without an address Ray would join the latest cluster on this machine, whose ever it is.
                    ray.init(
                        address="local",
                        num_cpus=workers or usable_cores(),
                        include_dashboard=False,
                        object_store_memory=OBJECT_STORE_BYTES,
                        _temp_dir=folder,
                        **QUIET,
                    )
            yield
        finally:
            ray.shutdown()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


def _join(address: str) -> None:
    try:
        ray.init(address=address, **QUIET)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ExtractError(
            f"RAY_ADDRESS={address}: no Ray cluster can be joined there ({str(error).splitlines()[0]}); "
            "is RAY_AUTH_TOKEN that of the cluster? Unset RAY_ADDRESS to start one on this machine"
        ) from error


def _short_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= LONGEST_FOLDER else "/tmp"  # noqa: S108 - the folder made in it is ours


@contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Put back the handlers that Ray replaces by its own."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            with suppress(ValueError):  # not the main thread: Ray replaced nothing
                signal.signal(each, handler)
