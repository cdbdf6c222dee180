"""Plan a round of annotation: who annotates which films, in which order."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import grouped
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.names import plain
from obygaze_features.text import composed

CALIBRATION = "calibration"
ORDER = "order"
"""Columns of a round: 1 for a film that all annotate; an annotator's films by number, from 1."""


@checked
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
        Names are there twice, there are fewer annotators than `each`, or more films to calibrate than films.
    """
    names = [composed(name) for name in annotators]
    films = list(clips.movies)
    if not films:
        raise ManifestError("there is no clip to annotate")
    if not all(map(str.strip, names)):
        raise ManifestError("an annotator has no name")
    if len({plain(name) for name in names}) < len(names) or not 1 <= each <= len(names):
        raise ManifestError(
            f"{each} of {len(names)} annotators ({', '.join(names)}): name each once, and at least as many "
            "as a film gets"
        )
    if taken := sorted({CALIBRATION, ORDER}.intersection(*(clip.extras for clip in clips.clips[:1]))):
        raise ManifestError(f"{', '.join(taken)}: a round writes its own: rename yours, or remove it")
    if calibration > len(films):
        raise ManifestError(f"{calibration} films for calibration: there are {len(films)}")
    clips_of = grouped({clip.clip_id: clip for clip in clips}.values(), "movie")
    rng = np.random.default_rng(seed)
    drawn = [films[place] for place in rng.permutation(len(films)).tolist()]
    common = drawn[:calibration]
    others_drawn = drawn[calibration:]
    timed = all(clip.duration_s is not None for clip in clips)
    length: dict[str, float] = {}
    for film in films:
        if timed:
            length[film] = sum(clip.duration_s or 0.0 for clip in clips_of[film])
        else:
            length[film] = float(len(clips_of[film]))
    chosen = _spread(sorted(others_drawn, key=lambda film: -length[film]), length, each, len(names))
    rows = []
    for place, name in enumerate(names):
        mine = [film for film in others_drawn if place in chosen[film]]
        order = [mine[number] for number in rng.permutation(len(mine)).tolist()]
        # The common films stand evenly among one's own, the first of them first.
        places = [(k * max(len(order), 1) // len(common), 0, film) for k, film in enumerate(common)]
        places += [(k, 1, film) for k, film in enumerate(order)]
        places.sort(key=lambda placed: placed[:2])
        for number, (*_, film) in enumerate(places, start=1):
            extras = {CALIBRATION: str(int(film in common)), ORDER: str(number)}
            rows += [
                replace(clip, level=None, concepts=(), annotator=name, extras={**clip.extras, **extras})
                for clip in clips_of[film]
            ]
    return clips.with_clips(rows)


def _spread(films: Sequence[str], length: dict[str, float], each: int, n: int) -> dict[str, list[int]]:
    """Choose annotators for each film, long ones first: of the fewest films, pairs and seconds so far."""
    seconds = np.zeros(n)
    counts = np.zeros(n)
    pairs = np.zeros((n, n))
    chosen: dict[str, list[int]] = {}
    for film in films:
        group = chosen[film] = list[int]()
        for _ in range(each):
            order = np.lexsort((seconds, pairs[:, group].sum(axis=1), counts)).tolist()
            group.append(next(place for place in order if place not in group))
        counts[group] += 1
        seconds[group] += length[film]
        pairs[np.ix_(group, group)] += 1
    return chosen
