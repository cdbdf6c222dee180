"""Find the store that a scored film was scored from."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from obygaze_features.errors import StoreError
from obygaze_features.store import Store, open_store
from obygaze_film.errors import FilmError
from obygaze_film.notes import message
from obygaze_film.rows import windows_of
from obygaze_film.timeline import Timeline


def windows_store(film: Timeline, stores: Sequence[Store]) -> Store:
    """Find the store that a film was scored from.

    Raises
    ------
    FilmError
        It is not among them.
    """
    record = film.record.store
    for store in stores:
        if store.fingerprint == record.fingerprint and film.movie in windows_of(store):
            return store
    digest = record.fingerprint[:12]
    raise FilmError(message("learn_store", movie=film.movie, store=record.name, digest=digest))


def stores_near(folder: Path, film: Timeline) -> list[Store]:
    """Open the stores near a scored film's folder that are named like the store it was scored from.

    Their names begin with its name.

    For a film in `work/scored/film`, the folders `work/scored` and `work` are searched, and the folders in
    them. Files and folders that are no stores are skipped.
    """
    name = Path(film.record.store.name).name
    stores = []
    for steps_up in ("..", "../.."):
        above = os.path.normpath(folder / steps_up)  # also of a folder such as "."
        entries_above = _entries_in(above)
        entries = list(entries_above)
        for entry in entries_above:
            entries += _entries_in(entry.path)
        for path in sorted(Path(entry) for entry in entries if entry.name.startswith(name)):
            with suppress(StoreError):
                stores.append(open_store(path))
    return stores


def _entries_in(folder: str) -> list[os.DirEntry[str]]:
    """List what is in a folder; empty if it is none, cannot be read, or was removed since it was found."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
