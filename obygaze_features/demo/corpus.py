"""Generate the demo corpus: seven films, their clips, and labels that are known by construction.

What is planted: the level of a clip follows from its concepts alone. S clips show Body together with one or
two of Posture, Clothing and Appearance; HN clips never show Body; EN clips show no concept. How visible a
cue is, how bright a clip is and how its colours lean does not depend on the level; each film has a look of
its own. So concepts tell levels apart, a direction that knows no concept does so poorly, and a film's look
does not at all. Nobody labelled the last film: it is there to be predicted.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from obygaze_features.demo.drawing import RATE, Look, draw_clip
from obygaze_features.errors import WorkerError
from obygaze_features.io import csv_line, write_whole
from obygaze_features.workers import WorkerPool

SEED = 13
LOOKS = (
    Look((1.00, 0.94, 0.86), 0.45, 3.0),
    Look((0.88, 0.94, 1.00), 0.38, 4.0),
    Look((0.96, 1.00, 0.92), 0.50, 3.0),
    Look((1.00, 0.90, 0.90), 0.42, 5.0),
    Look((0.92, 0.92, 1.00), 0.36, 4.0),
    Look((0.98, 0.96, 0.84), 0.48, 3.0),
    Look((0.94, 0.98, 0.98), 0.44, 4.0),
)
# Films differ in how many clips of each level they have, as real films do.
LEVELS = (
    {"EN": 11, "HN": 5, "NS": 2, "S": 6},
    {"EN": 13, "HN": 4, "NS": 3, "S": 4},
    {"EN": 9, "HN": 6, "NS": 2, "S": 7},
    {"EN": 12, "HN": 4, "NS": 2, "S": 6},
    {"EN": 10, "HN": 6, "NS": 3, "S": 5},
    {"EN": 11, "HN": 5, "NS": 2, "S": 6},
    {"EN": 9, "HN": 7, "NS": 2, "S": 6},
)
DECISIVE = ("Body",)
BESIDE = ("Posture", "Clothing", "Appearance")
ELSE = ("Type of shot", "Look", "Expression of emotion", "Activity")
CONCEPTS: Mapping[str, tuple[tuple[tuple[str, ...], int, int], ...]] = {
    "EN": (),
    "HN": ((BESIDE, 0, 1), (ELSE, 1, 3)),
    "NS": ((DECISIVE, 0, 1), (BESIDE, 0, 1), (ELSE, 1, 2)),
    "S": ((DECISIVE, 1, 1), (BESIDE, 1, 2), (ELSE, 0, 1)),
}
"""Of each level: concepts to draw from, fewest and most."""

STRENGTH = (0.6, 1.0)
SWAY = 0.1
"""How far a clip's brightness may lie from its film's, as a share; its colours, a third of that."""

UNLABELLED = "tt9000007"
"""The film without labels."""
POLL_S = 1.0
SHORTEST, LONGEST = 5, 20
CORRUPT, MISSING = "tt9000002-005", "tt9000003-009"


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """One clip, before it is drawn."""

    clip_id: str
    level: str
    concepts: tuple[str, ...]
    look: Look
    strength: float
    n_frames: int
    seed: int


@dataclass(frozen=True, slots=True)
class PlannedMovie:
    """One film: its clips, in a file each, or all in one file of which clips are spans."""

    movie: str
    clips: tuple[PlannedClip, ...]
    one_file: bool


def plan_corpus() -> tuple[PlannedMovie, ...]:
    """Plan seven films of 24 clips, the same ones every time; the last two are one long file each."""
    movies = []
    for number, (look, levels) in enumerate(zip(LOOKS, LEVELS, strict=True), start=1):
        rng = np.random.default_rng([SEED, number])
        movie = f"tt{9000000 + number}"
        order = rng.permutation(list(chain.from_iterable([level] * n for level, n in levels.items())))
        clips = tuple(
            _plan_clip(f"{movie}-{i:03d}", str(level), look, rng) for i, level in enumerate(order, start=1)
        )
        movies.append(PlannedMovie(movie, clips, one_file=number > len(LOOKS) - 2))
    return tuple(movies)


def _plan_clip(clip_id: str, level: str, look: Look, rng: np.random.Generator) -> PlannedClip:
    concepts = [
        str(concept)
        for names, fewest, most in CONCEPTS[level]
        for concept in rng.choice(names, size=rng.integers(fewest, most + 1), replace=False)
    ]
    # Most clips are short and a few are long, as in MovieGraphs.
    seconds = min(SHORTEST + rng.exponential(2.0), LONGEST)
    red, green, blue = (float(min(part * rng.uniform(1 - SWAY / 3, 1 + SWAY / 3), 1.0)) for part in look.tint)
    return PlannedClip(
        clip_id,
        level,
        tuple(concepts),
        Look((red, green, blue), look.brightness * float(rng.uniform(1 - SWAY, 1 + SWAY)), look.grain),
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
    The table of labels, `folder/labels.csv`, in the form that `obygaze manifest import folder --spans` reads.
    What was planted in every clip, those of the film without labels too, is in `folder/planted.csv`.
    """
    movies = plan_corpus()
    for planned in movies:
        (folder / "films" / planned.movie).mkdir(parents=True, exist_ok=True)
    with WorkerPool(workers, _work) as pool:
        for planned in movies:
            pool.put(planned.movie, (planned, folder / "films" / planned.movie), float("inf"))
        left = len(movies)
        while left:
            event = pool.get(POLL_S)
            if event and event.kind == "died":
                raise WorkerError(f"the process that drew {event.key} died ({event.value})")
            if event and event.kind == "done":
                left -= 1
                on_movie(str(event.key))
    _write_planted(movies, folder / "planted.csv")
    return _write_labels(movies, folder / "labels.csv")


