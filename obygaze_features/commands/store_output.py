"""What the `obygaze store` commands share: paths as arguments, bars on stderr, the store that was made."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class LocalPath(click.Path):
    """A path on this machine; a URL would be taken for folders with odd names, so it is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a path."""
        if _URL.match(str(value)):
            self.fail(
                f"{value} is a URL, and this needs a path on this machine; obygaze store pull brings a store "
                "here, obygaze store push sends one there",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


LOCAL = LocalPath(path_type=Path, readable=False)


@contextmanager
def bar(what: str, unit: str = "it", *, scaled: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar, moved by what this context gives: a function of (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=what, unit=unit, unit_scale=scaled, disable=None, leave=False) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        yield progress


@contextmanager
def files_bar(what: str) -> Iterator[Callable[[int, int, int], None]]:
    """Show a bar of files, with the bytes beside it; moved by (done, total, bytes)."""
    from tqdm import tqdm

    with tqdm(desc=what, unit="file", disable=None, leave=False) as shown:

        def progress(done: int, total: int, octets: int) -> None:
            shown.total = total
            shown.set_postfix_str(f"{octets / 1e6:.1f} MB", refresh=False)
            shown.update(done - shown.n)

        yield progress


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
