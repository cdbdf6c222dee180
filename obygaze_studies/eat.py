"""Run embedding association tests: effect sizes, and their null distribution under permutation.

The tests are those of Wolfe et al., FAccT 2023 (eq. 1-2), after Caliskan et al., Science 2017, or the user's
own. The null distribution comes from all partitions of the targets, or from random ones.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space, check_vectors, unit_vectors
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart
from obygaze_studies.audit_common.inputs import Row, refuse_unpublished
from obygaze_studies.eat_stimuli import EFFECTS, Attributes, EatTest, Variant, label, select, texts_of
from obygaze_studies.errors import AuditError, regarding

SMALLEST_DEVIATION = 1e-14
"""A standard deviation of associations up to this is rounding, not spread."""

MAX_EXACT = 44
"""Largest number of targets whose partitions are counted; time and memory double with every two targets."""

NUMBERS_AT_ONCE = 1 << 20
"""How many numbers are shuffled at a time, which bounds the memory."""

_UNITS_OF_ONE = 2.0**52
"""In how many units an association of 1 is counted; a unit is the precision of a float64 from 0.5 to 1."""

CRITICAL_Z = 1.6448536269514722
"""The 95th percentile of a standard normal: beyond it the published tables print a star."""

AXIS_LABEL = (
    "effect size d, in standard deviations\n"
    "\N{LEFTWARDS ARROW} Y closer to A      X closer to A \N{RIGHTWARDS ARROW}"
)

BAR_LABEL = "{test}\nX: {x} (n = {n_x})\nY: {y} (n = {n_y})\nA: {a}, B: {b}"
"""Label of a test's bar: its name, its sets of images with their sizes, its sets of texts."""

STAR_NOTE = "star: a normal p below .05 in either tail"

Vectors = NDArray[np.float64]


def associations(x: Vectors, y: Vectors, a: Vectors, b: Vectors) -> tuple[Vectors, Vectors]:
    """Compute each target's association: how much closer it is to A than to B (eq. 2).

        s(w, A, B) = mean of the cosines of w with A - mean of the cosines of w with B

    The mean of a target's cosines with A equals its product with the mean of A's unit vectors. Products are
    taken row by row, so that equal targets have equal associations to the last bit.

    Parameters
    ----------
    x, y : float64 [n, D], [m, D]
        Targets.
    a, b : float64 [k, D], [l, D]
        Attributes.

    Returns
    -------
    float64 [n], [m]
        Associations of the targets X and of the targets Y.

    Raises
    ------
    AuditError
        Naming the set (X, Y, A or B) and the row: the set is empty, a value is not finite, a vector is zero.
    """
    for vectors, name in ((x, "X"), (y, "Y"), (a, "A"), (b, "B")):
        check_vectors(vectors, f"set {name}")
    towards = unit_vectors(a).mean(axis=0) - unit_vectors(b).mean(axis=0)
    return (unit_vectors(x) * towards).sum(axis=1), (unit_vectors(y) * towards).sum(axis=1)


def effect(x: Vectors, y: Vectors) -> dict[str, float]:
    """Compute the effect size (eq. 1) of the targets' associations, and its normal p.

    Parameters
    ----------
    x, y : float64 [n], [m]
        Associations of the targets X and Y.

    Returns
    -------
    dict of str to number
        `d`: the difference of the mean associations of X and Y, in standard deviations (ddof = 1) of all
        associations; positive where X is closer to A.
        `statistic`: the sum over X minus the sum over Y, the authors' test statistic.
        `mean_difference`: the difference of the means.
        `z`: the difference of the means divided by its standard deviation when X and Y are drawn at random
        from their union.
        `p_normal`: the one-sided upper tail at `z`, which the authors estimate by 1,000 shuffles and a fitted
        normal distribution.
        `star`: whether the published tables would print a star, because one of both tails is below .05.

    Raises
    ------
    AuditError
        X and Y have fewer than two targets together, or all their associations are equal.
    """
    deviation = float(np.concatenate([x, y]).std(ddof=1))
    if deviation <= SMALLEST_DEVIATION:
        raise AuditError("all targets of X and Y are associated alike (zero variance), so there is no effect")

    difference = float(x.mean() - y.mean())
    d = difference / deviation
    # If X and Y are drawn at random, d has the variance 1 / n + 1 / m.
    z = d / math.sqrt(1 / len(x) + 1 / len(y))
    p_normal = 0.5 * math.erfc(z / math.sqrt(2))
    p_of_nearer_tail = min(p_normal, 1 - p_normal)
    return {
        "d": d,
        "statistic": float(x.sum() - y.sum()),
        "mean_difference": difference,
        "z": z,
        "p_normal": p_normal,
        "star": p_of_nearer_tail < 0.05,
    }


