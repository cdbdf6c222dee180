"""Networks whose maps are known."""

import torch
from torch import nn

RED, BLUE = 0, 2
"""Channels of a picture."""


class Detectors(nn.Module):
    """Two outputs: how red a picture is, and how blue.

    Each activation is of a patch of 32 x 32 pixels. The first is its mean of red less its mean of blue, less
    0.5 and never below 0; the second the same with the colours exchanged. An output is their mean.
    """

    def __init__(self):
        super().__init__()
        n_pixels = 32 * 32
        self.stem = nn.Conv2d(3, 2, 32, stride=32).requires_grad_(False)
        self.last = nn.ReLU()
        self.stem.weight.zero_()
        self.stem.bias.fill_(-0.5)
        self.stem.weight[0, RED] = 1 / n_pixels
        self.stem.weight[0, BLUE] = -1 / n_pixels
        self.stem.weight[1, BLUE] = 1 / n_pixels
        self.stem.weight[1, RED] = -1 / n_pixels

    def forward(self, pixels):
        return self.last(self.stem(pixels)).mean(dim=(2, 3))


class Pooled(nn.Module):
    """Activations, which are the input itself, averaged and mapped linearly."""

    def __init__(self, weight):
        super().__init__()
        self.last = nn.Identity()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, acts):
        return self.last(acts).mean(dim=(2, 3)) @ self.weight.T


class AttentionPooled(nn.Module):
    """Activations pooled as CLIP's ResNets do, by torch's own attention.

    Parameters
    ----------
    positions
        Added to the mean of all places and to each place [places + 1, channels].
    queries, keys, values, output
        Weights of the attention [channels, channels] and of its output [features, channels].
    n_heads
        Heads of the attention.
    """

    def __init__(self, positions, queries, keys, values, output, n_heads):
        super().__init__()
        self.last = nn.Identity()  # the layer whose output is mapped: the activations
        self.positions = nn.Parameter(positions)
        self.queries = nn.Parameter(queries)
        self.keys = nn.Parameter(keys)
        self.values = nn.Parameter(values)
        self.output = nn.Parameter(output)
        self.n_heads = n_heads

    def forward(self, acts):
        places = self.last(acts).flatten(2).permute(2, 0, 1)  # [places, pictures, channels]
        mean = places.mean(dim=0, keepdim=True)
        tokens = torch.cat([mean, places]) + self.positions[:, None]
        n_channels = tokens.shape[2]
        result, _ = nn.functional.multi_head_attention_forward(
            query=tokens[:1],  # the mean attends to all
            key=tokens,
            value=tokens,
            embed_dim_to_check=n_channels,
            num_heads=self.n_heads,
            in_proj_weight=None,
            in_proj_bias=torch.zeros(3 * n_channels, dtype=tokens.dtype),
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=0.0,
            out_proj_weight=self.output,
            out_proj_bias=None,
            training=False,
            use_separate_proj_weight=True,
            q_proj_weight=self.queries,
            k_proj_weight=self.keys,
            v_proj_weight=self.values,
        )
        return result[0]
