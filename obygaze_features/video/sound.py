"""Read the samples of a sound track, mono, at the rate that is asked for, on the clock of the pictures.

A track is decoded in blocks of half a minute, each by a decoder of its own from two seconds before it, so
that a span has the same samples whatever else is read. Times are those of the frames' time stamps. Containers
round them, so a run of frames starts at the median of what its time stamps say. Frames that state no time
follow the frames before; those before the first time stamp end where its frame begins. Where a file has no
samples there is silence, which is counted.
"""

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import av
import numpy as np
from av import ArgumentError, FFmpegError
from av.audio.stream import AudioStream
from av.stream import Discard
from numpy.typing import NDArray

from obygaze_features.errors import VideoError
from obygaze_features.video.file_facts import cached_fact, files_of
from obygaze_features.video.index import index_packets
from obygaze_features.video.joined_sound import Seam, parts_of_other_settings, settings_of
from obygaze_features.video.late_streams import LateStream, bytes_to_probe, late_streams
from obygaze_features.video.packets import ListedStream
from obygaze_features.video.source import Source, opened, opened_to
from obygaze_features.video.stream import ENCRYPTED, ENCRYPTED_SIGNS, is_encrypted, note_side_data

BLOCK_S = 30
PREROLL_S = 1
"""Seconds that are decoded before a block and its margin: codecs need some frames to begin."""
GAPS_A_SECOND = 25
"""Intervals of a second in which missing samples are counted."""
MARGIN_S = 1
"""Seconds before and after a block that are resampled, or measured, with it."""
JUMP_S = 0.02
"""Seconds between a frame's time stamp and the end of the frame before, from which on another run begins."""
ROUNDED_S = 0.002
"""Seconds by which containers round two time stamps apart."""
VORBIS_HEAD = b"\x01vorbis"
"""How the header of Vorbis begins."""
VORBIS_BLOCKS = 28
"""The byte of the header of Vorbis with the exponents of its two block lengths."""
KEPT_S = BLOCK_S + 2 * (MARGIN_S + PREROLL_S)
"""Seconds of packets of joined files that are kept in memory: more than a block needs."""
BYTES_KEPT = 1 << 26
"""Bytes of blocks that are kept in memory, of each kind; the last block always is."""
HIGHEST_RATE = 384_000
"""Samples a second of the highest rate that is read; above it the header is damaged."""
LOUDEST = 1e18
"""Size of a sample above which its square is no number of 32 bits, so that the sample counts as missing."""
PAUSE_S = 3600
"""Longest pause in a track of a joined file, in seconds; a longer one begins a part."""
TRACK_BACK_S = 0.1
"""Seconds by which the times of sound step back at least where a part begins; by less, times are inexact."""
MIN_SOUND = 2
"""Intervals with samples (see `GAPS_A_SECOND`) that a span needs: fewer may be rounding at its ends."""

OTHER_SOUND_SETTINGS = (
    "a joined file has other settings of its sound, which are not read: join films with FFmpeg"
)
ENCRYPTED_SOUND = ENCRYPTED.replace("pictures are", "sound is")

K = TypeVar("K")
Arrays = TypeVar("Arrays", bound=tuple[NDArray[np.float32], ...])
Samples = NDArray[np.float32]
Measure = Callable[[Samples], NDArray[Any]]
"""Turns samples [L] into values [steps] or [steps, D]."""


class PlacedPacket(NamedTuple):
    """A packet of a track, its time in seconds on the line of the pictures, and its part of the track."""

    time_s: float
    packet: Any
    part: int


PlacedPackets = Generator[PlacedPacket, None, None]


