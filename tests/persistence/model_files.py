"""Make model files of a small perceptron, whole and tampered with."""

import io
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from obygaze_features.store.testing import toy_provenance
from obygaze_models.models.mlp import MLPProbe
from obygaze_models.persistence.archive import CARD
from obygaze_models.persistence.card import features_digest
from obygaze_models.persistence.estimators import N_LEVELS
from obygaze_models.persistence.model_file import construct, pack, read_model, to_state

PROVENANCE = toy_provenance("descriptors", storage={"pooled": "float32"}, source={"name": "planted"})
FROZEN = read_model(Path(__file__).parent / "frozen" / "protocol_4_mlp.model").card


def fitted(variant="strict", dtype=np.float32, n_features=3, n_hidden=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, n_features)).astype(dtype)
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0.5).astype(np.int64)
    return MLPProbe(n_hidden, variant=variant, max_epochs=5, learning_rate=0.05).fit(X, y), X


def card_of(probe, **changed):
    fields = {
        "parameters": to_state(probe).parameters,
        "threshold": 0.125,
        "n_features": probe.n_features_in_,
        "provenance": PROVENANCE,
        "provenance_sha256": features_digest(PROVENANCE),
    }
    return replace(FROZEN, **fields | changed)


def about_of(probe):
    d = probe.n_features_in_
    return {
        "calibration_draws": np.array([[1.0, 0.5], [1.1, 0.4]]),
        "reach_mean": np.zeros(d),
        "reach_scale": np.ones(d),
        "reach_distances": np.linspace(0.5, 2, N_LEVELS),
        "trained_rows": np.arange(96, dtype=np.uint8).reshape(6, 1, 16),
        "trained_row_films": np.arange(6) % len(FROZEN.movies),
    }


def packed(probe, **changed):
    return pack(card_of(probe, **changed), to_state(probe).arrays, about_of(probe))


PROBE, X = fitted()
GOOD = packed(PROBE)


def members(data=GOOD):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of duplicate names, which are the point
        for name, data in parts.items() if isinstance(parts, dict) else parts:
            member = zipfile.ZipInfo(name)
            member.compress_type = compression
            member.create_system = 3
            member.external_attr = 0o644 << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def edited(**changes):
    """A file whose card has other fields, else the same; None takes a field out."""
    parts = members()
    card = json.loads(parts[CARD]) | changes
    card = {name: value for name, value in card.items() if value is not None}
    return zipped(parts | {CARD: json.dumps(card).encode()})


def read(tmp_path, data):
    path = tmp_path / "some.model"
    path.write_bytes(data)
    return whole(path)


def whole(path):
    """Both phases: audit, then construct."""
    model = read_model(path)
    construct(model)
    return model
