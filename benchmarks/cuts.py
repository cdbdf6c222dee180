"""Cuts planted in steady and in flickering light, and how many of them `--shots own` finds.

    python benchmarks/cuts.py [--videos FOLDER] [--check]

Two films of parts of 6 to 13 s are drawn by the demo's generator, with seeds that are fixed: 121 cuts where
the light flickers (brightness up to 50 % higher and lower at 3.4 Hz), 170 in steady light, 59 among sparks
(twelve bright squares that move). Every eighth part ends in a fade to black of a second, and the next begins
with one. A cut is found if a shot begins within a frame of it; a shot that begins elsewhere is false, but for
the first one inside a fade. The cuts between two parts are shown and are no part of the goals. Then the shots
of the real videos, to be looked at. With --check, exit code 1 if a figure misses its goal.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from decode_clips import VIDEOS
from measure import arguments, show, verdict
from numpy.typing import NDArray

from obygaze.demo_corpus import CUES, LOOKS, RATE, DemoClip, draw_clip, write_video
from obygaze_features.errors import VideoError
from obygaze_features.video import find_shots

FILMS = {
    "one": ({"flicker": 60, "steady": 85, "sparks": 29}, 4),
    "two": ({"flicker": 61, "steady": 85, "sparks": 30}, 2),
}
"""Cuts of each kind of light, and how many times larger than drawn."""

FADED, FADE = 8, RATE
LEAST_FLICKER, LEAST_OTHER, MOST_FALSE = 80, 205, 3


def light(clip: DemoClip) -> str:
    """Name the light of a part."""
    cues = {CUES[concept] for concept in clip.concepts}
    return next((cue for cue in ("flicker", "sparks") if cue in cues), "steady")


def cuts_in(clip: DemoClip) -> range:
    """Frames of a part at which the generator cuts."""
    length = RATE if "Type of shot" in clip.concepts else 5 * RATE
    return range(length, clip.n_frames, length)


def plan(seed: int, wanted: dict[str, int]) -> list[DemoClip]:
    """Draw parts by chance, and keep those whose cuts are still wanted."""
    rng, left, parts = np.random.default_rng(seed), Counter(wanted), []
    while left.total():
        concepts = tuple(concept for concept in CUES if rng.random() < 0.3)
        look, strength = LOOKS[rng.integers(len(LOOKS))], float(rng.uniform(0.6, 1.0))
        n_frames, drawn = int(rng.uniform(6, 13) * RATE), int(rng.integers(2**31))
        part = DemoClip("", "", concepts, look, strength, n_frames, drawn)
        n_cuts = len(cuts_in(part))
        if n_cuts <= left[light(part)]:
            left[light(part)] -= n_cuts
            parts.append(part)
    return parts


def draw(parts: list[DemoClip], times: int) -> Iterator[NDArray[np.uint8]]:
    """Draw the frames of a film."""
    for number, part in enumerate(parts):
        frames = draw_clip(part.look, part.concepts, part.strength, part.n_frames, part.seed)
        for t, frame in enumerate(frames):
            after, before = number % FADED == 0 and number, number % FADED == FADED - 1
            share = min(t / FADE if after else 1.0, (part.n_frames - 1 - t) / FADE if before else 1.0, 1.0)
            yield (frame * share).astype(np.uint8).repeat(times, axis=0).repeat(times, axis=1)


def compare(parts: list[DemoClip], found: list[int]) -> tuple[Counter[str], Counter[str], list[int]]:
    """Count the cuts that are planted and those that are found, by light; list false ones."""
    planted, fades, at = {}, [], 0
    for number, part in enumerate(parts):
        if number and number % FADED == 0:
            fades.append(range(at - FADE, at + FADE + 1))
        elif number:
            planted[at] = "between parts"
        planted |= {at + cut: light(part) for cut in cuts_in(part)}
        at += part.n_frames
    left, hits, false = dict(planted), Counter[str](), []
    for frame in found:
        cut = next((near for near in (frame, frame - 1, frame + 1) if near in left), None)
        fade = next((fade for fade in fades if frame in fade), None)
        if cut is not None:
            hits[left.pop(cut)] += 1
        elif fade is not None:
            fades.remove(fade)
        else:
            false.append(frame)
    return Counter(planted.values()), hits, false


def main() -> None:
    """Print the tables."""
    asked = arguments(__doc__, videos=VIDEOS, check=False)
    planted, hits, false = Counter[str](), Counter[str](), []
    with tempfile.TemporaryDirectory() as folder:
        for seed, (name, (wanted, times)) in enumerate(FILMS.items()):
            parts, film = plan(seed, wanted), Path(folder, f"{name}.mkv")
            write_video(film, draw(parts, times), RATE)
            found = [round(shot.start_s * RATE) for shot in find_shots(film)][1:]
            of_film = compare(parts, found)
            planted, hits = planted + of_film[0], hits + of_film[1]
            false += [f"{name} {frame / RATE:.2f} s" for frame in of_film[2]]
    rows = [(kind, hits[kind], planted[kind]) for kind in ("flicker", "steady", "sparks", "between parts")]
    show([*rows, ("false", len(false), "")], ("light", "found", "planted"))
    print(f"\nfalse: {', '.join(false) or 'none'}\n")
    for video in sorted(asked.videos.glob("*")):
        try:
            starts = [f"{shot.start_s:.3f} s {' '.join(shot.flags)}".strip() for shot in find_shots(video)]
        except VideoError as error:
            starts = [error.reason]
        print(f"{video.name}: {', '.join(starts)}")
    other = hits["steady"] + hits["sparks"]
    wrong = hits["flicker"] < LEAST_FLICKER or other < LEAST_OTHER or len(false) > MOST_FALSE
    verdict(["cuts found, or false ones"] if wrong else [], check=asked.check)


if __name__ == "__main__":
    main()
