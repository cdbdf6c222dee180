"""Import a folder of videos, whole or cut into spans, or of still images."""

import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path, PurePosixPath

from obygaze_features.errors import ManifestError
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import (
    Clip,
    Collected,
    absolute,
    clip_of,
    split_concepts,
    stored_path,
    time_code,
)
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.importers.imported import Imported, counted
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.text_tables import (
    CODEBOOK_COLUMN,
    FIELDS,
    Problems,
    Row,
    delimiter_of,
    read_table,
)
from obygaze_features.text import composed

VIDEO_SUFFIXES: frozenset[str] = frozenset(
    {
        ".3gp",
        ".avi",
        ".flv",
        ".m2ts",
        ".m4v",
        ".mkv",
        ".mov",
        ".mp4",
        ".mpeg",
        ".mpg",
        ".mts",
        ".ogv",
        ".ts",
        ".vob",
        ".webm",
        ".wmv",
    }
)
IMAGE_SUFFIXES: frozenset[str] = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


def import_folder(
    source: Path | str,
    root: Path | str,
    spans: Path | str | None = None,
    codebook: Codebook | None = None,
    rate: Fraction | None = None,
) -> Imported:
    """Make a clip of every video below a folder, or of every span that a CSV names.

    Parameters
    ----------
    source
        The folder, searched recursively; hidden files and linked folders are passed over.
    root
        Folder that the manifest will lie in.
    spans
        CSV with columns video (relative to `source`, or absolute), start_s, end_s, and optionally clip_id,
        movie, level, concepts, annotator and extras. Times are seconds, hh:mm:ss.ms or hh:mm:ss:ff; cells
        may be separated by semicolons, then with decimal commas, as Excel writes them. Only what it names
        becomes a clip; a named file that is missing is kept, for the extraction to report.
    codebook
        Of levels and concepts, which may be spelled by titles and synonyms; by default `obygaze12`.
    rate
        Frames per second of times that end in frames (hh:mm:ss:ff).

    Notes
    -----
    A clip's id is its path without suffix, separators turned into "-", and its span where it has one. The
    movie is the first sub-folder, or the file's name for videos at the top. Both are in Unicode's form NFC,
    however a disk stores accents; a video is found however a table does.

    Raises
    ------
    ManifestError
        If two files would have the same id, a name cannot be one, a row is broken, or there is no video.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import import_folder
    >>> imported = import_folder("videos", root="")
    >>> [clip.video for clip in imported.manifest]
    ['videos/clip.mp4']
    """
    source, root = local_path(source), local_path(root)
    codebook = codebook or default_codebook()
    videos, notices = list_files(source, VIDEO_SUFFIXES, "video")
    if spans is None:
        clips = whole_files(source, videos, root, _movie)
    else:
        clips, found_notices = _spans(source, local_path(spans), videos, root, codebook, rate=rate)
        notices += found_notices
    return Imported(Manifest(tuple(clips), root, codebook), tuple(notices))


def import_images(source: Path, root: Path) -> Imported:
    """Make a clip of one frame of every image below a folder.

    Parameters
    ----------
    source
        The folder, searched recursively; hidden files and linked folders are passed over.
    root
        Folder that the manifest will lie in.

    Notes
    -----
    A clip's id is its path without suffix, separators turned into "-". The movie is the first sub-folder, or
    the folder itself for images at the top: images do not come from films of their own.

    Raises
    ------
    ManifestError
        If two files would have the same id, a name cannot be one, or there is no image.
    """
    images, notices = list_files(source, IMAGE_SUFFIXES, "image")

    def movie(image: PurePosixPath) -> str:
        return image.parts[0] if len(image.parts) > 1 else absolute(source).name or "images"

    return Imported(Manifest(tuple(whole_files(source, images, root, movie)), root), tuple(notices))


