"""Servers that mean ill, are broken or endless: one line, in a stated time, and never a wrong byte kept."""

import contextlib
import socket
import time

import pytest

from obygaze_features.errors import InterruptedTransferError, StoreError
from obygaze_features.exchange.transfer import download, download_file
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_obstore import _only_known_hosts
from obygaze_features.store.store import locate

from .serving import Handler, serving

pytest.importorskip("obstore")

CHUNK = "data/features.zarr/toy/pooled/c/0/0"
TOKENS = {"AWS_SESSION_TOKEN": "mark-session", "HF_TOKEN": "hf_mark", "AWS_SECRET_ACCESS_KEY": "mark-secret"}


def open_verify_and_pull(url, tmp_path):
    """Read a store in three ways, and return what was refused: a line for each error or problem found.

    A copy that was pulled has to be whole, or must not be there.
    """
    copy = tmp_path / "copy-1.0.0"

    def problems_of_reading():
        open_store(url)["toy"].pooled()
        return []

    def problems_of_verifying():
        return [problem.what for problem in verify(url).problems]

    def problems_of_pulling():
        download(locate(url), copy)
        return []

    refusals = []
    for find_problems in (problems_of_reading, problems_of_verifying, problems_of_pulling):
        try:
            refusals += find_problems()
        except (StoreError, OSError) as error:
            refusals.append(str(error))

    assert not copy.exists() or verify(copy, "full").ok
    assert all("\n" not in refusal for refusal in refusals)
    return refusals


class Flood(Handler):
    """Of what it sends, little is under way in the system: what was sent is what was read, but for that."""

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)


# --- length


class StatesWrongLength(Handler):
    """Of one chunk, says another length than it sends."""

    n_bytes_too_many = 0
    """By how much the stated length exceeds the true one; below 0 it is too small."""

    def do_GET(self):  # noqa: N802
        """Send the file that is asked for, and lie if it is `CHUNK`."""
        if not self.path.endswith(CHUNK):
            super().do_GET()
            return
        path = self.path.lstrip("/").replace("%20", " ")  # in addresses a space is %20
        body = (self.server.root / path).read_bytes()
        self.answer(200, body, Content_Length=str(len(body) + self.n_bytes_too_many))
        self.close_connection = True  # where more was stated, the client would wait for it


@pytest.mark.parametrize(
    "n_bytes_too_many", [-7, 7, 1 << 50], ids=["too short", "too long", "2^50 bytes too long"]
)
def test_a_file_of_another_length_than_the_server_states_is_refused(
    served_folder, tmp_path, monkeypatch, n_bytes_too_many
):
    """Of one file of a store, the server states 7 bytes fewer than it sends, or 7 or 2^50 bytes more.

    The store is opened, verified and pulled from it. At least one of the three is refused, each in one line,
    and no wrong copy is kept (`open_verify_and_pull` checks that).
    """
    monkeypatch.setattr(StatesWrongLength, "n_bytes_too_many", n_bytes_too_many)

    with serving(served_folder, StatesWrongLength) as server:
        refusals = open_verify_and_pull(f"{server.url}/toy-1.0.0", tmp_path)

    assert len(refusals) > 0


# --- bodies


class Endless(Flood):
    """Sends zeros without end in place of a chunk, and says that there are 2^50 of them."""

    def do_GET(self):  # noqa: N802
        if not self.path.endswith("/toy/frames/c/1/0/0"):
            super().do_GET()
            return
        self.answer(200, Content_Length=str(1 << 50))
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(bytes(1 << 20))
                    self.server.count(1 << 20)


def test_verify_stops_reading_a_file_longer_than_its_whole_store(served_folder):
    """A server sends zeros without end in place of a chunk of a toy store; less than 64 MiB may be read."""
    with serving(served_folder, Endless) as server:
        report = verify(f"{server.url}/toy-1.0.0")
        assert server.n_bytes_sent < 64 * 2**20

    problem_of_file = {problem.file: problem.what for problem in report.problems}
    problem_of_endless_file = problem_of_file["data/features.zarr/toy/frames/c/1/0/0"]
    assert "is longer than the whole store" in problem_of_endless_file


