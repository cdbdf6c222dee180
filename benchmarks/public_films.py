"""Read public films by name, and compare their pictures and their sound with FFmpeg's.

    python benchmarks/public_films.py bring FOLDER    brings the files by git, and checks their digests
    python benchmarks/public_films.py compare FOLDER [--workers 2] [--every 10] [--output verdicts.csv]

public_films.csv lists the files (repository, commit, path, digest); no film is carried along. Of each file
up to `FRAMES` frames are read, sparsely and in order, and `HEARD_S` seconds of its sound by `SoundTrack`.
Where FFmpeg's command differs, PyAV's own plain loop is asked, for its FFmpeg may be of another version. Both
decode with one thread: what they put in the place of lost parts of a picture depends on how many there are.
public_films_differ.csv lists what is known to differ from both, and who is right: `compare` ends with exit
code 1 if anything else does with status `ok`. It needs the command of FFmpeg.
"""

import argparse
import csv
import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from obygaze_features.errors import ObygazeError
from obygaze_features.video import SoundTrack, read_frames, uniform
from obygaze_features.video.decode import Decoder, NotSafe
from obygaze_features.video.sound import bytes_to_probe_for_track, opened_track
from obygaze_features.video.source import opened, opened_to

HERE = Path(__file__).parent
LISTED = HERE / "public_films.csv"
KNOWN = HERE / "public_films_differ.csv"
HOST = "https://github.com"
FRAMES = 120
"""Frames of each file that are compared: more than two groups of pictures."""
SPARSE_FRAMES = 4
LONGEST_S = 120
"""Seconds that FFmpeg's command may take for a file."""
TIME_TOLERANCE_S = 0.0015
"""Matroska and Flash round times to milliseconds."""
HEARD_S = 10
"""Seconds of sound of each file that are compared."""
RATE = 16_000
SNR_DB = 25.0
"""By how much sound is stronger than its difference at least, where readings are equal."""
SHIFT_S = 0.003
"""By how much equal sound may be shifted: FFmpeg's command begins with whole packets."""
MAX_SHIFT_S = 0.5
"""Shifts that are looked for."""
SILENT = 1e-4
"""Below it, as the largest sample, sound is silence."""
PARTS_OF_A_SAMPLE = 16
PIECES_A_SECOND = 50
GAP_S = 0.03
"""Steps of time stamps above which a plain loop puts a frame at its own time: less is inexact."""


class PublicFilm(NamedTuple):
    """A file of a public repository.

    Parameters
    ----------
    repository, commit, path
        Where it is: `OWNER/NAME` on `HOST`.
    sha256
        Its digest.
    """

    repository: str
    commit: str
    path: str
    sha256: str

    @property
    def name(self) -> str:
        """Name it across repositories, and in the folder that they are brought to."""
        return f"{self.repository}/{self.path}"


class Verdict(NamedTuple):
    """What came of a file.

    Parameters
    ----------
    name
        The file.
    outcome
        `equal`; `as PyAV`, where another version of FFmpeg differs; `refused`; `not compared`; or what
        differs from both: `sparse`, `count`, `order`, `pixels`, `times`. Of sound: these after `sound`;
        `no sound`; `silence`; `samples`, or `shift`, where it differs from both.
    status
        `ok`, or `partial`: then it is said what is missing.
    detail
        The reason, or what differs.
    notes
        What is said of the file.
    """

    name: str
    outcome: str
    status: str = ""
    detail: str = ""
    notes: str = ""


class Pictures(NamedTuple):
    """Decoded pictures of a file in order: digest of each, and its time in seconds from the first."""

    digests: list[str]
    time_s: NDArray[np.float64]


DIFFERENT = ("sparse", "count", "order", "pixels", "times", "samples", "shift")


def listed(path: Path = LISTED) -> list[PublicFilm]:
    """Read the list of files."""
    with path.open(encoding="utf-8", newline="") as file:
        return [PublicFilm(**row) for row in csv.DictReader(file)]


def known_differences(path: Path = KNOWN) -> dict[tuple[str, str], str]:
    """Read what is known to differ: (file, outcome) -> who is right, and why."""
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["name"], row["outcome"]): row["right"] for row in csv.DictReader(file)}


