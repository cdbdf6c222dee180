"""What reading costs, of each door: files, bytes, memory; docs/large.md has the same numbers."""

import tracemalloc
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

import obygaze_models as om
from obygaze_features.manifest import Clip, Manifest
from obygaze_features.store import open_store
from obygaze_features.store.store import open_files
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

WIDTH = 512
N_CLIPS = 20_000
MB = 1_000_000


@dataclass(frozen=True)
class CountedFiles(FolderFiles):
    """A store in a folder that counts how often each of its files is read."""

    n_reads: Counter[str] = field(default_factory=Counter)

    def read(self, name, start=0, stop=None):
        self.n_reads[name] += 1
        return super().read(name, start, stop)

    def stream(self, name, start=0):
        self.n_reads[name] += 1
        return super().stream(name, start)


@contextmanager
def memory():
    """Give the most memory that the block takes, in MB."""
    found = SimpleNamespace(peak=0.0)
    tracemalloc.start()
    try:
        yield found
        found.peak = tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A store of 20,000 clips of 500 films, and a model of the first four films' clips."""
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    movie_of = {f"tt{place // 40:07d}-{place % 40:03d}": f"tt{place // 40:07d}" for place in range(N_CLIPS)}
    vectors = rng.standard_normal((N_CLIPS, WIDTH), np.float32)
    path = seal_arrays(folder / "films", movie_of, {"xclip": {"pooled": vectors}})
    few = dict(list(movie_of.items())[:160])
    known = open_store(seal_arrays(folder / "known", few, {"xclip": {"pooled": vectors[:160]}}))
    levels = rng.choice(["EN", "S"], 160)
    clips = [
        Clip(clip_id, movie, level=level) for (clip_id, movie), level in zip(few.items(), levels, strict=True)
    ]
    data = om.load_dataset(known, Manifest(tuple(clips), folder))
    run = om.evaluate(data, ["linear"], "en_s")
    file = om.save_models(run, data, ["linear"], folder / "models")["linear"]
    return SimpleNamespace(path=path, vectors=vectors, model=om.load_model(file))


def counted(path):
    """Open a store whose reads are counted."""
    return open_files(CountedFiles(path))


def test_predict_holds_a_block_and_its_table_and_reads_each_block_once(films):
    store = counted(films.path)
    with memory() as during:
        predicted = om.predict(films.model, store)
        predicted.write(films.path.parent / "predicted.csv")
    blocks = {name: n for name, n in store.files.n_reads.items() if "/pooled/c/" in name}
    assert during.peak < 30, "the vectors are 41 MB, in float64 82"
    assert (len(blocks), set(blocks.values())) == (20, {1})
    assert len(predicted.table) == N_CLIPS
    some = [0, 1023, 1024, N_CLIPS - 1]
    np.testing.assert_allclose(predicted.table["logit"].iloc[some], films.model.logits(films.vectors[some]))
    assert (films.path.parent / "predicted.csv").read_text("utf-8") == predicted.to_csv()
