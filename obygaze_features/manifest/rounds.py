"""Plan a round of annotation: who annotates which films, in which order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip, grouped
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.identity import refuse_twins
from obygaze_features.manifest.judgements import HOW_JUDGED, JUDGED_AT
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.text import composed, counted

CALIBRATION = "calibration"
ORDER = "order"
"""Columns of a round: 1 for a film that all annotate; the number of a film in an annotator's order."""


@checked
def assign(
    clips: Manifest, annotators: Sequence[str], each: int, *, calibration: int = 0, seed: int = 0
) -> Manifest:
    """Assign films to annotators, so that all get about as many films and seconds, and pairs vary.

    Parameters
    ----------
    clips
        The clips of all films. The length of a film is the sum of its clips' durations, or their number if a
        clip has no times.
    annotators
        The annotators' names.
    each
        How many annotators a film gets.
    calibration
        Number of films, drawn at random, that all annotate. They are spread evenly over everybody's order.
    seed
        Seed of the random draws.

    Returns
    -------
    Manifest
        A row without labels for each clip of each annotator's films, sorted by annotator and by their order
        of films, with the columns `calibration` and `order`. Columns that say how earlier labels were given
        (`HOW_JUDGED`), and those of further scales, are emptied.

    Raises
    ------
    ManifestError
        A name is there twice, there are fewer annotators than `each`, or `calibration` is larger than the
        number of films.
    """
    names = [composed(name) for name in annotators]
    films = list(clips.movies)
    _check_round(clips, names, each, calibration)
    clips_of = grouped(map(partial(_without_labels, codebook=clips.codebook), clips.clips_once), "movie")

    rng = np.random.default_rng(seed)
    shuffled_films = _shuffled(films, rng)
    common_films = shuffled_films[:calibration]
    films_to_share_out = shuffled_films[calibration:]
    lengths = _film_lengths(clips, clips_of)
    longest_first = sorted(films_to_share_out, key=lambda film: -lengths[film])
    annotators_of = _choose_annotators(longest_first, lengths, each, len(names))

    rows: list[Clip] = []
    for number, name in enumerate(names):
        films_of_annotator = [film for film in films_to_share_out if number in annotators_of[film]]
        films_in_order = _mix_evenly(common_films, _shuffled(films_of_annotator, rng))
        rows += _rows_of_annotator(name, films_in_order, clips_of, common_films)
    return clips.with_clips(rows)


def _shuffled(films: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return films in random order."""
    return [films[place] for place in rng.permutation(len(films)).tolist()]


def _rows_of_annotator(
    name: str, films: Sequence[str], clips_of: Mapping[str, Sequence[Clip]], common_films: Collection[str]
) -> list[Clip]:
    """Return an unlabelled row for each clip of an annotator's films, which are in order.

    `clips_of` is film -> its clips, and `common_films` are those that all annotate.
    """
    rows = []
    for number, film in enumerate(films, start=1):
        calibration_cell = "1" if film in common_films else "0"
        for clip in clips_of[film]:
            extras = {**clip.extras, CALIBRATION: calibration_cell, ORDER: str(number)}
            rows.append(replace(clip, annotator=name, extras=extras))
    return rows


def _without_labels(clip: Clip, codebook: Codebook) -> Clip:
    """Return a clip without what was said of it before: labels, ranks on scales, and how they were given.

    If the columns on how labels were given kept their cells, the new labels would seem to be given as the
    earlier ones were: by a machine, or in sight of a score.
    """
    emptied = {*HOW_JUDGED, JUDGED_AT, *(scale.name for scale in codebook.scales)}
    extras = {name: "" if name in emptied else cell for name, cell in clip.extras.items()}
    return replace(clip, level=None, concepts=(), extras=extras)


def _check_round(clips: Manifest, names: Sequence[str], each: int, calibration: int) -> None:
    """Refuse a round that cannot be planned, for the reasons that `assign` lists.

    A film gets `each` annotators, and as many films as `calibration` says are annotated by everybody.
    """
    n_films = len(clips.movies)
    if not n_films:
        raise ManifestError("there is no clip to annotate")

    if not all(name.strip() for name in names):
        raise ManifestError("an annotator has no name")
    are_repeated = len(set(names)) < len(names)
    are_enough = 1 <= each <= len(names)
    if are_repeated or not are_enough:
        raise ManifestError(
            f"{each} of {counted(len(names), 'annotator')} ({', '.join(names)}): name each once, "
            "and at least as many as a film gets"
        )
    refuse_twins(
        "annotator", {name: ("", f"annotator {number}") for number, name in enumerate(names, start=1)}
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
    """Return an annotator's films in order, with the films that all annotate spread evenly among the others.

    The first common film comes first of all: of the common films A and B and the films 1 to 4, the order is
    A 1 2 B 3 4.
    """
    common_before: dict[int, list[str]] = {}  # place among the own films -> common films in front of it
    n_places = max(len(own_films), 1)
    for number, film in enumerate(common_films):
        index = number * n_places // len(common_films)
        common_before.setdefault(index, []).append(film)
    films: list[str] = []
    for index in range(n_places):
        films += common_before.get(index, [])
        films += own_films[index : index + 1]  # none, if there are no own films
    return films


def _choose_annotators(
    films: Sequence[str], lengths: Mapping[str, float], each: int, n_annotators: int
) -> dict[str, list[int]]:
    """Choose the annotators of each film; return film -> their numbers, from 0.

    Each place of a film goes to the annotator with the fewest films so far; among equals to the one who
    shares the fewest films with those already chosen for this film, then to the one with the fewest seconds.

    `films` are in the order in which annotators are chosen for them: the longest first, so that the short
    ones even out the sums of lengths. Each film gets `each` annotators.
    """
    # What each annotator has so far.
    seconds = np.zeros(n_annotators)
    n_films = np.zeros(n_annotators)
    n_together = np.zeros((n_annotators, n_annotators))  # films that two annotators share
    annotators_of: dict[str, list[int]] = {}
    for film in films:
        group = list[int]()  # the film's annotators
        for _ in range(each):
            n_with_group = n_together[:, group].sum(axis=1)
            # By films, then by films with the group, then by seconds: the last key of lexsort counts first.
            order = np.lexsort((seconds, n_with_group, n_films)).tolist()
            first_not_in_group = next(annotator for annotator in order if annotator not in group)
            group.append(first_not_in_group)

        n_films[group] += 1
        seconds[group] += lengths[film]
        for annotator, other in permutations(group, 2):
            n_together[annotator, other] += 1
        annotators_of[film] = group
    return annotators_of