class SoundTrack:
    """A sound track of a video; `parts` reads spans of it. Blocks that were read last stay in memory.

    Parameters
    ----------
    path
        A video file.
    track
        Number or language of the track; empty for the one that players choose.

    Raises
    ------
    VideoError
        The file can't be opened, or has no such track.
    """

    def __init__(self, path: Path, track: str = "") -> None:
        """Open the file to choose the track and check that it can be read; then close it again.

        Spans of sound are decoded later, when they are asked for.
        """
        self.path = path
        self.track = track
        # Of each part of a joined file: seconds that are added to its times.
        self._offset_s = index_packets(path).part_offset_s.tolist()
        is_joined = len(self._offset_s) > 1
        # Where tracks appear late in the file, FFmpeg must look through many bytes to find the track.
        self._bytes_to_probe = bytes_to_probe_for_track(path, track)
        with opened_to(path, self._bytes_to_probe) as source:
            stream = opened_track(source, track)
            self._origin = float(source.origin)
            self._rate = stream.codec_context.sample_rate
            self._jump_s = jump_s(stream.codec_context.extradata or b"", self._rate)

            packets = timed_packets(source, stream, self._offset_s)
            next(packets, None)  # refuses encrypted sound now, not when a span is read

            self._unread_parts: frozenset[int] = frozenset()  # parts whose codec has other settings
            if is_joined:
                seams = self._seams(packets)  # reads the other packets
                if "matroska" in source.formats:
                    settings = settings_of(stream)
                    self._unread_parts = parts_of_other_settings(path, settings, stream.index, seams)

        # Streams by whose times the file can be sought in. Times of joined files are not unique.
        self._seekable: tuple[str, ...] = () if is_joined else ("sound", "pictures")
        self._from_start = _PacketsFromStart(path, track, self._bytes_to_probe, self._offset_s)

        # Two caches of blocks, so that neither is decoded, nor resampled and measured, again:
        # number of a block -> its samples, as they are decoded (a tuple of one array, for `_get_or_compute`);
        self._decoded: dict[int, tuple[Samples]] = {}
        # number of a block, rate and measure -> what `_block` returns for these.
        self._resampled_or_measured: dict[tuple[int, int, Measure | None], tuple[Samples, Samples]] = {}

    def _seams(self, packets: Iterable[PlacedPacket]) -> list[Seam]:
        """Find where the parts of the sound of a joined file begin.

        They must be as many as those of its pictures. Otherwise it is not known which part of the sound
        belongs to which part of the pictures.

        Parameters
        ----------
        packets
            The packets of the sound track behind the first, with the part that each belongs to.

        Raises
        ------
        VideoError
            They are more or fewer.
        """

        def read_seams() -> list[Seam]:
            """Read all packets, and return where each part but the first begins."""
            seams = []
            part_before = 0
            byte_before = 0  # of the file, at which the packet before begins
            for placed in packets:
                byte = placed.packet.pos or byte_before  # FFmpeg may not know where a packet begins
                if placed.part > part_before:
                    seams.append(Seam(last_before=byte_before, first=byte))
                part_before = placed.part
                byte_before = byte
            return seams

        # To read all packets takes time, so the result is shared with other processes.
        seams = cached_fact(self.path, f"sound seams {self.track}", read_seams, list[Seam])
        n_parts = len(self._offset_s)  # of the pictures: each has an offset
        n_track_parts = len(seams) + 1
        if n_track_parts != n_parts:
            parts = f"its pictures are joined from {n_parts} parts and its sound from {n_track_parts}"
            raise VideoError(f"{parts}: join the parts anew with FFmpeg", self.path)
        return seams

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
        """Read the sound of a span, cut into parts at some times inside it.

        (These parts have nothing to do with those of a joined file.) Sound is decoded in blocks of half a
        minute, all of those that the span touches, and the span is cut out of them.

        Parameters
        ----------
        start_s, end_s
            The span, in seconds of the player's clock.
        edges_s
            Where it is cut.
        rate
            Samples a second.
        measure
            Function of the samples, such as a loudness or a spectrogram; if given, its values are returned in
            place of the samples.
        steps_a_second
            Number of values that `measure` returns for a second of samples.

        Returns
        -------
        NDArray
            `[parts, L]`, or `[parts, L, D]` of measured values: one row a part, NaN after its end.
        float
            Seconds of the span that have no samples.

        Raises
        ------
        VideoError
            The span has no samples at all.
        """
        # Values are samples, or what is measured of them. They are numbered from the start of the file.
        values_a_second = steps_a_second or rate
        # A part begins at each cut but the last, and ends at the next one.
        cut_times_s = (start_s, *edges_s, end_s)
        cuts = [round(max(time_s, 0.0) * values_a_second) for time_s in cut_times_s]  # numbers of values
        first_value = cuts[0]
        last_value = max(cuts[-1] - 1, first_value)

        # Read the blocks that hold these values.
        values_a_block = values_a_second * BLOCK_S
        first_block = first_value // values_a_block
        last_block = last_value // values_a_block
        values_of_blocks = []
        missing_of_blocks = []
        for block in range(first_block, last_block + 1):
            values, missing = self._block(block, rate, measure, values_a_second)
            values_of_blocks.append(values)
            missing_of_blocks.append(missing)

        missing = np.concatenate(missing_of_blocks)  # share of each interval, `GAPS_A_SECOND` a second
        missing_s = _missing_seconds(missing, first_block * BLOCK_S, start_s, end_s)
        min_sound_s = MIN_SOUND / GAPS_A_SECOND  # less may be rounding at the ends of the span
        if missing_s >= end_s - start_s - min_sound_s:
            location = f"between {start_s:g} and {end_s:g} s"
            if self._unread_parts:
                raise VideoError(f"no sound that is read {location}: {OTHER_SOUND_SETTINGS}", self.path)
            raise VideoError(f"no sound {location}", self.path)

        signal = np.concatenate(values_of_blocks)  # from the start of the first block on
        cuts_in_signal = [cut - first_block * values_a_block for cut in cuts]
        return _cut_into_parts(signal, cuts_in_signal), missing_s

    def _block(self, block: int, rate: int, measure: Measure | None, per_s: int) -> tuple[Samples, Samples]:
        """Return the samples, or measured values, of a block of `BLOCK_S` seconds; from memory if there.

        Measured values are small, and are shared with other processes that read the file.

        Returns
        -------
        NDArray
            Samples or measured values of the block, without its margins.
        NDArray
            Shape [BLOCK_S * GAPS_A_SECOND]: share of the samples of each interval that are missing.
        """

        def read() -> tuple[Samples, Samples]:
            """Read the block from the file."""
            return self._read_block(block, rate, measure, per_s)

        def read_or_get_shared() -> tuple[Samples, Samples]:
            """Read the block from the file, unless another process has shared its values."""
            name_of_measure = getattr(measure, "__qualname__", "")
            fact = f"sound {self.track} {rate} {name_of_measure} {block}"
            return cached_fact(self.path, fact, read, tuple[Samples, Samples])

        key = (block, rate, measure)
        has_small_values = measure is not None
        compute = read_or_get_shared if has_small_values else read
        return _get_or_compute(self._resampled_or_measured, key, compute)

    def _read_block(
        self, block: int, rate: int, measure: Measure | None, per_s: int
    ) -> tuple[Samples, Samples]:
        """Decode a block with its margins, resample and measure it.

        The margins, a second before and after the block, are cut off at the end: near an edge of its samples,
        a resampler or a measure returns other values.

        Parameters
        ----------
        block
            Number of the block.
        rate
            Samples a second to which the sound is resampled; the track has `self._rate`.
        measure
            Function of the resampled samples, whose values are returned in place of these; or None.
        per_s
            Values a second that are returned: those of `measure`, or `rate`.

        Returns
        -------
        NDArray
            Samples or measured values of the block, without its margins.
        NDArray
            Shape [BLOCK_S * GAPS_A_SECOND]: share of the samples of each interval that are missing.
        """
        samples = self._decoded_block(block)
        missing = _share_missing(_without_margins(samples, self._rate), self._rate)
        values: NDArray[Any] = _resample(samples, self._rate, rate)
        if measure is not None:
            values = measure(values)
        return np.array(_without_margins(values, per_s), np.float32), missing

    def _decoded_block(self, block: int) -> Samples:
        """Return the samples of a block with its margins, at the rate of the track; from memory if there."""
        start_s = block * BLOCK_S
        end_s = start_s + BLOCK_S

        def decode() -> tuple[Samples]:
            """Decode the block and its margins."""
            return (self._decode(start_s - MARGIN_S, end_s + MARGIN_S),)

        (samples,) = _get_or_compute(self._decoded, block, decode)
        return samples

    def _decode(self, start_s: int, end_s: int) -> Samples:
        """Decode the sound between two times in seconds, mixed to one channel, at the rate of the track.

        Returns
        -------
        NDArray
            float32, [samples]; NaN where the track has none.
        """
        rate = self._rate
        samples = np.full((end_s - start_s) * rate, np.nan, np.float32)
        for run in self._runs(start_s, end_s):
            if run.start_s is None:  # no frame of it states a time
                continue
            position = round((run.start_s - start_s) * rate)  # of the run's next values in `samples`
            for values in run.mono(rate):
                _place(values, samples, position)
                position += len(values)
        is_number = np.abs(samples) < LOUDEST  # False for NaN and infinity, too, which damage can give
        samples[~is_number] = np.nan
        return samples

    def _runs(self, start_s: int, end_s: int) -> "list[_Run]":
        """Decode the frames of sound between two times in seconds, and join them to runs without gaps.

        Raises
        ------
        VideoError
            There are so many samples that the times of the sound cannot be right.
        """
        runs: list[_Run] = []  # `_decode_packet` adds to it
        origin = self._origin
        n_samples = 0
        longest_s = end_s - start_s + 2 * PREROLL_S
        max_samples = 2 * longest_s * self._rate  # twice as many as can be right
        with closing(self._packets(origin + start_s - PREROLL_S)) as packets:
            for packet in packets:
                if packet.time_s >= origin + end_s:
                    break
                if packet.part in self._unread_parts:
                    continue
                n_samples += self._decode_packet(packet, runs)
                if n_samples > max_samples:
                    message = f"its sound has far more samples near {start_s} s than seconds"
                    raise VideoError(message, self.path)
        return runs

    def _decode_packet(self, placed: PlacedPacket, runs: "list[_Run]") -> int:
        """Decode the frames of a packet and add them to the runs; return how many samples they have.

        Nothing is added from where the packet is damaged.
        """
        n_samples = 0
        with suppress(FFmpegError):
            for frame in placed.packet.decode():
                n_samples += self._add_frame(frame, placed.part, runs)
        return n_samples

    def _add_frame(self, frame: Any, part: int, runs: "list[_Run]") -> int:
        """Add a decoded frame of a part of the track to the last run if it continues it, else to a new one.

        Return how many samples it has, at the rate of the track.
        """
        if not 0 < frame.sample_rate <= HIGHEST_RATE:  # damaged
            return 0
        kind = _FrameKind(frame.format.name, frame.layout.name, part, frame.sample_rate)
        time_s = None if frame.time is None else frame.time - self._origin
        run = runs[-1] if runs else None
        begins_new_run = run is None or run.kind != kind or run.is_far(time_s, self._jump_s)
        if run is None or begins_new_run:
            run = _Run(kind)
            runs.append(run)
        run.add(frame, time_s)
        return int(frame.samples) * self._rate // kind.rate

    def _packets(self, begin_s: float) -> PlacedPackets:
        """Yield the packets of the track from a time on, in seconds of the stream.

        To get there the file is sought in: by the times of the sound first, then by those of the pictures,
        which is all that some containers allow. A seek may fail, or lead too far. If both do, the file is
        read from its start; it is opened anew for that, because a failed seek may move the reader.
        """
        stream_kinds = self._seekable if begin_s > 0 else ()
        for stream_kind in stream_kinds:
            with opened_to(self.path, self._bytes_to_probe) as source:
                packets = self._packets_after_seek(source, stream_kind, begin_s)
                first = next(packets, None)
                has_reached = first is not None and first.time_s <= begin_s
                if first is None or not has_reached:  # the seek failed, or led too far
                    continue
                for packet in chain([first], packets):
                    if packet.time_s >= begin_s:
                        yield packet
                return
        yield from self._from_start.packets(begin_s)

    def _packets_after_seek(self, source: Source, stream_kind: str, begin_s: float) -> Iterator[PlacedPacket]:
        """Yield the packets from where a seek leads; none if it fails.

        After a failure, the file is never again sought in by the times of the same stream.

        Parameters
        ----------
        source
            The file, newly opened.
        stream_kind
            `sound` or `pictures`: whose times are sought.
        begin_s
            The time that is sought, in seconds of the stream.
        """
        track = opened_track(source, self.track)
        # FFmpeg seeks by the streams that are not discarded, and then reads these.
        source.stream.discard = Discard.default if stream_kind == "pictures" else Discard.all
        try:
            source.container.seek(int(begin_s * av.time_base), backward=True)
        except FFmpegError:
            self._seekable = tuple(kind for kind in self._seekable if kind != stream_kind)
            return
        source.stream.discard = Discard.all
        yield from timed_packets(source, track, (0.0,))


