"""Time the zoo against plain ways to the same models; ratios of one run are what means something elsewhere.

Run by hand: ``python benchmarks/zoo.py OBYGAZE12``, the folder of the released annotations. Without it the
parts on Table 2 and `obygaze paper` are left out, for their folds are the released ones.
"""

import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import VISUAL_CONCEPTS, Manifest, import_obygaze12, write_manifest
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.concepts import crossfit_svm
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.experiments.evaluate import evaluate
from obygaze_models.probes import MLPProbe, fit_many
from obygaze_models.protocol import TASKS
from obygaze_models.protocol.paper import Fold, classifier_folds

N_CLIPS, N_FEATURES, N_MOVIES, EPOCHS = 1000, 512, 12, 10


def clips() -> Dataset:
    """Draw clips with a planted direction; a fifth of them are S."""
    rng = np.random.default_rng(0)
    movie_of = np.sort(rng.integers(0, N_MOVIES, N_CLIPS))
    levels = rng.choice(["EN", "HN", "S"], N_CLIPS, p=[0.62, 0.19, 0.19])
    y = (levels == "S").astype(np.int64)
    direction = rng.normal(size=N_FEATURES)
    X = rng.normal(size=(N_CLIPS, N_FEATURES)) + 4 * y[:, None] * direction / np.linalg.norm(direction)
    X += rng.normal(size=(N_MOVIES, N_FEATURES))[movie_of]
    names = np.array([f"c{place:04}" for place in range(N_CLIPS)])
    movies = np.array([f"m{movie:02}" for movie in movie_of])
    data = X.astype(np.float32)
    return Dataset(
        data, y, names, movies, levels, "planted", "pooled", "as stored", "f" * 64, N_CLIPS, 0, 0, (), 0, 0
    )


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


def best_of(repeats: int, work: Callable[[], object]) -> float:
    """Give the shortest of several times in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def planted_features(manifest: Manifest) -> NDArray[np.float32]:
    """Draw features [N, 16, D] of a manifest's clips that know of levels, concepts and films."""
    rng = np.random.default_rng(0)
    movies = np.unique([clip.movie for clip in manifest], return_inverse=True)[1]
    marks = np.array(
        [
            [clip.level == level for level in ("EN", "HN", "S")]
            + [concept in clip.concepts for concept in VISUAL_CONCEPTS]
            for clip in manifest
        ]
    )
    X = 0.1 * marks @ rng.normal(size=(marks.shape[1], N_FEATURES))
    X += 0.3 * rng.normal(size=(movies.max() + 1, N_FEATURES))[movies] + rng.normal(size=X.shape)
    # About as long as embeddings are; the paper's perceptron takes them as they are.
    X /= 6
    return (X[:, None] + 0.02 * rng.normal(size=(len(X), 16, N_FEATURES))).astype(np.float32)


class ClipFiles(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
    """One file a clip, loaded whenever it is asked for."""

    def __init__(self, folder: Path, clip_ids: Sequence[str], label_of: dict[str, int]) -> None:
        self.folder, self.clip_ids, self.label_of = folder, clip_ids, label_of

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.clip_ids)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        """Load a clip's frames [16, D] and give their maximum over time."""
        name = self.clip_ids[row]
        frames = torch.load(self.folder / f"{name}.pth", weights_only=True)
        return torch.nn.functional.adaptive_max_pool1d(frames.T, 1)[:, 0], self.label_of[name]


def train_from_files(folder: Path, fold: Fold, label_of: dict[str, int], epochs: int) -> None:
    """Train the paper's perceptron for a number of epochs, as a plain loop over a DataLoader."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2), torch.nn.Softmax(dim=1)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    train = torch.utils.data.DataLoader(ClipFiles(folder, fold.train, label_of), 16, shuffle=True)
    validation = torch.utils.data.DataLoader(ClipFiles(folder, fold.validation, label_of), 16)
    for _ in range(epochs):
        for X, y in train:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(X), y).backward()
            optimiser.step()
        with torch.no_grad():
            for X, y in validation:
                torch.nn.functional.cross_entropy(model(X), y)


def table2_trainings(manifest: Manifest, X: NDArray[np.float32], folder: Path) -> None:
    """Train Table 2's two perceptrons on eight folds each: both ways the same epochs, reading included."""
    clip_ids = [clip.clip_id for clip in manifest]
    label_of = {clip.clip_id: int(clip.level == "S") for clip in manifest}
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "frames", movie_of, {"planted": {"pooled": X.max(axis=1)}})
    files = folder / "files"
    files.mkdir()
    for name, frames in zip(clip_ids, X, strict=True):
        torch.save(torch.from_numpy(frames.copy()), files / f"{name}.pth")
    folds = [
        fold for name in ("en_s", "hn_s") for fold in classifier_folds(manifest, TASKS[name], TASKS[name])
    ]
    probes: list[MLPProbe] = []

    def ours() -> None:
        probes[:] = [MLPProbe(variant="paper", random_state=number) for number in range(len(folds))]
        data = load_dataset(open_store(store), manifest, TASKS["enhn_s"])
        row = {name: place for place, name in enumerate(data.clip_ids.tolist())}
        sides = [
            [np.array([row[name] for name in getattr(fold, side)]) for fold in folds]
            for side in ("train", "validation")
        ]
        fit_many(probes, data.X, data.y, sides[0], validation=sides[1])

    spent = cpu_of(ours)
    epochs = [len(probe.curves_[0].train_loss) for probe in probes]
    # The plain loop's time goes with its visits to clips: a few epochs of four folds tell it.
    measured, n = (0, 1, 8, 9), 5
    sizes = [len(fold.train) + len(fold.validation) for fold in folds]
    plain = cpu_of(lambda: [train_from_files(files, folds[number], label_of, n) for number in measured])
    visits = sum(count * size for count, size in zip(epochs, sizes, strict=True))
    plain *= visits / (n * sum(sizes[number] for number in measured))
    print(
        f"Table 2, 16 trainings, {sum(epochs)} epochs, {visits} visits to clips: {spent:.2f} s of CPU; ",
        end="",
    )
    print(
        f"DataLoader and torch.load {plain:.0f} s (from {n} epochs of 4): {plain / spent:.0f} times as fast"
    )


