"""Write films that have sound: given samples, in given codecs and containers."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from tests.priority import ordinary_priority

RATE = 44_100
PICTURES = {".avi": "mpeg4", ".vob": "mpeg2video"}
"""Codecs of pictures where H.264 isn't usual."""


def clicks(times_s: Sequence[float], seconds: float, rate: int = RATE) -> NDArray[np.float32]:
    """Make silence with one loud sample at each time."""
    samples = np.zeros(round(seconds * rate), np.float32)
    samples[[round(time_s * rate) for time_s in times_s]] = 0.9
    return samples


def tone(hz: float, seconds: float, level: float = 0.1, rate: int = RATE) -> NDArray[np.float32]:
    """Make a sine of an amplitude."""
    return (level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def write_film(
    path: Path,
    tracks: Mapping[str, NDArray[np.float32]],
    *,
    seconds: float,
    codec: str = "aac",
    rate: int = RATE,
    layout: str = "mono",
    gap: tuple[float, float] | None = None,
    grey: int = 90,
    pictures: Iterable[NDArray[np.uint8]] | None = None,
    wide_high: tuple[int, int] = (64, 48),
) -> Path:
    """Write a film of `seconds` at 25 frames a second, of one grey, with sound tracks by language.

    Every channel has the same samples.

    Parameters
    ----------
    gap
        Sound between these times, in seconds, is left out; what follows keeps its time stamps.
    pictures, wide_high
        What is seen, in place of the grey; width and height.
    """
    with ordinary_priority(), av.open(str(path), "w") as output:
        video = output.add_stream(PICTURES.get(path.suffix, "libx264"), rate=25)
        (video.width, video.height) = wide_high
        video.pix_fmt = "yuv420p"
        video.codec_context.thread_count = 1
        sounds = []
        for language, samples in tracks.items():
            stream = output.add_stream(codec, rate=rate, layout=layout)
            stream.metadata["language"] = language
            sounds.append((stream, samples))
        done = dict.fromkeys(tracks, 0)
        seen = iter(pictures or ())
        # Alternately, so that readers find both near each other.
        for number in range(round(25 * seconds) + 1):
            if number < round(25 * seconds):
                plain = np.full((*wide_high[::-1], 3), grey, np.uint8)
                picture = plain if pictures is None else next(seen)
                frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
                frame.pts = number
                frame.time_base = Fraction(1, 25)
                output.mux(video.encode(frame))
            for (stream, samples), language in zip(sounds, tracks, strict=True):
                size = stream.codec_context.frame_size or 1024
                while done[language] < len(samples) and (
                    done[language] <= number * rate / 25 or number == round(25 * seconds)
                ):
                    first = done[language]
                    done[language] += size
                    if gap and gap[0] * rate <= first < gap[1] * rate:
                        continue
                    some = np.pad(samples[first : first + size], (0, max(first + size - len(samples), 0)))
                    sound = av.AudioFrame.from_ndarray(
                        np.tile(some, (stream.codec_context.channels, 1)), format="fltp", layout=layout
                    )
                    sound.sample_rate = rate
                    sound.pts = first
                    sound.time_base = Fraction(1, rate)
                    output.mux(stream.encode(sound))
        for stream in (video, *(stream for stream, _ in sounds)):
            output.mux(stream.encode(None))
    return path


def write_channels(
    path: Path, n: int, samples: NDArray[np.int16], rate: int, codec: str = "pcm_s16le"
) -> Path:
    """Write a film with one sound track of n channels without places, each with these samples."""
    with ordinary_priority(), av.open(str(path), "w") as output:
        video = output.add_stream("mpeg4", rate=1)
        video.width = 64
        video.height = 48
        video.pix_fmt = "yuv420p"
        sound = output.add_stream(codec, rate=rate, layout=f"{n} channels")
        sound.format = "s16"
        for number in range(-(-len(samples) // rate)):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 90, np.uint8), format="rgb24")
            frame.pts = number
            frame.time_base = Fraction(1, 1)
            output.mux(video.encode(frame))
        size = sound.codec_context.frame_size or rate
        for first in range(0, len(samples), size):
            packed = np.repeat(samples[first : first + size], n)[None]
            heard = av.AudioFrame.from_ndarray(packed, format="s16", layout=f"{n} channels")
            heard.sample_rate = rate
            heard.pts = first
            heard.time_base = Fraction(1, rate)
            output.mux(sound.encode(heard))
        for stream in (sound, video):
            output.mux(stream.encode(None))
    return path
