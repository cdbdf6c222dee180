"""A network of a few numbers for the tests of the runner."""

import torch
from torch import nn


class Network(nn.Module):
    """Row by row, so that no number of clips changes a bit."""

    def __init__(self, card=None):
        super().__init__()
        self.card = card
        self.sizes = []
        weight = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, pixels):
        if self.card is not None:
            self.card.call("forward")
        self.sizes.append(len(pixels))
        frames = pixels.as_subclass(torch.Tensor).mean(dim=(3, 4))
        tokens = torch.stack([row @ self.weight for row in frames])
        return {"frames": frames, "tokens": tokens, "pooled": frames.mean(dim=1)}


class Small(Network):
    """A network whose memory holds only so many clips."""

    fits = 1000

    def forward(self, pixels):
        if len(pixels) > self.fits:
            self.sizes.append(len(pixels))
            raise torch.OutOfMemoryError
        return super().forward(pixels)
