"""Bring a model of tokens on torch: a small transformer over the largest tokens of each clip.

Run it with: python examples/token_transformer.py
The command line takes the same model as --model token_transformer:make --reduce top:6.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays

N_MOVIES, N_CLIPS, STEPS, PATCHES, WIDTH = 4, 40, 4, 9, 12


class Network(nn.Module):
    """One block of attention between the tokens of a clip, and their mean."""

    def __init__(self, width: int, hidden: int = 16) -> None:
        super().__init__()
        self.into = nn.Linear(width, hidden)
        self.block = nn.TransformerEncoderLayer(hidden, 2, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Compute the logit [B] of clips' tokens [B, T, D]."""
        mixed: torch.Tensor = self.out(self.block(self.into(tokens)).mean(dim=1))
        return mixed.squeeze(1)


class TokenTransformer(ClassifierMixin, BaseEstimator):
    """The network as an estimator: what the zoo asks for is `fit` and `decision_function`."""

    def __init__(self, epochs: int = 30, random_state: int = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> "TokenTransformer":
        """Train on tokens X [N, T, D] and labels y [N]."""
        torch.manual_seed(self.random_state)
        self.classes_ = np.unique(y)
        self.mean_, self.scale_ = X.mean(axis=(0, 1)), X.std(axis=(0, 1)) + 1e-6
        self.network_ = Network(X.shape[2])
        tokens, labels = self._tensor(X), torch.from_numpy((y == self.classes_[1]).astype(np.float32))
        optimiser = torch.optim.AdamW(self.network_.parameters(), lr=3e-3, weight_decay=1e-2)
        for _ in range(self.epochs):
            optimiser.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(self.network_(tokens), labels)
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            optimiser.step()
        return self

    def decision_function(self, X: Any) -> Any:
        """Compute the logit [N] of each clip."""
        with torch.no_grad():
            return self.network_(self._tensor(X)).numpy()

    def _tensor(self, X: Any) -> torch.Tensor:
        return torch.from_numpy(((X - self.mean_) / self.scale_).astype(np.float32))


def make() -> om.ModelSpec:
    """Describe the model: it reads tokens; its threshold is tuned on inner folds of movies."""
    return om.ModelSpec(
        "token_transformer",
        "transformer on tokens",
        lambda seed: TokenTransformer(random_state=seed),
        reads="tokens",
    )


def write_films(folder: Path) -> tuple[of.Manifest, of.Store]:
    """Write films in whose positive clips one patch of one moment is large, which the mean hides."""
    rng = np.random.default_rng(0)
    clips, tokens = [], []
    for number in range(N_MOVIES * N_CLIPS):
        movie, there = f"film{number // N_CLIPS}", rng.random() < 0.5
        clips.append(of.Clip(f"{movie}-{number % N_CLIPS:02}", movie, level="S" if there else "HN"))
        own = rng.normal(size=(1 + STEPS * PATCHES, WIDTH))
        own[1 + rng.integers(STEPS * PATCHES), 0 if there else 1] += 8
        tokens.append(own.astype(np.float16))
    arrays = {"tokens": np.stack(tokens), "frames": np.zeros((len(clips), STEPS, WIDTH), np.float32)}
    store = seal_arrays(
        folder / "films", {clip.clip_id: clip.movie for clip in clips}, {"toy": arrays}, n_frames=STEPS
    )
    return of.Manifest(tuple(clips), folder), of.open_store(store)


def main(folder: Path) -> None:
    """Reduce the tokens beside the store, and evaluate the transformer on them."""
    torch.set_num_threads(1)
    manifest, store = write_films(folder)
    data = om.load_dataset(store, manifest, features="frames", reduce="top:6")
    print("a clip's tokens:", data.read("tokens").shape[1:])
    run = om.evaluate(data, [make()], task="hn_s")
    print(run.metrics.query("metric == 'average_precision'")[["model", "pooled", "pooled_chance"]])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
