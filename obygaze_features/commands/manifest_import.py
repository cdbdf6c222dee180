"""`obygaze manifest import`: make manifests from annotations, folders and films."""

from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import (
    codebook_option,
    complete_codebook,
    folder_for,
    manifest_output,
    write_imported,
)
from obygaze_features.options import PATH, Output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obygaze_features.manifest import Manifest


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE.eaf...")
@click.option("--movie", default="", show_default=False, help="The film, where a file does not say it.")
@click.option("--annotator", default="", show_default=False, help="Who wrote on tiers that do not say it.")
@click.option(
    "--decisions",
    is_flag=True,
    help="Read what was decided in documents of 'manifest disagreements --out', with who signed it and when.",
)
@codebook_option
@manifest_output
def eaf(
    files: tuple[Path, ...],
    movie: str,
    annotator: str,
    decisions: bool,
    codebook: str | None,
    output: Output,
) -> None:
    """Import annotations made in ELAN.

    Only tiers whose names begin with "human:" are read, so that a model's output never comes back as
    a label: an export of `obygaze film export --as eaf` that nobody wrote on gives no clips, and exit code 3.
    The annotator is the tier's attribute, or follows an @ in its name ("human: level@AB"). Annotations in
    a file with a model's tiers are marked seen_score=1: they were made with the score in sight.

    \b
    Examples:
      obygaze manifest import eaf film.eaf --annotator AB --out film.csv
      obygaze manifest import eaf film.eaf --movie tt0118715 --out film.csv
    """
    from obygaze_features.manifest.importers.eaf import DECIDED_CONCEPTS, DECIDED_LEVEL

    labels = manifests.find_codebook(codebook) if codebook else None
    tiers = {"level_tier": DECIDED_LEVEL, "concept_tier": DECIDED_CONCEPTS} if decisions else {}
    imported = manifests.import_eaf(
        files, folder_for(output, labels), movie=movie, annotator=annotator, codebook=labels, **tiers
    )
    write_imported(imported, output, empty_is_3=True)


@click.command("folder")
@click.argument("source", type=PATH)
@manifest_output
@click.option(
    "--spans",
    type=PATH,
    help="CSV of spans: video, start_s, end_s, and optionally clip_id, movie, level, concepts.",
)
@click.option(
    "--codebook",
    default="obygaze12",
    metavar="NAME|FILE",
    shell_complete=complete_codebook,
    help="Codebook of the spans' levels and concepts: a built-in name or your own file.",
)
@click.option(
    "--rate", metavar="FPS", help="Frame rate of times given with frames (hh:mm:ss:ff), such as 25 or 23.976."
)
def import_folder_(source: Path, spans: Path | None, codebook: str, rate: str | None, output: Output) -> None:
    """Import a folder of videos, whole or cut into spans.

    Makes one clip per file below SOURCE, or per span of the CSV. A clip's id is its path without
    suffix (and its span), separators turned into "-"; its movie is the first sub-folder, or the file's name.
    In the CSV, videos are named relative to SOURCE; an empty start_s and end_s stand for the whole file.
    Times are seconds, hh:mm:ss.ms, or hh:mm:ss:ff with --rate. Excel's CSV with semicolons and decimal commas
    is read as well.
    Levels and concepts may be spelled by the codebook's titles and synonyms. A codebook of your own is kept
    beside the manifest (films.csv: films.codebook.toml).

    \b
    Examples:
      obygaze manifest import folder films --out films.csv
      obygaze manifest import folder films --spans scenes.csv \\
          --out scenes-of-films.csv
      obygaze manifest import folder films --spans fights.csv \\
          --codebook violence.toml --out fights-in.csv
    """
    from obygaze_features.manifest.clip import frame_rate

    fps = None if rate is None else frame_rate(rate)
    labels = manifests.find_codebook(codebook)
    imported = manifests.import_folder(source, folder_for(output, labels), spans, labels, fps)
    behind = _behind_the_end(imported.manifest)
    write_imported(replace(imported, notices=(*imported.notices, *behind)), output)


def _behind_the_end(manifest: "Manifest") -> "Iterator[str]":
    """Name the spans of no picture, as far as the headers of videos tell, where PyAV is installed."""
    from obygaze_features.errors import VideoError

    with suppress(ModuleNotFoundError):
        from obygaze_features.video.source import opened

        spans = (clip for clip in manifest if clip.start_s is not None)
        for path, clips in groupby(spans, manifest.video_path):
            with suppress(VideoError), opened(path or Path()) as source:
                end_s = (source.container.duration or float("inf")) / 1e6
                for clip in clips:
                    if (start_s := clip.start_s or 0.0) >= end_s:
                        yield f"{clip.clip_id} begins at {start_s:g} s, but its video ends at {end_s:g} s"


@click.command("images")
@click.argument("source", type=PATH)
@manifest_output
def import_images_(source: Path, output: Output) -> None:
    """Import a folder of still images, each a clip of one frame.

    Makes one clip per .jpg, .png, .webp, .bmp or .tif below SOURCE. Its id is its path without suffix,
    separators turned into "-"; its movie is the first sub-folder, or SOURCE for images at the top.

    \b
    Examples:
      obygaze manifest import images stills --out stills.csv
      obygaze extract stills.csv stores/stills --backbone clip
    """
    write_imported(manifests.import_images(source, folder_for(output)), output)