class _PacketsFromStart:
    """Packets of a track of a file in which times cannot be sought, such as a joined one.

    The file is read from its start on, and stays open: the next call goes on where the last one stopped. The
    last `KEPT_S` seconds of packets are kept in memory, because blocks that are read in order overlap. For an
    earlier time the file is opened again.

    Parameters
    ----------
    path
        A video file.
    track
        Number or language of the track; empty for the one that players choose.
    n_bytes_to_probe
        Bytes that FFmpeg must look through to find the track.
    offset_s
        Seconds that are added to the times of each part of a joined file.
    """

    def __init__(self, path: Path, track: str, n_bytes_to_probe: int, offset_s: Sequence[float]) -> None:
        """Open nothing yet; the first call of `packets` does."""
        self._path = path
        self._track = track
        self._bytes_to_probe = n_bytes_to_probe
        self._offset_s = offset_s
        self._opened = ExitStack()  # closed with this object
        # The packets of the file, in three stretches: those no longer in memory, up to `_dropped_to_s`; those
        # in memory; and those not read yet. As long as no file is open, all count as dropped.
        self._dropped_to_s = math.inf
        self._packets_in_memory: deque[PlacedPacket] = deque()
        self._unread_packets: Iterator[PlacedPacket] = iter(())

    def packets(self, begin_s: float) -> Iterator[PlacedPacket]:
        """Yield the packets from a time on, in seconds of the stream: those in memory, then further ones.

        Packets that are read from the file are kept in memory for later calls, as long as they are among the
        last `KEPT_S` seconds.
        """
        needs_dropped_packets = begin_s < self._dropped_to_s
        if needs_dropped_packets:
            self._open_at_start()
        self._stream.codec_context.flush_buffers()  # as the decoder may have seen later packets

        late_enough = [packet for packet in self._packets_in_memory if packet.time_s >= begin_s]
        yield from late_enough

        for packet in self._unread_packets:
            self._packets_in_memory.append(packet)
            while self._packets_in_memory[0].time_s < packet.time_s - KEPT_S:
                dropped = self._packets_in_memory.popleft()
                self._dropped_to_s = dropped.time_s
            if packet.time_s >= begin_s:
                yield packet

    def _open_at_start(self) -> None:
        """Open the file, or open it anew, to read it from its start on; forget the packets in memory."""
        self._packets_in_memory.clear()
        self._opened.close()
        source = self._opened.enter_context(opened_to(self._path, self._bytes_to_probe))
        self._stream = opened_track(source, self._track)
        self._unread_packets = timed_packets(source, self._stream, self._offset_s)
        self._dropped_to_s = -math.inf


