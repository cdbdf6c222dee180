"""Use levels and concepts of your own, and any scikit-learn classifier.

Run it with: python examples/own_codebook_and_model.py
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.naive_bayes import GaussianNB

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import load_codebook
from obygaze_features.store.testing import seal_arrays

CODEBOOK = """
name = "violence"
version = "1"
[[levels]]
name = "calm"
[[levels]]
name = "unsure"
label = false          # in no task
[[levels]]
name = "violent"
[[concepts]]
name = "Gun"
visual = true
[tasks.violence]
negative = ["calm"]
positive = ["violent"]
"""


def write_corpus(folder: Path) -> tuple[of.Manifest, of.Store]:
    """Write 5 movies of 16 clips; feature 0 is larger where there is a gun."""
    (folder / "fights.codebook.toml").write_text(CODEBOOK, encoding="utf-8")
    codebook = load_codebook(folder / "fights.codebook.toml")
    rng = np.random.default_rng(0)
    clips, vectors = [], []
    for number in range(80):
        gun = rng.random() < 0.4
        level = "unsure" if number % 10 == 9 else "violent" if gun else "calm"
        movie = f"movie{number // 16}"
        clips.append(
            of.Clip(f"{movie}-{number % 16:02}", movie, level=level, concepts=("Gun",) if gun else ())
        )
        vectors.append(rng.normal(size=6) + 2 * gun * np.eye(6)[0])
    manifest = of.write_manifest(of.Manifest(tuple(clips), folder, codebook), folder / "fights.csv")
    arrays = {"pooled": np.stack(vectors).astype(np.float32)}
    store = seal_arrays(folder / "fights", {clip.clip_id: clip.movie for clip in clips}, {"toy": arrays})
    return manifest, of.open_store(store)


def main(folder: Path) -> None:
    """Evaluate two scikit-learn classifiers on the lab's own task, and one concept."""
    manifest, store = write_corpus(folder)
    data = om.load_dataset(store, manifest)

    # An estimator is enough: its threshold is tuned on inner folds of movies.
    models = {
        "bayes": GaussianNB(),
        "trees": ExtraTreesClassifier(n_estimators=20, min_samples_leaf=3, random_state=0),
    }
    run = om.evaluate(data, models, task="violence")
    print(run.metrics.query("metric == 'average_precision'")[["model", "pooled", "pooled_chance"]])

    # A concept is a target too.
    gun = om.evaluate(data, {"bayes": GaussianNB()}, task="concept:Gun")
    print(gun.metrics.query("metric == 'auc'")[["model", "pooled"]])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
