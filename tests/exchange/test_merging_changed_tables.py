"""A store whose clips were changed after its seal is not merged: the result would give them valid digests."""

import pytest

from obygaze_features import merge
from obygaze_features.errors import StoreError
from obygaze_features.store.format import DIGESTS, TABLE
from tests.store.toy_stores import make_sealed_store


@pytest.fixture
def stores(tmp_path):
    """Two sealed stores of the same clips."""
    return make_sealed_store(tmp_path / "a"), make_sealed_store(tmp_path / "b")


def rewrite(path, old, new):
    """Replace bytes of a file of a sealed store, as an editor or Git may do."""
    content = path.read_bytes()
    assert old in content
    path.chmod(0o644)
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize(("old", "new"), [(b"\n", b"\r\n"), (b"\n", b" \n")])
def test_a_table_of_clips_that_was_changed_is_refused(stores, tmp_path, old, new):
    first, second = stores
    rewrite(second / TABLE, old, new)

    with pytest.raises(StoreError):
        merge([first, second], tmp_path / "both")

    assert not (tmp_path / "both-1.0.0").exists()


def test_a_manifest_of_digests_that_was_changed_is_refused(stores, tmp_path):
    """The fingerprint of the store, which the merged one names as its parent, is made of this file."""
    first, second = stores
    listed_digest = (second / DIGESTS).read_bytes()[:64]
    rewrite(second / DIGESTS, listed_digest, b"0" * 64)

    with pytest.raises(StoreError, match=DIGESTS):
        merge([first, second], tmp_path / "both")


def test_stores_as_they_were_sealed_are_merged(stores, tmp_path):
    assert merge(stores, tmp_path / "both").name == "both-1.0.0"
