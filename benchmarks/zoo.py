"""Time the zoo against plain ways to the same models; ratios of one run are what means something elsewhere.

    python benchmarks/zoo.py [--annotations FOLDER]

The folder is that of the released annotations; without it Table 2 and `obygaze paper all` are left out, for
their folds are the released ones. CPU seconds of all threads, which a busy machine distorts little.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from measure import Took, arguments, in_turn, obygaze, show, timed
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import Manifest, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.dataset import load_dataset
from obygaze_models.models import MLPProbe, RidgeLogistic, fit_many
from obygaze_models.models.linear import PENALTIES
from obygaze_models.protocol import Fold
from obygaze_studies.obygaze12 import import_obygaze12
from obygaze_studies.obygaze12.corpus import TASKS, VISUAL_CONCEPTS
from obygaze_studies.obygaze12.paper_folds import classifier_folds

N_CLIPS, N_FEATURES, EPOCHS = 1000, 512, 10

ROWS = {"ViViT-B/16": (1, 3137, 768), "X-CLIP": (1, 512)}
"""Table 2's two perceptrons, and the float32 array that the published extraction left of a clip: all of
ViViT's tokens, and the vector that X-CLIP's `get_video_features` gave. Its reader takes the maximum over
tokens of an array of more than two axes, and else the one row there is."""

N_FILES = 300
"""Files written at most; clips beyond share them. All of ViViT's would be 18 GB."""


def clips() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw features and labels with a planted direction; a fifth of the clips is positive."""
    rng = np.random.default_rng(0)
    y = (rng.random(N_CLIPS) < 0.19).astype(np.int64)
    direction = rng.normal(size=N_FEATURES)
    X = rng.normal(size=(N_CLIPS, N_FEATURES)) + 4 * y[:, None] * direction / np.linalg.norm(direction)
    return X.astype(np.float32), y


def train_with_torch(X: NDArray[np.float32], y: NDArray[np.int64]) -> None:
    """Train the probe's model as a plain loop over tensors that are in memory already."""
    torch.manual_seed(0)
    features, targets = torch.from_numpy((X - X.mean(0)) / X.std(0)), torch.from_numpy(y).float()
    model = torch.nn.Sequential(torch.nn.Linear(N_FEATURES, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(16):
            optimiser.zero_grad()
            scores = model(features[rows])[:, 0]
            torch.nn.functional.binary_cross_entropy_with_logits(scores, targets[rows]).backward()
            optimiser.step()


def planted_features(manifest: Manifest, n_features: int = N_FEATURES) -> NDArray[np.float32]:
    """Draw features [N, D] of a manifest's clips that know of levels, concepts and films."""
    rng = np.random.default_rng(0)
    movies = np.unique([clip.movie for clip in manifest], return_inverse=True)[1]
    marks = np.array(
        [
            [clip.level == level for level in ("EN", "HN", "S")]
            + [concept in clip.concepts for concept in VISUAL_CONCEPTS]
            for clip in manifest
        ]
    )
    X = 0.1 * marks @ rng.normal(size=(marks.shape[1], n_features))
    X += 0.3 * rng.normal(size=(movies.max() + 1, n_features))[movies] + rng.normal(size=X.shape)
    # About as long as embeddings are; the paper's perceptron takes them as they are.
    return (X / 6).astype(np.float32)


class ClipFiles(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """One file a clip, loaded whenever it is asked for."""

    def __init__(self, file_of: dict[str, Path], clip_ids: Sequence[str], label_of: dict[str, int]) -> None:
        self.file_of, self.clip_ids, self.label_of = file_of, clip_ids, label_of

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.clip_ids)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        """Load a clip's array and give one vector of it."""
        name = self.clip_ids[row]
        found = torch.load(self.file_of[name], weights_only=True)
        if found.ndim > 2:
            found = torch.nn.functional.adaptive_max_pool2d(found, (1, found.shape[-1]))[0]
        return found[0], self.label_of[name]


def train_from_files(
    file_of: dict[str, Path], n_features: int, fold: Fold, label_of: dict[str, int], epochs: int
) -> None:
    """Train the paper's perceptron for a number of epochs, as a plain loop over a DataLoader."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(n_features, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2), torch.nn.Softmax(dim=1)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    train = torch.utils.data.DataLoader(ClipFiles(file_of, fold.train, label_of), 16, shuffle=True)
    validation = torch.utils.data.DataLoader(ClipFiles(file_of, fold.validation, label_of), 16)
    for _ in range(epochs):
        for X, y in train:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(X), y).backward()
            optimiser.step()
        with torch.no_grad():
            for X, y in validation:
                torch.nn.functional.cross_entropy(model(X), y)


def table2_row(manifest: Manifest, folder: Path, row: str, shape: tuple[int, ...]) -> tuple[Took, Took]:
    """Measure one row's eight trainings, HN vs S, both ways the same epochs, with reading."""
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    label_of = {clip.clip_id: int(clip.level == "S") for clip in manifest}
    folds = classifier_folds(manifest, TASKS["hn_s"], TASKS["enhn_s"])
    sizes = [len(fold.train) + len(fold.validation) for fold in folds]
    X = planted_features(manifest, shape[-1])
    store = seal_arrays(folder / f"table2-{shape[-1]}", movie_of, {"planted": {"pooled": X}})
    probes = [MLPProbe(variant="paper", random_state=number) for number in range(len(folds))]
    ours = timed(lambda: train_from_store(store, manifest, folds, probes))
    epochs = [len(probe.curve_.train_loss) for probe in probes]
    visits = sum(count * size for count, size in zip(epochs, sizes, strict=True))
    # The plain loop's time goes with its visits to clips: an epoch of one fold, or five of two, tell it.
    measured, n = ((0,), 1) if len(shape) > 2 else ((0, 4), 5)
    files = folder / "files"
    files.mkdir()
    names = list(dict.fromkeys(name for fold in folds for name in fold.train + fold.validation))
    file_of = {name: files / f"{place % N_FILES}.pth" for place, name in enumerate(names)}
    for place in range(min(N_FILES, len(names))):
        torch.save(torch.from_numpy(np.broadcast_to(X[place], shape).copy()), files / f"{place}.pth")
    part = timed(lambda: [train_from_files(file_of, shape[-1], folds[k], label_of, n) for k in measured])
    shutil.rmtree(files)
    seen = n * sum(sizes[k] for k in measured)
    plain = Took(part.cpu_s * visits / seen, part.wall_s * visits / seen)
    what = f"Table 2, {row}, 8 trainings, {sum(epochs)} epochs, {visits} visits to clips ({seen} measured)"
    print_ratio(what, ours, plain)
    return ours, plain


def train_from_store(store: Path, manifest: Manifest, folds: Sequence[Fold], probes: list[MLPProbe]) -> None:
    """Read a sealed store and train a probe for each fold."""
    data = load_dataset(open_store(store), manifest)
    place = {name: row for row, name in enumerate(data.clip_ids.tolist())}
    train, validation = (
        [np.array([place[name] for name in getattr(fold, side)]) for fold in folds]
        for side in ("train", "validation")
    )
    fit_many(probes, data.X, TASKS["enhn_s"].labels(data.levels), train, validation=validation)


def penalties(n_clips: int, decay: float) -> dict[str, object]:
    """Fit the linear probe's penalties, together and by scikit-learn's solver that suits them best.

    The features' principal deviations fall as rank ** -decay.
    """
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(N_FEATURES, N_FEATURES)))[0]
    X = (rng.normal(size=(n_clips, N_FEATURES)) * np.arange(1.0, N_FEATURES + 1) ** -decay) @ turn
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (rng.random(n_clips) < expit(X @ rng.normal(size=N_FEATURES) / 20)).astype(np.int64)
    models = [RidgeLogistic(C) for C in PENALTIES.values]
    how = {"solver": "newton-cholesky", "tol": 1e-6, "max_iter": 10_000}
    others = [LogisticRegression(C=C, **how) for C in PENALTIES.values]
    found = in_turn(
        {
            "ours": lambda: RidgeLogistic.fit_together(models, X, y),
            "scikit-learn": lambda: [other.fit(X, y) for other in others],
        },
        3,
        least=True,
    )
    losses = np.array([[_loss(model, X, y) for model in some] for some in (models, others)])
    above = (losses / losses.min(axis=0) - 1).max(axis=1)
    ours, theirs = found["ours"].cpu_s, found["scikit-learn"].cpu_s
    return {
        "clips": n_clips,
        "power": -decay,
        "ours, CPU s": ours,
        "scikit-learn, CPU s": theirs,
        "ratio": theirs / ours,
        "our loss above": f"{above[0]:.0e}",
        "theirs": f"{above[1]:.0e}",
    }


