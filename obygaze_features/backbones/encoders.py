"""`image` and `video`: networks of transformers for pictures and videos, by the `model_type` of the weights.

`clip`, `xclip` and `vivit` are the same networks under names of their own: with the defaults of the corpora
that were extracted under these names, and named presets.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from obygaze_features.backbones.backbone import Backbone, LoadedNetwork
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, on_meta, plain_config
from obygaze_features.backbones.compute import Compute
from obygaze_features.backbones.encoder_kinds import CLIP, IMAGES, REFUSED, SIGLIP, SIGLIP2, VIDEOS, Kind
from obygaze_features.backbones.network import network_backbone
from obygaze_features.backbones.presets import Preset, choose_preset
from obygaze_features.backbones.processor import preset_of_processor, second_siglip
from obygaze_features.backbones.weights import HUB, Weights, find_weights, space_of
from obygaze_features.errors import BackboneError, first_line


def image(
    n_frames: int | None = None, *, weights: str, tokens: str = "none", compute: Compute | None = None
) -> Backbone:
    """Build a network that sees pictures one by one.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    weights
        Of a `model_type` of `IMAGES`; `random:SEED:TYPE` is untrained.
    tokens
        `patches` stores the tokens of the patches too, frame by frame and row by row.
    """
    return _build("image", IMAGES, find_weights(weights), n_frames, tokens=tokens, compute=compute)


def video(
    n_frames: int | None = None, *, weights: str, tokens: str = "none", compute: Compute | None = None
) -> Backbone:
    """Build a network that sees clips.

    Parameters
    ----------
    n_frames
        Frames per clip; None is what the network was made for, and most take no other number.
    weights
        Of a `model_type` of `VIDEOS`; `random:SEED:TYPE` is untrained.
    tokens
        `all` stores the tokens too; of X-CLIP, `frames` or `patches`.
    """
    return _build("video", VIDEOS, find_weights(weights), n_frames, tokens=tokens, compute=compute)


def clip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["clip"],
    preset: str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build the image half of a CLIP or SigLIP.

    Parameters
    ----------
    n_frames
        Frames per clip, any number; None is 32.
    preset
        Preprocessing; None is what the processor's configuration beside the weights asks for, or without one
        `clip` for a CLIP and `siglip` or `siglip2` for a SigLIP.
    """
    source = find_weights(weights)
    return _build("clip", _CLIPS, source, n_frames, compute=compute, preset=preset, presets=["obygaze12"])


def vivit(
    n_frames: int | None = None,
    *,
    weights: str = HUB["vivit"],
    preset: str = "obygaze12",
    tokens: str = "all",
    compute: Compute | None = None,
) -> Backbone:
    """Build ViViT-B/16x2 (Arnab et al., ICCV 2021), trained on Kinetics-400.

    For 32 frames there are 1 class token and 16 x 14 x 14 others, time first. The pooled vector is the
    **maximum** over all of them, as the original study read these features.

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one).
    tokens
        `all` stores the 3137 tokens, 4.8 MB a clip; `none` frames and pooled alone.
    """
    return _build(
        "vivit",
        {"vivit": VIDEOS["vivit"]},
        find_weights(weights),
        n_frames,
        tokens=tokens,
        compute=compute,
        preset=preset,
        presets=("vivit-hub", "vivit-scenic", "obygaze12"),
    )


def xclip(
    n_frames: int | None = None,
    *,
    weights: str = HUB["xclip"],
    preset: str = "obygaze12",
    tokens: str = "none",
    compute: Compute | None = None,
) -> Backbone:
    """Build X-CLIP (Ni et al., ECCV 2022).

    Parameters
    ----------
    n_frames
        Must be what the network was made for (32 for the default one), since its frames are mixed.
    tokens
        What to store beside frames and pooled: `frames`, c `[T, 512]`, or `patches`, `[T * 196, 768]`.
    """
    return _build(
        "xclip",
        {"xclip": VIDEOS["xclip"]},
        find_weights(weights),
        n_frames,
        tokens=tokens,
        compute=compute,
        preset=preset,
        presets=("xclip", "obygaze12"),
    )


def clip_network(weights: str | Path | Weights) -> LoadedNetwork:
    """Load the image half of a CLIP itself; its output has `image_embeds`, `[B, D]`."""
    loaded = _Loaded(find_weights(weights), {"clip": CLIP}, "clip")
    return LoadedNetwork(loaded.network(), loaded.weights, loaded.preset())


_CLIPS = {kind: IMAGES[kind] for kind in ("clip", "clip_vision_model", "siglip", "siglip_vision_model")}


def type_of(weights: Weights, kinds: Collection[str], usual: str) -> str:
    """Return the `model_type` of weights; of `random:SEED` without a type, the usual one.

    Raises
    ------
    BackboneError
        If it is none of the kinds.
    """
    known = f"expected {' or '.join(kinds)}"
    if weights.seed is not None and weights.network is None and usual not in kinds:
        raise BackboneError(f"{weights.name}: of which network? Write {weights.name}:TYPE; {known}")
    random = weights.seed is not None
    found = weights.network or usual if random else str(weights.config().get("model_type"))
    if found not in kinds:
        raise BackboneError(
            f"{weights.name}: a network of type {found!r} is not read here: {REFUSED.get(found, known)}"
        )
    return found


