"""Connect to a Ray cluster: the one at RAY_ADDRESS, or a new one on this machine."""

import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Self

__all__ = [
    "Link",
    "cluster",
    "ray",
]  # import Ray from this module, so that the settings below apply

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports to the developers of Ray
os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"  # no call may start or join another cluster
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # limit what the C++ part writes to stderr

import ray
import ray.data

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.pool import POLL_S
from obygaze_features.io import usable_cores

# Holds hundreds of prepared clips. Ray's default, 30 % of the machine, is too much for a job that shares it.
OBJECT_STORE_BYTES = 2_000_000_000
LONGEST_FOLDER = 40  # Ray's socket paths add up to 60 characters; AF_UNIX allows 107
QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
ANSWER_S = 10.0  # until the head accepts a connection
JOIN_S = 50.0  # until this process has joined; every failure is reported within a minute
LEAVE_S = 15.0
LOST_S = 15.0  # without an answer; after 60 s Ray would end this process without a message
NOISE = b"Set ray log level from environment variable"


@contextmanager
def cluster(workers: int | None, stopped: Callable[[], bool] = lambda: False) -> "Iterator[Link | None]":
    """Connect to the cluster at RAY_ADDRESS, or start one that ends with this context.

    No other cluster is joined. Ray's output goes to stderr. The signal handlers of this process are kept.

    Parameters
    ----------
    workers
        Cores of a cluster started here; None uses all cores available to this process. Its GPUs are those in
        CUDA_VISIBLE_DEVICES.
    stopped
        Polled while the cluster starts; once true, the context yields None.

    Raises
    ------
    ExtractError
        If no cluster answers at RAY_ADDRESS, or it refuses the connection.
    """
    address = os.environ.get("RAY_ADDRESS")
    folder = None if address else tempfile.mkdtemp(prefix="oby", dir=_short_folder())
    with redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about changes in future versions of Ray
        logging.getLogger("ray").setLevel(logging.ERROR)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors that it logs are also raised
        if address:
            _reach(address)
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
        try:
            with Link(address or "this machine", settings) as link:
                yield link if link.wait(stopped) else None
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


class Link:
    """Connection to a cluster, held by a thread of its own.

    In the main thread Ray would replace the signal handlers. Ray stops its processes when the thread that
    started them ends.
    """

    def __init__(self, address: str, settings: dict[str, Any]) -> None:
        self.address = address
        self._settings = settings
        self._error: Exception | None = None
        self._ready, self._ended = threading.Event(), threading.Event()
        self._lost = threading.Event()
        self._holder = threading.Thread(target=self._hold, daemon=True)
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._holder.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._holder.join(LEAVE_S if self._ready.is_set() and not self.lost() else 0)

    def lost(self) -> bool:
        """Whether the head of the cluster has not answered for a while."""
        return self._lost.is_set()

    def wait(self, stopped: Callable[[], bool]) -> bool:
        """Wait until the cluster is ready; return False if a stop was requested first."""
        deadline = time.monotonic() + JOIN_S
        with _less_noise():
            while not self._ready.wait(POLL_S):
                if stopped():
                    return False
                if time.monotonic() > deadline:
                    raise ExtractError(
                        f"the Ray cluster at {self.address} did not let this process in within "
                        f"{JOIN_S:.0f} s; `ray status` on its first node shows what it is about"
                    )
        if self._error is not None:
            raise ExtractError(self._refusal(self._error)) from self._error
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError):  # not the main thread
                signal.signal(number, signal.getsignal(number))  # Ray's C++ part replaced the C handler
        self._watcher.start()
        return True

    def _hold(self) -> None:
        try:
            ray.init(**self._settings, **QUIET)
        except Exception as error:  # noqa: BLE001 - raised again in the main thread
            self._error = error
        self._ready.set()
        self._ended.wait()
        with suppress(Exception):
            ray.shutdown()

    def _watch(self) -> None:
        gcs: str = ray.get_runtime_context().gcs_address
        answered = time.monotonic()
        while not self._ended.wait(2.0):
            if _answers(gcs):
                answered = time.monotonic()
            elif time.monotonic() - answered > LOST_S:
                self._lost.set()
                return

    def _refusal(self, error: Exception) -> str:
        words = " ".join(str(error).split()) or type(error).__name__
        if "Version mismatch" in words:
            return f"the Ray cluster at {self.address} runs other versions than this process: {words}"
        if self._settings["address"] == "local":
            return f"no Ray cluster could be started on this machine: {words}"
        return (
            f"RAY_ADDRESS={self.address}: no Ray cluster can be joined there ({words}); "
            "is RAY_AUTH_TOKEN that of the cluster? Unset RAY_ADDRESS to start one on this machine"
        )


def _reach(address: str) -> None:
    """Refuse an address that does not answer; Ray would wait for it forever."""
    if address.startswith("ray://"):
        raise ExtractError(
            f"RAY_ADDRESS={address}: this is for clients outside of the cluster. Run this command on a node "
            "of the cluster, with RAY_ADDRESS=HOST:PORT of its first node"
        )
    host, _, port = address.rpartition(":")
    if port.isdecimal() and (obstacle := _obstacle(host, int(port))):
        raise ExtractError(
            f"RAY_ADDRESS={address}: nobody answers there ({obstacle}); is the first node of the Ray cluster "
            "up? Unset RAY_ADDRESS to start one on this machine"
        )


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return _obstacle(host, int(port)) is None


def _obstacle(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host.strip("[]"), port), timeout=ANSWER_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _short_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= LONGEST_FOLDER else "/tmp"  # noqa: S108 - the folder made in it is private


@contextmanager
def _less_noise() -> Iterator[None]:
    """Buffer stderr and remove the first line printed by Ray's C++ part."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            held.seek(0)
            for line in held:
                if NOISE not in line:
                    os.write(2, line)
