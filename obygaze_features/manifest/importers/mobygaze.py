"""The segments of MObyGaze: what each of two annotators marked, freely delimited, in 20 films.

Segments are in frames. `start_frame` and `end_frame` are both inside the segment (the next one begins a frame
later), so a segment lasts from `start_frame / framerate` to `(end_frame + 1) / framerate` seconds. The
columns `start_clip` and `end_clip` look like seconds and are none: they number windows of 16 frames
(`start_frame // 16`, `(end_frame - 1) // 16`). Film durations prove it: read as seconds, a film of 105
minutes would last 157.
"""

import math
from pathlib import Path

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook, builtin_codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.paths import stored_path
from obygaze_features.manifest.rows import Collected
from obygaze_features.manifest.table import Problems, Row, read_table

from .imported import Imported, concept_list, counted, file_in, text_list, whole_number

FILE_NAME = "mobygaze_dataframe.csv"
COLUMNS = (
    "clip_index", "annotator", "label", "concepts", "comment", "start_frame", "end_frame", "imdb_key",
    "movie_title", "framerate",
)  # fmt: skip
EXTRAS = ("movie_title", "framerate", "start_frame", "end_frame", "comment")


def import_mobygaze(source: Path, root: Path, videos: Path | None = None) -> Imported:
    """Read MObyGaze's segments, one clip each: `<imdb id>-<annotator>-<number>`.

    Parameters
    ----------
    source
        The CSV, or its folder.
    root
        Folder that the manifest will lie in.
    videos
        Folder with one file per film, named by its IMDb id; without it no video is known.

    Raises
    ------
    ManifestError
        Naming file, line and column, if a row is broken; or if two files could be the same film.
    """
    path = file_in(source, (FILE_NAME,))
    table = read_table(path, needed=COLUMNS, delimiter=";", named=False)
    films = _films(videos, root) if videos else {}
    codebook = builtin_codebook("mobygaze")
    problems = Problems(path)
    collected = Collected(problems, "clip_index")
    repeated = 0
    for row in table.rows:
        clip = _clip(row, problems, films, codebook)
        collected.add(clip, row.line)
        repeated += clip is not None and len(text_list(row.cells["concepts"])) > len(clip.concepts)
    problems.refuse()
    clips = collected.clips
    notices = []
    unread = [column for column in table.columns if column and column not in COLUMNS]
    if unread:
        notices.append(f"left out {counted(len(unread), 'column')}: {', '.join(unread)}")
    if repeated:
        notices.append(
            f"{counted(repeated, 'segment names', 'segments name')} a concept more than once: counted once"
        )
    if videos:
        missing = sorted({clip.movie for clip in clips if not clip.video})
        if missing:
            notices.append(f"no video in {videos} for {counted(len(missing), 'film')}: {', '.join(missing)}")
    return Imported(Manifest(tuple(clips), root, codebook), tuple(notices))


def _clip(row: Row, problems: Problems, films: dict[str, str], codebook: Codebook) -> Clip | None:
    before = len(problems.found)
    cells, line = row.cells, row.line
    level = problems.attempt(line, "label", codebook.level_spelled, cells["label"])
    concepts = problems.attempt(line, "concepts", concept_list, cells["concepts"], codebook)
    start = problems.attempt(line, "start_frame", whole_number, cells["start_frame"])
    end = problems.attempt(line, "end_frame", whole_number, cells["end_frame"])
    rate = problems.attempt(line, "framerate", _rate, cells["framerate"])
    number = problems.attempt(line, "clip_index", whole_number, cells["clip_index"].removeprefix("id_"))
    if not cells["annotator"]:
        problems.add(line, "is empty", "annotator")
    if start is None or end is None or rate is None or len(problems.found) > before:
        return None
    if end < start:
        problems.add(line, f"{end} is before start_frame {start}", "end_frame")
        return None
    return problems.attempt(
        line,
        "",
        Clip,
        clip_id=f"{cells['imdb_key']}-{cells['annotator']}-{number:04d}",
        movie=cells["imdb_key"],
        video=films.get(cells["imdb_key"], ""),
        start_s=start / rate,
        end_s=(end + 1) / rate,
        level=level,
        concepts=concepts or (),
        annotator=cells["annotator"],
        extras={**{column: cells[column] for column in EXTRAS}, "comment": _comment(cells["comment"])},
    )


def _comment(cell: str) -> str:
    """Join a list of remarks; anything else is kept as it is."""
    try:
        remarks = text_list(cell)
    except ManifestError:
        return cell
    return "; ".join(remark.strip() for remark in remarks if remark.strip())


def _rate(cell: str) -> float:
    try:
        rate = float(cell)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise ManifestError(f"{cell!r} is not a positive number of frames a second")
    return rate


def _films(folder: Path, root: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise ManifestError(f"{folder}: no such folder of videos")
    films: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        if file.is_file() and not file.name.startswith("."):
            if file.stem in films:
                raise ManifestError(
                    f"{films[file.stem]} and {file}: both could be the film {file.stem!r}; keep one"
                )
            films[file.stem] = file
    return {stem: stored_path(file, root) for stem, file in films.items()}
