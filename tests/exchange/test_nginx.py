"""A store behind a real nginx: read, pulled, resumed; a cut connection or a wrong byte does no harm."""

import hashlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange import transfer as downloading
from obygaze_features.exchange.publish import pack
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store, verify
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

from ..store.toy_stores import tree
from .nginx_server import NGINX, meddling, nginx

pytest.importorskip("obstore")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

LARGE = "data/features.zarr/toy/pooled/c/0/0"
PLACES = ("toy-1.0.0", "toy-1.0.0.zip")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with a store of 1 MB, whose pooled vectors are one chunk, and its zip."""
    folder = tmp_path_factory.mktemp("my site")
    rng = np.random.default_rng(0)
    arrays = {
        "pooled": rng.standard_normal((200, 1024)).astype(np.float32),
        "tokens": rng.standard_normal((200, 2, 32)).astype(np.float16),
    }
    store = seal_arrays(folder / "toy", {f"c{row:03d}": "m" for row in range(200)}, {"toy": arrays})
    pack(FolderFiles(store), folder / "toy-1.0.0.zip")
    return folder


@pytest.fixture(scope="module")
def whole(root):
    return tree(root / "toy-1.0.0")


@pytest.fixture(scope="module")
def url(root, tmp_path_factory):
    with nginx(root, tmp_path_factory.mktemp("nginx")) as url:
        yield url


@pytest.fixture
def proxy(url, monkeypatch):
    monkeypatch.setattr(downloading, "FIRST_WAIT_S", 0.0)
    with meddling(url) as proxy:
        yield proxy


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("folder", ["", "/gzipped"])
def test_a_store_reads_and_verifies_as_it_does_here(root, url, place, folder):
    here, there = open_store(root / "toy-1.0.0"), open_store(f"{url}{folder}/{place}")
    assert there.fingerprint == here.fingerprint
    assert there.clips == here.clips
    assert np.array_equal(there["toy"].pooled(), here["toy"].pooled())
    assert np.array_equal(there["toy"].read("c077", "tokens"), here["toy"].read("c077", "tokens"))
    assert verify(f"{url}{folder}/{place}", "full").ok


@pytest.mark.parametrize("place", PLACES)
def test_one_clip_is_a_range_of_its_shard(proxy, place):
    group = open_store(f"{proxy.url}/{place}")["toy"]
    proxy.asked.clear()
    proxy.sent = 0
    group.read("c077", "tokens")
    assert all(span for _, span in proxy.asked)
    assert proxy.sent < 2 * 2 * 32 * 2 + 16 * 16 + 4  # the clip, the shard's index, checksums


@pytest.mark.parametrize("place", PLACES)
def test_what_is_pulled_is_the_store_byte_for_byte(url, whole, tmp_path, place):
    download(locate(f"{url}/{place}"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole


def test_a_partial_copy_asks_for_nothing_else(proxy, tmp_path):
    download(locate(f"{proxy.url}/toy-1.0.0"), tmp_path / "copy", arrays=["pooled"])
    assert not [path for path, _ in proxy.asked if "/tokens/c" in path]
    assert verify(tmp_path / "copy", "full").ok


@pytest.mark.parametrize("place", PLACES)
def test_a_connection_that_breaks_in_the_middle_of_a_file_costs_only_what_was_under_way(
    proxy, whole, tmp_path, place
):
    proxy.cuts = {LARGE: [300_000, 200_000, 100_000], ".zip": [30, 300_000]}
    download(locate(f"{proxy.url}/{place}"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole
    assert not proxy.cuts[LARGE if place == PLACES[0] else ".zip"]
    if place == PLACES[0]:
        starts = [int(span.partition("-")[0] or 0) for path, span in proxy.asked if path.endswith(LARGE)]
        assert starts == sorted(set(starts))
        assert len(starts) == 4
        assert proxy.sent < 1.3 * sum(map(len, whole.values()))


def test_a_file_that_always_breaks_off_is_named_and_what_came_is_kept(proxy, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "ATTEMPTS", 1)
    proxy.cuts = {LARGE: [300_000] + [0] * 20}
    with pytest.raises(StoreError, match=f"{LARGE}: "):
        download(locate(f"{proxy.url}/toy-1.0.0"), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    partial = tmp_path / "copy.pulling" / f"{LARGE}.{hashlib.sha256(whole[LARGE]).hexdigest()}.partial"
    kept = partial.stat().st_size
    assert 200_000 < kept <= 300_000
    proxy.cuts = {}
    proxy.asked.clear()
    download(locate(f"{proxy.url}/toy-1.0.0"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole
    assert [span for path, span in proxy.asked if path.endswith(LARGE)] == [f"{kept}-"]


def test_reading_goes_on_where_a_connection_broke(proxy, root):
    proxy.cuts = {LARGE: [500_000, 1]}
    found = open_store(f"{proxy.url}/toy-1.0.0")["toy"].pooled()
    assert np.array_equal(found, open_store(root / "toy-1.0.0")["toy"].pooled())
    assert not proxy.cuts[LARGE]


@pytest.mark.parametrize("place", [0, 400_000, 800 * 1024 + 3])
def test_one_wrong_byte_is_refused_by_every_way_of_reading(proxy, tmp_path, place):
    proxy.flips = {LARGE: place}
    with pytest.raises(StoreError, match=f"{LARGE}: what comes is not what its digest says, twice"):
        download(locate(f"{proxy.url}/toy-1.0.0"), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreError, match="toy/pooled"):
        open_store(f"{proxy.url}/toy-1.0.0")["toy"].pooled()
    assert [problem.file for problem in verify(f"{proxy.url}/toy-1.0.0").problems] == [LARGE]


def test_a_wrong_byte_in_a_zip_never_arrives(proxy, tmp_path):
    proxy.flips = {".zip": 100_000}  # of every answer
    with pytest.raises(
        StoreError, match=r"toy-1\.0\.0\.zip.*: what comes is not what its digest says, twice"
    ):
        download(locate(f"{proxy.url}/toy-1.0.0.zip"), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


PULL = """
import os, signal, sys
from pathlib import Path
from obygaze_features.exchange import transfer
from obygaze_features.store.store import locate