def _loss(model: RidgeLogistic | LogisticRegression, X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    misfit = np.logaddexp(0, (1 - 2 * y) * model.decision_function(X)).sum()
    return float(model.C * misfit + (model.coef_**2).sum() / 2)


def whole_paper(manifest: Manifest, X: NDArray[np.float32], folder: Path) -> None:
    """Redo the paper under both protocols."""
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "whole", movie_of, {"planted": {"pooled": X}})
    words = ["paper", "all", folder / "obygaze12.csv", store, "--out", folder / "paper"]
    took = obygaze(*words)
    print(f"obygaze paper all, both protocols: {took.cpu_s:.0f} s of CPU, {took.wall_s:.0f} s wall")


def steps() -> None:
    """Train the probe, ours and as a plain loop over tensors that are in memory already."""
    X, y = clips()
    found = in_turn(
        {
            "ours": lambda: MLPProbe(max_epochs=EPOCHS).fit(X, y),
            "PyTorch": lambda: train_with_torch(X, y),
        },
        3,
        least=True,
    )
    n = EPOCHS * -(-N_CLIPS // 16)
    print_ratio(f"one training, {n} steps of 16 x {N_FEATURES}", found["ours"], found["PyTorch"])


def print_ratio(what: str, ours: Took, plain: Took) -> None:
    """Print CPU and wall seconds of both ways."""
    print(
        f"{what}: {ours.cpu_s:.2f} s of CPU, {ours.wall_s:.2f} s wall; the plain way {plain.cpu_s:.2f} s, "
        f"{plain.wall_s:.2f} s: {plain.cpu_s / ours.cpu_s:.1f} and {plain.wall_s / ours.wall_s:.1f} times",
        flush=True,
    )


def main() -> None:
    """Print the figures."""
    asked = arguments(__doc__, annotations=Path())
    torch.set_num_threads(1)
    with threadpool_limits(limits=1):
        steps()
        show(penalties(n_clips, decay) for n_clips in (1_200, 14_000) for decay in (0.0, 0.5, 1.0))
    if asked.annotations != Path():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            manifest = import_obygaze12(asked.annotations, folder / "obygaze12.csv").manifest
            rows = [table2_row(manifest, folder, row, shape) for row, shape in ROWS.items()]
            print_ratio(
                "Table 2, both rows", *(Took(*np.sum(way, axis=0)) for way in zip(*rows, strict=True))
            )
            X = planted_features(manifest)
            write_manifest(manifest, folder / "obygaze12.csv")
            whole_paper(manifest, X, folder)


if __name__ == "__main__":
    main()
