"""Erase an attribute from embeddings (LEACE: Belrose et al., NeurIPS 2023), and measure the effect.

LEACE maps x to x - W+ P W (x - mean), where W whitens the features and P projects on the directions of their
whitened covariance with the attribute. Afterwards no linear model can predict the attribute from the
features, and no other map that achieves this moves the features less. This is exact for the items that the
eraser is fitted on; in other items some of the attribute remains. A probe trained on the fitted items cannot
show how much: it has nothing to learn there, and predicts one class for all items.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from obygaze_features.text import counted
from obygaze_models.evaluation import METRICS
from obygaze_models.models import RidgeLogistic
from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space, unit_vectors
from obygaze_studies.audit_common.findings import Finding, Wording, audited, write_rows
from obygaze_studies.audit_common.inputs import Row, complete_items
from obygaze_studies.eat import associations, attribute_vectors, effect
from obygaze_studies.eat_stimuli import EatTest, select
from obygaze_studies.errors import AuditError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FITTED_SHARE = 2 / 3
"""Share of the films that an eraser is fitted on."""
MIN_FILMS = 4
"""Films that are needed, so that at least two are left to probe when two thirds of them are fitted on."""
ROUNDING_OF_COVARIANCE = 1e-9
"""Whitened covariances with an attribute up to this are rounding errors; of a binary attribute they are at
most one half."""
N_ROUNDS = 6
"""How often the vectors are erased and scaled to length 1 again."""
ROUNDING_OF_FEATURES = 1e-12
"""Features whose standard deviation is at most this part of the largest value do not vary, but for rounding.
They are left as they are: the rounding of an erased one would tell the attribute to a probe of scaled
features."""
MIN_VARIANCE_SHARE = 1e-10
"""Directions with less than this part of the largest variance are not whitened: they hold only rounding."""


def leace(X: Floats, attribute: ArrayLike) -> Callable[[Floats], Floats]:
    """Fit an eraser of an attribute: after erasing, no linear function of the features can tell its value.

    It is LEACE (Belrose et al., NeurIPS 2023), which maps x to x - W+ P W (x - mean): W whitens the features,
    W+ undoes that, and P projects on the directions of the whitened features that covary with the attribute.
    Among all such erasers it changes the features least, in the sense of the mean squared distance.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Features to fit on.
    attribute : array-like, shape [N]
        Value of the attribute of each item; two different values or more.

    Returns
    -------
    A function that erases the attribute from features [M, D].
    """
    mean = X.mean(axis=0)
    deviation = X.std(axis=0)
    varies = deviation > ROUNDING_OF_FEATURES * np.abs(X).max()
    # In units of each feature's deviation, so that no feature is taken for rounding beside a larger one.
    centred = (X[:, varies] - mean[varies]) / deviation[varies]  # [N, V], of the V features that vary
    value_of_item = np.array(attribute)
    indicators = [value_of_item == value for value in np.unique(value_of_item)]
    membership = np.stack(indicators, axis=1).astype(np.float64)  # [N, values], 1 for the item's value

    # Whitening: the principal axes of the features, each divided by the standard deviation along it. Axes
    # along which the features do not vary, but for rounding, are left out.
    variances, all_axes = np.linalg.eigh(centred.T @ centred / len(X))
    is_kept = variances > MIN_VARIANCE_SHARE * float(variances.max(initial=0.0))
    deviations = np.sqrt(variances[is_kept])
    axes = all_axes[:, is_kept]  # [V, R]
    whitening = axes / deviations  # [V, R], W for features in rows

    # The directions of the whitened space that covary with the attribute, [R, directions].
    covariance = centred.T @ (membership - membership.mean(axis=0)) / len(X)  # [V, values]
    all_directions, sizes, _ = np.linalg.svd(whitening.T @ covariance, full_matrices=False)
    directions = all_directions[:, sizes > ROUNDING_OF_COVARIANCE]

    # Whiten, project on the directions, and undo the whitening, [V, V]; in the features' own units.
    projection_of_scaled = whitening @ directions @ (directions.T * deviations) @ axes.T
    projection = projection_of_scaled / deviation[varies][:, None] * deviation[varies]

    def erase(features: Floats) -> Floats:
        """Take away from features [M, D] their part in the directions of the attribute."""
        erased: Floats = features.copy()
        erased[:, varies] -= (features[:, varies] - mean[varies]) @ projection
        return erased

    return erase


def _erase_from_directions(X: Floats, attribute: Codes, is_fitted_on: Mask) -> Floats:
    """Erase an attribute from unit vectors, so that cosines cannot tell it either.

    Scaling the erased vectors to length 1 brings a little of the attribute back. So erasing and scaling are
    repeated `N_ROUNDS` times, and less comes back each time. The result of the last erasing is not scaled.

    Parameters
    ----------
    X : ndarray, shape [N, D]
        Unit vectors.
    attribute : int ndarray, shape [N]
        Value of the attribute of each item.
    is_fitted_on : bool ndarray, shape [N]
        Which items the eraser is fitted on; it erases the attribute from all items.
    """
    fitted_values = attribute[is_fitted_on]
    vectors = X
    for _ in range(N_ROUNDS):
        erase = leace(vectors[is_fitted_on], fitted_values)
        vectors = unit_vectors(erase(vectors))
    erase = leace(vectors[is_fitted_on], fitted_values)
    return erase(vectors)


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding's `sentence_values`
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
            "before and {after_others} after, trained and tested on {others:film} that "
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
    """Erase an attribute from embeddings, and measure whether it is gone and what else has changed.

    An eraser is fitted on some films and applied to all items. Measures are taken before and after, on the
    films that it was fitted on and on the others: how well linear probes tell the attribute, how well they
    tell a task, and the effects of embedding association tests.

    Parameters
    ----------
    images
        Embeddings of the items.
    items
        Item id -> columns.
    attribute
        Column of two values that is erased.
    films
        Column that names the film of an item.
    task
        Column of two values that should stay predictable.
    texts
        Embeddings of the texts of the tests' attributes.
    tests
        Embedding association tests to run before and after.
    erased
        CSV file to write the erased embeddings of all items to.
    seed
        Seed of the draw of the films that the eraser is fitted on.

    Raises
    ------
    AuditError
        There are fewer than four films, a column has not two values, or on one side every film has a single
        value of the attribute.
    """
    # The items, their films, and which films the eraser is fitted on
    coded_columns = [attribute, task] if task else [attribute]
    ids, remarks = complete_items(items, [*coded_columns, films], images.rows)
    X = unit_vectors(images.vectors_of(ids, "items"))
    film_of_item = np.array([items[name][films] for name in ids])  # [N]
    fitted_films = _choose_fitted_films(film_of_item, films, seed)
    n_other_films = len(np.unique(film_of_item)) - len(fitted_films)
    is_fitted_on = np.isin(film_of_item, fitted_films)
    sides = {"fitted": is_fitted_on, "others": ~is_fitted_on}

    # Erase the attribute.
    codes_of_column = {}
    for column in coded_columns:
        codes_of_column[column] = _codes_of_two_values(column, [items[name][column] for name in ids])
    attribute_codes = codes_of_column[attribute]
    _check_varies_within_films(attribute, attribute_codes, film_of_item, sides)
    erased_X = _erase_from_directions(X, attribute_codes, is_fitted_on)
    vectors_of = {"before": X, "after": erased_X}

    # Measure before and after. Each column has two probes, and a row for either.
    attribute_probes = _probe_rows(
        attribute, "attribute", attribute_codes, film_of_item, vectors_of=vectors_of, sides=sides
    )
    rows = [attribute_probes.by_fitted_films, attribute_probes.by_other_films]
    if task and task != attribute:
        task_probes = _probe_rows(
            task, "task", codes_of_column[task], film_of_item, vectors_of=vectors_of, sides=sides
        )
        rows += [task_probes.by_fitted_films, task_probes.by_other_films]
    if texts is not None:
        check_same_space(images, texts)
        rows += _test_rows(tests or (), ids, items, texts, vectors_of=vectors_of, sides=sides)

    if erased is not None:
        remarks.append(_write_vectors(ids, erased_X, erased))
    return Finding(
        rows=rows,
        sentence_values={
            "attribute": attribute,
            **attribute_probes.by_other_films,
            "fitted": len(fitted_films),
            "others": n_other_films,
        },
        record={
            "attribute": attribute,
            "films": films,
            "fitted_on": fitted_films.tolist(),
            "left_out": len(items) - len(ids),
            "store": images.fingerprint,
        },
        remarks=remarks,
    )


def _choose_fitted_films(film_of_item: NDArray[np.str_], column: str, seed: int) -> NDArray[np.str_]:
    """Draw the films that the eraser is fitted on, from the film of each item [N].

    Raises
    ------
    AuditError
        Naming the column: there are too few films.
    """
    film_names = np.unique(film_of_item)
    n_films = len(film_names)
    if n_films < MIN_FILMS:
        raise AuditError(
            f"column {column}: {counted(n_films, 'film')}; at least 4 are needed, two of them to probe"
        )
    n_fitted = max(1, int(n_films * FITTED_SHARE))
    shuffled = np.random.default_rng(seed).permutation(film_names)
    return shuffled[:n_fitted]


def _test_rows(
    tests: Sequence[EatTest],
    ids: Sequence[str],
    items: Mapping[str, Row],
    texts: Embeddings,
    *,
    vectors_of: Mapping[str, Floats],
    sides: Mapping[str, Mask],
) -> list[dict[str, Any]]:
    """Measure the effect size d of embedding association tests, before and after erasing: a row per test.

    A test compares two sets of items, its targets x and y, by how near they are to two sets of texts, its
    attributes a and b.

    Parameters
    ----------
    tests, texts
        The tests, and the embeddings of their attributes.
    ids, items
        Ids of the N items that have vectors, and the columns of all items, by which targets are selected.
    vectors_of
        "before" and "after" -> vectors, [N, D].
    sides
        "fitted" and "others" -> which items are of this side.
    """
    text_ids = texts.text_ids()
    rows: list[dict[str, Any]] = []
    for test in tests:
        where = f"test {test.name}"  # for messages
        # Of x and of y: which of the N items are in it
        is_in_target = [np.isin(ids, select(target, items, test.name)) for target in (test.x, test.y)]
        a = attribute_vectors(texts, text_ids, test.a, variant="code", location=where)
        b = attribute_vectors(texts, text_ids, test.b, variant="code", location=where)
        effect_size = partial(_effect_size, is_in_target, a, b)
        effects = _before_and_after(vectors_of, sides, measure=effect_size)
        rows.append({"measure": f"d of {test.name}", "of": "test", **effects})
    return rows


class _ProbeRows(NamedTuple):
    """The rows of the two probes of a column.

    Attributes
    ----------
    by_fitted_films
        Accuracies of the probe that is fitted on the films that the eraser was fitted on.
    by_other_films
        Mean accuracies within films of the probes that predict each of the other films from the remaining
        ones of them.
    """

    by_fitted_films: dict[str, Any]
    by_other_films: dict[str, Any]


def _probe_rows(
    column: str,
    kind: str,
    codes: Codes,
    film_of_item: NDArray[np.str_],
    *,
    vectors_of: Mapping[str, Floats],
    sides: Mapping[str, Mask],
) -> _ProbeRows:
    """Measure the balanced accuracy of linear probes of a column, before and after erasing.

    There are two probes, each with a row. One is trained on the films that the eraser was fitted on, from
    which the attribute is gone by construction. The other is trained on the films that it was not fitted on,
    each of them predicted from the remaining ones: does the eraser work there too? As it is another probe for
    each film, its accuracy is computed within films.

    Parameters
    ----------
    column, kind
        Name of the column, and whether it is the "attribute" or the "task".
    codes
        Its value of each item, [N], as 0 or 1.
    film_of_item
        Film of each item, [N].
    vectors_of
        "before" and "after" -> vectors, [N, D].
    sides
        "fitted" and "others" -> which items are of this side.
    """
    predicted_by_fitted_films = {}  # "before" and "after" -> predictions, [N]
    predicted_by_other_films = {}
    for when, vectors in vectors_of.items():
        predicted_by_fitted_films[when] = _probe_predictions(codes, sides["fitted"], vectors)
        predicted_by_other_films[when] = _predictions_by_other_films(
            codes, film_of_item, sides["others"], vectors
        )
    accuracy = partial(_balanced_accuracy, codes)
    accuracy_within_films = partial(_balanced_accuracy_within_films, codes, film_of_item)
    by_fitted_films = _before_and_after(predicted_by_fitted_films, sides, measure=accuracy)
    by_other_films = _before_and_after(predicted_by_other_films, sides, measure=accuracy_within_films)
    return _ProbeRows(
        by_fitted_films={"measure": f"probe of {column}", "of": kind, **by_fitted_films},
        by_other_films={"measure": f"probe of {column} by other films", "of": kind, **by_other_films},
    )


def _check_varies_within_films(
    attribute: str, codes: Codes, film_of_item: NDArray[np.str_], sides: Mapping[str, Mask]
) -> None:
    """Raise an AuditError if on one side every film has a single value of the attribute.

    A probe could then tell the attribute by recognising the film.
    """
    for side, is_of_side in sides.items():
        films = np.unique(film_of_item[is_of_side])
        n_values_of_films = [len(np.unique(codes[film_of_item == film])) for film in films]
        if max(n_values_of_films) < 2:
            raise AuditError(
                f"column {attribute}: every film of those {side} has one value of it, so that a probe could "
                "tell it by recognising the film"
            )


def _write_vectors(ids: Sequence[str], vectors: Floats, path: Path) -> str:
    """Write the vectors [N, D] to a CSV file, one row per item, and return a sentence that names the file."""
    header = ("clip_id", *(f"f{k}" for k in range(vectors.shape[1])))
    lines = []
    for name, vector in zip(ids, vectors.astype(np.float32).tolist(), strict=True):
        lines.append([name, *map(repr, vector)])
    return write_rows([header, *lines], path, "erased embeddings", force=False)


def _before_and_after(
    arrays: Mapping[str, NDArray[Any]], sides: Mapping[str, Mask], measure: Callable[[Any, Mask], float]
) -> dict[str, float | None]:
    """Compute a measure before and after erasing, on each side.

    Parameters
    ----------
    arrays
        "before" and "after" -> what is measured, one row per item.
    sides
        "fitted" and "others" -> which items are of this side.
    measure
        Computes the measure of an array on the items of a side; NaN where it is undefined.

    Returns
    -------
    ``before_fitted``, ``before_others``, ``after_fitted`` and ``after_others``; None where undefined.
    """
    measured: dict[str, float | None] = {}
    for when, array in arrays.items():
        for side, is_of_side in sides.items():
            number = measure(array, is_of_side)
            measured[f"{when}_{side}"] = None if np.isnan(number) else number
    return measured


def _codes_of_two_values(column: str, values: Sequence[str]) -> Codes:
    """Code a column of two values as 0 and 1, [N]."""
    names, codes = np.unique(values, return_inverse=True)
    if len(names) != 2:
        raise AuditError(f"column {column}: two values were expected, found {', '.join(names[:5].tolist())}")
    return codes.astype(np.int64)


def _probe_predictions(y: Codes, is_fitted_on: Mask, X: Floats) -> Codes:
    """Fit a linear probe on the items `is_fitted_on`, and predict the class of all items [N].

    If the items to fit on have only one class, all items get this class.
    """
    if len(np.unique(y[is_fitted_on])) < 2:
        return np.full_like(y, y[is_fitted_on][0])
    # Features are not clipped here, unlike in the project's own probes, because LEACE promises that a linear
    # function learns nothing, and clipping is not linear.
    probe = make_pipeline(StandardScaler(), RidgeLogistic(C=0.1))
    predictions: Codes = probe.fit(X[is_fitted_on], y[is_fitted_on]).predict(X)
    return predictions


def _predictions_by_other_films(y: Codes, film: NDArray[np.str_], others: Mask, X: Floats) -> Codes:
    """Predict the items of each film of `others` by a probe fitted on the remaining films of `others`.

    Parameters
    ----------
    y, film, X
        Class, film and vector of each item, [N], [N] and [N, D].
    others
        Which items are of these films, [N].

    Returns
    -------
    Predicted classes, [N]; -1 for items that are not of these films.
    """
    predictions = np.full_like(y, -1)
    for name in np.unique(film[others]):
        is_of_film = film == name
        is_fitted_on = others & ~is_of_film
        predictions[is_of_film] = _probe_predictions(y, is_fitted_on, X)[is_of_film]
    return predictions


def _balanced_accuracy(y: Codes, predictions: Codes, rows: Mask) -> float:
    """Compute the balanced accuracy of the predictions of some items; NaN where an item has none (-1)."""
    predicted = predictions[rows]
    if (predicted < 0).any():
        return np.nan
    return METRICS["balanced_accuracy"].point(y[rows], predicted)


def _balanced_accuracy_within_films(
    y: Codes, film: NDArray[np.str_], predictions: Codes, rows: Mask
) -> float:
    """Average the balanced accuracy of predictions [N] over the films of some items that have both classes.

    Each film is predicted by a probe of its own, from the other ones. A probe that knows nothing calls all
    items of a film by the class that most items of the other films have: of two films with shares of .8 and
    .2 it is wrong in both, and has a balanced accuracy of .2 over all their items. Within a film it has .5.

    NaN if no film has both classes, or an item has no prediction (-1).
    """
    accuracies = []
    for name in np.unique(film[rows]):
        rows_of_film = rows & (film == name)
        if len(np.unique(y[rows_of_film])) == 2:
            accuracies.append(_balanced_accuracy(y, predictions, rows_of_film))
    return float(np.mean(accuracies)) if accuracies else np.nan


def _effect_size(targets: Sequence[Mask], a: Floats, b: Floats, X: Floats, rows: Mask) -> float:
    """Compute the effect size d of a test on some items; NaN where it is undefined.

    It is undefined if X or Y has no item among them, or if all associations are equal.

    Parameters
    ----------
    targets
        Which items are of X, and which are of Y.
    a, b : ndarray, shape [k, D], [l, D]
        Attributes.
    X : ndarray, shape [N, D]
        Vectors of all items.
    rows : bool ndarray, shape [N]
        The items to measure on.
    """
    is_of_x, is_of_y = targets
    x = X[is_of_x & rows]
    y = X[is_of_y & rows]
    if len(x) == 0 or len(y) == 0:
        return np.nan
    associations_of_x, associations_of_y = associations(x, y, a, b)
    try:
        return effect(associations_of_x, associations_of_y)["d"]
    except AuditError:  # all associations are equal
        return np.nan
