"""Read the samples of a sound track, mono, at the rate that is asked for, on the clock of the pictures.

A track is decoded in blocks of half a minute, each by a decoder of its own from two seconds before it, so
that a span has the same samples whatever else is read. Times are those of the frames' time stamps. Containers
round them, so a run of frames starts where all of their time stamps agree best. Frames that state no time go
on from those before, and the first ones end where the first that states one begins. Where a file has no
samples there is silence, which is counted.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from fractions import Fraction
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import av
import numpy as np
from av import ArgumentError, FFmpegError
from av.audio.stream import AudioStream
from av.stream import Discard
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.file_facts import cached_fact
from obygaze_features.video.index import index_packets
from obygaze_features.video.late_streams import reach
from obygaze_features.video.source import Source, opened, opened_to
from obygaze_features.video.stream import ENCRYPTED, ENCRYPTED_SIGNS, is_encrypted, note_side_data

BLOCK_S = 30
PREROLL_S = 1
"""Seconds that are decoded before a block and its margin: codecs need some frames to begin."""
GAPS_A_SECOND = 25
"""What is missing is counted so often."""
MARGIN_S = 1
"""Seconds before and after a block that are resampled, or measured, with it."""
JUMP_S = 0.02
"""A frame whose time stamp is so far from the end of the frame before begins another run, of most codecs."""
ROUNDED_S = 0.002
"""By how much containers round two time stamps apart."""
VORBIS_HEAD = b"\x01vorbis"
VORBIS_BLOCKS = 28
"""How the header of Vorbis begins, and its byte with the exponents of its two lengths of blocks."""
KEPT_S = BLOCK_S + 2 * (MARGIN_S + PREROLL_S)
"""Seconds of packets that are kept of joined files, more than a block needs."""
BYTES_KEPT = 1 << 26
"""Bytes of blocks that are kept, of each kind; the last block always is."""
HIGHEST_RATE = 384_000
LOUDEST = 1e18
"""Above it, a sample's square is no number of 32 bits: the sample is missing."""
PAUSE_S = 3600
TRACK_BACK_S = 0.1
"""Seconds by which the times of sound step back where a part begins; less is inexact times."""

ENCRYPTED_SOUND = ENCRYPTED.replace("pictures are", "sound is")

K = TypeVar("K")
Arrays = TypeVar("Arrays", bound=tuple[NDArray[np.float32], ...])
Samples = NDArray[np.float32]
PlacedPackets = Generator[tuple[float, Any, int], None, None]
Measure = Callable[[Samples], NDArray[Any]]