def _cut_into_parts(signal: NDArray[Any], cuts: Sequence[int]) -> Samples:
    """Cut a signal into parts of any lengths, as the rows of one array, filled up with NaN at their ends.

    A part of less than one value gets the value at its start, so that no part is empty. For example, the cuts
    2, 2, 5 give the rows [value 2, NaN, NaN] and [values 2, 3, 4].

    Parameters
    ----------
    signal
        Shape [values], or [values, D].
    cuts
        Positions in the signal at which the parts begin, and at which the last one ends.

    Returns
    -------
    NDArray
        float32 [parts, L] or [parts, L, D], where L is the length of the longest part.
    """
    n_parts = len(cuts) - 1
    last_value = max(cuts[-1] - 1, cuts[0])
    longest = max(1, *np.diff(cuts))
    parts = np.full((n_parts, longest, *signal.shape[1:]), np.nan, np.float32)
    for row, (start, end) in enumerate(pairwise(cuts)):
        # An empty part takes one value: that at its start, or, at the very end of the span, the last one.
        start_with_value = min(start, last_value)
        end_with_value = max(end, start + 1)
        values = signal[start_with_value:end_with_value]
        parts[row, : len(values)] = values
    return parts


def jump_s(settings: bytes, rate: int) -> float:
    """Return by how many seconds a frame of sound may begin late or early without a gap in the sound.

    Time stamps are inexact. For most codecs it is `JUMP_S`.

    Vorbis has blocks of two lengths, which overlap. Between the middles of two successive blocks lie
    (length of the one) / 4 + (length of the other) / 4 samples (Vorbis I, 4.3.8). Some writers count half a
    block instead, which is the same only for blocks of equal lengths. Their time stamps are taken to be wrong
    by up to half the difference of the two lengths.

    Parameters
    ----------
    settings
        The settings of a codec, as its container stores them.
    rate
        Samples a second.
    """
    header_start = settings.find(VORBIS_HEAD)
    blocks_byte = header_start + VORBIS_BLOCKS  # the byte that states the two lengths
    if header_start < 0 or blocks_byte >= len(settings):  # another codec, or cut off
        return JUMP_S
    # The lengths are powers of 2; each exponent has half of the byte.
    exponents = settings[blocks_byte]
    short_exponent = exponents & 0b1111
    long_exponent = exponents >> 4
    short_block = 1 << short_exponent
    long_block = 1 << long_exponent
    most_wrong = (long_block - short_block) / 2  # samples
    return max(JUMP_S, most_wrong / rate + ROUNDED_S)


