"""Time the zoo: the probe's training against the same model in PyTorch, and a whole evaluation.

Run by hand: ``python benchmarks/zoo.py``. Every figure is of this run, on one thread; only ratios mean
something elsewhere.
"""

import resource
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_models.dataset import Dataset
from obygaze_models.experiments.evaluate import evaluate
from obygaze_models.probes import MLPProbe
from obygaze_models.protocol import TASKS

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


if __name__ == "__main__":
    main()
