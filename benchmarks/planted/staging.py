"""Variables of staging: planted motions of a camera over stills, and speech in rooms and over music.

Stills are dead leaves (Lee, Mumford & Huang 2001): discs that hide each other, of sizes like those of things
in pictures. Speech is eSpeak NG's, with five voices; music is plucked strings, drums, a distorted guitar.
"""

import ctypes
from functools import cache
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, lfilter, resample_poly

from benchmarks.planted.row import Cell, Column, Draw, Floats, Row
from obygaze_features.backbones.camera import camera_values, encode, prepare
from obygaze_features.backbones.sound_measures import RATE
from obygaze_features.backbones.speech import CHUNK, SPEECH, speech_probabilities

Picture = NDArray[np.uint8]

WIDTH = 320
HEIGHT = 180
SPEEDS = {
    "pan": (0.05, 0.15, 0.3),
    "tilt": (0.05, 0.15, 0.3),
    "zoom": (1.05, 1.15, 1.3),
    "roll": (3.0, 10.0, 20.0),
}
"""Widths and heights of the picture a second, growth and degrees a second."""

WITHIN = 0.05

# --- camera
# ---------------------------------------------------------------------------


def leaves(rng: np.random.Generator) -> Picture:
    """Draw a still `[480, 720, 3]`."""
    still = np.full((480, 720, 3), 128, np.uint8)
    for radius in sorted(np.minimum(4 * (1 + rng.pareto(2.0, 2500)), 160), reverse=True):
        middle = int(rng.integers(720)), int(rng.integers(480))
        axes = int(radius), int(radius * rng.uniform(0.4, 1.0))
        colour = rng.integers(20, 236, 3).tolist()
        cv2.ellipse(still, middle, axes, float(rng.uniform(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
    grain = cv2.GaussianBlur(rng.normal(0, 40, still.shape[:2]), (0, 0), 1.5)
    return np.asarray(np.clip(still + grain[..., None], 0, 255), np.uint8)


def filmed(
    still: Picture, right: float = 0.0, down: float = 0.0, growth: float = 1.0, turn: float = 0.0
) -> Picture:
    """Take the picture of a camera over a still, moved by pixels of the picture, grown, turned clockwise."""
    scale = min(still.shape[1] / WIDTH, still.shape[0] / HEIGHT) * 0.55
    cos = np.cos(turn) * scale / growth
    sin = np.sin(turn) * scale / growth
    x = (WIDTH - 1) / 2
    y = (HEIGHT - 1) / 2
    middle = still.shape[1] / 2 + right * scale, still.shape[0] / 2 + down * scale
    matrix = np.array([[cos, -sin, middle[0] - cos * x + sin * y], [sin, cos, middle[1] - sin * x - cos * y]])
    flags = cv2.INTER_AREA | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(still, matrix, (WIDTH, HEIGHT), flags=flags, borderMode=cv2.BORDER_REFLECT_101),
        np.uint8,
    )


def read(rng: np.random.Generator, before: Picture, after: Picture, gap_s: float) -> dict[str, float]:
    """Add grain, compress, and measure a pair as `film variables` does."""
    frames = []
    for picture in (before, after):
        grainy = np.clip(picture + rng.normal(0, 3, picture.shape), 0, 255).astype(np.uint8)
        coded = cv2.imdecode(
            cv2.imencode(".jpg", grainy, [cv2.IMWRITE_JPEG_QUALITY, 75])[1], cv2.IMREAD_COLOR
        )
        frames.append(prepare(coded))
    return camera_values(encode(np.stack(frames)[None])["frames"][0], np.array([0.0, gap_s]))


def moved(rng: np.random.Generator, gap_s: float, foreground: float = 0.0) -> Draw:
    """Plant each motion at each speed, and ask whether it is read within 5 %.

    A foreground is a disc of another still over a share of the picture, which moves against the camera.
    """
    still = leaves(rng)
    second_picture = leaves(rng)
    answers: dict[str, list[bool]] = {}
    absent = []
    for kind, speeds in SPEEDS.items():
        for speed in speeds[1:2] if foreground else speeds:
            amount = speed**gap_s if kind == "zoom" else speed * gap_s
            across = WIDTH * amount if kind == "pan" else 0.0
            down = HEIGHT * amount if kind == "tilt" else 0.0
            growth = amount if kind == "zoom" else 1.0
            turn = np.radians(amount) if kind == "roll" else 0.0
            pair = filmed(still, -across / 2, -down / 2), filmed(still, across / 2, down / 2, growth, turn)
            for side, picture in zip((-12, 12), pair, strict=True):
                mask = np.zeros((HEIGHT, WIDTH), np.uint8)
                cv2.circle(
                    mask,
                    (WIDTH // 2 + side, 100),
                    round((foreground * WIDTH * HEIGHT / np.pi) ** 0.5),
                    255,
                    -1,
                )
                if foreground:
                    picture[mask > 0] = filmed(second_picture, -side)[mask > 0]
            values = read(rng, *pair, gap_s)
            true = {"pan": amount, "tilt": -amount * HEIGHT / WIDTH, "zoom": np.log(growth), "roll": amount}[
                kind
            ]
            absent.append(not values)
            answers.setdefault(kind, []).append(
                bool(values) and abs(values[kind] * gap_s / true - 1) <= WITHIN
            )
    return {**answers, "none told": absent} if gap_s <= 1 else {"none told": absent}


def cut(rng: np.random.Generator, gap_s: float) -> Draw:
    """Ask about pairs of different stills."""
    stills = [filmed(leaves(rng)) for _ in range(4)]
    return {"none told": [not read(rng, *pair, gap_s) for pair in pairwise(stills)]}


# --- speech
# ---------------------------------------------------------------------------

VOICES = ("en-us", "en-gb", "fr-fr", "de", "en-us+f3")
TEXT = (
    "The house stood at the end of the road, and nobody had lived in it for many years. In the evening the "
    "windows were lit, and somebody was heard to speak, slowly, as if to a child. We went on without a word. "
    "When the rain had stopped she asked him where he had been, and he said that he could not remember. "
)
PART_S = 1.44
"""Seconds of a part, which is speech where over 30 % of its chunks are."""


class Speaker:
    """eSpeak NG, which one process starts once."""

    def __init__(self) -> None:
        import espeakng_loader

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.rate = self._library.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 1 << 15)
        self._parts: list[NDArray[np.int16]] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        self._callback = kind(self._keep)
        self._library.espeak_SetSynthCallback(self._callback)

    def _keep(self, samples: Any, n: int, _events: object) -> int:
        if n > 0:
            self._parts.append(np.ctypeslib.as_array(samples, (n,)).copy())
        return 0

    def speak(self, voice: str, text: bytes) -> Floats:
        """Speak a text."""
        self._parts.clear()
        self._library.espeak_SetVoiceByName(voice.encode())
        self._library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, 0, 0, 1, None, None)
        self._library.espeak_Synchronize()
        return np.concatenate(self._parts) / 2.0**15


speaker = cache(Speaker)


@cache
def spoken(voice: str) -> Floats:
    """Speak the text at 16 kHz."""
    return loud(resample_poly(speaker().speak(voice, TEXT.encode()), RATE, speaker().rate))


def loud(samples: Floats, level_db: float = -26.0) -> Floats:
    """Scale samples to a root mean square of what is no silence."""
    heard = samples[np.abs(samples) > 1e-3 * np.abs(samples).max()]
    return np.asarray(samples * 10 ** (level_db / 20) / np.sqrt(np.mean(heard**2)))


def music(rng: np.random.Generator, n: int, kind: str) -> Floats:
    """Play plucked strings (Karplus & Strong 1983), drums, and in rock a distorted guitar."""
    samples = np.zeros(n + RATE)
    scale = 110 * 2 ** (np.array([0, 3, 5, 7, 10, 12, 15]) / 12)
    for beat, start in enumerate(range(0, n, RATE // 4)):
        chord = rng.choice(scale, 3 if kind == "rock" else 1) * (1 if kind == "rock" else 2)
        for pitch in chord:
            period = round(RATE / pitch)
            burst = np.zeros(RATE)
            burst[:period] = rng.uniform(-1, 1, period)
            samples[start : start + RATE] += lfilter(
                [1.0], [1.0, *np.zeros(period - 1), -0.498, -0.498], burst
            )
        hit = rng.normal(size=2000) * np.exp(-np.arange(2000) / (150 if beat % 2 else 500))
        samples[start : start + 2000] += hit * (1.0 if kind == "rock" else 0.3)
    return loud(np.tanh(4 * samples[:n]) if kind == "rock" else samples[:n])


def room(rng: np.random.Generator, dry: Floats, rt60_s: float) -> Floats:
    """Add a room's exponential reverberation, as strong as the direct sound."""
    n = round(rt60_s * RATE)
    tail = rng.normal(size=n) * 10 ** (-3 * np.arange(n) / n)
    wet = fftconvolve(dry, tail)[: len(dry)]
    return np.asarray(dry + wet * np.sqrt(np.mean(dry**2) / np.mean(wet**2)))


def talked(
    rng: np.random.Generator, rt60_s: float = 0.0, below_db: float | None = None, kind: str = "rock"
) -> Draw:
    """Hear 24 s of a voice in a room, or with music so far below it."""
    voice = spoken(VOICES[int(rng.integers(len(VOICES)))])
    dry = np.resize(np.roll(voice, -int(rng.integers(len(voice)))), 24 * RATE)
    mixed = room(rng, dry, rt60_s) if rt60_s else dry
    if below_db is not None:
        mixed = mixed + music(rng, len(mixed), kind) * 10 ** (-below_db / 20)
    is_speech = speech_probabilities([mixed.astype(np.float32)]) > SPEECH
    size = round(PART_S * RATE / CHUNK)
    parts = is_speech[: len(is_speech) // size * size].reshape(-1, size).mean(axis=1)
    return {"parts that are speech": parts > 0.3}


def played(rng: np.random.Generator, kind: str) -> Draw:
    """Hear 24 s of music alone."""
    samples = music(rng, 24 * RATE, kind)
    return {"chunks of music": speech_probabilities([samples.astype(np.float32)]) > SPEECH}


def in_turns(rng: np.random.Generator, below_db: float | None = None) -> Draw:
    """Hear a voice for 5 s in 10; its time is that of chunks with sound of it, and pauses under .2 s."""
    voice = np.resize(spoken(VOICES[int(rng.integers(len(VOICES)))]), 40 * RATE)
    is_on = np.arange(len(voice)) // (5 * RATE) % 2 == 0
    voice = np.where(is_on, voice, 0.0)
    levels = np.sqrt(np.mean(voice.reshape(-1, CHUNK) ** 2, axis=1))
    true = levels > 0.01 * levels.max()
    for first, after in np.flatnonzero(np.diff(~true, prepend=False, append=False)).reshape(-1, 2).tolist():
        true[first:after] = after - first < 0.2 * RATE / CHUNK
    mixed = voice if below_db is None else voice + music(rng, len(voice), "song") * 10 ** (-below_db / 20)
    is_speech = speech_probabilities([mixed.astype(np.float32)]) > SPEECH
    return {"share of time, off by": abs(is_speech.mean() - true.mean())}


TOLD = Column(low=0.95, digits=2)
ROWS = [
    Row(
        "camera", "docs/film.md", "film variables",
        "Share of planted motions that are read within 5 %, of .05, .15 and .3 of the picture, 1.05 to 1.3 "
        "times and 3 to 20 degrees a second over synthetic stills; a foreground moves against the camera.",
        ("picture", "gap, s"),
        [Cell(("still", f"{gap:g}"), (gap,)) for gap in (0.1, 0.2, 0.33, 0.5)]
        + [Cell(("still", "1.2"), (1.2,), {"none told": Column(low=1.0, digits=2)})]
        + [Cell((f"foreground {share:g}", "0.2"), (0.2, share), dict.fromkeys(SPEEDS, Column(low, digits=2)))
           for share, low in ((0.1, 0.9), (0.25, 0.7), (0.4, -np.inf))],
        moved,
        dict.fromkeys(SPEEDS, TOLD) | {"none told": Column(digits=2)},
        full=12, small=1, small_cells=8,
    ),
    Row(
        "cuts", "docs/film.md", "film variables",
        "Pairs of frames across a cut.", ("pair", ), [Cell(("two stills",), (0.2,))], cut,
        {"none told": Column(low=1.0, digits=2)}, full=12, small=1,
    ),
    Row(
        "speech", "docs/film.md", "film variables --sound",
        "Parts of 1.44 s in which over 30 % of chunks are called speech; a room's echoes are together as "
        "strong as the voice.", ("speech of eSpeak NG",),
        [Cell((f"in a room, RT60 {rt60:g} s",), (rt60,)) for rt60 in (0.3, 0.6, 1.2)]
        + [Cell((f"rock {below:g} dB below",), (0.0, below)) for below in (20.0, 10.0, 5.0, 0.0)],
        talked, {"parts that are speech": TOLD}, full=12, small=1, small_cells=7,
    ),
    Row(
        "music", "docs/film.md", "film variables --sound",
        "Chunks of music that are called speech.", ("music",),
        [Cell((kind,), (kind,)) for kind in ("rock", "song")], played,
        {"chunks of music": Column(high=0.02)}, full=12, small=1,
    ),
    Row(
        "speech_time", "docs/film.md", "film variables --sound",
        "Share of time with speech, by chunks, where a voice speaks 5 s of 10.", ("beside it",),
        [Cell(("silence",)), Cell(("a song 10 dB below",), (10.0,))], in_turns,
        {"share of time, off by": Column(high=0.08)}, full=12, small=1,
    ),
]  # fmt: skip
