"""The oracle's network, a tiny CLIP, and a small corpus that is decoded once."""

import pytest

from tests.lazy_import import lazy_import

from .corpus import tiny_clip, write_corpus
from .three_steps import Oracle

torch = lazy_import("torch")
LsmdcSettings = lazy_import("obygaze_studies.lsmdc.plan", "LsmdcSettings")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """One thread: sums in one order, and no core taken from the other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def oracle(shared_data):
    return Oracle(shared_data / "oracles" / "lsmdc_training")


@pytest.fixture(scope="session")
def clip(tmp_path_factory):
    """A tiny CLIP in the hub's format."""
    return tiny_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """12 training, 4 validation and 4 test clips; the cache fills with the first test that trains."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def settings(clip, corpus, tmp_path):
    """Give the settings of a small training: 3 steps an epoch, 2 epochs."""

    def make(**changed):
        fields = {
            "clip": str(clip),
            "annotations": corpus / "annotations",
            "videos": corpus / "videos",
            "out": tmp_path / "run",
            "cache": corpus / "cache",
            "batch": 4,
            "epochs": 2,
            "lr": 3e-4,
            "clip_lr_scale": 1.0,
            "workers": 1,
            "device": "cpu",
        }
        return LsmdcSettings(**(fields | changed))

    return make