def _draw(clip: PlannedClip) -> Iterator[NDArray[np.uint8]]:
    return draw_clip(clip.look, clip.concepts, clip.strength, clip.n_frames, clip.seed)


def _work(task: tuple[PlannedMovie, Path], _files: Mapping[int, int]) -> Iterator[None]:
    """Write a film in a worker; there is nothing to send back."""
    _write_movie(*task)
    yield from ()


def _write_movie(planned: PlannedMovie, folder: Path) -> None:
    if planned.one_file:
        write_video(folder / "film.mkv", chain.from_iterable(_draw(clip) for clip in planned.clips), RATE)
        return
    for clip in planned.clips:
        path = folder / f"{clip.clip_id}.mp4"
        if clip.clip_id == CORRUPT:
            path.write_bytes(np.random.default_rng(SEED).bytes(20_000))
        elif clip.clip_id != MISSING:
            write_video(path, _draw(clip), RATE)


def _write_labels(movies: tuple[PlannedMovie, ...], path: Path) -> Path:
    lines = [csv_line(["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts"])]
    for planned in movies:
        start = 0
        for clip in planned.clips:
            end = start + clip.n_frames
            span = (str(start / RATE), str(end / RATE)) if planned.one_file else ("", "")
            video = f"{planned.movie}/film.mkv" if planned.one_file else f"{planned.movie}/{clip.clip_id}.mp4"
            known = ("", "") if planned.movie == UNLABELLED else (clip.level, ";".join(clip.concepts))
            lines.append(csv_line([clip.clip_id, planned.movie, video, *span, *known]))
            start = end
    write_whole(path, "".join(lines))
    return path


def _write_planted(movies: tuple[PlannedMovie, ...], path: Path) -> None:
    lines = [csv_line(["clip_id", "movie", "level", "concepts"])]
    lines += [
        csv_line([clip.clip_id, planned.movie, clip.level, ";".join(clip.concepts)])
        for planned in movies
        for clip in planned.clips
    ]
    write_whole(path, "".join(lines))


def write_video(path: Path, frames: Iterable[NDArray[np.uint8]], rate: int) -> None:
    """Encode RGB frames, uint8 `[H, W, 3]` each, as H.264 with B-frames; the container follows the suffix.

    The same frames give the same bytes: with one encoder thread, without macroblock-tree rate control (x264's
    differs from run to run, measured), and without the random identifiers that Matroska otherwise gets.
    """
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        stream.options = {"preset": "veryfast", "qp": "26", "g": str(2 * rate), "bf": "2"}
        for image in frames:
            if not stream.codec_context.is_open:
                stream.height, stream.width = image.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())


def beside_planted(folder: Path) -> list[str]:
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
    agree = 0
    for row in predicted:
        truth = planted[row["clip_id"]]
        called = row["called"] == "1"
        agree += called == (truth["level"] == "S")
        shown = f"{float(row['p']):.2f}" if row["p"] else "unlike"
        lines.append(
            f"{row['clip_id']:14}{truth['level']:9}{shown + ' S' * called:10}"
            + truth["concepts"].replace(";", ", ")
        )
    return [*lines, f"{agree} of {len(predicted)} clips are called as planted"]
