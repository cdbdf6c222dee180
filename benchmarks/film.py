"""A film of two hours from the file to its page: CPU seconds, frames decoded, memory, and what sound adds.

Six minutes of cuts from real videos (640x272, H.264, as in decode.py) are encoded once; the film is their
packets again and again. A linear probe is trained on windows of the six minutes, as six movies, with labels
that follow a feature. Then `obygaze film run` makes the film's page. CPU seconds are user and system time of
all processes. The same film with a stereo AAC track is extracted with `descriptors` alone and with `sound`
beside it, and run with and without variables of staging and stills for the desk.

    python benchmarks/film.py [--minutes 120] [--workers 2] [--videos FOLDER]
"""

import json
import os
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import av
import numpy as np
from decode_clips import VIDEOS, make, repeat
from measure import arguments, obygaze, show, timed

from obygaze_features.store import open_store
from obygaze_features.video import SoundTrack, probe

SECONDS = 360
WINDOW_S = 46.0
HOP_S = 4.0
SOUND_S = 60
SOUND_RATE = 48_000


def train(clip: Path, folder: Path) -> Path:
    """Train a model on windows of a clip: positive where one feature is high."""
    starts = np.arange(0, SECONDS - WINDOW_S, HOP_S).tolist()

    def write(name: str, levels: Sequence[str]) -> Path:
        lines = ["clip_id,movie,video,start_s,end_s,level,concepts,annotator"]
        lines += [
            f"w{number:03d},part{int(6 * start // SECONDS)},{clip.name},{start},{start + WINDOW_S},"
            f"{level},,AB"
            for number, (start, level) in enumerate(zip(starts, levels, strict=True))
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder / name

    obygaze("extract", write("train.csv", ["EN"] * len(starts)), folder / "train", "--licence", "CC0-1.0")
    light = open_store(folder / "train-1.0.0")["descriptors"].pooled()[:, 0]
    labelled = write("labelled.csv", ["S" if value > np.median(light) else "EN" for value in light])
    words = ("--task", "en_s", "--model", "linear", "--save", "linear", "--out", folder / "run")
    obygaze("evaluate", labelled, folder / "train-1.0.0", *words)
    return folder / "run" / "linear.model"


def with_sound(film: Path, heard: Path) -> Path:
    """Copy a film and add a track: a minute of tones and noise in stereo, encoded once, again and again."""
    generator = np.random.default_rng(0)
    with av.open(str(film)) as source, av.open(str(heard), "w") as output:
        pictures = output.add_stream_from_template(source.streams.video[0])
        track = output.add_stream("aac", rate=SOUND_RATE, layout="stereo", bit_rate=192_000)
        packets = []
        for first in range(0, SOUND_S * SOUND_RATE, 1024):
            tone = 0.1 * np.sin(2 * np.pi * (200 + first // SOUND_RATE * 20) * np.arange(1024) / SOUND_RATE)
            samples = (tone + generator.normal(0, 0.03, (2, 1024))).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout="stereo")
            frame.sample_rate = SOUND_RATE
            frame.pts = first
            packets += [bytes(packet) for packet in track.encode(frame)]
        n_done = 0
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                while n_done * 1024 / SOUND_RATE < float((packet.dts or packet.pts) * packet.time_base):
                    sound = av.Packet(packets[n_done % len(packets)])
                    sound.pts = sound.dts = n_done * 1024
                    sound.time_base = Fraction(1, SOUND_RATE)
                    sound.stream = track
                    output.mux(sound)
                    n_done += 1
                packet.stream = pictures
                output.mux(packet)
    return heard


def staging_rows(heard: Path, model: Path, folder: Path, workers: int) -> list[tuple[str, object]]:
    """Measure what variables of staging and stills cost beside a run without, and speech by itself."""

    def run(name: str, *more: str) -> float:
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache" / name)  # no stills are there yet
        words = ("film", "run", heard, "--model", model, "--workers", workers, *more, "--out", folder / name)
        return obygaze(*words).cpu_s

    def measure(name: str, *more: str) -> float:
        scored_films = (
            folder / "staged" / "features-1.0.0",
            "--shots",
            folder / "staged" / "windows.shots.csv",
        )
        words = (
            "film",
            "variables",
            heard,
            "--windows",
            *scored_films,
            *more,
            "--out",
            folder / f"{name}.csv",
        )
        return obygaze(*words).cpu_s

    plain = run("plain")
    staged = run("staged", "--variables")
    stills = run("stills", "--stills")
    speech = ("--variables", "--sound")  # one without the other is refused
    sound = run("sound", *speech)
    taken_together = run("both", *speech, "--stills")
    return [
        ("film run, with sound in the file, CPU s", plain),
        ("film run --variables, CPU s", f"{staged:.0f} ({staged / plain:.2f} times)"),
        ("film run --stills, CPU s", f"{stills:.0f} ({stills / plain:.2f} times)"),
        (
            "film run --variables --sound, CPU s; with --stills",
            f"{sound:.0f}; {taken_together:.0f} ({taken_together / sound:.2f} times)",
        ),
        ("speech by itself, CPU s", measure("speech", "--sound") - measure("quiet")),
    ]


def sound_rows(heard: Path, folder: Path, workers: int) -> list[tuple[str, object]]:
    """Measure what sound costs beside descriptors, and what decoding the track alone does."""
    windows = folder / "heard.csv"
    obygaze("manifest", "import", "film", heard, "--window", WINDOW_S, "--hop", 11.5, "--out", windows)

    def extract(name: str, *more: str) -> float:
        words = ("--backbone", "descriptors", *more, "--workers", workers, "--licence", "CC0-1.0")
        return obygaze("extract", windows, folder / name, *words).cpu_s

    def decode() -> None:
        track = SoundTrack(heard)
        end_s = probe(heard).duration_s
        for start_s in np.arange(0.0, end_s - WINDOW_S, WINDOW_S).tolist():
            track.parts(start_s, start_s + WINDOW_S, (), rate=16_000)

    alone = extract("seen")
    taken_together = extract("both", "--backbone", "sound")
    return [
        ("extract, descriptors, CPU s", alone),
        (
            "extract, descriptors and sound, CPU s",
            f"{taken_together:.0f} ({taken_together / alone:.2f} times)",
        ),
        ("decoding the track alone, CPU s", timed(decode).cpu_s),
    ]


def main() -> None:
    """Print the table."""
    options = arguments(__doc__, minutes=120, workers=2, videos=VIDEOS)
    with tempfile.TemporaryDirectory(prefix="obygaze-film-") as name:
        folder = Path(name)
        clip = folder / "h264.mp4"
        film = folder / "film.mkv"
        # In a process of its own: peak memory of later children would start at that of this one.
        maker = get_context("spawn").Process(
            target=make, args=(folder, ["h264.mp4"], options.videos, SECONDS)
        )
        maker.start()
        maker.join()
        repeat(clip, film, options.minutes * 60 // SECONDS)
        model = train(clip, folder)
        length = probe(film)
        whole_run = folder / "whole"
        words = ["film", "run", film, "--model", model, "--workers", options.workers, "--out", whole_run]
        cpu_s = obygaze(*words).cpu_s
        kept = (whole_run / "features.staging" / "reports").glob("*.json")
        reports = [json.loads(path.read_text()) for path in kept]
        decoded = sum(report["n_decoded"] for report in reports)
        rows = [
            ("the film", f"{length.duration_s:.0f} s, {length.frames:,} frames, {length.bytes / 1e6:.0f} MB"),
            ("film run, CPU s", f"{cpu_s:.0f} ({length.duration_s / cpu_s:.1f} times real time)"),
            ("frames decoded", f"{decoded:,} ({decoded / length.frames:.3f} of the film's)"),
            ("peak memory, MB", max(report["peak_memory_mb"] for report in reports)),
        ]
        shots = ("--shots", whole_run / "windows.shots.csv")
        page = folder / "page.html"
        scored = folder / "scored"
        scoring = obygaze("film", "score", model, whole_run / "features-1.0.0", *shots, "--out", scored)
        rows += [
            ("film score, CPU s", scoring.cpu_s),
            ("film report, CPU s", obygaze("film", "report", scored, "--out", page).cpu_s),
            ("the page, kB", page.stat().st_size / 1e3),
            *sound_rows(heard := with_sound(film, folder / "heard.mkv"), folder, options.workers),
            *staging_rows(heard, model, folder, options.workers),
        ]
        show(rows, ("what", "seen"))


if __name__ == "__main__":
    main()
