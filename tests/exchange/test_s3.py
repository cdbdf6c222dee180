"""S3, through the real client: pushed objects first, manifest last, resumed by one LIST; read and pulled.

The server is moto's.
"""

import uuid

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import push
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_obstore import connect
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

from ..store.toy_stores import bytes_of_files, group, make_sealed_store

obstore = pytest.importorskip("obstore")


@pytest.fixture
def path_of_store(tmp_path):
    return make_sealed_store(tmp_path, 72)


@pytest.fixture
def url():
    """A place in the bucket at which there is nothing yet."""
    return f"s3://bucket/{uuid.uuid4().hex}/toy-1.0.0"


@pytest.fixture
def pushed_url(bucket, path_of_store, url):  # noqa: ARG001 - the server that takes it
    """The URL of the store after it was pushed."""
    push(FolderFiles(path_of_store), url)
    return url


@pytest.mark.usefixtures("bucket")
def test_a_push_returns_the_url_and_its_progress_ends_with_all_files_and_their_bytes(path_of_store, url):
    """The progress is called with the number of files done, of all files, and of bytes done."""
    progress = []

    def note_progress(n_done, n_files, n_bytes):
        progress.append((n_done, n_files, n_bytes))

    returned_url = push(FolderFiles(path_of_store), url, note_progress)

    assert returned_url == url
    size_of_file = {name: len(data) for name, data in bytes_of_files(path_of_store).items()}
    n_files = len(size_of_file)
    assert progress[-1] == (n_files, n_files, sum(size_of_file.values()))


@pytest.mark.long
def test_a_pushed_store_reads_as_its_folder_and_is_pulled_byte_for_byte(path_of_store, pushed_url, tmp_path):
    """The folder is that of the store which was pushed. It is opened at its URL, then pulled from there."""
    local = open_store(path_of_store)
    remote = open_store(pushed_url)

    assert remote.fingerprint == local.fingerprint
    assert remote.name == "toy"
    assert remote.version == "1.0.0"
    assert np.array_equal(remote["toy"].pooled(), local["toy"].pooled(), equal_nan=True)
    assert np.array_equal(remote["toy"].read("tt0001-é", "tokens"), local["toy"].read("tt0001-é", "tokens"))

    assert verify(pushed_url).ok

    download(locate(pushed_url), tmp_path / "copy")
    assert bytes_of_files(tmp_path / "copy") == bytes_of_files(path_of_store)


@pytest.mark.long
def test_a_store_whose_objects_need_several_parts_is_pushed_and_may_be_pushed_again(bucket, url, tmp_path):
    """1,024 vectors of 2,000 numbers of 4 bytes are a chunk of 8 MB, which is sent in several parts.

    S3 gives such an object no digest of its content, by which the second push could recognise it.
    """
    vectors = np.random.default_rng(0).standard_normal((1024, 2000)).astype(np.float32)
    movie_of = {f"c{number:04d}": "m" for number in range(len(vectors))}
    store = seal_arrays(tmp_path / "large", movie_of, {"toy": {"pooled": vectors}})

    push(FolderFiles(store), url)
    methods = [method for method, _ in bucket.requests]
    begins_an_object_of_several_parts = "POST"
    assert begins_an_object_of_several_parts in methods

    push(FolderFiles(store), url)

    assert verify(url).ok
    assert np.array_equal(open_store(url)["toy"].pooled(), vectors)


def test_the_tag_manifest_is_uploaded_first_and_the_manifest_last(bucket, path_of_store, url):
    """The first says what is on its way, and without the last there is no store."""
    push(FolderFiles(path_of_store), url)

    uploads = bucket.names("PUT")
    assert uploads[0] == "tagmanifest-sha256.txt"
    assert uploads[-1] == "manifest-sha256.txt"
    assert sorted(uploads) == sorted(bytes_of_files(path_of_store))


N_BEFORE_THE_STOP = 7


@pytest.fixture
def stopped_push(bucket, path_of_store, url):
    """Push a store until the server refuses the eighth file; gives the error."""
    bucket.n_puts_left = N_BEFORE_THE_STOP
    with pytest.raises(StoreError) as error:
        push(FolderFiles(path_of_store), url)
    bucket.allow_all_puts()
    return error.value


