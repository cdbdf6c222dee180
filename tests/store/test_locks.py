"""A file system without locks is named in one sentence, and nothing is left on it."""

import errno
import fcntl
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from obygaze_features import locks
from obygaze_features.errors import StoreError
from obygaze_features.exchange.transfer import pull
from obygaze_features.store import read_stage
from obygaze_features.store.sealing import seal
from obygaze_features.store.testing import seal_arrays

ARRAYS = {"toy": {"pooled": np.zeros((2, 3), np.float32)}}
CLIPS = {"a": "film", "b": "film"}


@pytest.fixture
def sealed(tmp_path):
    return seal_arrays(tmp_path / "there" / "films", CLIPS, ARRAYS)


def listing(folder):
    return sorted(Path(root, name) for root, folders, files in os.walk(folder) for name in folders + files)


ACTIONS_THAT_LOCK = {
    "extract": lambda _, new: seal_arrays(new / "deep" / "films", CLIPS, ARRAYS),
    "resume": lambda sealed, _: read_stage(sealed.parent / "films.staging").writer(),
    "seal": lambda sealed, new: seal(sealed.parent / "films.staging", new / "s", licence="CC0-1.0"),
    "pull": lambda sealed, new: pull(sealed, new / "films-1.0.0"),
}


@pytest.mark.parametrize("work", ACTIONS_THAT_LOCK)
def test_a_file_system_without_locks_is_named_and_left_untouched(sealed, tmp_path, monkeypatch, work):
    """The three error numbers are those with which file systems say that they have no locks.

    `work` is what is tried there: extracting, resuming a stage, sealing, or pulling a store.
    """
    attempt = ACTIONS_THAT_LOCK[work]
    new = tmp_path / "new"
    new.mkdir()
    before = listing(tmp_path)

    for number in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
        no_locks = OSError(number, os.strerror(number))
        monkeypatch.setattr(fcntl, "flock", Mock(side_effect=no_locks))
        with pytest.raises(StoreError) as error:
            attempt(sealed, new)

        assert str(tmp_path) in str(error.value)
        assert "\n" not in str(error.value)
        assert listing(tmp_path) == before


def test_on_windows_an_unknown_lock_error_is_raised_at_once(tmp_path, monkeypatch):
    """Only a lock that another process holds is waited for; "Invalid argument" is another error.

    This process takes itself for one on Windows, whose module `msvcrt` locks files.
    """

    def locking(*_):
        raise OSError(errno.EINVAL, "Invalid argument")

    def sleep(_):
        pytest.fail("it waits, as for a lock that is held")

    monkeypatch.setattr(locks, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(locks.time, "sleep", sleep)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))

    (tmp_path / "file").touch()
    with (tmp_path / "file").open("r+b") as file, pytest.raises(OSError, match="Invalid"):
        locks.hold(file.fileno(), tmp_path / "file")
