"""A top-k sparse autoencoder as a plain loop in torch, to compare the cost with."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import normalize

from obygaze_models.concepts.dictionary_learning import N_TOKENS_OF_STEP


def plain_loop(tokens: NDArray[np.float32], n_steps: int, *, n_units: int, n_active: int) -> None:
    """Take some steps of Adam on batches of tokens [N, D], by automatic differentiation."""
    torch.set_num_threads(1)
    X = torch.from_numpy(tokens)
    width = tokens.shape[1]
    decoder = normalize(torch.randn(n_units, width)).requires_grad_()
    encoder = decoder.detach().clone().requires_grad_()
    bias = torch.zeros(n_units, requires_grad=True)
    steps = torch.optim.Adam([encoder, decoder, bias], lr=2e-3)
    for step in range(n_steps):
        batch = X.roll(step, 0)[:N_TOKENS_OF_STEP]
        active = batch @ encoder.T + bias
        values, places = active.topk(n_active, dim=1)
        codes = torch.zeros_like(active).scatter(1, places, values.relu())
        loss = ((codes @ decoder - batch) ** 2).sum() / N_TOKENS_OF_STEP
        steps.zero_grad()
        loss.backward()
        steps.step()
        with torch.no_grad():
            decoder /= decoder.norm(dim=1, keepdim=True)
