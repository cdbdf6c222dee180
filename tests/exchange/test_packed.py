"""Packing: one zip, the same bytes every time, read where it lies; every other zip is refused in one line."""

import copy
import os
import random
import shutil
import stat
import zipfile

import numpy as np
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.exchange.publish import pack
from obygaze_features.exchange.transfer import download
from obygaze_features.store import open_store, verify
from obygaze_features.store.files_zip import open_zip
from obygaze_features.store.store_files import FolderFiles

from ..store.toy_stores import bytes_of_files, group, make_sealed_store


@pytest.fixture(scope="module")
def sealed_store(tmp_path_factory):
    return make_sealed_store(tmp_path_factory.mktemp("pristine"), 72, [group(), group("alone", ["pooled"])])


@pytest.fixture(scope="module")
def packed(sealed_store):
    return pack(FolderFiles(sealed_store), sealed_store.with_name("toy-1.0.0.zip"))


def same_values(store, other):
    """Return whether two stores have the same groups, with the same values in all arrays."""
    if tuple(store) != tuple(other):
        return False
    for name in store:
        group, other_group = store[name], other[name]
        for array in (*group.arrays, "time_s", "frame_index", "clip", "status"):
            values, other_values = group.raw(array), other_group.raw(array)
            may_hold_nan = values.dtype.kind == "f"
            if not np.array_equal(values, other_values, equal_nan=may_hold_nan):
                return False
    return True


def test_the_same_store_packs_to_the_same_bytes_wherever_it_lies(sealed_store, packed, tmp_path):
    """Permissions and times of files are not packed, so that one digest holds for every copy of the zip."""
    copied = shutil.copytree(sealed_store, tmp_path / sealed_store.name)
    (copied / "data/clips.csv").chmod(0o600)
    os.utime(copied / "README.md", (1, 1))

    packed_again = pack(FolderFiles(copied), tmp_path / "again.zip")

    assert packed_again.read_bytes() == packed.read_bytes()


def is_refused_or_read_rightly(path, sealed_store):
    try:
        return bool(verify(path).problems) or same_values(open_store(sealed_store), open_store(path))
    except StoreError:
        return True


N_FLIPS = int(os.environ.get("OBYGAZE_FLIPS", "60"))


@pytest.mark.long
def test_a_flipped_bit_in_a_zip_is_found_or_changes_nothing(sealed_store, packed, tmp_path):
    """One bit is flipped at a time, at random. Reading is then refused, or gives the values of the store.

    Every second bit is one of the list of members, which is at the end of a zip and small.
    """
    rng = random.Random(5)
    data = packed.read_bytes()
    start_of_list = data.index(b"PK\x01\x02")
    path = tmp_path / "flipped.zip"

    for number in range(N_FLIPS):
        first_byte = start_of_list if number % 2 else 0
        bit = rng.randrange(8 * first_byte, 8 * len(data))
        flipped = bytearray(data)
        flipped[bit // 8] ^= 2 ** (bit % 8)
        path.write_bytes(flipped)

        assert is_refused_or_read_rightly(path, sealed_store), bit


def test_unpacking_gives_the_folder_back(sealed_store, packed, tmp_path):
    """The files are those of the store that was packed, and their number is reported.

    The list of files is not counted, nor is any file kept from before or left out.
    """
    downloaded = download(open_zip(packed), tmp_path / "out")

    files = bytes_of_files(sealed_store)
    assert bytes_of_files(tmp_path / "out") == files
    assert downloaded.files == len(files) - 1
    assert downloaded.kept == 0
    assert downloaded.left == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("file", ["notes.txt", "data/features.zarr/toy/pooled/c/0/0"])
def test_a_store_with_a_file_too_many_or_a_damaged_one_is_not_packed(sealed_store, tmp_path, file):
    """`file` of the store gets other content: notes.txt is no file of a store, the other one is a chunk."""
    copied = shutil.copytree(sealed_store, tmp_path / sealed_store.name)
    (copied / file).write_bytes(b"hello")

    with pytest.raises(StoreError, match=file):
        pack(FolderFiles(copied), tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_zip_of_a_name_by_which_it_could_not_be_opened_is_not_written(sealed_store, tmp_path):
    """A packed store is known by the suffix .zip, in small letters or in capitals."""
    with pytest.raises(StoreError, match=r"toy\.store: name it \.zip"):
        pack(sealed_store, tmp_path / "toy.store")
    assert not (tmp_path / "toy.store").exists()

    assert open_store(pack(sealed_store, tmp_path / "TOY.ZIP")).names == open_store(sealed_store).names


def test_a_partial_copy_is_not_packed_and_is_said_to_be_one(sealed_store, tmp_path):
    """A copy without tokens is undamaged: to verify it would find nothing wrong."""
    copy_of_store = tmp_path / "toy-1.0.0"
    download(FolderFiles(sealed_store), copy_of_store, arrays=["pooled"])

    with pytest.raises(StoreError, match=r"toy-1\.0\.0: is a partial copy; pack the whole store"):
        pack(copy_of_store, tmp_path / "toy.zip")


def test_packing_replaces_no_file(sealed_store, tmp_path):
    """A file lies in the place of the zip."""
    (tmp_path / "x.zip").write_bytes(b"mine")

    with pytest.raises(StoreError):
        pack(FolderFiles(sealed_store), tmp_path / "x.zip")

    assert (tmp_path / "x.zip").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "git-lfs pointer"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\3\4" + bytes(99), "damaged"),
    ],
)
def test_a_file_that_is_no_zip_is_refused_by_what_it_is(tmp_path, content, kind):
    """Downloads may give a pointer to a large file, or a web page. A zip begins with "PK"."""
    (tmp_path / "toy-1.0.0.zip").write_bytes(content)
    with pytest.raises(StoreError, match=kind):
        open_store(tmp_path / "toy-1.0.0.zip")


