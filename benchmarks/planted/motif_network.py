"""MoTIF (Knab et al., arXiv 2509.20899) as a network of our own; see `motif`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.planted.in_time import N_CONCEPTS, N_FRAMES
from benchmarks.planted.row import Floats
from obygaze_models.protocol.targets import NOT_ASKED

EPOCHS = 100
BATCH = 32


class MoTIF(nn.Module):
    """Attention over time inside each concept; logits by frame [N, F] of scores [N, F, K]."""

    def __init__(self) -> None:
        super().__init__()
        # Query, key, value; then the two steps forward: a weight and a bias for each concept.
        self.weights = nn.Parameter(2 * torch.rand(5, N_CONCEPTS) - 1)
        self.biases = nn.Parameter(torch.zeros(5, N_CONCEPTS))
        self.scales = nn.Parameter(torch.zeros(N_CONCEPTS))
        self.shifts = nn.Parameter(torch.zeros(N_CONCEPTS))
        self.head = nn.Linear(N_CONCEPTS, 1)
        angles = torch.arange(N_FRAMES)[:, None] / 10_000 ** (torch.arange(N_CONCEPTS) // 2 * 2 / N_CONCEPTS)
        self.place = torch.where(torch.arange(N_CONCEPTS) % 2 == 0, angles.sin(), angles.cos())

    def forward(self, scores: torch.Tensor, is_there: torch.Tensor) -> torch.Tensor:
        """Compute the logit of each frame; frames that are not there [N, F] are not attended to."""
        x = scores + self.place
        query, key, value = (self.weights[i] * x + self.biases[i] for i in range(3))
        likeness = query[:, :, None] * key[:, None]
        weights = likeness.masked_fill(~is_there[:, None, :, None], -torch.inf).softmax(dim=2)
        x = x + (weights * value[:, None]).sum(dim=2)
        forward = nn.functional.gelu(self.weights[3] * x + self.biases[3])
        x = x + self.weights[4] * forward + self.biases[4]
        logits: torch.Tensor = self.head(nn.functional.softplus(self.scales) * x + self.shifts)[..., 0]
        return logits.masked_fill(~is_there, -torch.inf)


def motif(scores: Floats, y: Any, is_training: Any, seed: int) -> Callable[[Floats], Floats]:
    """Train it on scores [N, F, K] of some clips; gives what computes logits by frame, NaN where absent."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    mean = scores[is_training].mean(axis=(0, 1))
    scale = scores[is_training].std(axis=(0, 1))

    def ready(frames: Floats) -> tuple[torch.Tensor, torch.Tensor]:
        own = torch.tensor((frames - mean) / scale, dtype=torch.float32)
        return own.nan_to_num(), ~own.isnan().all(dim=2)

    own = np.flatnonzero(is_training & (y != NOT_ASKED))
    X, is_there = ready(scores[own])
    labels = torch.tensor(y[own], dtype=torch.float32)
    network = MoTIF()
    steps = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-2)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(own)).split(BATCH):
            logits = network(X[rows], is_there[rows]).logsumexp(dim=1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[rows])
            loss = loss + 1e-3 * network.head.weight.abs().sum()
            steps.zero_grad()
            loss.backward()
            steps.step()

    def logits(frames: Floats) -> Floats:
        with torch.no_grad():
            return network(*ready(frames)).double().numpy()

    return logits
