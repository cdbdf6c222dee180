"""Keep which classes a classifier finds probable in a film's windows, and tell which are likely in a span."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from obygaze_features.store import (
    Group,
    LikelyClass,
    Store,
    classes_of,
    classifier_of,
    groups_of_classes,
    likely_classes,
)
from obygaze_film.film_time import seconds_inside
from obygaze_film.rows import Windows
from obygaze_film.schema import CLASS_COLUMNS, NO_CLASSES

MIN_CLASS_PROBABILITY = 0.01
"""Least probability of a class that is kept for a window. The most probable class of a window always is."""


def probable_classes(store: Store, windows: Windows) -> pd.DataFrame:
    """List the probable classes of each window of a film, by each classifier whose outputs a store holds.

    Returns
    -------
    DataFrame
        `CLASS_COLUMNS`, in order of classifiers, windows and classes; empty if the store has no classifier's
        outputs.
    """
    tables = []
    for name in groups_of_classes(store):
        table = _classes_of_group(store[name], windows)
        if len(table):
            tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else NO_CLASSES


def _classes_of_group(group: Group, windows: Windows) -> pd.DataFrame:
    """List the probable classes of a film's windows by one classifier, whose outputs are the group's rows."""
    scored = _windows_in_group(group, windows)
    if not scored:
        return NO_CLASSES
    rows_of_group = [window.row for window in scored]
    p = group.pooled()[rows_of_group].astype(np.float64)  # [windows, classes]
    usual_p = p.mean(axis=0)  # of each class, over the film
    is_most_probable = p == p.max(axis=1, keepdims=True)
    is_kept = (p >= MIN_CLASS_PROBABILITY) | is_most_probable

    names = classes_of(group)
    classifier = classifier_of(group)
    table = []
    for index, window in enumerate(scored):
        for class_index in np.flatnonzero(is_kept[index]):
            probability = p[index, class_index]
            usual = usual_p[class_index]
            name = names[class_index]
            table.append((window.start_s, window.end_s, classifier, name, probability, usual))
    return pd.DataFrame(table, columns=list(CLASS_COLUMNS))


class _WindowInGroup(NamedTuple):
    """A window of a film, and the row of a store's group that holds a classifier's outputs for it."""

    row: int
    start_s: float
    end_s: float


def _windows_in_group(group: Group, windows: Windows) -> list[_WindowInGroup]:
    """List the windows for which a group of a store has usable outputs, in the order of the windows."""
    row_of_clip = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    found = []
    for clip_id, (start_s, end_s) in zip(windows.clip_ids, windows.spans.tolist(), strict=True):
        row = row_of_clip.get(clip_id)
        if row is not None and group.usable[row]:
            found.append(_WindowInGroup(row, start_s, end_s))
    return found


def classes_of_span(classes: pd.DataFrame, start_s: float, end_s: float) -> dict[str, list[LikelyClass]]:
    """List the classes that are likely in a span of a film, and more so than in the whole film.

    A class's probability is the mean over the windows that overlap the span, weighted by seconds of overlap
    (`seconds_inside`); `obygaze_features.store.likely_classes` compares it with that in the whole film
    (`usual_p`).

    Parameters
    ----------
    classes : DataFrame
        `CLASS_COLUMNS` of the film.
    start_s, end_s : float

    Returns
    -------
    dict of str to list of LikelyClass
        Classifier -> its likely classes, the most probable first; without classifiers that have none.
    """
    seconds = seconds_inside(classes, start_s, end_s)
    inside = classes[seconds > 0].assign(seconds=seconds[seconds > 0])
    likely_by_classifier = {}
    for classifier, rows in inside.groupby("classifier", sort=False):
        means = _weighted_means(rows)
        likely = likely_classes(
            means.index.tolist(),
            means["p"].to_numpy(dtype=np.float64),
            means["usual_p"].to_numpy(dtype=np.float64),
        )
        if likely:
            likely_by_classifier[str(classifier)] = likely
    return likely_by_classifier


def _weighted_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the probability `p` of each class over the windows of a span, weighted by `seconds`.

    A class has a row for each window in which it is probable; in the other windows it counts as 0. Returns a
    table by class, with `p` and `usual_p`.
    """
    windows = rows.drop_duplicates(["start_s", "end_s"])  # each once, whatever classes it has
    total_s = float(windows["seconds"].sum())
    weighted = rows.assign(p=rows["p"] * rows["seconds"] / total_s)  # the sum of these is the mean
    return weighted.groupby("class", sort=False).agg(p=("p", "sum"), usual_p=("usual_p", "first"))