def bytes_to_probe_for_track(path: Path, track: str = "") -> int:
    """Return how many bytes of a file FFmpeg must look through to find a sound track; 0 for its usual number.

    In recordings of broadcasts and in discs, tracks may appear after the beginning of the file. If no track
    is named, one at the beginning is taken, if there is any. A track may also be announced at the beginning,
    with a number and no more, and its sound begin later: then FFmpeg must look up to there for its rate.

    Parameters
    ----------
    path
        A video file.
    track
        Number or language of the track; empty for the one that players choose.

    Raises
    ------
    VideoError
        The track may be one that begins too late in the file.
    """
    late_tracks = [stream for stream in index_packets(path).late if stream.kind == "audio"]
    with opened(path) as source:
        early_tracks = source.container.streams.audio  # those that FFmpeg knows when it opens the file
        languages = {stream.metadata.get("language", "") for stream in early_tracks}
        if not track:
            begins_early = len(early_tracks) > 0
        elif track.isdecimal() and int(track) < len(early_tracks):
            begins_early = True
        else:
            begins_early = track in languages
        # The tracks up to whose first packets FFmpeg must look; none if it knows the track well enough.
        tracks_to_find = _announced_without_rate(source, track) if begins_early else late_tracks
    return bytes_to_probe(path, tracks_to_find)


