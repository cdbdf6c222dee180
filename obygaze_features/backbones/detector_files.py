"""Find faces, or persons by their joints, with a detector of an ONNX file; the TOML beside it says which.

`gives = "faces"`: boxes [N, 5] of a picture (left, top, right and bottom as shares of it, and a score), or
[N, 11] with three points behind (left eye, right eye, nose; across before down, as shares of the picture).

`gives = "joints"`: persons [N, 56], as MoveNet multipose has them: down, across and a score of each of 17
joints, in the order of COCO, then top, left, bottom, right and a score of the person.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import OnnxNetwork, read_network
from obygaze_features.backbones.registry import ONNX
from obygaze_features.backbones.sightings import (
    N_JOINTS,
    Faces,
    Padded,
    Persons,
    long_side_to,
    noses_of,
    padded,
    without_duplicates,
)
from obygaze_features.errors import BackboneError
from obygaze_features.io import NO_LICENCE

MIN_OF_BOX = (-1, -1, 0, 0, 0)
MAX_OF_BOX = (1, 1, 2, 2, 1)
"""Least and greatest values of a box: left, top, right and bottom as shares of the picture, and a score.

A box may leave the picture by as much again.
"""

N_BOX = 5
"""Numbers of a box: its four edges and a score."""
N_POINTS = 3
"""Points of a face: left eye, right eye and nose, two numbers each."""
N_BOX_AND_POINTS = N_BOX + 2 * N_POINTS
"""Numbers in the row of a face with points: first the box, then the points."""
N_ALL_JOINTS = 3 * N_JOINTS
"""Numbers of the joints of a person: three each."""
N_PERSON = N_ALL_JOINTS + N_BOX
"""Numbers in the row of a person: first the joints, then the box."""

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
        """Value of the option `weights` of the backbone `people` that loads this detector."""
        return f"{ONNX}{self.network.path}:{self.network.layer}"

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return self.network.sha256

    @property
    def detects(self) -> str:
        """What it finds: `faces` or `joints`."""
        return self.network.description.detects

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance."""
        description = self.network.description  # what its TOML says
        return {
            "name": description.name or self.network.path.name,
            "sha256": self.network.sha256,
            "gives": self.detects,
            "licence": description.licence or NO_LICENCE,
            "citation": description.citation or "",
        }

    def __call__(self, picture: NDArray[np.uint8]) -> Faces | Persons:
        """Find the faces or the persons of a picture, uint8 `[h, w, 3]`, whichever the network detects.

        Raises
        ------
        BackboneError
            The network's output is not that of such a detector.
        """
        output = self._output(picture)
        if self.detects == "faces":
            return self._faces(output, height_by_width=picture.shape[0] / picture.shape[1])
        return self._persons(output)

    def _faces(self, output: "_Output", height_by_width: float) -> Faces:
        """Convert the output of a face detector to faces, each once, in shares of the picture.

        Parameters
        ----------
        output
            The output for one picture: a row for each box of a face.
        height_by_width
            Height of the picture divided by its width.

        Raises
        ------
        BackboneError
            The output is not that of a face detector.
        """
        if output.rows.shape[1] not in {N_BOX, N_BOX_AND_POINTS}:
            raise self._unexpected(output.rows.shape)
        rows = self._above_threshold(output.rows)

        boxes_in_input = rows[:, :N_BOX]  # left, top, right, bottom, score
        boxes = self._checked_boxes(output.in_picture(boxes_in_input))
        kept_rows = without_duplicates(boxes)

        noses = np.full(len(kept_rows), np.nan)  # unknown
        has_points = rows.shape[1] == N_BOX_AND_POINTS
        if has_points:
            points_in_input = rows[kept_rows, N_BOX:].reshape(-1, N_POINTS, 2)  # across before down
            points = points_in_input / output.covered_shares
            noses = noses_of(boxes[kept_rows], points, height_by_width)
        return Faces(boxes[kept_rows], noses)

    def _persons(self, output: "_Output") -> Persons:
        """Convert the output of a person detector to persons, in shares of the picture.

        A row of the output has down, across and score of each joint, and then the box of the person.

        Raises
        ------
        BackboneError
            The output is not that of a person detector.
        """
        if output.rows.shape[1] != N_PERSON:
            raise self._unexpected(output.rows.shape)
        rows = self._above_threshold(output.rows)
        joint_columns = rows[:, :N_ALL_JOINTS]
        box_columns = rows[:, N_ALL_JOINTS:]

        top, left, bottom, right, score = box_columns.T
        boxes_in_input = np.column_stack([left, top, right, bottom, score])
        boxes = self._checked_boxes(output.in_picture(boxes_in_input))

        joint_values = joint_columns.reshape(-1, N_JOINTS, 3)
        down = joint_values[:, :, 0]
        across = joint_values[:, :, 1]
        joint_score = joint_values[:, :, 2]
        joints_in_input = np.stack([across, down, joint_score], axis=2)  # [N, 17, 3]
        width_share, height_share = output.covered_shares
        joints = joints_in_input / [width_share, height_share, 1]  # scores stay
        if not np.isfinite(joints).all():
            raise self._unexpected(output.rows.shape)
        return Persons(boxes, joints)

    def _output(self, picture: NDArray[np.uint8]) -> "_Output":
        """Run the network on a picture, uint8 `[h, w, 3]`, padded or squashed to the network's size.

        `fit` of the TOML file beside the network says which of the two.
        """
        description = self.network.description
        if description.fit == "pad":
            larger = self._padded(picture)
            frame = larger.picture
            covered_shares = np.array([larger.width_share, larger.height_share])
        else:
            frame = description.geometry(picture)
            covered_shares = np.ones(2)  # the picture fills all of the input
        values = self.network.run(frame[None]).astype(np.float64)
        rows = values.reshape(-1, values.shape[-1])
        return _Output(rows, covered_shares)

    def _padded(self, picture: NDArray[np.uint8]) -> Padded:
        """Resize a picture so that its long side is the network's, and pad its sides to multiples of a step.

        The long side, in pixels, and the step are `size` and `step` of the TOML file beside the network.
        """
        description = self.network.description
        # A description with `fit = "pad"` has one size and a step, or it would have been refused.
        long_side, step = cast("int", description.size), cast("int", description.step)
        return padded(long_side_to(picture, long_side, description.resize), step)

    def _above_threshold(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows (faces or persons that were found) whose score reaches the threshold.

        The TOML file beside the network has the threshold. Rows whose score is NaN stay too, and are refused
        by a later check (`_checked_boxes`): they show that the numbers are no scores.
        """
        # The score stands behind the four edges of the box. The row of a face begins with the box, so that
        # it is the last of `N_BOX` numbers; that of a person ends with the box.
        score_column = N_BOX - 1 if self.detects == "faces" else N_PERSON - 1
        threshold = self.network.description.score or 0.0  # stated for every detector
        is_below = rows[:, score_column] < threshold  # False for NaN
        return rows[~is_below]

    def _checked_boxes(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return boxes as they are, after checking their numbers.

        Parameters
        ----------
        boxes
            Left, top, right, bottom (in shares of the picture) and score of each, [N, 5].

        Raises
        ------
        BackboneError
            A number is out of range or NaN, or a box has no width or height.
        """
        # A box may leave the picture, but not by more than its width and height.
        is_in_range = (boxes >= MIN_OF_BOX) & (boxes <= MAX_OF_BOX)
        left_top = boxes[:, :2]
        right_bottom = boxes[:, 2:4]
        has_area = left_top < right_bottom
        if not is_in_range.all() or not has_area.all():
            raise self._unexpected(boxes.shape)
        return boxes

    def _unexpected(self, shape: tuple[int, ...]) -> BackboneError:
        """Return the error for an output that no such detector gives, by its shape or its values.

        The message names the shape, and says what was expected.
        """
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
    covered_shares
        Shares of the network's input, across and down, that the picture covers, [2]; the rest is padding.
    """

    rows: NDArray[np.float64]
    covered_shares: NDArray[np.float64]

    def in_picture(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert boxes, [N, 5], whose edges are shares of the network's input, to shares of the picture.

        A row has left, top, right, bottom and a score. The picture lies at the top left of the input.
        """
        width_share, height_share = self.covered_shares
        divisors = np.array([width_share, height_share, width_share, height_share, 1])  # the score stays
        return np.asarray(boxes / divisors, dtype=np.float64)


def detector_file(source: str) -> DetectorFile:
    """Load a detector from an ONNX file, `onnx:FILE[:LAYER]`, and run it once, so that errors come early.

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
    black_picture = np.zeros((270, 480, 3), np.uint8)
    detector(black_picture)
    return detector
