"""Import the segments of MObyGaze, which two annotators delimited freely in 20 films.

Segments are in frames. `start_frame` and `end_frame` are both inside the segment (the next one begins a frame
later), so a segment lasts from `start_frame / framerate` to `(end_frame + 1) / framerate` seconds. The
columns `start_clip` and `end_clip` look like seconds and are none: they number windows of 16 frames
(`start_frame // 16`, `(end_frame - 1) // 16`). Film durations prove it: read as seconds, a film of 105
minutes would last 157.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.text import number_of

FILE_NAME = "mobygaze_dataframe.csv"
MOVIE_LIST = "mobygaze_movielist.csv"
"""The films' years and genres, read if it lies beside the segments."""

SUBTITLE = "subtitle"
"""Column that a file may lack."""

Records = Literal["full", "speech", "vision", "EN"]
RECORDS: Mapping[Records, Callable[[manifests.Clip, manifests.Codebook, str], bool]] = {
    "full": lambda *_: True,
    "speech": lambda _clip, _codebook, subtitle: bool(subtitle),
    "vision": lambda clip, codebook, _subtitle: not set(codebook.visual_concepts).isdisjoint(clip.concepts),
    "EN": lambda clip, *_: clip.level == "EN",
}
"""The record sets mobygaze-full, -speech, -vision and -EN of the data set's metadata.json (Croissant): all
segments, those with subtitles, those marked with a visual concept, and those of the level EN."""

# Some subtitles were Windows-1252 and read as Latin-1: their quotes have become control characters (C1).
WINDOWS_1252 = {
    code: letter for code in range(0x80, 0xA0) if (letter := bytes([code]).decode("cp1252", "ignore"))
}

COLUMNS = (
    "clip_index", "annotator", "label", "concepts", "comment", "start_frame", "end_frame", "imdb_key",
    "movie_title", "framerate",
)  # fmt: skip
EXTRAS = ("movie_title", "framerate", "start_frame", "end_frame", "comment")


@checked
def import_mobygaze(
    source: Path, root: Path, videos: Path | None = None, records: Records = "full"
) -> manifests.Imported:
    """Read MObyGaze's segments, one clip each, `<imdb id>-<annotator>-<number>`; and their subtitles.

    Each clip has the year and the genres of its film in the columns `year` and `genres`, if the list of films
    lies beside the segments.

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
    facts = _facts(path.with_name(MOVIE_LIST))
    codebook = manifests.builtin_codebook("mobygaze")
    collected = manifests.Collected(table.problems, "clip_index")
    repeated = misread = 0
    subtitles: dict[str, str] = {}
    for row in table.checked():
        clip = _clip(row, table.problems, films, facts, codebook)
        collected.add(clip, row.line)
        if clip is not None:
            repeated += len(manifests.text_list(row.cells["concepts"])) > len(clip.concepts)
            subtitle = row.cells.get(SUBTITLE, "").strip()
            subtitles[clip.clip_id] = subtitle.translate(WINDOWS_1252)
            misread += subtitles[clip.clip_id] != subtitle
    is_kept = RECORDS[records]
    clips = [clip for clip in collected.clips if is_kept(clip, codebook, subtitles[clip.clip_id])]
    notices = []
    if records != "full":
        segments = manifests.counted(len(collected.clips), "segment")
        notices.append(f"record set mobygaze-{records}: {len(clips):,} of {segments}")
    if facts and (unknown := sorted({clip.movie for clip in clips} - facts.keys())):
        notices.append(f"{MOVIE_LIST} has no year and genre of {', '.join(unknown)}")
    counted = manifests.counted
    unread = [column for column in table.columns if column and column not in (*COLUMNS, SUBTITLE)]
    if unread:
        notices.append(f"left out {counted(len(unread), 'column')}: {', '.join(unread)}")
    if repeated:
        segments = counted(repeated, "segment names", "segments name")
        notices.append(f"{segments} a concept more than once: counted once")
    if misread:
        letters = "have letters of Windows-1252 as control characters: read as those"
        notices.append(f"subtitles of {counted(misread, 'segment')} {letters}")
    if videos and (missing := sorted({clip.movie for clip in clips if not clip.video})):
        notices.append(f"no video in {videos} for {counted(len(missing), 'film')}: {', '.join(missing)}")
    texts = tuple((clip.clip_id, text) for clip in clips if (text := subtitles[clip.clip_id]))
    return manifests.Imported(manifests.Manifest(tuple(clips), root, codebook), tuple(notices), texts)


def _facts(path: Path) -> dict[str, dict[str, str]]:
    """Read the year and the genres of each film; empty if there is no list.

    Raises
    ------
    ManifestError
        A year is none; names the line.
    """
    if not path.is_file():
        return {}
    facts = {}
    table = manifests.read_table(path, needed=("imdb_key", "release_date", "genre"))
    for row in table.checked():
        date = row.cells["release_date"]
        year = table.problems.attempt(row.line, "release_date", manifests.whole_number, date)
        genres = (genre.strip().lower() for genre in row.cells["genre"].split(","))
        facts[row.cells["imdb_key"]] = {"year": str(year), "genres": ";".join(filter(None, genres))}
    return facts


def _clip(
    row: manifests.Row,
    problems: manifests.Problems,
    films: manifests.FilmFiles,
    facts: dict[str, dict[str, str]],
    codebook: manifests.Codebook,
) -> manifests.Clip | None:
    before = len(problems.messages)
    cells = row.cells
    line = row.line
    readers: dict[str, Callable[[str], Any]] = {
        "label": codebook.level_spelled,
        "concepts": lambda cell: manifests.concept_list(cell, codebook),
        "start_frame": manifests.whole_number,
        "end_frame": manifests.whole_number,
        "framerate": _rate,
        "clip_index": lambda cell: manifests.whole_number(cell.removeprefix("id_")),
    }
    values: list[Any] = [problems.attempt(line, name, read, cells[name]) for name, read in readers.items()]
    level, concepts, start, end, rate, number = values
    if not cells["annotator"]:
        problems.add(line, "is empty", "annotator")
    if len(problems.messages) == before and end < start:
        problems.add(line, f"{end} is before start_frame {start}", "end_frame")
    if len(problems.messages) > before:
        return None
    return problems.attempt(
        line,
        "",
        manifests.Clip,
        clip_id=f"{cells['imdb_key']}-{cells['annotator']}-{number:04d}",
        movie=cells["imdb_key"],
        video=films.film_of(cells["imdb_key"]),
        start_s=start / rate,
        end_s=(end + 1) / rate,
        level=level,
        concepts=concepts or (),
        annotator=cells["annotator"],
        extras={
            **{column: cells[column] for column in EXTRAS},
            "comment": _comment(cells["comment"]),
            **facts.get(cells["imdb_key"], dict.fromkeys(("year", "genres") if facts else (), "")),
        },
    )


def _comment(cell: str) -> str:
    """Join a list of remarks; anything else is kept as it is."""
    try:
        remarks = manifests.text_list(cell)
    except ManifestError:
        return cell
    return "; ".join(remark.strip() for remark in remarks if remark.strip())


def _rate(cell: str) -> float:
    rate = number_of(cell)
    if not 0 < rate < math.inf:
        raise ManifestError(f"{cell!r} is not a positive number of frames a second")
    return rate
