"""Compute the gradient of one step: one contrastive loss over chunks and processes.

The gradient is that of the whole batch, for any number of processes and any chunk size (Gao et al. 2021,
gradient caching): the towers run without gradient, the loss is computed on their gathered outputs, and each
chunk runs again with its share of the loss's gradient. The published code multiplies the gradients of
everything before the gather by 1 / processes; `gather_share` reproduces this.
"""

from dataclasses import dataclass, fields

import torch
from torch.nn.functional import cross_entropy

from obygaze_features.backbones.presets import OPENAI
from obygaze_features.backbones.xclip_lsmdc_checkpoint import Architecture, matrices
from obygaze_features.backbones.xclip_lsmdc_network import XClipLsmdc
from obygaze_features.backbones.xclip_lsmdc_scores import similarities
from obygaze_studies.lsmdc.arithmetic import Arithmetic, towers
from obygaze_studies.lsmdc.processes import Processes


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs of a clip and a caption.

    Parameters
    ----------
    frames
        uint8 `[n, h, w, 3]`: the existing frames of all clips, concatenated.
    mask
        `[B, F]`: True where a clip has a frame; its `n` True values are `frames` in order.
    ids
        `[B, W]`: tokens of the captions, padded with 0.
    """

    frames: torch.Tensor
    mask: torch.Tensor
    ids: torch.Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> "Batch":
        """Return pairs `start` to `stop`."""
        first, last = int(self.mask[:start].sum()), int(self.mask[:stop].sum())
        return Batch(self.frames[first:last], self.mask[start:stop], self.ids[start:stop])

    def to(self, device: torch.device) -> "Batch":
        """Move the batch to the device."""
        moved = (getattr(self, field.name).to(device, non_blocking=True) for field in fields(self))
        return Batch(*moved)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Embeddings of B pairs, float32: `[B, E]`, `[B, W, E]`, `[B, F, E]`, `[B, E]`."""

    sentences: torch.Tensor
    words: torch.Tensor
    frames: torch.Tensor
    videos: torch.Tensor

    def parts(self) -> tuple[torch.Tensor, ...]:
        """Return the four tensors in order."""
        return self.sentences, self.words, self.frames, self.videos


def embed(network: XClipLsmdc, batch: Batch, arithmetic: Arithmetic = "float32") -> Embeddings:
    """Run both towers and the temporal transformer.

    Missing frames are zero after normalisation and pass through CLIP. They are all equal, so CLIP runs on one
    of them only.
    """
    with towers(arithmetic, batch.ids.device):
        frames, videos = embed_videos(network, batch.frames, batch.mask)
        sentences, words = network.encode_text(batch.ids)
    return Embeddings(sentences.float(), words.float(), frames, videos)


def embed_videos(
    network: XClipLsmdc, frames: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Embed clips, frames and mask as in `Batch`: v `[B, F, E]`, and unit video vectors `[B, E]`."""
    scale, shift = (
        torch.tensor(values, dtype=torch.float64).float().to(mask.device).view(3, 1, 1)
        for values in (OPENAI.scale, OPENAI.shift)
    )
    pixels = frames.permute(0, 3, 1, 2).float() * scale + shift
    there = mask.flatten()
    missing = not bool(there.all())
    if missing:
        pixels = torch.cat([pixels, pixels.new_zeros((1, *pixels.shape[1:]))])
    vectors = network.encode_frames(pixels[:, None])[:, 0]
    if missing:
        vectors = vectors[torch.where(there, there.cumsum(0) - 1, len(vectors) - 1)]
    vectors = vectors.view(*mask.shape, -1)
    return vectors, network.video_vector(network.relate_frames(vectors, mask), mask)


def contrastive_loss(network: XClipLsmdc, embeddings: Embeddings) -> torch.Tensor:
    """Return the mean of the cross entropies of texts over videos and videos over texts (match: pair i)."""
    s, w, f, v = embeddings.parts()
    logits = similarities(network, sentences=s, words=w, frames=f, videos=v)["logits"]
    pairs = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, pairs) + cross_entropy(logits.T, pairs)) / 2


def after_the_gather(size: Architecture) -> tuple[str, ...]:
    """Return the names of the port's tensors that act after the gather: eight matrices and logit_scale."""
    return (*matrices(size), "logit_scale")


def compute_gradients(
    network: XClipLsmdc,
    size: Architecture,
    batch: Batch,
    items: int,
    *,
    processes: Processes | None = None,
    gather_share: float = 1.0,
    chunk: int | None = None,
    arithmetic: Arithmetic = "float32",
) -> float:
    """Set the gradient of the whole batch in every trained tensor, and return the loss.

    Parameters
    ----------
    batch
        This process's share of the batch (see `Processes.share`).
    items
        Number of pairs in the whole batch.
    gather_share
        Factor of the towers' gradients: 1 for the true gradient, 1/4 for that of the published 4 processes.
    chunk
        Pairs whose activations are held at a time; None: all. It affects rounding only.

    Returns
    -------
    The loss of the whole batch, the same in every process. It may be infinite or NaN.
    """
    processes = processes or Processes()
    trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
    for value in trained.values():
        value.grad = None
    step = chunk or max(len(batch), 1)
    chunks = [batch.part(start, start + step) for start in range(0, len(batch), step)]
    with torch.set_grad_enabled(len(chunks) == 1):  # with one chunk, activations are kept and computed once
        made = [embed(network, part, arithmetic) for part in chunks]
    local = [torch.cat(tensors) for tensors in zip(*(each.parts() for each in made), strict=True)]
    if not local:
        local = _nothing(size, batch)
    leaves = [processes.gather(value, items).requires_grad_() for value in local]
    loss = contrastive_loss(network, Embeddings(*leaves))
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not type it
    mine = processes.share(items)
    wanted = [leaf.grad[mine] for leaf in leaves if leaf.grad is not None]
    for number, part in enumerate(chunks):
        again = made[0] if len(chunks) == 1 else embed(network, part, arithmetic)
        rows = slice(number * step, number * step + len(part))
        torch.autograd.backward(again.parts(), [gradient[rows] for gradient in wanted])
    outside = after_the_gather(size)
    inside = [_gradient(value) for name, value in trained.items() if name not in outside]
    processes.add_up(inside)
    for gradient in inside:
        gradient.mul_(gather_share)
    processes.take_first(_gradient(trained[name]) for name in outside)
    return float(loss.detach())


def _nothing(size: Architecture, batch: Batch) -> list[torch.Tensor]:
    """Return the empty embeddings of a process whose share of a small batch is empty."""
    shapes = ((), (size.max_words,), (size.max_frames,), ())
    return [torch.zeros((0, *shape, size.embed), device=batch.ids.device) for shape in shapes]


def _gradient(value: torch.Tensor) -> torch.Tensor:
    if value.grad is None:
        value.grad = torch.zeros_like(value)
    return value.grad
