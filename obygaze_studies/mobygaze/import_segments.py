"""Import the segments of MObyGaze, which two annotators delimited freely in 20 films.

The file gives segments in frames. `start_frame` and `end_frame` are both part of the segment, and the next
segment begins one frame later, so a segment lasts from `start_frame / framerate` to
`(end_frame + 1) / framerate` seconds. The columns `start_clip` and `end_clip` look like seconds but number
windows of 16 frames (`start_frame // 16`, `(end_frame - 1) // 16`): as seconds they would make a film of 105
minutes last 157.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.text import number_of

FILE_NAME = "mobygaze_dataframe.csv"
"""Name of the file of segments."""

MOVIE_LIST = "mobygaze_movielist.csv"
"""Name of the file of the films' years and genres, which is read if it is in the folder of the segments."""

SUBTITLE = "subtitle"
"""Column of the subtitles, which not every version of the file has."""

Records = Literal["full", "speech", "vision", "EN"]
RECORDS: Mapping[Records, Callable[[manifests.Clip, manifests.Codebook, str], bool]] = {
    "full": lambda *_: True,
    "speech": lambda _clip, _codebook, subtitle: bool(subtitle),
    "vision": lambda clip, codebook, _subtitle: not set(codebook.visual_concepts).isdisjoint(clip.concepts),
    "EN": lambda clip, *_: clip.level == "EN",
}
"""The record sets mobygaze-full, -speech, -vision and -EN of the data set's metadata.json (Croissant): all
segments, those with subtitles, those marked with a visual concept, and those of the level EN."""

WINDOWS_1252 = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}
"""Control character -> the letter that it stands for.

Some subtitles were written in Windows-1252 and read as Latin-1, by which their quotation marks became control
characters (C1). Codes that Windows-1252 does not use are kept.
"""

COLUMNS = (
    "clip_index", "annotator", "label", "concepts", "comment", "start_frame", "end_frame", "imdb_key",
    "movie_title", "framerate",
)  # fmt: skip
EXTRA_COLUMNS = ("movie_title", "framerate", "start_frame", "end_frame", "comment")
"""Columns that clips keep as extras."""


@checked
def import_mobygaze(
    source: Path, root: Path, videos: Path | None = None, records: Records = "full"
) -> manifests.Imported:
    """Read MObyGaze's segments as clips named `<imdb id>-<annotator>-<number>`, and their subtitles.

    If the list of films is in the folder of the segments, each clip has the year and genres of its film in
    the columns `year` and `genres`.

    Parameters
    ----------
    source
        The CSV, or its folder.
    root
        Folder that the manifest will lie in.
    videos
        Folder with one file per film, named by its IMDb id; without it no video is known.
    records
        Which segments to keep: see `RECORDS`.

    Raises
    ------
    ManifestError
        Naming file, line and column, if a row is broken; or if two files could be the same film.
    """
    path = manifests.file_in(source, (FILE_NAME,))
    table = manifests.read_table(path, needed=COLUMNS, named=False)
    films = manifests.FilmFiles(videos, root)
    facts = _read_years_and_genres(path.with_name(MOVIE_LIST))
    codebook = manifests.builtin_codebook("mobygaze")
    collected = manifests.Collected(table.problems, "clip_index")
    n_repeating = 0  # rows that name a concept twice
    n_misread = 0  # rows whose subtitle was in a wrong encoding
    subtitles: dict[str, str] = {}  # clip id -> subtitle
    for row in table.checked():
        clip = _clip(row, table.problems, films, facts, codebook)
        collected.add(clip, row.line)
        if clip is None:
            continue
        subtitle_as_written = row.cells.get(SUBTITLE, "").strip()
        subtitle = subtitle_as_written.translate(WINDOWS_1252)
        subtitles[clip.clip_id] = subtitle
        if subtitle != subtitle_as_written:
            n_misread += 1
        if len(manifests.text_list(row.cells["concepts"])) > len(clip.concepts):
            n_repeating += 1

    is_in_record_set = RECORDS[records]
    clips = [clip for clip in collected.clips if is_in_record_set(clip, codebook, subtitles[clip.clip_id])]

    notices = []
    if records != "full":
        segments = manifests.counted(len(collected.clips), "segment")
        notices.append(f"record set mobygaze-{records}: {len(clips):,} of {segments}")
    if facts:
        notices += _notice_on_unlisted_films(clips, facts)
    notices += _notice_on_unread_columns(table.columns)
    notices += _notices_on_cells(n_repeating, n_misread)
    if videos:
        notices += _missing_videos(clips, videos)
    texts = [(clip.clip_id, subtitles[clip.clip_id]) for clip in clips if subtitles[clip.clip_id]]
    return manifests.Imported(manifests.Manifest(tuple(clips), root, codebook), tuple(notices), tuple(texts))