def test_what_is_unzipped_can_be_read_by_all_and_written_by_its_owner(packed):
    """A zip keeps the mode of a file on Unix in the upper 16 bits of its `external_attr`."""
    plain_file_read_by_all = stat.S_IFREG | 0o644

    with zipfile.ZipFile(packed) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            assert mode == plain_file_read_by_all


def write_zip(path, packed, change):
    """Copy a zip with other members: `change` gets and returns a list of pairs (ZipInfo, data)."""
    with zipfile.ZipFile(packed) as archive:
        members = [(member, archive.read(member)) for member in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in change(members):
            archive.writestr(member, data, compress_type=member.compress_type)
    return path


def member_called(name, mode=stat.S_IFREG | 0o644, **changes):
    """Make the entry of a member of a zip, as `pack` makes them but for some fields."""
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    member.external_attr = mode << 16
    for field, value in changes.items():
        setattr(member, field, value)
    return member


def with_member(name, data=b"x", **changes):
    """Return a function that adds a member to those of a zip."""
    return lambda members: [*members, (member_called(name, **changes), data)]


def with_a_member_twice(members):
    member, _ = members[3]
    return [*members, (copy.copy(member), b"x")]


FOREIGN_MEMBERS = {
    "leads out": with_member("toy-1.0.0/../../evil"),
    "leads out by data": with_member("toy-1.0.0/data/../../evil"),
    "absolute": with_member("/etc/passwd"),
    "another root": with_member("other/data/x"),
    "backslash": with_member("toy-1.0.0/data/..\\..\\evil"),
    "hidden": with_member("toy-1.0.0/.git"),
    "fetch list": with_member("toy-1.0.0/fetch.txt"),
    "folder": with_member("toy-1.0.0/data/folder/", b""),
    "compressed bomb": with_member("toy-1.0.0/data/bomb", bytes(10**6), compress_type=zipfile.ZIP_DEFLATED),
    "no root": lambda members: members[1:],
    "empty": lambda _: [],
    "twice": with_a_member_twice,
}
"""How a zip has members that no store has -> what changes its members so."""


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("change", FOREIGN_MEMBERS.values(), ids=FOREIGN_MEMBERS)
def test_a_zip_with_a_member_that_no_store_has_is_neither_read_nor_unpacked(packed, tmp_path, change):
    """`change` adds a member to the zip of a store, or removes some.

    The refusal is one line that begins with the path of the zip, and nothing is written anywhere.
    """
    path = write_zip(tmp_path / "x.zip", packed, change)

    with pytest.raises(StoreError) as error:
        open_store(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)

    with pytest.raises(StoreError):
        download(open_zip(path), tmp_path / "out" / "store")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()  # to which some of the names lead


@pytest.mark.parametrize(
    "mode",
    [stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777],
    ids=["a file", "a program", "a link"],
)
def test_a_file_of_a_zip_that_its_manifest_does_not_list_is_found_and_not_unpacked(packed, tmp_path, mode):
    """The member data/extra is added to the zip of a store. Only files with a digest are taken out of it."""
    add_member = with_member("toy-1.0.0/data/extra", b"/etc/passwd", mode=mode)
    path = write_zip(tmp_path / "x.zip", packed, add_member)

    files_too_many = [problem.file for problem in verify(path).problems if "extra" in problem.what]
    assert files_too_many == ["data/extra"]

    download(open_zip(path), tmp_path / "out")
    assert not (tmp_path / "out/data/extra").exists()


def test_a_store_in_a_zip_of_more_than_4_gb_reads_the_same(sealed_store, tmp_path, monkeypatch):
    """Larger zips need other records (Zip64), which are forced here in a small one."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 500)  # as if files and places were beyond 2 GB
    path = pack(FolderFiles(sealed_store), tmp_path / "large.zip")

    record_of_zip64 = b"PK\x06\x06"
    assert record_of_zip64 in path.read_bytes()
    assert verify(path).ok
    assert same_values(open_store(sealed_store), open_store(path))