class _Loaded:
    """Weights with their kind, configuration and processor.

    Raises
    ------
    BackboneError
        If the network is of none of the kinds.
    """

    def __init__(self, weights: Weights, kinds: Mapping[str, Kind], usual: str) -> None:
        self.weights = weights
        self.type = type_of(weights, kinds, usual)
        self.kind = kinds[self.type]
        self.cls: Any = getattr(transformers, self.kind.network)
        self.config: Any = auto_config(weights, self.type, self.kind.untrained)
        self.vision: Any = getattr(self.config, "vision_config", self.config)
        self.second = self.kind is SIGLIP and second_siglip(weights)
        if getattr(self.config, "projection_dim", None) and hasattr(self.vision, "projection_dim"):
            # In some repositories the half's own copy is outdated.
            self.vision.projection_dim = self.config.projection_dim

    @property
    def own(self) -> Any:
        """The configuration of the class: of both halves, or one."""
        return self.config if isinstance(self.config, self.cls.config_class) else self.vision

    def network(self) -> Any:
        kind = self.kind
        model = load_pretrained(
            self.cls, self.weights, self.own, allow_unexpected=kind.unexpected, **kind.settings
        )
        return self._used(model)

    def on_meta(self) -> Any:
        return self._used(on_meta(self.cls, self.own, **self.kind.settings))

    def _used(self, model: Any) -> Any:
        for part in self.kind.unused:
            delattr(model, part)
        return model

    def size(self) -> int | None:
        """Return the side of the pictures that the network takes; None: any multiple of a patch."""
        side = getattr(self.vision, self.kind.side) if self.kind.side else None
        return side[0] if isinstance(side, list | tuple) else side

    def preset(self, name: str | None = None, allowed: Sequence[str] = (), *, named: bool = True) -> Preset:
        """Return the preset of a name, or what the processor beside the weights does."""
        kind, side = self.kind, self.size()
        if name is not None:
            return choose_preset(name, (*kind.names, *allowed), size=side or 224)
        usual = "SigLIP2ImageProcessor" if self.second else kind.processor
        multiple = 1 if side else int(self.vision.patch_size)
        names = kind.names if named else ()
        return preset_of_processor(self.weights, usual, side=side, multiple=multiple, names=names)

    def frames(self, name: str, wanted: int | None) -> tuple[int, int]:
        """Return the frames of a clip, and those of one step in time.

        Raises
        ------
        BackboneError
            If the network does not take the number: it would mix clips, or fail later.
        """
        if self.kind.frames is None:
            return wanted or 32, 1
        field_, step = self.kind.frames
        usual = getattr(self.vision, field_)
        size = step if isinstance(step, int) else getattr(self.vision, step)
        size = size if isinstance(size, int) else size[0]
        frames = wanted or usual
        if frames % size or (frames != usual and not self.kind.flexible):
            takes = f"a multiple of {size}" if self.kind.flexible else usual
            raise BackboneError(
                f"backbone '{name}' with these weights takes {takes} frames a clip, not {frames}"
            )
        return frames, size

    def module(self, name: str, model: Any, step: int, tokens: str) -> "Pictures | Clips | XClipTokens":
        if self.kind.frames is None:
            return Pictures(name, model, self, tokens)
        if self.type == "xclip":
            return XClipTokens(name, model, tokens)
        return Clips(name, model, self, tokens, step)


def _build(
    name: str,
    kinds: Mapping[str, Kind],
    source: Weights,
    n_frames: int | None,
    *,
    tokens: str = "none",
    compute: Compute | None,
    preset: str | None = None,
    presets: Sequence[str] = (),
) -> Backbone:
    loaded = _Loaded(source, kinds, name)
    kind = loaded.kind
    frames, step = loaded.frames(name, n_frames)
    chosen = loaded.preset(preset, presets, named=name == "clip")
    module = loaded.module(name, loaded.network(), step, tokens)
    pretended = loaded.module(name, loaded.on_meta(), step, tokens)
    size = chosen.geometry.size
    try:
        with torch.device("meta"), torch.inference_mode():
            arrays = pretended(torch.empty(1, frames, 3, size, size))
    except Exception as error:  # noqa: BLE001 - a stranger's numbers raise anything
        raise BackboneError(
            f"{source.name}: the network does not take {frames} frames of {size} x {size} pixels: "
            f"{first_line(error)}"
        ) from None
    # Stores of `xclip` have no field `space`: the name and the weights say it (`embedding_space`).
    space: Any = {"space": space_of(kind.family, source)} if kind.family and name != "xclip" else {}
    return network_backbone(
        name,
        module,
        n_frames=frames,
        shapes={array: tuple(values.shape[1:]) for array, values in arrays.items()},
        meanings=module.meanings,
        weights=source,
        preset=chosen,
        compute=compute or Compute(),
        attention=module.model.config._attn_implementation,
        head=kind.head,
        layer=kind.layer,
        architecture={
            "type": kind.family if name == "clip" else loaded.type,
            **projection(loaded.config),
            **plain_config(loaded.vision),
        },
        citation=SIGLIP2 if loaded.second else kind.citation,
        # Both arrays share their space with the text embeddings of the same weights.
        **space,
    )


