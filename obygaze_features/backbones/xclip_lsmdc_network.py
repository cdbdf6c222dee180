"""The LSMDC X-CLIP (Ma et al., ACM MM 2022) on the CLIP towers of transformers: visual half and text half.

Of the original's choices it has `sim_header=seqTransf`, `loose_type` and `linear_patch=2d`, the published
ones.
"""

from typing import Any

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

from obygaze_features.backbones.checkpoint import ATTENTION
from obygaze_features.backbones.xclip_lsmdc_checkpoint import HEAD_WIDTH, Architecture, matrices

TEMPORAL_EPS = 1e-12  # of the layer norms between frames; CLIP's own is 1e-5
MASKED = -1e6


class XClipLsmdc(nn.Module):
    """Every parameter of the original, by parts that can be called one by one."""

    def __init__(self, size: Architecture) -> None:
        super().__init__()
        common: dict[str, Any] = {
            "hidden_act": "quick_gelu",
            "attn_implementation": ATTENTION,
            "projection_dim": size.embed,
        }
        vision: Any = CLIPVisionConfig(
            hidden_size=size.vision_width,
            intermediate_size=4 * size.vision_width,
            num_hidden_layers=size.vision_layers,
            num_attention_heads=size.vision_width // HEAD_WIDTH,
            image_size=size.image,
            patch_size=size.patch,
            **common,
        )
        text: Any = CLIPTextConfig(
            hidden_size=size.text_width,
            intermediate_size=4 * size.text_width,
            num_hidden_layers=size.text_layers,
            num_attention_heads=size.text_width // HEAD_WIDTH,
            max_position_embeddings=size.context,
            vocab_size=size.vocabulary,
            bos_token_id=None,
            pad_token_id=0,
            eos_token_id=2,  # transformers' word for: the sentence is at the largest id, as in the original
            **common,
        )
        temporal: Any = CLIPTextConfig(
            hidden_size=size.embed,
            intermediate_size=4 * size.embed,
            num_hidden_layers=size.temporal_layers,
            num_attention_heads=size.embed // HEAD_WIDTH,
            layer_norm_eps=TEMPORAL_EPS,
            bos_token_id=None,
            eos_token_id=None,
            **common,
        )
        self.vision: Any = CLIPVisionModelWithProjection(vision)
        self.text: Any = CLIPTextModelWithProjection(text)
        self.temporal: Any = CLIPEncoder(temporal)
        self.frame_position_embeddings = nn.Embedding(size.temporal_positions, size.embed)
        self.logit_scale = nn.Parameter(torch.tensor(4.6052))
        for name, extent in matrices(size).items():
            self.register_parameter(name, nn.Parameter(torch.eye(extent)))

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
        places = self.frame_position_embeddings(positions)
        x = (frames + places).to(places.dtype)  # weights in bfloat16 need bfloat16 inputs
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
