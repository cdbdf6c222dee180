"""Define the LSMDC X-CLIP (Ma et al. 2022), `XClipLsmdc`, and convert its published checkpoints.

The network's size follows from the shapes of a few tensors; from the size, the name and shape of every tensor
that the file must hold.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import normalize
from transformers import (
    CLIPTextConfig,
    CLIPTextModelWithProjection,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
)
from transformers.models.clip.modeling_clip import CLIPEncoder

from obygaze_features.backbones.checkpoint import check_keys, check_tensors
from obygaze_features.backbones.compute import ATTENTION
from obygaze_features.backbones.weights import TABLES, renamed
from obygaze_features.errors import BackboneError

Shape = tuple[int, ...]
TEMPORAL_EPS = 1e-12  # of the layer norms between frames; CLIP's own is 1e-5
MASKED = -1e6
TRANSPOSED = ("clip.visual.proj", "clip.text_projection")
THIRD = re.compile(r"\.([qkv])_proj\.")
"""Queries, keys and values, which the original has in one tensor."""


SIZES: dict[str, tuple[str, int]] = TABLES["sizes"]["xclip-lsmdc"]
"""Size -> the original's tensor and its axis that tell it; of an image, its patches and the class token."""


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
        check_keys(
            name,
            missing=[key for key, _ in SIZES.values() if key not in tensors],
            unexpected=[],
            mismatched=[key for key, axis in SIZES.values() if key in tensors and tensors[key].ndim <= axis],
        )
        sizes = {size: tensors[key].shape[axis] for size, (key, axis) in SIZES.items()}
        widths = [sizes[size] for size in ("vision_width", "text_width", "embed")]
        if not all(sizes.values()) or any(width % cls.HEAD_WIDTH for width in widths):
            raise BackboneError(
                f"{name}: widths {widths} and patches of {sizes['patch']}: "
                f"these are no CLIP with heads of {cls.HEAD_WIDTH}"
            )
        sizes["image"] = sizes["patch"] * round((sizes["image"] - 1) ** 0.5)
        return cls(
            **sizes,
            vision_layers=_layers(tensors, "clip.visual.transformer"),
            text_layers=_layers(tensors, "clip.transformer"),
            temporal_layers=_layers(tensors, "transformerClip"),
        )

    def record(self) -> dict[str, Any]:
        """Return the sizes as plain JSON."""
        return {"type": "xclip-lsmdc", **asdict(self), "temporal": "seqTransf", "temporal_norm_eps": 1e-12}

    def port(self) -> dict[str, torch.Tensor]:
        """Return the port's tensors, without memory: their names and shapes."""
        with torch.device("meta"):
            return XClipLsmdc(self).state_dict()

    def shapes(self) -> dict[str, Shape]:
        """Return the shape of every tensor of the original checkpoint."""
        return {name: tuple(tensor.shape) for name, tensor in self.from_port(self.port()).items()}

    @staticmethod
    def original_name(name: str) -> str:
        """Return the original's name of a tensor of the port."""
        return renamed(name, "xclip-lsmdc")

    def matrices(self) -> dict[str, int]:
        """Name the learned square matrices of the similarities, with their size."""
        sides = {"word": self.max_words, "frame": self.max_frames}
        of_each = {
            f"{of}_{name}": n
            for of, n in sides.items()
            for name in ("logit_weight", "mat_weight", "mat_weight2")
        }
        return {"global_mat_weight": self.embed, "local_mat_weight": self.embed, **of_each}

    def to_port(self, name: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Rename, split and transpose an original checkpoint, in float32 (originals mix float16 and float32).

        Raises
        ------
        BackboneError
            Naming the tensors that are missing, unexpected, of another shape or not floating point.
        """
        check_tensors(name, tensors, self.shapes())
        port: dict[str, torch.Tensor] = {}
        for here in self.port():
            original = self.original_name(here)
            value = tensors[original]
            value = value.float().T if original in TRANSPOSED else value.float()
            if third := THIRD.search(here):
                value = value.chunk(3)["qkv".index(third[1])]
            port[here] = value.contiguous()
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
        for here, value in port.items():
            original, third = self.original_name(here), THIRD.search(here)
            if third and third[1] != "q":  # joined with the queries
                continue
            thirds = [port[THIRD.sub(f".{part}_proj.", here)] for part in "qkv"] if third else []
            joined = torch.cat(thirds) if thirds else value
            originals[original] = (joined.T if original in TRANSPOSED else joined).contiguous()
        return originals


def _layers(tensors: Mapping[str, torch.Tensor], prefix: str) -> int:
    block = re.compile(re.escape(prefix) + r"\.resblocks\.(\d+)\.")
    return len({match[1] for key in tensors if (match := block.match(key))})


class XClipLsmdc(nn.Module):
    """The network on the CLIP towers of transformers, with all parameters of the original.

    Its parts can be called one by one. Of the original's choices it has the published ones,
    `sim_header=seqTransf`, `loose_type` and `linear_patch=2d`.
    """

    def __init__(self, size: LsmdcFormat) -> None:
        super().__init__()
        vision: Any = CLIPVisionConfig(
            **self._body(size.vision_width, size.vision_layers, size.embed),
            image_size=size.image,
            patch_size=size.patch,
        )
        text: Any = CLIPTextConfig(
            **self._body(size.text_width, size.text_layers, size.embed),
            max_position_embeddings=size.context,
            vocab_size=size.vocabulary,
            bos_token_id=None,
            pad_token_id=0,
            eos_token_id=2,  # transformers' word for: the sentence is at the largest id, as in the original
        )
        temporal: Any = CLIPTextConfig(
            **self._body(size.embed, size.temporal_layers, size.embed),
            layer_norm_eps=TEMPORAL_EPS,
            bos_token_id=None,
            eos_token_id=None,
        )
        self.vision: Any = CLIPVisionModelWithProjection(vision)
        self.text: Any = CLIPTextModelWithProjection(text)
        self.temporal: Any = CLIPEncoder(temporal)
        self.frame_position_embeddings = nn.Embedding(size.temporal_positions, size.embed)
        self.logit_scale = nn.Parameter(torch.tensor(4.6052))
        for name, extent in size.matrices().items():
            self.register_parameter(name, nn.Parameter(torch.eye(extent)))

    @staticmethod
    def _body(width: int, layers: int, embed: int) -> dict[str, Any]:
        """Return what the configurations of all three transformers have."""
        return {
            "hidden_size": width,
            "intermediate_size": 4 * width,
            "num_hidden_layers": layers,
            "num_attention_heads": width // LsmdcFormat.HEAD_WIDTH,
            "hidden_act": "quick_gelu",
            "attn_implementation": ATTENTION,
            "projection_dim": embed,
        }

    def encode_frames(self, pixels: torch.Tensor) -> torch.Tensor:
        """Embed each frame of `[B, F, 3, h, w]` on its own: v, `[B, F, E]`, not normalised."""
        vectors: torch.Tensor = self.vision(pixel_values=pixels.flatten(0, 1)).image_embeds
        return vectors.view(*pixels.shape[:2], -1).float()

    def relate_frames(self, frames: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Let frames attend to each other: u = transformer(v + position) + v, `[B, F, E]`.

        Parameters
        ----------
        mask
            True where a frame is one, `[B, F]`; None where all are.
        """
        positions = torch.arange(frames.shape[1], device=frames.device)
        bias = None
        if mask is not None:
            bias = ((1.0 - mask.float()) * MASKED)[:, None, None, :].expand(-1, 1, frames.shape[1], -1)
        added = self.frame_position_embeddings(positions)
        x = (frames + added).to(added.dtype)  # weights in bfloat16 need bfloat16 inputs
        related: torch.Tensor = self.temporal(inputs_embeds=x, attention_mask=bias).last_hidden_state
        return related.float() + frames

    @staticmethod
    def video_vector(related: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Average the unit vectors of the frames and make the mean a unit vector, `[B, E]`."""
        unit = normalize(related.float(), dim=-1)
        if mask is None:
            return normalize(unit.mean(dim=1), dim=-1)
        weight = mask.float()[..., None]
        return normalize((unit * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1), dim=-1)

    def encode_text(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Embed captions, ids `[N, W]` padded with 0: sentences `[N, E]` and words `[N, W, E]`, as they come.

        Attention is causal and nothing else: padding takes part, as in the original.
        """
        hidden = self.text.text_model(input_ids=ids).last_hidden_state
        words: torch.Tensor = self.text.text_projection(hidden)
        return words[torch.arange(len(ids), device=ids.device), ids.argmax(dim=1)], words
