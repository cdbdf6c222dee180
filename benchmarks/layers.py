"""What layers cost, and whether they are transformers' own: every family of `networks.toml`, on a CPU.

Networks are untrained. By default they have the published number of blocks, a width of 192 and clips of 8
frames: the CPU time of a clip with all layers is compared with that of the same network without, in turns.
`--full` compares values in place of times: of X-CLIP, the LSMDC X-CLIP and ViViT at their real sizes, with
transformers' own hidden states.

    python benchmarks/layers.py --check
    python benchmarks/layers.py --full
"""

import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from measure import arguments, in_turn, show, verdict
from transformers import AutoConfig

from obygaze_features.backbones import Compute, Layers, load_backbone
from obygaze_features.backbones.checkpoint import quiet, untrained
from obygaze_features.backbones.encoder_kinds import IMAGES, VIDEOS
from obygaze_features.backbones.layered import WithLayers

MEAN_GOAL, WORST_GOAL = 1.10, 1.25
EXACT = 1e-6
N_FRAMES = 8
BODY = {"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 12, "num_attention_heads": 3}
PICTURE = BODY | {"patch_size": 16, "image_size": 224}
TEXT = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 99,
    "max_position_embeddings": 16,
    "bos_token_id": 1,
    "eos_token_id": 98,
    "pad_token_id": 0,
}
BOTH = {"vision_config": PICTURE, "text_config": TEXT, "projection_dim": 64}
PRISM = BODY | {"image_size": 216, "num_frames": N_FRAMES, "num_spatial_layers": 12, "num_temporal_layers": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "clip": BOTH,
    "metaclip_2": BOTH,
    "siglip": BOTH,
    "dinov2": PICTURE | {"mlp_ratio": 4},
    "dinov2_with_registers": PICTURE | {"mlp_ratio": 4, "num_register_tokens": 4},
    "dinov3_vit": PICTURE | {"num_register_tokens": 4},
    "aimv2_vision_model": PICTURE,
    "vit": PICTURE,
    "hiera": {},
    "videomae": PICTURE | {"num_frames": N_FRAMES, "tubelet_size": 2},
    "vjepa2": BODY | {"patch_size": 16, "crop_size": 224, "frames_per_clip": N_FRAMES, "mlp_ratio": 4},
    "videoprism_vision_model": PRISM,
    "timesformer": PICTURE | {"num_frames": N_FRAMES},
    "vivit": PICTURE | {"num_frames": N_FRAMES, "tubelet_size": [2, 16, 16]},
    "xclip": {
        "vision_config": PICTURE
        | {"num_frames": N_FRAMES, "mit_hidden_size": 64, "mit_num_attention_heads": 2},
        "text_config": TEXT,
        "projection_dim": 64,
    },
}


def encoders(kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Make a network of a family, and what encodes one clip with it: without layers, and with all of them."""
    config = AutoConfig.for_model(kind, **CONFIGS[kind])
    names = {"metaclip_2": "MetaClip2Model", "clip": "CLIPModel", "siglip": "SiglipModel"}
    cls = getattr(transformers, names.get(kind, (IMAGES | VIDEOS)[kind].network))
    with quiet():
        untrained(lambda: cls(config), 0).save_pretrained(folder)
    name = "image" if kind in IMAGES else "video"
    plain = load_backbone(name, N_FRAMES, weights=str(folder), compute=Compute("cpu"))
    layered = load_backbone(name, N_FRAMES, weights=str(folder), compute=Compute("cpu"), layers=Layers())
    frames = np.random.default_rng(0).integers(0, 256, (N_FRAMES, 240, 320, 3), dtype=np.uint8)
    clip = np.stack([plain.prepare(frame) for frame in frames])[None]
    plain.encode(clip)  # once before the clock
    layered.encode(clip)
    return {"last": lambda: plain.encode(clip), "all": lambda: layered.encode(clip)}


def times(kinds: list[str], runs: int) -> list[dict[str, Any]]:
    """Compare the CPU times of families: the best of some runs in turns."""
    rows = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            took = in_turn(encoders(kind, Path(folder)), runs, least=True)
        last, every = took["last"].cpu_s, took["all"].cpu_s
        rows.append({"family": kind, "last_ms": last * 1e3, "all_ms": every * 1e3, "ratio": every / last})
        print(rows[-1], flush=True)
    return rows


def hidden_states(name: str, model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return transformers' hidden states of a clip `[1, F, 3, h, w]`, after each block."""
    if name == "vivit":
        return tuple(model(pixels, output_hidden_states=True).hidden_states[1:])
    seen = model.vision if name == "xclip-lsmdc" else model.vision_model
    return tuple(seen(pixel_values=pixels[0], output_hidden_states=True).hidden_states[1:])


@torch.inference_mode()
def values(name: str) -> dict[str, Any]:
    """Compare the layers of a network at its real size with transformers' hidden states.

    The network is one, so that it is in memory once: called with hooks, and then by transformers alone.
    """
    backbone = load_backbone(name, weights="random:0", layers=Layers(frames=True), compute=Compute("cpu"))
    runner: Any = backbone.encode
    layered: WithLayers = runner.network
    inner: Any = layered.network
    model = inner.network if name == "xclip-lsmdc" else inner.model
    size = runner.shape[1]
    pixels = torch.rand(1, backbone.n_frames, 3, size, size, generator=torch.Generator().manual_seed(0))
    found = layered(pixels)
    states = hidden_states(name, model, pixels)
    # ViViT's last state has been normalised: its last block is compared through that.
    worst = 0.0
    for number, state in enumerate(states, start=1):
        patches = state[:, 1:].double()
        n_moments = found[f"{number}/frames"].shape[1]
        if name == "vivit" and number == len(states):
            continue
        by_moment = patches.reshape(n_moments, -1, patches.shape[-1]).mean(dim=1)
        difference = (found[f"{number}/frames"][0].double() - by_moment).abs().max()
        worst = max(worst, float(difference / by_moment.abs().max()))
    return {"network": name, "layers": len(states), "largest_difference": worst, "exact": worst <= EXACT}


def main() -> None:
    """Measure what was asked for."""
    asked = arguments(__doc__, runs=5, only=[*CONFIGS], full=False, check=False)
    torch.set_num_threads(1)
    if asked.full:
        found = []
        for name in ("xclip", "xclip-lsmdc", "vivit"):
            found.append(values(name))
            print(found[-1], flush=True)
        sys.exit(not all(row["exact"] for row in found))
    rows = times(asked.only, asked.runs)
    show(rows)
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    worst = max(row["ratio"] for row in rows)
    print(f"geometric mean {mean:.3f} (goal {MEAN_GOAL}), largest {worst:.3f} (goal {WORST_GOAL})")
    wrong = []
    if mean > MEAN_GOAL:
        wrong.append(f"the geometric mean is {mean:.3f}")
    wrong += [f"{row['family']} takes {row['ratio']:.3f}" for row in rows if row["ratio"] > WORST_GOAL]
    verdict(wrong, check=asked.check)


if __name__ == "__main__":
    main()
