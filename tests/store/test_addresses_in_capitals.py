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
    address = server_of_stores.url.replace("http:", f"{scheme}:")

    store = open_store(f"{address}/{name}")

    assert len(store["toy"]) == 150
    assert store.where.startswith("http://")


def test_a_zip_in_capitals_is_a_store_on_disk_as_on_a_server(server_of_stores, served_folder, tmp_path):
    """Windows and cameras write suffixes in capitals; the zip is the same."""
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
def test_the_scheme_alone_becomes_small_letters(written, url):
    assert as_url(written) == url


@pytest.mark.parametrize("place", ["FTP://lab.example/films", "gs://bucket/films"])
def test_an_address_of_another_scheme_says_which_schemes_there_are(place):
    with pytest.raises(StoreError, match="begins with https, http, s3 or hf and ://"):
        open_store(place)


@pytest.mark.parametrize("place", ["C:/films", "C:\\films", "/data/films", "films: a/b", "films-1.0.0"])
def test_a_path_is_no_address(place):
    assert not is_address(place)


def test_a_command_that_needs_a_file_refuses_an_address_in_capitals():
    with pytest.raises(click.BadParameter, match="is a URL, and this needs a path on this machine"):
        LocalPath().convert("HTTPS://lab.example/films.csv", None, None)


def test_a_secret_in_an_address_in_capitals_is_not_shown():
    shown = masked("no store at HTTPS://lab.example/films?topsecret")

    assert "topsecret" not in shown
