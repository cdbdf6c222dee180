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
FROZEN_CARD = read_model(Path(__file__).parent / "frozen" / "protocol_4_mlp.model").card


def fitted_probe_and_rows(variant="strict", dtype=np.float32):
    """Train a perceptron on 40 clips of 3 features; return it and the features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).astype(dtype)
    y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0.5).astype(np.int64)
    return MLPProbe(n_hidden=2, variant=variant, max_epochs=5, learning_rate=0.05).fit(X, y), X


def card_of_probe(probe, **changed):
    """Make the card of a probe; `changed` are fields that it has besides, or otherwise."""
    fields = {
        "parameters": to_state(probe).parameters,
        "threshold": 0.125,
        "n_features": probe.n_features_in_,
        "provenance": PROVENANCE,
        "provenance_sha256": features_digest(PROVENANCE),
    }
    return replace(FROZEN_CARD, **fields | changed)


def other_arrays_of(probe):
    """Make the arrays that a file has besides the model's own: of calibration, reach and training films."""
    n_features = probe.n_features_in_
    return {
        "calibration_draws": np.array([[1.0, 0.5], [1.1, 0.4]]),
        "reach_mean": np.zeros(n_features),
        "reach_scale": np.ones(n_features),
        "reach_distances": np.linspace(0.5, 2, N_LEVELS),
        "trained_rows": np.arange(96, dtype=np.uint8).reshape(6, 1, 16),
        "trained_row_films": np.arange(6) % len(FROZEN_CARD.movies),
    }


def model_file_of(probe, **changed):
    """Return the bytes of a probe's model file; `changed` are fields of its card."""
    return pack(card_of_probe(probe, **changed), to_state(probe).arrays, other_arrays_of(probe))


PROBE, X = fitted_probe_and_rows()
MODEL_FILE = model_file_of(PROBE)


def members_of(archive=MODEL_FILE):
    """Return the content of each member of a zip archive by its name."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def zip_archive_of(members, compression=zipfile.ZIP_STORED):
    """Write a zip archive of members: a dictionary, or pairs of a name and its content."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of duplicate names, which are the point
        for name, data in members.items() if isinstance(members, dict) else members:
            member = zipfile.ZipInfo(name)
            member.compress_type = compression
            member.create_system = 3
            member.external_attr = 0o644 << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def model_file_with_card(**changes):
    """Return the bytes of a model file with these fields in its card; None takes a field out."""
    fields = json.loads(members_of()[CARD]) | changes
    card = {name: value for name, value in fields.items() if value is not None}
    return model_file_with({CARD: json.dumps(card).encode()})


def model_file_with(members):
    """Return the bytes of a model file in which these members are added or replaced."""
    return zip_archive_of(members_of() | members)


def read_and_construct_bytes(tmp_path, data):
    """Write bytes to `some.model` and read this file as `read_and_construct` does."""
    path = tmp_path / "some.model"
    path.write_bytes(data)
    return read_and_construct(path)


def read_and_construct(path):
    """Read a model file, make its estimator (which checks the arrays), and return the file."""
    model = read_model(path)
    construct(model)
    return model
