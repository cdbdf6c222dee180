"""A library that crashes, hangs or floods while it reads a stranger's file costs one line, and no data."""

import fcntl
import os
import signal
from pathlib import Path

import h5py
import numpy as np
import pytest

from obygaze_features.exchange import import_hdf5
from obygaze_features.exchange.import_items import DAMAGED, end_worker
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_features.store import open_store
from tests.command import obygaze

from .planted_readers import planted

ASKED = "store import films.csv x.h5 lab --from hdf5 --backbone lab --licence MIT"


@pytest.fixture(scope="module", autouse=True)
def _planted_readers_can_be_imported_in_other_processes():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        end_worker()
        yield


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_manifest(Manifest(tuple(Clip(clip, "m", "") for clip in "abcd"), tmp_path), tmp_path / "films.csv")
    (tmp_path / "lab-0.9.0").mkdir()
    (tmp_path / "lab-0.9.0/kept").write_text("data that was there", encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(here, capfd, monkeypatch):
    """Import a file whose library does something wrong; return the exit code and what was printed."""

    def run(wrong):
        (here / "x.h5").write_text(wrong, encoding="utf-8")
        before = {path: path.stat().st_ino for path in here.rglob("*")}
        with monkeypatch.context() as patch:
            patch.setattr(import_hdf5, "groups_of_clips", planted)
            code = obygaze(*ASKED.split())
        assert {path: path.stat().st_ino for path in here.rglob("*")} == before
        said = capfd.readouterr()
        assert said.out == ""
        return code, said.err.splitlines()[-1].rpartition("\r")[2]

    return run


def import_what_is_whole(here):
    (here / "x.h5").unlink()
    with h5py.File(here / "x.h5", "w") as file:
        for clip in "abcd":
            file[f"{clip}/pooled"] = np.full(4, ord(clip), np.float32)
    assert obygaze(*ASKED.split()) == 0
    assert open_store(here / "lab")["lab"].read("c", "pooled").tolist() == [ord("c")] * 4


@pytest.mark.parametrize(("moment", "where"), [("opening", "x.h5"), ("clip c", "x.h5, clip c")])
def test_a_crash_is_one_line_that_leaves_nothing_and_the_next_import_succeeds(here, run, moment, where):
    code, line = run(f"{moment}:die:{int(signal.SIGSEGV)}")
    assert (code, line) == (
        1,
        f"obygaze: error: {where}: HDF5 crashed while reading it (signal 11): {DAMAGED}",
    )
    import_what_is_whole(here)


def test_too_little_memory_is_one_line(run):
    code, line = run("clip c:flood")
    assert code == 1
    assert line.endswith("x.h5, clip c: HDF5 needs more memory to read it than this process may use")
    code, line = run(f"opening:die:{int(signal.SIGKILL)}")
    assert code == 1
    assert line.endswith(
        f"x.h5: HDF5 crashed while reading it (signal 9): there is too little memory, or {DAMAGED}"
    )


@pytest.fixture
def interrupts():
    """Have SIGINT interrupt: a shell has its background jobs ignore it, and Python then leaves it so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_ends_the_import_and_the_process_that_reads(here, run):
    assert run(f"clip c:stop:{os.getpid()}") == (130, "obygaze: stopped")
    with (here / "x.h5").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits for the end of the process that holds it
    import_what_is_whole(here)