def _notice_on_unlisted_films(
    clips: Sequence[manifests.Clip], facts: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Write a notice that names the films of clips that the list of films lacks; nothing if it has all."""
    unlisted = sorted({clip.movie for clip in clips} - facts.keys())
    if not unlisted:
        return []
    return [f"{MOVIE_LIST} has no year and genre of {', '.join(unlisted)}"]


def _notice_on_unread_columns(columns: Sequence[str]) -> list[str]:
    """Write a notice that names the columns of the segments that are not read; nothing if all are."""
    unread = [column for column in columns if column and column not in (*COLUMNS, SUBTITLE)]
    if not unread:
        return []
    return [f"left out {manifests.counted(len(unread), 'column')}: {', '.join(unread)}"]


def _notices_on_cells(n_repeating: int, n_misread: int) -> list[str]:
    """Write notices on cells that are not read as they are written.

    Parameters
    ----------
    n_repeating
        Number of segments that name a concept more than once.
    n_misread
        Number of segments whose subtitles have letters of Windows-1252 as control characters.
    """
    notices = []
    if n_repeating:
        segments = manifests.counted(n_repeating, "segment names", "segments name")
        notices.append(f"{segments} a concept more than once: counted once")
    if n_misread:
        segments = manifests.counted(n_misread, "segment")
        letters = "have letters of Windows-1252 as control characters: read as those"
        notices.append(f"subtitles of {segments} {letters}")
    return notices


def _missing_videos(clips: Sequence[manifests.Clip], videos: Path) -> list[str]:
    """Write a notice that names the films without a video in a folder; nothing if all have one."""
    missing = sorted({clip.movie for clip in clips if not clip.video})
    if not missing:
        return []
    return [f"no video in {videos} for {manifests.counted(len(missing), 'film')}: {', '.join(missing)}"]


def _read_years_and_genres(path: Path) -> dict[str, dict[str, str]]:
    """Read the list of films: IMDb id -> year and genres; empty if there is no such file.

    Raises
    ------
    ManifestError
        Naming the line: a year is not a whole number.
    """
    if not path.is_file():
        return {}
    facts = {}
    table = manifests.read_table(path, needed=("imdb_key", "release_date", "genre"))
    for row in table.checked():
        date = row.cells["release_date"]
        # If the date is no whole number, `attempt` notes the problem and returns None. After the last row,
        # `checked` raises an error with all problems, so that no such year is returned.
        year = table.problems.attempt(row.line, "release_date", manifests.whole_number, date)
        genres = [genre.strip().lower() for genre in row.cells["genre"].split(",")]
        filled_genres = [genre for genre in genres if genre]
        facts[row.cells["imdb_key"]] = {"year": str(year), "genres": ";".join(filled_genres)}
    return facts


def _clip(
    row: manifests.Row,
    problems: manifests.Problems,
    films: manifests.FilmFiles,
    facts: dict[str, dict[str, str]],
    codebook: manifests.Codebook,
) -> manifests.Clip | None:
    """Make a clip of a row of the segments; None if the row is broken, with its problems noted.

    Parameters
    ----------
    row
        The row.
    problems
        Collects what is wrong in the rows, so that one error names all of it.
    films
        Finds the video of a film.
    facts
        IMDb id -> year and genres; empty if there is no list of films.
    codebook
        The codebook of MObyGaze.
    """
    n_problems_before = len(problems.messages)
    cells = row.cells
    line = row.line

    def read(column: str, reader: Callable[[str], Any]) -> Any:
        """Read a cell; note the problem if the reader refuses it."""
        return problems.attempt(line, column, reader, cells[column])

    level = read("label", codebook.level_spelled)
    concepts = read("concepts", lambda cell: manifests.concept_list(cell, codebook))
    start_frame = read("start_frame", manifests.whole_number)
    end_frame = read("end_frame", manifests.whole_number)
    rate = read("framerate", _rate)
    number = read("clip_index", lambda cell: manifests.whole_number(cell.removeprefix("id_")))
    if not cells["annotator"]:
        problems.add(line, "is empty", "annotator")
    is_broken = len(problems.messages) > n_problems_before
    if is_broken:
        return None
    if end_frame < start_frame:
        problems.add(line, f"{end_frame} is before start_frame {start_frame}", "end_frame")
        return None
    extras = {column: cells[column] for column in EXTRA_COLUMNS}
    extras["comment"] = _joined_remarks(cells["comment"])
    if facts:
        extras |= facts.get(cells["imdb_key"], {"year": "", "genres": ""})
    # Without a column, since what a clip refuses may be in any of them: the error of the clip names it.
    return problems.attempt(
        line,
        "",
        manifests.Clip,
        clip_id=f"{cells['imdb_key']}-{cells['annotator']}-{number:04d}",
        movie=cells["imdb_key"],
        video=films.stored_path_of_movie(cells["imdb_key"]),
        start_s=start_frame / rate,
        end_s=(end_frame + 1) / rate,  # end_frame is the last frame of the segment
        level=level,
        concepts=concepts or (),
        annotator=cells["annotator"],
        extras=extras,
    )


def _joined_remarks(cell: str) -> str:
    """Write a cell with a list of remarks as the remarks joined by semicolons; keep any other text."""
    try:
        remarks = manifests.text_list(cell)
    except ManifestError:
        return cell
    return "; ".join(remark.strip() for remark in remarks if remark.strip())


def _rate(cell: str) -> float:
    """Read a frame rate; raise a ManifestError if it is not a positive number."""
    rate = number_of(cell)
    if not 0 < rate < math.inf:
        raise ManifestError(f"{cell!r} is not a positive number of frames a second")
    return rate
