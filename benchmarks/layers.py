"""What layers cost, and whether they are transformers' own: every family that has layers, on a CPU.

Networks are untrained. By default they have the published number of blocks, a width of 192 and clips of 8
frames, or 10 s of sound (OpenCLIP's ResNet and EfficientNet-Lite0 are whole): the CPU time of a clip with all
layers is compared with that of the same network without, in turns.
`--full` compares values in place of times: of X-CLIP, the LSMDC X-CLIP and ViViT at their real sizes, with
transformers' own hidden states.

    python benchmarks/layers.py --check
    python benchmarks/layers.py --full
"""

import json
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
from safetensors.torch import save_file
from transformers import AutoConfig

from obygaze_features.backbones import Backbone, Compute, Layers, load_backbone
from obygaze_features.backbones.checkpoint import quiet, untrained
from obygaze_features.backbones.encoder_specs import IMAGES, VIDEOS
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


SPEECH = BODY | {"num_conv_pos_embeddings": 128}
SOUNDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2FeatureExtractor", SPEECH | {"num_attention_heads": 4}),
    "hubert": ("HubertModel", "Wav2Vec2FeatureExtractor", SPEECH | {"num_attention_heads": 4}),
    "wavlm": ("WavLMModel", "Wav2Vec2FeatureExtractor", SPEECH | {"num_attention_heads": 4}),
    "whisper": (
        "WhisperModel",
        "WhisperFeatureExtractor",
        {"d_model": 192, "encoder_layers": 12, "decoder_layers": 1, "encoder_attention_heads": 3},
    ),
    "audio-spectrogram-transformer": ("ASTModel", "ASTFeatureExtractor", BODY),
    "clap": (
        "ClapModel",
        "ClapFeatureExtractor",
        {
            "text_config": TEXT | {"pad_token_id": 1},
            "audio_config": {"patch_embeds_hidden_size": 48, "hidden_size": 384, "depths": [2, 2, 6, 2]},
        },
    ),
}
"""`model_type` of a network that hears -> its class, its feature extractor, and its configuration."""
OPENCLIP_VIT: dict[str, Any] = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 224, "layers": 12, "width": 192, "head_width": 64, "patch_size": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1},
}
OTHERS = ("openclip-vit", "openclip-resnet", "efficientnet-lite0")
"""Networks that are not of transformers, or read otherwise."""
HEARD_S, RATE = 10, 16_000


def encoders(kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Make a network of a family, and what encodes one clip with it: without layers, and with all of them."""
    if kind in SOUNDS:
        return sound_encoders(kind, folder)
    if kind in OTHERS:
        return other_encoders(kind, folder)
    config = AutoConfig.for_model(kind, **CONFIGS[kind])
    names = {"metaclip_2": "MetaClip2Model", "clip": "CLIPModel", "siglip": "SiglipModel"}
    cls = getattr(transformers, names.get(kind, (IMAGES | VIDEOS)[kind].network))
    with quiet():
        untrained(lambda: cls(config), seed=0).save_pretrained(folder)
    name = "image" if kind in IMAGES else "video"
    plain = load_backbone(name, N_FRAMES, weights=str(folder), compute=Compute("cpu"))
    layered = load_backbone(name, N_FRAMES, weights=str(folder), compute=Compute("cpu"), layers=Layers())
    return both(plain, layered)


def both(plain: Backbone, layered: Backbone) -> dict[str, Callable[[], object]]:
    """Encode a clip of chance with a network without layers, and with all of them; once before the clock."""
    frames = np.random.default_rng(0).integers(0, 256, (N_FRAMES, 240, 320, 3), dtype=np.uint8)
    clip = np.stack([plain.prepare(frame) for frame in frames])[None]
    plain.encode(clip)
    layered.encode(clip)
    return {"last": lambda: plain.encode(clip), "all": lambda: layered.encode(clip)}


def sound_encoders(kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Make a network that hears, and what encodes some seconds of noise with it."""
    network, extractor, numbers = SOUNDS[kind]
    config = AutoConfig.for_model(kind, **numbers)
    with quiet():
        untrained(lambda: getattr(transformers, network)(config), seed=0).save_pretrained(folder)
        cuts = {"truncation": "rand_trunc"} if kind == "clap" else {}  # else it hears four crops at once
        getattr(transformers, extractor)(**cuts).save_pretrained(folder)
    options = {"weights": str(folder), "compute": Compute("cpu")}
    plain = load_backbone("waveform", N_FRAMES, **options)
    layered = load_backbone("waveform", N_FRAMES, layers=Layers(), **options)
    rate = plain.hears.rate if plain.hears is not None else RATE
    heard = np.random.default_rng(0).normal(0, 0.1, (N_FRAMES, HEARD_S * rate // N_FRAMES))
    clip = heard.astype(np.float32)[None]
    plain.encode(clip)
    layered.encode(clip)
    return {"last": lambda: plain.encode(clip), "all": lambda: layered.encode(clip)}


def other_encoders(kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Make a network of OpenCLIP or EfficientNet-Lite0, and what encodes one clip with it."""
    if kind == "efficientnet-lite0":
        options: dict[str, Any] = {"answers": False}
        name = kind
    else:
        name = "openclip"
        options = {"weights": "random:0" if kind == "openclip-resnet" else str(openclip_vit(folder))}
    options["compute"] = Compute("cpu")
    plain = load_backbone(name, N_FRAMES, **options)
    return both(plain, load_backbone(name, N_FRAMES, layers=Layers(), **options))


def openclip_vit(folder: Path) -> Path:
    """Write an untrained CLIP of OpenCLIP with a vision transformer."""
    import open_clip

    network = untrained(lambda: open_clip.CLIP(**OPENCLIP_VIT), seed=0)
    save_file(dict(network.state_dict()), folder / "open_clip_model.safetensors")
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": OPENCLIP_VIT}), encoding="utf-8")
    return folder


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
    worst = 0.0
    for number, state in enumerate(states, start=1):
        patches = state[:, 1:].double()
        n_moments = found[f"{number}/frames"].shape[1]
        by_moment = patches.reshape(n_moments, -1, patches.shape[-1]).mean(dim=1)
        difference = (found[f"{number}/frames"][0].double() - by_moment).abs().max()
        worst = max(worst, float(difference / by_moment.abs().max()))
    return {"network": name, "layers": len(states), "largest_difference": worst, "exact": worst <= EXACT}


def main() -> None:
    """Measure what was asked for."""
    asked = arguments(__doc__, runs=5, only=[*CONFIGS, *SOUNDS, *OTHERS], full=False, check=False)
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
