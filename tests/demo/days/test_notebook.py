"""A day in a notebook: cell after cell in one process, with the libraries that people have there."""

import json

import pytest

from tests.files import written
from tests.store.serving import serving

pytestmark = [pytest.mark.long, pytest.mark.nightly]

CELLS = """
import pickle
from pathlib import Path

import joblib
import numpy as np
import obygaze_features as of
import obygaze_models as om
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline

# A store at its address, as a table.
manifest = of.read_manifest("manifest.csv")
store = of.open_store(ADDRESS)
frame = store["descriptors"].to_frame(manifest)
task = frame[frame["level"].isin(["HN", "S"])]

# A pipeline of one's own, tested on films left out.
model = make_pipeline(om.ClippedScaler(), LogisticRegression())
scores = cross_val_score(
    model, task.loc[:, "f0":], task["level"] == "S", groups=task["movie"], cv=LeaveOneGroupOut()
)
assert len(scores) == task["movie"].nunique() == 6

# The same model, with baselines and intervals beside it; kept, and read back.
data = om.load_dataset(store, manifest)
run = om.evaluate(data, {"mine": model}, task="hn_s", test="enhn_s")
assert {"mine", "movie_prior"} <= set(run.predictions.table["model"])
om.save_models(run, data, ["mine"], "kept", models={"mine": model})
kept = om.load_model(next(Path("kept").glob("*.model")))
predictions = om.predict(kept, of.open_store(ADDRESS))
assert len(predictions.table) == 166

# Elsewhere: another process, xarray, joblib.
again = pickle.loads(pickle.dumps(store))
assert np.array_equal(again["descriptors"].pooled(), store["descriptors"].pooled(), equal_nan=True)
sums = joblib.Parallel(n_jobs=2)(
    joblib.delayed(lambda group, clip: float(group.read(clip, "pooled").sum()))(store["descriptors"], clip)
    for clip in task["clip_id"][:4]
)
assert np.isfinite(sums).all()
assert store["descriptors"].to_xarray().sizes["clip"] == 168

# Mistakes are told in one line, as errors of one kind.
for mistake in (
    lambda: om.evaluate(frame, {"mine": model}),
    lambda: om.load_dataset("nowhere", manifest),
    lambda: of.open_store("nowhere"),
    lambda: store["xclip"],
    lambda: om.predict(kept, frame),
):
    try:
        mistake()
    except of.ObygazeError as error:
        assert "\\n" not in str(error).strip(), error
    else:
        raise AssertionError("nothing was refused")
print("all cells ran")
"""


def test_a_day_in_a_notebook_goes_from_the_address_of_a_store_to_a_saved_model(person, demo_folder):
    """`CELLS` are the cells of a notebook, which a person runs one after the other in one process.

    Each asserts what it got: a table of a store at an address; scores of a pipeline of scikit-learn on films
    left out; the same model beside baselines, saved, loaded and applied; the store in another process, in
    joblib and in xarray; and five mistakes, such as a store that is nowhere, each of which is an
    `ObygazeError` of one line. The last cell prints "all cells ran".
    """
    manifest = (demo_folder / "manifest.csv").read_text(encoding="utf-8")
    written(person.folder / "manifest.csv", manifest)
    with serving(demo_folder) as server:
        address_of_store = json.dumps(f"{server.url}/store-1.0.0")
        written(person.folder / "day.py", f"ADDRESS = {address_of_store}\n{CELLS}")
        printed = person.types("python day.py")

    assert "all cells ran" in printed


LOADER = """
import obygaze_features as of
import torch
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __init__(self, store):
        self.group = store["descriptors"]
        self.clips = self.group.clip_ids[:8]

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, number):
        return torch.from_numpy(self.group.read(self.clips[number], "pooled"))


if __name__ == "__main__":
    clips = Clips(of.open_store("store-1.0.0"))
    for method in ("spawn", "forkserver"):
        batches = list(DataLoader(clips, batch_size=4, num_workers=2, multiprocessing_context=method))
        assert [tuple(batch.shape) for batch in batches] == [(4, 103), (4, 103)]
    print("loaded")
"""


def test_a_data_loader_of_pytorch_reads_a_store_in_worker_processes(person, demo_folder):
    """A store that is open must work in the processes that PyTorch's DataLoader starts, in either way.

    The script `LOADER` gives a Dataset of the demo's store to a DataLoader with two workers, which are
    started by "spawn" and then by "forkserver". Each time it asserts that eight clips of 103 features come in
    two batches of four. In the end it prints "loaded".
    """
    (person.folder / "store-1.0.0").symlink_to(demo_folder / "store-1.0.0")
    written(person.folder / "loader.py", LOADER)

    printed = person.types("python loader.py")

    assert "loaded" in printed
