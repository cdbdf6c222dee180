"""`obygaze manifest import obygaze12 | mobygaze | mediaeval15`: make manifests of the corpora of papers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from obygaze_features.commands import folder_for, write_imported
from obygaze_features.io import refuse_existing
from obygaze_features.options import FILE, Answer
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted

Source = Annotated[Path, argument()]
Videos = Annotated[Path | None, option("Folder of the video files that the manifest refers to.")]
Out = Annotated[Path, option("Manifest to write.", type=FILE)]


@command("obygaze12")
def import_obygaze12(source: Source, *, videos: Videos = None, out: Out, force: Force = False) -> Answer:
    """Import ObyGaze12's annotations of 1,914 MovieGraphs clips.

    SOURCE is ObyGaze12_thresh_02.csv, or the folder that holds it. From the folder, the folds of the
    released split files come along as columns (fold_en_s, fold_hn_s, ..., fold_movieset_enhn_s).

    \b
    Examples:
      obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv
      obygaze manifest import obygaze12 ObyGaze12/ObyGaze12_thresh_02.csv \\
            --videos clips --out obygaze12.csv
    """
    from obygaze_studies import obygaze12

    folder = folder_for(out, force=force)
    return write_imported(obygaze12.import_obygaze12(source, folder, videos), out)


@command("mobygaze")
def import_mobygaze(
    source: Source,
    *,
    texts: Annotated[
        Path | None,
        option("Write the segments' subtitles: text_id (the clip), text.", metavar="FILE.csv"),
    ] = None,
    records: Annotated[
        Literal["full", "speech", "vision", "EN"],
        option(
            "Segments of a record set of the data set's metadata.json: all; with subtitles; marked with a "
            "visual concept; of the level EN."
        ),
    ] = "full",
    videos: Videos = None,
    out: Out,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Import MObyGaze's segments of 20 films.

    Each segment is what one of two annotators marked; frames become seconds. SOURCE is
    mobygaze_dataframe.csv, or the folder that holds it; mobygaze_movielist.csv beside it gives the films'
    years and genres. Videos are named by the films' IMDb ids.

    \b
    Examples:
      obygaze manifest import mobygaze MObyGaze --out segments.csv
      obygaze manifest import mobygaze MObyGaze --videos films --out segments.csv
      obygaze manifest import mobygaze MObyGaze --records speech \\
            --texts subtitles.csv --out speech.csv
      obygaze extract subtitles.csv stores/subtitles --backbone sentence
      obygaze evaluate speech.csv stores/subtitles-1.0.0 --task concept:Speech
    """
    from obygaze_studies import mobygaze
    from obygaze_studies.audit_common.findings import write_rows

    refuse_existing(texts, force=force)
    folder = folder_for(out, force=force)
    imported = mobygaze.import_mobygaze(source, folder, videos, records)
    answer = write_imported(imported, out)
    if texts is not None:
        rows = [("text_id", "text"), *imported.texts]
        sentence = write_rows(rows, texts, "subtitles", force=force)
        if json:
            # Standard output has the JSON alone.
            return replace(answer, remarks=[sentence])
        return replace(answer, text=f"{answer.text}\n{sentence}")
    if imported.texts:
        remark = f"left out {counted(len(imported.texts), 'subtitle')}: --texts keeps them"
        return replace(answer, remarks=[remark])
    return answer


@command("mediaeval15")
def import_mediaeval15(source: Source, *, videos: Videos = None, out: Out, force: Force = False) -> Answer:
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
    from obygaze_studies import mediaeval15

    folder = folder_for(out, force=force)
    return write_imported(mediaeval15.import_mediaeval15(source, folder, videos), out)
