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


def hdf5(file, userblock_size=0):
    """Write an empty HDF5 file, with so many bytes of the user before it."""
    h5py.File(file, "w", userblock_size=userblock_size).close()


POINTER_OF_GIT_LFS = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 598641023\n"
)
REFUSED = {
    "git-lfs": (POINTER_OF_GIT_LFS, "git-lfs", "git lfs pull"),
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
    """Tensors in the format of safetensors are expected, and the file is something else: `name` says what.

    REFUSED has its bytes, and words of the reason: of the kind, such as HTML, and of what to do, such as to
    log in. The reason is one line, and the same for a file as for its bytes.
    """
    content, words_of_kind, words_of_remedy = REFUSED[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)

    reason = why_not(path, SAFETENSORS)

    assert words_of_kind in reason
    assert words_of_remedy in reason
    assert "\n" not in reason
    assert reason == why_not(content, SAFETENSORS)


GOOD_FILES = {
    NPY: bytes_of(lambda file: np.save(file, np.zeros(3))),
    NPZ: bytes_of(lambda file: np.savez_compressed(file, features=np.zeros(3))),
    HDF5: bytes_of(hdf5),
    TEXT: "clip_id,f0\nAmélie,1\n".encode(),
}


@pytest.mark.parametrize("kind", GOOD_FILES)
def test_a_file_that_its_own_reader_refuses_is_called_damaged(kind):
    """It is of the kind that was expected (numpy's, HDF5 or text), so its first bytes say nothing against it.

    The reason that it could not be read must be damage.
    """
    content = GOOD_FILES[kind]

    assert file_kind(content).name == kind
    assert "damaged" in why_not(content, kind)


def test_a_matlab_file_of_today_is_hdf5():
    """MATLAB writes 512 bytes of its own before the HDF5."""
    content = bytes_of(lambda file: hdf5(file, userblock_size=512))

    assert file_kind(content).name == HDF5


@pytest.mark.parametrize("is_zip", [True, False], ids=["a zip, since torch 1.6", "before"])
def test_tensors_that_torch_saved_are_known_in_both_its_formats(is_zip):
    """Since version 1.6 torch writes a ZIP archive, before a pickle; old files are still about."""
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save({"a": torch.zeros(3)}, file, _use_new_zipfile_serialization=is_zip)

    assert file_kind(file.getvalue()).name == TORCH


def test_a_table_that_pandas_wrote_as_parquet_is_known():
    """The table has one column and one row; `bytes_of` gives what was written."""
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    content = bytes_of(pd.DataFrame({"a": [1]}).to_parquet)

    assert file_kind(content).name == PARQUET


@pytest.mark.parametrize(
    "text",
    ["clip_id\nabc\np1\n", "BMW,1\n", "GGUF\n", "ID3,MZ,PAR1\n", "G" * 600, "x^2\n", "free\n", "v=1\n"],
)
def test_a_table_that_begins_like_a_binary_format_is_text(text):
    """Bitmaps begin with BM, GGUF with GGUF, MP3 with ID3, programs with MZ, Parquet with PAR1 and so on."""
    assert file_kind(text.encode()).name == TEXT


def test_a_folder_has_a_kind(tmp_path):
    """A user may give a folder in the place of a file; the refusal can then name it."""
    assert file_kind(tmp_path).name == "a folder"


def test_bytes_of_no_known_format_have_the_kind_unknown():
    bytes_that_are_no_text = b"\0\xff\0\xff"

    assert file_kind(bytes_that_are_no_text) == UNKNOWN


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{\n"a": }', "line 2"),
        (b"[" * 100_000, "deeply"),
        (b"\xff\xfe\0", "UTF-16"),
        (POINTER_OF_GIT_LFS, "git lfs pull"),
    ],
    ids=["a value is missing", "lists in lists", "UTF-16", "a pointer of git-lfs"],
)
def test_json_that_cannot_be_read_is_refused_in_our_words(tmp_path, text, message):
    """The words of Python's parsers, such as "Expecting ',' delimiter", help no user."""
    path = tmp_path / "config.json"
    path.write_bytes(text)

    with pytest.raises(BackboneError) as error:
        read_json(path, dict)

    assert message in str(error.value)
    words = set(str(error.value).split())
    assert words & {"Expecting", "delimiter", "recursion", "codec"} == set()


def test_a_damaged_file_is_refused_with_what_it_should_be_and_the_line_of_the_damage():
    """A list of models, a TOML file, ends in the middle of its third line, as if it were cut short.

    The parser of TOML raised an error with the line. The user reads the line, and the words by which the
    command calls such a file.
    """
    content = b"a = 1\nb = 2\nc = "
    error_of_parser = ValueError("Invalid value (at line 3, column 5)")

    message = where_damaged(error_of_parser, content, wanted="a list of models")

    assert "not a list of models" in message
    assert "line 3" in message


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [("a.jpg", POINTER_OF_GIT_LFS, "git lfs pull"), ("b.png", b"<!doctype html><html>", "log in")],
    ids=["a pointer of git-lfs", "a page of a server"],
)
def test_a_picture_that_is_none_is_refused_with_a_remedy(tmp_path, name, content, remedy):
    """The file has the name of a picture, and holds what git-lfs, or a server, put in its place."""
    (tmp_path / name).write_bytes(content)

    with pytest.raises(VideoError, match=remedy):
        load_still(tmp_path / name)


def test_a_model_that_is_a_pointer_of_git_lfs_is_refused_with_a_remedy():
    """A repository was cloned without git-lfs, which leaves a few lines of text in place of the model."""
    with pytest.raises(ModelError, match="git lfs pull"):
        unpack_archive(POINTER_OF_GIT_LFS, "a.model")


@pytest.mark.parametrize(
    "page",
    [
        b"<html xmlns:x='urn:schemas-microsoft-com:office:excel'><table><tr><td>a</td></tr></table></html>",
        b"<!DOCTYPE html>\n<html><head></head><body><TABLE><tr><td>video</td></tr></TABLE></body></html>",
        b"<table><tr><td>video</td></tr></table>",
    ],
    ids=["as phpMyAdmin exports it", "a page", "no page around it"],
)
def test_where_a_table_is_expected_one_in_a_web_page_is_refused_with_the_advice_to_save_it_as_xlsx(page):
    """Some programs export a table as a web page (HTML) and call it .xls. A spreadsheet opens such a page.

    Most web pages in place of a file are the answer of a server to somebody who must log in first. A page
    with a table and without a form is none, and the advice to log in would mislead.
    """
    reason = no_text(page)

    assert "save it as .xlsx" in reason
    assert "log in" not in reason


def test_where_a_table_is_expected_a_page_with_a_field_for_a_password_is_refused_with_the_advice_to_log_in():
    """The page has a table too, which is its layout. It is what a server sends who wants a login first.

    So it is not taken for a table that a program has exported as a web page.
    """
    page = (
        b"<html><body><table><tr><td>News</td></tr></table><form><input type=password></form></body></html>"
    )

    assert "log in" in no_text(page)


def test_where_a_video_is_expected_a_page_with_a_table_is_refused_with_the_advice_to_log_in(tmp_path):
    """The file film.mp4 is a web page with a table: a server has sent it in place of the video.

    Only where a table is expected may such a page be what the user wants, exported by some program.
    """
    page = tmp_path / "film.mp4"
    page.write_bytes(b"<html><body><table><tr><td>Sign in</td></tr></table></body></html>")

    assert "log in" in why_not(page, "a video file")
