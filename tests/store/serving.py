"""A small HTTP server that really answers ranges, and misbehaves where it is told to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


class FolderServer(ThreadingHTTPServer):
    """Serves a folder.

    Attributes
    ----------
    answers_ranges
        Whether range requests are answered; a server that ignores them sends the whole file, with 200.
    n_breaks_left
        Path ending -> how many times its body breaks off in the middle.
    damaged_files
        Path endings of the files of which one byte is wrong.
    missing_files
        Path endings of the files that are gone.
    page_for_missing_files
        What it answers, with 200, in place of files that it has not; a plain 404 if it is empty.
    requests
        (method, path, range) of every request.
    n_commits_to_refuse
        How many commits lose against another.
    n_bytes_sent
        Bytes of bodies, counted before they are sent: whoever got one may ask how many there were.
    """

    daemon_threads = True

    def __init__(self, root: Path, handler: type["Handler"]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.root = root
        self.answers_ranges = True
        self.n_breaks_left: dict[str, int] = {}
        self.damaged_files: set[str] = set()
        self.missing_files: set[str] = set()
        self.page_for_missing_files = b""
        self.requests: list[tuple[str, str, str]] = []
        self.n_bytes_sent = self.n_commits_to_refuse = 0
        self._lock = threading.Lock()

    def count(self, octets: int) -> None:
        """Count bytes of a body, from any thread."""
        with self._lock:
            self.n_bytes_sent += octets

    def breaks_off(self, path: str) -> bool:
        """Whether this answer's body is to break off; counted down."""
        with self._lock:
            for name, left in self.n_breaks_left.items():
                if path.endswith(name) and left:
                    self.n_breaks_left[name] -= 1
                    return True
        return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address) -> None:
        """Say nothing: clients that leave are what is tested."""


class Handler(BaseHTTPRequestHandler):
    server: FolderServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        """Send an answer with the length of its body, unless a header states another."""
        self.send_response(code)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        server = self.server
        asked_range = self.headers.get("Range", "")
        path = unquote(urlsplit(self.path).path)
        server.requests.append((self.command, path, asked_range))
        file = server.root / path.lstrip("/")
        if not file.is_file() or any(path.endswith(name) for name in server.missing_files):
            if server.page_for_missing_files:
                self.answer(200, server.page_for_missing_files)
            else:
                self.send_error(404)
            return
        data = bytearray(file.read_bytes())
        if any(path.endswith(name) for name in server.damaged_files):
            data[len(data) // 2] ^= 1
        if asked_range and server.answers_ranges:
            first, end = byte_range(asked_range, len(data))
            if first >= len(data):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
        else:
            first, end = 0, len(data)
            self.send_response(200)
        if server.answers_ranges:
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - first))
        self.send_header("ETag", f'"{hash(bytes(data)) & 0xFFFFFFFF:x}"')
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(path, bytes(data[first:end]))

    def _send_body(self, path: str, body: bytes) -> None:
        """Send a file's bytes, or half of them and hang up if the server was told to break off."""
        if self.server.breaks_off(path):
            body = body[: len(body) // 2]
            self.close_connection = True
        self.server.count(len(body))
        self.wfile.write(body)


def byte_range(asked_range: str, size: int) -> tuple[int, int]:
    """Return the first byte that a Range header asks for, and the end; a file has `size` bytes."""
    low, _, high = asked_range.removeprefix("bytes=").partition("-")
    if not low:  # the last bytes, as many as stated
        return max(0, size - int(high)), size
    if not high:
        return int(low), size
    return int(low), min(size, int(high) + 1)


@contextmanager
def serving(root: Path, handler: type[Handler] = Handler) -> Iterator[FolderServer]:
    """Serve a folder on the loopback device until the block ends."""
    server = FolderServer(root, handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
