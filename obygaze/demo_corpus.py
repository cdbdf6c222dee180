"""Generate the demo corpus: draw seven films, their clips, and labels that are known by construction.

What is planted: the level of a clip follows from its concepts alone. S and HN clips show one or two of
Posture, Clothing and Appearance, and other concepts that do not depend on the level; S clips also show Body,
HN clips never do; EN clips show no concept. The cues of concepts are faint. How visible a cue is, how bright
a clip is and which colours it has does not depend on the level and varies more than any cue; each film has a
look of its own. So a model of concepts can tell the levels apart most of the time, a direction that knows no
concept can tell little more than whether a clip shows any, and the look of a film tells nothing. The last
film has no labels: it is there to be predicted.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import WorkerError
from obygaze_features.io import write_whole
from obygaze_features.lines import csv_line
from obygaze_features.manifest import PLANTED
from obygaze_features.screen import probability
from obygaze_features.text import counted
from obygaze_features.workers import Parent, WorkerPool

HEIGHT = 96
"""Height of a frame in pixels."""

WIDTH = 160
"""Width of a frame in pixels."""

RATE = 24
"""Frames per second."""

ROWS = np.arange(HEIGHT, dtype=np.float32)[:, None]
"""Number of each row of a frame, `[96, 1]`."""

COLUMNS = np.arange(WIDTH, dtype=np.float32)[None]
"""Number of each column of a frame, `[1, 160]`."""

CHECKS_FIELD = (slice(24, 72), slice(100, 150))
"""Rows and columns of the field of checks."""

CHECKS = ((COLUMNS // 3 + ROWS // 3) % 2 - 0.5)[CHECKS_FIELD]
"""Checks of 3 x 3 pixels: -0.5 and 0.5 in turn, `[48, 50]`."""

STRIPES = (COLUMNS + ROWS) // 5 % 2
"""Diagonal stripes, 5 columns wide: 0 and 1 in turn, `[96, 160]`."""

SEED = 13
"""Seed of the whole corpus."""


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
"""The concept that tells S clips from HN clips."""

ACCOMPANYING = ("Posture", "Clothing", "Appearance")
"""Concepts of which every S and HN clip shows one or two."""

INDEPENDENT = ("Type of shot", "Look", "Expression of emotion", "Activity")
"""Concepts that do not tell S clips from HN clips."""

CONCEPTS: Mapping[str, tuple[tuple[tuple[str, ...], int, int], ...]] = {
    "EN": (),
    "HN": ((ACCOMPANYING, 1, 2), (INDEPENDENT, 1, 2)),
    "NS": ((DECISIVE, 0, 1), (ACCOMPANYING, 0, 1), (INDEPENDENT, 1, 2)),
    "S": ((DECISIVE, 1, 1), (ACCOMPANYING, 1, 2), (INDEPENDENT, 1, 2)),
}
"""Level -> groups of concepts, each with the smallest and the largest number that a clip shows of it."""

CUE_STRENGTHS = (0.2, 0.4)
"""Smallest and largest strength of a clip's cues."""

BRIGHTNESS_FACTORS = (1 - 0.6, 1 + 0.6)
"""Smallest and largest factor by which a clip's brightness differs from its film's."""

COLOUR_FACTORS = (1 - 0.6 / 3, 1 + 0.6 / 3)
"""Smallest and largest factor by which a clip's red, green and blue differ from its film's."""

UNLABELLED = "tt9000007"
"""The film without labels."""

SHORTEST_CLIP_S = 5
"""Shortest duration of a clip in seconds."""

LONGEST_CLIP_S = 20
"""Longest duration of a clip in seconds."""

CORRUPT = "tt9000002-005"
"""The clip whose file holds random bytes."""

MISSING = "tt9000003-009"
"""The clip whose file is not written."""

POLL_S = 1.0
"""Seconds between two checks whether the workers have finished a film."""


@dataclass(frozen=True, slots=True)
class DemoClip:
    """The plan of a clip.

    Attributes
    ----------
    clip_id
        Its id.
    level, concepts
        What is planted in it.
    look
        Its look, which differs a little from its film's.
    strength
        Strength of the cues of its concepts, between 0 and 1.
    n_frames
        Number of frames.
    seed
        Seed of the random parts of its frames.
    """

    clip_id: str
    level: str
    concepts: tuple[str, ...]
    look: Look
    strength: float
    n_frames: int
    seed: int


@dataclass(frozen=True, slots=True)
class DemoMovie:
    """The plan of a film: its clips, and whether they are spans of one file or have a file each."""

    movie: str
    clips: tuple[DemoClip, ...]
    one_file: bool


