"""Whether films that a model was trained on are known again, and new ones are not.

A model is trained on 5 films x 6 clips of drawn pictures (16 frames of 1 to 3 shots: fields of chance as
rough as pictures of nature are, with contrast, light and panning of their own, and discs that move) with
features of chance. Clips of 3 of its films come back under other names and ids: as they were; encoded by
H.264 at a low rate; encoded, and a tenth of width and height cut off, half of it at each side; encoded, and a
tenth cut off at each side. New films are drawn in the same way; in some all films, old and new, begin with
black pictures and one title, whose features are equal to the bit; in some a new film has the look of an old
one. Features of copies that were encoded again are drawn anew, so that pictures alone can tell.
"""

import io
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import obygaze_features as of
import obygaze_models as om
from benchmarks.planted.row import Cell, Column, Draw, Row
from obygaze_features.backbones.signature import FEATURES, describe, prepare
from obygaze_features.store.testing import seal_arrays

HEIGHT = 108
WIDTH = 192
FRAMES = 16
MARGIN = (20, 30)
FILMS = 5
CLIPS = 6
COPIES = 3
NEW = 12
WIDTH_OF_FEATURES = 6
CONSTANT_RATE = "36"

Frames = NDArray[np.uint8]
"""Pictures of a clip [F, H, W, 3]."""


class Look(NamedTuple):
    """Light, contrast and tint of a film."""

    light: float
    contrast: float
    tint: NDArray[np.float64]


class Drawn(NamedTuple):
    """Clips: the pictures of each, and its features [D]."""

    pictures: list[Frames]
    features: NDArray[np.float32]


def look(rng: np.random.Generator) -> Look:
    """Draw the look of a film."""
    return Look(rng.normal() * 20, rng.uniform(0.5, 1.1), rng.uniform(0.85, 1, 3))


