"""Audits: cells of crossed groups, and attributes that are erased."""

from itertools import product
from typing import Final

import numpy as np
from scipy.special import expit

from benchmarks.planted.row import Cell, Column, Draw, Row, over_corpora
from obygaze_studies.audit_common.embeddings import Embeddings
from obygaze_studies.eat_stimuli import EatTest
from obygaze_studies.erasure import audit_erase
from obygaze_studies.groups import estimate_cells

SIZES: Final = (5, 10, 20, 50, 100, 200)


def crossed(rng: np.random.Generator, spread: float, kind: str) -> Draw:
    """Estimate 24 cells of 2 x 3 x 4 values, of 5 to 200 items, that depart from the attributes' sum."""
    cells = list(product(range(2), range(3), range(4)))
    sizes = rng.choice(SIZES, size=len(cells))
    effects = [0.5 * rng.normal(size=n) for n in (2, 3, 4)]
    truth = np.array([effects[0][i] + effects[1][j] + effects[2][k] for i, j, k in cells])
    truth += spread * rng.normal(size=len(cells))
    if kind == "share":
        truth = expit(truth - 1)
    items = np.repeat(truth, sizes)
    if kind == "share":
        y = (rng.random(len(items)) < items).astype(float)
    else:
        y = items + rng.normal(size=len(items))
    attributes = [np.repeat(column, sizes).astype(str).tolist() for column in zip(*cells, strict=True)]
    estimates = estimate_cells(y, attributes)
    mean_of_cell = {
        tuple(map(str, cell)): (value, size) for cell, value, size in zip(cells, truth, sizes, strict=True)
    }
    true, n = np.array([mean_of_cell[row["cell"]] for row in estimates]).T
    low = np.array([row["low"] for row in estimates])
    high = np.array([row["high"] for row in estimates])
    estimated = np.array([row["estimate"] for row in estimates])
    raw = np.array([row["mean"] for row in estimates])
    holds = (low <= true) & (true <= high)
    return {
        "all cells": holds,
        **{f"{size} items": holds[n == size] if (n == size).any() else np.nan for size in SIZES},
        "error / error of raw means": np.abs(estimated - true).mean() / np.abs(raw - true).mean(),
    }


def erased(rng: np.random.Generator, size: int) -> Draw:
    """Erase an attribute of 1,200 items of 12 films, that a task and a test depend on, by 8 of the films."""
    n = 1200
    films = 12
    film = rng.integers(films, size=n)
    attribute = rng.random(n) < 0.5
    noise = rng.normal(size=(n, size))
    task = rng.random(n) < np.where(attribute, 0.65, 0.35)
    X = noise + rng.normal(size=(films, size))[film] * 0.3
    X[:, 0] += 2 * attribute
    X[:, 1] += 2 * task
    X[:, 2] += 0.6 * attribute + 3
    ids = [f"{k:04}" for k in range(n)]
    rows = dict(zip(ids, range(n), strict=True))
    items = {
        name: {"item_id": name, "gender": f"{int(a)}", "task": f"{int(t)}", "film": f"{f}"}
        for name, a, t, f in zip(ids, attribute, task, film, strict=True)
    }
    images = Embeddings("planted", "planted", X.astype(np.float32), rows, "", {})
    words = np.eye(size, dtype=np.float32)[[2, 3]]
    texts = Embeddings("planted", "planted", words, {"a": 0, "b": 1}, "", {}, {"a": "a", "b": "b"})
    test = EatTest("gender", {"gender": "1"}, {"gender": "0"}, ("a",), ("b",))
    report = audit_erase(
        images, items, attribute="gender", films="film", task="task", texts=texts, tests=[test], seed=0
    )
    probe, probe_before, cost, _, d = report.data.to_dict("records")
    return {
        "probe before": probe["before_others"], "probe after": probe["after_others"],
        "by others, before": probe_before["before_others"], "by others, after": probe_before["after_others"],
        "d, fitted": abs(d["after_fitted"]), "d before, others": d["before_others"],
        "d after, others": abs(d["after_others"]),
        "task's before": cost["before_others"], "task's after": cost["after_others"],
    }  # fmt: skip


def left(draws: list[Draw]) -> Draw:
    """Average over corpora; how much of d is left is told of the means, as d of one corpus may be near 0."""
    values = over_corpora(draws)
    return {**values, "left of d": values["d after, others"] / values["d before, others"].mean()}


SHOWN: Final = Column(digits=2)

ROWS = [
    Row(
        "groups", "docs/audits/groups.md", "audit groups",
        "24 cells of three crossed attributes, of 5 to 200 items: how often the 95 % interval of a cell "
        "contains its true mean, over all cells and by the number of items; and the mean absolute error of "
        "the estimates, divided by that of the raw means.",
        ("outcome", "SD around the additive model"),
        [Cell((kind, f"{spread:g}"), (spread, kind))
         for kind in ("number", "share") for spread in (0.0, 0.1, 0.3, 0.6)],
        crossed,
        {"all cells": Column(0.93, 0.97), **{f"{size} items": Column(0.88) for size in SIZES},
         "error / error of raw means": SHOWN},
        full=60, small=8, small_cells=2,
    ),
    Row(
        "erasure", "docs/audits/erase.md", "audit erase",
        "An attribute that a task and an association test depend on, erased from 1,200 items by 8 of 12 "
        "films: balanced accuracy and d on the films that the eraser was not fitted on, of linear probes "
        "that are trained on those it was fitted on (`by others`: on the rest of the other four).",
        ("dimensions",),
        [Cell((str(size),), (size,)) for size in (32, 256)],
        erased,
        {"probe before": SHOWN, "probe after": Column(0.45, 0.55, digits=2),
         "by others, before": SHOWN, "by others, after": Column(high=0.6, digits=2),
         "d, fitted": Column(high=0.02),
         "d before, others": SHOWN, "d after, others": SHOWN, "left of d": Column(high=0.5, digits=2),
         "task's before": SHOWN, "task's after": SHOWN},
        full=20, small=2, pooled=left,
    ),
]  # fmt: skip
