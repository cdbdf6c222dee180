"""Run embedding association tests (Wolfe et al., FAccT 2023, eq. 1-2; Caliskan et al., Science 2017)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_studies.audits.embeddings import check_vectors, unit
from obygaze_studies.errors import AuditError

SAME = 1e-14
"""A standard deviation of associations up to this is rounding, not spread."""

Vectors = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Associations:
    """How much closer each target is to the attributes A than to B: s(w, A, B) of eq. 2.

    Attributes
    ----------
    x, y : float64 [n], [m]
        Of the targets X and Y.
    """

    x: Vectors
    y: Vectors


@dataclass(frozen=True)
class Effect:
    """An effect size and what a normal null says of it.

    Attributes
    ----------
    d : float
        Difference of the mean associations of X and Y in standard deviations (ddof = 1) of all; positive
        where X is closer to A.
    statistic : float
        Sum over X minus sum over Y, the authors' test statistic.
    mean_difference : float
        Mean over X minus mean over Y.
    z : float
        The mean difference over its standard deviation when X and Y are drawn from their union at random.
    p_normal : float
        One-sided upper tail of the normal at `z`: what the authors' 1,000 shuffles and fitted normal
        estimate.
    """

    d: float
    statistic: float
    mean_difference: float
    z: float
    p_normal: float

    @property
    def star(self) -> bool:
        """Whether the published tables would star it: either tail below .05."""
        return min(self.p_normal, 1 - self.p_normal) < 0.05


def associations(x: Vectors, y: Vectors, a: Vectors, b: Vectors) -> Associations:
    """Associate targets with attributes (eq. 2).

    The mean of the cosines with A is the product with the mean of A's unit vectors. It is taken row by row,
    so that equal targets have equal associations to the last bit.

    Parameters
    ----------
    x, y : float64 [n, D], [m, D]
        Targets.
    a, b : float64 [k, D], [l, D]
        Attributes.

    Raises
    ------
    AuditError
        Naming the set (X, Y, A or B) and the row: empty, a value that is not finite, a zero vector.
    """
    for vectors, name in ((x, "X"), (y, "Y"), (a, "A"), (b, "B")):
        check_vectors(vectors, f"set {name}")
    towards = unit(a).mean(axis=0) - unit(b).mean(axis=0)
    return Associations((unit(x) * towards).sum(axis=1), (unit(y) * towards).sum(axis=1))


def effect(found: Associations) -> Effect:
    """Measure the effect (eq. 1) and its normal p.

    Raises
    ------
    AuditError
        X and Y have fewer than two targets together, or all their associations are equal.
    """
    n, m = len(found.x), len(found.y)
    if not (n and m):
        raise AuditError(f"set {'Y' if n else 'X'} is empty")
    deviation = float(np.concatenate([found.x, found.y]).std(ddof=1))
    if deviation <= SAME:
        raise AuditError("all targets of X and Y are associated alike (zero variance), so there is no effect")
    difference = float(found.x.mean() - found.y.mean())
    d = difference / deviation
    z = d / math.sqrt(1 / n + 1 / m)
    return Effect(d, float(found.x.sum() - found.y.sum()), difference, z, 0.5 * math.erfc(z / math.sqrt(2)))


def critical_d(n: int, m: int) -> float:
    """Effect size beyond which the published tables would print a star, for n + m targets."""
    return 1.6448536269514722 * math.sqrt(1 / n + 1 / m)
