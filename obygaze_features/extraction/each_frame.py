"""Encode frames one by one, so that clips may have any number of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.backbones import Backbone, BackboneOutput
from obygaze_features.errors import ExtractError
from obygaze_features.store.format import ANY_NUMBER

FRAMES_AT_ONCE: Final = 64
"""Frames that are given together to a backbone which makes no batches of its own."""


def encode_each_frame(backbone: Backbone) -> Backbone:
    """Return a backbone that encodes each frame of a clip alone, so that clips may have any number of them.

    Parameters
    ----------
    backbone
        A backbone that was built for clips of one frame.

    Raises
    ------
    ExtractError
        The backbone needs more than one frame, gives no vector of a frame, gives tokens, or takes sound.
    """
    described_backbone = f"backbone '{backbone.name}'"
    if backbone.hears is not None:
        raise ExtractError(
            f"{described_backbone} hears; frames a second are of pictures (leave out --per-second)"
        )
    if _joins_frames(backbone):
        raise ExtractError(
            f"{described_backbone} joins frames, {backbone.n_frames} at least, and with --per-second each is "
            "encoded alone: give a number of frames (--n)"
        )

    outputs = _only_vectors_of_frames(backbone.outputs, described_backbone)
    side_groups = []
    for side_group in backbone.side_groups:
        described_group = f"{described_backbone}, {backbone.name}.{side_group.name}"
        side_outputs = _only_vectors_of_frames(side_group.outputs, described_group)
        side_groups.append(replace(side_group, outputs=side_outputs))

    return replace(
        backbone,
        n_frames=ANY_NUMBER,  # each clip has its own
        encode=EachFrame(backbone.encode),
        outputs=outputs,
        side_groups=tuple(side_groups),
    )


def _joins_frames(backbone: Backbone) -> bool:
    """Return whether a backbone computes its vectors from several frames together, as video networks do.

    The backbone was built for clips of one frame. One that joins frames then has the least number of frames
    that it takes, or gives several vectors for one frame.
    """
    if backbone.n_frames != 1:
        return True
    return any(output.name == "frames" and output.shape[0] != 1 for output in backbone.outputs)


def _only_vectors_of_frames(
    outputs: Sequence[BackboneOutput], described_group: str
) -> tuple[BackboneOutput, ...]:
    """Return the declaration of the array `frames` alone, with any number of frames as its first dimension.

    Parameters
    ----------
    outputs
        Arrays that a backbone gives, or one of its side groups: `frames` [F, D], and others.
    described_group
        The backbone, or its side group, in words: the beginning of an error.

    Raises
    ------
    ExtractError
        The group has no `frames`, or has tokens too.
    """
    if any(output.name == "tokens" for output in outputs):
        raise ExtractError(
            f"{described_group} gives tokens of each frame too, and a store has one number of tokens for all "
            "clips, which --per-second does not: leave out --tokens, or give a number of frames (--n)"
        )
    for output in outputs:
        if output.name == "frames":
            return (replace(output, shape=(ANY_NUMBER, *output.shape[1:])),)
    names = ", ".join(output.name for output in outputs)
    raise ExtractError(
        f"{described_group} gives {names}, and no vector a frame, which --per-second stores "
        "(of layers: --layer-frames)"
    )


class EncodedFrames(NamedTuple):
    """The vectors of all frames of B clips.

    Attributes
    ----------
    arrays
        `frames`, and those of side groups -> for each clip [F, D], with an F of its own.
    finite
        Whether all values of a clip are finite, [B].
    at_once
        Number of frames in the calls for each clip, [B]; None of a backbone that makes no batches.
    """

    arrays: Mapping[str, Sequence[NDArray[Any]]]
    finite: NDArray[np.bool_]
    at_once: NDArray[np.int64] | None


@dataclass(frozen=True)
class EachFrame:
    """The `encode` of a backbone for one frame, called on each frame of clips; has the attributes of both.

    Parameters
    ----------
    encode_clips
        Encodes clips of one frame, uint8 `[B, 1, h, w, c]`.
    """

    encode_clips: Any

    clips_at_once = 1
    """Clips of a batch: each has frames enough for the calls of a network."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that this object lacks from the encoder that it wraps, `encode_clips`."""
        # Unpickling asks for special methods and for `encode_clips` before `encode_clips` is set: without the
        # next two lines this method would call itself for ever.
        if name.startswith("__") or name == "encode_clips":
            raise AttributeError(name)
        return getattr(self.encode_clips, name)

    def __call__(self, batch: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Encode clips with the same number of frames, `[B, F, h, w, c]`; `frames` is [B, F, D]."""
        arrays = self.start(list(batch)).result().arrays
        return {name: np.stack(clip_arrays) for name, clip_arrays in arrays.items()}

    def start(self, clips: Sequence[NDArray[Any]]) -> "PendingFrames":
        """Start to encode all frames of some clips; the result is waited for with `PendingFrames.result`.

        Parameters
        ----------
        clips
            Frames of each clip, uint8 [F, h, w, c]; F may differ from clip to clip.
        """
        frames: list[NDArray[Any]] = []  # of all clips, each frame as a clip of one frame, [1, h, w, c]
        for clip in clips:
            frames += [frame[np.newaxis] for frame in clip]
        start = getattr(self.encode_clips, "start", None)
        # A plain function, without `start`, encodes the frames now.
        returned = self._encode_in_batches(frames) if start is None else start(frames)
        return PendingFrames(returned, [len(clip) for clip in clips])

    def _encode_in_batches(self, frames: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Encode frames with a backbone that is a plain function, `FRAMES_AT_ONCE` at a time.

        Parameters
        ----------
        frames
            F frames, each as a clip of one frame, uint8 [1, h, w, c].

        Returns
        -------
        NDArray
            Vector of each frame, [F, 1, D].
        """
        vectors_of_batches = []
        for first in range(0, len(frames), FRAMES_AT_ONCE):
            batch = np.stack(frames[first : first + FRAMES_AT_ONCE])
            vectors_of_batches.append(self.encode_clips(batch)["frames"])
        return np.concatenate(vectors_of_batches)


@dataclass(frozen=True)
class PendingFrames:
    """Frames of clips that a backbone encodes; `result` waits for them.

    Parameters
    ----------
    returned
        What the backbone returned: vectors [F, 1, D] of all F frames, or an object whose `result` waits for
        the arrays.
    sizes
        Number of frames of each clip, at least 1.
    """

    returned: Any
    sizes: Sequence[int]

    def result(self) -> EncodedFrames:
        """Wait for the vectors of all frames of B clips, and divide them among the clips.

        The backbone has encoded the F frames of all clips one by one, as if each were a clip of one frame.

        A clip is finite if all its frames are. Its `at_once`, the number of frames that were encoded in one
        call, is the smallest of its frames.
        """
        encoded = self._wait_for_one_frame_clips()
        first_frames = np.cumsum([0, *self.sizes[:-1]])  # position of each clip's first frame, [B]
        vectors_of_clips = {}
        for name, vectors in encoded.arrays.items():
            # The array of frames, also that of a side group ("8/frames"). Of a clip of one frame `pooled` is
            # the same vector, and is left out.
            is_of_frames = name == "frames" or name.endswith("/frames")
            if is_of_frames:
                vectors_of_frames = vectors[:, 0]  # [F, 1, D] to [F, D]
                vectors_of_clips[name] = np.split(vectors_of_frames, first_frames[1:])

        # `reduceat` reduces the frames from each clip's first one up to the next clip's, [F] to [B].
        is_clip_finite = np.logical_and.reduceat(encoded.finite, first_frames)
        at_once = None
        if encoded.at_once is not None:
            at_once = np.minimum.reduceat(encoded.at_once, first_frames)
        return EncodedFrames(vectors_of_clips, is_clip_finite, at_once)

    def _wait_for_one_frame_clips(self) -> Any:
        """Wait for the backbone's result on all F frames, each of which it got as a clip of one frame.

        Returns an object with `arrays` (name -> [F, 1, D]), `finite` (whether each frame is) [F], and
        `at_once` (how many were encoded in one call) [F], None if that is not known.
        """
        is_still_pending = not isinstance(self.returned, np.ndarray)
        if is_still_pending:
            return self.returned.result()
        # A backbone that is a plain function has encoded the frames already, and returned their vectors. An
        # object with the same fields as a waiting result takes these; whether they are finite is found here.
        vectors_of_frames = self.returned.reshape(len(self.returned), -1)
        is_finite = np.isfinite(vectors_of_frames).all(axis=1)
        return SimpleNamespace(arrays={"frames": self.returned}, finite=is_finite, at_once=None)
