"""Tests about anything but power cuts need not wait for the disk."""

import os

import numpy as np
import pytest

from obygaze_features.exchange.publish import pack
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_frames

from .serving import serving
from .toy_stores import GROUP_MAKERS, bytes_of_files, group, make_sealed_store


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session", params=list(GROUP_MAKERS))
def fixed_or_ragged_group(request):
    """A group whose clips have all the same number of frames, and a ragged one, whose numbers differ."""
    return GROUP_MAKERS[request.param]()


@pytest.fixture(scope="session")
def undisturbed_files(tmp_path_factory, fixed_or_ragged_group):
    """A store of 20 clips made without any disturbance: file -> bytes."""
    return bytes_of_files(
        make_sealed_store(tmp_path_factory.mktemp("undisturbed"), groups=[fixed_or_ragged_group])
    )


@pytest.fixture(scope="session")
def served_folder(tmp_path_factory):
    """A folder to serve, with a store and its zip."""
    folder = tmp_path_factory.mktemp("my site")
    store = make_sealed_store(folder, 150, [group(), group("alone", ["pooled"])])
    pack(FolderFiles(store), folder / "toy-1.0.0.zip")
    rng = np.random.default_rng(1)
    frames = {
        f"c{number:02d}": rng.random((int(rng.integers(1, 3200)), 2), np.float32) for number in range(40)
    }
    ragged = seal_frames(folder / "ragged", dict.fromkeys(frames, "m"), frames)
    pack(FolderFiles(ragged), folder / "ragged-1.0.0.zip")
    return folder


@pytest.fixture
def server_of_stores(served_folder, monkeypatch):
    """A server of `served_folder`; nobody waits before asking it again."""
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    with serving(served_folder) as server:
        yield server
