"""Other files in the place of a store's lists and metadata are named: a page to log in is no damage."""

import gzip
import shutil

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store
from obygaze_features.store.store import locate

from .toy_stores import make_sealed_store

METADATA = "data/features.zarr/zarr.json"
LISTS = ["tagmanifest-sha256.txt", "manifest-sha256.txt"]
PAGE = b"<!DOCTYPE html><html><body><form>Your name</form></body></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 300\n"

OTHER_FILES_AND_THEIR_NAMES = [
    pytest.param(PAGE, "a web page", id="page"),
    pytest.param(gzip.compress(PAGE), "a gzip archive", id="compressed"),
    pytest.param(POINTER, "git lfs pull", id="pointer"),
]
"""Bytes that a download or git may leave in place of a file, and how messages call them."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The path of a store."""
    return make_sealed_store(tmp_path_factory.mktemp("stores"), 2)


@pytest.fixture
def store(whole, tmp_path):
    """The path of a copy of the store, of which a test replaces files."""
    return shutil.copytree(whole, tmp_path / "toy-1.0.0")


@pytest.mark.parametrize(("other_content", "name_of_content"), OTHER_FILES_AND_THEIR_NAMES)
def test_opening_a_store_whose_metadata_are_another_file_says_what_kind_of_file_that_is(
    store, other_content, name_of_content
):
    """In the place of the metadata, zarr.json, is a web page, a compressed page, or a pointer of git lfs.

    The message names the file and what it is. It does not call the store damaged, for which the advice is to
    verify it: that would find every file changed, and not say why.
    """
    (store / METADATA).write_bytes(other_content)

    with pytest.raises(StoreError, match=name_of_content) as refusal:
        open_store(store)

    assert "zarr.json: " in str(refusal.value)
    assert "damaged (" not in str(refusal.value)


@pytest.mark.parametrize("name_of_list", LISTS)
@pytest.mark.parametrize(("other_content", "name_of_content"), OTHER_FILES_AND_THEIR_NAMES)
def test_pulling_a_store_whose_list_of_files_is_another_file_says_what_kind_of_file_that_is(
    store, tmp_path, name_of_list, other_content, name_of_content
):
    """In the place of one of the two lists of a store's files is a web page, or something else.

    A pull reads the lists first. The message names the list and what it is, instead of complaining that a
    file of the store is missing in it.
    """
    (store / name_of_list).write_bytes(other_content)

    with pytest.raises(StoreError, match=f"{name_of_list}: .*{name_of_content}"):
        download(locate(store), tmp_path / "copy")