def list_files(source: Path, suffixes: frozenset[str], kind: str) -> tuple[list[PurePosixPath], list[str]]:
    """List the files below a folder that have one of these suffixes, and say what was left out.

    Parameters
    ----------
    kind
        What they are, for messages: `video` or `image`.

    Returns
    -------
    list of PurePosixPath
        Paths relative to the folder, sorted.
    list of str
        Notices.

    Raises
    ------
    ManifestError
        If there is no such folder.
    """
    if not source.is_dir():
        problem = "is a file" if source.exists() else "does not exist"
        hint = f"; a table of spans is given with --spans {source}" if source.suffix.lower() == ".csv" else ""
        raise ManifestError(f"{source}: {problem}, and a folder of {kind}s was expected{hint}")
    wanted: list[PurePosixPath] = []
    hidden = linked = 0
    others: Counter[str] = Counter()

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(source, onerror=fail):
        links = [name for name in folders if not name.startswith(".") and Path(folder, name).is_symlink()]
        hidden += sum(name.startswith(".") for name in (*folders, *files))
        linked += len(links)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)
        for name in files:
            if name.startswith("."):
                continue
            path = Path(folder, name)
            if path.suffix.lower() in suffixes:
                wanted.append(PurePosixPath(path.relative_to(source).as_posix()))
            else:
                others[path.suffix.lower()] += 1
    notices = []
    if others:
        kinds = ", ".join(
            f"{number} {suffix or 'without suffix'}" for suffix, number in sorted(others.items())
        )
        total = counted(others.total(), "file that is", "files that are")
        notices.append(f"left out {total} no {kind} by name: {kinds}")
    if hidden:
        notices.append(f"left out {counted(hidden, 'hidden file or folder', 'hidden files or folders')}")
    if linked:
        notices.append(f"did not follow {counted(linked, 'linked folder')}")
    return sorted(wanted), notices


def whole_files(
    source: Path, files: Sequence[PurePosixPath], root: Path, movie: Callable[[PurePosixPath], str]
) -> list[Clip]:
    """Make a clip of every file, its id the path without suffix, its movie as the function names it.

    Raises
    ------
    ManifestError
        If there is no file, two files would have the same id, or a name cannot be one.
    """
    if not files:
        raise ManifestError(f"{source}: no file below this folder has a suffix that is known")
    file_of: dict[str, PurePosixPath] = {}
    clips = []
    for file in files:
        name = _name(file)
        if name in file_of:
            raise ManifestError(
                f"{source / file_of[name]} and {source / file}: both would be clip {name!r}; rename one"
            )
        file_of[name] = file
        try:
            clips.append(Clip(name, composed(movie(file)), stored_path(source / file, root)))
        except ManifestError as error:
            raise ManifestError(
                f"file {os.fspath(source / file)!r}: {error}; rename it", error.column
            ) from None
    return clips


def _spans(
    source: Path,
    spans: Path,
    videos: Sequence[PurePosixPath],
    root: Path,
    codebook: Codebook,
    *,
    rate: Fraction | None,
) -> tuple[list[Clip], list[str]]:
    delimiter = delimiter_of(spans)
    table = read_table(spans, needed=("video", "start_s", "end_s"), delimiter=delimiter)
    problems = Problems(spans)
    collected = Collected(problems)
    named: set[Path] = set()
    spelled = {composed(str(video)): str(video) for video in videos} | {
        str(video): str(video) for video in videos
    }
    respelled: Counter[tuple[str, str]] = Counter()
    for written in table.rows:
        row = _timed(written, problems, rate, decimal_comma=delimiter != ",")
        if row is None:
            continue
        video = row.cells["video"]
        on_disk = spelled.get(video) or spelled.get(composed(video), video)
        row = Row(row.line, {**row.cells, "video": on_disk})
        cell = row.cells.get(CODEBOOK_COLUMN, "")
        if cell not in {"", codebook.name}:
            problems.add(
                row.line,
                f"{cell!r}, and the import uses {codebook.name!r}: name the codebook with --codebook",
                CODEBOOK_COLUMN,
            )
        elif row.cells["video"]:
            named.add(absolute(source / row.cells["video"]))
            clip = clip_of(_completed(row, source, root), problems, codebook, spelled=True)
            collected.add(clip, row.line)
            for scale in codebook.scales:
                problems.attempt(row.line, scale.name, scale.level_of, row.cells.get(scale.name, ""))
            respelled.update(_respelled(row, clip, codebook))
        else:
            problems.add(row.line, "is empty", "video")
    problems.refuse()
    if not collected.clips:
        raise ManifestError(f"{spans}: names no clip; a row for each was expected below the header")
    notices = _almost_named(table.columns)
    if respelled:
        read = (f"{text!r} as {name} ({counted(n, 'row')})" for (text, name), n in sorted(respelled.items()))
        notices.append(f"read {', '.join(read)}")
    missing = [path for path in sorted(named) if not path.is_file()]
    if missing:
        shown = ", ".join(f"{path}{_nearest(path, videos)}" for path in missing[:3])
        shown += ", ..." if len(missing) > 3 else ""
        notices.append(
            f"{len(missing):,} of {counted(len(named), 'named video')} "
            f"{'is' if len(missing) == 1 else 'are'} missing on disk: {shown}"
        )
    unnamed = sum(absolute(source / video) not in named for video in videos)
    if unnamed:
        notices.append(f"left out {counted(unnamed, 'video')} that {spans.name} does not name")
    return collected.clips, notices