def projection(config: Any) -> dict[str, Any]:
    """Return the width of the space of both halves, where a configuration has one."""
    return {"projection_dim": config.projection_dim} if hasattr(config, "projection_dim") else {}


def _check_tokens(name: str, tokens: str, known: Sequence[str]) -> str:
    if tokens not in ("none", *known):
        raise BackboneError(f"backbone '{name}' has no tokens '{tokens}'; there is none, {', '.join(known)}")
    return tokens


class Pictures(nn.Module):
    """A network of pictures, applied to every frame of a clip."""

    def __init__(self, name: str, model: Any, loaded: _Loaded, tokens: str) -> None:
        super().__init__()
        self.model = model
        self.read = loaded.kind.read
        self.prefix = loaded.kind.prefix + getattr(loaded.vision, "num_register_tokens", 0)
        self.tokens = _check_tokens(name, tokens, ["patches"])
        self.meanings = {
            "frames": loaded.kind.vector,
            "pooled": "its mean over the frames",
            "tokens": "last hidden state of the patches, frame by frame and row by row",
        }

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, F, 3, h, w]`."""
        hidden, vectors = self.read(self.model, pixels.flatten(0, 1))
        hidden = hidden[:, self.prefix :]
        vectors = hidden.mean(dim=1) if vectors is None else vectors
        frames = vectors.view(*pixels.shape[:2], -1)
        results = {"frames": frames, "pooled": frames.float().mean(dim=1)}
        if self.tokens == "patches":
            results["tokens"] = hidden.reshape(len(pixels), -1, hidden.shape[-1])
        return results


class Clips(nn.Module):
    """A network of clips: its tokens, their means in time, and one vector."""

    def __init__(self, name: str, model: Any, loaded: _Loaded, tokens: str, step: int) -> None:
        super().__init__()
        self.model = model
        self.read, self.prefix, self.step = loaded.kind.read, loaded.kind.prefix, step
        self.tokens = _check_tokens(name, tokens, ["all"])
        first = "the class token, then " if self.prefix else ""
        self.meanings = {
            "tokens": f"last hidden state: {first}time by row by column",
            "frames": "mean of the last hidden state over the tokens of one tubelet in time",
            "pooled": loaded.kind.vector,
        }

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, T, 3, h, w]`."""
        hidden, pooled = self.read(self.model, pixels)
        tokens = hidden.float()
        steps = pixels.shape[1] // self.step
        by_step = tokens[:, self.prefix :].reshape(len(pixels), steps, -1, tokens.shape[-1])
        pooled = tokens.mean(dim=1) if pooled is None else pooled
        results = {"frames": by_step.mean(dim=2), "pooled": pooled}
        return results | {"tokens": tokens} if self.tokens == "all" else results


class XClipTokens(nn.Module):
    """The visual half of an X-CLIP, called part by part, since the library does not return t.

    For T frames: every frame goes through the vision transformer, whose message tokens attend to each other
    across the frames; the class token is projected, c `[T, 512]`; the multi-frame integration transformer
    (MIT) gives t = layer(c + position) + c, `[T, 512]`; the video vector is the mean of t over the frames, as
    in `XCLIPModel.get_video_features`.
    """

    def __init__(self, name: str, model: Any, tokens: str) -> None:
        super().__init__()
        self.model = model
        which = {
            "frames": "projected class token of each frame, before the multi-frame integration transformer",
            "patches": "last hidden state of the vision transformer before its last normalisation, "
            "without the class token, frame by frame and row by row",
        }
        self.tokens = _check_tokens(name, tokens, list(which))
        self.meanings = {
            "frames": "output of the multi-frame integration transformer, one a frame",
            "pooled": VIDEOS["xclip"].vector,
            "tokens": which.get(tokens, ""),
        }

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips, `[B, T, 3, h, w]`."""
        clips, frames = pixels.shape[:2]
        vision = self.model.vision_model(pixel_values=pixels.flatten(0, 1))
        before = self.model.visual_projection(vision.pooler_output).view(clips, frames, -1)
        after = self.model.mit(before).last_hidden_state
        results = {"frames": after, "pooled": after.float().mean(dim=1)}
        if self.tokens == "frames":
            results["tokens"] = before
        elif self.tokens == "patches":
            hidden = vision.last_hidden_state[:, 1:]
            results["tokens"] = hidden.reshape(clips, -1, hidden.shape[-1])
        return results
