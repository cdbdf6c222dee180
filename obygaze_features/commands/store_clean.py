"""`obygaze store rm, gc`: remove stores and staging folders that are no longer needed."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from obygaze_features.commands.store_output import LOCAL
from obygaze_features.screen import table
from obygaze_features.store.format import BAGIT, FEATURES, PLAN, STAGING_SUFFIX

YES = click.option("--yes", is_flag=True, help="Remove without asking.")
VERSION = re.compile(r"-\d+\.\d+\.\d+")


@click.command()
@click.argument("places", metavar="STORE|STAGE...", nargs=-1, required=True, type=LOCAL)
@YES
def rm(places: tuple[Path, ...], yes: bool) -> None:
    """Remove sealed stores and staging folders after confirmation.

    Other folders, links and stages in use by a process are refused. Nothing outside
    the folder is touched.

    \b
    Examples:
      obygaze store rm stores/films.staging
      obygaze store rm stores/films-1.0.0 stores/films.staging --yes
    """
    _remove([(place, _kind(place)) for place in dict.fromkeys(places)], yes=yes)


@click.command()
@click.argument("folder", default="stores", type=LOCAL)
@YES
def gc(folder: Path, yes: bool) -> None:
    """Remove staging folders in FOLDER (default: stores) whose clips are all in a sealed store.

    A stage goes if NAME-VERSION beside it has every clip of NAME.staging with the same features, or the same
    failure. Stages that are unfinished, in use, or not sealed stay; the reason is printed.

    \b
    Examples:
      obygaze store gc
      obygaze store gc /data/features --yes
    """
    from obygaze_features.errors import StoreError

    if not folder.is_dir():
        raise StoreError(f"{folder}: no such folder; name the one that holds stores: obygaze store gc FOLDER")
    found = []
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(STAGING_SUFFIX) or not (path / PLAN).is_file():
            continue
        try:
            _kind(path)
            reason = _still_needed(path)
        except (StoreError, OSError) as error:
            reason = str(error)
        if reason:
            click.echo(f"kept {path}: {reason}", err=True)
        else:
            found.append((path, "stage, sealed"))
    if not found:
        click.echo(f"nothing to remove in {folder}")
        return
    _remove(found, yes=yes)


def _kind(place: Path) -> str:
    """Return the kind of the folder at a path.

    Raises
    ------
    StoreError
        If it is not a store or stage itself, or is in use.
    """
    from obygaze_features.errors import StoreError
    from obygaze_features.store import read_stage

    if place.is_symlink():
        raise StoreError(f"{place}: is a link; remove what it points to, by its own name")
    if not os.path.lexists(place):
        raise StoreError(f"{place}: nothing there")
    if (place / PLAN).is_file():
        if writers := read_stage(place).n_writers():
            raise StoreError(f"{place}: {writers} process(es) write to it now; wait, or stop them")
        return "stage"
    if (place / BAGIT).is_file() and (place / FEATURES).is_dir():
        return "sealed store"
    raise StoreError(f"{place}: neither a sealed store nor a stage, so it is not removed")


def _still_needed(path: Path) -> str:
    """Return why a stage is still needed; empty if a sealed store beside it has all its clips."""
    from obygaze_features.errors import StoreError
    from obygaze_features.store import open_store, read_stage

    stage = read_stage(path)
    if left := len(stage.missing()):
        return f"{left} of {len(stage.clips)} clips are still to do"
    name = path.name.removesuffix(STAGING_SUFFIX)
    sealed = [
        place
        for place in sorted(path.parent.glob(f"{_literal(name)}-*"))
        if VERSION.fullmatch(place.name[len(name) :]) and not place.is_symlink()
    ]
    status = stage.status()
    for place in sealed:
        try:
            store = open_store(place)
        except (StoreError, OSError):
            continue
        clips = {clip.clip_id: clip for clip in store.clips}
        if all(
            (clip := clips.get(clip_id)) is not None
            and (clip.status, dict(clip.digests)) == (entry.status, dict(entry.digests))
            for clip_id, entry in status.items()
        ):
            return ""
    return "no sealed store has all of its clips" if sealed else "it is not sealed"


def _literal(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def _remove(found: Sequence[tuple[Path, str]], *, yes: bool) -> None:
    rows = [(str(path), what, f"{_size(path) / 1e6:.1f} MB") for path, what in found]
    click.echo(table(rows, ("to remove", "what", "size")), err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("nothing was removed: give --yes")
        click.confirm("Remove for good?", abort=True, err=True)
    for path, _ in found:
        # Renamed first, so that a partly removed store is not read as a store.
        doomed = path.with_name(f".{path.name}.{os.getpid()}.removing")
        path.rename(doomed)
        shutil.rmtree(doomed)  # does not follow links
        click.echo(f"removed {path}")


def _size(folder: Path) -> int:
    """Sum the sizes of files below a folder; links are not followed."""
    return sum(Path(place, name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