def plan_corpus() -> tuple[DemoMovie, ...]:
    """Plan the demo's seven films of 24 clips each, the same ones every time.

    Each of the last two films is one long file; the others have a file for each clip.
    """
    movies = []
    first_one_file = len(FILMS) - 1  # number of the first film that is one file
    for number, (look, n_clips_of_level) in enumerate(FILMS, start=1):
        rng = np.random.default_rng([SEED, number])  # each film has random numbers of its own
        movie = f"tt{9000000 + number}"

        levels_of_clips: list[str] = []
        for level, n_clips in n_clips_of_level.items():
            levels_of_clips += [level] * n_clips

        clips = []
        for index, level in enumerate(rng.permutation(levels_of_clips), start=1):
            clips.append(_plan_clip(f"{movie}-{index:03d}", str(level), look, rng))
        movies.append(DemoMovie(movie, tuple(clips), one_file=number >= first_one_file))
    return tuple(movies)


def _plan_clip(clip_id: str, level: str, look: Look, rng: np.random.Generator) -> DemoClip:
    """Draw at random what one clip shows, how it looks and how long it is.

    Parameters
    ----------
    clip_id
        The clip's id.
    level
        The clip's level, on which the concepts that it may show depend.
    look
        The look of its film, from which the clip's look differs a little.
    rng
        The film's generator. The order of the draws is fixed: it determines the corpus.
    """
    concepts: list[str] = []
    for group, fewest, most in CONCEPTS[level]:  # a group of concepts, and how many a clip shows of it
        n_concepts = rng.integers(fewest, most + 1)
        concepts += map(str, rng.choice(group, size=n_concepts, replace=False))

    # Most clips are short and a few are long, as in MovieGraphs.
    seconds = min(SHORTEST_CLIP_S + rng.exponential(2.0), LONGEST_CLIP_S)

    colours = [min(channel * rng.uniform(*COLOUR_FACTORS), 1.0) for channel in look.tint]
    red, green, blue = map(float, colours)
    brightness = look.brightness * float(rng.uniform(*BRIGHTNESS_FACTORS))
    strength = float(rng.uniform(*CUE_STRENGTHS))
    seed = int(rng.integers(2**31))
    clip_look = Look((red, green, blue), brightness, look.grain)
    return DemoClip(clip_id, level, tuple(concepts), clip_look, strength, int(seconds * RATE), seed)


def write_corpus(folder: Path, workers: int, on_movie: Callable[[str], object] = lambda _: None) -> Path:
    """Draw and encode the films below `folder/films` and write their labels.

    One clip's file is garbage and another's is never written, as happens to every real corpus.

    Parameters
    ----------
    folder
        Folder of the demo.
    workers
        Number of processes that draw and encode films.
    on_movie
        Called with the movie of each film that is finished.

    Returns
    -------
    The table of labels, `folder/labels.csv`, in the form that `obygaze manifest import spans` reads.
    What was planted in every clip, those of the film without labels too, is in `folder/planted.csv`.
    """
    movies = plan_corpus()
    with WorkerPool(workers, _write_movie) as pool:
        for planned in movies:
            film_folder = folder / "films" / planned.movie
            film_folder.mkdir(parents=True, exist_ok=True)
            pool.put(planned.movie, (planned, film_folder))
        n_unfinished = len(movies)
        while n_unfinished > 0:
            event = pool.get(POLL_S)
            if event is None:  # nothing has happened since
                continue
            if event.kind == "died":
                raise WorkerError(f"the process that drew {event.key} died ({event.value})")
            if event.kind == "done":
                n_unfinished -= 1
                on_movie(str(event.key))
    _write_tables(movies, folder)
    return folder / "labels.csv"


def _write_movie(task: tuple[DemoMovie, Path], _parent: Parent) -> None:
    """Draw and encode the files of a film in a worker process; the task is the film's plan and its folder.

    On purpose, the file of the clip `CORRUPT` is random bytes, and that of the clip `MISSING` is not written.
    """
    planned, folder = task
    if planned.one_file:
        frames_of_film = chain.from_iterable(map(draw_clip, planned.clips))
        write_video(folder / f"{planned.movie}.mkv", frames_of_film, RATE)
        return
    for clip in planned.clips:
        path = folder / f"{clip.clip_id}.mp4"
        if clip.clip_id == MISSING:
            continue
        if clip.clip_id == CORRUPT:
            path.write_bytes(np.random.default_rng(SEED).bytes(20_000))
        else:
            write_video(path, draw_clip(clip), RATE)