def _almost_named(columns: Sequence[str]) -> list[str]:
    """Say which columns look like one that is read, and is not there: their cells give no label."""
    lacking = [name for name in FIELDS if name not in columns]
    others = [name for name in columns if name not in FIELDS]
    near = {name: get_close_matches(name.strip().casefold(), lacking, n=1) for name in others}
    return [
        f"column {name!r} is not read: did you mean {found[0]!r}? Rename it in the table"
        for name, found in near.items()
        if found
    ]


def _nearest(path: Path, videos: Sequence[PurePosixPath]) -> str:
    """Propose the video whose letters and digits are the same: clips' names differ by one."""

    def bare(name: str) -> str:
        return re.sub(r"[\W_]", "", name.casefold())

    near = next((video for video in videos if bare(video.stem) == bare(path.stem)), None)
    return f" (did you mean '{near}'?)" if near else ""


def _respelled(row: Row, clip: Clip | None, codebook: Codebook) -> list[tuple[str, str]]:
    """List the labels of a row that are spelled otherwise than the codebook names them."""
    if clip is None:
        return []
    read = [(row.cells.get("level", ""), clip.level or "")]
    read += [(text, codebook.concept_spelled(text)) for text in split_concepts(row.cells.get("concepts", ""))]
    return [(text, name) for text, name in read if text != name]


def _timed(row: Row, problems: Problems, rate: Fraction | None, *, decimal_comma: bool) -> Row | None:
    """Write the times of a row as seconds; None if the row is empty or one cannot be read, which is noted."""
    if row.is_empty:  # spreadsheets leave such rows at the end
        return None
    before = len(problems.messages)
    cells = dict(row.cells)
    for column in ("start_s", "end_s"):
        text = cells[column].strip()
        text = text.replace(",", ".") if decimal_comma else text
        value = problems.attempt(row.line, column, time_code, text, rate)
        cells[column] = "" if value is None else repr(value)
    return Row(row.line, cells) if len(problems.messages) == before else None


def _completed(row: Row, source: Path, root: Path) -> Row:
    """Fill in the clip's id and movie where the row has none, and where the video lies from the manifest."""
    cells = dict(row.cells)
    video = PurePosixPath(posixpath.normpath(cells["video"].replace("\\", "/")))
    inside = PurePosixPath(video.name) if video.is_absolute() or ".." in video.parts else video
    name = _name(inside)
    if cells["start_s"] and cells["end_s"]:
        name = f"{name}-{cells['start_s']}-{cells['end_s']}"
    cells["clip_id"] = composed(cells.get("clip_id") or name)
    cells["movie"] = composed(cells.get("movie") or _movie(inside))
    cells["video"] = stored_path(source / cells["video"], root)
    return Row(row.line, cells)


def _name(video: PurePosixPath) -> str:
    return composed("-".join((*video.parts[:-1], video.stem)))


def _movie(video: PurePosixPath) -> str:
    return video.parts[0] if len(video.parts) > 1 else video.stem