class Slow(Handler):
    """Sends a byte at a time, and waits for the client to leave."""

    def do_GET(self):  # noqa: N802
        self.answer(200, Content_Length="1000000")
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.02)


def test_a_server_that_sends_a_byte_at_a_time_is_given_up(served_folder, tmp_path, monkeypatch):
    """The server sends a byte every 0.02 s. The least speed is measured over `SLOW_S`, here 0.1 s."""
    monkeypatch.setattr("obygaze_features.store.served.SLOW_S", 0.1)
    too_slow = "the server sends less than"

    with serving(served_folder, Slow) as server:
        url = f"{server.url}/toy-1.0.0"
        with pytest.raises(StoreError, match=too_slow):
            open_store(url)
        with pytest.raises(StoreError, match=too_slow):
            verify(url)
        with pytest.raises(StoreError, match=too_slow):
            download_file(locate(url), "x", tmp_path / "x", "0" * 64, lambda *_: None)


class Stalls(Handler):
    """Sends the beginning of an answer, and waits for the client to leave."""

    n_bytes_sent: int | None = None
    """How much of the body is sent; None sends not even a header."""

    def do_GET(self):  # noqa: N802
        self.server.requests.append((self.command, self.path, ""))
        if self.n_bytes_sent is not None:
            self.answer(200, b"x" * self.n_bytes_sent, Content_Length="1000000")
            self.wfile.flush()
        with contextlib.suppress(OSError):
            self.connection.recv(1)  # the client sends no more: this ends when it hangs up
        self.close_connection = True


@contextlib.contextmanager
def silent_server(folder, monkeypatch, n_bytes_sent):
    """A server that sends so many bytes of a file, or not even a header if None, and then nothing.

    A client gives up a silent server after 0.2 s.
    """
    monkeypatch.setattr("obygaze_features.store.served.SLOW_S", 0.2)
    monkeypatch.setattr(Stalls, "n_bytes_sent", n_bytes_sent)
    with serving(folder, Stalls) as server:
        yield server


@pytest.mark.parametrize("n_bytes_sent", [None, 0, 5], ids=["no answer", "no body", "a body cut short"])
def test_a_server_that_falls_silent_is_given_up_and_not_asked_again(
    served_folder, tmp_path, monkeypatch, n_bytes_sent
):
    """A server sends so many bytes of a file and falls silent, which costs the client some time to notice.

    A connection that breaks off is tried again (InterruptedTransferError). A silent server is not: it would
    cost the same wait each time.
    """
    any_digest = "0" * 64
    with silent_server(served_folder, monkeypatch, n_bytes_sent) as server:
        files = locate(f"{server.url}/toy-1.0.0")

        with pytest.raises(StoreError) as raised:
            download_file(files, "x", tmp_path / "x", any_digest, lambda *_: None)

        assert not isinstance(raised.value, InterruptedTransferError)
        n_requests = len(server.requests)
        assert n_requests == 1


class SendsByteByByte(Handler):
    """Has a file of 100 bytes, and sends one byte of it for each request, the first that is asked for."""

    def do_GET(self):  # noqa: N802
        byte_range = self.headers.get("Range", "")  # "bytes=7-", or none for the whole file
        self.server.requests.append((self.command, self.path, byte_range))
        first = 0
        status = 200
        headers = {}
        if byte_range:
            first = int(byte_range.removeprefix("bytes=").partition("-")[0])
            status = 206
            headers = {"Content_Range": f"bytes {first}-99/100"}
        self.answer(status, b"x", Content_Length=str(100 - first), **headers)  # more than it sends
        self.close_connection = True


def test_a_server_that_breaks_off_after_every_byte_is_given_up(served_folder, tmp_path, monkeypatch):
    """A broken transfer resumes where it stopped, but not for ever: it must bring a stated speed.

    The server sends one byte of a file of 100 bytes for each request. The client tries again for 0.2 s
    (`SLOW_S`), without waiting between two requests.
    """
    monkeypatch.setattr("obygaze_features.store.served.SLOW_S", 0.2)
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)

    with serving(served_folder, SendsByteByByte) as server:
        with pytest.raises(StoreError):
            download_file(locate(f"{server.url}/s"), "x", tmp_path / "x", "0" * 64, lambda *_: None)
        assert len(server.requests) < 50  # and not once for each of the 100 bytes


