"""A folder of still images."""

from functools import partial
from pathlib import Path, PurePosixPath

from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.paths import absolute

from .folder import list_files, passed_over, refuse_none, whole_files
from .imported import Imported

IMAGE_SUFFIXES: frozenset[str] = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})


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
    listing = list_files(source, IMAGE_SUFFIXES, "image")
    refuse_none(source, listing, IMAGE_SUFFIXES, "image")
    clips = whole_files(source, listing.files, root, partial(_movie, absolute(source).name))
    return Imported(Manifest(tuple(clips), root), tuple(passed_over(listing, "image")))


def _movie(folder: str, image: PurePosixPath) -> str:
    return image.parts[0] if len(image.parts) > 1 else folder or "images"
