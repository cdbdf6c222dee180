"""A network of a few numbers for the tests of the runner."""

import torch
from torch import nn


class Network(nn.Module):
    """A network for tests that compare bits: what it gives of a clip is the same in any batch.

    A frame `[3, h, w]` becomes the mean of each channel `[3]`, its token these times a 3 x 5 matrix `[5]`,
    and a clip the mean of its frames `[3]`. A pretended card records each forward pass and may let it fail.
    """

    def __init__(self, card=None):
        super().__init__()
        self.card = card
        self.sizes = []
        """The number of clips in each forward pass so far."""
        weight = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, pixels):
        if self.card is not None:
            self.card.call("forward")
        self.sizes.append(len(pixels))
        plain_pixels = pixels.as_subclass(torch.Tensor)  # not the pretended card's own kind of tensor
        frames = plain_pixels.mean(dim=(3, 4))
        # A product with the whole batch would sum in an order that depends on the number of rows.
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
