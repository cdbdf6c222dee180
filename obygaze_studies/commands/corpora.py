"""`obygaze manifest import` of the papers' corpora: obygaze12, mobygaze, mediaeval15."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.commands import folder_for, manifest_output, videos_option, write_imported
from obygaze_features.options import PATH, Output

if TYPE_CHECKING:
    from obygaze_studies.mobygaze.import_segments import Records


@click.command("obygaze12")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
def obygaze12(source: Path, videos: Path | None, output: Output) -> None:
    """Import ObyGaze12's annotations of 1,914 MovieGraphs clips.

    SOURCE is ObyGaze12_thresh_02.csv, or the folder that holds it. From the folder, the folds of the
    released split files come along as columns (fold_en_s, fold_hn_s, ..., fold_movieset_enhn_s).

    \b
    Examples:
      obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv
      obygaze manifest import obygaze12 ObyGaze12/ObyGaze12_thresh_02.csv \\
          --videos clips --out obygaze12.csv
    """
    from obygaze_studies.obygaze12 import import_obygaze12

    write_imported(import_obygaze12(source, folder_for(output), videos), output)


@click.command("mobygaze")
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
def mobygaze(
    source: Path,
    videos: Path | None,
    texts: Path | None,
    records: "Records",
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
    from obygaze_features.io import refuse_existing
    from obygaze_studies.audit_common.findings import write_rows
    from obygaze_studies.mobygaze import import_mobygaze

    folder = folder_for(output)
    refuse_existing(texts, force=output.force)
    imported = import_mobygaze(source, folder, videos, records)
    write_imported(imported, output)
    if texts is not None:
        said = write_rows([("text_id", "text"), *imported.texts], texts, "subtitles", force=output.force)
        click.echo(said, err=output.as_json)
    elif imported.texts:
        click.echo(
            f"left out the subtitles of {len(imported.texts):,} segments: --texts keeps them", err=True
        )


@click.command("mediaeval15")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
def mediaeval15(source: Path, videos: Path | None, output: Output) -> None:
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
    from obygaze_studies.mediaeval15 import import_mediaeval15

    write_imported(import_mediaeval15(source, folder_for(output), videos), output)