# --- bringing
# --------------------------------------------------------------------------------
def bring(films: Iterable[PublicFilm], folder: Path, host: str = HOST) -> list[str]:
    """Bring files by git, only those that are listed; return what is missing or has another digest.

    Parameters
    ----------
    folder
        Each repository gets a folder `OWNER/NAME` in it.
    host
        Where repositories are: a lab's mirror, for example.
    """
    problems = []
    by_repository: dict[tuple[str, str], list[PublicFilm]] = {}
    for film in films:
        by_repository.setdefault((film.repository, film.commit), []).append(film)
    for (repository, commit), films_wanted in by_repository.items():
        root = folder / repository
        if not root.exists():
            git("init", "--quiet", str(root))
            git("-C", str(root), "remote", "add", "origin", f"{host}/{repository}")
        missing = [film for film in films_wanted if digest(folder / film.name) != film.sha256]
        if missing:
            git("-C", str(root), "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", commit)
            paths = "\0".join(f":(literal){film.path}" for film in missing)
            names = ("--pathspec-from-file=-", "--pathspec-file-nul")
            git("-C", str(root), "checkout", "--quiet", commit, *names, given=paths)
        problems += [film.name for film in missing if digest(folder / film.name) != film.sha256]
    return problems


def git(*words: str, given: str = "") -> None:
    """Run git; its messages go to the terminal."""
    subprocess.run(["git", *words], input=given.encode(), check=True)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file; empty if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# --- comparing
# --------------------------------------------------------------------------------
def compared(film: PublicFilm, folder: Path) -> Verdict:
    """Read a file sparsely and in order, and compare its pictures with those of FFmpeg's command."""
    path = folder / film.name
    try:
        frames = read_frames(path, uniform(SPARSE_FRAMES), each=np.shape)
        decoder = Decoder(path)
        ours, by_number = in_order(decoder)
        different = sparse_difference(path, by_number)
        stream = opened_index(path)
    except ObygazeError as error:
        return Verdict(film.name, "refused", detail=str(error).removeprefix(f"{path}: "))
    notes = "; ".join(frames.notes)
    if different:
        return Verdict(film.name, "sparse", frames.status, different, notes)
    if not ours.digests[0]:
        return Verdict(film.name, "not compared", frames.status, "pixels with a palette", notes)
    try:
        outcome, detail = difference(ours, by_command(path, stream))
    except (subprocess.SubprocessError, ValueError) as error:
        outcome = "not compared"
        detail = " ".join(str(error).split())[-80:]
    if outcome != "equal":
        other_outcome, other_detail = difference(ours, by_plain_loop(path, stream))
        if other_outcome == "equal":
            outcome, detail = "as PyAV", f"FFmpeg's command: {outcome}, {detail}"
        else:
            outcome, detail = other_outcome, f"PyAV: {other_detail}; FFmpeg's command: {outcome}, {detail}"
    return Verdict(film.name, outcome, frames.status, detail, notes)


def opened_index(path: Path) -> int:
    """Return which stream of a file is read."""
    with opened(path) as source:
        return source.stream.index


def in_order(decoder: Decoder) -> tuple[Pictures, dict[int, str]]:
    """Decode the first frames in order; give them, and the digest of each by its number."""
    by_number = {}
    every = range(len(decoder.table.frame_times))
    for number, frame in islice(decoder.decode_sequentially(every), FRAMES):
        by_number[number] = md5(frame)
    if not by_number:
        raise ObygazeError("no frame can be decoded")
    # Where frames are counted, those that cannot be decoded have no number.
    times = decoder.table.frame_times if decoder.known_by_packet else decoder.find_frames()
    time_s = times.time_s[list(by_number)]
    return Pictures(list(by_number.values()), time_s - time_s[0]), by_number


