"""Share options and output between the commands that write manifests."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sized

    from obygaze_features.manifest import Codebook, Imported, Manifest


out_option = click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Manifest to write."
)
force_option = click.option("--force", is_flag=True, help="Replace an existing manifest.")


def folder_of(path: Path) -> Path:
    """Return the parent folder of a file."""
    return path.absolute().parent


def refuse_to_replace(out: Path, force: bool, codebook: "Codebook | None" = None) -> None:
    """Refuse to replace an existing manifest, before any work is done."""
    from obygaze_features.errors import ManifestError
    from obygaze_features.manifest import BUILTIN, codebook_file, holds_codebook

    beside = codebook_file(out)
    if beside.exists() and not (codebook and holds_codebook(beside, codebook)):
        if codebook is None or codebook.name in BUILTIN:
            raise ManifestError(
                f"{beside} would be taken for the codebook of {out.name}, and it is another one; "
                "choose another --out, or remove it"
            )
        if not force:
            raise ManifestError(
                f"{beside} is there already and is another codebook than {codebook.name!r}; "
                "choose another --out, or replace it with --force"
            )
    if out.exists() and not force:
        raise ManifestError(f"{out} is there already; choose another --out, or replace it with --force")
    if not folder_of(out).is_dir():
        raise ManifestError(f"{folder_of(out)}: no such folder to write {out.name} in")


def write(imported: "Imported", out: Path, *, quiet: bool = False) -> None:
    """Write a manifest; print its size to stdout, unless `quiet`, and what was left out to stderr."""
    from obygaze_features.manifest import write_manifest

    written = write_manifest(imported.manifest, out)
    for notice in imported.notices:
        click.echo(notice, err=True)
    if quiet:
        return
    clips, movies = _count(written, "clip"), _count(written.movies, "movie")
    click.echo(f"{out}: {clips} of {movies} ({_levels(written)})")


def _count(things: "Sized", noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _levels(manifest: "Manifest") -> str:
    from obygaze_features.manifest import statistics

    counts = statistics(manifest)
    levels = [f"{number:,} {level}" for level, number in counts.clips.items() if number]
    if counts.unlabelled:
        levels.append(f"{counts.unlabelled:,} without level")
    return ", ".join(levels) or "no clips"
