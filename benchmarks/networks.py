"""Full-size networks with random weights: the same numbers as plain transformers calls, and how fast.

Weights are drawn, saved in the hub's format and loaded through the real path: only their values differ from
the published ones. It also says how far bfloat16 is from float32, and on a GPU how much faster.

    python benchmarks/networks.py [--clips 1] [--repeats 1]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tabulate import tabulate
from transformers import VivitConfig, VivitModel, XCLIPConfig, XCLIPModel

from obygaze_features.backbones import Backbone, load_backbone
from obygaze_features.backbones.compute import Compute

Arrays = dict[str, NDArray[Any]]


def pixels(backbone: Backbone, batch: NDArray[np.uint8]) -> torch.Tensor:
    """Normalise as the backbone's provenance says, in float64."""
    constants = backbone.provenance["preset"]["constants"]
    values = batch * np.array(constants["scale"]) + np.array(constants["shift"])
    return torch.from_numpy(values.transpose(0, 1, 4, 2, 3)).float()


def plain_xclip(folder: Path, backbone: Backbone, batch: NDArray[np.uint8]) -> Arrays:
    """Call transformers' X-CLIP as its documentation does."""
    model = XCLIPModel.from_pretrained(folder).eval()
    return {"pooled": model.get_video_features(pixels(backbone, batch)).pooler_output.numpy()}


def plain_vivit(folder: Path, backbone: Backbone, batch: NDArray[np.uint8]) -> Arrays:
    """Call transformers' ViViT, and take frames and maximum from its last hidden state."""
    model = VivitModel.from_pretrained(folder, add_pooling_layer=False).eval()
    hidden = model(pixels(backbone, batch)).last_hidden_state.numpy()
    grid = hidden[:, 1:].reshape(len(batch), 16, -1, hidden.shape[-1])
    return {"pooled": hidden.max(axis=1), "frames": grid.mean(axis=2)}


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[Path, Backbone, NDArray[np.uint8]], Arrays]]] = {
    "xclip": (
        lambda: XCLIPModel(XCLIPConfig(vision_config={"patch_size": 16, "num_frames": 32})),
        plain_xclip,
    ),
    "vivit": (lambda: VivitModel(VivitConfig(), add_pooling_layer=False), plain_vivit),
}


def timed(backbone: Backbone, batch: NDArray[np.uint8], repeats: int) -> tuple[Arrays, float]:
    """Encode once to warm up, then time the best of some repeats; clips a second."""
    found = backbone.encode(batch)
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        backbone.encode(batch)
        best = min(best, time.perf_counter() - begin)
    return found, len(batch) / best


def cosine(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Give the smallest cosine between corresponding rows."""
    a, b = (x.reshape(-1, x.shape[-1]).astype(np.float64) for x in (a, b))
    return float((np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)).min())


@torch.inference_mode()
def main() -> None:
    """Compare and time each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    batch = np.random.default_rng(0).integers(0, 256, (asked.clips, 32, 224, 224, 3), dtype=np.uint8)
    rows = []
    for name, (make, plain) in NETWORKS.items():
        with tempfile.TemporaryDirectory() as scratch:
            torch.manual_seed(0)
            make().save_pretrained(scratch)
            exact = load_backbone(name, weights=scratch)
            found, rate = timed(exact, batch, asked.repeats)
            for array, expected in plain(Path(scratch), exact, batch).items():
                worst = float(np.abs(found[array] - expected).max())
                rows.append(
                    (
                        name,
                        "float32",
                        array,
                        f"{worst:.1e}",
                        f"{np.abs(expected).max():.1f}",
                        "",
                        f"{rate:.2f}",
                    )
                )
            if name == "xclip":
                worst = float(np.abs(found["frames"].mean(axis=1) - found["pooled"]).max())
                rows.append((name, "float32", "mean of frames", f"{worst:.1e}", "", "", ""))
            fast, rate = timed(
                load_backbone(name, weights=scratch, compute=Compute(precision="bfloat16")),
                batch,
                asked.repeats,
            )
            rows.append(
                (
                    name,
                    "bfloat16",
                    "frames",
                    "",
                    "",
                    f"{cosine(fast['frames'], found['frames']):.6f}",
                    f"{rate:.2f}",
                )
            )
    print(f"{asked.clips} clips of 32 frames on {device}")
    headers = (
        "network",
        "precision",
        "array",
        "largest difference",
        "largest value",
        "smallest cosine",
        "clips/s",
    )
    print(tabulate(rows, headers=headers, disable_numparse=True))


if __name__ == "__main__":
    main()
