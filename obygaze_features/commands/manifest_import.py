"""`obygaze manifest import`: make manifests from annotations, folders and films."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sized

    from obygaze_features.manifest import Codebook, Imported, Manifest

PATH = click.Path(path_type=Path)  # a missing file is the reader's to report, in one line

out_option = click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Manifest to write."
)
force_option = click.option("--force", is_flag=True, help="Replace an existing manifest.")
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
    """


@import_.command("obygaze12")
@click.argument("source", type=PATH)
@out_option
@videos_option
@force_option
def import_obygaze12_(source: Path, out: Path, videos: Path | None, force: bool) -> None:
    """Import ObyGaze12's annotations of 1,914 MovieGraphs clips.

    SOURCE is ObyGaze12_thresh_02.csv, or the folder that holds it. From the folder, the folds of the
    released split files come along as columns (fold_en_s, fold_hn_s, ..., fold_movieset_enhn_s).

    \b
    Examples:
      obygaze manifest import obygaze12 ObyGaze12 --out obygaze12.csv
      obygaze manifest import obygaze12 ObyGaze12/ObyGaze12_thresh_02.csv \\
          --videos clips --out obygaze12.csv
    """
    from obygaze_features.manifest import import_obygaze12

    refuse_to_replace(out, force)
    write(import_obygaze12(source, _folder_of(out), videos), out)


@import_.command("mobygaze")
@click.argument("source", type=PATH)
@out_option
@videos_option
@force_option
def import_mobygaze_(source: Path, out: Path, videos: Path | None, force: bool) -> None:
    """Import MObyGaze's segments of 20 films.

    Each segment is what one of two annotators marked; frames become seconds. SOURCE is
    mobygaze_dataframe.csv, or the folder that holds it. Videos are looked up as <IMDb id>.<any suffix>.

    \b
    Examples:
      obygaze manifest import mobygaze MObyGaze --out segments.csv
      obygaze manifest import mobygaze MObyGaze --videos films --out segments.csv
    """
    from obygaze_features.manifest import import_mobygaze

    refuse_to_replace(out, force)
    write(import_mobygaze(source, _folder_of(out), videos), out)


@import_.command("mediaeval15")
@click.argument("source", type=PATH)
@out_option
@videos_option
@force_option
def import_mediaeval15_(source: Path, out: Path, videos: Path | None, force: bool) -> None:
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
    from obygaze_features.manifest import import_mediaeval15

    refuse_to_replace(out, force)
    write(import_mediaeval15(source, _folder_of(out), videos), out)


@import_.command("folder")
@click.argument("source", type=PATH)
@out_option
@click.option(
    "--spans",
    type=PATH,
    help="CSV of spans: video, start_s, end_s, and optionally clip_id, movie, level, concepts.",
)
@click.option(
    "--codebook",
    default="obygaze12",
    show_default=True,
    metavar="NAME|FILE",
    help="Codebook of the spans' levels and concepts: a built-in name or your own file.",
)
@click.option(
    "--rate", metavar="FPS", help="Frame rate of times given with frames (hh:mm:ss:ff), such as 25 or 23.976."
)
@force_option
def import_folder_(
    source: Path, out: Path, spans: Path | None, codebook: str, rate: str | None, force: bool
) -> None:
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
    from obygaze_features.manifest import find_codebook, import_folder
    from obygaze_features.manifest.rows import frame_rate

    fps = None if rate is None else frame_rate(rate)
    labels = find_codebook(codebook)
    refuse_to_replace(out, force, labels)
    write(import_folder(source, _folder_of(out), spans, labels, fps), out)


@import_.command("images")
@click.argument("source", type=PATH)
@out_option
@force_option
def import_images_(source: Path, out: Path, force: bool) -> None:
    """Import a folder of still images, each a clip of one frame.

    Makes one clip per .jpg, .png, .webp, .bmp or .tif below SOURCE. Its id is its path without suffix,
    separators turned into "-"; its movie is the first sub-folder, or SOURCE for images at the top.

    \b
    Examples:
      obygaze manifest import images stills --out stills.csv
      obygaze extract stills.csv stores/stills --backbone clip
    """
    from obygaze_features.manifest import import_images

    refuse_to_replace(out, force)
    write(import_images(source, _folder_of(out)), out)


def _hop(ctx: click.Context, param: click.Parameter, value: str) -> float | None:
    """Read seconds; None for `auto`."""
    if value == "auto":
        return None
    try:
        hop_s = float(value)
    except ValueError:
        hop_s = 0.0
    if not 0.001 <= hop_s < math.inf:
        raise click.BadParameter(f"seconds or auto is expected, not {value!r}", ctx, param)
    return hop_s


@import_.command("film")
@click.argument("films", type=PATH, nargs=-1, required=True, metavar="FILM...")
@click.option(
    "--window",
    required=True,
    type=click.FloatRange(0.001),
    metavar="SECONDS",
    help="Length of a window; best close to the clips the model was trained on.",
)
@click.option(
    "--hop",
    default="auto",
    show_default=True,
    callback=_hop,
    metavar="SECONDS|auto",
    help="Time between the starts of two windows. auto: a quarter of the window, at least 5 s.",
)
@out_option
@force_option
def import_film_(films: tuple[Path, ...], window: float, hop: float | None, out: Path, force: bool) -> None:
    """Import whole films, each cut into windows of equal length that may overlap.

    Makes one clip per window; its id is the film's file name without suffix, and a number. The last window of
    a film is moved back to end with it; a film shorter than a window is one clip. `obygaze extract` decodes
    overlapping windows in one pass.

    \b
    Examples:
      obygaze manifest import film film.mkv --window 46 --out windows.csv
      obygaze manifest import film films/*.mkv --window 20 --hop 5 \\
          --out windows.csv
    """
    from obygaze_features.manifest import Film, import_film
    from obygaze_features.video import probe

    refuse_to_replace(out, force)
    found = [(path, probe(path)) for path in films]
    read = [Film(path, video.start_s + video.duration_s, video.damage) for path, video in found]
    write(import_film(read, _folder_of(out), window, hop), out)


def _folder_of(path: Path) -> Path:
    return path.absolute().parent


def refuse_to_replace(out: Path, force: bool, codebook: "Codebook | None" = None) -> None:
    """Refuse to replace a manifest before any work is done."""
    from obygaze_features.manifest import BUILTIN, ManifestError, codebook_file, holds_codebook

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
    if not _folder_of(out).is_dir():
        raise ManifestError(f"{_folder_of(out)}: no such folder to write {out.name} in")


def write(imported: "Imported", out: Path) -> None:
    """Write a manifest; print its size on stdout, and what was left out on stderr."""
    from obygaze_features.manifest import write_manifest

    written = write_manifest(imported.manifest, out)
    for notice in imported.notices:
        click.echo(notice, err=True)
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
