"""The demo's corpus: six films, their clips, and labels that are true by construction."""

import csv
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obygaze_features.demo.drawing import CUES, RATE, Look, draw_clip
from obygaze_features.demo.films import write_film

SEED = 12
LOOKS = (
    Look((1.00, 0.94, 0.86), 0.45, 3.0),
    Look((0.88, 0.94, 1.00), 0.38, 4.0),
    Look((0.96, 1.00, 0.92), 0.50, 3.0),
    Look((1.00, 0.90, 0.90), 0.42, 5.0),
    Look((0.92, 0.92, 1.00), 0.36, 4.0),
    Look((0.98, 0.96, 0.84), 0.48, 3.0),
)
# Films differ in how many clips of each level they have, as real films do.
LEVELS = (
    {"EN": 11, "HN": 5, "NS": 2, "S": 6},
    {"EN": 13, "HN": 4, "NS": 3, "S": 4},
    {"EN": 9, "HN": 6, "NS": 2, "S": 7},
    {"EN": 12, "HN": 4, "NS": 2, "S": 6},
    {"EN": 10, "HN": 6, "NS": 3, "S": 5},
    {"EN": 12, "HN": 5, "NS": 2, "S": 5},
)
CONCEPTS_PER_CLIP = {"EN": (0, 0), "HN": (1, 2), "NS": (1, 3), "S": (3, 5)}
STRENGTH = {"EN": (0.0, 0.0), "HN": (0.2, 0.5), "NS": (0.3, 0.8), "S": (0.7, 1.0)}
SHORTEST, LONGEST = 5, 20
CORRUPT, MISSING = "tt9000002-005", "tt9000003-009"


@dataclass(frozen=True, slots=True)
class PlannedClip:
    """One clip, before it is drawn."""

    clip_id: str
    level: str
    concepts: tuple[str, ...]
    strength: float
    n_frames: int
    seed: int


@dataclass(frozen=True, slots=True)
class PlannedFilm:
    """One film: its look and its clips, in a file each, or all in one file of which clips are spans."""

    movie: str
    look: Look
    clips: tuple[PlannedClip, ...]
    one_file: bool


def plan_corpus() -> tuple[PlannedFilm, ...]:
    """Plan six films of 24 clips, the same ones every time; the last film is one long file."""
    films = []
    for number, (look, levels) in enumerate(zip(LOOKS, LEVELS, strict=True), start=1):
        rng = np.random.default_rng([SEED, number])
        movie = f"tt{9000000 + number}"
        order = rng.permutation(list(chain.from_iterable([level] * n for level, n in levels.items())))
        clips = tuple(
            _plan_clip(f"{movie}-{i:03d}", str(level), rng) for i, level in enumerate(order, start=1)
        )
        films.append(PlannedFilm(movie, look, clips, one_file=number == len(LOOKS)))
    return tuple(films)


def _plan_clip(clip_id: str, level: str, rng: np.random.Generator) -> PlannedClip:
    fewest, most = CONCEPTS_PER_CLIP[level]
    concepts = rng.choice(list(CUES), size=rng.integers(fewest, most + 1), replace=False)
    # Most clips are short and a few are long, as in MovieGraphs.
    seconds = min(SHORTEST + rng.exponential(2.0), LONGEST)
    return PlannedClip(
        clip_id,
        level,
        tuple(str(c) for c in concepts),
        float(rng.uniform(*STRENGTH[level])),
        int(seconds * RATE),
        int(rng.integers(2**31)),
    )


def write_corpus(folder: Path, workers: int, on_film: Callable[[str], object] = lambda _: None) -> Path:
    """Draw and encode the films below `folder/films` and write their labels.

    One clip's file is garbage and another's is never written, as happens to every real corpus.

    Parameters
    ----------
    on_film
        Called with the movie of each film that is finished.

    Returns
    -------
    The table of labels, `folder/labels.csv`, in the form that `obygaze manifest import folder --spans` reads.
    """
    films = plan_corpus()
    for film in films:
        (folder / "films" / film.movie).mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {
            pool.submit(_write_film_files, film, folder / "films" / film.movie): film for film in films
        }
        for finished in as_completed(running):
            finished.result()
            on_film(running[finished].movie)
    return _write_labels(films, folder / "labels.csv")


def _draw(film: PlannedFilm, clip: PlannedClip) -> Iterator[NDArray[np.uint8]]:
    return draw_clip(film.look, clip.concepts, clip.strength, clip.n_frames, clip.seed)


def _write_film_files(film: PlannedFilm, folder: Path) -> None:
    if film.one_file:
        write_film(folder / "film.mkv", chain.from_iterable(_draw(film, clip) for clip in film.clips), RATE)
        return
    for clip in film.clips:
        path = folder / f"{clip.clip_id}.mp4"
        if clip.clip_id == CORRUPT:
            path.write_bytes(np.random.default_rng(SEED).bytes(20_000))
        elif clip.clip_id != MISSING:
            write_film(path, _draw(film, clip), RATE)


def _write_labels(films: tuple[PlannedFilm, ...], path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts"])
        for film in films:
            start = 0
            for clip in film.clips:
                end = start + clip.n_frames
                span = (start / RATE, end / RATE) if film.one_file else ("", "")
                name = "film.mkv" if film.one_file else f"{clip.clip_id}.mp4"
                video = f"{film.movie}/{name}"
                table.writerow([clip.clip_id, film.movie, video, *span, clip.level, ";".join(clip.concepts)])
                start = end
    return path
