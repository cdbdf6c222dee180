"""A store that is given twice is a slip: the result would be a copy, and lack the store that was meant."""

import pytest

from obygaze_features import merge
from obygaze_features.errors import StoreError
from tests.store.toy_stores import make_sealed_store


@pytest.fixture
def store(tmp_path):
    return make_sealed_store(tmp_path / "a")


def test_a_store_given_twice_is_refused(store, tmp_path):
    with pytest.raises(StoreError, match="given twice"):
        merge([store, store], tmp_path / "both")

    assert not (tmp_path / "both-1.0.0").exists()


def test_a_store_given_by_two_paths_is_refused(store, tmp_path):
    link = tmp_path / "link-1.0.0"
    link.symlink_to(store)

    with pytest.raises(StoreError, match=r"link-1\.0\.0: this store is given twice"):
        merge([store, link], tmp_path / "both")


def test_stores_of_the_same_clips_at_two_places_are_merged(store, tmp_path):
    """Parts of a corpus may overlap, even entirely."""
    other = make_sealed_store(tmp_path / "b")

    assert merge([store, other], tmp_path / "both").name == "both-1.0.0"
