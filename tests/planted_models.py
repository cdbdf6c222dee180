"""Corpora of another codebook than ObyGaze12's, planted through concepts, and models trained on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from obygaze_features.manifest import Clip, Manifest, load_codebook
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.run import Run
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.saved_model import load_model, save_model
from tests.violence import with_concepts

CODEBOOK = with_concepts(("Gun", "Dim light"), others=("Shouting",))
D = 8
GUN = np.eye(D)[0]
LIGHT = np.eye(D)[1]
FILMS = ("f0", "f1", "f2", "f3", "f4", "f5")


def codebook(folder: Path):
    path = folder / "violence.codebook.toml"
    path.write_text(CODEBOOK, encoding="utf-8")
    return load_codebook(path)


class Corpus(NamedTuple):
    """A store of planted clips, and their manifest."""

    store: Store
    manifest: Manifest


def corpus(folder: Path, name: str, movies, *, seed=0, shift=0.0, per_film=30, **changed) -> Corpus:
    """Keep a store NAME-1.0.0 of clips of 4 s, in an order that is not that of time; the first clip failed.

    A gun moves feature 0 by 3, dim light feature 1 by 3; a clip is violent with the probability
    sigmoid(5 (gun - 1/2)), and every tenth is unsure. Every film is moved a little in a direction of its
    own. Feature 7 does not vary. `changed` are fields of the store's provenance.
    """
    rng = np.random.default_rng(seed)
    clips = []
    rows = []
    spans = {}
    for movie in movies:
        direction_of_film = 0.3 * rng.normal(size=D)
        for index in range(per_film):
            has_gun, has_dim_light = rng.random(2) < 0.45
            is_violent = rng.random() < 1 / (1 + np.exp(-5 * (has_gun - 0.5)))
            level = "violent" if is_violent else "calm"
            if index % 10 == 9:
                level = "unsure"
            concepts = []
            if has_gun:
                concepts.append("Gun")
            if has_dim_light:
                concepts.append("Dim light")
            clip_id = f"{movie}-{(7 * index) % per_film:02}"
            start = 4.0 * index
            spans[clip_id] = (start, start + 4)
            clips.append(Clip(clip_id, movie, f"{movie}.mp4", start, start + 4, level, tuple(concepts)))
            row = (
                rng.normal(size=D) + direction_of_film + 3 * has_gun * GUN + 3 * has_dim_light * LIGHT + shift
            )
            row[7] = 0.25
            rows.append(row.astype(np.float32))
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    failed = {clips[0].clip_id: "the file is empty (0 bytes)"}
    groups = {"descriptors": {"pooled": np.stack(rows)}}
    path = seal_arrays(folder / name, movie_of, groups, failed=failed, spans=spans, **changed)
    return Corpus(open_store(path), Manifest(tuple(clips), folder, codebook(folder)))


@dataclass(frozen=True)
class TrainedModels:
    """Models in files, and what they come from.

    Attributes
    ----------
    folder
        Holds the store `films`, its codebook, and the models in `models`.
    store, manifest, data
        The planted corpus of six films, f0 to f5.
    run
        Evaluation of the models of `calm_violent`.
    paths
        Name of a model -> its file; `bank` is the bank of concepts.
    """

    folder: Path
    store: Store
    manifest: Manifest
    data: Dataset
    run: Run
    paths: dict[str, Path]


MODELS = ("linear", "mlp", "pcbm_lr", "pcbm_dt")


def train_and_save_models(
    folder: Path, models: tuple[str, ...] = MODELS, *, concept: str = ""
) -> TrainedModels:
    """Evaluate models on the planted corpus and keep them, and a bank; and the CAV of a concept."""
    store, manifest = corpus(folder, "films", FILMS)
    data = load_dataset(store, manifest)
    origin = {"manifest_sha256": manifest.digest(), "label_policy": "raw"}
    run = evaluate(data, models, "calm_violent", origin=origin)
    paths = save_models(run, data, [*models, "bank"], folder / "models", licence="CC-BY-4.0", citation="us")
    if concept:
        result = evaluate(data, ["cav"], f"concept:{concept}", origin=origin)
        paths |= save_models(result, data, ["cav"], folder / "models")
    return TrainedModels(folder, store, manifest, data, run, paths)


def load_checking_round_trip(path, folder, **settings):
    """Load a model from a file; fail unless it is saved again as the same bytes."""
    model = load_model(path, **settings)
    save_model(model, folder / "again.model")
    assert (folder / "again.model").read_bytes() == path.read_bytes()
    return model
