"""Generate the demo corpus: draw seven films, their clips, and labels that are known by construction.

What is planted: the level of a clip follows from its concepts alone. S and HN clips show one or two of
Posture, Clothing and Appearance, and others that tell nothing; S clips show Body too, HN clips never; EN
clips show no concept. Cues are faint. How visible a cue is, how bright a clip is and how its colours lean
does not depend on the level, and varies more than any cue; each film has a look of its own. So concepts
tell levels apart, though not always; a direction that knows no concept tells little more than that a clip
shows any; and a film's look tells nothing. Nobody labelled the last film: it is there to be predicted.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import WorkerError
from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line
from obygaze_features.workers import Parent, WorkerPool

HEIGHT, WIDTH, RATE = 96, 160, 24
SEED = 13


@dataclass(frozen=True)
class Look:
    """The constant look of one film.

    Parameters
    ----------
    tint
        RGB, each 0-1.
    brightness
        Of the background, 0-1.
    grain
        Standard deviation of the film's grain, in 8-bit values.
    """

    tint: tuple[float, float, float]
    brightness: float
    grain: float


FILMS = (
    (Look((1.00, 0.94, 0.86), 0.45, 3.0), {"EN": 11, "HN": 5, "NS": 2, "S": 6}),
    (Look((0.88, 0.94, 1.00), 0.38, 4.0), {"EN": 13, "HN": 4, "NS": 3, "S": 4}),
    (Look((0.96, 1.00, 0.92), 0.50, 3.0), {"EN": 9, "HN": 6, "NS": 2, "S": 7}),
    (Look((1.00, 0.90, 0.90), 0.42, 5.0), {"EN": 12, "HN": 4, "NS": 2, "S": 6}),
    (Look((0.92, 0.92, 1.00), 0.36, 4.0), {"EN": 10, "HN": 6, "NS": 3, "S": 5}),
    (Look((0.98, 0.96, 0.84), 0.48, 3.0), {"EN": 11, "HN": 5, "NS": 2, "S": 6}),
    (Look((0.94, 0.98, 0.98), 0.44, 4.0), {"EN": 9, "HN": 7, "NS": 2, "S": 6}),
)
"""Look of each film, and how many clips of each level it has: films differ in both, as real ones do."""

DECISIVE = ("Body",)
ACCOMPANYING = ("Posture", "Clothing", "Appearance")
INDEPENDENT = ("Type of shot", "Look", "Expression of emotion", "Activity")
CONCEPTS: Mapping[str, tuple[tuple[tuple[str, ...], int, int], ...]] = {
    "EN": (),
    "HN": ((ACCOMPANYING, 1, 2), (INDEPENDENT, 1, 2)),
    "NS": ((DECISIVE, 0, 1), (ACCOMPANYING, 0, 1), (INDEPENDENT, 1, 2)),
    "S": ((DECISIVE, 1, 1), (ACCOMPANYING, 1, 2), (INDEPENDENT, 1, 2)),
}
"""Of each level: concepts to draw from, fewest and most."""

STRENGTH = (0.2, 0.4)
SPREAD = 0.6
"""How far a clip's brightness may lie from its film's, as a share; its colours, a third of that."""

UNLABELLED = "tt9000007"
"""The film without labels."""

SHORTEST, LONGEST = 5, 20
CORRUPT, MISSING = "tt9000002-005", "tt9000003-009"
POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class DemoClip:
    """One clip, before it is drawn."""

    clip_id: str
    level: str
    concepts: tuple[str, ...]
    look: Look
    strength: float
    n_frames: int
    seed: int


@dataclass(frozen=True, slots=True)
class DemoMovie:
    """One film: its clips, in a file each, or all in one file of which clips are spans."""

    movie: str
    clips: tuple[DemoClip, ...]
    one_file: bool


def plan_corpus() -> tuple[DemoMovie, ...]:
    """Plan seven films of 24 clips, the same ones every time; the last two are one long file each."""
    movies = []
    for number, (look, levels) in enumerate(FILMS, start=1):
        rng = np.random.default_rng([SEED, number])
        movie = f"tt{9000000 + number}"
        order = rng.permutation(list(chain.from_iterable([level] * n for level, n in levels.items())))
        clips = tuple(
            _plan_clip(f"{movie}-{i:03d}", str(level), look, rng) for i, level in enumerate(order, start=1)
        )
        movies.append(DemoMovie(movie, clips, one_file=number > len(FILMS) - 2))
    return tuple(movies)


def _plan_clip(clip_id: str, level: str, look: Look, rng: np.random.Generator) -> DemoClip:
    concepts = [
        str(concept)
        for names, fewest, most in CONCEPTS[level]
        for concept in rng.choice(names, size=rng.integers(fewest, most + 1), replace=False)
    ]
    # Most clips are short and a few are long, as in MovieGraphs.
    seconds = min(SHORTEST + rng.exponential(2.0), LONGEST)
    red, green, blue = (
        float(min(part * rng.uniform(1 - SPREAD / 3, 1 + SPREAD / 3), 1.0)) for part in look.tint
    )
    return DemoClip(
        clip_id,
        level,
        tuple(concepts),
        Look((red, green, blue), look.brightness * float(rng.uniform(1 - SPREAD, 1 + SPREAD)), look.grain),
        float(rng.uniform(*STRENGTH)),
        int(seconds * RATE),
        int(rng.integers(2**31)),
    )


def write_corpus(folder: Path, workers: int, on_movie: Callable[[str], object] = lambda _: None) -> Path:
    """Draw and encode the films below `folder/films` and write their labels.

    One clip's file is garbage and another's is never written, as happens to every real corpus.

    Parameters
    ----------
    on_movie
        Called with the movie of each film that is finished.

    Returns
    -------
    The table of labels, `folder/labels.csv`, in the form that `obygaze manifest import spans` reads.
    What was planted in every clip, those of the film without labels too, is in `folder/planted.csv`.
    """
    movies = plan_corpus()
    with WorkerPool(workers, _work) as pool:
        for planned in movies:
            (place := folder / "films" / planned.movie).mkdir(parents=True, exist_ok=True)
            pool.put(planned.movie, (planned, place))
        left = len(movies)
        while left:
            event = pool.get(POLL_S)
            if event and event.kind == "died":
                raise WorkerError(f"the process that drew {event.key} died ({event.value})")
            if event and event.kind == "done":
                left -= 1
                on_movie(str(event.key))
    _write_tables(movies, folder)
    return folder / "labels.csv"


def _work(task: tuple[DemoMovie, Path], _parent: Parent) -> None:
    """Write a film in a worker; there is nothing to send back."""
    _write_movie(*task)


def _write_movie(planned: DemoMovie, folder: Path) -> None:
    if planned.one_file:
        frames = chain.from_iterable(map(draw_clip, planned.clips))
        write_video(folder / f"{planned.movie}.mkv", frames, RATE)
        return
    for clip in planned.clips:
        path = folder / f"{clip.clip_id}.mp4"
        if clip.clip_id == CORRUPT:
            path.write_bytes(np.random.default_rng(SEED).bytes(20_000))
        elif clip.clip_id != MISSING:
            write_video(path, draw_clip(clip), RATE)


def draw_clip(clip: DemoClip) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of one clip, uint8 `[96, 160, 3]` each, with the cue of each of its concepts.

    No person is drawn: the cues are motion, colour and texture alone.
    """
    rng = np.random.default_rng(clip.seed)
    look, strength, shown = clip.look, clip.strength, clip.concepts
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    # In float64, then rounded: the last bit of a float32 sine depends on the processor.
    down, across = np.arange(HEIGHT)[:, None], np.arange(WIDTH)[None]
    shot_length = int(RATE * (1.0 if "Type of shot" in shown else 5.0))
    pan_speed = 2.5 * strength if "Look" in shown else 0.2
    grain = rng.normal(0, look.grain, (8, HEIGHT, WIDTH, 1)).astype(np.float32)
    phase = float(rng.uniform(0, 6))
    tint = np.array(look.tint, np.float32)
    for t in range(clip.n_frames):
        shot = t // shot_length
        wave = 0.25 * np.sin(0.04 * (across + pan_speed * t) + shot * 2.1 + phase)
        slope = (wave + 0.1 * np.cos(0.05 * down + shot)).astype(np.float32)
        light = look.brightness * (1 + slope)
        if "Appearance" in shown:  # glow
            light = light + 0.35 * strength
        if "Expression of emotion" in shown:  # flicker
            light = light * (1 + 0.5 * strength * np.sin(t * 0.9))
        frame = 255 * light[..., None] * tint
        if "Clothing" in shown:  # checks
            frame[24:72, 100:150] *= (
                1 + strength * ((x[24:72, 100:150] // 3 + y[24:72, 100:150] // 3) % 2 - 0.5)
            )[..., None]
        if "Posture" in shown:  # stripes
            frame += 60 * strength * (((x + y) // 5) % 2)[..., None]
        if "Body" in shown:  # disc
            inside = (x - 60 - 10 * np.sin(t * 0.05)) ** 2 + (y - 50) ** 2 < 26**2
            frame[inside] = (1 - strength) * frame[inside] + strength * np.array((230, 140, 110), np.float32)
        if "Activity" in shown:  # sparks
            for k in range(12):
                row, column = (17 * k + 5 * t) % (HEIGHT - 8), (41 * k + 7 * t * (1 + k % 3)) % (WIDTH - 8)
                frame[row : row + 8, column : column + 8] = 255 * strength
        yield np.clip(frame + grain[t % 8], 0, 255).astype(np.uint8)


def _write_tables(movies: tuple[DemoMovie, ...], folder: Path) -> None:
    """Write what is labelled, and what is planted."""
    labels = [csv_line(["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts"])]
    planted = [csv_line(["clip_id", "movie", "level", "concepts"])]
    for planned in movies:
        start = 0
        for clip in planned.clips:
            end, truth = start + clip.n_frames, (clip.level, ";".join(clip.concepts))
            span = (str(start / RATE), str(end / RATE)) if planned.one_file else ("", "")
            name = f"{planned.movie}.mkv" if planned.one_file else f"{clip.clip_id}.mp4"
            known = ("", "") if planned.movie == UNLABELLED else truth
            labels.append(csv_line([clip.clip_id, planned.movie, f"{planned.movie}/{name}", *span, *known]))
            planted.append(csv_line([clip.clip_id, planned.movie, *truth]))
            start = end
    write_whole(folder / "planted.csv", "".join(planted))
    write_whole(folder / "labels.csv", "".join(labels))


def write_video(path: Path, frames: Iterable[NDArray[np.uint8]], rate: int) -> None:
    """Encode RGB frames, uint8 `[H, W, 3]` each, as H.264 with B-frames; the container follows the suffix.

    The same frames give the same bytes: with one encoder thread, without macroblock-tree rate control (x264's
    differs from run to run, measured), without the algorithms that x264 chooses by the processor, and without
    the random identifiers that Matroska otherwise gets.
    """
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        options = {"preset": "veryfast", "qp": "26", "g": str(2 * rate), "bf": "2"}
        stream.options = options | {"x264-params": "cpu-independent=1"}  # type: ignore[assignment]
        for image in frames:
            if not stream.codec_context.is_open:
                stream.height, stream.width = image.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def compare_with_planted(folder: Path) -> list[str]:
    """Compare the predictions for the unlabelled film with its planted labels.

    Parameters
    ----------
    folder
        The demo's: it holds `planted.csv` and `predictions.csv`.

    Returns
    -------
    Lines of a table, and a line that counts the agreement.
    """
    with (folder / "planted.csv").open(encoding="utf-8") as file:
        planted = {row["clip_id"]: row for row in csv.DictReader(file)}
    with (folder / "predictions.csv").open(encoding="utf-8") as file:
        predicted = [row for row in csv.DictReader(file) if row["movie"] == UNLABELLED]
    lines = [
        f"{UNLABELLED}, which nobody labelled:",
        f"{'clip':14}{'planted':9}{'p of S':10}concepts",
    ]
    n_sure = agree = 0
    for row in predicted:
        truth = planted[row["clip_id"]]
        called = row["called"] == "1"
        # A level that is not sure is planted as neither.
        is_sure = truth["level"] != "NS"
        n_sure += is_sure
        agree += is_sure and called == (truth["level"] == "S")
        shown = f"{float(row['p']):.2f}" if row["p"] else "unlike"
        lines.append(
            f"{row['clip_id']:14}{truth['level']:9}{shown + ' S' * called:10}"
            + truth["concepts"].replace(";", ", ")
        )
    told = f"{agree} of {n_sure} clips are called as planted"
    if n_sure < len(predicted):
        told += f"; {len(predicted) - n_sure} planted as not sure (NS) do not count"
    note = "levels and concepts of the demo are planted by this program: no expert judged its films"
    return [*lines, told, note]
