"""Listen on this machine alone, and print the address that lets its owner in once."""

import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from obygaze_film.workspace.entry import ENTRY, REDIRECTING_PAGE, Secrets

if TYPE_CHECKING:
    from obygaze_film.workspace.open_film import OpenFilm
    from obygaze_film.workspace.server import Learning

NEEDED: Final = ("uvicorn", "starlette", "av", "PIL")
"""Packages of the extra `workspace`, which answers of the desk need."""


def refuse_missing() -> None:
    """Raise an error now if a package that the desk needs is not installed.

    These packages are slow to import, and so are imported after the desk's address is printed. Without this
    check the user would be given an address that does not work.

    Raises
    ------
    ModuleNotFoundError
        The same error as that of the import.
    """
    for name in NEEDED:
        if find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def serve(
    films: "Sequence[OpenFilm]",
    comparison_page: Callable[[str], str],
    learning: "Learning | None" = None,
    *,
    port: int,
    browser: bool,
    tell: Callable[[str], None],
) -> None:
    """Serve the workspace on this machine until it is stopped.

    Parameters
    ----------
    films, comparison_page, learning
        As of `server.Workspace`.
    port : int
        Port to listen on; 0 for any that is free.
    browser : bool
        Whether to open the address in the user's browser.
    tell : callable
        Is called with the address to open.

    Raises
    ------
    OSError
        The port is taken.
    """
    with ExitStack() as stack:
        # Listen on this machine alone, by IPv4 and, where it is there, by IPv6.
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", port)))]
        port = sockets[0].getsockname()[1]  # the free port that was chosen, if `port` was 0
        with suppress(OSError):  # a machine without IPv6
            sockets.append(stack.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6)))

        keys = Secrets()
        address = f"http://127.0.0.1:{port}{ENTRY}{keys.token}"
        tell(address)
        if browser:
            page = stack.enter_context(_redirecting_file(address))
            # In a thread: opening a browser may take for ever.
            Thread(target=webbrowser.open, args=(page,), daemon=True).start()

        # The sockets listen already: a browser that starts meanwhile waits until the server answers.
        from obygaze_film.workspace import server  # noqa: PLC0415 - slow

        server.run(films, comparison_page, learning, keys, sockets)


@contextmanager
def _redirecting_file(address: str) -> Iterator[str]:
    """Write a page to a file that redirects a browser to an address; yield the file's own address (file://).

    The file is removed when the context ends. The browser is given the file and not the address with its
    secret token, because everybody on the machine can read the browser's command line. Only its owner can
    read the file.
    """
    handle, name = tempfile.mkstemp(".html", "obygaze-")  # mode 0600: readable by its owner only
    with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(REDIRECTING_PAGE.format(address))
    try:
        yield Path(name).as_uri()
    finally:
        Path(name).unlink(missing_ok=True)
