"""The scheme of an address means the same in capitals (RFC 3986, section 3.1), as some editors write it."""

from pathlib import Path

import click
import pytest

from obygaze_features.errors import StoreError
from obygaze_features.options import LocalPath
from obygaze_features.store import open_store
from obygaze_features.store.files_remote import as_url
from obygaze_features.text import is_address, masked


@pytest.mark.parametrize("scheme", ["HTTP", "Http", "http"])
@pytest.mark.parametrize("name", ["toy-1.0.0", "toy-1.0.0.zip"])
def test_a_store_is_read_at_an_address_in_capitals(server_of_stores, scheme, name):
    """A server has a store of 150 clips, as a folder and as a zip; its address begins with HTTP: or Http:.

    The store is read as at http:, and is called by this address in messages.
    """
    address = server_of_stores.url.replace("http:", f"{scheme}:")

    store = open_store(f"{address}/{name}")

    assert len(store["toy"]) == 150
    assert store.where.startswith("http://")


def test_a_zip_in_capitals_is_a_store_on_disk_as_on_a_server(server_of_stores, served_folder, tmp_path):
    """The zip of a store of 150 clips is called TOY.ZIP: Windows and cameras write suffixes in capitals."""
    packed = served_folder / "toy-1.0.0.zip"
    at_server = packed.with_name("TOY.ZIP")
    on_disk = tmp_path / "TOY.ZIP"
    for copy in (at_server, on_disk):
        copy.write_bytes(packed.read_bytes())

    assert len(open_store(f"{server_of_stores.url}/{at_server.name}")["toy"]) == 150
    assert len(open_store(on_disk)["toy"]) == 150


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("HTTPS://lab.example/Films-1.0.0/", "https://lab.example/Films-1.0.0"),
        ("S3://bucket/films-1.0.0", "s3://bucket/films-1.0.0"),
        ("HF://datasets/lab/Films", "hf://datasets/lab/Films"),
        (Path("HTTPS://lab.example/films"), "https://lab.example/films"),
        ("FTP://lab.example/films", None),
        ("films-1.0.0", None),
    ],
)
def test_only_the_scheme_of_an_address_becomes_small_letters(written, url):
    """`as_url` gives the address of a store with its scheme (https, s3, hf) in small letters.

    The rest stays, since servers tell capitals from small letters in names. None says that the text is no
    address that a store can be read at: it is a path, or of another scheme.
    """
    assert as_url(written) == url


@pytest.mark.parametrize("address", ["FTP://lab.example/films", "gs://bucket/films"])
def test_opening_an_address_of_an_unknown_scheme_names_the_schemes_that_are_known(address):
    """Stores cannot be read by FTP, nor from Google's storage."""
    with pytest.raises(StoreError, match="begins with https, http, s3 or hf and ://"):
        open_store(address)


@pytest.mark.parametrize("path", ["C:/films", "C:\\films", "/data/films", "films: a/b", "films-1.0.0"])
def test_a_path_is_no_address(path):
    """A path may have a colon too, as Windows puts one behind the letter of a drive."""
    assert not is_address(path)


def test_a_command_that_needs_a_file_refuses_an_address_in_capitals():
    """An option that takes a path on this machine is given HTTPS://lab.example/films.csv."""
    with pytest.raises(click.BadParameter, match="is a URL, and this needs a path on this machine"):
        LocalPath().convert("HTTPS://lab.example/films.csv", None, None)


def test_a_secret_in_an_address_in_capitals_is_not_shown():
    """What stands behind the question mark of an address may be a key. Messages leave it out (`masked`)."""
    shown = masked("no store at HTTPS://lab.example/films?topsecret")

    assert "topsecret" not in shown
