"""`obygaze manifest import`: make manifests from annotations, folders and films."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_film import film
from obygaze_features.commands.manifest_output import folder_for, manifest_output, write
from obygaze_features.io import csv_line, refuse_existing, write_whole
from obygaze_features.options import PATH, Output, removed_option

if TYPE_CHECKING:
    from typing import Literal

    from obygaze_features.manifest import Imported


codebook_option = click.option(
    "--codebook",
    metavar="NAME|FILE",
    help="Codebook of the levels and concepts: a built-in name or your own file.  [default: the files' own]",
)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE.eaf...")
@removed_option("--tier", "name the tier 'human: level' in ELAN", value=True)
@removed_option("--concept-tier", "name the tier 'human: concepts' in ELAN", value=True)
@click.option("--movie", default="", show_default=False, help="The film, where a file does not say it.")
@click.option("--annotator", default="", show_default=False, help="Who wrote on tiers that do not say it.")
@codebook_option
@manifest_output
def eaf(
    files: tuple[Path, ...],
    movie: str,
    annotator: str,
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
    labels = manifests.find_codebook(codebook) if codebook else None
    imported = manifests.import_eaf(
        files,
        folder_for(output, labels),
        movie=movie,
        annotator=annotator,
        codebook=labels,
    )
    _write_or_3(imported, output)


@click.command()
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE.csv...")
@codebook_option
@manifest_output
def judgements(files: tuple[Path, ...], codebook: str | None, output: Output) -> None:
    """Import judgements of scored films, of one or more annotators.

    FILEs are what a film's page saved, or what `obygaze film next` wrote, filled in. Rows without a level are
    left out and counted; where somebody judged a span twice, the last judgement counts. Without any
    judgement the exit code is 3.

    \b
    Examples:
      obygaze manifest import judgements tt0118715-ab.csv --out judged.csv
      obygaze manifest import judgements blind-*.csv --out blind.csv
    """
    labels = manifests.find_codebook(codebook) if codebook else None
    _write_or_3(manifests.import_judgements(files, folder_for(output, labels), labels), output)


def _write_or_3(imported: "Imported", output: Output) -> None:
    """Write a manifest; exit with 3 if it has no clips."""
    write(imported, output)
    if not len(imported.manifest):
        click.get_current_context().exit(3)


videos_option = click.option(
    "--videos",
    type=click.Path(path_type=Path),
    help="Folder of the video files that the manifest refers to.",
)


@click.group("import")
def import_() -> None:
    """Make a manifest from annotations or from a folder of videos or images.

    Prints the numbers of skipped and missing clips on stderr. Videos below the manifest's folder, or in one
    beside it, are stored as relative paths, so that manifest and films can be moved together.

    \b
    Examples:
      obygaze manifest import folder films --out films.csv
      obygaze manifest import folder films --spans scenes.csv \\
          --out scenes-of-films.csv
      obygaze manifest import images stills --out stills.csv
      obygaze manifest import film film.mkv --window 46 --hop auto \\
          --out windows.csv
      obygaze manifest import obygaze12 ObyGaze12 --videos clips \\
          --out obygaze12.csv
      obygaze manifest import mobygaze MObyGaze --out segments.csv
      obygaze manifest import mediaeval15 MediaEval --videos clips \\
          --out mediaeval15.csv
      obygaze manifest import eaf film.eaf --annotator AB --out film.csv
      obygaze manifest import judgements tt0118715-ab.csv --out judged.csv
    """


@import_.command("obygaze12")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
def import_obygaze12_(source: Path, videos: Path | None, output: Output) -> None:
    """Import ObyGaze12's annotations of 1,914 MovieGraphs clips.

    SOURCE is ObyGaze12_thresh_02.csv, or the folder that holds it. From the folder, the folds of the
    released split files come along as columns (fold_en_s, fold_hn_s, ..., fold_movieset_enhn_s).

    \b
    Examples:
      obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv
      obygaze manifest import obygaze12 ObyGaze12/ObyGaze12_thresh_02.csv \\
          --videos clips --out obygaze12.csv
    """
    write(manifests.import_obygaze12(source, folder_for(output), videos), output)


@import_.command("mobygaze")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
@click.option(
    "--texts", type=PATH, metavar="FILE.csv", help="Write the segments' subtitles: text_id (the clip), text."
)
@click.option(
    "--records",
    type=click.Choice(["full", "speech", "vision", "EN"]),
    default="full",
    help="Segments of a record set of the data set's metadata.json: all; with subtitles; marked with a "
    "visual concept; of the level EN.",
)
def import_mobygaze_(
    source: Path,
    videos: Path | None,
    texts: Path | None,
    records: "Literal['full', 'speech', 'vision', 'EN']",
    output: Output,
) -> None:
    """Import MObyGaze's segments of 20 films.

    Each segment is what one of two annotators marked; frames become seconds. SOURCE is
    mobygaze_dataframe.csv, or the folder that holds it; mobygaze_movielist.csv beside it gives the films'
    years and genres. Videos are looked up as <IMDb id>.<any suffix>.

    \b
    Examples:
      obygaze manifest import mobygaze MObyGaze --out segments.csv
      obygaze manifest import mobygaze MObyGaze --videos films --out segments.csv
      obygaze manifest import mobygaze MObyGaze --records speech \\
          --texts subtitles.csv --out speech.csv
      obygaze extract subtitles.csv stores/subtitles --backbone sentence
      obygaze evaluate speech.csv stores/subtitles-1.0.0 --task concept:Speech
    """
    folder = folder_for(output)
    refuse_existing(texts, force=output.force)
    imported = manifests.import_mobygaze(source, folder, videos, records)
    write(imported, output)
    if texts is not None:
        lines = [csv_line(row) for row in (("text_id", "text"), *imported.texts)]
        write_whole(texts, "".join(lines).encode())
        click.echo(f"{texts}: subtitles of {len(imported.texts):,} segments")
    elif imported.texts:
        click.echo(
            f"left out the subtitles of {len(imported.texts):,} segments: --texts keeps them", err=True
        )


@import_.command("mediaeval15")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
def import_mediaeval15_(source: Path, videos: Path | None, output: Output) -> None:
    """Import the clips of MediaEval 2015 Affective Impact of Movies.

    SOURCE is clips.csv, or the folder that holds it: columns clip (the video's file name), movie, split (dev,
    test), and valence, arousal, violence if known. Without a column split, dev.txt and test.txt
    beside it list the movies of each side. The organisers release the data against a signed form; build this
    table from their files.

    \b
    Examples:
      obygaze manifest import mediaeval15 MediaEval --videos clips \\
          --out mediaeval15.csv
      obygaze manifest import mediaeval15 clips.csv --out mediaeval15.csv
    """
    write(manifests.import_mediaeval15(source, folder_for(output), videos), output)


@import_.command("folder")
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
    write(manifests.import_folder(source, folder_for(output, labels), spans, labels, fps), output)


@import_.command("images")
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
    write(manifests.import_images(source, folder_for(output)), output)


import_.add_command(film)
import_.add_command(eaf)
import_.add_command(judgements)
