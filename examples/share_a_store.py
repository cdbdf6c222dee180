"""Share a store over HTTP: pack, serve, read at a URL, pull a part, verify.

Any server of files will do; here it is Python's own, on this machine.
Run it with: python examples/share_a_store.py   (needs obygaze[remote])
"""

import functools
import http.server
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toy_films import write_toy_films

import obygaze_features as of


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that does not print its requests."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback interface and yield its URL."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def main(folder: Path) -> None:
    """Serve the toy store, read it as another lab would, and copy the pooled features alone."""
    store = of.open_store(write_toy_films(folder)[1])
    shared = folder / "shared"
    shared.mkdir()
    of.push(store, shared / "films-1.0.0")  # a folder that is served; s3:// and hf:// work alike
    packed = of.pack(store, shared / "films-1.0.0.zip")  # or one file to send, read as it is
    print(of.open_store(packed)["toy"], "in the zip")
    with serving(shared) as url:
        remote = of.open_store(f"{url}/films-1.0.0")
        print(remote.names, remote["toy"].pooled().shape, "read at the URL")
        copied = of.pull(remote, folder / "copy" / "films-1.0.0", arrays=["pooled"])
        print(f"{copied.files} files copied, {copied.left} left where they are")
    copy = of.open_store(folder / "copy" / "films-1.0.0")
    print("the copy is what was sealed:", of.verify(copy).ok, copy.fingerprint == store.fingerprint)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
