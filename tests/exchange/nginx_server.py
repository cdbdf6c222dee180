"""A real nginx on the loopback device, and a proxy before it that breaks connections or changes a byte."""

import os
import shutil
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.ports import free_ports

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

SETTINGS = """
daemon off; master_process off; pid {own}/pid; error_log {own}/error.log;
events {{ worker_connections 128; }}
http {{
  access_log off; sendfile on;
  client_body_temp_path {own}/body; proxy_temp_path {own}/proxy; fastcgi_temp_path {own}/fastcgi;
  uwsgi_temp_path {own}/uwsgi; scgi_temp_path {own}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root "{root}";
    location /gzipped/ {{ alias "{root}/"; gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; }}
    location /private/ {{ deny all; }}
  }}
}}
"""


@contextmanager
def nginx(root: Path, own: Path) -> Iterator[str]:
    """Serve a folder; `own` is a folder for nginx's files."""
    (port,) = free_ports(1)
    (own / "nginx.conf").write_text(SETTINGS.format(own=own, root=root, port=port), encoding="utf-8")
    server = subprocess.Popen(
        [NGINX, "-p", str(own), "-e", str(own / "error.log"), "-c", str(own / "nginx.conf")],
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            assert server.poll() is None, (own / "error.log").read_text(encoding="utf-8")
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


class Meddler(socketserver.ThreadingTCPServer):
    """Passes requests on to a server and its answers back, but for what it was told to spoil.

    Attributes
    ----------
    cuts
        Path ending -> after how many bytes of a body the connection is closed, for one answer after another.
    flips
        Path ending -> the byte of every body in which one bit is wrong.
    asked
        (path, range) of every request.
    sent
        Bytes of bodies that were passed on.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Between)
        self.upstream = upstream
        self.cuts: dict[str, list[int]] = {}
        self.flips: dict[str, int] = {}
        self.asked: list[tuple[str, str]] = []
        self.sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address) -> None:
        """Say nothing: clients that leave are what is tested."""


class _Between(socketserver.StreamRequestHandler):
    server: Meddler
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with (
            socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream,
            upstream.makefile("rb") as answers,
        ):
            while request := _head(self.rfile):
                method, path = request[0].decode().split(" ")[:2]
                self.server.asked.append((path, _field(request, "range").removeprefix("bytes=")))
                upstream.sendall(b"".join(request))
                answer = _head(answers)
                self.wfile.write(b"".join(answer))
                body = b"" if method == "HEAD" else answers.read(int(_field(answer, "content-length") or 0))
                if not self._pass_on(path, bytearray(body)):
                    return

    def _pass_on(self, path: str, body: bytearray) -> bool:
        for name, place in self.server.flips.items():
            if path.endswith(name) and place < len(body):
                body[place] ^= 1
        cut = next(
            (cuts.pop(0) for name, cuts in self.server.cuts.items() if path.endswith(name) and cuts), None
        )
        self.server.sent += len(body[:cut])  # before: who got it may ask how much it was
        self.wfile.write(body[:cut])
        return cut is None


def _head(stream) -> list[bytes]:
    """Read the lines of a request's or an answer's head, with the empty one; none at the end."""
    lines = []
    while line := stream.readline():
        lines.append(line)
        if line == b"\r\n":
            break
    return lines


def _field(head: list[bytes], name: str) -> str:
    for line in head[1:]:
        key, _, value = line.decode("latin-1").partition(":")
        if key.lower() == name:
            return value.strip()
    return ""


@contextmanager
def meddling(url: str) -> Iterator[Meddler]:
    """Stand between a server and its clients until the block ends."""
    with Meddler(int(url.rpartition(":")[2])) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