def draw_clip(clip: DemoClip) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of one clip, uint8 `[96, 160, 3]` each, with the cue of each of its concepts.

    No person is drawn. The cue of a concept is a motion, colour or texture, which stands for it in the demo:
    short shots for Type of shot, a pan for Look, and those named below for the others. The numbers are
    chosen so that the cues can be told apart and none covers another.

    A frame is a background of soft waves, in the brightness and tint of the clip; then shapes; then grain.
    """
    rng = np.random.default_rng(clip.seed)
    look = clip.look

    # Cues of the clip as a whole
    shot_seconds = 1.0 if "Type of shot" in clip.concepts else 5.0
    frames_of_shot = int(RATE * shot_seconds)
    pan_speed = 2.5 * clip.strength if "Look" in clip.concepts else 0.2  # columns per frame

    # Eight pictures of grain take turns.
    grain = rng.normal(0, look.grain, (8, HEIGHT, WIDTH, 1)).astype(np.float32)
    phase = float(rng.uniform(0, 6))  # of the background's waves
    tint = np.array(look.tint, np.float32)

    for number in range(clip.n_frames):
        # The background: its brightness at each place [96, 160], then its colours
        waves = _background(shot=number // frames_of_shot, columns_panned=pan_speed * number, phase=phase)
        light = look.brightness * (1 + waves)
        if "Appearance" in clip.concepts:  # glow
            light = light + 0.35 * clip.strength
        if "Expression of emotion" in clip.concepts:  # flicker
            light = light * (1 + 0.5 * clip.strength * np.sin(number * 0.9))
        frame = 255 * light[..., None] * tint

        _draw_shapes(frame, clip, number)  # draws into `frame`
        yield np.clip(frame + grain[number % 8], 0, 255).astype(np.uint8)


def _background(*, shot: int, columns_panned: float, phase: float) -> NDArray[np.float32]:
    """Draw the waves of a frame's background, `[96, 160]`: how much lighter or darker each pixel is.

    Parameters
    ----------
    shot
        Number of the shot in its clip; each has other waves.
    columns_panned
        How many columns the background has moved to the left since the clip's beginning.
    phase
        Phase of the waves across, which differs from clip to clip.
    """
    # Whole numbers, so that sines are computed in float64 and rounded afterwards: the last bit of a float32
    # sine depends on the processor.
    row_numbers = np.arange(HEIGHT)[:, None]
    column_numbers = np.arange(WIDTH)[None]
    wave_across = 0.25 * np.sin(0.04 * (column_numbers + columns_panned) + shot * 2.1 + phase)
    wave_down = 0.1 * np.cos(0.05 * row_numbers + shot)
    background: NDArray[np.float32] = (wave_across + wave_down).astype(np.float32)
    return background


def _draw_shapes(frame: NDArray[Any], clip: DemoClip, t: int) -> None:
    """Draw the shapes and textures of a clip's concepts into its frame number t, a float `[96, 160, 3]`.

    The frame is changed in place.

    Which shape stands for which concept is arbitrary. What matters is that a frozen network can tell the
    shapes apart by texture, colour and motion, and that they are faint.
    """
    if "Clothing" in clip.concepts:
        _draw_checks(frame, clip.strength)
    if "Posture" in clip.concepts:
        _draw_stripes(frame, clip.strength)
    if "Body" in clip.concepts:
        _draw_disc(frame, clip.strength, t)
    if "Activity" in clip.concepts:
        _draw_sparks(frame, clip.strength, t)


def _draw_checks(frame: NDArray[Any], strength: float) -> None:
    """Make squares of 3 x 3 pixels darker and brighter in turn, in a field at the right that stands still.

    The frame, float `[96, 160, 3]`, is changed in place.
    """
    frame[CHECKS_FIELD] *= (1 + strength * CHECKS)[..., None]


def _draw_stripes(frame: NDArray[Any], strength: float) -> None:
    """Make every second diagonal stripe of the whole frame brighter; stripes are 5 columns wide.

    The frame, float `[96, 160, 3]`, is changed in place.
    """
    frame += 60 * strength * STRIPES[..., None]


def _draw_disc(frame: NDArray[Any], strength: float, t: int) -> None:
    """Blend a disc of the colour of skin into the frame, left of the middle, which sways slowly.

    Its centre is up to 10 pixels to the left and right of column 60, and back after about 5 seconds. The
    frame, float `[96, 160, 3]`, is changed in place.

    Parameters
    ----------
    frame
        The frame.
    strength
        Share of the disc's colour in the mixture, between 0 and 1.
    t
        Number of the frame in its clip.
    """
    skin = np.array((230, 140, 110), np.float32)  # RGB
    radius = 26
    sway = 10 * np.sin(t * 0.05)
    inside = (COLUMNS - 60 - sway) ** 2 + (ROWS - 50) ** 2 < radius**2
    frame[inside] = (1 - strength) * frame[inside] + strength * skin


def _draw_sparks(frame: NDArray[Any], strength: float, t: int) -> None:
    """Draw twelve grey squares of 8 x 8 pixels that fly through the frame at three speeds.

    Steps of 17 rows and 41 columns spread their first places over the frame. A square that leaves the frame
    comes back at the other side. The frame, float `[96, 160, 3]`, is changed in place; `t` is its number in
    the clip.
    """
    side = 8
    for k in range(12):
        rows_flown = 5 * t
        columns_flown = 7 * t * (1 + k % 3)  # once, twice or three times 7 columns per frame
        row = (17 * k + rows_flown) % (HEIGHT - side)
        column = (41 * k + columns_flown) % (WIDTH - side)
        frame[row : row + side, column : column + side] = 255 * strength


def _write_tables(movies: tuple[DemoMovie, ...], folder: Path) -> None:
    """Write the corpus's tables into its folder: the labels, and what is planted in each clip.

    The clips of the unlabelled film are in `labels.csv` without level and concepts, and in `planted.csv` with
    them.
    """
    labels = [csv_line(["clip_id", "movie", "video", "start_s", "end_s", "level", "concepts", "annotator"])]
    planted = [csv_line(["clip_id", "movie", "level", "concepts"])]
    for planned in movies:
        start = 0  # number of the clip's first frame in its film
        for clip in planned.clips:
            end = start + clip.n_frames
            if planned.one_file:  # the clip is a span of it, in seconds
                video_and_span = [f"{planned.movie}/{planned.movie}.mkv", str(start / RATE), str(end / RATE)]
            else:
                video_and_span = [f"{planned.movie}/{clip.clip_id}.mp4", "", ""]
            level_and_concepts = [clip.level, ";".join(clip.concepts)]
            label = [*level_and_concepts, PLANTED] if planned.movie != UNLABELLED else ["", "", ""]
            labels.append(csv_line([clip.clip_id, planned.movie, *video_and_span, *label]))
            planted.append(csv_line([clip.clip_id, planned.movie, *level_and_concepts]))
            start = end
    write_whole(folder / "planted.csv", "".join(planted))
    write_whole(folder / "labels.csv", "".join(labels))


def write_video(path: Path, frames: Iterable[NDArray[np.uint8]], rate: int) -> None:
    """Encode RGB frames, uint8 `[H, W, 3]` each, as H.264 with B-frames; the container follows the suffix.

    The same frames give the same bytes: with one encoder thread, without macroblock-tree rate control (x264's
    differs from run to run, measured), without the algorithms that x264 chooses by the processor, and without
    the random identifiers that Matroska otherwise gets.

    Parameters
    ----------
    path
        The file to write.
    frames
        The frames, all of one size.
    rate
        Frames per second.
    """
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        # A constant quantiser, qp, switches rate control off. A key frame comes every two seconds.
        options = {"preset": "veryfast", "qp": "26", "g": str(2 * rate), "bf": "2"}
        stream.options = options | {"x264-params": "cpu-independent=1"}  # type: ignore[assignment]
        for image in frames:
            if not stream.codec_context.is_open:
                stream.height, stream.width = image.shape[:2]
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())  # what the encoder still holds


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
    n_sure = 0
    n_agreeing = 0
    for row in predicted:
        planted_level = planted[row["clip_id"]]["level"]
        is_called_s = row["called"] == "1"
        # NS (not sure) is planted as neither S nor not S.
        if planted_level != "NS":
            n_sure += 1
            if is_called_s == (planted_level == "S"):
                n_agreeing += 1
        # A clip unlike those that the model was trained on has no probability.
        prediction = probability(float(row["p"]), "<") if row["p"] else "unlike"
        if is_called_s:
            prediction += " S"
        concepts = planted[row["clip_id"]]["concepts"].replace(";", ", ")
        lines.append(f"{row['clip_id']:14}{planted_level:9}{prediction:10}{concepts}")

    agreement = f"{n_agreeing} of {counted(n_sure, 'clip')} are called as planted"
    if n_sure < len(predicted):
        agreement += f"; {len(predicted) - n_sure} planted as not sure (NS) do not count"
    note = "levels and concepts of the demo are planted by this program: no expert judged its films"
    return [*lines, agreement, note]
