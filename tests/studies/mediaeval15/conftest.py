"""The oracle, and a small task with planted truths."""

import functools
import json

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from tests.files import rows_of

CLASSES = {"valence": ("negative", "neutral", "positive"), "arousal": ("calm", "neutral", "active")}


@pytest.fixture(scope="session")
def oracle(shared_data):
    """Inputs with expected values."""
    return json.loads((shared_data / "audits" / "oracle.json").read_text("utf-8"))["mediaeval"]


@pytest.fixture(scope="session")
def synthetic(shared_data):
    """The folder of 600 synthetic clips, and its two tables as rows."""
    folder = shared_data / "audits" / "mediaeval_synth"
    return folder, *(rows_of(folder / f"{name}.csv") for name in ("truth", "run"))


@pytest.fixture(scope="session")
def make_task(tmp_path_factory):
    """Make a manifest and a store: 12 movies of 20 clips, half dev and half test.

    Violent clips (a quarter) lie `distance` deviations away along the first feature; the classes of valence
    and arousal along the second and third.
    """

    @functools.cache
    def make(distance=20.0, *, leak=False, failed=None, **provenance):
        rng = np.random.default_rng(0)
        n = 240
        labels = {axis: rng.integers(0, 3, n) for axis in CLASSES}
        violence = np.arange(n) % 4 == 0
        X = rng.normal(size=(n, 6))
        X[:, 0] += distance * violence
        for column, axis in enumerate(CLASSES, start=1):
            X[:, column] += distance * labels[axis]
        clips = []
        for row in range(n):
            movie = row // 20
            split = "dev" if movie < 6 else "test"
            if leak and row == 0:
                split = "test"
            extras = {"split": split, **{axis: CLASSES[axis][labels[axis][row]] for axis in CLASSES}}
            extras["violence"] = str(int(violence[row]))
            level = "violent" if violence[row] else "nonviolent"
            clips.append(Clip(f"ACCEDE{row:05}.mp4", f"film{movie:02}", level=level, extras=extras))
        folder = tmp_path_factory.mktemp("task")
        movies = {clip.clip_id: clip.movie for clip in clips}
        path = seal_arrays(
            folder / "films",
            movies,
            {"descriptors": {"pooled": X.astype(np.float32)}},
            failed={failed: "the file is empty (0 bytes)"} if failed else None,
            **provenance,
        )
        return open_store(path), Manifest(tuple(clips), folder, builtin_codebook("mediaeval15"))

    return make
