"""Import a folder of videos, or of still images."""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.file_kinds import PICTURE_SUFFIXES, VIDEO_SUFFIXES
from obygaze_features.io import local_path, walk
from obygaze_features.manifest.clip import Clip, absolute, stored_path
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.identity import check_identity
from obygaze_features.manifest.importers.imported import Imported
from obygaze_features.manifest.manifest import Manifest, default_codebook
from obygaze_features.manifest.text_tables import counted, error_context
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
        Folder that the manifest will be written to.
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
        Folder that the manifest will be written to.

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
    folder_name = absolute(source).name or "images"

    def movie_of_image(image: PurePosixPath) -> str:
        """Return the first sub-folder of an image, else the name of the source folder."""
        is_at_top = len(image.parts) == 1
        return folder_name if is_at_top else image.parts[0]

    clips = whole_files(source, images, root, movie_of_image)
    return Imported(Manifest(tuple(clips), root), tuple(notices))


def list_files(source: Path, suffixes: frozenset[str], kind: str) -> tuple[list[PurePosixPath], list[str]]:
    """List the files below a folder that have one of some suffixes, and say what was left out.

    Hidden files and linked folders are passed over, and so are the later files of a DVD's title.

    Parameters
    ----------
    source
        The folder.
    suffixes
        In lower case, with their dot.
    kind
        What the files are, for messages: `video` or `image`.

    Returns
    -------
    list of PurePosixPath
        Paths relative to the folder, sorted.
    list of str
        Notices of what was left out.

    Raises
    ------
    ManifestError
        If there is no such folder.
    """
    if not source.is_dir():
        problem = "is a file" if source.exists() else "does not exist"
        hint = "; a table of spans is read by 'manifest import spans'" if source.is_file() else ""
        raise ManifestError(f"{source}: {problem}, and a folder of {kind}s was expected{hint}")
    found = _search(source, suffixes)
    later_parts = _later_parts(found.files)
    notices = _notices_on_left_out(found, kind)
    if later_parts:
        what = counted(len(later_parts), "file")
        notices.append(f"{what} of DVDs' titles are read with the first (VTS_01_1.VOB)")
    return sorted({*found.files} - later_parts), notices


@dataclass(slots=True)
class _Found:
    """What is below a folder.

    Attributes
    ----------
    files
        The files that have one of the wanted suffixes, as paths relative to the folder.
    n_of_other_suffixes
        Other suffix -> how many files have it.
    n_hidden, n_linked
        How many files and folders are hidden, and how many folders are links: neither are searched.
    """

    files: list[PurePosixPath] = field(default_factory=list)
    n_of_other_suffixes: Counter[str] = field(default_factory=Counter)
    n_hidden: int = 0
    n_linked: int = 0


def _search(source: Path, suffixes: frozenset[str]) -> _Found:
    """Find the files below a folder that have one of some suffixes, and count what is left out.

    Left out are hidden files and folders, folders that are links (which may lead round in a circle), and
    files with other suffixes.
    """
    found = _Found()
    for folder, subfolders, file_names in walk(source):
        found.n_hidden += sum(_is_hidden(name) for name in (*subfolders, *file_names))
        # The list is changed in place: walk enters the folders that are left in it, except links.
        subfolders[:] = [name for name in subfolders if not _is_hidden(name)]
        found.n_linked += sum(Path(folder, name).is_symlink() for name in subfolders)
        for name in file_names:
            if _is_hidden(name):
                continue
            path = Path(folder, name)
            suffix = path.suffix.lower()
            if suffix in suffixes:
                found.files.append(PurePosixPath(path.relative_to(source).as_posix()))
            else:
                found.n_of_other_suffixes[suffix] += 1
    return found


def _notices_on_left_out(found: _Found, kind: str) -> list[str]:
    """Say what was left out below a folder of files of a kind (`video` or `image`)."""
    notices = []
    others = found.n_of_other_suffixes
    if others:
        total = counted(others.total(), "file that is", "files that are")
        suffixes = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in sorted(others.items()))
        notices.append(f"left out {total} no {kind} by name: {suffixes}")
    if found.n_hidden:
        what = counted(found.n_hidden, "hidden file or folder", "hidden files or folders")
        notices.append(f"left out {what}")
    if found.n_linked:
        notices.append(f"did not follow {counted(found.n_linked, 'linked folder')}")
    return notices


def _is_hidden(name: str) -> bool:
    """Return whether a file or folder is hidden: its name begins with a dot."""
    return name.startswith(".")


def _later_parts(videos: Sequence[PurePosixPath]) -> set[PurePosixPath]:
    """Return the files that continue a DVD's title: `VTS_01_2.VOB`, if `VTS_01_1.VOB` is there too."""
    later_parts = set()
    for path in videos:
        match = LATER_PART.fullmatch(path.name)
        if match is None:
            continue
        title, suffix = match.groups()  # `VTS_01_` and `.VOB`
        if path.with_name(f"{title}1{suffix}") in videos:
            later_parts.add(path)
    return later_parts


def whole_files(
    source: Path, files: Sequence[PurePosixPath], root: Path, movie_of: Callable[[PurePosixPath], str]
) -> list[Clip]:
    """Make a clip without times of every file; its id is the file's path without suffix (`name_of`).

    `files` are paths below the folder `source`, and `root` is the manifest's folder.

    Raises
    ------
    ManifestError
        If there is no file, two files would have the same id, or a file's name cannot be an id.
    """
    if not files:
        raise ManifestError(f"{source}: no file below this folder has a suffix that is known")
    file_of_clip: dict[str, PurePosixPath] = {}  # clip id -> file
    clips = []
    for file in files:
        path = source / file
        clip_id = name_of(file)
        if clip_id in file_of_clip:
            first_path = source / file_of_clip[clip_id]
            raise ManifestError(f"{first_path} and {path}: both would be clip {clip_id!r}; rename one")
        file_of_clip[clip_id] = file
        with error_context(f"file {os.fspath(path)!r}", "; rename it"):
            clips.append(Clip(clip_id, composed(movie_of(file)), stored_path(path, root)))
    return clips


def name_of(video: PurePosixPath) -> str:
    """Return the clip id of a video below a folder: `Vertigo-01` for `Vertigo/01.mp4`."""
    return composed("-".join((*video.parts[:-1], video.stem)))


def movie_of(video: PurePosixPath) -> str:
    """Return the movie of a video below a folder: its first sub-folder, or its own name if it has none."""
    if len(video.parts) > 1:
        return video.parts[0]
    return video.stem