def _announced_without_rate(source: Source, track: str) -> list[LateStream]:
    """Return where the chosen track of a file begins, if only its number and codec are known at opening.

    This is so if a recording announces sound that begins some seconds after its pictures. In all other cases
    the list is empty; also if there is no such track, of which `opened_track` says why.
    """
    try:
        stream = _chosen_track(source, track)
    except VideoError:
        return []
    context: Any = stream.codec_context  # None, against its annotation, if FFmpeg has no decoder
    if context is None or context.sample_rate > 0:  # nothing can be learned, or the rate is known
        return []
    announced_track = ListedStream(stream.index, stream.id, "audio", context.name)
    # Its first packets are searched for: the list is of this one track, or empty if it has none.
    return late_streams(files_of(source.path), source.formats, [announced_track])


def opened_track(source: Source, track: str = "") -> AudioStream:
    """Choose a sound track of an open file, and make FFmpeg read it instead of the pictures.

    Parameters
    ----------
    source
        An open file.
    track
        Number or language of the track; empty for the one that players choose.

    Raises
    ------
    VideoError
        There is no such track, or it cannot be read.
    """
    stream = _chosen_track(source, track)
    if stream.codec_context is None:
        raise VideoError(f"the codec of sound track '{track}' is not known here", source.path)
    if is_encrypted(stream, source.container):
        raise VideoError(ENCRYPTED_SOUND, source.path)
    entries = stream.index_entries  # of the container, in the order of time
    if len(entries) > 1 and entries[0].timestamp == entries[-1].timestamp:
        raise VideoError("all times of its sound are equal: when it is heard is not known", source.path)
    rate = stream.codec_context.sample_rate
    if not 0 < rate <= HIGHEST_RATE:
        raise VideoError(f"its sound has {rate} samples a second", source.path)

    # FFmpeg reads the streams that are not discarded.
    stream.discard = Discard.default
    source.stream.discard = Discard.all
    return stream


def _chosen_track(source: Source, track: str) -> AudioStream:
    """Return the sound track with a number or language, or the one that players choose.

    Raises
    ------
    VideoError
        There is none.
    """
    streams: list[Any] = list(source.container.streams.audio)
    decodable: list[AudioStream] = [stream for stream in streams if stream.codec_context is not None]
    if not streams:
        raise VideoError("no sound track", source.path)
    if not decodable:
        raise VideoError("no sound track of a codec that is known here", source.path)

    if not track:
        best: Any = source.container.streams.best("audio")
        return best if best in decodable else decodable[0]

    if track.isdecimal() and int(track) < len(streams):
        numbered_stream: AudioStream = streams[int(track)]
        return numbered_stream
    languages = [stream.metadata.get("language", "") for stream in streams]
    if track in languages:
        return _first_of_language(streams, track)

    tracks = ", ".join(f"{number} {language}".strip() for number, language in enumerate(languages))
    raise VideoError(f"no sound track '{track}'; there is {tracks}", source.path)


def _first_of_language(streams: Sequence[Any], language: str) -> AudioStream:
    """Return the first track of a language that can be decoded; the first of the language if none can."""
    of_language: list[AudioStream]
    of_language = [stream for stream in streams if stream.metadata.get("language", "") == language]
    for stream in of_language:
        if stream.codec_context is not None:
            return stream
    return of_language[0]


def timed_packets(source: Source, stream: AudioStream, offset_s: Sequence[float]) -> Iterator[PlacedPacket]:
    """Yield the packets of a sound track with their times on the time line of the pictures, and their part.

    A packet without a time stamp gets the time of the packet before it. In a file that was joined from parts,
    a new part of the track begins where its time stamps jump. The k-th part is shifted by the same offset as
    the k-th part of the pictures.

    The packets themselves are changed: their stamps become the new times, which a decoder passes on to the
    frames of sound.

    Parameters
    ----------
    source
        An open file.
    stream
        Its sound track.
    offset_s
        Shape [K]: seconds that are added to the times of each part of the pictures.

    Raises
    ------
    VideoError
        The track is encrypted.
    """
    tick_s = float(stream.time_base or 0)
    # A long pause of the sound begins a part only if the pictures have parts: else they pause as well.
    is_joined = len(offset_s) > 1
    longest_pause_s = PAUSE_S if is_joined else math.inf
    time_s = -math.inf  # of the packet before
    latest_stated_s = -math.inf  # the latest time that packets of this part have stated
    part = 0
    side_data = set[str]()
    for packet in _up_to_damage(source.demux(stream)):
        note_side_data(packet, side_data)
        if not ENCRYPTED_SIGNS.isdisjoint(side_data):
            raise VideoError(ENCRYPTED_SOUND, source.path)
        if not packet.size:
            continue

        stamp = packet.dts if packet.pts is None else packet.pts
        if stamp is not None:  # else the packet has the time and part of the one before
            stated_s = stamp * tick_s
            if _begins_part(stated_s, latest_stated_s, longest_pause_s):
                part += 1
                latest_stated_s = stated_s
            else:
                latest_stated_s = max(stated_s, latest_stated_s)
            part_of_pictures = min(part, len(offset_s) - 1)  # the sound may have more parts
            time_s = stated_s + offset_s[part_of_pictures]
            packet.pts = round(time_s / tick_s)
        yield PlacedPacket(time_s, packet, part)


