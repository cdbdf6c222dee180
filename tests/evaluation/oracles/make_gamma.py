"""Make gamma.json anew: what pygamma-agreement gives for its random segments of two annotators.

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

PATH = Path(__file__).with_name("gamma.json")
LEVELS = SortedSet(("EN", "HN", "NS", "S"))
APART = np.array([[0, 0.3, 0.7, 1], [0.3, 0, 0.4, 0.7], [0.7, 0.4, 0, 0.3], [1, 0.7, 0.3, 0]])

document = json.loads(PATH.read_text(encoding="utf-8"))
for case in document["cases"]:
    continuum = Continuum()
    for name in ("first", "second"):
        for start, end, level in case[name]:
            continuum.add(name, Segment(start, end), level)
    levels = PrecomputedCategoricalDissimilarity(LEVELS, matrix=APART)
    unlike = CombinedCategoricalDissimilarity(alpha=case["alpha"], beta=case["beta"], cat_dissim=levels)
    np.random.seed(0)  # noqa: NPY002 - what the package draws from
    sampler = ShuffleContinuumSampler("float_pivot")
    found = continuum.compute_gamma(unlike, n_samples=document["samples"], sampler=sampler)
    case["disorder"], case["gamma"] = float(found.observed_disorder), float(found.gamma)
    case["expected"] = float(found.expected_disorder)
document["made_by"] = f"pygamma-agreement {version('pygamma-agreement')}"
PATH.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
