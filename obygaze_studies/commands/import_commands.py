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
    """Write a manifest of ObyGaze12's annotations of 1,914 MovieGraphs clips.

    SOURCE is ObyGaze12_thresh_02.csv, or the folder that contains it. If it is the folder, the manifest also
    has the folds of the released split files, in columns that name the levels they tell apart: fold_en_s (EN
    and S), fold_hn_s, ..., fold_movieset_enhn_s (a film is a fold).

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
        option("Table of the segments' subtitles to write: text_id (the clip), text.", metavar="FILE.csv"),
    ] = None,
    records: Annotated[
        Literal["full", "speech", "vision", "EN"],
        option(
            "Segments to import, by the record sets of the data set's metadata.json. full: all. speech: with "
            "subtitles. vision: with a visual concept. EN: of the level EN."
        ),
    ] = "full",
    videos: Videos = None,
    out: Out,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Write a manifest of MObyGaze's segments of 20 films.

    SOURCE is mobygaze_dataframe.csv, or the folder that contains it. If mobygaze_movielist.csv is in the same
    folder, the manifest has the films' years and genres. Each segment was marked by one of two annotators.
    Frame numbers are converted to seconds. Video files must be named by the films' IMDb ids.

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

    # The subtitles are written to a table of their own, or the user is told that they are left out.
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
    """Write a manifest of the clips of MediaEval 2015 Affective Impact of Movies.

    SOURCE is the table clips.csv, or the folder that contains it. You make this table from the files of the
    organisers, who release them to people who sign a form. Its columns are clip (the video's file name),
    movie, split (dev or test), and, if known, valence, arousal, violence. If it has no column split, put
    dev.txt and test.txt into the same folder, with the movies of dev and of test, one per line.

    \b
    Examples:
      obygaze manifest import mediaeval15 MediaEval --videos clips \\
            --out mediaeval15.csv
      obygaze manifest import mediaeval15 clips.csv --out mediaeval15.csv
    """
    from obygaze_studies import mediaeval15

    folder = folder_for(out, force=force)
    return write_imported(mediaeval15.import_mediaeval15(source, folder, videos), out)
