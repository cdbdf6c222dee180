"""A file is known by its first bytes, whatever it is called; a refusal names what it is and a remedy."""

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile

import h5py
import numpy as np
import pytest

from obygaze_features.backbones.weights import read_json
from obygaze_features.errors import BackboneError, VideoError
from obygaze_features.file_kinds import (
    HDF5,
    NPY,
    NPZ,
    PARQUET,
    SAFETENSORS,
    TEXT,
    TORCH,
    UNKNOWN,
    file_kind,
    no_text,
    where_damaged,
    why_not,
)
from obygaze_features.video.stills import load_still
from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import unpack_archive


def bytes_of(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def zipped(name, content="x"):
    def write(file):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(name, content)

    return bytes_of(write)


def tar(file):
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.npy"))


def hdf5(file, userblock=0):
    h5py.File(file, "w", userblock_size=userblock).close()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 598641023\n"
REFUSED = {
    "git-lfs": (POINTER, "git-lfs", "git lfs pull"),
    "git-annex": (b"/annex/objects/SHA256E-s12--ab.npy\n", "git-annex", "git annex get"),
    "dvc": (b"outs:\n- md5: 0\n  path: a.npy\n", "DVC", "dvc pull"),
    "html": (b"\n<!-- x -->\n<!DOCTYPE HTML>\n<html lang=en>", "HTML", "log in"),
    "xhtml": (b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "">\n<html>', "HTML", "log in"),
    "s3": (b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>', "server", "log in"),
    "many comments": (b"<!--a-->" * 40 + b"<a/>", "XML", ""),  # years, if each could end anywhere
    "json": (b'{"error":"Repository not found"}', "server", "log in"),
    "hls": (b"#EXTM3U\n#EXTINF:4,\na.ts\n", "HLS", "that it lists"),
    "dash": (b'<?xml version="1.0"?>\n<MPD></MPD>', "DASH", "that it lists"),
    "segment": (b"\0\0\0\x18stypmsdh\0\0", "segment", "initialization"),
    "fragment": (b"\0\0\x03\x50moof\0\0\0\x10", "segment", "initialization"),
    "zip": (zipped("a.txt"), "zip archive", "unpack"),
    "excel": (zipped("[Content_Types].xml"), "Excel", "CSV"),
    "old excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "Excel", "CSV"),
    "gzip": (gzip.compress(b"a"), "gzip", "unpack"),
    "bzip2": (bz2.compress(b"a"), "bzip2", "unpack"),
    "xz": (lzma.compress(b"a"), "xz", "unpack"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(20), "Zstandard", "unpack"),
    "tar": (bytes_of(tar), "tar", "unpack"),
    "utf-16": ("a\tb\n".encode("utf-16"), "UTF-16", "UTF-8"),
    "macOS": (b"\0\x05\x16\x07\0\x02\0\0Mac OS X", "macOS", "remove"),
    "zeros": (bytes(4096), "zeros", "again"),
    "empty": (b"", "empty", "again"),
    "gguf": (b"GGUF\x03\0\0\0", "quantised", "unquantised"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0", "PDF", ""),
    "png": (b"\x89PNG\r\n\x1a\n\0\0", "PNG", ""),
    "mp4": (b"\0\0\0\x20ftypisom\0\0", "MP4", ""),
    "heif of another brand": (b"\0\0\0\x18ftyp    \0\0\0\0mif1    \0\0\x13\x1ameta", "HEIF", "PNG"),
    "small heif": (b"\0\0\0\x10ftypmif3heic\0\0\x4b\x1dmini\x08\x08", "HEIF", "PNG"),
    "film in avif": (b"\0\0\0\x20ftypavis\0\0\0\0mif1avis\0\0\x13\x1ameta", "MP4", ""),
    "unknown": (b"\0\1\2\3nobody knows", "", "again"),
} | {
    f"pickle {protocol} of {type(value).__name__}": (pickle.dumps(value, protocol), "pickle", "never opened")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    for value in ({"a": np.zeros(2)}, [1], np.zeros(2))
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_of_another_kind_is_refused_with_its_kind_and_a_remedy(tmp_path, name):
    content, kind, remedy = REFUSED[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    reason = why_not(path, SAFETENSORS)
    assert reason == why_not(content, SAFETENSORS)
    assert kind in reason
    assert remedy in reason
    assert "\n" not in reason


EXPECTED = {
    NPY: bytes_of(lambda file: np.save(file, np.zeros(3))),
    NPZ: bytes_of(lambda file: np.savez_compressed(file, features=np.zeros(3))),
    HDF5: bytes_of(hdf5),
    TEXT: "clip_id,f0\nAmélie,1\n".encode(),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_file_of_the_expected_kind_that_is_refused_is_damaged(kind):
    content = EXPECTED[kind]
    assert file_kind(content).name == kind
    assert "damaged" in why_not(content, kind)


def test_a_matlab_file_of_today_is_hdf5():
    assert file_kind(bytes_of(lambda file: hdf5(file, 512))).name == HDF5


@pytest.mark.parametrize("old", [False, True])
def test_tensors_that_torch_saved_are_known_in_both_its_formats(old):
    torch = pytest.importorskip("torch")
    tensors = {"a": torch.zeros(3)}
    content = bytes_of(lambda file: torch.save(tensors, file, _use_new_zipfile_serialization=not old))
    assert file_kind(content).name == TORCH


def test_a_table_that_pyarrow_wrote_is_known():
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    assert file_kind(bytes_of(pd.DataFrame({"a": [1]}).to_parquet)).name == PARQUET


@pytest.mark.parametrize(
    "text",
    ["clip_id\nabc\np1\n", "BMW,1\n", "GGUF\n", "ID3,MZ,PAR1\n", "G" * 600, "x^2\n", "free\n", "v=1\n"],
)
def test_a_table_that_begins_like_a_binary_format_is_text(text):
    assert file_kind(text.encode()).name == TEXT


def test_a_folder_and_unknown_bytes_have_a_kind(tmp_path):
    assert file_kind(tmp_path).name == "a folder"
    assert file_kind(b"\0\xff\0\xff") == UNKNOWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{\n"a": }', "line 2"),
        (b"[" * 100_000, "deeply"),
        (b"\xff\xfe\0", "UTF-16"),
        (POINTER, "git lfs pull"),
    ],
)
def test_a_damaged_text_is_refused_in_our_words(tmp_path, text, message):
    path = tmp_path / "config.json"
    path.write_bytes(text)
    with pytest.raises(BackboneError) as error:
        read_json(path, dict)
    assert message in str(error.value)
    assert not {"Expecting", "delimiter", "recursion", "codec"} & set(str(error.value).split())
    assert "a list of models" in where_damaged(
        ValueError("x (at line 3, column 1)"), b"a = ", "a list of models"
    )


def test_pictures_and_models_are_refused_by_what_they_are(tmp_path):
    for name, data in (("a.jpg", POINTER), ("b.png", b"<!doctype html><html>")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(VideoError, match=r"git lfs pull|log in"):
            load_still(tmp_path / name)
    with pytest.raises(ModelError, match="git lfs pull"):
        unpack_archive(POINTER, "a.model")


@pytest.mark.parametrize(
    "page",
    [
        b"<html xmlns:x='urn:schemas-microsoft-com:office:excel'><table><tr><td>a</td></tr></table></html>",
        b"<!DOCTYPE html>\n<html><head></head><body><TABLE><tr><td>video</td></tr></TABLE></body></html>",
        b"<table><tr><td>video</td></tr></table>",
    ],
    ids=["as phpMyAdmin exports it", "a page", "no page around it"],
)
def test_a_table_that_a_program_wrote_into_a_page_is_opened_in_a_spreadsheet(page):
    """Where a table is asked for: programs name such files .xls, and no server sent them."""
    reason = no_text(page)
    assert "save it as .xlsx" in reason
    assert "log in" not in reason


def test_a_page_that_asks_who_one_is_is_a_servers_answer_though_it_has_a_table():
    page = (
        b"<html><body><table><tr><td>News</td></tr></table><form><input type=password></form></body></html>"
    )
    assert "log in" in no_text(page)


def test_a_page_with_a_table_in_place_of_a_video_is_a_servers_answer(tmp_path):
    """A spreadsheet makes no video of it."""
    page = tmp_path / "film.mp4"
    page.write_bytes(b"<html><body><table><tr><td>Sign in</td></tr></table></body></html>")
    assert "log in" in why_not(page, "a video file")
