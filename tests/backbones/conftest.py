"""Tiny checkpoints in the real file formats, written once."""

import shutil

import numpy as np
import pytest

from tests.lazy_import import lazy_import
from tests.tiny_checkpoints import tiny_checkpoint

constants = lazy_import("huggingface_hub", "constants")


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory):
    """Tiny checkpoints: name of a backbone -> path, as `load_backbone(name, weights=path)` takes it."""
    folder = tmp_path_factory.mktemp("checkpoints")
    names = ("xclip", "vivit", "clip", "siglip", "xclip-lsmdc")
    return {name: tiny_checkpoint(name, folder / name) for name in names}


@pytest.fixture(scope="session")
def folder_of_tiny_checkpoint(tmp_path_factory):
    """Tiny checkpoints of every type of CONFIGS in test_encoders.py: type -> folder."""
    from tests.backbones.test_encoders import save_encoders

    return save_encoders(tmp_path_factory)


@pytest.fixture(scope="session")
def two_clips_of_32_frames():
    """Two clips of 32 frames, uint8 [2, 32, 224, 224, 3]."""
    return np.random.default_rng(0).integers(0, 256, (2, 32, 224, 224, 3), dtype=np.uint8)


@pytest.fixture
def save_as_hub_snapshot(tmp_path, monkeypatch):
    """Copy a folder into Hugging Face's cache as lab/net at a branch or tag; downloads are off."""
    commit = "0123456789abcdef0123456789abcdef01234567"

    def save(folder, ref="main"):
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        repository = tmp_path / "models--lab--net"
        snapshot = shutil.copytree(folder, repository / "snapshots" / commit)
        (repository / "refs").mkdir()
        (repository / "refs" / ref).write_text(commit)
        return snapshot

    return save
