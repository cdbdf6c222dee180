"""Plan a round of annotation: who annotates which films, in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, grouped
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.names import plain
from obygaze_features.text import composed, counted

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
    _check_round(clips, names, each, calibration)
    clips_of = grouped({clip.clip_id: clip for clip in clips}.values(), "movie")
    rng = np.random.default_rng(seed)
    drawn_films = [films[place] for place in rng.permutation(len(films)).tolist()]
    common_films = drawn_films[:calibration]
    shared_out_films = drawn_films[calibration:]
    lengths = _film_lengths(clips, clips_of)
    longest_first = sorted(shared_out_films, key=lambda film: -lengths[film])
    annotators_of = _choose_annotators(longest_first, lengths, each, len(names))
    rows = []
    for annotator, name in enumerate(names):
        own_films = [film for film in shared_out_films if annotator in annotators_of[film]]
        shuffled_films = [own_films[place] for place in rng.permutation(len(own_films)).tolist()]
        for number, film in enumerate(_mix_evenly(common_films, shuffled_films), start=1):
            calibration_cell = "1" if film in common_films else "0"
            for clip in clips_of[film]:
                extras = {**clip.extras, CALIBRATION: calibration_cell, ORDER: str(number)}
                row = replace(clip, level=None, concepts=(), annotator=name, extras=extras)
                rows.append(row)
    return clips.with_clips(rows)


def _check_round(clips: Manifest, names: Sequence[str], each: int, calibration: int) -> None:
    """Refuse a round that cannot be planned, as `assign` says."""
    n_films = len(clips.movies)
    if not n_films:
        raise ManifestError("there is no clip to annotate")
    if not all(name.strip() for name in names):
        raise ManifestError("an annotator has no name")
    have_twins = len({plain(name) for name in names}) < len(names)
    if have_twins or not 1 <= each <= len(names):
        raise ManifestError(
            f"{each} of {counted(len(names), 'annotator')} ({', '.join(names)}): name each "
            "once, and at least as many "
            "as a film gets"
        )
    # All clips of a manifest have the same further columns.
    taken_columns = sorted({CALIBRATION, ORDER}.intersection(clips.clips[0].extras))
    if taken_columns:
        raise ManifestError(f"{', '.join(taken_columns)}: a round writes its own: rename yours, or remove it")
    if calibration > n_films:
        raise ManifestError(f"{counted(calibration, 'film')} for calibration: there are {n_films}")


def _film_lengths(clips: Manifest, clips_of: Mapping[str, Sequence[Clip]]) -> dict[str, float]:
    """Return the length of each film: the seconds of its clips, or their number where any has no times."""
    is_timed = all(clip.duration_s is not None for clip in clips)
    lengths: dict[str, float] = {}
    for film, clips_of_film in clips_of.items():
        if is_timed:
            lengths[film] = sum(clip.duration_s or 0.0 for clip in clips_of_film)
        else:
            lengths[film] = float(len(clips_of_film))
    return lengths


def _mix_evenly(common_films: Sequence[str], own_films: Sequence[str]) -> list[str]:
    """Return an annotator's own films with the films that all annotate spread evenly among them.

    The first common film comes first of all.
    """
    common_before: dict[int, list[str]] = {}  # place among the own films -> common films in front of it
    n_places = max(len(own_films), 1)
    for number, film in enumerate(common_films):
        place = number * n_places // len(common_films)
        common_before.setdefault(place, []).append(film)
    films: list[str] = []
    for place in range(n_places):
        films += common_before.get(place, [])
        films += own_films[place : place + 1]
    return films


def _choose_annotators(
    films: Sequence[str], lengths: Mapping[str, float], each: int, n_annotators: int
) -> dict[str, list[int]]:
    """Choose the annotators of each film; return film -> their numbers, from 0.

    Each place of a film goes to the annotator with the fewest films so far; among equals to the one who
    shares the fewest films with those already chosen for this film, then to the one with the fewest seconds.

    Parameters
    ----------
    films
        In the order of choice: the longest first, so that the short ones even out the annotators' seconds.
    lengths
        Film -> its length.
    each
        How many annotators a film gets.
    n_annotators
        How many there are.
    """
    seconds = np.zeros(n_annotators)
    n_films = np.zeros(n_annotators)
    n_together = np.zeros((n_annotators, n_annotators))
    annotators_of: dict[str, list[int]] = {}
    for film in films:
        group = list[int]()
        for _ in range(each):
            n_with_group = n_together[:, group].sum(axis=1)
            # The last key of lexsort counts first.
            order = np.lexsort((seconds, n_with_group, n_films)).tolist()
            group.append(next(annotator for annotator in order if annotator not in group))
        n_films[group] += 1
        seconds[group] += lengths[film]
        n_together[np.ix_(group, group)] += 1
        annotators_of[film] = group
    return annotators_of
