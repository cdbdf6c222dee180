"""moto's S3 server on the loopback device: the requests it got, and a limit to what it lets in."""

import http.client
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Lock

import pytest

SETTINGS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "dont-tell",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


class Endpoint:
    """Where S3 is, and what was asked of it.

    Attributes
    ----------
    url
        The endpoint; it has a bucket `bucket`.
    requests
        (LIST or the HTTP method, path) of every request.
    n_puts_left
        How many objects may still be put, by PUT or as the first part of several; None for any number.
    n_bytes_sent
        Bytes of bodies that answers to GET had.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[tuple[str, str]] = []
        self.n_puts_left: int | None = None
        self.n_bytes_sent = 0
        self._lock = Lock()

    def allow_all_puts(self) -> None:
        self.n_puts_left = None

    def names(self, method: str) -> list[str]:
        """List the objects of all requests of a method, without folders."""
        return [
            path.rpartition("toy-1.0.0/")[2] for asked_method, path in self.requests if asked_method == method
        ]

    def watching(self, application):
        """Wrap a server's WSGI application: note its requests, and refuse objects that are too many."""

        def answer(environ, start_response):
            method = environ["REQUEST_METHOD"]
            path = environ["PATH_INFO"].encode("latin-1").decode()  # as WSGI gives text of UTF-8
            is_list = "list-type" in environ["QUERY_STRING"]
            with self._lock:
                self.requests.append(("LIST" if is_list else method, path))
                is_refused = method == "PUT" and not self._takes_one_more_object()
            if is_refused:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>no more</Message></Error>"]
            body = application(environ, start_response)
            return self._counted(body) if method == "GET" else body

        return answer

    def _takes_one_more_object(self) -> bool:
        """Return whether an object may be put, and count it."""
        if self.n_puts_left is None:
            return True
        if self.n_puts_left == 0:
            return False
        self.n_puts_left -= 1
        return True

    def _counted(self, body):
        """Yield the blocks of an answer's body, and count their bytes."""
        for block in body:
            self.n_bytes_sent += len(block)
            yield block


@contextmanager
def s3_server() -> Iterator[Endpoint]:
    """Start moto's server with a bucket."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    host, port = server.get_host_and_port()
    endpoint = Endpoint(f"http://{host}:{port}")
    server._server.app = endpoint.watching(server._server.app)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with closing(http.client.HTTPConnection(host, port)) as connection:
        connection.request("PUT", "/bucket")
        assert connection.getresponse().status == 200
    try:
        yield endpoint
    finally:
        server.stop()
        server._server.server_close()


@contextmanager
def s3_settings(endpoint: Endpoint) -> Iterator[None]:
    """Point the S3 client at an endpoint, as a user would."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": endpoint.url}.items():
            patch.setenv(name, value)
        endpoint.requests.clear()
        endpoint.allow_all_puts()
        endpoint.n_bytes_sent = 0
        yield
