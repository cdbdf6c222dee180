"""Reading a store here and over loopback HTTP, against what a lab would do without one.

All peers run in this one process, in turn, on the same numbers; look at the ratios. The files have just been
written, so they come from the page cache: this measures the formats and the programs, not disks or networks.
Wall-clock milliseconds, median. The server is nginx, or one of yours that answers ranges and serves the
folder given with --folder.

    python benchmarks/store.py [--clips 7637] [--repeats 9] [--folder DIR --url http://127.0.0.1:8080]
"""

import argparse
import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.exchange.publish import pack
from obygaze_features.store import open_store, verify
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@contextlib.contextmanager
def nginx(root: Path) -> Iterator[str]:
    """Serve a folder by nginx on a free port."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    root.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = NGINX.format(folder=folder, root=root, port=port)
    (folder / "nginx.conf").write_text(f"user root;{settings}", encoding="utf-8")
    server = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    url = f"http://127.0.0.1:{port}"
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            break
        time.sleep(0.05)
    try:
        yield url
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def write(folder: Path, clips: int, features: int) -> NDArray[np.float32]:
    """Write pooled vectors and frames as a store, as its zip, and the vectors as one .npy."""
    rng = np.random.default_rng(0)
    pooled = rng.standard_normal((clips, features)).astype(np.float32)
    frames = np.broadcast_to(pooled[:, None, :], (clips, 8, features)).astype(np.float16)
    ids = {f"clip-{number:05d}": f"m{number % 20}" for number in range(clips)}
    seal_arrays(folder / "noise", ids, {"noise": {"pooled": pooled, "frames": frames}}, n_frames=8)
    shutil.rmtree(folder / "noise.staging")
    pack(FolderFiles(folder / "noise-1.0.0"), folder / "noise-1.0.0.zip")
    np.save(folder / "all.npy", pooled)
    return pooled


def times(peers: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Run the peers in turn and give each one's median wall-clock milliseconds."""
    taken: dict[str, list[float]] = {peer: [] for peer in peers}
    for _ in range(repeats):
        for peer, run in peers.items():
            begin = time.perf_counter()
            run()
            taken[peer].append(1000 * (time.perf_counter() - begin))
    return {peer: median(spans) for peer, spans in taken.items()}


def show(title: str, found: dict[str, float], base: str) -> None:
    """Print one table; ratios are to the peer `base`."""
    rows = [(peer, f"{span:.1f}", f"{span / found[base]:.2f}") for peer, span in found.items()]
    print(f"\n{title}")
    print(tabulate(rows, headers=("", "ms", f"times {base}"), disable_numparse=True))


def main() -> None:
    """Write the corpus, serve it, time everybody, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=7637)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--url")
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = asked.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pooled = write(folder, asked.clips, asked.features)
        url = asked.url or stack.enter_context(nginx(folder))
        store, zipped = folder / "noise-1.0.0", folder / "noise-1.0.0.zip"

        def check(read: Callable[[], NDArray[Any]]) -> Callable[[], object]:
            assert np.array_equal(read(), pooled)
            return read

        def of(place: object) -> Callable[[], NDArray[np.float32]]:
            def read() -> NDArray[np.float32]:
                return open_store(str(place))["noise"].pooled()

            return read

        def download(name: str) -> NDArray[Any]:
            with urllib.request.urlopen(f"{url}/{name}") as answer, (folder / "got").open("wb") as file:  # noqa: S310 - our own server
                shutil.copyfileobj(answer, file, 1 << 20)
            return np.load(folder / "got") if name.endswith(".npy") else pooled

        opened, opened_zip = open_store(store)["noise"], open_store(zipped)["noise"]
        npy = partial(np.load, folder / "all.npy")
        local: dict[str, Callable[[], object]] = {
            "np.load": check(npy),
            "folder, already open": check(opened.pooled),
            "folder, opened anew": check(of(store)),
            "zip, already open": check(opened_zip.pooled),
            "zip, opened anew": check(of(zipped)),
        }
        show("all pooled vectors, here", times(local, asked.repeats), "np.load")
        served: dict[str, Callable[[], object]] = {
            "GET all.npy, np.load": check(lambda: download("all.npy")),
            "store at URL, opened anew": check(of(f"{url}/noise-1.0.0")),
            "zip at URL, opened anew": check(of(f"{url}/noise-1.0.0.zip")),
            "GET the whole zip": lambda: download("noise-1.0.0.zip"),
        }
        show("first pooled matrix over loopback HTTP", times(served, asked.repeats), "GET all.npy, np.load")

        def one_clip(place: object) -> Callable[[], object]:
            group = open_store(str(place))["noise"]
            return lambda: group.read("clip-04000", "frames")

        single = {
            "folder": store,
            "zip": zipped,
            "URL": f"{url}/noise-1.0.0",
            "zip at URL": f"{url}/noise-1.0.0.zip",
        }
        show(
            "one clip's frames, already open",
            times({k: one_clip(v) for k, v in single.items()}, 30),
            "folder",
        )
        sums = ["sha256sum", "-c", "--quiet", "manifest-sha256.txt"]
        checks: dict[str, Callable[[], object]] = {
            "sha256sum -c": lambda: subprocess.run(sums, cwd=store, check=True),
            "verify": lambda: verify(store),
            "verify, zip": lambda: verify(zipped),
            "verify, URL": lambda: verify(f"{url}/noise-1.0.0"),
            "verify --full": lambda: verify(store, "full"),
        }
        show("verification", times(checks, 5), "sha256sum -c")

        def pull(place: str, **only: list[str]) -> Callable[[], object]:
            def run() -> None:
                shutil.rmtree(folder / "copy", ignore_errors=True)
                download(locate(place), folder / "copy", **only)  # type: ignore[arg-type]  # arrays and clips alone

            return run

        pulls: dict[str, Callable[[], object]] = {
            "GET the whole zip": lambda: download("noise-1.0.0.zip"),
            "pull": pull(f"{url}/noise-1.0.0"),
            "pull, zip": pull(f"{url}/noise-1.0.0.zip"),
            "pull --arrays pooled": pull(f"{url}/noise-1.0.0", arrays=["pooled"]),
        }
        show(
            "copying, digests and forced to the disk included but for GET",
            times(pulls, 5),
            "GET the whole zip",
        )
        sizes = [path.stat().st_size for path in store.rglob("*") if path.is_file()]
        print(f"\n{asked.clips} clips, {len(sizes)} files, {sum(sizes) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
