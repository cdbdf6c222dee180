"""Plan a round of annotation: who annotates which films, in which order."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.manifest import Manifest

CALIBRATION, ORDER = "calibration", "order"
"""Columns of a round: 1 for a film that all annotate; an annotator's films by number, from 1."""

MOST = 2000
"""Ways to choose who annotates a film."""


def assign(
    clips: Manifest, annotators: Sequence[str], each: int, *, calibration: int = 0, seed: int = 0
) -> Manifest:
    """Assign each film to some annotators, so that films, lengths and pairs are spread evenly.

    Parameters
    ----------
    clips
        Of all films. A film is as long as its clips together; where some have no times, their number counts.
    annotators
        Names, each once.
    each
        How many annotate a film.
    calibration
        Number of films, drawn at random, that all annotate: they stand evenly through everybody's order.
    seed
        Of the draws.

    Returns
    -------
    A row for each annotator of each clip, without a level, by annotator and their order, with the columns
    `calibration` and `order`.

    Raises
    ------
    ManifestError
        Names are there twice, there are fewer annotators than `each`, more films to calibrate than films, or
        too many ways to choose.
    """
    names, films = list(annotators), list(clips.movies)
    if len(set(names)) < len(names) or not 1 <= each <= len(names):
        raise ManifestError(
            f"{each} of {len(names)} annotators ({', '.join(names)}): name each once, and at least as many "
            "as a film gets"
        )
    if calibration > len(films):
        raise ManifestError(f"{calibration} films for calibration: there are {len(films)}")
    if math.comb(len(names), each) > MOST:
        raise ManifestError(f"{each} of {len(names)}: over {MOST:,} ways; assign films to groups one by one")
    groups = list(combinations(range(len(names)), each))
    own: dict[str, list[Clip]] = {film: [] for film in films}
    for clip in {clip.clip_id: clip for clip in clips}.values():
        own[clip.movie].append(clip)
    rng = np.random.default_rng(seed)
    drawn = [films[place] for place in rng.permutation(len(films)).tolist()]
    common, rest = drawn[:calibration], drawn[calibration:]
    seconds = {film: [clip.duration_s for clip in of_film] for film, of_film in own.items()}
    timed = all(length is not None for of_film in seconds.values() for length in of_film)
    length = {
        film: float(sum(filter(None, each))) if timed else float(len(each)) for film, each in seconds.items()
    }
    chosen = _spread(sorted(rest, key=lambda film: -length[film]), length, groups, len(names))
    rows = []
    for place, name in enumerate(names):
        mine = [film for film in rest if place in chosen[film]]
        order = [mine[number] for number in rng.permutation(len(mine)).tolist()]
        for number, film in enumerate(_among(order, common), start=1):
            extras = {CALIBRATION: str(int(film in common)), ORDER: str(number)}
            rows += [
                replace(clip, level=None, concepts=(), annotator=name, extras={**clip.extras, **extras})
                for clip in own[film]
            ]
    return clips.with_clips(rows)


def _spread(
    films: Sequence[str], length: dict[str, float], groups: Sequence[tuple[int, ...]], n: int
) -> dict[str, tuple[int, ...]]:
    """Choose a group for each film, long ones first, then exchange while that spreads them more evenly."""
    unit = sum(length.values()) / max(len(films), 1) or 1.0
    seconds, counts, pairs = np.zeros(n), np.zeros(n), np.zeros((n, n))

    def put(film: str, group: tuple[int, ...], sign: int) -> None:
        rows = list(group)
        seconds[rows] += sign * length[film] / unit
        counts[rows] += sign
        pairs[np.ix_(rows, rows)] += sign

    def unevenness(film: str, group: tuple[int, ...]) -> float:
        put(film, group, 1)
        found = float(seconds.var() + counts.var() + pairs[np.triu_indices(n, 1)].var() if n > 1 else 0.0)
        put(film, group, -1)
        return round(found, 9)

    chosen: dict[str, tuple[int, ...]] = {}
    for _ in range(4):
        before = dict(chosen)
        for film in films:
            if film in chosen:
                put(film, chosen[film], -1)
            chosen[film] = min(groups, key=lambda group: unevenness(film, group))
            put(film, chosen[film], 1)
        if chosen == before:
            break
    return chosen


def _among(films: Sequence[str], common: Sequence[str]) -> list[str]:
    """Put the common films evenly among an annotator's own, the first of them first."""
    places = np.linspace(0, len(films), len(common), endpoint=False).astype(int).tolist()
    at = Counter(places)
    waiting = iter(common)
    order = []
    for place, film in enumerate([*films, ""]):
        order += [next(waiting) for _ in range(at[place])]
        order += [film] * bool(film)
    return order