def critical_d(n: int, m: int) -> float:
    """Compute the effect size beyond which the published tables would print a star, for n + m targets.

    It is the z of a one-sided p of .05 times the standard deviation of d if X and Y are drawn at random.
    """
    deviation_of_d = math.sqrt(1 / n + 1 / m)
    return CRITICAL_Z * deviation_of_d


def exact(x: Vectors, y: Vectors) -> dict[str, float]:
    """Compute the exact permutation p: the share of partitions of all targets that are as extreme as X and Y.

    A partition puts n of the N targets in one set and the others in a second. As the sizes are fixed, every
    statistic of the test grows with the sum over the first set alone. So it is counted how many sets of n
    targets have at least the sum of X.

    There are too many to list, 138 billion for 20 + 20. So the targets are split into two halves, and the
    sums of all subsets of each half are listed, by the size of the subset: 2 * 2^(N/2) sums. A set of n
    targets is a subset of k targets of the first half with one of n - k of the second. For each sum of the
    first half, a binary search counts the sums of the second that complete it to at least the sum of X.

    The associations are rounded to integers, in units of 2^-52 (the spacing of floats near 1), so that a sum
    does not depend on the order of addition. Each may be wrong by a unit: sums that differ by at most one
    unit for each target are ties.

    Parameters
    ----------
    x, y : float64 [n], [m]
        Associations of the targets X and Y.

    Returns
    -------
    dict of str to number
        `n_ge`: the number of partitions whose statistic is at least the observed one, which counts itself.
        `n_partitions`: the number of all partitions.
        `p_exact`: the first divided by the second.

    Raises
    ------
    ValueError
        There are more than `MAX_EXACT` targets.
    """
    n = len(x)
    total = len(x) + len(y)
    if total > MAX_EXACT:
        raise ValueError(f"{total} targets have too many partitions to count; at most {MAX_EXACT}")

    units = np.rint(np.concatenate([x, y]) * _UNITS_OF_ONE).astype(np.int64)
    observed_sum = int(units[:n].sum())
    tolerance = total  # one unit for each target
    min_sum = observed_sum - tolerance

    first_half = _sums_by_size(units[: total // 2])
    second_half = _sums_by_size(units[total // 2 :])
    n_ge = 0
    for size, sums in enumerate(first_half):
        # With `size` targets from the first half, a set of n targets has n - size from the second.
        size_in_second = n - size
        if 0 <= size_in_second < len(second_half):
            n_ge += _count_pairs(sums, second_half[size_in_second], min_sum)

    n_partitions = math.comb(total, n)
    return {"p_exact": n_ge / n_partitions, "n_ge": n_ge, "n_partitions": n_partitions}


def _count_pairs(sums: NDArray[np.int64], partners: NDArray[np.int64], minimum: int) -> int:
    """Count the pairs of one of `sums` and one of `partners`, both ascending, whose sum is `minimum` or more.

    A binary search finds for each sum how many partners are too small.
    """
    # In descending order of the sums, because searching for ascending values is faster.
    least_partners = minimum - sums[::-1]
    n_too_small = int(np.searchsorted(partners, least_partners).sum())
    return sums.size * partners.size - n_too_small


def _sums_by_size(units: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Compute the sums of all subsets of some numbers [n].

    Returns
    -------
    list of int64 arrays
        At index k, the sums of the subsets of k numbers in ascending order; the list has n + 1 entries.
    """
    sums = np.zeros(1, np.int64)  # at first, only the empty subset
    sizes = np.zeros(1, np.uint8)
    for element in units:
        # Each subset so far, without the element and with it
        sums = np.concatenate([sums, sums + element])
        sizes = np.concatenate([sizes, sizes + np.uint8(1)])
    return [np.sort(sums[sizes == size]) for size in range(len(units) + 1)]


def sampled(x: Vectors, y: Vectors, *, n_perm: int, seed: int) -> dict[str, float]:
    """Estimate the permutation p from random partitions, each as likely as any other.

    Parameters
    ----------
    x, y : float64 [n], [m]
        Associations of the targets X and Y.
    n_perm
        Number of partitions to draw.
    seed
        Seed of the draws; the same seed gives the same count.

    Returns
    -------
    dict of str to number
        `p_sampled`, `n_perm` and `seed`.
    """
    # Sorted, so that the draws do not depend on the order of the targets.
    pool = np.sort(np.concatenate([x, y]))
    n = len(x)

    # With fixed sizes, the test's statistic grows with the sum over X alone: that is compared. Sums below the
    # observed one by no more than rounding, one unit for each target, count as ties, as in `exact`.
    tolerance = len(pool) / _UNITS_OF_ONE
    least = float(x.sum()) - tolerance

    rng = np.random.default_rng(seed)
    n_at_once = max(1, NUMBERS_AT_ONCE // len(pool))
    n_ge = 0
    for start in range(0, n_perm, n_at_once):
        n_partitions = min(n_at_once, n_perm - start)
        shuffled = rng.permuted(np.tile(pool, (n_partitions, 1)), axis=1)
        sums_over_x = shuffled[:, :n].sum(axis=1)
        n_ge += int((sums_over_x >= least).sum())

    # The observed partition counts as one more draw, so that p is never 0 (Phipson & Smyth, 2010).
    return {"p_sampled": (1 + n_ge) / (1 + n_perm), "n_perm": n_perm, "seed": seed}


# --- the audit
# ---------------------------------------------------------------------------
@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding's `sentence_values`
        name="eat",
        title="Embedding association tests",
        table="Effect size and p of every test",
        columns=(
            "test",
            "n_x",
            "n_y",
            "d",
            "star",
            "p_normal",
        ),
        sentence="{n_starred} of {n_tests:test has|tests have} a star (see below){starred}",
        source="Wolfe et al., FAccT 2023, eq. 1-2; published: its Tables 1 and 2",
        figure=(
            "Effect sizes, with a star where a normal p is below .05 in either tail; "
            "grey, the band in which it is not"
        ),
    )
)
def audit_eat(
    images: Embeddings,
    texts: Embeddings,
    *,
    items: Mapping[str, Row],
    text_ids: Mapping[str, str],
    tests: Sequence[EatTest],
    variant: Variant = "code",
    n_perm: int = 10_000,
    seed: int = 0,
    model: str | None = None,
) -> Finding:
    """Run embedding association tests, and give each a row of the table.

    A test asks whether two sets of images (targets) differ in how near they are to two sets of texts
    (attributes): the effect size d says by how much, and p whether chance explains it. With a published
    model, its values stand beside ours.

    Parameters
    ----------
    images
        Embeddings of the targets.
    texts
        Embeddings of the attributes, in the space of the images.
    items
        Item id -> its columns, by which targets are selected.
    text_ids
        Text -> its id among `texts`.
    tests
        The tests to run.
    variant
        Wording of the prompts.
    n_perm
        Number of partitions that are drawn for a test with too many targets to count all of them.
    seed
        Seed of these draws, used anew by every test.
    model
        A model of the published tables, whose values are shown next to ours.

    Raises
    ------
    AuditError
        Naming the test, the set and the id.
    """
    check_same_space(images, texts)
    refuse_unpublished(model, EFFECTS)

    rows: list[dict[str, Any]] = []
    for test in tests:
        sets = _vectors_of_sets(test, images, texts, items=items, text_ids=text_ids, variant=variant)
        row = _row_of_test(test, sets, n_perm=n_perm, seed=seed)
        printed = EFFECTS[model].get(test.name) if model else None
        row["published_d"] = printed.d if printed else None
        row["published_star"] = printed.star if printed else None
        rows.append(row)

    starred = [row["test"] for row in rows if row["star"]]
    starred_names = f": {', '.join(starred)}" if starred else ""
    # A test has an exact p, or one from drawn partitions: a column is shown if any test has such a p.
    columns = [name for name in ("p_exact", "p_sampled") if any(row[name] for row in rows)]
    if model:
        columns += ["published_d", "published_star"]
    return Finding(
        rows=rows,
        columns=columns,
        table_notes=[STAR_NOTE],
        sentence_values={"n_starred": len(starred), "n_tests": len(rows), "starred": starred_names},
        record={
            "space": images.space,
            "images": images.fingerprint,
            "texts": texts.fingerprint,
            "n_partial": {"images": len(images.partial), "texts": len(texts.partial)},
            "variant": variant,
            "tests": msgspec.to_builtins(tests),
            "published_model": model,
        },
        draw=bar_chart(
            labels=[BAR_LABEL.format(**row).replace("_", " ") for row in rows],
            series={"d": [row["d"] for row in rows]},
            axis=AXIS_LABEL,
            published={"d": [row["published_d"] for row in rows]},
            chance_bands=[critical_d(row["n_x"], row["n_y"]) for row in rows],  # d within it has no star
            starred={"d": [row["star"] for row in rows]},
        ),
    )


def _row_of_test(test: EatTest, sets: Mapping[str, Vectors], *, n_perm: int, seed: int) -> dict[str, Any]:
    """Make the row of a test: its sets with their sizes, its effect size and its p.

    Parameters
    ----------
    sets
        x, y, a and b -> vectors of this set of the test, [n, D].
    n_perm, seed
        Of a test with too many targets to count all partitions: number of random partitions, and their seed.
    """
    with regarding(AuditError, f"test {test.name}"):
        x, y = associations(**sets)
        effects = effect(x, y)
    row: dict[str, Any] = {
        "test": test.name,
        "x": label(test.x),
        "y": label(test.y),
        "a": label(test.a),
        "b": label(test.b),
    }
    for side, vectors in sets.items():
        row[f"n_{side}"] = len(vectors)
    return row | effects | _permutation_p_columns(x, y, n_perm, seed)


def _vectors_of_sets(
    test: EatTest,
    images: Embeddings,
    texts: Embeddings,
    *,
    items: Mapping[str, Row],
    text_ids: Mapping[str, str],
    variant: Variant,
) -> dict[str, Vectors]:
    """Return the vectors of the four sets of a test: x, y, a and b -> [n, D].

    Raises
    ------
    AuditError
        Naming the test and the set: an item is in both X and Y, or an item or a text has no embedding.
    """
    place = f"test {test.name}"
    place_of = {side: f"{place}, set {side.upper()}" for side in "xyab"}
    ids_x = select(test.x, items, place_of["x"])
    ids_y = select(test.y, items, place_of["y"])
    members_of_y = set(ids_y)
    for name in ids_x:
        if name in members_of_y:
            raise AuditError(f"{place}: {name} is in both X and Y")
    return {
        "x": images.vectors_of(ids_x, place_of["x"]),
        "y": images.vectors_of(ids_y, place_of["y"]),
        "a": attribute_vectors(texts, text_ids, test.a, variant, place_of["a"]),
        "b": attribute_vectors(texts, text_ids, test.b, variant, place_of["b"]),
    }


def attribute_vectors(
    texts: Embeddings, text_ids: Mapping[str, str], attributes: Attributes, variant: Variant, location: str
) -> Vectors:
    """Return the embeddings of the texts of a set of attributes, [n, D].

    Parameters
    ----------
    texts
        Embeddings of texts.
    text_ids
        Text -> its id among these.
    attributes
        The texts, or the name of a list of prompts.
    variant
        Wording of the prompts.
    location
        Name of the set in messages.

    Raises
    ------
    AuditError
        Naming the set with `location`: one of its texts has no id in `text_ids`, or no embedding.
    """
    prompts = texts_of(attributes, variant)
    hint = f" of '{attributes}', variant {variant}" if isinstance(attributes, str) else ""
    for text in prompts:
        if text not in text_ids:
            raise AuditError(f"{location}: the table of texts has no {text!r}{hint}")
    return texts.vectors_of([text_ids[text] for text in prompts], location)


def _permutation_p_columns(x: Vectors, y: Vectors, n_perm: int, seed: int) -> dict[str, object]:
    """Compute the permutation p: exactly for at most `MAX_EXACT` targets, else from random partitions.

    The result has the columns of both ways; those of the way that was not taken are None.

    Parameters
    ----------
    x, y : ndarray, shape [n], [m]
        Associations of the targets X and Y.
    n_perm, seed
        Number of random partitions, and the seed of their draw.
    """
    columns: dict[str, object] = dict.fromkeys(
        ("p_exact", "n_ge", "n_partitions", "p_sampled", "n_perm", "seed")
    )
    if len(x) + len(y) <= MAX_EXACT:
        return columns | exact(x, y)
    return columns | sampled(x, y, n_perm=n_perm, seed=seed)