def test_a_push_that_is_stopped_leaves_no_store_and_tells_no_secret(path_of_store, url, stopped_push):
    """A server refused the eighth file of a push, which ended with the error `stopped_push`.

    The list of digests is uploaded last, so it is not there, and what is there is not taken for a store. The
    error must not tell the key by which the server was asked.
    """
    with pytest.raises(StoreError, match=r"manifest-sha256.txt|not a whole store"):
        download(locate(url), path_of_store.with_name("copy"))
    secret_key = "dont-tell"  # noqa: S105 - of the tests' server
    assert secret_key not in str(stopped_push)


@pytest.mark.long
@pytest.mark.usefixtures("stopped_push")
def test_pushing_again_lists_what_is_there_and_sends_the_rest(bucket, path_of_store, url):
    """The first push was stopped after seven files. One request lists them, and they are not sent again."""
    bucket.requests.clear()

    push(FolderFiles(path_of_store), url)

    assert len(bucket.names("LIST")) == 1
    assert len(bucket.names("PUT")) == len(bytes_of_files(path_of_store)) - 7
    assert verify(url).ok


@pytest.mark.long
def test_a_store_that_is_there_already_is_not_sent_again(bucket, path_of_store, pushed_url):
    """Two requests are enough: the list of objects, and the list of digests."""
    bucket.requests.clear()

    push(FolderFiles(path_of_store), pushed_url)

    methods = [method for method, _ in bucket.requests]
    assert methods == ["LIST", "GET"]


@pytest.mark.long
def test_pushing_again_sends_only_the_file_that_was_lost(bucket, path_of_store, pushed_url):
    """README.md was deleted from the bucket after the store was pushed."""
    obstore.delete(connect(pushed_url), "README.md")
    bucket.requests.clear()

    push(FolderFiles(path_of_store), pushed_url)

    assert bucket.names("PUT") == ["README.md"]


@pytest.mark.long
@pytest.mark.parametrize("first_push", ["pushed_url", "stopped_push"])
@pytest.mark.usefixtures("bucket")
def test_a_pushed_store_is_not_overwritten_by_another(request, path_of_store, url, tmp_path, first_push):
    """A place in the bucket belongs to the store whose push came first, even if that push was stopped.

    Another store is refused there, and the first one can still be pushed.
    """
    fixture_that_pushes_the_first_store = first_push
    request.getfixturevalue(fixture_that_pushes_the_first_store)

    another_store = make_sealed_store(tmp_path / "other", 72, [group(contact="me")])
    with pytest.raises(StoreError):
        push(FolderFiles(another_store), url)

    push(FolderFiles(path_of_store), url)
    assert verify(url, "full").ok


@pytest.mark.usefixtures("bucket")
def test_damage_is_found_before_it_is_published(path_of_store, url):
    """The last byte of a chunk of the store is changed; the push names the chunk."""
    chunk = path_of_store / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")

    with pytest.raises(StoreError, match="pooled/c/0/0"):
        push(FolderFiles(path_of_store), url)


def push_before_the_first_file_of_another_push(store, url, monkeypatch):
    """Push a store when another push, which begins later on, is about to send its first file."""
    put = obstore.put
    has_begun = False

    def put_after_the_push_of_the_store(place, name, data, **options):
        nonlocal has_begun
        if not has_begun:
            has_begun = True
            push(FolderFiles(store), url)
        return put(place, name, data, **options)

    monkeypatch.setattr(obstore, "put", put_after_the_push_of_the_store)


@pytest.mark.long
@pytest.mark.usefixtures("bucket")
def test_the_slower_of_two_pushes_to_one_place_is_refused(path_of_store, url, tmp_path, monkeypatch):
    """A push finds a place empty. Before it sends its first file, another store is pushed there as a whole.

    It must not write its files among those of the other, whose store stays whole.
    """
    quicker_store = make_sealed_store(tmp_path / "other", 72, [group(contact="me")])
    push_before_the_first_file_of_another_push(quicker_store, url, monkeypatch)

    with pytest.raises(StoreError):
        push(FolderFiles(path_of_store), url)

    assert open_store(url).fingerprint == open_store(quicker_store).fingerprint
    assert verify(url, "digests").ok
