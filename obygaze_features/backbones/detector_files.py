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
    each_once,
    long_side_to,
    noses_of,
    padded,
)
from obygaze_features.errors import BackboneError
from obygaze_features.io import NO_LICENCE

LEAST, MOST = (-1, -1, 0, 0, 0), (1, 1, 2, 2, 1)
"""Of the numbers of a box, which may leave the picture by as much again."""

BOX, BOX_AND_POINTS = 5, 11
"""Numbers of a face, without and with points."""

PERSON = 3 * N_JOINTS + BOX

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
        """Of the detector, as `people` takes it."""
        return f"{ONNX}{self.network.path}:{self.network.layer}"

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return self.network.sha256

    @property
    def gives(self) -> str:
        """What it finds: faces or joints."""
        return self.network.told.finds

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance."""
        told = self.network.told
        return {
            "name": told.name or self.network.path.name,
            "sha256": self.network.sha256,
            "gives": self.gives,
            "licence": told.licence or NO_LICENCE,
            "citation": told.citation or "",
        }

    def __call__(self, picture: NDArray[np.uint8]) -> Faces | Persons:
        """Find the faces or the persons of a picture, uint8 `[h, w, 3]`.

        Raises
        ------
        BackboneError
            The network gives something else.
        """
        found = self._shown(picture)
        return self._faces(picture, found) if self.gives == "faces" else self._persons(found)

    def _faces(self, picture: NDArray[np.uint8], found: "_Shown") -> Faces:
        if found.rows.shape[1] not in {BOX, BOX_AND_POINTS}:
            raise self._unexpected(found.rows.shape)
        rows = self._sure(found.rows)
        boxes = self._checked(rows[:, :BOX] / [*found.filled, *found.filled, 1])
        chosen = each_once(boxes)
        noses = np.full(len(chosen), np.nan)
        if rows.shape[1] == BOX_AND_POINTS:
            points = rows[chosen, BOX:].reshape(-1, 3, 2) / found.filled
            noses = noses_of(boxes[chosen], points, picture.shape[0] / picture.shape[1])
        return Faces(boxes[chosen], noses)

    def _persons(self, found: "_Shown") -> Persons:
        if found.rows.shape[1] != PERSON:
            raise self._unexpected(found.rows.shape)
        rows = self._sure(found.rows)
        boxes = self._checked(rows[:, [-4, -5, -2, -3, -1]] / [*found.filled, *found.filled, 1])
        joints = rows[:, :-BOX].reshape(-1, N_JOINTS, 3)[:, :, [1, 0, 2]] / [*found.filled, 1]
        if not np.isfinite(joints).all():
            raise self._unexpected(found.rows.shape)
        return Persons(boxes, joints)

    def _shown(self, picture: NDArray[np.uint8]) -> "_Shown":
        """Run the network on a picture."""
        told = self.network.told
        filled = np.ones(2)
        if told.fit == "pad" and isinstance(told.size, int) and told.step:
            larger = padded(long_side_to(picture, told.size, told.resize), told.step)
            given = larger.picture
            filled = np.array([larger.width, larger.height])
        else:
            given = told.geometry(picture)
        found = self.network.run(given[None]).astype(np.float64)
        return _Shown(found.reshape(-1, found.shape[-1]), filled)

    def _sure(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep the rows whose score is enough, or no number, for which they are refused later."""
        scores = rows[:, BOX - 1] if self.gives == "faces" else rows[:, -1]
        return rows[~(scores < (self.network.told.score or 0.0))]

    def _checked(self, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Refuse what are no boxes."""
        within = (boxes >= LEAST) & (boxes <= MOST)
        if not within.all() or not (boxes[:, :2] < boxes[:, 2:4]).all():
            raise self._unexpected(boxes.shape)
        return boxes

    def _unexpected(self, shape: tuple[int, ...]) -> BackboneError:
        network = self.network
        return BackboneError(
            f"{network.path.name}: {network.layer} gives {list(shape)}; {EXPECTED[self.gives]}"
        )


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a network gives of a picture, and the shares of its width and height that the picture fills."""

    rows: NDArray[np.float64]
    filled: NDArray[np.float64]


def detector_file(source: str) -> DetectorFile:
    """Read a detector, `onnx:FILE[:LAYER]`, and try it.

    Raises
    ------
    BackboneError
        It is no detector.
    """
    network = read_network(source.removeprefix(ONNX))
    if not network.told.finds:
        toml = network.path.with_suffix(".toml")
        raise BackboneError(
            f'{toml}: it does not say what the network finds: gives = "faces" or "joints", and score'
        )
    detector = DetectorFile(network)
    detector(np.zeros((270, 480, 3), np.uint8))
    return detector