def _begins_part(stated_s: float, latest_s: float, longest_pause_s: float) -> bool:
    """Return whether the time that a packet states has jumped, so that another part of the track begins.

    Parameters
    ----------
    stated_s
        Time that the packet states.
    latest_s
        Latest time that the track states before; minus infinity for the first packet, which begins no other
        part.
    longest_pause_s
        Seconds by which times may step forward within a part.
    """
    if latest_s == -math.inf:
        return False
    step_s = stated_s - latest_s
    return step_s < -TRACK_BACK_S or step_s > longest_pause_s


def _up_to_damage(packets: Iterable[Any]) -> Iterator[Any]:
    """Yield packets up to where FFmpeg cannot read a damaged file; samples behind it are missing."""
    with suppress(FFmpegError):
        yield from packets


class _FrameKind(NamedTuple):
    """What frames of one run share: format and layout of samples, part of the track, samples a second."""

    samples: str
    layout: str
    part: int
    rate: int


class _Run:
    """Frames of one kind without a gap between them.

    It keeps their samples, mixed to one channel, and when the run starts by the time stamp of each frame.
    """

    def __init__(self, kind: _FrameKind) -> None:
        """Begin a run without frames, for frames of one kind."""
        self.kind = kind
        self._n_samples = 0
        self._starts_s: list[float] = []  # start of the run by the time stamp of each frame, sorted
        self._mixer = av.AudioResampler(format="flt", layout="mono")
        self._can_mix = True  # until the mixer refuses the layout of the channels
        self._values: list[Samples] = []

    @property
    def start_s(self) -> float | None:
        """Start of the run in seconds; None if no frame has a time stamp.

        Each stamp gives a start; their median is used, because some phones write single odd stamps.
        """
        sorted_starts_s = self._starts_s  # `add` keeps them sorted
        n_starts = len(sorted_starts_s)
        if n_starts == 0:
            return None
        # The median is the start in the middle, or the mean of the two there if their number is even.
        upper = sorted_starts_s[n_starts // 2]
        lower = sorted_starts_s[(n_starts - 1) // 2]
        return (upper + lower) / 2

    def is_far(self, time_s: float | None, longest_s: float) -> bool:
        """Return whether a frame of sound begins more than `longest_s` seconds before or after the run's end.

        `time_s` is the time of the frame. If it or the run's start is not known, the frame is not far.
        """
        start_s = self.start_s
        if time_s is None or start_s is None:
            return False
        duration_s = self._n_samples / self.kind.rate
        distance_from_end_s = (
            time_s - duration_s - start_s
        )  # of the frame; below 0 if it begins before the end
        return abs(distance_from_end_s) > longest_s

    def add(self, frame: Any, time_s: float | None) -> None:
        """Add a frame of sound to the end of the run.

        Parameters
        ----------
        frame
            The decoded frame.
        time_s
            Its time in seconds, by which the start of the run is estimated; None if it states none.
        """
        if time_s is not None:
            duration_s = self._n_samples / self.kind.rate  # of the frames before
            insort(self._starts_s, time_s - duration_s)  # which keeps them sorted
        self._values += self._mixed(frame)
        self._n_samples += frame.samples

    def mono(self, rate: int) -> list[Samples]:
        """Return all samples of the run, resampled to a rate, in consecutive arrays.

        This ends the run: afterwards no frame can be added.
        """
        values_at_end = self._mixed(None)
        values = [*self._values, *values_at_end]
        if rate == self.kind.rate:
            return values
        return [_resample(np.concatenate(values), self.kind.rate, rate)]

    def _mixed(self, frame: Any) -> list[Samples]:
        """Mix the channels of a frame to mono; for None, at the end, return what the mixer still holds.

        libswresample mixes them with the usual weights. If it does not know the layout of the channels, their
        mean is taken.
        """
        if self._can_mix:
            try:
                return _samples_of(self._mixer.resample(frame))
            except ArgumentError:
                self._can_mix = False
        is_end = frame is None
        return [] if is_end else [_mean_of_channels(frame)]


def _mean_of_channels(frame: Any) -> Samples:
    """Return the mean of the channels of a frame of sound, float32 [L], with integers scaled to -1 ... 1."""
    stored = frame.to_ndarray()
    channels = stored  # [channels, L]
    if not frame.format.is_planar:  # the samples of all channels alternate
        channels = stored.reshape(-1, frame.layout.nb_channels).T
    mean: NDArray[np.float64] = channels.mean(axis=0, dtype=np.float64)
    is_unsigned = stored.dtype.kind == "u"
    is_float = stored.dtype.kind == "f"
    if is_unsigned:  # of 8 bits, where 128 is silence
        mean = mean - 128
    if not is_float:
        bits = 8 * stored.itemsize
        mean = mean / 2.0 ** (bits - 1)
    return mean.astype(np.float32)


def _place(values: Samples, samples: Samples, position: int) -> None:
    """Write values into an array of samples, in place, from a position on.

    The position is negative if the values begin before the array. Values that lie before or behind the array
    are left out.
    """
    n_before = max(-position, 0)  # values that lie before the array
    start = max(position, 0)
    end = max(position + len(values), 0)
    target = samples[start:end]
    target[:] = values[n_before : n_before + len(target)]


def _without_margins(values: NDArray[Any], per_s: int) -> NDArray[Any]:
    """Return the values of a block without those of the margins before and after it.

    Parameters
    ----------
    values
        Shape [values], or [values, D]: of the block with its margins.
    per_s
        Values a second.
    """
    return values[MARGIN_S * per_s : (MARGIN_S + BLOCK_S) * per_s]


def _share_missing(samples: Samples, rate: int) -> Samples:
    """Return the share of the samples of a block that are missing, for each of its intervals.

    Parameters
    ----------
    samples
        Shape [BLOCK_S * rate]: NaN where they are missing.
    rate
        Samples a second.

    Returns
    -------
    NDArray
        Shape [BLOCK_S * GAPS_A_SECOND].
    """
    n_intervals = BLOCK_S * GAPS_A_SECOND
    interval_starts = np.arange(n_intervals) * rate // GAPS_A_SECOND  # sample with which each begins
    # `reduceat` adds up the samples from each start to the next.
    n_missing = np.add.reduceat(np.isnan(samples), interval_starts, dtype=np.float32)
    share_of_one_sample = np.float32(GAPS_A_SECOND / rate)
    missing: Samples = n_missing * share_of_one_sample
    return missing


def _missing_seconds(missing: Samples, missing_start_s: int, start_s: float, end_s: float) -> float:
    """Return how many seconds of a span have no samples.

    Parameters
    ----------
    missing
        Share of the samples that are missing, for each of the `GAPS_A_SECOND` intervals of a second.
    missing_start_s
        Second of the file with which the intervals begin.
    start_s, end_s
        The span.
    """
    first = round((max(start_s, 0.0) - missing_start_s) * GAPS_A_SECOND)
    end = round((end_s - missing_start_s) * GAPS_A_SECOND)
    return float(missing[first:end].sum()) / GAPS_A_SECOND


def _resample(samples: Samples, rate: int, wanted_rate: int) -> Samples:
    """Resample mono sound [L] from one rate to another with libswresample; NaN becomes silence.

    A second of sound goes in at a time, so that a block needs little memory. What comes out is cut off, or
    filled up with silence, to the duration of the samples.

    Parameters
    ----------
    samples
        float32 [L].
    rate, wanted_rate
        Samples a second of the sound, and of the result.
    """
    resampler = av.AudioResampler(format="flt", layout="mono", rate=wanted_rate)
    resampled: list[Samples] = []
    for start in range(0, len(samples), rate):
        samples_of_second = samples[None, start : start + rate]  # [1 channel, L]
        silenced = np.nan_to_num(samples_of_second, posinf=0.0, neginf=0.0)
        frame = av.AudioFrame.from_ndarray(silenced, format="fltp", layout="mono")
        frame.sample_rate = rate
        frame.time_base = Fraction(1, rate)
        frame.pts = start
        resampled += _samples_of(resampler.resample(frame))
    resampled += _samples_of(resampler.resample(None))  # what the resampler still holds

    n_wanted = len(samples) * wanted_rate // rate
    silence = np.zeros(n_wanted, np.float32)
    return np.concatenate([*resampled, silence])[:n_wanted]


def _samples_of(mono_frames: Iterable[Any]) -> list[Samples]:
    """Return the samples of each frame of mono sound, [L]."""
    return [frame.to_ndarray()[0] for frame in mono_frames]


def _get_or_compute(cache: dict[K, Arrays], key: K, compute: Callable[[], Arrays]) -> Arrays:
    """Return the arrays of a key from a cache; compute and store them if they are not there.

    The cache is a dict, changed in place, whose last key is the one that was used last. Arrays that were used
    longest ago are dropped from it if it has more than `BYTES_KEPT` bytes.
    """
    arrays_of_key = cache.pop(key) if key in cache else compute()
    cache[key] = arrays_of_key  # at the end, so that the first ones are those used longest ago
    while len(cache) > 1:
        n_bytes = sum(array.nbytes for arrays in cache.values() for array in arrays)
        if n_bytes <= BYTES_KEPT:
            break
        used_longest_ago = next(iter(cache))
        del cache[used_longest_ago]
    return arrays_of_key
