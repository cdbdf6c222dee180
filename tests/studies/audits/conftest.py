"""Small stores in one space, and the oracle of expected values."""

import json

import numpy as np
import pytest

from obygaze_features.store.testing import seal_arrays

SPACE = "toy-clip sha256:0123"


def save_vectors_to(path, ids, vectors, *, space=SPACE, **changes):
    """Seal a store `path-1.0.0` with one pooled vector an id."""
    rows = {"pooled": np.asarray(vectors, np.float32)}
    provenance = changes if space is None else {"space": space, **changes}
    return seal_arrays(path, dict.fromkeys(ids, "none"), {"toy": rows}, **provenance)


@pytest.fixture(scope="session")
def save_vectors():
    return save_vectors_to


@pytest.fixture(scope="session")
def oracle(shared_data):
    return json.loads((shared_data / "audits" / "oracle.json").read_text(encoding="utf-8"))
