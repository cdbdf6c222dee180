"""Keep which classes a classifier finds probable in a film's windows, and tell which are likely in a span."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from obygaze_features.store import (
    Group,
    LikelyClass,
    Store,
    classes_of,
    classifier_of,
    groups_of_classes,
    likely_classes,
)
from obygaze_film.rows import Windows
from obygaze_film.schema import CLASS_COLUMNS, NO_CLASSES

LEAST_KEPT = 0.01
"""Probability from which on a class of a window is kept; the most probable one of a window always is."""


def probable_classes(store: Store, windows: Windows) -> pd.DataFrame:
    """Take the probable classes of each window of a film.

    Returns
    -------
    DataFrame
        `CLASS_COLUMNS`, in order of classifiers, windows and classes; empty where the store has the answers
        of no classifier.
    """
    tables = [_classes_of_group(store[name], windows) for name in groups_of_classes(store)]
    tables = [table for table in tables if len(table)]
    return pd.concat(tables, ignore_index=True) if tables else NO_CLASSES


def _classes_of_group(group: Group, windows: Windows) -> pd.DataFrame:
    """Take the probable classes of the windows that have answers of one classifier, a group of a store."""
    row_of = {clip_id: row for row, clip_id in enumerate(group.clip_ids)}
    rows = []
    spans = []  # of the windows of these rows
    for clip_id, span in zip(windows.clip_ids, windows.spans.tolist(), strict=True):
        row = row_of.get(clip_id)
        if row is not None and group.usable[row]:
            rows.append(row)
            spans.append(span)
    if not rows:
        return NO_CLASSES
    p = group.pooled()[rows].astype(np.float64)  # [windows, classes]
    usual_p = p.mean(axis=0)
    is_most_probable = p == p.max(axis=1, keepdims=True)
    is_kept = (p >= LEAST_KEPT) | is_most_probable
    names = classes_of(group)
    classifier = classifier_of(group)
    table = []
    for window, class_index in zip(*np.nonzero(is_kept), strict=True):
        start_s, end_s = spans[window]
        name, mean_p = names[class_index], usual_p[class_index]
        table.append((start_s, end_s, classifier, name, p[window, class_index], mean_p))
    return pd.DataFrame(table, columns=list(CLASS_COLUMNS))


def classes_of_span(classes: pd.DataFrame, start_s: float, end_s: float) -> dict[str, list[LikelyClass]]:
    """Tell which classes are likely in a span of a film, beyond those that are usual in it.

    Probabilities are means over the windows in the span, by the seconds that each has in it.

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
    seconds = _seconds_inside(classes, start_s, end_s)
    inside = classes[seconds > 0].assign(seconds=seconds[seconds > 0])
    likely_by_classifier = {}
    for classifier, rows in inside.groupby("classifier", sort=False):
        windows = rows.drop_duplicates(["start_s", "end_s"])  # there is a row for each class of a window
        windows_s = float(windows["seconds"].sum())
        weighted = rows.assign(p=rows["p"] * rows["seconds"] / windows_s)
        means = weighted.groupby("class", sort=False).agg(p=("p", "sum"), usual_p=("usual_p", "first"))
        likely = likely_classes(
            means.index.tolist(),
            means["p"].to_numpy(dtype=np.float64),
            means["usual_p"].to_numpy(dtype=np.float64),
        )
        if likely:
            likely_by_classifier[str(classifier)] = likely
    return likely_by_classifier


def _seconds_inside(classes: pd.DataFrame, start_s: float, end_s: float) -> NDArray[np.float64]:
    """Compute how many seconds of each row's window [N] lie in a span."""
    starts = classes["start_s"].to_numpy(dtype=np.float64)
    ends = classes["end_s"].to_numpy(dtype=np.float64)
    return np.asarray((np.minimum(ends, end_s) - np.maximum(starts, start_s)).clip(0))
