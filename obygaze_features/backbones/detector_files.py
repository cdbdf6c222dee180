"""Find faces, or persons by their joints, with a detector of an ONNX file; the TOML beside it says which.

`gives = "faces"`: boxes [N, 5] of a picture (left, top, right and bottom as shares of it, and a score), or
[N, 11] with three points behind (left eye, right eye, nose; across before down, as shares of the picture).

`gives = "joints"`: persons [N, 56], as MoveNet multipose has them: down, across and a score of each of 17
joints, in the order of COCO, then top, left, bottom, right and a score of the person.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import OnnxNetwork, read_network
from obygaze_features.backbones.registry import ONNX
from obygaze_features.backbones.sightings import (
    N_JOINTS,
    Faces,
    Persons,
    long_side_to,
    noses_of,
    padded,
    without_duplicates,
)
from obygaze_features.errors import BackboneError
from obygaze_features.io import NO_LICENCE

LEAST_OF_BOX = (-1, -1, 0, 0, 0)
MOST_OF_BOX = (1, 1, 2, 2, 1)
"""Least and greatest values of a box: left, top, right and bottom as shares of the picture, and a score.

A box may leave the picture by as much again.
"""

BOX, BOX_AND_POINTS = 5, 11
"""Numbers of a face, without and with points."""

PERSON = 3 * N_JOINTS + BOX
"""Numbers of a person: three of each joint, and a box."""

EXPECTED = {
    "faces": "boxes of faces were expected, [N, 5] or [N, 11]: left, top, right and bottom as shares of what "
    "is seen, a score up to 1, and perhaps both eyes and the nose, across before down",
    "joints": "persons were expected, [N, 56]: down, across and a score of 17 joints, top, left, bottom and "
    "right as shares of what is seen, and a score up to 1",
}


@dataclass(frozen=True, slots=True)
class DetectorFile:
    """Detector in an ONNX file."""

    network: OnnxNetwork

    @property
    def source(self) -> str:
        """The detector's name, as `people` takes it."""
        return f"{ONNX}{self.network.path}:{self.network.layer}"

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return self.network.sha256

    @property
    def detects(self) -> str:
        """What it finds: faces or joints."""
        return self.network.description.detects

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance."""
        description = self.network.description
        return {
            "name": description.name or self.network.path.name,
            "sha256": self.network.sha256,
            "gives": self.detects,
            "licence": description.licence or NO_LICENCE,
            "citation": description.citation or "",
        }

    def __call__(self, picture: NDArray[np.uint8]) -> Faces | Persons:
        """Find the faces or the persons of a picture, uint8 `[h, w, 3]`.

        Raises
        ------
        BackboneError
            The network gives something else.
        """
        output = self._output(picture)
        if self.detects == "faces":
            return self._faces(output, height_by_width=picture.shape[0] / picture.shape[1])
        return self._persons(output)

    def _faces(self, output: "_Output", height_by_width: float) -> Faces:
        """Convert the output of a face detector to faces, each once, in shares of the picture."""
        if output.rows.shape[1] not in {BOX, BOX_AND_POINTS}:
            raise self._unexpected(output.rows.shape)
        rows = self._above_threshold(output.rows)
        left_top_right_bottom_score = rows[:, :BOX]
        boxes = self._checked_boxes(left_top_right_bottom_score / [*output.filled, *output.filled, 1])
        chosen = without_duplicates(boxes)
        noses = np.full(len(chosen), np.nan)
        if rows.shape[1] == BOX_AND_POINTS:
            points = rows[chosen, BOX:].reshape(-1, 3, 2) / output.filled
            noses = noses_of(boxes[chosen], points, height_by_width)
        return Faces(boxes[chosen], noses)

    def _persons(self, output: "_Output") -> Persons:
        """Convert the output of a person detector to persons, in shares of the picture, x before y."""
        if output.rows.shape[1] != PERSON:
            raise self._unexpected(output.rows.shape)
        rows = self._above_threshold(output.rows)
        # The last five columns are top, left, bottom, right and score.
        left_top_right_bottom_score = rows[:, [-4, -5, -2, -3, -1]]
        boxes = self._checked_boxes(left_top_right_bottom_score / [*output.filled, *output.filled, 1])
        joints = rows[:, :-BOX].reshape(-1, N_JOINTS, 3)[:, :, [1, 0, 2]] / [*output.filled, 1]
        if not np.isfinite(joints).all():
            raise self._unexpected(output.rows.shape)
        return Persons(boxes, joints)

    def _output(self, picture: NDArray[np.uint8]) -> "_Output":
        """Run the network on a picture, which is padded or squashed to its size."""
        description = self.network.description
        if description.fit == "pad" and isinstance(description.size, int) and description.step:
            larger = padded(long_side_to(picture, description.size, description.resize), description.step)
            frame = larger.picture
            filled = np.array([larger.width, larger.height])
        else:
            frame = description.geometry(picture)
            filled = np.ones(2)
        values = self.network.run(frame[None]).astype(np.float64)
        return _Output(values.reshape(-1, values.shape[-1]), filled)

    def _above_threshold(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows whose score reaches the threshold of the TOML file.

        Rows whose score is NaN stay too: `_checked_boxes` refuses them.
        """
        scores = rows[:, BOX - 1] if self.detects == "faces" else rows[:, -1]
        is_unsure = scores < (self.network.description.score or 0.0)
        return rows[~is_unsure]

    def _checked_boxes(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return boxes [N, 5]; raise if a number is out of range, or a box ends before it starts."""
        within = (boxes >= LEAST_OF_BOX) & (boxes <= MOST_OF_BOX)
        if not within.all() or not (boxes[:, :2] < boxes[:, 2:4]).all():
            raise self._unexpected(boxes.shape)
        return boxes

    def _unexpected(self, shape: tuple[int, ...]) -> BackboneError:
        """Return the error for an output that is not in the form of a detector's."""
        network = self.network
        return BackboneError(
            f"{network.path.name}: {network.layer} gives {list(shape)}; {EXPECTED[self.detects]}"
        )


@dataclass(frozen=True, slots=True)
class _Output:
    """The output of a detector for one picture.

    Attributes
    ----------
    rows
        A row for each face or person, [N, numbers].
    filled
        Shares of the network's input width and height that the picture covers, [2]; the rest is padding.
    """

    rows: NDArray[np.float64]
    filled: NDArray[np.float64]


def detector_file(source: str) -> DetectorFile:
    """Load a detector from an ONNX file, `onnx:FILE[:LAYER]`, and run it on a black picture.

    Raises
    ------
    BackboneError
        The network is not a detector, or fails on the black picture.
    """
    network = read_network(source.removeprefix(ONNX))
    if not network.description.detects:
        toml = network.path.with_suffix(".toml")
        raise BackboneError(
            f'{toml}: it does not say what the network finds: gives = "faces" or "joints", and score'
        )
    detector = DetectorFile(network)
    detector(np.zeros((270, 480, 3), np.uint8))
    return detector
