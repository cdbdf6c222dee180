"""Share options and output between the commands that write manifests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import click

from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.options import FILE, Answer, completed
from obygaze_features.signatures import option

complete_codebook = completed(lambda _: manifests.BUILTIN, files=True)

NewManifest = Annotated[Path, option("Manifest to write.", type=FILE)]
"""The option --out of a command that writes a manifest."""


def folder_for(out: Path, codebook: "manifests.Codebook | None" = None, *, force: bool) -> Path:
    """Return the folder of the manifest to write; refuse to replace one, before any work is done."""
    beside = manifests.codebook_file(out)
    if beside.exists() and not (codebook and manifests.holds_codebook(beside, codebook)):
        is_own = codebook is not None and codebook.name not in manifests.BUILTIN
        if not (is_own and force):
            raise ManifestError(
                f"{beside} would be taken for the codebook of {out.name}, and it is another one; choose "
                "another --out, or remove it"
            )
    if out.exists() and not force:
        raise ManifestError(f"{out} is there already; choose another --out, or replace it with --force")
    return out.absolute().parent


def write_imported(
    imported: "manifests.Imported",
    out: Path,
    *,
    beside: Mapping[Path, bytes] | None = None,
    more: Mapping[str, object] | None = None,
) -> Answer:
    """Write a manifest; print what was left out to stderr, and answer its size.

    Parameters
    ----------
    beside
        Files that are written with it.
    more
        What else the document of --json says.
    """
    written = manifests.write_manifest(imported.manifest, out, beside=beside)
    for notice in imported.notices:
        click.echo(notice, err=True)
    clips = manifests.counted(len(written), "clip")
    movies = manifests.counted(len(written.movies), "movie")
    levels = [f"{number:,} {level}" for level, number in level_counts(written).items() if number]
    document = {
        "manifest": str(out),
        "clips": len(written),
        "movies": len(written.movies),
        "levels": level_counts(written, "none"),
        "notices": imported.notices,
        **(more or {}),
    }
    return Answer(document, f"{out}: {clips} of {movies} ({', '.join(levels) or 'no clips'})")


def level_counts(manifest: "manifests.Manifest", none: str = "without level") -> dict[str, int]:
    """Count the clips of each level, and under the name `none` those without."""
    counts = dict.fromkeys((*manifest.codebook.level_names, none), 0)
    for clip in manifest:
        counts[clip.level or none] += 1
    return counts
