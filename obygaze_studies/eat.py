"""Run embedding association tests: prompts and tests, effect sizes, and their permutation null.

Those of Wolfe et al., FAccT 2023 (eq. 1-2), after Caliskan et al., Science 2017; or own tests. The null is of
all partitions, or of random ones.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space, check_vectors, unit
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart
from obygaze_studies.audit_common.inputs import Row, refuse_unknown
from obygaze_studies.eat_stimuli import EFFECTS, Attributes, EatTest, Variant, label, select, texts_of
from obygaze_studies.errors import AuditError, regarding

SAME = 1e-14
"""A standard deviation of associations up to this is rounding, not spread."""

MOST_EXACT = 44
"""Most targets whose partitions are counted; the work grows with 2 to the half of it."""

BLOCK = 1 << 20
"""Numbers shuffled at a time."""

_GRID = 2.0**52

AXIS = (
    "effect size d, in standard deviations\n"
    "\N{LEFTWARDS ARROW} Y closer to A      X closer to A \N{RIGHTWARDS ARROW}"
)

COMPARED = "{test}\nX: {x} (n = {n_x})\nY: {y} (n = {n_y})\nA: {a}, B: {b}"
"""What a test compares: its name, its images and how many, its texts."""

STAR = "star: a normal p below .05 in either tail"

Vectors = NDArray[np.float64]


def associations(x: Vectors, y: Vectors, a: Vectors, b: Vectors) -> tuple[Vectors, Vectors]:
    """Associate targets with attributes: how much closer each is to A than to B, s(w, A, B) of eq. 2.

    The mean of the cosines with A is the product with the mean of A's unit vectors. It is taken row by row,
    so that equal targets have equal associations to the last bit.

    Parameters
    ----------
    x, y : float64 [n, D], [m, D]
        Targets.
    a, b : float64 [k, D], [l, D]
        Attributes.

    Returns
    -------
    float64 [n], [m]
        Of the targets X and Y.

    Raises
    ------
    AuditError
        Naming the set (X, Y, A or B) and the row: empty, a value that is not finite, a zero vector.
    """
    for vectors, name in ((x, "X"), (y, "Y"), (a, "A"), (b, "B")):
        check_vectors(vectors, f"set {name}")
    towards = unit(a).mean(axis=0) - unit(b).mean(axis=0)
    return (unit(x) * towards).sum(axis=1), (unit(y) * towards).sum(axis=1)


def effect(x: Vectors, y: Vectors) -> dict[str, float]:
    """Measure the effect (eq. 1) of the targets' associations, and its normal p.

    Returns
    -------
    dict of str to number
        `d`, the difference of the mean associations of X and Y in standard deviations (ddof = 1) of all,
        positive where X is closer to A; `statistic`, the sum over X minus that over Y, the authors' test
        statistic; `mean_difference`; `z`, this over its standard deviation when X and Y are drawn from their
        union at random; `p_normal`, the one-sided upper tail at `z`, which the authors' 1,000 shuffles and
        fitted normal estimate; and `star`, whether the published tables would star it: either tail below .05.

    Raises
    ------
    AuditError
        X and Y have fewer than two targets together, or all their associations are equal.
    """
    deviation = float(np.concatenate([x, y]).std(ddof=1))
    if deviation <= SAME:
        raise AuditError("all targets of X and Y are associated alike (zero variance), so there is no effect")
    difference = float(x.mean() - y.mean())
    d = difference / deviation
    z = d / math.sqrt(1 / len(x) + 1 / len(y))
    p_normal = 0.5 * math.erfc(z / math.sqrt(2))
    measured = {"d": d, "statistic": float(x.sum() - y.sum()), "mean_difference": difference, "z": z}
    return measured | {"p_normal": p_normal, "star": min(p_normal, 1 - p_normal) < 0.05}


def critical_d(n: int, m: int) -> float:
    """Effect size beyond which the published tables would print a star, for n + m targets."""
    return 1.6448536269514722 * math.sqrt(1 / n + 1 / m)


def exact(x: Vectors, y: Vectors) -> dict[str, float]:
    """Count all partitions of X u Y into sets of their sizes, by meeting in the middle.

    With sizes fixed, every statistic of the test grows with the sum over X alone. The targets are split in
    two halves; sums of all subsets of each half are grouped by size, and a sorted group answers for all sums
    of its counterpart at once: 2 * 2^(N/2) sums stand for C(N, n) partitions (138 billion for 20 + 20). Sums
    are of integers, the associations in units of 2^-52, so that their order does not depend on the order
    of addition; sums closer than a unit a target are ties, since they differ by rounding alone.

    Returns
    -------
    dict of str to number
        `n_ge`, the partitions whose statistic is at least the observed one, which is among them;
        `n_partitions`, all; and `p_exact`, their share.

    Raises
    ------
    ValueError
        There are more than `MOST_EXACT` targets.
    """
    n = len(x)
    total = len(x) + len(y)
    if total > MOST_EXACT:
        raise ValueError(f"{total} targets have too many partitions to count; at most {MOST_EXACT}")
    units = np.rint(np.concatenate([x, y]) * _GRID).astype(np.int64)
    observed = int(units[:n].sum())
    rounding = total
    first_half = _sums_by_size(units[: total // 2])
    second_half = _sums_by_size(units[total // 2 :])
    n_ge = 0
    for size, sums in enumerate(first_half):
        if 0 <= n - size < len(second_half):
            partners = second_half[n - size]
            # Sorted questions walk through the sorted answers in order, which the cache likes.
            questions = observed - sums[::-1]
            n_ge += partners.size * sums.size - int(np.searchsorted(partners, questions - rounding).sum())
    n_partitions = math.comb(total, n)
    return {"p_exact": n_ge / n_partitions, "n_ge": n_ge, "n_partitions": n_partitions}


def _sums_by_size(units: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Sum every subset; sorted sums of the subsets of 0, 1, ... elements."""
    sums = np.zeros(1, np.int64)
    sizes = np.zeros(1, np.uint8)
    for element in units:
        sums = np.concatenate([sums, sums + element])
        sizes = np.concatenate([sizes, sizes + np.uint8(1)])
    return [np.sort(sums[sizes == size]) for size in range(len(units) + 1)]