class SoundTrack:
    """A sound track of a video; `parts` reads spans of it. Blocks that were read last are kept.

    Raises
    ------
    VideoError
        The file can't be opened, or has no such track.
    """

    def __init__(self, path: Path, track: str = "") -> None:
        self.path = path
        self.track = track
        self._offset_s = index_packets(path).part_offset_s.tolist()
        n_parts = len(self._offset_s)
        self._reach = track_reach(path, track)
        with opened_to(path, self._reach) as source:
            stream = opened_track(source, track)
            self._origin = float(source.origin)
            self._rate = stream.codec_context.sample_rate
            self._jump_s = jump_s(stream.codec_context.extradata or b"", self._rate)
            every = (part for *_, part in placed(source, stream, self._offset_s))
            next(every, 0)  # encrypted sound is refused before a span of it
            if n_parts > 1:
                last = cached_fact(path, f"sound parts {track}", lambda: max(every, default=0), int)
                if last + 1 != n_parts:
                    parts = f"its pictures are joined from {n_parts} parts and its sound from {last + 1}"
                    raise VideoError(f"{parts}: join the parts anew with FFmpeg", path)
        self._ways: tuple[str, ...] = ("sound", "pictures") if n_parts == 1 else ()
        self._native: dict[int, tuple[Samples]] = {}
        self._ready: dict[tuple[int, int, Measure | None], tuple[Samples, Samples]] = {}
        self._opened = ExitStack()  # closed with this object
        self._last: deque[tuple[float, Any, int]] = deque()
        self._new: Iterator[tuple[float, Any, int]] = iter(())
        self._dropped_s = math.inf

    def parts(
        self,
        start_s: float,
        end_s: float,
        edges_s: Iterable[float],
        *,
        rate: int,
        measure: Measure | None = None,
        steps_a_second: int = 0,
    ) -> tuple[NDArray[np.float32], float]:
        """Read a span, cut at times inside it.

        Parameters
        ----------
        start_s, end_s
            The span, in seconds of the player's clock.
        edges_s
            Where it is cut.
        rate
            Samples a second.
        measure
            Turns samples into `[steps]` or `[steps, D]`, `steps_a_second`, in their place.

        Returns
        -------
        NDArray
            `[parts, L]`, or `[parts, L, D]` of what is measured: one row a part, NaN after its end.
        float
            Seconds of the span that have no samples.

        Raises
        ------
        VideoError
            The span has no samples at all.
        """
        per_s = steps_a_second or rate
        cuts = [round(max(time_s, 0.0) * per_s) for time_s in (start_s, *edges_s, end_s)]
        last = max(cuts[-1] - 1, cuts[0])
        blocks = range(cuts[0] // (per_s * BLOCK_S), last // (per_s * BLOCK_S) + 1)
        read = [self._block(block, rate, measure, per_s) for block in blocks]
        signal, gaps = (np.concatenate(each) for each in zip(*read, strict=True))
        first_s = blocks[0] * BLOCK_S
        span = slice(*(round((time_s - first_s) * GAPS_A_SECOND) for time_s in (max(start_s, 0.0), end_s)))
        missing_s = float(gaps[span].sum()) / GAPS_A_SECOND
        if missing_s >= end_s - start_s - 2 / GAPS_A_SECOND:
            raise VideoError(f"no sound between {start_s:g} and {end_s:g} s", self.path)
        first = first_s * per_s
        longest = max(1, *np.diff(cuts))
        parts = np.full((len(cuts) - 1, longest, *signal.shape[1:]), np.nan, np.float32)
        for part, (begin, end) in enumerate(pairwise(cuts)):
            taken = signal[min(begin, last) - first : max(end, begin + 1) - first]
            parts[part, : len(taken)] = taken
        return parts, missing_s

    def _block(self, block: int, rate: int, measure: Measure | None, per_s: int) -> tuple[Samples, Samples]:
        """Return the signal of a block without its margins, and the share of its samples that are missing.

        What is measured is small, and shared with other processes that read the file.
        """
        fact = f"sound {self.track} {rate} {getattr(measure, '__qualname__', '')} {block}"
        make = partial(self._read_block, block, rate, measure, per_s)
        shared = partial(cached_fact, self.path, fact, make, tuple[Samples, Samples])
        return _kept(self._ready, (block, rate, measure), make if measure is None else shared)

    def _read_block(
        self, block: int, rate: int, measure: Measure | None, per_s: int
    ) -> tuple[Samples, Samples]:
        edges_s = block * BLOCK_S - MARGIN_S, (block + 1) * BLOCK_S + MARGIN_S
        own_rate = self._rate
        (samples,) = _kept(self._native, block, lambda: (self._decode(*edges_s),))
        inner = samples[MARGIN_S * own_rate : (MARGIN_S + BLOCK_S) * own_rate]
        starts = np.arange(BLOCK_S * GAPS_A_SECOND) * own_rate // GAPS_A_SECOND
        gaps = np.add.reduceat(np.isnan(inner), starts, dtype=np.float32)
        gaps *= np.float32(GAPS_A_SECOND / own_rate)
        signal = _resampled(samples, own_rate, rate)
        signal = signal if measure is None else measure(signal)
        return np.array(signal[MARGIN_S * per_s : (MARGIN_S + BLOCK_S) * per_s], np.float32), gaps

    def _decode(self, start_s: int, end_s: int) -> Samples:
        """Return the samples between two times at the rate of the track; NaN where it has none."""
        runs: list[_Run] = []
        n = 0
        most = 2 * (end_s - start_s + 2 * PREROLL_S)
        origin = self._origin
        rate = self._rate
        begin_s = origin + start_s - PREROLL_S
        with closing(self._packets(begin_s)) as packets:
            for time_s, packet, part in packets:
                if time_s >= origin + end_s:
                    break
                with suppress(FFmpegError):  # what a damaged packet held is missing
                    for frame in packet.decode():
                        n += _add(runs, frame, origin, rate, part, longest_s=self._jump_s)
                if n > most * rate:
                    raise VideoError(
                        f"its sound has far more samples near {start_s} s than seconds", self.path
                    )
        samples = np.full((end_s - start_s) * rate, np.nan, np.float32)
        for run in runs:
            if run.start_s is None:  # no frame of it states a time
                continue
            first = round((run.start_s - start_s) * rate)
            for values in run.mono(rate):
                place = samples[max(first, 0) : max(first + len(values), 0)]
                place[:] = values[max(-first, 0) :][: len(place)]
                first += len(values)
        samples[~(np.abs(samples) < LOUDEST)] = np.nan
        return samples

    def _packets(self, begin_s: float) -> PlacedPackets:
        """Yield packets from a time on, with their times on the line of the pictures and their part.

        Some containers can be sought in by their pictures alone, and some not at all: then all is read, by a
        reader that has sought nothing, for a failed seek may move it.
        """
        for seek in self._ways if begin_s > 0 else ():
            with opened_to(self.path, self._reach) as source:
                stream = opened_track(source, self.track)
                try:
                    source.stream.discard = Discard.default if seek == "pictures" else Discard.all
                    source.container.seek(int(begin_s * av.time_base), backward=True)
                except FFmpegError:
                    self._ways = tuple(remaining for remaining in self._ways if remaining != seek)
                    continue
                source.stream.discard = Discard.all
                packets = placed(source, stream, (0.0,))
                first = next(packets, None)
                if first is not None and first[0] <= begin_s:
                    yield from (
                        timed_packet for timed_packet in chain([first], packets) if timed_packet[0] >= begin_s
                    )
                    return
        yield from self._packets_in_order(begin_s)

    def _packets_in_order(self, begin_s: float) -> PlacedPackets:
        """Yield packets from a time on where no time can be sought, as in a joined file: read once, in order.

        The last packets are kept, so that blocks in order need not be read from the start.
        """
        if begin_s < self._dropped_s:
            self._last.clear()
            self._opened.close()
            source = self._opened.enter_context(opened_to(self.path, self._reach))
            self._stream = opened_track(source, self.track)
            self._new = placed(source, self._stream, self._offset_s)
            self._dropped_s = -math.inf
        self._stream.codec_context.flush_buffers()
        yield from [timed_packet for timed_packet in self._last if timed_packet[0] >= begin_s]
        for timed_packet in self._new:
            self._last.append(timed_packet)
            while self._last[0][0] < timed_packet[0] - KEPT_S:
                self._dropped_s = self._last.popleft()[0]
            if timed_packet[0] >= begin_s:
                yield timed_packet


def jump_s(settings: bytes, rate: int) -> float:
    """Return how far a frame's time stamp is from the end of the frame before, where another run begins.

    Blocks of Vorbis are long or short, and overlap by a quarter of each (Vorbis I, 4.3.8). Some writers count
    half a block for each, and so are early or late by half of what the two lengths differ by.

    Parameters
    ----------
    settings
        The settings of a codec, as its container stores them.
    rate
        Samples a second.
    """
    exponents = settings.partition(VORBIS_HEAD)[2][VORBIS_BLOCKS - len(VORBIS_HEAD) :][:1]
    if not exponents:
        return JUMP_S
    short = 1 << (exponents[0] & 15)
    long = 1 << (exponents[0] >> 4)
    return max(JUMP_S, (long - short) / 2 / rate + ROUNDED_S)


def track_reach(path: Path, track: str = "") -> int:
    """Return how many bytes of a file to look through to know a sound track; 0 if opening it is enough.

    Of tracks that appear after the beginning, broadcast and discs have many: the default is one of those at
    the beginning, if there are any.

    Raises
    ------
    VideoError
        The track may be one that begins too far behind.
    """
    late = [stream for stream in index_packets(path).late if stream.kind == "audio"]
    if not late:
        return 0
    with opened(path) as source:
        announced = source.container.streams.audio
        languages = {stream.metadata.get("language", "") for stream in announced}
        is_number = track.isdecimal() and int(track) < len(announced)
        is_known = bool(announced) if not track else is_number or track in languages
    return 0 if is_known else reach(path, late)


def opened_track(source: Source, track: str = "") -> AudioStream:
    """Read a sound track in place of the pictures: by number, by language, or the one that players choose.

    Raises
    ------
    VideoError
        There is no such track.
    """
    every: list[Any] = list(source.container.streams.audio)
    decodable: list[AudioStream] = [stream for stream in every if stream.codec_context is not None]
    languages = [stream.metadata.get("language", "") for stream in every]
    best: Any = source.container.streams.best("audio")
    if not decodable:
        reason = "no sound track of a codec that is known here" if every else "no sound track"
        raise VideoError(reason, source.path)
    if not track:
        stream = best if best in decodable else decodable[0]
    elif track.isdecimal() and int(track) < len(every):
        stream = every[int(track)]
    elif track in languages:
        of_language = [stream for stream, name in zip(every, languages, strict=True) if name == track]
        stream = next((stream for stream in of_language if stream in decodable), of_language[0])
    else:
        tracks = ", ".join(f"{number} {language}".strip() for number, language in enumerate(languages))
        raise VideoError(f"no sound track '{track}'; there is {tracks}", source.path)
    if stream not in decodable:
        raise VideoError(f"the codec of sound track '{track}' is not known here", source.path)
    if is_encrypted(stream, source.container):
        raise VideoError(ENCRYPTED_SOUND, source.path)
    listed = stream.index_entries
    if len(listed) > 1 and listed[0].timestamp == listed[-1].timestamp:
        raise VideoError("all times of its sound are equal: when it is heard is not known", source.path)
    stream.discard = Discard.default
    source.stream.discard = Discard.all
    if not 0 < stream.codec_context.sample_rate <= HIGHEST_RATE:
        raise VideoError(f"its sound has {stream.codec_context.sample_rate} samples a second", source.path)
    return stream


def placed(
    source: Source, stream: AudioStream, offset_s: Sequence[float]
) -> Iterator[tuple[float, Any, int]]:
    """Yield the packets of a track with their times on the line of the pictures and their part.

    A packet that states no time has that of the one before it. The k-th part of the track, by its own times,
    is moved as the k-th part of the pictures is.

    Parameters
    ----------
    offset_s
        Shape [K]: seconds that are added to the times of each part of the pictures.
    """
    tick_s = float(stream.time_base or 0)
    time_s = -math.inf
    part = 0
    latest_s = -math.inf
    longest_s = PAUSE_S if len(offset_s) > 1 else math.inf  # a pause, where the pictures have one too
    side_data = set[str]()
    for packet in _to_damage(source.demux(stream)):
        note_side_data(packet, side_data)
        if not ENCRYPTED_SIGNS.isdisjoint(side_data):
            raise VideoError(ENCRYPTED_SOUND, source.path)
        stamp = packet.dts if packet.pts is None else packet.pts
        if packet.size and stamp is not None:
            own_s = stamp * tick_s
            if latest_s > -math.inf and not -TRACK_BACK_S <= own_s - latest_s <= longest_s:
                part = part + 1
                latest_s = own_s
            latest_s = max(own_s, latest_s)
            time_s = own_s + offset_s[min(part, len(offset_s) - 1)]
            packet.pts = round(time_s / tick_s)
        if packet.size:
            yield time_s, packet, part


def _to_damage(packets: Iterable[Any]) -> Iterator[Any]:
    """Yield packets as far as FFmpeg can read; what a damaged file holds behind is counted as missing."""
    with suppress(FFmpegError):
        yield from packets


class _Run:
    """Frames of one kind and part without a gap: their samples, mixed, and when the run starts by each."""

    def __init__(self, kind: tuple[str, str, int, int]) -> None:
        self.kind = kind
        *_, self.rate = kind
        self.n = 0
        self._starts_s: list[float] = []
        self._resampler: av.AudioResampler | None = av.AudioResampler(format="flt", layout="mono")
        self._values: list[Samples] = []

    @property
    def start_s(self) -> float | None:
        """The median of what its time stamps say, which one odd stamp does not move (phones write some)."""
        if not self._starts_s:
            return None
        middle = len(self._starts_s) // 2
        return (self._starts_s[middle] + self._starts_s[~middle]) / 2

    def is_far(self, time_s: float | None, longest_s: float) -> bool:
        """Whether a frame of this time is farther than `longest_s` from the run's end."""
        start_s = self.start_s
        if time_s is None or start_s is None:
            return False
        return abs(time_s - self.n / self.rate - start_s) > longest_s

    def add(self, frame: Any, time_s: float | None) -> None:
        """Add a frame; its time, if it states one, says when the run starts."""
        if time_s is not None:
            insort(self._starts_s, time_s - self.n / self.rate)
        self._values += self._mixed(frame)
        self.n += frame.samples

    def mono(self, rate: int) -> list[Samples]:
        """Return the samples, mixed from all channels as they came, at a rate."""
        values = [*self._values, *self._mixed(None)]
        return values if rate == self.rate else [_resampled(np.concatenate(values), self.rate, rate)]

    def _mixed(self, frame: Any) -> list[Samples]:
        """Mix channels by libswresample, or with equal weights where it knows no places; None ends it."""
        if self._resampler is not None:
            try:
                return [part.to_ndarray()[0] for part in self._resampler.resample(frame)]
            except ArgumentError:
                self._resampler = None
        if frame is None:
            return []
        values = frame.to_ndarray()
        n = frame.layout.nb_channels
        mixed = (values if frame.format.is_planar else values.reshape(-1, n).T).mean(axis=0, dtype=np.float64)
        if values.dtype.kind == "u":
            mixed = mixed - 128
        if values.dtype.kind != "f":
            mixed = mixed / 2.0 ** (8 * values.itemsize - 1)
        return [mixed.astype(np.float32)]


def _add(runs: list[_Run], frame: Any, origin: float, rate: int, part: int, *, longest_s: float) -> int:
    """Add a decoded frame to the run that it goes on, or begin another; return how many samples it adds."""
    if not 0 < frame.sample_rate <= HIGHEST_RATE:
        return 0
    kind = frame.format.name, frame.layout.name, part, frame.sample_rate
    time_s = None if frame.time is None else frame.time - origin
    if not runs or runs[-1].kind != kind or runs[-1].is_far(time_s, longest_s):
        runs.append(_Run(kind))
    run = runs[-1]
    run.add(frame, time_s)
    return int(frame.samples) * rate // run.rate


def _resampled(samples: Samples, rate: int, rate_wanted: int) -> Samples:
    """Make `rate_wanted` samples a second with libswresample, second by second; silence of NaN."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=rate_wanted)
    blocks = []
    for first in (*range(0, len(samples), rate), None):
        frame: Any = None
        if first is not None:
            block = np.nan_to_num(samples[None, first : first + rate], posinf=0.0, neginf=0.0)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout="mono")
            frame.sample_rate = rate
            frame.time_base = Fraction(1, rate)
            frame.pts = first
        blocks += [part.to_ndarray()[0] for part in resampler.resample(frame)]
    n = len(samples) * rate_wanted // rate
    return np.concatenate([*blocks, np.zeros(n, np.float32)])[:n]


def _kept(cache: dict[K, Arrays], key: K, make: Callable[[], Arrays]) -> Arrays:
    """Return the arrays that were made for a key, or make them; those asked for last are kept."""
    cache[key] = cache.pop(key) if key in cache else make()
    while len(cache) > 1 and sum(array.nbytes for arrays in cache.values() for array in arrays) > BYTES_KEPT:
        del cache[next(iter(cache))]
    return cache[key]
