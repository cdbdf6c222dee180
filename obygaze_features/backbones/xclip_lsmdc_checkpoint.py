"""Convert LSMDC X-CLIP checkpoints (Ma et al. 2022) between the published format and the port, `XClipLsmdc`.

The network's size follows from the shapes of a few tensors; from the size, the name and shape of every tensor
that the file must hold, and where each belongs in the port.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import torch

from obygaze_features.backbones.checkpoint import check_keys
from obygaze_features.errors import BackboneError

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PublishedTensor:
    """One tensor of the original: its name and shape there, and the port's names for it or for its parts."""

    original: str
    shape: Shape
    port: tuple[str, ...]
    turn: Literal["same", "transpose", "thirds"] = "same"


@dataclass(frozen=True, slots=True)
class LsmdcFormat:
    """The published checkpoint format of an LSMDC X-CLIP of some size; the defaults are ViT-B/16.

    Attributes
    ----------
    HEAD_WIDTH
        Width of every attention head of every CLIP.
    RECORD_KEY
        Key of the training record in the metadata of safetensors that `obygaze train` wrote.
    """

    HEAD_WIDTH: ClassVar[int] = 64
    RECORD_KEY: ClassVar[str] = "obygaze_training"
    embed: int = 512
    vision_width: int = 768
    vision_layers: int = 12
    patch: int = 16
    image: int = 224
    text_width: int = 512
    text_layers: int = 12
    context: int = 77
    vocabulary: int = 49408
    temporal_layers: int = 4
    temporal_positions: int = 77
    max_frames: int = 12
    max_words: int = 32

    @classmethod
    def of(cls, name: str, tensors: Mapping[str, torch.Tensor]) -> "LsmdcFormat":
        """Read the sizes off the shapes of a checkpoint.

        Raises
        ------
        BackboneError
            If a tensor that tells a size is missing, or has not as many axes as it should.
        """
        telling = {
            "clip.visual.conv1.weight": 4,
            "clip.visual.positional_embedding": 2,
            "clip.visual.proj": 2,
            "clip.positional_embedding": 2,
            "clip.token_embedding.weight": 2,
            "frame_position_embeddings.weight": 2,
            "frame_logit_weight": 2,
            "word_logit_weight": 2,
        }
        check_keys(
            name,
            missing=[key for key in telling if key not in tensors],
            unexpected=[],
            mismatched=[key for key, axes in telling.items() if key in tensors and tensors[key].ndim != axes],
        )
        width, _, patch, _ = tensors["clip.visual.conv1.weight"].shape
        context, text_width = tensors["clip.positional_embedding"].shape
        grid = round((tensors["clip.visual.positional_embedding"].shape[0] - 1) ** 0.5)
        embed = tensors["clip.visual.proj"].shape[1]
        if not patch or any(not size or size % cls.HEAD_WIDTH for size in (width, text_width, embed)):
            raise BackboneError(
                f"{name}: widths {width}, {text_width} and {embed} and patches of {patch}: "
                f"these are no CLIP with heads of {cls.HEAD_WIDTH}"
            )
        return cls(
            embed=embed,
            vision_width=width,
            vision_layers=_layers(tensors, "clip.visual.transformer"),
            patch=patch,
            image=patch * grid,
            text_width=text_width,
            text_layers=_layers(tensors, "clip.transformer"),
            context=context,
            vocabulary=tensors["clip.token_embedding.weight"].shape[0],
            temporal_layers=_layers(tensors, "transformerClip"),
            temporal_positions=tensors["frame_position_embeddings.weight"].shape[0],
            max_frames=tensors["frame_logit_weight"].shape[0],
            max_words=tensors["word_logit_weight"].shape[0],
        )

    def record(self) -> dict[str, Any]:
        """Return the sizes as plain JSON."""
        return {"type": "xclip-lsmdc", **asdict(self), "temporal": "seqTransf", "temporal_norm_eps": 1e-12}

    def tensors(self) -> Iterator[PublishedTensor]:
        """List every tensor of the original checkpoint, with its place in the port."""
        vision, text = "vision.vision_model", "text.text_model"
        yield PublishedTensor(
            "clip.visual.class_embedding", (self.vision_width,), (f"{vision}.embeddings.class_embedding",)
        )
        yield PublishedTensor(
            "clip.visual.positional_embedding",
            ((self.image // self.patch) ** 2 + 1, self.vision_width),
            (f"{vision}.embeddings.position_embedding.weight",),
        )
        yield PublishedTensor(
            "clip.visual.conv1.weight",
            (self.vision_width, 3, self.patch, self.patch),
            (f"{vision}.embeddings.patch_embedding.weight",),
        )
        # pre_layrnorm is transformers' spelling.
        yield from _norm("clip.visual.ln_pre", f"{vision}.pre_layrnorm", self.vision_width)
        yield from _norm("clip.visual.ln_post", f"{vision}.post_layernorm", self.vision_width)
        yield PublishedTensor(
            "clip.visual.proj",
            (self.vision_width, self.embed),
            ("vision.visual_projection.weight",),
            "transpose",
        )
        yield from _blocks(
            "clip.visual.transformer", f"{vision}.encoder", self.vision_width, self.vision_layers
        )

        yield PublishedTensor(
            "clip.token_embedding.weight",
            (self.vocabulary, self.text_width),
            (f"{text}.embeddings.token_embedding.weight",),
        )
        yield PublishedTensor(
            "clip.positional_embedding",
            (self.context, self.text_width),
            (f"{text}.embeddings.position_embedding.weight",),
        )
        yield from _norm("clip.ln_final", f"{text}.final_layer_norm", self.text_width)
        yield PublishedTensor(
            "clip.text_projection",
            (self.text_width, self.embed),
            ("text.text_projection.weight",),
            "transpose",
        )
        yield from _blocks("clip.transformer", f"{text}.encoder", self.text_width, self.text_layers)

        yield PublishedTensor("clip.logit_scale", (), ("logit_scale",))
        yield PublishedTensor(
            "frame_position_embeddings.weight",
            (self.temporal_positions, self.embed),
            ("frame_position_embeddings.weight",),
        )
        yield from _blocks("transformerClip", "temporal", self.embed, self.temporal_layers)
        for name, extent in self.matrices().items():
            yield PublishedTensor(name, (extent, extent), (name,))

    def matrices(self) -> dict[str, int]:
        """Name the learned square matrices of the similarities, with their size."""
        return {
            "global_mat_weight": self.embed,
            "local_mat_weight": self.embed,
            "word_logit_weight": self.max_words,
            "word_mat_weight": self.max_words,
            "word_mat_weight2": self.max_words,
            "frame_logit_weight": self.max_frames,
            "frame_mat_weight": self.max_frames,
            "frame_mat_weight2": self.max_frames,
        }

    def to_port(self, name: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Rename, split and transpose an original checkpoint, in float32 (originals mix float16 and float32).

        Raises
        ------
        BackboneError
            Naming the tensors that are missing, unexpected, of another shape or not floating point.
        """
        wanted = {tensor.original: tensor for tensor in self.tensors()}
        check_keys(
            name,
            missing=sorted(wanted.keys() - tensors.keys()),
            unexpected=sorted(tensors.keys() - wanted.keys()),
            mismatched=[
                f"{key} {list(tensors[key].shape)}, not {list(tensor.shape)}"
                for key, tensor in wanted.items()
                if key in tensors and tuple(tensors[key].shape) != tensor.shape
            ],
        )
        port: dict[str, torch.Tensor] = {}
        for key, tensor in wanted.items():
            value = tensors[key]
            if not value.is_floating_point():
                raise BackboneError(f"{name}: {key} holds {value.dtype}, expected floating point")
            value = value.float()
            turned = value.T if tensor.turn == "transpose" else value
            parts = turned.chunk(3) if tensor.turn == "thirds" else (turned,)
            port.update(zip(tensor.port, (part.contiguous() for part in parts), strict=True))
        return port

    def from_port(self, port: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Rename, join and transpose tensors of the port back to the original's; data types stay.

        Parameters
        ----------
        port
            Tensors by the port's names. Originals of which `port` has no part are left out, so that gradients
            of the trained tensors, or a CLIP alone, can be turned too.
        """
        originals: dict[str, torch.Tensor] = {}
        for tensor in self.tensors():
            if tensor.port[0] in port:
                parts = [port[name] for name in tensor.port]
                value = torch.cat(parts) if tensor.turn == "thirds" else parts[0]
                originals[tensor.original] = (value.T if tensor.turn == "transpose" else value).contiguous()
        return originals


def without_prefix(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Strip the `module.` that distributed training puts before every name."""
    return {key.removeprefix("module."): value for key, value in tensors.items()}


def _layers(tensors: Mapping[str, torch.Tensor], prefix: str) -> int:
    block = re.compile(re.escape(prefix) + r"\.resblocks\.(\d+)\.")
    return len({match[1] for key in tensors if (match := block.match(key))})


def _norm(original: str, port: str, width: int) -> Iterator[PublishedTensor]:
    for kind in ("weight", "bias"):
        yield PublishedTensor(f"{original}.{kind}", (width,), (f"{port}.{kind}",))


def _linear(original: str, port: str, out: int, into: int) -> Iterator[PublishedTensor]:
    yield PublishedTensor(f"{original}.weight", (out, into), (f"{port}.weight",))
    yield PublishedTensor(f"{original}.bias", (out,), (f"{port}.bias",))


def _blocks(original: str, port: str, width: int, layers: int) -> Iterator[PublishedTensor]:
    for i in range(layers):
        there, here = f"{original}.resblocks.{i}", f"{port}.layers.{i}"
        for kind, shape in (("weight", (3 * width, width)), ("bias", (3 * width,))):
            names = tuple(f"{here}.self_attn.{part}_proj.{kind}" for part in "qkv")
            yield PublishedTensor(f"{there}.attn.in_proj_{kind}", shape, names, "thirds")
        yield from _linear(f"{there}.attn.out_proj", f"{here}.self_attn.out_proj", width, width)
        yield from _linear(f"{there}.mlp.c_fc", f"{here}.mlp.fc1", 4 * width, width)
        yield from _linear(f"{there}.mlp.c_proj", f"{here}.mlp.fc2", width, 4 * width)
        yield from _norm(f"{there}.ln_1", f"{here}.layer_norm1", width)
        yield from _norm(f"{there}.ln_2", f"{here}.layer_norm2", width)
