"""Listen on this machine alone, and print the address that lets its owner in once."""

import secrets
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from obygaze_film.workspace.open_film import OpenFilm
    from obygaze_film.workspace.server import Learning

NEEDED: Final = ("uvicorn", "starlette", "av", "PIL")
"""Packages of the extra `workspace`, which answers of the desk need."""

ENTRY = "/enter/"
"""Before the token in the address; a query would be blotted out where addresses are printed."""

LEADING = '<!doctype html><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url={}">'
"""Page that leads to another."""


def refuse_missing() -> None:
    """Refuse to open films where a package is missing that is only imported after the address is printed.

    Raises
    ------
    ModuleNotFoundError
        As of its import.
    """
    for name in NEEDED:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Secrets:
    """Secrets of a start.

    Attributes
    ----------
    token
        In the address that is printed; good for one entry.
    cookie
        What the browser shows from then on.
    path
        Below which all pages are, and to which alone browsers send the cookie: they send cookies of this
        machine to all of its ports, whoever listens there.
    """

    def __init__(self) -> None:
        self.token, self.cookie, self.path = (secrets.token_urlsafe(24) for _ in range(3))


def serve(
    films: "Sequence[OpenFilm]",
    compared: Callable[[str], str],
    learning: "Learning | None" = None,
    *,
    port: int,
    browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve until stopped; `tell` gets the address to open.

    Raises
    ------
    OSError
        The port is taken.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", port)))]
        port = sockets[0].getsockname()[1]
        with suppress(OSError):  # a machine without IPv6
            sockets.append(stack.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6)))
        keys = Secrets()
        address = f"http://127.0.0.1:{port}{ENTRY}{keys.token}"
        tell(address)
        if browser:
            door = stack.enter_context(_door(address))
            Thread(target=webbrowser.open, args=(door,), daemon=True).start()
        # The sockets listen already. While a browser starts, what answers it is imported.
        from obygaze_film.workspace import server  # noqa: PLC0415 - slow

        server.run(films, compared, learning, keys, sockets)


@contextmanager
def _door(address: str) -> Iterator[str]:
    """Make a page that leads to an address, and that only its owner can read: all can read command lines."""
    handle, name = tempfile.mkstemp(".html", "obygaze-")  # mode 0600
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(LEADING.format(address))
    try:
        yield Path(name).as_uri()
    finally:
        Path(name).unlink(missing_ok=True)
