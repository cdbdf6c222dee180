"""Erase an attribute from embeddings (LEACE: Belrose et al., NeurIPS 2023), and measure what that does.

x -> x - W+ P W (x - mean), W the whitening of the features, P the projection on the directions of their
whitened covariance with the attribute: no linear model tells the attribute from what is left, and nothing
that does so moves the features less. That is exact for the items it is fitted on; of others some is left. A
probe that is trained on the former cannot show that: it has nothing to learn, and calls all alike.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_models.evaluation import METRICS
from obygaze_models.models import RidgeLogistic
from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space, unit
from obygaze_studies.audit_common.findings import Finding, Wording, audited, write_rows
from obygaze_studies.audit_common.inputs import Row, known_items
from obygaze_studies.eat import associations, effect, prompted
from obygaze_studies.eat_stimuli import EatTest, select
from obygaze_studies.errors import AuditError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FITTED = 2 / 3
"""Share of the films that an eraser is fitted on."""
TOLD = 1e-9
"""Whitened covariance with an attribute that is rounding."""
ROUNDS = 6
"""Of erasing, and scaling to length 1."""
RANK = 1e-10
"""Variance of a direction of features, of the largest, below which there is nothing to whiten."""


def leace(X: Floats, attribute: ArrayLike) -> Callable[[Floats], Floats]:
    """Fit an eraser of an attribute of two values or more on features X [N, D], to be called with others."""
    mean = X.mean(axis=0)
    named = np.array(attribute)
    membership = np.stack([named == value for value in np.unique(named)], axis=1).astype(np.float64)
    centred = X - mean
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    is_kept = values > RANK * max(float(values.max()), 0.0)
    roots = np.sqrt(values[is_kept])
    vectors = vectors[:, is_kept]
    whitened = (vectors / roots).T @ (centred.T @ (membership - membership.mean(axis=0)) / len(X))
    directions, sizes, _ = np.linalg.svd(whitened, full_matrices=False)
    directions = directions[:, sizes > TOLD]  # of indicators: a half at most
    taken = (vectors / roots) @ directions @ (directions.T * roots) @ vectors.T
    return lambda features: features - (features - mean) @ taken


def _erased(X: Floats, attribute: ArrayLike, inside: Mask) -> Floats:
    """Erase an attribute from unit vectors [N, D], by some of them, so that cosines do not tell it either.

    Scaled to length 1 again the vectors have a little of it, less each time; the last time they are left.
    """
    for _ in range(ROUNDS):
        X = unit(leace(X[inside], attribute)(X))
    return leace(X[inside], attribute)(X)


@audited(
    Wording(
        name="erase",
        title="An attribute erased from embeddings",
        table="Before and after, on films the eraser was fitted on and on others",
        columns=(
            "measure",
            "before_fitted",
            "after_fitted",
            "before_others",
            "after_others",
        ),
        sentence=(
            "a linear probe of {attribute} has a balanced accuracy of {before_others} "
            "before and {after_others} after, trained and tested on {others} films that "
            "the eraser was not fitted on"
        ),
        source="Belrose et al., NeurIPS 2023, LEACE; d: Wolfe et al., FAccT 2023, eq. 1",
    )
)
def audit_erase(
    images: Embeddings,
    items: Mapping[str, Row],
    *,
    attribute: str,
    films: str,
    task: str | None = None,
    texts: Embeddings | None = None,
    tests: Sequence[EatTest] | None = None,
    erased: Path | None = None,
    seed: int = 0,
) -> Finding:
    """Fit an eraser on some films; compare probes, tests and a task before and after, there and elsewhere.

    Parameters
    ----------
    images
        Embeddings of the items.
    items
        Item id -> columns.
    attribute, films, task
        Columns: what is erased, two values; which film an item is of; what must stay, two values.
    texts, tests
        Embedding association tests, and the texts of their attributes.
    erased
        CSV file to write the erased embeddings of all items to.
    seed
        Of the films' draw.
    """
    coded_columns = [attribute, task] if task else [attribute]
    ids, remarks = known_items(items, [*coded_columns, films], images.rows)
    X = unit(images.take(ids, "items"))
    film = np.array([items[name][films] for name in ids])
    names = np.unique(film)
    if len(names) < 4:
        raise AuditError(f"column {films}: {len(names)} films; at least 4 are needed, two of them to probe")
    fitted_on = np.random.default_rng(seed).permutation(names)[: max(1, int(len(names) * FITTED))]
    inside = np.isin(film, fitted_on)
    sides = {"fitted": inside, "others": ~inside}
    coded = {}
    for column in coded_columns:
        coded[column] = _two(column, [items[name][column] for name in ids])
    y = coded[attribute]
    for where, is_of_side in sides.items():
        if all(len(np.unique(y[film == name])) < 2 for name in np.unique(film[is_of_side])):
            raise AuditError(
                f"column {attribute}: in each film of those {where} it has one value, so that nothing tells "
                "it from the film"
            )
    after = _erased(X, y[inside], inside)
    spaces = {"before": X, "after": after}
    rows: list[dict[str, Any]] = []
    for column, values in coded.items():
        kind = "attribute" if column == attribute else "task"
        probes = {
            f"probe of {column}": partial(_probe, values, inside),
            f"probe of {column} by other films": partial(_by_others, values, film, ~inside),
        }
        for measure, probe in probes.items():
            called = {when: probe(space) for when, space in spaces.items()}
            measured = _measured(called, sides, partial(_balanced, values))
            rows.append({"measure": measure, "of": kind, **measured})
    if texts is not None:
        check_same_space(images, texts)
        text_ids = texts.text_ids()
        for test in tests or ():
            targets = [np.isin(ids, select(target, items, test.name)) for target in (test.x, test.y)]
            a = prompted(texts, text_ids, test.a, "code", f"test {test.name}")
            b = prompted(texts, text_ids, test.b, "code", f"test {test.name}")
            measured = _measured(spaces, sides, partial(_effect, targets, a, b))
            rows.append({"measure": f"d of {test.name}", "of": "test", **measured})
    if erased is not None:
        remarks.append(_write_vectors(ids, after, erased))
    counts = {"fitted": len(fitted_on), "others": len(names) - len(fitted_on)}
    record = {
        "attribute": attribute,
        "films": films,
        "fitted_on": fitted_on.tolist(),
        "left_out": len(items) - len(ids),
        "store": images.fingerprint,
    }
    return Finding(
        rows=rows, said={"attribute": attribute, **rows[1], **counts}, record=record, remarks=remarks
    )


def _write_vectors(ids: Sequence[str], vectors: Floats, path: Path) -> str:
    """Write a row for each item; return where they are."""
    header = ("clip_id", *(f"f{k}" for k in range(vectors.shape[1])))
    lines = []
    for name, vector in zip(ids, vectors.astype(np.float32).tolist(), strict=True):
        lines.append([name, *map(repr, vector)])
    return write_rows([header, *lines], path, "erased embeddings", force=False)


def _measured(
    arrays: Mapping[str, NDArray[Any]], sides: Mapping[str, Mask], value: Callable[[Any, Mask], float]
) -> dict[str, float | None]:
    """Measure the array of before and of after on each side; None where a measure is undefined."""
    measured: dict[str, float | None] = {}
    for when, array in arrays.items():
        for where, is_of_side in sides.items():
            number = value(array, is_of_side)
            measured[f"{when}_{where}"] = None if np.isnan(number) else number
    return measured


def _two(column: str, values: Sequence[str]) -> Codes:
    """Return which of its two values a column has [N]."""
    names, codes = np.unique(values, return_inverse=True)
    if len(names) != 2:
        raise AuditError(f"column {column}: two values were expected, found {', '.join(names[:5].tolist())}")
    return codes.astype(np.int64)


def _probe(y: Codes, inside: Mask, X: Floats) -> Codes:
    """Call all items by a linear probe that is fitted on some of them; their first class if there is one."""
    if len(np.unique(y[inside])) < 2:
        return np.full_like(y, y[inside][0])
    probe = make_pipeline(StandardScaler(), RidgeLogistic(C=0.1))  # nothing is cut, so that it is linear
    called: Codes = probe.fit(X[inside], y[inside]).predict(X)
    return called


def _by_others(y: Codes, film: NDArray[np.str_], others: Mask, X: Floats) -> Codes:
    """Call the items of each of some films by a probe of the rest of these; -1 elsewhere."""
    called = np.full_like(y, -1)
    for name in np.unique(film[others]):
        called[film == name] = _probe(y, others & (film != name), X)[film == name]
    return called


def _balanced(y: Codes, called: Codes, rows: Mask) -> float:
    """Balanced accuracy of calls of some items; NaN where one is not called."""
    calls = called[rows]
    return np.nan if (calls < 0).any() else METRICS["balanced_accuracy"].point(y[rows], calls)


def _effect(targets: Sequence[Mask], a: Floats, b: Floats, X: Floats, rows: Mask) -> float:
    """Effect size d of a test on some items; NaN where they are too few, or all associated alike."""
    x, y = (X[target & rows] for target in targets)
    if len(x) and len(y):
        associated = associations(x, y, a, b)
        with suppress(AuditError):
            return effect(*associated)["d"]
    return np.nan
