"""Define the LSMDC X-CLIP (Ma et al. 2022), `XClipLsmdc`, and convert its published checkpoints.

The *original* is the published code, whose checkpoints have its names of tensors. The *port* is `XClipLsmdc`,
the same network on the CLIP of transformers, with other names.

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
TEMPORAL_EPS = 1e-12
"""Epsilon of the layer norms between frames; that of CLIP is 1e-5."""
MASKED_BIAS = -1e6
"""What is added to the attention to a row that is no frame."""
TRANSPOSED = ("clip.visual.proj", "clip.text_projection")
"""Matrices that the original multiplies from the other side."""
THIRD_OF_TENSOR = re.compile(r"\.([qkv])_proj\.")
"""Queries, keys and values, which are thirds of one tensor in the original."""


SIZES: dict[str, tuple[str, int]] = TABLES["sizes"]["xclip-lsmdc"]
"""Size -> the original's tensor, and the axis of it whose length is that size.

The one for `image` has a position for each patch of a picture and one for the class token.
"""


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
        """Read the sizes of a network from the shapes of the tensors of its checkpoint.

        `SIZES` says of each size, such as `embed`, which tensor has an axis of that length.

        Parameters
        ----------
        name
            The weights, for messages.
        tensors
            The tensors of a checkpoint in the original's format.

        Raises
        ------
        BackboneError
            If a tensor that shows a size is missing or has too few axes, or if a width is no multiple of the
            width of an attention head.
        """
        # Tensors that cannot show a size
        missing = []
        too_few_axes = []
        for key, axis in SIZES.values():
            if key not in tensors:
                missing.append(key)
            elif tensors[key].ndim <= axis:
                too_few_axes.append(key)
        check_keys(name, missing=missing, unexpected=[], mismatched=too_few_axes)  # raises if there are any

        sizes = {size: tensors[key].shape[axis] for size, (key, axis) in SIZES.items()}

        # Every transformer divides its width among attention heads of the same width.
        widths = [sizes[size] for size in ("vision_width", "text_width", "embed")]
        have_whole_heads = all(width % cls.HEAD_WIDTH == 0 for width in widths)
        if 0 in sizes.values() or not have_whole_heads:
            raise BackboneError(
                f"{name}: widths {widths} and patches of {sizes['patch']}: "
                f"these are no CLIP with heads of {cls.HEAD_WIDTH}"
            )

        # No tensor shows the side of a picture (`image`). The one that `SIZES` names for it has a row for
        # each token of a picture: the class token, and the patches of a square.
        n_tokens = sizes.pop("image")
        n_patches = n_tokens - 1
        patches_per_side = round(n_patches**0.5)
        return cls(
            **sizes,
            image=sizes["patch"] * patches_per_side,
            vision_layers=_layers(tensors, "clip.visual.transformer"),
            text_layers=_layers(tensors, "clip.transformer"),
            temporal_layers=_layers(tensors, "transformerClip"),
        )

    def record(self) -> dict[str, Any]:
        """Return the network's type and sizes as plain JSON, for the provenance."""
        return {
            "type": "xclip-lsmdc",
            **asdict(self),
            "temporal": "seqTransf",  # the published name of a transformer between frames
            "temporal_norm_eps": TEMPORAL_EPS,  # of its layer norms
        }

    def port(self) -> dict[str, torch.Tensor]:
        """Return the tensors of `XClipLsmdc` (the port) with these sizes: names, types and shapes, no values.

        They are on PyTorch's meta device, which takes no memory for values.
        """
        with torch.device("meta"):
            return XClipLsmdc(self).state_dict()

    def shapes(self) -> dict[str, Shape]:
        """Return name -> shape of every tensor that a published checkpoint of these sizes has.

        They follow from the tensors of our network (the port, `XClipLsmdc`), which `from_port` converts: it
        has other names, splits the original's queries, keys and values, and some matrices are transposed.
        """
        tensors_of_port = self.port()  # without values: only shapes are needed
        original_tensors = self.from_port(tensors_of_port)
        return {name: tuple(tensor.shape) for name, tensor in original_tensors.items()}

    @staticmethod
    def original_name(name: str) -> str:
        """Translate the name of a tensor of `XClipLsmdc` to its name in published checkpoints.

        The rules are in `networks.toml`, under the name of this network.
        """
        return renamed(name, "xclip-lsmdc")

    def matrices(self) -> dict[str, int]:
        """Return the learned square matrices of the similarity scores: name -> length of a side."""
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
        """Convert the tensors of a published checkpoint to those of `XClipLsmdc` (the port), in float32.

        Names and some axes change. The tensor of queries, keys and values is split into thirds.

        Parameters
        ----------
        name
            The weights, for messages.
        tensors
            Tensors by the original's names, in float16 or float32.

        Raises
        ------
        BackboneError
            Naming the tensors that are missing, unexpected, of another shape or not floating point.
        """
        check_tensors(name, tensors, self.shapes())
        port: dict[str, torch.Tensor] = {}
        for port_name in self.port():
            original = self.original_name(port_name)
            value = tensors[original].float()
            if original in TRANSPOSED:  # the original multiplies this matrix from the other side
                value = value.T
            third = THIRD_OF_TENSOR.search(port_name)  # "q", "k" or "v"; None for other tensors
            if third is not None:
                queries, keys, values = value.chunk(3)
                value = {"q": queries, "k": keys, "v": values}[third[1]]
            port[port_name] = value.contiguous()
        return port

    def from_port(self, port: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Convert tensors of `XClipLsmdc` (the port) to those of a published checkpoint; data types stay.

        Parameters
        ----------
        port
            Tensors by the port's names. They may be only some of the network's, such as the gradients of the
            trained tensors, or those of its CLIP: then only the originals of these are returned.
        """
        originals: dict[str, torch.Tensor] = {}
        for port_name in port:
            third = THIRD_OF_TENSOR.search(port_name)  # "q", "k" or "v"; None for other tensors
            if third is None:
                value = port[port_name]
            elif third[1] == "q":
                # The original has queries, keys and values in one tensor, in this order.
                names = [THIRD_OF_TENSOR.sub(f".{part}_proj.", port_name) for part in "qkv"]
                value = torch.cat([port[name] for name in names])
            else:  # keys and values were joined to their queries already
                continue
            original = self.original_name(port_name)
            if original in TRANSPOSED:  # the original multiplies this matrix from the other side
                value = value.T
            originals[original] = value.contiguous()
        return originals


def _layers(tensors: Mapping[str, torch.Tensor], prefix: str) -> int:
    """Count the layers of one transformer of a published checkpoint, by the names of its tensors.

    The tensors of its layer 3, for example, are called `PREFIX.resblocks.3.` and more.
    """
    pattern = re.compile(re.escape(prefix) + r"\.resblocks\.(\d+)\.")
    numbers = set()
    for name in tensors:
        match = pattern.match(name)
        if match is not None:
            numbers.add(match[1])
    return len(numbers)


class XClipLsmdc(nn.Module):
    """The network on the CLIP towers of transformers, with all parameters of the original.

    Its parts can be called one by one. Of the original's choices it has the published ones,
    `sim_header=seqTransf`, `loose_type` and `linear_patch=2d`.
    """

    def __init__(self, size: LsmdcFormat) -> None:
        """Build the vision, text and temporal transformers of this size, with untrained weights.

        The temporal transformer relates the frames of a clip.
        """
        super().__init__()
        vision: Any = CLIPVisionConfig(
            **self._shared_fields(size.vision_width, size.vision_layers, size.embed),
            image_size=size.image,
            patch_size=size.patch,
        )
        text: Any = CLIPTextConfig(
            **self._shared_fields(size.text_width, size.text_layers, size.embed),
            max_position_embeddings=size.context,
            vocab_size=size.vocabulary,
            bos_token_id=None,
            pad_token_id=0,
            # 2 makes transformers read a sentence at its largest token, as the original does.
            eos_token_id=2,
        )
        temporal: Any = CLIPTextConfig(
            **self._shared_fields(size.embed, size.temporal_layers, size.embed),
            layer_norm_eps=TEMPORAL_EPS,
            bos_token_id=None,
            eos_token_id=None,
        )
        self.vision: Any = CLIPVisionModelWithProjection(vision)
        self.text: Any = CLIPTextModelWithProjection(text)
        self.temporal: Any = CLIPEncoder(temporal)
        self.frame_position_embeddings = nn.Embedding(size.temporal_positions, size.embed)
        self.logit_scale = nn.Parameter(torch.tensor(4.6052))  # log(100), CLIP's largest
        # The matrices of the similarity scores are in the checkpoint, but no method here needs them.
        for name, side in size.matrices().items():
            self.register_parameter(name, nn.Parameter(torch.eye(side)))

    @staticmethod
    def _shared_fields(width: int, layers: int, embed: int) -> dict[str, Any]:
        """Return the fields that the configurations of all three transformers share.

        Parameters
        ----------
        width, layers
            Width and number of layers of the transformer.
        embed
            Width of the space that pictures and texts share.
        """
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
        """Encode each frame alone, from pixels `[B, F, 3, h, w]` to vectors `[B, F, E]`, not normalised.

        E is the width of the space that pictures and texts share. The paper calls these vectors v.
        """
        images = pixels.flatten(0, 1)  # [B F, 3, h, w]
        vectors: torch.Tensor = self.vision(pixel_values=images).image_embeds
        return vectors.view(*pixels.shape[:2], -1).float()

    def relate_frames(self, frames: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Let the frames of each clip attend to each other; return their new vectors, `[B, F, E]`.

        In the paper, u = transformer(v + position) + v.

        Parameters
        ----------
        frames
            Vectors of single frames, v in the paper, `[B, F, E]`.
        mask
            Which rows are frames, bool `[B, F]`: short clips are filled up with others, which no frame
            attends to. None if all are frames.
        """
        n_frames = frames.shape[1]
        attention_bias = None  # [B, 1, F, F]
        if mask is not None:
            # 0 for a frame, else so negative that the softmax of the attention makes it 0; [B, F]
            bias_of_frame = (1.0 - mask.float()) * MASKED_BIAS
            attention_bias = bias_of_frame[:, None, None, :].expand(-1, 1, n_frames, -1)
        positions = self.frame_position_embeddings(torch.arange(n_frames, device=frames.device))
        inputs = (frames + positions).to(positions.dtype)  # weights in bfloat16 need bfloat16 inputs
        output = self.temporal(inputs_embeds=inputs, attention_mask=attention_bias)
        related: torch.Tensor = output.last_hidden_state
        return related.float() + frames

    @staticmethod
    def video_vector(related: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Average the vectors of frames, each of length 1, to a video vector of length 1, `[B, E]`.

        Parameters
        ----------
        related
            Vectors of frames, `[B, F, E]`, as `relate_frames` returns them.
        mask
            Which rows are frames, bool `[B, F]`; None if all are.
        """
        unit_vectors = normalize(related.float(), dim=-1)
        if mask is None:
            return normalize(unit_vectors.mean(dim=1), dim=-1)
        weight = mask.float()[..., None]  # 1 for a frame, else 0
        n_frames = weight.sum(dim=1).clamp(min=1)
        mean = (unit_vectors * weight).sum(dim=1) / n_frames
        return normalize(mean, dim=-1)

    def encode_text(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode captions; return a vector for each, `[N, E]`, and one for each of its tokens, `[N, W, E]`.

        They are not normalised. A token attends to all tokens before it, and padding is not masked, as in the
        original.

        Parameters
        ----------
        ids
            Token ids of the captions, `[N, W]`, padded with 0.
        """
        hidden = self.text.text_model(input_ids=ids).last_hidden_state
        words: torch.Tensor = self.text.text_projection(hidden)
        end_positions = ids.argmax(dim=1)  # [N]; the end token has the largest id
        rows = torch.arange(len(ids), device=ids.device)
        sentences = words[rows, end_positions]
        return sentences, words
