"""Tiny checkpoints in the real file formats, written once."""

import numpy as np
import pytest

from tests.tiny_checkpoints import tiny_checkpoint


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Name -> what `weights` takes."""
    folder = tmp_path_factory.mktemp("checkpoints")
    names = ("xclip", "vivit", "clip", "siglip", "xclip-lsmdc")
    return {name: tiny_checkpoint(name, folder / name) for name in names}


@pytest.fixture(scope="session")
def clips():
    """Two clips of 32 frames, uint8 [2, 32, 224, 224, 3]."""
    return np.random.default_rng(0).integers(0, 256, (2, 32, 224, 224, 3), dtype=np.uint8)
