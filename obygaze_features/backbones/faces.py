"""Count faces and measure the largest, by a detector of an ONNX file; nobody is recognised.

The TOML beside the file says what goes in, as for any `onnx:FILE`. Its layer gives boxes `[N, 5]` of a
picture: left, top, right and bottom as shares of it, and a score. Count and height are all that is kept.
"""

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones.onnx_files import read_network
from obygaze_features.backbones.registry import ONNX
from obygaze_features.errors import BackboneError

N_FRAMES = 2
"""Frames of a window that are looked at."""

LEAST, MOST = (-1, -1, 0, 0, 0), (1, 1, 2, 2, 1)
"""Of the numbers of a face's box, which may leave the picture by as much again."""

SURE, OVERLAP = 0.7, 0.3
"""Score from which on a box is a face; shared area from which on two boxes are one."""


class FaceDetector:
    """Detector of faces; `prepare` makes its input of a frame.

    Raises
    ------
    BackboneError
        It is no such detector.
    """

    def __init__(self, source: str) -> None:
        self._network = network = read_network(source.removeprefix(ONNX))
        self.prepare = network.told.geometry
        if network.told.fit != "squash":
            raise BackboneError(f'{network.path}: a detector of faces sees whole pictures: fit = "squash"')
        self._boxes(np.zeros((*self.prepare.sides, 3), np.uint8))

    def __call__(self, pictures: NDArray[np.uint8]) -> dict[str, float]:
        """Give `faces`, the mean number in pictures `[F, h, w, 3]`, and `face`, the largest height if any."""
        found = [self._boxes(picture) for picture in pictures]
        heights = [float(bottom - top) for boxes in found for _, top, _, bottom, _ in boxes]
        values = {"faces": float(np.mean([len(boxes) for boxes in found]))}
        return values | ({"face": min(max(heights), 1.0)} if heights else {})

    def _boxes(self, picture: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Keep the boxes that are sure, each face once."""
        import cv2  # noqa: PLC0415 - an extra

        network = self._network
        found = network.run(picture[None]).astype(np.float64)
        boxes = found.reshape(-1, found.shape[-1])
        boxes = boxes[~(boxes[:, -1] < SURE)]  # NaN stays, and is refused
        within = found.shape[-1] == len(MOST) and (boxes >= LEAST) & (boxes <= MOST)
        if not np.all(within) or not (boxes[:, :2] < boxes[:, 2:4]).all():
            raise BackboneError(
                f"{network.path.name}: {network.layer} gives {list(found.shape)}; boxes were expected, "
                "[N, 5]: left, top, right and bottom as shares of what is seen, and a score up to 1"
            )
        corners = np.hstack([boxes[:, :2], boxes[:, 2:4] - boxes[:, :2]]).tolist()
        return boxes[[*cv2.dnn.NMSBoxes(corners, boxes[:, 4].tolist(), 0.0, OVERLAP)]]
