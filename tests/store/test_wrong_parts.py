"""Servers, or caches before them, that answer a range request with another part of the file."""

import hashlib
import sys
from typing import ClassVar

import numpy as np
import pytest

from obygaze_features.errors import FileEndsError, NoRangesError
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store
from obygaze_features.store.store import locate

from .serving import Handler, byte_range, serving

pytest.importorskip("obstore")

SHARD = "data/features.zarr/toy/tokens/c/0/0/0"
"""The tokens of 16 clips, of which a range request fetches those of one."""


@pytest.fixture(params=["obstore", "standard library"], autouse=True)
def client(request, monkeypatch):
    """What asks servers: without obstore, as on a laptop's install, the standard library."""
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    if request.param != "obstore":
        monkeypatch.setitem(sys.modules, "obstore", None)


class Cache(Handler):
    """Gives everybody the part of a file that somebody asked for first, if it has as many bytes."""

    first_parts: ClassVar[dict[tuple[str, int], tuple[int, int]]] = {}
    """(file, bytes asked for) -> the part that is kept."""

    def do_GET(self):  # noqa: N802
        """Answer a request for a part from what is kept."""
        asked_range = self.headers.get("Range", "")
        if not asked_range or not self.path.endswith(SHARD):
            super().do_GET()
            return
        data = (self.server.root / self.path.lstrip("/")).read_bytes()
        first, end = byte_range(asked_range, len(data))
        if first >= len(data):
            super().do_GET()  # which says that the file ends before
            return
        first, end = self.first_parts.setdefault((self.path, end - first), (first, end))
        self.answer(206, data[first:end], Content_Range=f"bytes {first}-{end - 1}/{len(data)}")


class Unclear(Handler):
    """Gives the right part of a file, and does not say which part that is."""

    def do_GET(self):  # noqa: N802
        """Answer a request for a part without the header that names the part."""
        asked_range = self.headers.get("Range", "")
        if not asked_range:
            super().do_GET()
            return
        data = (self.server.root / self.path.lstrip("/")).read_bytes()
        first, end = byte_range(asked_range, len(data))
        if first >= len(data):
            super().do_GET()  # which says that the file ends before
            return
        self.answer(206, data[first:end])


class CutShort(Handler):
    """Has only the first 900 bytes of the shard, and answers with what it has of the part."""

    def do_GET(self):  # noqa: N802
        """Answer a request for a part of the shard with its beginning."""
        asked_range = self.headers.get("Range", "")
        if not asked_range.startswith("bytes=500-") or not self.path.endswith(SHARD):
            super().do_GET()
            return
        data = (self.server.root / self.path.lstrip("/")).read_bytes()[:900]
        self.answer(206, data[500:], Content_Range=f"bytes 500-899/{len(data)}")


def test_tokens_of_another_clip_are_refused_though_they_are_whole(served_folder):
    """Two clips are read through a cache that gives the second reader the part of the first.

    The tokens of every clip have a checksum of their own, which fits the wrong clip's tokens too.
    """
    with serving(served_folder, Cache) as server:
        group = open_store(f"{server.url}/toy-1.0.0")["toy"]
        first_clip, second_clip = np.array(group.clip_ids)[group.usable][:2].tolist()
        group.read(first_clip, "tokens")

        with pytest.raises(NoRangesError, match="another part of the file than is asked for"):
            group.read(second_clip, "tokens")


def test_tokens_are_refused_if_the_server_does_not_say_which_bytes_of_the_file_it_sent(served_folder):
    """A clip's tokens are asked for as a range of bytes of a file.

    The server sends the right bytes, but without the header Content-Range, which says which bytes these are.
    They might be another clip's, and nobody could tell.
    """
    with serving(served_folder, Unclear) as server:
        group = open_store(f"{server.url}/toy-1.0.0")["toy"]

        with pytest.raises(NoRangesError, match="another part"):
            group.read(group.clip_ids[0], "tokens")


def test_a_file_that_ends_before_the_last_byte_that_is_asked_for_is_refused(served_folder):
    """1000 bytes from byte 500 on are asked for, and the server's file now ends at byte 900.

    The 400 bytes that it sends are not handed on: the error says that the file ends too early.
    """
    with serving(served_folder, CutShort) as server:
        files = locate(f"{server.url}/toy-1.0.0")

        with pytest.raises(FileEndsError, match="ends before the part"):
            files.read(SHARD, 500, 1000)


def leave_of_a_stopped_pull(copy, store, n_bytes):
    """Leave the first `n_bytes` of the store's shard where a pull that was stopped keeps them.

    If the shard has fewer bytes, the rest is filled up with x.
    """
    digest = hashlib.sha256((store / SHARD).read_bytes()).hexdigest()
    partial = copy.with_name(f"{copy.name}.pulling") / f"{SHARD}.{digest}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes((store / SHARD).read_bytes()[:n_bytes].ljust(n_bytes, b"x"))


@pytest.mark.parametrize(
    "handler", [Cache, Unclear], ids=["a cache that may give another part", "no word on which part it gives"]
)
@pytest.mark.parametrize("n_bytes", [500, 100_000], ids=["a part", "more bytes than the file has"])
def test_a_stopped_pull_begins_a_file_again_that_the_server_cannot_continue(
    served_folder, tmp_path, handler, n_bytes
):
    """A pull (download) of a store was stopped, and has left a part of a file, or more bytes than it has.

    The server gives whole files rightly, but not the rest of one. So the file is fetched from its beginning,
    and the pull does not fail for what an earlier one left.
    """
    store = served_folder / "toy-1.0.0"
    copy = tmp_path / "copy"
    leave_of_a_stopped_pull(copy, store, n_bytes)

    with serving(served_folder, handler) as server:
        download(locate(f"{server.url}/toy-1.0.0"), copy)

    assert (copy / SHARD).read_bytes() == (store / SHARD).read_bytes()
