"""Another store is put in the folder of an open one: never its numbers under the first one's clip ids."""

import os
import shutil

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store

from .test_exchanged_stores import NAME_OF_STORE, READS, two_folders
from .toy_stores import make_sealed_store

__all__ = ["two_folders"]  # a fixture

ANOTHER = "the store at this address is another than the one that was opened, or gone: open it again"


@pytest.fixture
def folder(two_folders, tmp_path):
    """A copy of the first store, which a test may exchange."""
    return shutil.copytree(two_folders.first / NAME_OF_STORE, tmp_path / NAME_OF_STORE)


def rename_into_place(other, folder):
    """Exchange the folder at once, as a pull or a restore does."""
    folder.rename(folder.with_name("before"))
    shutil.copytree(other, folder)


def copy_over(other, folder):
    """Write each file over the one that is there, as `cp -r` does."""
    shutil.copytree(other, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)


@pytest.mark.parametrize("exchange", [rename_into_place, copy_over])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_another_store_in_the_folder_is_refused_and_named(two_folders, folder, read, exchange):
    """`folder` has a copy of the first of two stores, which is opened; then the second takes its place.

    Both have the same shapes, so that numbers of the second would come silently under the first one's ids.
    """
    group_of_first = open_store(folder)["toy"]
    exchange(two_folders.second / NAME_OF_STORE, folder)

    with pytest.raises(StoreError) as raised:
        read(group_of_first)

    assert str(raised.value) == f"{folder}: {ANOTHER}"


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_store_that_is_gone_is_said_to_be(folder, read):
    """A store is opened, and its folder is removed: the message says that the store is another, or gone."""
    group = open_store(folder)["toy"]
    shutil.rmtree(folder)

    with pytest.raises(StoreError, match=r"the store at this address is another .*, or gone"):
        read(group)


@pytest.mark.parametrize(
    "read", [lambda group: group.pooled(), lambda group: group.tokens()], ids=["pooled", "tokens"]
)
def test_a_smaller_store_in_the_folder_is_refused_and_named(folder, tmp_path, read):
    """A store of 40 clips is opened; then one of three clips takes its place, whose files end earlier.

    The error says that the store is another one, not that a file is too short.
    """
    group = open_store(folder)["toy"]
    three_clips = make_sealed_store(tmp_path / "smaller", 3)
    rename_into_place(three_clips, folder)

    with pytest.raises(StoreError, match=ANOTHER):
        read(group)


def test_a_folder_that_is_opened_again_gives_the_numbers_of_the_store_that_is_there_now(two_folders, folder):
    """`folder` has a copy of the first store, which is opened and read; then the second takes its place.

    The error of a read advises to open the folder again: whoever does so reads the numbers of the second.
    """
    open_store(folder)["toy"].pooled()
    rename_into_place(two_folders.second / NAME_OF_STORE, folder)

    pooled_now = open_store(folder)["toy"].pooled()

    pooled_of_second = open_store(two_folders.second / NAME_OF_STORE)["toy"].pooled()
    assert np.array_equal(pooled_now, pooled_of_second, equal_nan=True)


def test_an_open_store_is_still_read_after_a_copy_of_the_same_store_was_written_over_it(two_folders, folder):
    """`folder` has a copy of the first store, which is opened; then the same files are written over it.

    So does a backup that is restored, or git-annex when it unlocks files: the files' dates change, but not
    their bytes. An open store must not be taken for another one: every kind of read succeeds.
    """
    open_group = open_store(folder)["toy"]
    copy_over(two_folders.first / NAME_OF_STORE, folder)
    for path in folder.rglob("*.txt"):  # the lists of digests, by which an exchange would be noticed
        os.utime(path, ns=(0, 0))

    for read_something in READS.values():
        read_something(open_group)  # would raise StoreError if the store were taken for another one


def test_an_open_store_is_still_read_when_another_version_is_put_beside_its_folder(two_folders, folder):
    """The store in folder toy-1.0.0 is opened; then a store comes into toy-1.1.0, as if it had grown.

    A store grows by a new folder. The open store's own folder is unchanged: every kind of read succeeds.
    """
    open_group = open_store(folder)["toy"]
    shutil.copytree(two_folders.second / NAME_OF_STORE, folder.with_name("toy-1.1.0"))

    for read_something in READS.values():
        read_something(open_group)  # would raise StoreError if the store were taken for another one
