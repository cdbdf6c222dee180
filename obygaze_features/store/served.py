"""Read stores on servers: what all clients have in common, and messages on the errors of a server."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from obygaze_features.errors import (
    FileEndsError,
    InterruptedTransferError,
    NoRangesError,
    StoreError,
    first_line,
    install_command,
)
from obygaze_features.store.files_zip import is_zip_name
from obygaze_features.store.store_files import LARGEST_READ, StoreFiles, names_in_manifests, refuse_larger

READERS = 8
"""Requests under way at a time."""

MIN_BYTES = 1 << 16
"""Bytes that a server must send in `SLOW_S` seconds; a slower transfer is aborted."""
SLOW_S = 60.0
"""Seconds that a server has for `MIN_BYTES`, and for the first byte."""
MAX_MESSAGE = 300
"""Characters of a server's message that are shown."""


class Listed:
    """Files of a server that cannot list them: those that the lists of digests name."""

    def names(self: StoreFiles) -> list[str]:
        """List the files that the lists of digests name."""
        return names_in_manifests(self)

    def is_plain(self, _name: str) -> bool:
        """Return True: a server has plain files only."""
        return True


class Answer(NamedTuple):
    """A file, or a part of one, as a server sends it.

    Parameters
    ----------
    size
        Its bytes; 0 if the server does not say.
    tag
        By which the server knows the content of the file (ETag); empty if the server does not say.
    blocks
        Its content.
    """

    size: int
    tag: str
    blocks: Iterator[bytes]


@dataclass(frozen=True)
class ServedFiles(Listed):
    """A store that is a folder on a server."""

    where: str
    name: str
    readers: int = READERS

    requests: ClassVar[int] = 1
    """How often a part is asked for, where the client does not repeat requests by itself."""

    def answer(self, name: str, start: int, stop: int | None) -> AbstractContextManager[Answer]:
        """Request a file, or the part from `start` to `stop`, once; the result yields the server's answer."""
        raise NotImplementedError

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Read a file or a part of it."""
        is_empty_part = stop is not None and start >= 0 and stop <= start
        if is_empty_part:  # which no server can be asked for
            return b""
        data, _tag = self.read_tagged(name, start=start, stop=stop)
        return data

    def read_tagged(
        self, name: str, maximum: int = LARGEST_READ, *, start: int = 0, stop: int | None = None
    ) -> tuple[bytes, str]:
        """Read a file, or a part of it; return its bytes and the server's tag of its content (ETag), or "".

        If the transfer is interrupted, the part is requested again, `requests` times in all.

        Parameters
        ----------
        name
            The file.
        maximum
            Most bytes to read.
        start, stop
            First and end byte of the part; a negative start counts from the end of the file, and a stop of
            None is its end.

        Raises
        ------
        StoreError
            It has more than `maximum` bytes, or the server fails again and again.
        """
        for _ in range(self.requests - 1):
            try:
                return self._read_once(name, maximum, start, stop)
            except InterruptedTransferError:
                continue
        return self._read_once(name, maximum, start, stop)

    def _read_once(self, name: str, maximum: int, start: int, stop: int | None) -> tuple[bytes, str]:
        """Request a file, or a part of it, once; return its bytes and the server's tag of its content, or "".

        An answer of more than `maximum` bytes is refused: by the size that the server states, or, if it
        states none or a wrong one, as soon as so many bytes have come. So is a file that ends within the
        part.
        """
        location = f"{self.where}/{name}"
        data = bytearray()
        with self.answer(name, start, stop) as (stated_size, tag, blocks):
            refuse_larger(stated_size, location, maximum)
            for block in self._in_time(blocks, name):
                data += block
                refuse_larger(len(data), location, maximum)
        ends_within_part = stop is not None and start >= 0 and len(data) < stop - start
        if ends_within_part:
            raise file_ends_error(self.where, name)
        return bytes(data), tag

    def stream(self, name: str, start: int = 0) -> Iterator[bytes]:
        """Yield a file from `start` in blocks as they come."""
        with self.answer(name, start, None) as answer:
            yield from self._in_time(answer.blocks, name)

    def _in_time(self, blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
        """Yield blocks of a file as they come; raise an error if the server sends them too slowly.

        It must send `MIN_BYTES` bytes in `SLOW_S` seconds. Whenever so many have come, the deadline is set
        anew. Without it, a server that sends a byte now and then would hold a reader for ever.
        """
        deadline = time.monotonic() + SLOW_S
        n_bytes = 0  # that have come since the deadline was set
        for block in blocks:
            yield block
            n_bytes += len(block)
            now = time.monotonic()
            if n_bytes >= MIN_BYTES:
                deadline = now + SLOW_S
                n_bytes = 0
            elif now > deadline:
                raise too_slow_error(self.where, name)


@contextmanager
def explain_missing_library(url: str) -> Iterator[None]:
    """Turn a missing client library within a `with` block into an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreError(
            f"{url}: this needs {error.name}; install it with: {install_command('obygaze[remote]')}"
        ) from error


def no_ranges_error(location: str, name: str) -> NoRangesError:
    """Return the error for a server that gives whole files only, where a part of a file is needed.

    A zip is read and pulled by its parts alone, a folder is pulled by whole files.

    Parameters
    ----------
    location
        URL of the store, or of the folder of a zip.
    name
        The requested file in it.
    """
    if is_zip_name(name):
        remedy = "download the zip with another tool, such as curl -O, and give its path"
    else:
        remedy = "pull the store"
    return NoRangesError(
        f"{location}/{name}: this server gives whole files only and this needs parts of them "
        f"(range requests); {remedy}, or serve it with nginx, Apache or S3"
    )


def wrong_part_error(location: str, name: str) -> NoRangesError:
    """Return the error for a server that sends another part of a file than the one that is asked for."""
    return NoRangesError(
        f"{location}/{name}: the server sends another part of the file than is asked for (range requests); "
        "pull the store, or serve it with nginx, Apache or S3"
    )


def file_ends_error(location: str, name: str) -> FileEndsError:
    """Return the error for a file on a server that ends before the part that is asked for."""
    return FileEndsError(
        f"{location}/{name}: ends before the part that is asked for; it was cut short, or is another file now"
    )


def too_slow_error(location: str, name: str) -> StoreError:
    """Return the error for a server that sends a file of a store too slowly."""
    return StoreError(
        f"{location}/{name}: the server sends less than {MIN_BYTES // 1024} KiB in {SLOW_S:.0f} s; "
        "run the command again later (a pull goes on where it stopped)"
    )


_RETRIES = re.compile(r" after \d++ retries, ")
"""Part of obstore's messages: "... after N retries, DETAILS - REASON"."""


def one_line_message(error: BaseException) -> str:
    """Return an error's message in one line, without its account of retries, HTML pages, and URL queries.

    Examples
    --------
    >>> one_line_message(OSError("GET failed after 3 retries, max_retries: 3 - no route to host"))
    'no route to host'
    >>> one_line_message(OSError("GET http://lab.example/films?token=secret: <html>Not found</html>"))
    'GET http://lab.example/films'
    """
    text = first_line(error)
    retries = _RETRIES.search(text)
    if retries:
        _details, dash, reason = text[retries.end() :].partition(" - ")
        if dash:
            text = reason

    without_page, _, _page = text.partition(": <")  # a server may answer with a page, which begins with a tag
    without_query = re.sub(r"\?\S*", "", without_page)  # which may hold credentials
    return without_query.strip()[:MAX_MESSAGE]