# --- redirections


class Elsewhere(Handler):
    """Sends everybody on to another place: by default to the same one."""

    to = ""

    def do_GET(self):  # noqa: N802
        self.server.requests.append((self.command, self.path, str(self.headers)))
        self.answer(307, Location=self.to or self.path)


class Notes(Handler):
    """Keeps the headers of every request, and has nothing."""

    def do_GET(self):  # noqa: N802
        self.server.requests.append((self.command, self.path, str(self.headers)))
        self.send_error(404)


@pytest.mark.parametrize(
    "address", ["file:///etc/passwd", "data:text/plain,x", "http://me:hunter2@127.0.0.1:9/x?token=hunter2"]
)
def test_a_redirection_to_a_file_or_with_a_password_is_refused(served_folder, tmp_path, address):
    """A server redirects all requests: to a file of ours, to data in the address, or with a password in it.

    It must not make us read our own files, such as /etc/passwd, which begins with "root:". Opening, verifying
    and pulling are each refused; no message shows that text, nor the password ("hunter2"). A redirection that
    is refused must not be tried again and again: all three take less than 40 requests.
    """

    class RedirectsAllRequests(Elsewhere):
        to = address

    with serving(served_folder, RedirectsAllRequests) as server:
        refusals = open_verify_and_pull(f"{server.url}/toy-1.0.0", tmp_path)
        assert len(server.requests) < 40

    assert len(refusals) == 3
    for refusal in refusals:
        assert "hunter2" not in refusal
        assert "root:" not in refusal


@pytest.fixture
def redirecting(served_folder, monkeypatch):
    """Yield a server that redirects all requests to another host, and that host; S3 has credentials."""
    for name, secret in TOKENS.items():
        monkeypatch.setenv(name, secret)
    with serving(served_folder, Notes) as other_host:
        to = f"http://localhost:{other_host.server_address[1]}/x"
        with serving(served_folder, type("Elsewhere", (Elsewhere,), {"to": to})) as server:
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mark-key")
            monkeypatch.setenv("AWS_REGION", "us-east-1")
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
            yield server, other_host


def headers_at(server):
    return "".join(headers for _, _, headers in server.requests)


def secrets_in(text):
    return [secret for secret in (*TOKENS.values(), "mark-key") if secret in text]


def test_an_http_redirection_is_followed_without_credentials(redirecting, tmp_path):
    """The environment has tokens of S3 and of the Hub; a plain HTTP server is sent none of them.

    All requests are redirected to another host, which has nothing: opening, verifying and pulling fail.
    """
    server, other_host = redirecting

    refusals = open_verify_and_pull(f"{server.url}/toy-1.0.0", tmp_path)

    assert len(refusals) == 3
    assert other_host.requests
    for text in (headers_at(server), headers_at(other_host), " ".join(refusals)):
        assert not secrets_in(text)
    assert "authorization" not in headers_at(other_host).lower()


def test_a_redirection_of_s3_to_another_host_is_refused(redirecting, tmp_path):
    """Requests to S3 carry credentials, such as the token "mark-session", which the other host would get.

    Opening, verifying and pulling are each refused.
    """
    server, other_host = redirecting

    refusals = open_verify_and_pull("s3://bucket/toy-1.0.0", tmp_path)

    assert len(refusals) == 3
    assert "mark-session" in headers_at(server)
    assert not other_host.requests
    assert not secrets_in(" ".join(refusals))
    assert all("the server redirects to another host, and credentials" in text for text in refusals)


def test_without_a_proxy_in_the_environment_the_client_reaches_hosts_of_s3_alone(monkeypatch):
    """All other hosts go to a proxy that does not exist; hosts excluded from it are reached directly.

    If the environment has a proxy, we set none.
    """
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://s3.lab.example:9000/x")
    settings_of_client = _only_known_hosts()
    assert settings_of_client["proxy_excludes"].startswith("s3.lab.example,amazonaws.com,")

    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    settings_of_client = _only_known_hosts()
    assert settings_of_client == {}
