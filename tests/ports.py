"""Ports for servers that are started later."""

import socket
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom

HANDED_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Linux's range for whoever asks for any port, and for connections that go out."""
MINE = range(20_000, 32_768)
"""Below Linux's default for that range, and above Ray's for its workers."""


def free_ports(number: int) -> list[int]:
    """Return free ports of this machine that the system gives to nobody before they are bound.

    A port that is asked for with 0 and let go again may be somebody else's by the time a server binds it.
    """
    low, high = map(int, HANDED_OUT.read_text().split()) if HANDED_OUT.exists() else (32_768, 65_535)
    ports = [port for port in MINE if not low <= port <= high] or list(MINE)
    result: list[int] = []
    with ExitStack() as held:
        for port in SystemRandom().sample(ports, len(ports)):
            trial = held.enter_context(socket.socket())
            try:
                trial.bind(("", port))
            except OSError:
                continue
            result.append(port)
            if len(result) == number:
                return result
    raise OSError(f"no {number} ports are free from {MINE.start} to {MINE.stop - 1}")
