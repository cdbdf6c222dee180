"""What stands in the place of a store's lists and metadata is named: a page to log in is no damage."""

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

IN_PLACE = [
    pytest.param(PAGE, "a web page", id="page"),
    pytest.param(gzip.compress(PAGE), "a gzip archive", id="compressed"),
    pytest.param(POINTER, "git lfs pull", id="pointer"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The path of a store."""
    return make_sealed_store(tmp_path_factory.mktemp("stores"), 2)


@pytest.fixture
def store(whole, tmp_path):
    """The path of a copy of the store, of which a test replaces files."""
    return shutil.copytree(whole, tmp_path / "toy-1.0.0")


@pytest.mark.parametrize(("content", "named"), IN_PLACE)
def test_opening_a_store_names_what_is_there_for_its_metadata(store, content, named):
    """Verifying, which is advised for damage, would find every file changed, and not why."""
    (store / METADATA).write_bytes(content)

    with pytest.raises(StoreError, match=named) as refusal:
        open_store(store)

    assert "zarr.json: " in str(refusal.value)
    assert "damaged (" not in str(refusal.value)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(("content", "named"), IN_PLACE)
def test_pulling_a_store_names_what_is_there_for_its_lists(store, tmp_path, name, content, named):
    """It was said not to list bag-info.txt."""
    (store / name).write_bytes(content)

    with pytest.raises(StoreError, match=f"{name}: .*{named}"):
        download(locate(store), tmp_path / "copy")
