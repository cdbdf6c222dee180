"""Networks whose maps are known."""

import torch
from torch import nn


class Detectors(nn.Module):
    """How much redder than blue, and bluer than red, patches of 32 x 32 are."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 2, 32, stride=32).requires_grad_(False)
        self.last = nn.ReLU()
        self.stem.weight.zero_()
        self.stem.bias.fill_(-0.5)
        for channel, (more, less) in enumerate([(0, 2), (2, 0)]):
            self.stem.weight[channel, more] = 1 / 1024
            self.stem.weight[channel, less] = -1 / 1024

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
    """Activations pooled as CLIP's ResNets do, by torch's own attention."""

    def __init__(self, pos, q, k, v, c, heads):
        super().__init__()
        self.last = nn.Identity()
        self.pos, self.q, self.k, self.v, self.c = map(nn.Parameter, (pos, q, k, v, c))
        self.heads = heads

    def forward(self, acts):
        places = self.last(acts).flatten(2).permute(2, 0, 1)
        tokens = torch.cat([places.mean(dim=0, keepdim=True), places]) + self.pos[:, None]
        none = torch.zeros(3 * tokens.shape[2], dtype=tokens.dtype)
        result, _ = nn.functional.multi_head_attention_forward(
            *(tokens[:1], tokens, tokens, tokens.shape[2], self.heads, None, none, None, None, False, 0.0),
            *(self.c, None, False),
            use_separate_proj_weight=True,
            q_proj_weight=self.q,
            k_proj_weight=self.k,
            v_proj_weight=self.v,
        )
        return result[0]
