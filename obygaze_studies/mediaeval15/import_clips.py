"""Import the clips of MediaEval 2015 Affective Impact of Movies: 10,900 of 199 films (Sjöberg et al. 2015).

The data are distributed against a signed form, so this project defines its own layout: a table `clips.csv`
that users make from the organisers' files. It assumes that clips are named by their video files, as in
LIRIS-ACCEDE (`ACCEDE00000.mp4`), and that the split is by film.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_studies.audit_common.inputs import read_text

FILE_NAME = "clips.csv"
"""Name of the table of clips."""

FILM_LISTS: Mapping[str, str] = {"dev": "dev.txt", "test": "test.txt"}
"""Side -> the list of its films, one per line, which is read if the table has no column split."""

SIDES = tuple(FILM_LISTS)
"""The sides of the split: dev to train on, test to predict."""

EXTRA_COLUMNS = ("split", "valence", "arousal", "violence")
"""Columns of the manifest, in order; empty where the file has no value."""

VIOLENCE: Mapping[str, str] = {"0": "nonviolent", "1": "violent"}
"""Value in the column violence -> level of the clip."""

CLIP_NAME = re.compile(r"ACCEDE\d{5}\.mp4")
"""A clip's name in LIRIS-ACCEDE."""

PUBLISHED_COUNTS = {"dev": (6144, 100), "test": (4756, 99)}
"""Side -> its numbers of clips and of films in the published corpus (section 3)."""


@checked
def import_mediaeval15(source: Path, root: Path, videos: Path | None = None) -> manifests.Imported:
    """Read the clips of the task; each is a whole video file, and its id is the file's name.

    Parameters
    ----------
    source
        clips.csv, or its folder. Its columns are clip and movie; split (dev, test), unless the folder has the
        lists of films dev.txt and test.txt; and valence, arousal and violence if they are known. These are
        kept unchanged, and violence also gives the level. Other columns are left out.
    root
        Folder that the manifest will lie in.
    videos
        Folder of the video files; without it videos are bare file names, beside the manifest.

    Raises
    ------
    ManifestError
        Naming file, line and column: a row is broken, or a film is on both sides or on neither.
    """
    path = manifests.file_in(source, (FILE_NAME,))
    table = manifests.read_table(path, needed=("clip", "movie"))
    listed_sides = {} if "split" in table.columns else _read_film_lists(path)

    # Problems of rows are collected, so that one error names them all.
    collected = manifests.Collected(table.problems, "clip")
    side_of_movie: dict[str, str] = {}  # by the movie's first clip
    for row in table.checked():
        # The empty text is for the column of a problem, which the error itself names.
        clip = table.problems.attempt(row.line, "", _clip, row.cells, listed_sides, root, videos)
        collected.add(clip, row.line)
        if clip is None:  # the row has a problem
            continue
        side = clip.extras["split"]
        first_side = side_of_movie.setdefault(clip.movie, side)
        if side != first_side:
            table.problems.add(row.line, f"movie {clip.movie!r} has clips in dev and in test", "split")

    notices = _notices_on_clips(collected.clips)
    if videos:
        notices.append(manifests.videos_found(collected.clips, root, videos))
    notices += _notices_on_columns(table.columns)
    notices += _notices_on_movies(listed_sides, side_of_movie)
    codebook = manifests.builtin_codebook("mediaeval15")
    return manifests.Imported(
        manifests.Manifest(tuple(collected.clips), root, codebook),
        tuple(notices),
    )


def _notices_on_columns(columns: Iterable[str]) -> list[str]:
    """Write a notice of the table's columns that are left out of the manifest, if there are any.

    Columns that are not left out are clip, movie, split, valence, arousal and violence.
    """
    left_out = [column for column in columns if column not in {"clip", "movie", *EXTRA_COLUMNS}]
    if not left_out:
        return []
    return [f"left out {manifests.counted(len(left_out), 'column')}: {', '.join(left_out)}"]


def _notices_on_movies(listed_movies: Iterable[str], movies_of_table: Iterable[str]) -> list[str]:
    """Write a notice of how many movies of the lists of films have no clip in the table, if there are any."""
    without_clip = sorted(set(listed_movies).difference(movies_of_table))
    if not without_clip:
        return []
    n_listed = manifests.counted(len(without_clip), "listed movie")
    return [f"no clip of {n_listed}; the first is {without_clip[0]}"]


def _clip(
    cells: Mapping[str, str], listed_sides: Mapping[str, str], root: Path, videos: Path | None
) -> manifests.Clip:
    """Make the manifest's clip from a row of the table.

    Parameters
    ----------
    cells
        Column -> cell.
    listed_sides
        Movie -> "dev" or "test", for a table without the column split.
    root
        Folder of the manifest, to which paths of videos are relative.
    videos
        Folder of the video files; None for videos beside the manifest.

    Raises
    ------
    ManifestError
        Naming the column: the side or the violence label is unknown.
    """
    if "split" in cells:
        split = cells["split"]
        if split not in SIDES:
            raise ManifestError(f"{split!r}; expected dev or test", "split")
    else:
        split = listed_sides.get(cells["movie"], "")
        if not split:
            raise ManifestError(f"movie {cells['movie']!r} is in no list", "split")

    violence = cells.get("violence", "")
    if violence not in {"", *VIOLENCE}:
        raise ManifestError(f"{violence!r}; expected 0, 1 or nothing", "violence")

    video = cells["clip"]
    if videos:
        video = manifests.stored_path(videos / cells["clip"], root)
    return manifests.Clip(
        clip_id=cells["clip"],
        movie=cells["movie"],
        video=video,
        level=VIOLENCE.get(violence),  # None if the violence is unknown
        extras={column: cells.get(column, "") for column in EXTRA_COLUMNS} | {"split": split},
    )


def _read_film_lists(path: Path) -> dict[str, str]:
    """Read the lists of dev and test movies that lie beside the table: movie -> "dev" or "test".

    Raises
    ------
    ManifestError
        A list is missing, or a movie is in both.
    """
    side_of_movie: dict[str, str] = {}
    for side, name in FILM_LISTS.items():
        film_list = path.with_name(name)
        if not film_list.is_file():
            raise ManifestError(
                f"{path}: no column split, and no {name} beside it that lists the films of {side}"
            )
        for line in read_text(film_list).splitlines():
            movie = line.strip()
            if not movie:
                continue
            other_side = side_of_movie.setdefault(movie, side)
            if other_side != side:
                raise ManifestError(f"{film_list}: movie {movie!r} is in {FILM_LISTS[other_side]} as well")
    return side_of_movie


def _notices_on_clips(clips: list[manifests.Clip]) -> list[str]:
    """Write notices on what differs from the published corpus: numbers of clips and movies, clips' names."""
    notices = []
    for side, (n_published_clips, n_published_movies) in PUBLISHED_COUNTS.items():
        clips_of_side = [clip for clip in clips if clip.extras["split"] == side]
        n_clips = len(clips_of_side)
        n_movies = len({clip.movie for clip in clips_of_side})
        if n_clips != n_published_clips or n_movies != n_published_movies:
            counts = f"{manifests.counted(n_clips, 'clip')} of {manifests.counted(n_movies, 'movie')}"
            published = f"{n_published_clips:,} of {n_published_movies}"
            notices.append(f"{side}: {counts}; the published corpus has {published}")
    n_other_names = sum(CLIP_NAME.fullmatch(clip.clip_id) is None for clip in clips)
    if n_other_names:
        named = manifests.counted(n_other_names, "clip is", "clips are")
        notices.append(f"{named} not named as LIRIS-ACCEDE's (ACCEDE00000.mp4)")
    return notices
