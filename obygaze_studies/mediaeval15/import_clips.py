"""Import the clips of MediaEval 2015 Affective Impact of Movies: 10,900 of 199 films (Sjöberg et al. 2015).

The data are distributed against a signed form, so the layout read here is this project's own: a table
`clips.csv` to be made of the organisers' files. Assumed of them: clips are named by their video files, as
LIRIS-ACCEDE does (`ACCEDE00000.mp4`), and the split is by film.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import obygaze_features.manifest as manifests
from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_studies.audit_common.inputs import read_text

FILE_NAME = "clips.csv"
LISTS: Mapping[str, str] = {"dev": "dev.txt", "test": "test.txt"}
"""Beside a clips.csv without a column split: the films of each side, one a line."""

EXTRAS = ("split", "valence", "arousal", "violence")
"""Columns of the manifest, in order; empty where the file has no value."""

VIOLENCE: Mapping[str, str] = {"0": "nonviolent", "1": "violent"}
"""Levels of the column violence."""

NAME = re.compile(r"ACCEDE\d{5}\.mp4")
PUBLISHED = {"dev": (6144, 100), "test": (4756, 99)}
"""Clips and films of each side (section 3)."""


@checked
def import_mediaeval15(source: Path, root: Path, videos: Path | None = None) -> manifests.Imported:
    """Read the task's clips, each a whole video file whose name is the clip's id.

    Parameters
    ----------
    source
        clips.csv, or its folder. Columns: clip, movie; split (dev, test), unless the folder has dev.txt and
        test.txt, lists of films; and of valence, arousal, violence those that are known, kept verbatim;
        violence becomes the level as well. Other columns are left out.
    root
        Folder that the manifest will lie in.
    videos
        Folder of the video files; without it videos are bare file names, beside the manifest.

    Raises
    ------
    ManifestError
        Naming file, line and column, if a row is broken; a film is on both sides, or on neither.
    """
    path = manifests.file_in(source, (FILE_NAME,))
    table = manifests.read_table(path, needed=("clip", "movie"))
    sides = {} if "split" in table.columns else _lists(path)
    collected = manifests.Collected(table.problems, "clip")
    side_of: dict[str, str] = {}
    for row in table.checked():
        clip = table.problems.attempt(row.line, "", _clip, row.cells, sides, root, videos)
        collected.add(clip, row.line)
        if clip is not None:
            first = side_of.setdefault(clip.movie, clip.extras["split"])
            if first != clip.extras["split"]:
                table.problems.add(row.line, f"movie {clip.movie!r} has clips in dev and in test", "split")
    notices = _notices(collected.clips)
    if videos:
        notices.append(manifests.videos_found(collected.clips, root, videos))
    unread = [column for column in table.columns if column not in {"clip", "movie", *EXTRAS}]
    if unread:
        notices.append(f"left out {manifests.counted(len(unread), 'column')}: {', '.join(unread)}")
    lone = sorted(sides.keys() - side_of.keys())
    if lone:
        notices.append(f"no clip of {manifests.counted(len(lone), 'listed movie')}; the first is {lone[0]}")
    return manifests.Imported(
        manifests.Manifest(tuple(collected.clips), root, manifests.builtin_codebook("mediaeval15")),
        tuple(notices),
    )


def _clip(
    cells: Mapping[str, str], sides: Mapping[str, str], root: Path, videos: Path | None
) -> manifests.Clip:
    split = cells.get("split", sides.get(cells["movie"], ""))
    violence = cells.get("violence", "")
    if split not in PUBLISHED:
        problem = f"{split!r}; expected dev or test"
        problem = problem if "split" in cells else f"movie {cells['movie']!r} is in no list"
        raise ManifestError(problem, "split")
    if violence not in {"", *VIOLENCE}:
        raise ManifestError(f"{violence!r}; expected 0, 1 or nothing", "violence")
    return manifests.Clip(
        clip_id=cells["clip"],
        movie=cells["movie"],
        video=manifests.stored_path(videos / cells["clip"], root) if videos else cells["clip"],
        level=VIOLENCE.get(violence),
        extras={column: cells.get(column, "") for column in EXTRAS} | {"split": split},
    )


def _lists(path: Path) -> dict[str, str]:
    """Read which side each listed film is on."""
    sides: dict[str, str] = {}
    for side, name in LISTS.items():
        lines = path.with_name(name)
        if not lines.is_file():
            raise ManifestError(
                f"{path}: no column split, and no {name} beside it that lists the films of {side}"
            )
        for movie in read_text(lines).splitlines():
            if movie.strip() and sides.setdefault(movie.strip(), side) != side:
                raise ManifestError(f"{lines}: movie {movie.strip()!r} is in {LISTS['dev']} as well")
    return sides


def _notices(clips: list[manifests.Clip]) -> list[str]:
    sides = Counter(clip.extras["split"] for clip in clips)
    notices = []
    for side, (n_clips, n_movies) in PUBLISHED.items():
        movies = len({clip.movie for clip in clips if clip.extras["split"] == side})
        if (sides[side], movies) != (n_clips, n_movies):
            counts = f"{manifests.counted(sides[side], 'clip')} of {manifests.counted(movies, 'movie')}"
            notices.append(f"{side}: {counts}; the published corpus has {n_clips:,} of {n_movies}")
    n_other_names = sum(NAME.fullmatch(clip.clip_id) is None for clip in clips)
    if n_other_names:
        named = manifests.counted(n_other_names, "clip is", "clips are")
        notices.append(f"{named} not named as LIRIS-ACCEDE's (ACCEDE00000.mp4)")
    return notices
