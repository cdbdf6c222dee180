"""Make gamma.json: what pygamma-agreement gives for random segments of two annotators.

It is never a dependency (it pulls cvxpy, numba and pyannote):

    python -m venv oracle
    oracle/bin/pip install pygamma-agreement
    oracle/bin/python tests/evaluation/oracles/make_gamma.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pyannote.core import Segment
from pygamma_agreement import (
    CombinedCategoricalDissimilarity,
    Continuum,
    PrecomputedCategoricalDissimilarity,
    ShuffleContinuumSampler,
)
from sortedcontainers import SortedSet

LEVELS = ("EN", "HN", "NS", "S")
APART = np.array([[0, 0.3, 0.7, 1], [0.3, 0, 0.4, 0.7], [0.7, 0.4, 0, 0.3], [1, 0.7, 0.3, 0]])
N_SAMPLES = 300


def segments(rng, n):
    starts = np.sort(rng.uniform(0, 3000, n)).round(2)
    return [(float(a), round(float(a + rng.uniform(5, 90)), 2), LEVELS[rng.integers(1, 4)]) for a in starts]


def changed(rng, found):
    """Segments with edges moved, some missing, some of another level."""
    kept = []
    for start, end, level in found:
        if rng.random() < 0.75:
            edges = sorted((round(start + rng.normal(0, 15), 2), round(end + rng.normal(0, 15), 2)))
            if edges[1] > edges[0] >= 0:
                kept.append((*edges, level if rng.random() < 0.7 else LEVELS[rng.integers(1, 4)]))
    return kept


def main():
    rng = np.random.default_rng(16)
    cases = []
    for number, n in enumerate((6, 20, 30)):
        first = segments(rng, n)
        second = changed(rng, first) if number else segments(rng, n + 2)
        continuum = Continuum()
        for name, found in (("a", first), ("b", second)):
            for start, end, level in found:
                continuum.add(name, Segment(start, end), level)
        for alpha, beta in ((1, 1), (3, 1), (1, 0)):
            unlike = CombinedCategoricalDissimilarity(
                alpha=alpha,
                beta=beta,
                cat_dissim=PrecomputedCategoricalDissimilarity(SortedSet(LEVELS), matrix=APART),
            )
            np.random.seed(0)  # noqa: NPY002 - what the package draws from
            found = continuum.compute_gamma(
                unlike, n_samples=N_SAMPLES, sampler=ShuffleContinuumSampler("float_pivot")
            )
            cases.append(
                {
                    "first": first,
                    "second": second,
                    "alpha": alpha,
                    "beta": beta,
                    "disorder": float(found.observed_disorder),
                    "gamma": float(found.gamma),
                    "expected": float(found.expected_disorder),
                }
            )
    document = {
        "made_by": f"pygamma-agreement {version('pygamma-agreement')}",
        "samples": N_SAMPLES,
        "cases": cases,
    }
    path = Path(__file__).with_name("gamma.json")
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