def scene(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a field whose amplitudes fall with frequency as those of pictures of nature do."""
    height = HEIGHT + 2 * MARGIN[0]
    width = WIDTH + 2 * MARGIN[1]
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    amplitude = np.maximum(frequency, 1 / width) ** -1.3
    phases = rng.normal(size=amplitude.shape) + 1j * rng.normal(size=amplitude.shape)
    field = np.fft.irfft2(amplitude * phases, s=(height, width))
    return np.asarray((field - field.mean()) / field.std())


def clip(rng: np.random.Generator, film: Look) -> Frames:
    """Draw a clip of one to three shots."""
    n_shots = int(rng.integers(1, 4))
    shot_of = np.sort(rng.integers(0, n_shots, FRAMES))
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    frames = np.empty((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    for shot in range(n_shots):
        field = scene(rng)
        pan = rng.uniform(-2, 2, 2)
        contrast = film.contrast * rng.uniform(0.4, 1)
        light = film.light + 6 * rng.normal()
        discs = rng.uniform((20, 30, 8, -2, -2), (90, 160, 30, 2, 2), (int(rng.integers(0, 4)), 5))
        shades = 1.5 * rng.normal(size=len(discs))
        for frame in np.flatnonzero(shot_of == shot).tolist():
            top, column = (int(side + step * (frame % 8)) for side, step in zip(MARGIN, pan, strict=True))
            picture = field[top : top + HEIGHT, column : column + WIDTH] * rng.uniform(0.98, 1.02)
            for (y, x, radius, down, across), shade in zip(discs, shades, strict=True):
                inside = (rows - y - down * frame) ** 2 + (columns - x - across * frame) ** 2 < radius**2
                picture = picture + shade * inside
            grey = 110 + light + 45 * contrast * picture
            frames[frame] = np.clip(grey[..., None] * film.tint, 0, 255)
    return frames


def encoded(frames: Frames) -> Frames:
    """Encode and decode a clip as a copy that somebody made for a small disk."""
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as container:
        stream = container.add_stream("libx264", rate=12)
        stream.height, stream.width = (size // 2 * 2 for size in frames.shape[1:3])
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1
        stream.options = {"preset": "veryfast", "crf": CONSTANT_RATE}
        for picture in frames:
            cropped = np.ascontiguousarray(picture[: stream.height, : stream.width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(cropped, format="rgb24")))
        container.mux(stream.encode())
    file.seek(0)
    with av.open(file) as container:
        return np.stack([picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)])


def cut(frames: Frames, at_each_side: float) -> Frames:
    """Cut a share of height and width off at each side."""
    down, across = (round(size * at_each_side) for size in frames.shape[1:3])
    return frames[:, down : HEIGHT - down, across : WIDTH - across]


def signature(frames: Frames) -> NDArray[np.float16]:
    """Describe a clip as the backbone does [F, 1321]."""
    return describe(np.stack([prepare(picture)[..., 0] for picture in frames])).astype(np.float16)


WAYS: dict[str, Any] = {
    "as it was": lambda frames: frames,
    "encoded again": encoded,
    "a tenth cut off": lambda frames: encoded(cut(frames, at_each_side=0.05)),
    "a tenth at each side": lambda frames: encoded(cut(frames, at_each_side=0.1)),
}


def film(rng: np.random.Generator, film_look: Look, shared: Drawn | None = None) -> Drawn:
    """Draw the clips of a film; the first ones are shared with others."""
    begins = 0 if shared is None else len(shared.pictures)
    pictures = [clip(rng, film_look) for _ in range(CLIPS - begins)]
    features = rng.normal(size=(CLIPS - begins, WIDTH_OF_FEATURES)).astype(np.float32)
    if shared is None:
        return Drawn(pictures, features)
    return Drawn([*shared.pictures, *pictures], np.concatenate([shared.features, features]))


def make_sealed_store(folder: Path, name: str, films: dict[str, Drawn], *, with_pictures: bool) -> of.Store:
    """Seal a store of films."""
    movie_of = {f"{movie}-{index}": movie for movie, drawn in films.items() for index in range(CLIPS)}
    groups = {"net": {"pooled": np.concatenate([drawn.features for drawn in films.values()])}}
    if with_pictures:
        signatures = [signature(frames) for drawn in films.values() for frames in drawn.pictures]
        groups["signature"] = {"frames": np.stack(signatures)}
    about = {"architecture": {"features": list(FEATURES)}}
    return of.open_store(seal_arrays(folder / name, movie_of, groups, n_frames=FRAMES, **about))


def trained(folder: Path, films: dict[str, Drawn], *, with_pictures: bool) -> Any:
    """Train a model on films whose clips are HN and S in turn, keep it in a file, and read it."""
    store = make_sealed_store(folder, "trained", films, with_pictures=with_pictures)
    levels = ("HN", "S")
    clips = [
        of.Clip(f"{movie}-{index}", movie, level=levels[index % 2])
        for movie in films
        for index in range(CLIPS)
    ]
    data = om.load_dataset(store, of.Manifest(tuple(clips), folder), backbone="net")
    run = om.evaluate(data, ["linear"], task="hn_s")
    return om.load_model(om.save_models(run, data, ["linear"], folder / "kept")["linear"])


def shared_beginning(rng: np.random.Generator) -> Drawn:
    """Draw black pictures and a title, whose features are the same wherever they are shown."""
    black = np.zeros((FRAMES, HEIGHT, WIDTH, 3), np.uint8)
    title = clip(rng, look(rng))
    return Drawn([black, title], rng.normal(size=(2, WIDTH_OF_FEATURES)).astype(np.float32))


def of_copies(rng: np.random.Generator, changed_by: str, with_pictures: bool) -> Draw:
    """Ask a model for films that it was trained on, under other names."""
    films = {f"film {index}": film(rng, look(rng)) for index in range(FILMS)}
    copies = {}
    for index in range(COPIES):
        drawn = films[f"film {index}"]
        features = drawn.features
        if changed_by != "as it was":
            features = rng.normal(size=features.shape).astype(np.float32)
        copies[f"other {index}"] = Drawn([WAYS[changed_by](frames) for frames in drawn.pictures], features)
    return flagged(films, copies, with_pictures=with_pictures)


def of_new(rng: np.random.Generator, world: str, with_pictures: bool) -> Draw:
    """Ask a model for films that it was not trained on."""
    shared = shared_beginning(rng) if world == "one beginning" else None
    looks = [look(rng) for _ in range(FILMS)]
    films = {f"film {index}": film(rng, looks[index], shared) for index in range(FILMS)}
    new = {
        f"new {index}": film(rng, looks[index % FILMS] if world == "one look" else look(rng), shared)
        for index in range(NEW)
    }
    return flagged(films, new, with_pictures=with_pictures)


def flagged(films: dict[str, Drawn], new_films: dict[str, Drawn], *, with_pictures: bool) -> Draw:
    """Measure how many films, and clips of them, are flagged as trained on."""
    with tempfile.TemporaryDirectory() as name:
        model = trained(Path(name), films, with_pictures=with_pictures)
        store = make_sealed_store(Path(name), "asked", new_films, with_pictures=with_pictures)
        predicted = om.predict(model, store)
    is_flagged = predicted.table.assign(flagged=predicted.has("trained_on"))
    by_film = is_flagged.groupby("movie")["flagged"]
    bytes_of_a_clip = (model.training.digests.nbytes + model.training.pictures.nbytes) / (FILMS * CLIPS)
    return {
        "all clips flagged": by_film.all().to_numpy(),
        "any clip flagged": by_film.any().to_numpy(),
        "bytes of a clip": bytes_of_a_clip,
    }


def copy(name: tuple[str, str], changed_by: str, *, pictures: bool, low: float) -> Cell:
    """Make the world of a kind of copies, of which this share is known again at least."""
    return Cell(name, (of_copies, changed_by, pictures), {"all clips flagged": Column(low)})


def new(name: tuple[str, str], world: str, *, pictures: bool) -> Cell:
    """Make a world of new films, of which at most one in a hundred has a clip flagged."""
    return Cell(name, (of_new, world, pictures), {"any clip flagged": Column(high=0.01)})


ROWS = [
    Row(
        "known_films",
        "docs/predict.md",
        "obygaze predict",
        "Films of which all clips, and any clip, are flagged `trained_on`, though no name is that of a film "
        "trained on, and what a model file keeps of a clip.",
        ("films", "store"),
        [
            copy(("trained on, as they were", "features"), "as it was", pictures=False, low=1),
            copy(("trained on, as they were", "and signature"), "as it was", pictures=True, low=1),
            copy(("trained on, encoded again", "and signature"), "encoded again", pictures=True, low=0.95),
            copy(("the same, a tenth cut off", "and signature"), "a tenth cut off", pictures=True, low=0.95),
            copy(
                ("the same, a tenth at each side", "and signature"),
                "a tenth at each side",
                pictures=True,
                low=0.95,
            ),
            new(("new", "and signature"), "any", pictures=True),
            new(("new, of the looks of those trained on", "and signature"), "one look", pictures=True),
            new(
                ("new, all with one black clip and one title", "and signature"),
                "one beginning",
                pictures=True,
            ),
        ],
        lambda rng, draw, *arguments: draw(rng, *arguments),
        {
            "all clips flagged": Column(),
            "any clip flagged": Column(),
            "bytes of a clip": Column(digits=0),
        },
        full=10,
        small=1,
        small_cells=2,
    )
]
