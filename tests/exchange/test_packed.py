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

from ..store.toy_stores import group, sealed, tree


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    return sealed(tmp_path_factory.mktemp("pristine"), 72, [group(), group("alone", ["pooled"])])


@pytest.fixture(scope="module")
def packed(pristine):
    return pack(FolderFiles(pristine), pristine.with_name("toy-1.0.0.zip"))


def same_values(first, two):
    for name in first:
        for array in (*first[name].arrays, "time_s", "frame_index", "clip", "status"):
            if not np.array_equal(
                first[name].raw(array),
                two[name].raw(array),
                equal_nan=first[name].raw(array).dtype.kind == "f",
            ):
                return False
    return tuple(first) == tuple(two)


def test_the_same_store_packs_to_the_same_bytes_wherever_it_lies(pristine, packed, tmp_path):
    copied = shutil.copytree(pristine, tmp_path / pristine.name)
    (copied / "data/clips.csv").chmod(0o600)
    os.utime(copied / "README.md", (1, 1))
    assert pack(FolderFiles(copied), tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def refused_or_harmless(path, pristine):
    try:
        return bool(verify(path).problems) or same_values(open_store(pristine), open_store(path))
    except StoreError:
        return True


def test_a_flipped_bit_in_a_zip_is_found_or_changes_nothing(pristine, packed, tmp_path):
    rng = random.Random(5)
    sound = packed.read_bytes()
    directory = sound.index(b"PK\x01\x02")  # the list of members, which is small and at the end
    for number in range(int(os.environ.get("OBYGAZE_FLIPS", "60"))):
        data = bytearray(sound)
        first = directory if number % 2 else 0  # every second bit is one of the directory
        bit = rng.randrange(8 * first, 8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        path = tmp_path / "flipped.zip"
        path.write_bytes(data)
        assert refused_or_harmless(path, pristine), bit


def test_unpacking_gives_the_folder_back(pristine, packed, tmp_path):
    downloaded = download(open_zip(packed), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(pristine)
    assert (downloaded.files, downloaded.kept, downloaded.left) == (len(tree(pristine)) - 1, 0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.fixture
def copied(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / pristine.name)


def test_a_store_with_a_file_too_many_is_not_packed(copied, tmp_path):
    (copied / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(StoreError, match=r"notes.txt"):
        pack(FolderFiles(copied), tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_store_with_a_damaged_chunk_is_not_packed(copied, tmp_path):
    chunk = copied / "data/features.zarr/toy/pooled/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    with pytest.raises(StoreError, match="toy/pooled/c/0/0"):
        pack(FolderFiles(copied), tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_packing_replaces_no_file(pristine, tmp_path):
    (tmp_path / "x.zip").write_bytes(b"mine")
    with pytest.raises(StoreError):
        pack(FolderFiles(pristine), tmp_path / "x.zip")
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
    (tmp_path / "toy-1.0.0.zip").write_bytes(content)
    with pytest.raises(StoreError, match=kind):
        open_store(tmp_path / "toy-1.0.0.zip")


def test_what_is_unzipped_can_be_read_by_all_and_written_by_its_owner(pristine, tmp_path):
    with zipfile.ZipFile(pack(FolderFiles(pristine), tmp_path / "x.zip")) as archive:
        assert {member.external_attr >> 16 for member in archive.infolist()} == {stat.S_IFREG | 0o644}


def forge(path, packed, change):
    """Write a zip that differs from a sound one in one way: `change` edits its [(ZipInfo, data)]."""
    with zipfile.ZipFile(packed) as archive:
        members = [(member, archive.read(member)) for member in archive.infolist()]
    members = change(members) or members
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members:
            archive.writestr(member, data, compress_type=member.compress_type)
    return path


def info(name, mode=stat.S_IFREG | 0o644, **changes):
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    member.external_attr = mode << 16
    for field, value in changes.items():
        setattr(member, field, value)
    return member


FOREIGN = {
    "leads out": lambda m: m.append((info("toy-1.0.0/../../evil"), b"x")),
    "leads out by data": lambda m: m.append((info("toy-1.0.0/data/../../evil"), b"x")),
    "absolute": lambda m: m.append((info("/etc/passwd"), b"x")),
    "another root": lambda m: m.append((info("other/data/x"), b"x")),
    "backslash": lambda m: m.append((info("toy-1.0.0/data/..\\..\\evil"), b"x")),
    "hidden": lambda m: m.append((info("toy-1.0.0/.git"), b"x")),
    "fetch list": lambda m: m.append((info("toy-1.0.0/fetch.txt"), b"x")),
    "folder": lambda m: m.append((info("toy-1.0.0/data/folder/"), b"")),
    "compressed bomb": lambda m: m.append(
        (info("toy-1.0.0/data/bomb", compress_type=zipfile.ZIP_DEFLATED), bytes(10**6))
    ),
    "no root": lambda m: m[1:],
    "empty": lambda m: [] or m.clear(),
    "twice": lambda m: m.append((copy.copy(m[3][0]), b"x")),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", FOREIGN)
def test_a_foreign_member_is_refused_in_one_line(packed, tmp_path, case):
    path = forge(tmp_path / "x.zip", packed, FOREIGN[case])
    with pytest.raises(StoreError) as error:
        open_store(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    with pytest.raises(StoreError):
        download(open_zip(path), tmp_path / "out" / "store")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("mode", [stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777])
def test_an_extra_member_that_looks_right_is_found_by_verify_and_never_unpacked(packed, tmp_path, mode):
    extra = (info("toy-1.0.0/data/extra", mode), b"/etc/passwd")
    path = forge(tmp_path / "x.zip", packed, lambda m: m.append(extra))
    assert [problem.file for problem in verify(path).problems if "extra" in problem.what] == ["data/extra"]
    download(open_zip(path), tmp_path / "out")
    assert not (tmp_path / "out/data/extra").exists()


def test_zip64_reads_the_same(pristine, tmp_path, monkeypatch):
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 500)  # as if files and places were beyond 2 GB
    path = pack(FolderFiles(pristine), tmp_path / "large.zip")
    assert b"PK\x06\x06" in path.read_bytes()
    assert verify(path).ok
    assert same_values(open_store(pristine), open_store(path))