def sparse_difference(path: Path, by_number: dict[int, str]) -> str:
    """Decode a few frames sparsely; say which differ from those decoded in order."""
    decoder = Decoder(path)
    if decoder.table.unsafe:
        return ""
    chosen = sorted(by_number)[:: max(1, len(by_number) // SPARSE_FRAMES)]
    try:
        digests = {number: md5(frame) for number, frame in decoder.decode_sparsely(chosen)}
    except NotSafe:  # then frames are read in order
        return ""
    wrong = [number for number in chosen if digests.get(number) != by_number[number]]
    return f"frames {wrong}" if wrong else ""


def md5(frame: Any) -> str:
    """Return the digest of a frame's pixels; empty for those with a palette."""
    pixels = raw(frame)
    return hashlib.md5(pixels, usedforsecurity=False).hexdigest() if pixels else ""


def raw(frame: Any) -> bytes:
    """Return the bytes of a frame as FFmpeg's rawvideo has them; none of formats with a palette."""
    if frame.format.has_palette:
        return b""
    rows = []
    for number, plane in enumerate(frame.planes):
        components = [part for part in frame.format.components if part.plane == number]
        if len(frame.planes) == 1:
            width = -(-frame.width * frame.format.padded_bits_per_pixel // 8)
        else:
            width = sum(-(-part.bits // 8) * part.width for part in components)
        lines = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
        rows.append(lines[:, :width].tobytes())
    return b"".join(rows)


def by_command(path: Path, stream: int) -> Pictures:
    """Decode the first frames of a stream by FFmpeg's command.

    Raises
    ------
    subprocess.SubprocessError, ValueError
        It fails, takes too long, or gives no frame.
    """
    words = ["ffmpeg", "-v", "error", "-noautorotate", "-threads", "1", "-i", f"file:{path}"]
    words += ["-map", f"0:{stream}", "-frames:v", str(FRAMES), "-vsync", "passthrough", "-f", "framemd5", "-"]
    process = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    tick_s = 1.0
    digests = []
    ticks = []
    for line in process.stdout.splitlines():
        if line.startswith("#tb "):
            numerator, denominator = line.rpartition(" ")[2].split("/")
            tick_s = int(numerator) / int(denominator)
        elif not line.startswith("#"):
            _, _, pts, _, _, md5 = (part.strip() for part in line.split(","))
            digests.append(md5)
            ticks.append(int(pts))
    if not digests:
        raise ValueError(f"FFmpeg gives no frame: {process.stderr}")
    time_s = np.array(ticks, np.float64) * tick_s
    return Pictures(digests, time_s - time_s[0])


def by_plain_loop(path: Path, stream: int) -> Pictures:
    """Decode the first frames of a stream as PyAV's introduction does."""
    digests = []
    time_s = []
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        pictures = container.streams.get(stream)[0]
        pictures.codec_context.thread_count = 1
        packets = container.demux(pictures)
        with suppress(av.FFmpegError, IndexError):
            for frame in (frame for packet in packets for frame in packet.decode()):
                digests.append(md5(frame))
                time_s.append(np.nan if frame.time is None else frame.time)
                if len(digests) == FRAMES:
                    break
    shown = np.array(time_s or [0.0], np.float64)
    return Pictures(digests, shown - shown[0])


def difference(ours: Pictures, theirs: Pictures) -> tuple[str, str]:
    """Say what differs first between two readings of a file: count, order, pixels, times."""
    counts = len(ours.digests), len(theirs.digests)
    if counts[0] != counts[1]:
        return "count", f"{counts[0]} and {counts[1]} frames"
    places = [n for n, pair in enumerate(zip(ours.digests, theirs.digests, strict=True)) if len({*pair}) > 1]
    if places and sorted(ours.digests) == sorted(theirs.digests):
        return "order", f"frames {places[:6]}"
    if places:
        return "pixels", f"{len(places)} of {counts[0]} frames, from frame {places[0]} on"
    far = np.abs(ours.time_s - theirs.time_s)
    if not (far <= TIME_TOLERANCE_S).all():
        differences = far[np.isfinite(far)]
        by = f"by up to {differences.max():.3f} s" if len(differences) else "of all frames"
        return "times", by
    return "equal", ""


# --- sound
# --------------------------------------------------------------------------------
def sound_compared(film: PublicFilm, folder: Path) -> Verdict:
    """Read the first seconds of a file's sound, and compare its samples with those of FFmpeg's command."""
    path = folder / film.name
    try:
        with opened_to(path, bytes_to_probe_for_track(path)) as source:
            if not source.container.streams.audio:
                return Verdict(film.name, "no sound")
            stream = opened_track(source).index
        heard, missing_s = SoundTrack(path).parts(0.0, HEARD_S, [], rate=RATE)
    except ObygazeError as error:
        return Verdict(film.name, "sound refused", detail=str(error).removeprefix(f"{path}: "))
    ours = heard[0]
    notes = f"{missing_s:.2f} of {HEARD_S} s have no sound"
    try:
        outcome, detail = sound_difference(ours, sound_by_command(path, stream))
    except (subprocess.SubprocessError, ValueError) as error:
        outcome = "sound not compared"
        detail = " ".join(str(error).split())[-80:]
    if outcome not in {"sound equal", "silence"}:
        try:
            other_outcome, other_detail = sound_difference(ours, sound_by_plain_loop(path, stream))
        except ObygazeError as error:
            other_outcome = "sound not compared"
            other_detail = str(error)
        if other_outcome == "sound equal":
            outcome, detail = "sound as PyAV", f"FFmpeg's command: {outcome}, {detail}"
        elif other_outcome != "sound not compared":
            outcome, detail = other_outcome, f"PyAV: {other_detail}; FFmpeg's command: {outcome}, {detail}"
    return Verdict(film.name, outcome, "ok", detail, notes)


def sound_by_command(path: Path, stream: int) -> NDArray[np.float32]:
    """Decode the first seconds of a sound track by FFmpeg's command, mono; silence where there is none.

    Raises
    ------
    subprocess.SubprocessError, ValueError
        It fails, takes too long, or gives no sample.
    """
    words = ["ffmpeg", "-v", "error", "-i", f"file:{path}", "-map", f"0:{stream}", "-af"]
    words += [
        "aresample=async=1:first_pts=0",
        "-ac",
        "1",
        "-ar",
        str(RATE),
        "-t",
        str(HEARD_S),
        "-f",
        "f32le",
    ]
    process = subprocess.run([*words, "-"], capture_output=True, timeout=LONGEST_S, check=False)
    if not process.stdout:
        raise ValueError(f"FFmpeg gives no sound: {process.stderr.decode(errors='replace')}")
    return np.frombuffer(process.stdout, np.float32)


def sound_by_plain_loop(path: Path, stream: int) -> NDArray[np.float32]:
    """Decode the first seconds of a sound track as PyAV's introduction does, each frame at its own time."""
    with opened(path) as source:
        origin_s = float(source.origin)
    with opened_to(path, bytes_to_probe_for_track(path)) as source:
        rate = opened_track(source).codec_context.sample_rate
    placed = np.zeros((HEARD_S + 1) * rate, np.float32)
    end_s = 0.0
    place = -1
    for frame in sound_frames(path, stream):
        time_s = end_s if frame.time is None else frame.time - origin_s
        if place < 0 or abs(time_s - end_s) > GAP_S:
            place = round(time_s * rate)
            end_s = time_s
        for part in av.AudioResampler(format="flt", layout="mono", rate=frame.sample_rate).resample(frame):
            place = put(placed, part.to_ndarray()[0], place)
        end_s += frame.samples / frame.sample_rate
        if end_s > HEARD_S + 1:
            break
    whole: Any = av.AudioFrame.from_ndarray(placed[None], format="fltp", layout="mono")
    whole.sample_rate = rate
    parts = av.AudioResampler(format="flt", layout="mono", rate=RATE).resample(whole)
    return np.concatenate([part.to_ndarray()[0] for part in parts])[: HEARD_S * RATE]


def sound_frames(path: Path, stream: int) -> Iterator[Any]:
    """Yield the frames of a sound track; damaged packets are passed over."""
    with av.open(f"file:{path}", metadata_errors="replace") as container:
        packets = container.demux(container.streams.get(stream)[0])
        while True:
            try:
                packet = next(packets)
            except (av.FFmpegError, IndexError, StopIteration):
                return
            with suppress(av.FFmpegError):
                yield from packet.decode()


def put(placed: NDArray[np.float32], samples: NDArray[np.float32], first: int) -> int:
    """Put samples in their place, as many as there is room for; return the place after them."""
    room = placed[max(first, 0) : max(first + len(samples), 0)]
    room[:] = samples[max(-first, 0) :][: len(room)]
    return first + len(samples)


def sound_difference(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> tuple[str, str]:
    """Say whether two readings of sound are equal: second by second, those that are heard whole.

    Where sound begins, ends or pauses, a resampler's edge is no difference of what was read.
    """
    theirs = np.append(theirs[: len(ours)], np.zeros(max(len(ours) - len(theirs), 0), np.float32))
    pairs = list(zip(np.nan_to_num(ours).reshape(-1, RATE), theirs.reshape(-1, RATE), strict=True))
    sounding = [pair for pair in pairs if np.abs(pair).max() >= SILENT]
    if not sounding:
        return "silence", ""
    unbroken = [pair for pair in sounding if not any(map(pauses, pair))] or sounding
    shifts, snr_db = zip(*(aligned(*pair) for pair in unbroken), strict=True)
    equal = sum(value >= SNR_DB for value in snr_db)
    far_ms = 1000 * max(shifts, key=abs) / RATE
    detail = (
        f"{equal} of {len(unbroken)} s equal, least {min(snr_db):.1f} dB, shifted by up to {far_ms:.2f} ms"
    )
    if equal < len(unbroken):
        return "samples", detail
    return ("shift" if abs(far_ms) > 1000 * SHIFT_S else "sound equal"), detail


def pauses(second: NDArray[np.float32]) -> bool:
    """Return whether a second of sound has a piece of silence."""
    loudest = np.abs(second).reshape(-1, RATE // PIECES_A_SECOND).max(axis=1)
    return bool((loudest < SILENT).any())


def aligned(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> tuple[float, float]:
    """Find by how many samples ours [N] are later than theirs, and how strong they are then, in dB.

    Where one of them begins or ends earlier by the shift is not compared.
    """
    n = len(ours)
    size = 2 * n
    spectrum_of_ours = np.fft.rfft(ours, size)
    spectrum_of_theirs = np.fft.rfft(theirs, size)
    likeness = np.fft.irfft(spectrum_of_ours * spectrum_of_theirs.conj(), size)
    most = int(MAX_SHIFT_S * RATE)
    whole = (int(np.argmax(np.roll(likeness, most)[: 2 * most + 1]))) - most
    best_shift = 0.0
    best_db = -np.inf
    turns = -2j * np.pi * np.fft.rfftfreq(size)
    inner = slice(max(0, whole) + 1, n + min(0, whole) - 1)
    for shift in whole + np.arange(-PARTS_OF_A_SAMPLE, PARTS_OF_A_SAMPLE + 1) / PARTS_OF_A_SAMPLE:
        moved = np.fft.irfft(spectrum_of_theirs * np.exp(turns * shift), size)[:n]
        noise = float(np.square(ours - moved)[inner].sum())
        power = float(np.square(ours[inner]).sum())
        snr_db = float(10 * np.log10((power + 1e-12) / (noise + 1e-12)))
        if snr_db > best_db:
            best_shift = float(shift)
            best_db = snr_db
    return best_shift, best_db


def compare(films: Sequence[PublicFilm], folder: Path, workers: int) -> Iterator[Verdict]:
    """Compare the pictures, then the sound, of files in some processes; those not there are left out."""
    present = [film for film in films if (folder / film.name).is_file()]
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(partial(compared, folder=folder), present)
        yield from pool.map(partial(sound_compared, folder=folder), present)


def unknown(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return what differs without a note, and is not known to."""
    known_names = known_differences()
    return [
        verdict
        for verdict in verdicts
        if verdict.outcome in DIFFERENT
        and verdict.status == "ok"
        and (verdict.name, verdict.outcome) not in known_names
    ]


def main() -> int:
    """Bring or compare the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["bring", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default=HOST, help="where repositories are")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="compare one file of so many")
    parser.add_argument(
        "--output", type=Path, default=Path("verdicts.csv"), help="where to write what came of each file"
    )
    options = parser.parse_args()
    films = listed()[:: options.every]
    if options.action == "bring":
        problems = bring(films, options.folder, options.host)
        print(f"{len(films) - len(problems)} of {len(films)} files are there", *problems, sep="\n")
        return 1 if problems else 0
    verdicts = []
    with options.output.open("w", encoding="utf-8", newline="", buffering=1) as file:
        writer = csv.writer(file)
        writer.writerow(Verdict._fields)
        for verdict in compare(films, options.folder, options.workers):
            writer.writerow(verdict)
            verdicts.append(verdict)
    counts = Counter((verdict.outcome, verdict.status) for verdict in verdicts)
    rows = [(*kind, count) for kind, count in sorted(counts.items())]
    print(tabulate(rows, ["outcome", "status", "files"]))
    new = unknown(verdicts)
    print(*(f"{verdict.name}: {verdict.outcome}, {verdict.detail}" for verdict in new), sep="\n")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