def svms(manifest: Manifest, X: NDArray[np.float32]) -> None:
    """Fit SVM CAVs, 8 concepts x 7 C x 12 films left out, against SVC(probability=True) one by one."""
    rows = np.flatnonzero([clip.level in {"EN", "HN", "S"} for clip in manifest])
    pooled = X.max(axis=1)[rows]
    clips = [manifest.clips[row] for row in rows]
    present = np.array([[concept in clip.concepts for concept in VISUAL_CONCEPTS] for clip in clips]).astype(
        float
    )
    folds = np.unique([clip.movie for clip in clips], return_inverse=True)[1]
    grid = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
    ours = cpu_of(lambda: crossfit_svm(pooled, present, folds, grid))

    def plain() -> None:
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore", FutureWarning)
            for concept in range(0, len(VISUAL_CONCEPTS), 3):
                for C in (grid[0], grid[3], grid[6]):
                    kept = folds != 0
                    machine = SVC(
                        kernel="linear", C=C, class_weight="balanced", probability=True, random_state=0
                    )
                    machine.fit(pooled[kept], present[kept, concept])
                    machine.predict_proba(pooled[~kept])

    one = cpu_of(plain) / 9
    every = len(VISUAL_CONCEPTS) * len(grid) * (int(folds.max()) + 1)
    print(
        f"{every} SVM CAVs on {len(rows)} clips: {ours:.1f} s of CPU; SVC(probability=True) "
        f"{one * every:.0f} s ",
        end="",
    )
    print(f"(from 9 of {every}): {one * every / ours:.0f} times as fast")


PAPER = """
import resource, sys, time
from obygaze_models.commands.published import paper
start = time.perf_counter()
paper.main(sys.argv[1:], standalone_mode=False)
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"{time.perf_counter() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU, ", end="")
# Linux gives a child its parent's ru_maxrss; this one is the process's own.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"peak memory {int(peak.split()[1]) / 1024:.0f} MiB")
"""


def whole_paper(manifest: Manifest, X: NDArray[np.float32], folder: Path) -> None:
    """Redo the paper under both protocols in a process of its own."""
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "whole", movie_of, {"planted": {"pooled": X.max(axis=1)}})
    write_manifest(manifest, folder / "obygaze12.csv")
    command = [sys.executable, "-c", PAPER, str(store), "--manifest", str(folder / "obygaze12.csv")]
    done = subprocess.run(
        [*command, "--out", str(folder / "paper")], capture_output=True, text=True, check=True
    )
    print(
        f"obygaze paper, both protocols, {len(manifest)} clips x {N_FEATURES}: {done.stdout.splitlines()[-1]}"
    )


def cpu_of(work: Callable[[], object]) -> float:
    """Give the CPU seconds of all threads, which a busy machine distorts little."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print the figures."""
    torch.set_num_threads(1)
    data = clips()
    ours = best_of(3, lambda: MLPProbe(max_epochs=EPOCHS).fit(data.X, data.y))
    theirs = best_of(3, lambda: train_with_torch(data.X, data.y))
    steps = EPOCHS * -(-N_CLIPS // 16)
    print(f"one training, {steps} steps of 16 x {N_FEATURES}: {1e6 * ours / steps:.0f} us a step, ", end="")
    print(f"PyTorch {1e6 * theirs / steps:.0f} us: {theirs / ours:.1f} times as fast")
    whole = best_of(1, lambda: evaluate(data, TASKS["enhn_s"], TASKS["enhn_s"]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"evaluate, {N_CLIPS} clips x {N_FEATURES} x {N_MOVIES} movies, 60 trainings: {whole:.1f} s")
    print(f"peak memory with PyTorch loaded: {peak:.0f} MiB")
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            manifest = import_obygaze12(Path(sys.argv[1]), folder / "obygaze12.csv").manifest
            X = planted_features(manifest)
            table2_trainings(manifest, X, folder)
            svms(manifest, X)
            whole_paper(manifest, X, folder)


if __name__ == "__main__":
    main()
