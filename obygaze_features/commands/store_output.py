"""What the `obygaze store` commands show: progress on stderr, and the store that was made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from obygaze_features.io import progress_bar


@contextmanager
def files_bar(what: str) -> Iterator[Callable[[int, int, int], None]]:
    """Show progress in files, with the bytes beside it; moved by (done, total, bytes)."""
    with progress_bar(what, "file") as show:
        yield lambda done, total, octets: show(done, total, f"{octets / 1e6:.1f} MB")


def fingerprint(path: Path) -> str:
    """Read the fingerprint of the store at a path."""
    from obygaze_features.store import open_store

    return open_store(path).fingerprint


def say_sealed(path: Path) -> None:
    """Say what a store that was just made holds."""
    from obygaze_features.store import open_store

    store = open_store(path)
    names = ", ".join(store.names)
    click.echo(f"{path}: {len(store.clips)} clips of {names}, fingerprint {store.fingerprint}")
