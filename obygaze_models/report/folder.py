"""The folder that an experiment leaves: whole or not at all, and never over what is not its own."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from obygaze_features.errors import OutputError

CONTENTS = "contents.json"
"""Lists every file of the folder with its SHA-256; a folder with other files is not replaced."""


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that is taken, unless it is forced and holds an earlier output and nothing else.

    Raises
    ------
    OutputError
        Says what is in the way.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file: tables and figures need a folder of their own")
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not present:
        return
    if CONTENTS not in present:
        raise OutputError(
            f"{folder} holds what is not an output of ours (no {CONTENTS}): choose another with --out"
        )
    try:
        listed = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
        strangers = sorted(present - set(listed) - {CONTENTS})
    except (ValueError, TypeError, RecursionError) as error:
        raise OutputError(f"{folder / CONTENTS} is not the list of an output's files: {error}") from error
    if strangers:
        raise OutputError(
            f"{folder} holds what is not an output of ours ({strangers[0]}): choose another with --out"
        )
    if not force:
        raise OutputError(
            f"{folder} holds an output already: give --force to replace it, or another folder with --out"
        )


@contextmanager
def new_folder(folder: Path, *, force: bool = False) -> Iterator[Path]:
    """Give an empty folder to write into, which becomes `folder` when all is written.

    Raises
    ------
    OutputError
        The folder is taken.
    """
    check_folder(folder, force=force)
    with replaced(folder) as partial:
        yield partial
        _list_files(partial)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Give an empty folder to write into, which takes the place of `folder` when all is written."""
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{state}") for state in ("partial", "old"))
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        yield partial
        if folder.exists():
            folder.replace(old)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _list_files(folder: Path) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths
    }
    (folder / CONTENTS).write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8", newline="")