def counted(files, name, partial, said, count, real=transfer.download_file):
    def kill(name, size, more):  # in the thread that brings the file, whatever the others do
        count(name, size, more)
        if name == sys.argv[3] and size >= 200_000:
            os.kill(os.getpid(), signal.SIGKILL)
    real(files, name, partial, said, kill)

transfer.download_file = counted
transfer.download(locate(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_pull_killed_in_the_middle_of_a_file_goes_on_there(proxy, whole, tmp_path):
    partial = tmp_path / "copy.pulling" / f"{LARGE}.{hashlib.sha256(whole[LARGE]).hexdigest()}.partial"
    proxy.cuts = {LARGE: [300_000]}  # so that the file cannot have come as a whole
    words = [sys.executable, "-c", PULL, f"{proxy.url}/toy-1.0.0", str(tmp_path / "copy"), LARGE]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    kept = partial.stat().st_size
    assert 100_000 <= kept <= 300_000  # what came last may not have been written yet
    proxy.cuts.clear()
    proxy.asked.clear()
    download(locate(f"{proxy.url}/toy-1.0.0"), tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole
    assert [span for path, span in proxy.asked if path.endswith(LARGE)] == [f"{kept}-"]


def test_what_nginx_refuses_or_has_not_is_one_clear_line(url):
    for place, message in (
        ("private/toy-1.0.0", "the server refuses access"),
        ("toy-2.0.0", "missing; this is not a whole store"),
    ):
        with pytest.raises(StoreError, match=message) as said:
            open_store(f"{url}/{place}")
        assert "\n" not in str(said.value)
