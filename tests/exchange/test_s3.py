"""S3, through the real client: pushed objects first, manifest last, resumed by one LIST; read and pulled.

The server is moto's.
"""

import uuid
from contextlib import suppress

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import push
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_obstore import connect
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles

from ..store.toy_stores import group, sealed, tree

obstore = pytest.importorskip("obstore")


@pytest.fixture
def store(tmp_path):
    return sealed(tmp_path, 72)


@pytest.fixture
def url():
    return f"s3://bucket/{uuid.uuid4().hex}/toy-1.0.0"


@pytest.fixture
def pushed(bucket, store, url):  # noqa: ARG001 - the server that takes it
    """The URL of the store after it was pushed."""
    push(FolderFiles(store), url)
    return url


@pytest.mark.usefixtures("bucket")
def test_a_push_returns_the_url_and_shows_all_files_and_bytes(store, url):
    shown = []
    assert push(FolderFiles(store), url, lambda *numbers: shown.append(numbers)) == url
    files = tree(store)
    assert shown[-1] == (len(files), len(files), sum(map(len, files.values())))


def test_a_pushed_store_reads_as_its_folder(store, pushed):
    local = open_store(store)
    remote = open_store(pushed)
    assert remote.fingerprint == local.fingerprint
    assert (remote.name, remote.version) == ("toy", "1.0.0")
    assert np.array_equal(remote["toy"].pooled(), local["toy"].pooled(), equal_nan=True)
    assert np.array_equal(remote["toy"].read("tt0001-é", "tokens"), local["toy"].read("tt0001-é", "tokens"))


def test_a_pushed_store_verifies(pushed):
    assert verify(pushed).ok


def test_a_pushed_store_is_pulled_byte_for_byte(store, pushed, tmp_path):
    download(locate(pushed), tmp_path / "copy")
    assert tree(tmp_path / "copy") == tree(store)


def test_a_store_whose_objects_need_several_parts_is_pushed(bucket, url, tmp_path):
    from obygaze_features.store.testing import seal_arrays

    rows = np.random.default_rng(0).standard_normal((1024, 2000)).astype(np.float32)
    ids = {f"c{number:04d}": "m" for number in range(len(rows))}
    store = seal_arrays(tmp_path / "large", ids, {"toy": {"pooled": rows}})
    push(FolderFiles(store), url)
    push(FolderFiles(store), url)
    assert "POST" in [method for method, _ in bucket.asked]
    assert verify(url).ok
    assert np.array_equal(open_store(url)["toy"].pooled(), rows)


def test_all_files_are_uploaded_between_the_tag_manifest_and_the_manifest(bucket, store, url):
    push(FolderFiles(store), url)
    uploads = bucket.names("PUT")
    assert uploads[0] == "tagmanifest-sha256.txt"
    assert uploads[-1] == "manifest-sha256.txt"
    assert sorted(uploads) == sorted(tree(store))


def test_a_push_that_is_stopped_leaves_no_store_and_tells_no_secret(bucket, store, url):
    bucket.puts_left = 7
    with pytest.raises(StoreError) as error:
        push(FolderFiles(store), url)
    assert "dont-tell" not in str(error.value)
    with pytest.raises(StoreError, match=r"manifest-sha256.txt|not a whole store"):
        download(locate(url), store.with_name("copy"))


def test_pushing_again_sends_what_a_stopped_push_left_after_one_list(bucket, store, url):
    bucket.puts_left = 7
    with pytest.raises(StoreError):
        push(FolderFiles(store), url)
    bucket.puts_left = -1  # no limit
    bucket.asked.clear()
    push(FolderFiles(store), url)
    assert len(bucket.names("LIST")) == 1
    assert len(bucket.names("PUT")) == len(tree(store)) - 7
    assert verify(url).ok


def test_a_store_that_is_there_already_is_not_sent_again(bucket, store, pushed):
    bucket.asked.clear()
    push(FolderFiles(store), pushed)
    assert [method for method, _ in bucket.asked] == ["LIST", "GET"]


def test_pushing_again_sends_a_file_that_was_lost_alone(bucket, store, pushed):
    obstore.delete(connect(pushed), "README.md")
    bucket.asked.clear()
    push(FolderFiles(store), pushed)
    assert bucket.names("PUT") == ["README.md"]


@pytest.mark.parametrize("n_files_sent", [7, -1], ids=["in part", "whole"])
def test_a_store_that_is_there_is_not_overwritten_by_another(bucket, store, url, tmp_path, n_files_sent):
    bucket.puts_left = n_files_sent  # -1: no limit
    with suppress(StoreError):
        push(FolderFiles(store), url)
    bucket.puts_left = -1
    another = sealed(tmp_path / "other", 72, [group(contact="me")])
    with pytest.raises(StoreError):
        push(FolderFiles(another), url)
    push(FolderFiles(store), url)
    assert verify(url, "full").ok


@pytest.mark.usefixtures("bucket")
def test_damage_is_found_before_it_is_published(store, url):
    chunk = store / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="pooled/c/0/0"):
        push(FolderFiles(store), url)


@pytest.mark.usefixtures("bucket")
def test_of_two_stores_pushed_to_one_place_at_once_the_second_is_refused(store, url, tmp_path, monkeypatch):
    """A push has found the place empty; before its first file is there another push fills the place."""
    quicker_store = sealed(tmp_path / "other", 72, [group(contact="me")])
    put = obstore.put
    begun = []

    def put_after_the_quicker_push(place, name, data, **options):
        if not begun:
            begun.append(name)
            push(FolderFiles(quicker_store), url)
        return put(place, name, data, **options)

    monkeypatch.setattr(obstore, "put", put_after_the_quicker_push)
    with pytest.raises(StoreError):
        push(FolderFiles(store), url)
    assert open_store(url).fingerprint == open_store(quicker_store).fingerprint
    assert verify(url, "digests").ok
