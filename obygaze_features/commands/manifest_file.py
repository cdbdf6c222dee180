"""Share options and output between the commands that write manifests."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import click

from obygaze_features import manifest as manifests
from obygaze_features.errors import ManifestError
from obygaze_features.options import FILE, Answer, completed
from obygaze_features.signatures import option

complete_codebook = completed(lambda _: manifests.BUILTIN, files=True)

Columns = Annotated[
    tuple[str, ...],
    option(
        "Read the table's column HEADING as the manifest's column NAME (or duration_s), such as level=Stufe; "
        "repeatable. level and concepts may have several headings. 'concepts=' reads no concepts.",
        name="column",
        metavar="NAME=HEADING",
    ),
]
Wide = Annotated[
    str,
    option(
        "Names of annotators who have their own columns, such as AB, or Level AB and Concepts AB.",
        metavar="NAME,...",
    ),
]
NewManifest = Annotated[Path, option("Manifest to write.", type=FILE)]
"""The option --out of a command that writes a manifest."""


def folder_for(out: Path, codebook: "manifests.Codebook | None" = None, *, force: bool) -> Path:
    """Check that a new manifest replaces nothing by mistake, and return its folder.

    Parameters
    ----------
    out
        The manifest to write.
    codebook
        Its codebook. One that is not built in is written to a file of its own beside the manifest.
    force
        Whether existing files may be replaced.

    Raises
    ------
    ManifestError
        The manifest exists, or the file of its codebook exists and holds another codebook.
    """
    _refuse_other_codebook(out, codebook, force=force)
    if out.exists() and not force:
        raise ManifestError(f"{out} is there already; choose another --out, or replace it with --force")
    return out.absolute().parent


def _refuse_other_codebook(out: Path, codebook: "manifests.Codebook | None", *, force: bool) -> None:
    """Refuse to write a manifest beside another codebook's file that readers would take for the manifest's.

    There is nothing to refuse if the file is not there, holds the manifest's codebook, or is replaced.

    Parameters
    ----------
    out
        The manifest to write.
    codebook
        Its codebook; None for the usual one, which has no file.
    force
        Whether existing files may be replaced.
    """
    from obygaze_features.manifest.manifest import has_codebook_file

    codebook_file = manifests.codebook_file(out)
    if not codebook_file.exists():
        return
    is_same_codebook = codebook is not None and manifests.holds_codebook(codebook_file, codebook)
    if is_same_codebook:
        return
    has_file_of_its_own = codebook is not None and has_codebook_file(codebook)
    will_be_replaced = has_file_of_its_own and force
    if will_be_replaced:
        return

    remedy = "replace both with --force" if has_file_of_its_own else "remove it"
    raise ManifestError(
        f"{codebook_file} would be taken for the codebook of {out.name}, and it is another one; "
        f"choose another --out, or {remedy}"
    )


def write_imported(
    imported: "manifests.Imported",
    out: Path,
    *,
    beside: Mapping[Path, bytes] | None = None,
    more: Mapping[str, object] | None = None,
) -> Answer:
    """Write an imported manifest, print its notices to stderr, and answer with its counts.

    Parameters
    ----------
    imported
        The manifest with its notices.
    out
        The file to write.
    beside
        Further files to write together with the manifest: path -> content.
    more
        Further fields of the answer's JSON document.
    """
    written = manifests.write_manifest(imported.manifest, out, beside=beside)
    for notice in imported.notices:
        click.echo(notice, err=True)

    n_clips = len(written.clips_once)  # a clip may have a row for each annotator
    clips = manifests.counted(n_clips, "clip")
    movies = manifests.counted(len(written.movies), "movie")
    n_rows = manifests.counted(len(written), "row of annotators", "rows of annotators")
    rows = f", {n_rows}" if written.is_per_annotator else ""
    levels = [f"{number:,} {level}" for level, number in level_counts(written).items() if number]

    document = {
        "manifest": str(out),
        "clips": n_clips,
        "rows": len(written),
        "movies": len(written.movies),
        "levels": level_counts(written, "none"),
        "notices": imported.notices,
        **(more or {}),
    }
    return Answer(document, f"{out}: {clips} of {movies}{rows} ({', '.join(levels) or 'no clips'})")


def level_counts(manifest: "manifests.Manifest", none: str = "without level") -> dict[str, int]:
    """Count the rows of a manifest by level; those without a level are counted under the name `none`."""
    counts = dict.fromkeys((*manifest.codebook.level_names, none), 0)
    for clip in manifest:
        counts[clip.level or none] += 1
    return counts


def headings_of(columns: Sequence[str], wide: str) -> "manifests.Headings":
    """Parse --column and --wide: which headings of a table stand for which columns of a manifest.

    Parameters
    ----------
    columns
        Texts NAME=HEADING; the heading may contain "=".
    wide
        Names of annotators with columns of their own, separated by commas.
    """
    headings_of_column: dict[str, list[str]] = {}  # column of the manifest -> headings of the table
    for column in columns:
        name, sign, heading = column.partition("=")
        if not name.strip() or not sign:
            raise click.BadParameter(f"{column!r}: expected NAME=HEADING", param_hint="'--column'")
        headings_of_column.setdefault(name.strip(), []).append(heading.strip())

    # Read as a line of CSV, so that a name in quotation marks may contain a comma.
    cells = next(csv.reader([wide]), [])
    annotators = [name.strip() for name in cells if name.strip()]
    return manifests.Headings(headings_of_column, annotators)


def meanings_of(words: Sequence[str]) -> dict[str, str]:
    """Parse the values of --word, WORD=LABEL: which words of a file stand for which labels.

    The word may contain "=". An empty label means that the word stands for none.

    Returns
    -------
    dict
        Word -> label.
    """
    label_of_word: dict[str, str] = {}
    for text in words:
        word, sign, label = (part.strip() for part in text.rpartition("="))
        if not word or not sign:
            raise click.BadParameter(f"{text!r}: expected WORD=LABEL", param_hint="'--word'")
        first_label = label_of_word.setdefault(word, label)
        if first_label != label:
            raise click.BadParameter(
                f"{word!r} is {first_label!r} or {label!r}, not both", param_hint="'--word'"
            )
    return label_of_word
