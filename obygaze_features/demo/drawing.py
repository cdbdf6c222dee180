"""Draw demo clips: moving shapes, with one visible cue per planted concept."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HEIGHT, WIDTH, RATE = 96, 160, 24

# Concept -> the cue that stands for it. No person is drawn: the cues are motion, colour and texture alone.
CUES = {
    "Type of shot": "cuts",
    "Look": "pan",
    "Body": "disc",
    "Posture": "stripes",
    "Clothing": "checks",
    "Appearance": "glow",
    "Expression of emotion": "flicker",
    "Activity": "sparks",
}


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


def draw_clip(
    look: Look, concepts: tuple[str, ...], strength: float, n_frames: int, seed: int
) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of one clip, uint8 `[96, 160, 3]` each.

    Parameters
    ----------
    concepts
        Each one's cue is drawn.
    strength
        How visible the cues are, 0-1.
    """
    rng = np.random.default_rng(seed)
    cues = {CUES[concept] for concept in concepts}
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    shot_length = int(RATE * (1.0 if "cuts" in cues else 5.0))
    pan_speed = 2.5 * strength if "pan" in cues else 0.2
    grain = rng.normal(0, look.grain, (8, HEIGHT, WIDTH, 1)).astype(np.float32)
    phase = float(rng.uniform(0, 6))
    tint = np.array(look.tint, np.float32)
    for t in range(n_frames):
        shot = t // shot_length
        slope = 0.25 * np.sin(0.04 * (x + pan_speed * t) + shot * 2.1 + phase) + 0.1 * np.cos(0.05 * y + shot)
        light = look.brightness * (1 + slope)
        if "glow" in cues:
            light = light + 0.35 * strength
        if "flicker" in cues:
            light = light * (1 + 0.5 * strength * np.sin(t * 0.9))
        frame = 255 * light[..., None] * tint
        if "checks" in cues:
            frame[24:72, 100:150] *= (
                1 + strength * ((x[24:72, 100:150] // 3 + y[24:72, 100:150] // 3) % 2 - 0.5)
            )[..., None]
        if "stripes" in cues:
            frame += 60 * strength * (((x + y) // 5) % 2)[..., None]
        if "disc" in cues:
            inside = (x - 60 - 10 * np.sin(t * 0.05)) ** 2 + (y - 50) ** 2 < 26**2
            frame[inside] = (1 - strength) * frame[inside] + strength * np.array((230, 140, 110), np.float32)
        if "sparks" in cues:
            for k in range(12):
                row, column = (17 * k + 5 * t) % (HEIGHT - 8), (41 * k + 7 * t * (1 + k % 3)) % (WIDTH - 8)
                frame[row : row + 8, column : column + 8] = 255 * strength
        yield np.clip(frame + grain[t % 8], 0, 255).astype(np.uint8)
