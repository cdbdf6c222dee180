"""Import a folder of videos, or of still images."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import PICTURE_SUFFIXES, VIDEO_SUFFIXES
from obygaze_features.io import local_path
from obygaze_features.manifest.clip import Clip, absolute, stored_path
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.identity import check_identity
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.text_tables import counted, placed
from obygaze_features.text import composed

LATER_PART = re.compile(r"(VTS_\d\d_)[2-9](\.VOB)", re.IGNORECASE)
"""A further file of a DVD's title, which is read with the first."""


@checked
def import_folder(source: Path | str, root: Path | str, codebook: Codebook | None = None) -> Imported:
    """Make a clip of every video below a folder.

    Parameters
    ----------
    source
        The folder, searched recursively; hidden files and linked folders are passed over.
    root
        Folder that the manifest will lie in.
    codebook
        Of the levels and concepts that the clips may get; by default `obygaze12`.

    Notes
    -----
    A clip's id is its path without suffix, separators turned into "-". The movie is the first sub-folder, or
    the file's name for videos at the top. Both are in Unicode's form NFC, however a disk stores accents.

    Raises
    ------
    ManifestError
        If two files would have the same id, a name cannot be one, or there is no video.

    Examples
    --------
    >>> from pathlib import Path
    >>> from obygaze_features import import_folder
    >>> imported = import_folder("videos", root="")
    >>> [clip.video for clip in imported.manifest]
    ['videos/clip.mp4']
    """
    source, root = local_path(source), local_path(root)
    videos, notices = list_files(source, VIDEO_SUFFIXES, "video")
    clips = whole_files(source, videos, root, movie_of)
    notices += check_identity(clips, root)
    return Imported(Manifest(tuple(clips), root, codebook or default_codebook()), tuple(notices))


@checked
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
    images, notices = list_files(source, PICTURE_SUFFIXES, "image")

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
        hint = "; a table of spans is read by 'manifest import spans'" if source.is_file() else ""
        raise ManifestError(f"{source}: {problem}, and a folder of {kind}s was expected{hint}")
    wanted: list[PurePosixPath] = []
    hidden = linked = 0
    others: Counter[str] = Counter()

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, files in os.walk(source, onerror=fail):
        hidden += sum(name.startswith(".") for name in (*folders, *files))
        folders[:] = [name for name in folders if not name.startswith(".")]
        linked += sum(Path(folder, name).is_symlink() for name in folders)  # which os.walk does not follow
        for name in files:
            if name.startswith("."):
                continue
            path = Path(folder, name)
            if path.suffix.lower() in suffixes:
                wanted.append(PurePosixPath(path.relative_to(source).as_posix()))
            else:
                others[path.suffix.lower()] += 1
    parts = [(path, LATER_PART.fullmatch(path.name)) for path in wanted]
    later = {path for path, part in parts if part and path.with_name(f"{part[1]}1{part[2]}") in wanted}
    kinds = ", ".join(f"{number} {suffix or 'without suffix'}" for suffix, number in sorted(others.items()))
    total = counted(others.total(), "file that is", "files that are")
    told = {
        f"left out {total} no {kind} by name: {kinds}": others,
        f"left out {counted(hidden, 'hidden file or folder', 'hidden files or folders')}": hidden,
        f"did not follow {counted(linked, 'linked folder')}": linked,
        f"{counted(len(later), 'file')} of DVDs' titles are read with the first (VTS_01_1.VOB)": later,
    }
    return sorted({*wanted} - later), [notice for notice, holds in told.items() if holds]


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
        name = name_of(file)
        if name in file_of:
            raise ManifestError(
                f"{source / file_of[name]} and {source / file}: both would be clip {name!r}; rename one"
            )
        file_of[name] = file
        with placed(f"file {os.fspath(source / file)!r}", "; rename it"):
            clips.append(Clip(name, composed(movie(file)), stored_path(source / file, root)))
    return clips


def name_of(video: PurePosixPath) -> str:
    """Name the clip of a video below a folder."""
    return composed("-".join((*video.parts[:-1], video.stem)))


def movie_of(video: PurePosixPath) -> str:
    """Name the movie of a video below a folder."""
    return video.parts[0] if len(video.parts) > 1 else video.stem
