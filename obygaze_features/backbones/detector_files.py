"""Find faces by a detector of an ONNX file; the TOML beside it says what goes in and what it gives.

`gives = "faces"`: boxes [N, 5] of a picture (left, top, right and bottom as shares of it, and a score), or
[N, 11] with three points behind (left eye, right eye, nose; across before down, as shares of the picture).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import OnnxNetwork, read_network
from obygaze_features.backbones.registry import ONNX
from obygaze_features.backbones.sightings import Faces, each_once, long_side_to, noses_of, padded
from obygaze_features.errors import BackboneError
from obygaze_features.io import NO_LICENCE

LEAST, MOST = (-1, -1, 0, 0, 0), (1, 1, 2, 2, 1)
"""Of the numbers of a face's box, which may leave the picture by as much again."""

BOX, BOX_AND_POINTS = 5, 11
"""Numbers of a face, without and with points."""


@dataclass(frozen=True, slots=True)
class FaceFile:
    """Detector of faces in an ONNX file."""

    network: OnnxNetwork

    @property
    def source(self) -> str:
        """Of the detector, as `people` takes it."""
        return f"{ONNX}{self.network.path}:{self.network.layer}"

    @property
    def digest(self) -> str:
        """SHA-256 of the network."""
        return self.network.sha256

    def record(self) -> dict[str, object]:
        """Describe the detector for the provenance."""
        told = self.network.told
        return {
            "name": told.name or self.network.path.name,
            "sha256": self.network.sha256,
            "gives": told.finds,
            "licence": told.licence or NO_LICENCE,
            "citation": told.citation or "",
        }

    def __call__(self, picture: NDArray[np.uint8]) -> Faces:
        """Find the faces of a picture, uint8 `[h, w, 3]`.

        Raises
        ------
        BackboneError
            The network gives no boxes.
        """
        rows = self._sure_rows(picture)
        boxes = rows[:, :BOX]
        within = (boxes >= LEAST) & (boxes <= MOST)
        if not within.all() or not (boxes[:, :2] < boxes[:, 2:4]).all():
            raise self._no_boxes(rows.shape)
        chosen = each_once(boxes)
        noses = np.full(len(chosen), np.nan)
        if rows.shape[1] == BOX_AND_POINTS:
            points = rows[chosen, BOX:].reshape(-1, 3, 2)
            noses = noses_of(boxes[chosen], points, picture.shape[0] / picture.shape[1])
        return Faces(boxes[chosen], noses)

    def _sure_rows(self, picture: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Run the network, and keep the rows whose score is enough, in shares of the picture."""
        told = self.network.told
        shares = np.ones(2)  # of the input that the picture fills: across, down
        if told.fit == "pad" and isinstance(told.size, int) and told.step:
            larger = padded(long_side_to(picture, told.size, told.resize), told.step)
            given = larger.picture
            shares = np.array([larger.width, larger.height])
        else:
            given = told.geometry(picture)
        found = self.network.run(given[None]).astype(np.float64)
        rows = found.reshape(-1, found.shape[-1]).copy()
        if rows.shape[1] not in {BOX, BOX_AND_POINTS}:
            raise self._no_boxes(found.shape)
        rows = rows[~(rows[:, BOX - 1] < (told.score or 0.0))]  # NaN stays, and is refused
        rows[:, : BOX - 1] /= np.tile(shares, 2)
        rows[:, BOX:] /= np.tile(shares, (rows.shape[1] - BOX) // 2)
        return rows

    def _no_boxes(self, shape: tuple[int, ...]) -> BackboneError:
        network = self.network
        return BackboneError(
            f"{network.path.name}: {network.layer} gives {list(shape)}; boxes of faces were expected, [N, 5] "
            "or [N, 11]: left, top, right and bottom as shares of what is seen, a score up to 1, and perhaps "
            "both eyes and the nose, across before down"
        )


def detector_file(source: str) -> FaceFile:
    """Read a detector, `onnx:FILE[:LAYER]`, and try it.

    Raises
    ------
    BackboneError
        It is no detector.
    """
    network = read_network(source.removeprefix(ONNX))
    if not network.told.finds:
        toml = network.path.with_suffix(".toml")
        raise BackboneError(f'{toml}: it does not say what the network finds: gives = "faces", and score')
    detector = FaceFile(network)
    detector(np.zeros((270, 480, 3), np.uint8))
    return detector
