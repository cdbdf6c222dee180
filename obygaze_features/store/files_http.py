"""Read a store over HTTP and HTTPS by the standard library: a connection for each request."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
)

from obygaze_features.errors import InterruptedTransferError, StoreError
from obygaze_features.store import served
from obygaze_features.store.served import (
    Answer,
    ServedFiles,
    file_ends_error,
    no_ranges_error,
    one_line_message,
    too_slow_error,
    wrong_part_error,
)
from obygaze_features.store.store_files import BLOCK

_HANDLERS = (
    ProxyHandler,
    UnknownHandler,
    HTTPHandler,
    HTTPSHandler,
    HTTPDefaultErrorHandler,
    HTTPRedirectHandler,
    HTTPErrorProcessor,
)
"""The usual handlers, without those of other protocols: a redirection must not lead to a local file."""
_CONTENT_RANGE = re.compile(r"bytes (?P<first>\d{1,18})-(?P<last>\d{1,18})/(?P<size>\d{1,18}|\*)")
"""Header of an answer that is a part (RFC 9110, 14.4): its first and last byte, and the file's size, or *."""
_OPENER = OpenerDirector()
for _handler in _HANDLERS:
    _OPENER.add_handler(_handler())


class HttpFiles(ServedFiles):
    """A store that is a folder on a server, read without obstore."""

    requests = 4

    def size(self, name: str) -> int:
        """Return the size of a file in bytes, as the server states it, without requesting the file."""
        with self._send_request(name, method="HEAD") as response:
            length = response.headers.get("Content-Length", "")
            if not length.isdecimal():
                raise StoreError(f"{self.where}/{name}: the server does not say how large it is")
            return int(length)

    @contextmanager
    def answer(self, name: str, start: int, stop: int | None) -> Iterator[Answer]:
        """Request a file, or the part from `start` to `stop`, and yield the server's answer."""
        with self._send_request(name, start, stop) as response:
            size = response.length or 0  # 0 if the server does not say
            # A tag names the version of a file. Who replaces a file states the tag of what it should replace;
            # over plain HTTP files are only read.
            no_tag = ""
            yield Answer(size, no_tag, self._blocks(response, name))

    def _blocks(self, response: HTTPResponse, name: str) -> Iterator[bytes]:
        """Yield the bytes of a response as they come; raise an error if it ends too early."""
        while block := response.read1(BLOCK):
            yield block
        n_missing = response.length  # bytes of the stated length that did not come
        if n_missing:
            raise InterruptedTransferError(f"{self.where}/{name}: the server breaks off")

    @contextmanager
    def _send_request(
        self, name: str, start: int = 0, stop: int | None = None, method: str = "GET"
    ) -> Iterator[HTTPResponse]:
        """Send a request for a file, or for a part of it, and yield the response.

        Parameters
        ----------
        name
            The file.
        start, stop
            First and end byte of the part; a negative start counts from the end of the file.
        method
            "GET" for the content, "HEAD" for the size alone.

        Raises
        ------
        FileNotFoundError
            The server has no such file.
        InterruptedTransferError
            Another attempt may succeed.
        FileEndsError
            The file ends before the part.
        NoRangesError
            The server gives whole files only, or another part.
        StoreError
            Another error of the server, in one line.
        """
        is_part = start != 0 or stop is not None
        headers = {"Range": _range_header(start, stop)} if is_part else {}
        request = Request(f"{self.where}/{quote(name)}", headers=headers, method=method)  # noqa: S310 - http
        try:
            with _OPENER.open(request, timeout=served.SLOW_S) as answer:
                if is_part:
                    gives_parts = answer.status == HTTPStatus.PARTIAL_CONTENT
                    if not gives_parts:
                        raise no_ranges_error(self.where, name)
                    self._refuse_another_part(name, start, stop, answer.headers.get("Content-Range", ""))
                yield answer
        except HTTPError as error:  # the server answers with an error
            error.close()
            raise self._error_of_answer(name, error) from None
        except TimeoutError:
            raise too_slow_error(self.where, name) from None
        except (URLError, HTTPException, ConnectionError) as error:  # it does not answer, or stops halfway
            raise InterruptedTransferError(f"{self.where}/{name}: {_network_line(error)}") from None

    def _error_of_answer(self, name: str, error: HTTPError) -> OSError | StoreError:
        """Return our error for a server's answer that it can't give a file, by the answer's status code.

        It is an `InterruptedTransferError` if another attempt may succeed.
        """
        if error.code in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return FileNotFoundError(2, "the server has no such file", f"{self.where}/{name}")
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return file_ends_error(self.where, name)
        is_server_error = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR  # 500 and above
        asks_to_wait = error.code in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        may_succeed_later = is_server_error or asks_to_wait
        error_class = InterruptedTransferError if may_succeed_later else StoreError
        return error_class(f"{self.where}/{name}: {one_line_message(error)}")

    def _refuse_another_part(self, name: str, start: int, stop: int | None, content_range: str) -> None:
        """Raise unless an answer is the part of a file that was asked for, as its header has to say.

        A cache between here and the server may give everybody the part that somebody asked for first. Such a
        part may be whole in itself, for example the tokens of another clip, which no checksum reveals.

        Parameters
        ----------
        name
            The file.
        start, stop
            The part that was asked for, as in `_send_request`.
        content_range
            The header `Content-Range` of the answer; "" if it has none.

        Raises
        ------
        NoRangesError
            It is another part, or the header does not say which.
        """
        header = _CONTENT_RANGE.fullmatch(content_range.strip())
        if header is None:
            raise wrong_part_error(self.where, name)
        first = int(header["first"])
        end = int(header["last"]) + 1
        size = end if header["size"] == "*" else int(header["size"])  # "*": the server does not know it

        wanted_first = max(size + start, 0) if start < 0 else start
        wanted_end = size if stop is None else min(stop, size)
        if first != wanted_first or end != wanted_end:
            raise wrong_part_error(self.where, name)


def _range_header(start: int, stop: int | None) -> str:
    """Return the value of the HTTP header `Range` that requests a part of a file.

    Parameters
    ----------
    start
        First byte; a negative one counts from the end of the file, and the part then ends with the file.
    stop
        End byte, which is not in the part any more; None for the end of the file.
    """
    if start < 0:
        return f"bytes={start}"
    last_byte = "" if stop is None else stop - 1  # HTTP counts the last byte in
    return f"bytes={start}-{last_byte}"


def _network_line(error: URLError | HTTPException | ConnectionError) -> str:
    """Return in one line why no response came: the system's reason, without the wrapping of urllib."""
    cause: object = error
    if isinstance(error, URLError):
        cause = error.reason  # an exception, or a text
    if isinstance(cause, OSError) and cause.strerror:
        return f"the server does not answer: {cause.strerror}"
    return one_line_message(cause if isinstance(cause, Exception) else error)
