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

IMPORT_X = "store import films.csv x.h5 lab --from hdf5 --backbone lab --licence MIT"


@pytest.fixture(scope="module", autouse=True)
def _path_of_planted_readers():
    """Let the process that reads files find the module `tests.exchange.planted_readers`.

    It is begun with the path of this process; one that an earlier test has begun is ended.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        end_worker()
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with films.csv of the clips a to d, and a file in the store lab-0.9.0."""
    monkeypatch.chdir(tmp_path)
    write_manifest(Manifest(tuple(Clip(clip, "m", "") for clip in "abcd"), tmp_path), tmp_path / "films.csv")
    (tmp_path / "lab-0.9.0").mkdir()
    (tmp_path / "lab-0.9.0/kept").write_text("data that was there", encoding="utf-8")
    return tmp_path


@pytest.fixture
def import_with(folder, capfd, monkeypatch):
    """Import a file of which the library that reads it does something wrong; no file may change by that.

    The moment is "opening" the file, or "clip c": while the features of clip c are read. What happens is
    "die" (with the number of a signal), "flood", or "stop" (with the number of the importing process), as
    `planted_readers` does them. Gives the exit code and the last line of what was said.
    """

    def run(moment, what_happens, *arguments):
        """Import once."""
        (folder / "x.h5").write_text(":".join([moment, what_happens, *map(str, arguments)]), encoding="utf-8")
        before = {path: path.stat().st_ino for path in folder.rglob("*")}
        with monkeypatch.context() as patch:
            patch.setattr(import_hdf5, "groups_of_clips", planted)
            code = obygaze(*IMPORT_X.split())
        assert {path: path.stat().st_ino for path in folder.rglob("*")} == before
        printed = capfd.readouterr()
        assert printed.out == ""
        last_line = printed.err.splitlines()[-1]
        return code, last_line.rpartition("\r")[2]  # behind the progress

    return run


def assert_a_good_file_is_imported(folder):
    (folder / "x.h5").unlink()
    with h5py.File(folder / "x.h5", "w") as file:
        for clip in "abcd":
            file[f"{clip}/pooled"] = np.full(4, ord(clip), np.float32)
    assert obygaze(*IMPORT_X.split()) == 0
    assert open_store(folder / "lab")["lab"].read("c", "pooled").tolist() == [ord("c")] * 4


@pytest.mark.long
@pytest.mark.parametrize(("moment", "where"), [("opening", "x.h5"), ("clip c", "x.h5, clip c")])
def test_a_crash_of_the_library_is_one_line_and_the_next_import_succeeds(folder, import_with, moment, where):
    """HDF5 crashes (signal 11, SIGSEGV) while it opens a file, or while it reads the features of clip c.

    It runs in a process of its own, so that its crash does not end the import with it. The user gets one line
    that names the file, or the clip in it, and says that the file may be damaged. The next import starts
    another process, and succeeds.
    """
    code, line = import_with(moment, "die", int(signal.SIGSEGV))

    assert code == 1
    assert line == f"obygaze: error: {where}: HDF5 crashed while reading it (signal 11): {DAMAGED}"
    assert_a_good_file_is_imported(folder)


def test_an_import_from_a_file_that_needs_too_much_memory_fails_with_one_line(import_with):
    """While the library reads clip c of the file x.h5, it asks for memory without end ("flood").

    It reads in a process of its own, whose memory is limited. So the system refuses it the memory, and the
    import ends with a message that names the file and the clip, and no traceback.
    """
    code, line = import_with("clip c", "flood")

    assert code == 1
    assert line.endswith("x.h5, clip c: HDF5 needs more memory to read it than this process may use")


def test_an_import_whose_library_is_killed_for_want_of_memory_fails_with_one_line(import_with):
    """Linux kills (signal 9) a process that takes too much memory; here while the file x.h5 is opened.

    The process is the one that reads the file by the library. So the import itself goes on, and ends with
    a message that names the file and both possible causes.
    """
    code, line = import_with("opening", "die", int(signal.SIGKILL))

    assert code == 1
    assert line.endswith(
        f"x.h5: HDF5 crashed while reading it (signal 9): there is too little memory, or {DAMAGED}"
    )


@pytest.fixture
def ctrl_c_interrupts():
    """Let the signal of Ctrl-C (SIGINT) interrupt this process, also where a shell has set it to be ignored.

    A shell does so for its background jobs, and Python then leaves it so.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
@pytest.mark.usefixtures("ctrl_c_interrupts")
def test_ctrl_c_ends_the_import_and_the_process_that_reads(folder, import_with):
    """An import, which runs in this process, is interrupted while the features of clip c are read.

    The features are read by a second process. In place of a user, it sends this process the signal of Ctrl-C.
    It also locks the file, for as long as it lives. The import ends with exit code 130, as commands do that
    Ctrl-C stops. Its second process ends too: the lock on the file is free. Then a good file is imported.
    """
    this_process = os.getpid()
    code, line = import_with("clip c", "stop", this_process)

    assert code == 130
    assert line == "obygaze: stopped"
    with (folder / "x.h5").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits until the process that reads has ended
    assert_a_good_file_is_imported(folder)
