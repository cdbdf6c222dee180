"""Share options and output between the commands that write manifests."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.options import FILE, Output, output

if TYPE_CHECKING:
    from collections.abc import Sized

    from obygaze_features.manifest import Codebook, Imported, Manifest


manifest_output = output("Manifest to write.", kind=FILE, required=True)


def folder_for(output: Output, codebook: "Codebook | None" = None) -> Path:
    """Return the folder of the manifest to write; refuse to replace one, before any work is done."""
    out, force, folder = output.path, output.force, output.path.absolute().parent
    beside = manifests.codebook_file(out)
    if beside.exists() and not (codebook and manifests.holds_codebook(beside, codebook)):
        if codebook is None or codebook.name in manifests.BUILTIN:
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
    if not folder.is_dir():
        raise ManifestError(f"{folder}: no such folder to write {out.name} in")
    return folder


def write(imported: "Imported", output: Output) -> None:
    """Write a manifest; print its size to stdout, unless as JSON, and what was left out to stderr."""
    written = manifests.write_manifest(imported.manifest, output.path)
    for notice in imported.notices:
        click.echo(notice, err=True)
    if output.as_json:
        return
    clips, movies = _count(written, "clip"), _count(written.movies, "movie")
    click.echo(f"{output.path}: {clips} of {movies} ({_levels(written)})")


def _count(things: "Sized", noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _levels(manifest: "Manifest") -> str:

    counts = manifests.statistics(manifest)
    levels = [f"{number:,} {level}" for level, number in counts.clips.items() if number]
    if counts.unlabelled:
        levels.append(f"{counts.unlabelled:,} without level")
    return ", ".join(levels) or "no clips"
