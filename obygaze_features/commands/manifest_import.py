"""`obygaze manifest import`: make manifests from annotations, folders and films."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import (
    Columns,
    NewManifest,
    Wide,
    complete_codebook,
    folder_for,
    headings_of,
    meanings_of,
    write_imported,
)
from obygaze_features.errors import ManifestError
from obygaze_features.options import PROBLEMS_FOUND, Answer, completed
from obygaze_features.plugins import IMPORTERS, points
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.templates import packaged

ROLES = ("levels", "concepts", "labels")
"""The roles that --tier can give to a tier."""

KINDS = tuple(sorted(packaged("obygaze_features.manifest.spans", "kinds.toml")["kinds"]))
"""Names of those of `manifest.SOURCES` that come with obygaze; `SOURCES` itself is slow to import."""
ADDED = tuple(point.name for point in points(IMPORTERS))


@command()
def spans(
    files: Annotated[tuple[Path, ...], argument(metavar="FILE...")],
    *,
    kind: Annotated[
        str,
        option(
            f"Kind of the files, if their content does not show it: {', '.join((*KINDS, *ADDED))}.",
            name="as",
            metavar="KIND",
            shell_complete=completed(lambda _: tuple(manifests.SOURCES)),
        ),
    ] = "",
    tiers: Annotated[
        tuple[str, ...],
        option(
            "Read only the tiers (tracks, categories, attributes) named so; repeatable. labels: the codebook "
            "decides which words are levels and which concepts.",
            name="tier",
            metavar="NAME=levels|concepts|labels",
        ),
    ] = (),
    columns: Columns = (),
    wide: Wide = "",
    words: Annotated[
        tuple[str, ...],
        option(
            "Read WORD of the files as this level or concept, such as 0=EN; repeatable. 'WORD=' reads it as "
            "no label, and a mark as no; 'x=yes' reads the mark x as yes.",
            name="word",
            metavar="WORD=LABEL",
        ),
    ] = (),
    decisions: Annotated[
        bool,
        option(
            "Read decisions from documents that 'manifest disagreements --out' wrote, with who signed them "
            "and when."
        ),
    ] = False,
    movie: Annotated[str, option("Name of the film, for files that name none.")] = "",
    annotator: Annotated[str, option("Name of the annotator, for files that name none.")] = "",
    rate: Annotated[
        str | None,
        option("Frames per second, such as 25 or 23.976, for times that count frames.", metavar="FPS"),
    ] = None,
    unit: Annotated[
        str,
        option(
            "Unit of times that are numbers, in tables and transcripts, if these do not say it: s, ms, us, "
            "ns, cs, min, h or frames.",
            metavar="UNIT",
        ),
    ] = "",
    start: Annotated[
        str,
        option(
            "Time code of the film's first frame, such as 01:00:00:00, for edl, markers and ttml.",
            metavar="hh:mm:ss:ff",
        ),
    ] = "",
    encoding: Annotated[str, option("Encoding of files that are not UTF-8, such as cp1251 or gb18030.")] = "",
    videos: Annotated[Path | None, option("Folder of the video files that the manifest refers to.")] = None,
    codebook: Annotated[
        str | None,
        option(
            "Codebook of the levels and concepts: a built-in name or your own file.  "
            "[default: the files' own]",
            type=click.STRING,
            metavar="NAME|FILE",
            shell_complete=complete_codebook,
        ),
    ] = None,
    out: NewManifest,
    force: Force = False,
) -> Answer:
    """Import spans of films (annotations, judgements, subtitles, tables) as a manifest.

    \b
    These files are read:
    annotation   ELAN (.eaf, tab-delimited text), BORIS (tabular or
                 aggregated events), Praat TextGrid, RTTM, Label Studio
                 (JSON), CVAT (XML), VIAN and VIA (CSV), ActivityNet,
                 MovieGraphs (JSON), REFI-QDA (NVivo, MAXQDA, ATLAS.ti,
                 QualCoder), JSON-LD, IIIF
    subtitles    SRT, WebVTT, ASS, TTML, transcripts (Whisper, WhisperX,
                 Amazon Transcribe)
    editing      markers of Premiere and Resolve (CSV), Avid (text), EDL,
                 Final Cut Pro 7 XML, FCPXML, OpenTimelineIO
    obygaze      judgements of `film open` and `film next`; answers of
                 machines to `codebook questions` (JSON lines), in which
                 refusals and gaps are counted and never guessed
    tables       CSV, .xlsx

    Tables need the columns start_s and end_s (without them a row is a whole file) and video or movie. They
    may have clip_id, level, concepts, annotator. If headings are others, give --column.

    For each file one line is printed: how many spans were read, which were left out and why. If there is no
    span, no file is written, and the exit code is 3.

    A tier holds labels if --tier names it, if it is called level or concepts, or if all its texts, over all
    files, are words of the codebook (more than one of them). Other tiers hold texts, for the column text; if
    one looks like labels, that is printed. The annotator is an attribute of the tier, or follows an @ in its
    name.

    What a model wrote never becomes a label. Annotations made in sight of a model's scores are marked
    seen_score=1. Times are seconds, hh:mm:ss.ms, or hh:mm:ss:ff with --rate.

    \b
    Examples:
      obygaze manifest import spans film.eaf --annotator AB --out film.csv
      obygaze manifest import spans scenes.csv --videos films --out scenes-in.csv
      obygaze manifest import spans ratings.csv --column level=class --out r.csv
      obygaze manifest import spans wide.xlsx --wide AB,CD --out rated.csv
      obygaze manifest import spans events.tsv --codebook violence.toml \\
          --tier violence=levels --out fights.csv
      obygaze manifest import spans tt0118715-ab.csv blind-*.csv --out judged.csv
      obygaze manifest import spans judged.csv answers.jsonl \\
          --annotator qwen-vl --out with-machine.csv
    """
    from obygaze_features.manifest.spans.tier_names import DECIDED

    roles = roles_of_tiers(tiers)
    if decisions and roles:
        raise click.UsageError("--decisions names its tiers: give no --tier with it")
    headings = headings_of(columns, wide)
    frame_rate = None if rate is None else manifests.frame_rate(rate)
    named_codebook = manifests.find_codebook(codebook) if codebook else None
    folder = folder_for(out, named_codebook, force=force)

    try:
        imported = manifests.import_spans(
            files,
            folder,
            kind=kind,
            tiers=dict(DECIDED) if decisions else roles,
            columns=headings.columns,
            wide=headings.wide,
            words=meanings_of(words),
            movie=movie,
            annotator=annotator,
            rate=frame_rate,
            unit=unit,
            start=start,
            encoding=encoding,
            videos=videos,
            codebook=named_codebook,
            length_of=_video_length_s,
        )
    except manifests.UnreadColumnsError as error:
        # The table is refused. The message has the command that reads it, with the options that were typed.
        typed = {
            "--as": kind,
            "--movie": movie,
            "--annotator": annotator,
            "--rate": rate or "",
            "--unit": unit,
            "--start": start,
            "--encoding": encoding,
            "--videos": str(videos or ""),
            "--codebook": codebook or "",
            "--out": str(out),
        }

        typed_options = [f"--word {shlex.quote(word)}" for word in words]
        typed_options += [f"{name} {shlex.quote(value)}" for name, value in typed.items() if value]
        raise ManifestError(_message_with_command(error, files, typed_options, force=force)) from None

    accounts = [account.record() for account in imported.accounts]
    if not imported.manifest.clips:
        return _nothing_imported(imported, out, accounts)
    return write_imported(imported, out, more={"accounts": accounts})


def _nothing_imported(imported: "manifests.Imported", out: Path, accounts: Sequence[object]) -> Answer:
    """Print why no span was read, and answer that no file is written.

    Parameters
    ----------
    imported
        The import, with notices that say why.
    out
        The manifest that would have been written.
    accounts
        For each file, what was read of it and left out.
    """
    for notice in imported.notices:
        click.echo(notice, err=True)
    document = {"manifest": None, "clips": 0, "notices": imported.notices, "accounts": accounts}
    return Answer(document, f"no span to import: {out} is not written", code=PROBLEMS_FOUND)


def _message_with_command(
    error: "manifests.UnreadColumnsError", files: Sequence[Path], typed: Sequence[str], *, force: bool
) -> str:
    """Return the message for a table with unread columns; it ends with the command that reads them."""
    names = [shlex.quote(str(path)) for path in files]
    words = ["obygaze manifest import spans", *names, *error.options, *typed]
    if force:
        words.append("--force")
    doubts = "".join(f" ({doubt})" for doubt in error.doubts)
    return f"{error.reason}; read it with{doubts}: {' '.join(words)}"


def roles_of_tiers(tiers: Sequence[str]) -> dict[str, str]:
    """Parse the values of --tier, such as NAME=levels, into tier name -> role; a name may contain "="."""
    roles: dict[str, str] = {}
    for tier in tiers:
        name, _, role = tier.rpartition("=")
        if not name or role not in ROLES:
            raise click.BadParameter(
                f"{tier!r}: expected NAME=levels, NAME=concepts or NAME=labels", param_hint="'--tier'"
            )
        if roles.setdefault(name, role) != role:
            raise click.BadParameter(f"{name!r} is {roles[name]} or {role}, not both", param_hint="'--tier'")
    return roles


def _video_length_s(path: Path) -> float | None:
    """Read the duration of a video in seconds from its header; None if unknown, or without PyAV."""
    from obygaze_features.errors import VideoError

    try:
        from obygaze_features.video.source import opened

        with opened(path) as source:
            duration_us = source.container.duration  # in microseconds
            return duration_us / 1e6 if duration_us else None
    except (ModuleNotFoundError, VideoError, OSError):
        return None


@command("folder")
def import_folder(
    source: Annotated[Path, argument()],
    *,
    codebook: Annotated[
        str,
        option(
            "Codebook of the levels and concepts that the clips may get later: a built-in name or your own "
            "file.",
            type=click.STRING,
            metavar="NAME|FILE",
            shell_complete=complete_codebook,
        ),
    ] = "obygaze12",
    out: NewManifest,
    force: Force = False,
) -> Answer:
    """Write a manifest of a folder of videos, with one clip for each video file.

    Videos in sub-folders of SOURCE are included. A clip's id is its path in SOURCE without suffix, with "-"
    between the folders. Its movie is the first sub-folder, or the file's name if the file lies in SOURCE
    itself. A codebook of your own is copied beside the manifest (films.codebook.toml for films.csv).

    To import spans of the videos in place of whole files, use 'manifest import spans --videos'.

    \b
    Examples:
      obygaze manifest import folder films --out films.csv
    """
    labels = manifests.find_codebook(codebook)
    folder = folder_for(out, labels, force=force)
    return write_imported(manifests.import_folder(source, folder, labels), out)


@command("images")
def import_images(
    source: Annotated[Path, argument()],
    *,
    out: NewManifest,
    force: Force = False,
) -> Answer:
    """Write a manifest of a folder of still images, each as a clip of one frame.

    Images (.jpg, .png, .webp, .avif, .bmp, .tif) in sub-folders of SOURCE are included. A clip's id is its
    path in SOURCE without suffix, with "-" between the folders. Its movie is the first sub-folder, or the
    name of SOURCE if the image lies in SOURCE itself.

    \b
    Examples:
      obygaze manifest import images stills --out stills.csv
      obygaze extract stills.csv stores/stills --backbone clip
    """
    folder = folder_for(out, force=force)
    return write_imported(manifests.import_images(source, folder), out)