def sampled(x: Vectors, y: Vectors, *, n_perm: int, seed: int) -> dict[str, float]:
    """Draw partitions at random, each as likely as any other, and count as `exact` does.

    Parameters
    ----------
    n_perm
        Partitions to draw.
    seed
        Of the draws; the same seed gives the same count.
    """
    # in whatever order they came
    pool = np.sort(np.concatenate([x, y]))
    n = len(x)
    least = float(x.sum()) - len(pool) / _GRID
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // len(pool))
    n_ge = 0
    for start in range(0, n_perm, rows):
        shuffled = rng.permuted(np.tile(pool, (min(rows, n_perm - start), 1)), axis=1)
        n_ge += int((shuffled[:, :n].sum(axis=1) >= least).sum())
    # The observed partition is counted in (Phipson & Smyth, 2010).
    return {"p_sampled": (1 + n_ge) / (1 + n_perm), "n_perm": n_perm, "seed": seed}


# --- the audit
# ---------------------------------------------------------------------------
@audited(
    Wording(
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
        sentence="{n_starred} of {n_tests} tests have a star (see below){starred}",
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
    """Run every test.

    Parameters
    ----------
    images, texts
        Embeddings of targets and of attributes, of one space.
    items
        Item id -> its columns, by which targets are selected.
    text_ids
        Text -> its id among `texts`.
    n_perm, seed
        Partitions drawn for a test with too many targets to count all, each test anew with this seed.
    model
        A model of the published tables, to put its values beside.

    Raises
    ------
    AuditError
        Naming the test, the set and the id.
    """
    check_same_space(images, texts)
    refuse_unknown(model, EFFECTS)

    rows: list[dict[str, Any]] = []
    for test in tests:
        place = f"test {test.name}"
        chosen = {side: select(getattr(test, side), items, f"{place}, set {side.upper()}") for side in "xy"}
        if in_both := [name for name in chosen["x"] if name in set(chosen["y"])]:
            raise AuditError(f"{place}: {in_both[0]} is in both X and Y")
        sets = {side: images.take(ids, f"{place}, set {side.upper()}") for side, ids in chosen.items()}
        sets |= {
            side: prompted(texts, text_ids, getattr(test, side), variant, f"{place}, set {side.upper()}")
            for side in "ab"
        }
        with regarding(AuditError, place):
            associated = associations(**sets)
            measured = effect(*associated)
        printed = EFFECTS[model].get(test.name) if model else None
        rows.append(
            {"test": test.name}
            | {side: label(getattr(test, side)) for side in "xyab"}
            | {f"n_{side}": len(vectors) for side, vectors in sets.items()}
            | measured
            | _permutations(*associated, n_perm, seed)
            | {f"published_{name}": getattr(printed, name, None) for name in ("d", "star")}
        )
    starred = [row["test"] for row in rows if row["star"]]
    names = f": {', '.join(starred)}" if starred else ""

    def is_given(column: str) -> bool:
        return any(row[column] for row in rows)

    columns = [*filter(is_given, ("p_exact", "p_sampled"))]
    if model:
        columns += ["published_d", "published_star"]
    return Finding(
        rows=rows,
        columns=columns,
        table_notes=[STAR],
        said={"n_starred": len(starred), "n_tests": len(rows), "starred": names},
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
            labels=[COMPARED.format(**row).replace("_", " ") for row in rows],
            series={"d": [row["d"] for row in rows]},
            axis=AXIS,
            published={"d": [row["published_d"] for row in rows]},
            bands=[critical_d(row["n_x"], row["n_y"]) for row in rows],
            starred={"d": [row["star"] for row in rows]},
        ),
    )


def prompted(
    texts: Embeddings, text_ids: Mapping[str, str], attributes: Attributes, variant: Variant, place: str
) -> Vectors:
    """Return the vectors of a set of attributes [n, D].

    Raises
    ------
    AuditError
        Naming the set: a text of it is not there.
    """
    prompts = texts_of(attributes, variant)
    hint = f" of '{attributes}', variant {variant}" if isinstance(attributes, str) else ""
    if missing := [text for text in prompts if text not in text_ids]:
        raise AuditError(f"{place}: the table of texts has no {missing[0]!r}{hint}")
    return texts.take([text_ids[text] for text in prompts], place)


def _permutations(x: Vectors, y: Vectors, n_perm: int, seed: int) -> dict[str, object]:
    """Count every partition where that can be done, draw some where not."""
    columns = dict.fromkeys(("p_exact", "n_ge", "n_partitions", "p_sampled", "n_perm", "seed"))
    few = len(x) + len(y) <= MOST_EXACT
    return columns | (exact(x, y) if few else sampled(x, y, n_perm=n_perm, seed=seed))
