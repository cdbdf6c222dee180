"""Take one step of training: similarities, one contrastive loss over chunks and processes, and the optimiser.

The gradient is that of the whole batch, for any number of processes and any chunk size (Gao et al. 2021,
gradient caching): the towers run without gradient, the loss is computed on their gathered outputs, and each
chunk runs again with its share of the loss's gradient. The published code multiplies the gradients of
everything before the gather by 1 / processes; `gather_share` reproduces this.

The optimiser is BERT's variant of Adam, with four parameter groups. It has no bias correction, epsilon
outside the root, decoupled weight decay multiplied by the rate, and a linear warm-up with a cosine decay. As
in the original, only names with `bias` are exempt from weight decay: layer norms, logit_scale and the
identity matrices decay too.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.functional import cross_entropy, normalize

from obygaze_features.arguments import checked
from obygaze_features.backbones import LsmdcFormat, choose_preset
from obygaze_studies.lsmdc.execution import Arithmetic, Processes, tower_precision
from obygaze_studies.lsmdc.lsmdc16 import PUBLISHED

PIXELS = choose_preset("clip", ("clip",)).affine
"""CLIP's normalisation of pixels."""

TEMPERATURE = 0.01
"""Temperature of the attention over similarities."""

BETA1 = 0.9
"""Decay of the optimiser's first moment."""

BETA2 = 0.98
"""Decay of its second moment."""

EPSILON = 1e-6
"""Added to the root of the second moment."""

WEIGHT_DECAY = 0.2
"""Weight decay."""

WARM_UP = 0.1
"""Part of the steps in which the learning rate rises to its peak."""

MAX_NORM = 1.0
"""Norm to which gradients are clipped."""

LARGEST_SCALE = math.log(100)
"""Largest logit_scale, as in CLIP: similarities are multiplied by at most 100."""


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
        """Return the number of pairs."""
        return len(self.ids)

    def part(self, start: int, stop: int) -> "Batch":
        """Return the pairs from `start` to `stop`, exclusive, with the frames of their clips."""
        first = int(self.mask[:start].sum())
        last = int(self.mask[:stop].sum())
        return Batch(self.frames[first:last], self.mask[start:stop], self.ids[start:stop])

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on a device."""
        return Batch(
            frames=self.frames.to(device, non_blocking=True),
            mask=self.mask.to(device, non_blocking=True),
            ids=self.ids.to(device, non_blocking=True),
        )


class PairEmbeddings(NamedTuple):
    """Embeddings of B pairs, float32.

    Attributes
    ----------
    sentences
        `[B, E]`: one vector per caption.
    words
        `[B, W, E]`: one vector per word.
    frames
        `[B, F, E]`: one vector per frame.
    videos
        `[B, E]`: one vector per clip.
    """

    sentences: torch.Tensor
    words: torch.Tensor
    frames: torch.Tensor
    videos: torch.Tensor


def embed(network: Any, batch: Batch, arithmetic: Arithmetic = "float32") -> PairEmbeddings:
    """Run both towers and the temporal transformer of a network, an LSMDC X-CLIP.

    Missing frames are zero after normalisation and pass through CLIP. They are all equal, so CLIP runs on one
    of them only.
    """
    with tower_precision(arithmetic, batch.ids.device):
        frames, videos = embed_videos(network, batch.frames, batch.mask)
        sentences, words = network.encode_text(batch.ids)
    return PairEmbeddings(sentences.float(), words.float(), frames, videos)


def embed_videos(network: Any, frames: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Embed the frames of clips by CLIP, and the clips by the temporal transformer.

    Parameters
    ----------
    network
        The LSMDC X-CLIP.
    frames, mask
        As in `Batch`: the frames that exist, uint8 `[n, h, w, 3]`, and where they belong, `[B, F]`.

    Returns
    -------
    Vectors of the frames, `[B, F, E]`, where a frame that does not exist has that of a black picture; and
    unit vectors of the videos, `[B, E]`.
    """
    scale = torch.tensor(PIXELS.scale, dtype=torch.float64).float().to(mask.device).view(3, 1, 1)
    shift = torch.tensor(PIXELS.shift, dtype=torch.float64).float().to(mask.device).view(3, 1, 1)
    pixels = frames.permute(0, 3, 1, 2).float() * scale + shift
    present = mask.flatten()
    is_short_of_frames = not bool(present.all())
    if is_short_of_frames:
        # `frames` has only the frames that exist; one black picture behind them stands for all others.
        pixels = torch.cat([pixels, pixels.new_zeros((1, *pixels.shape[1:]))])
    vectors = network.encode_frames(pixels[:, None])[:, 0]
    if is_short_of_frames:
        index_if_present = present.cumsum(0) - 1
        index_of_black_picture = len(vectors) - 1
        vectors = vectors[torch.where(present, index_if_present, index_of_black_picture)]
    vectors = vectors.view(*mask.shape, -1)
    return vectors, network.video_vector(network.relate_frames(vectors, mask), mask)


@checked
def similarities(
    network: Any, *, sentences: torch.Tensor, words: torch.Tensor, frames: torch.Tensor, videos: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Score every caption against every video, each score times exp(logit_scale).

    Parameters
    ----------
    network
        The LSMDC X-CLIP, for its matrices.
    sentences, words
        `[N, E]` and `[N, W, E]`, as `encode_text` gives them.
    frames
        v, `[B, F, E]`, as `encode_frames` gives it: the losses use it and not u, and padded frames take part.
    videos
        `[B, E]`, as `video_vector` gives it.

    Returns
    -------
    `video_sentence`, `video_word`, `sentence_frame`, `frame_word` and their mean `logits`, each `[N, B]`.
    """
    sentences = normalize(sentences, dim=-1)
    words = normalize(words, dim=-1)
    frames = normalize(frames, dim=-1)
    by_word = torch.einsum("nwe,be->nbw", words, videos)
    by_frame = torch.einsum("ne,bfe->nbf", sentences, frames)
    fine = torch.einsum("nwe,ed,bfd->nbwf", words, network.local_mat_weight, frames)
    over_words = attend(fine.transpose(2, 3), network.word_mat_weight)
    over_frames = attend(fine, network.frame_mat_weight)
    scores = {
        "video_sentence": sentences @ network.global_mat_weight @ videos.T,
        "video_word": attend(by_word, network.word_logit_weight),
        "sentence_frame": attend(by_frame, network.frame_logit_weight),
        "frame_word": (
            attend(over_words, network.frame_mat_weight2) + attend(over_frames, network.word_mat_weight2)
        )
        / 2,
    }
    scores["logits"] = torch.stack(list(scores.values())).mean(dim=0)
    scale = network.logit_scale.exp()
    return {name: score * scale for name, score in scores.items()}


def attend(similarity: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Sum up the last axis by attention over the similarities: sum_i (softmax(x / 0.01) M)_i x_i."""
    return ((similarity / TEMPERATURE).softmax(dim=-1) @ matrix * similarity).sum(dim=-1)


def contrastive_loss(network: Any, embeddings: PairEmbeddings) -> torch.Tensor:
    """Return the mean of the cross entropies of texts over videos and videos over texts (match: pair i)."""
    logits = similarities(network, **embeddings._asdict())["logits"]
    pairs = torch.arange(len(logits), device=logits.device)
    return (cross_entropy(logits, pairs) + cross_entropy(logits.T, pairs)) / 2


def compute_gradients(
    network: Any,
    size: LsmdcFormat,
    batch: Batch,
    n_items: int,
    *,
    processes: Processes | None = None,
    gather_share: float = 1.0,
    chunk: int | None = None,
    arithmetic: Arithmetic = "float32",
) -> float:
    """Set the gradient of the whole batch in every trained tensor, and return the loss.

    The loss compares all pairs of the batch with each other. So the pairs are embedded chunk by chunk without
    activations, the gradient of the loss by the gathered embeddings is computed, and then each chunk is
    embedded once more to carry this gradient back into the towers.

    Parameters
    ----------
    network
        The LSMDC X-CLIP, whose tensors get the gradients.
    size
        Its format, which names the tensors that are outside the towers.
    batch
        This process's share of the batch (see `Processes.share`).
    n_items
        Number of pairs in the whole batch.
    processes
        The processes that share the batch; by default this one alone.
    gather_share
        Factor of the towers' gradients: 1 for the true gradient, 1/4 for that of the published 4 processes.
    chunk
        Pairs whose activations are held at a time; None: all. It affects rounding only.
    arithmetic
        Numeric precision of the towers.

    Returns
    -------
    The loss of the whole batch, the same in every process. It may be infinite or NaN.
    """
    processes = processes or Processes()
    trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
    for value in trained.values():
        value.grad = None
    chunk_size = chunk or max(len(batch), 1)
    chunks = [batch.part(start, start + chunk_size) for start in range(0, len(batch), chunk_size)]
    # A single chunk is embedded once: its activations are kept. Several are embedded again below.
    is_single = len(chunks) == 1
    with torch.set_grad_enabled(is_single):
        embedded = [embed(network, part, arithmetic) for part in chunks]
    embeddings_here = [torch.cat(tensors) for tensors in zip(*embedded, strict=True)]
    # Embeddings of the whole batch, from which the gradient does not flow into the towers.
    gathered = [processes.gather(value, n_items).requires_grad_() for value in embeddings_here]
    loss = contrastive_loss(network, PairEmbeddings(*gathered))
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not type it
    share = processes.share(n_items)
    gradients = [value.grad[share] for value in gathered if value.grad is not None]
    for number, part in enumerate(chunks):
        with_activations = embedded[0] if is_single else embed(network, part, arithmetic)
        rows = slice(number * chunk_size, number * chunk_size + len(part))
        torch.autograd.backward(with_activations, [gradient[rows] for gradient in gradients])
    # Eight matrices and the scale are used after the embeddings are gathered, so that every process has their
    # whole gradient. That of the towers is the sum over the processes.
    outside = (*size.matrices(), "logit_scale")
    inside = [_gradient(value) for name, value in trained.items() if name not in outside]
    processes.sum_in_place(inside)
    for gradient in inside:
        gradient.mul_(gather_share)
    processes.copy_from_first(_gradient(trained[name]) for name in outside)
    return float(loss.detach())


def _gradient(value: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a tensor, which is set to zero if there is none."""
    if value.grad is None:
        value.grad = torch.zeros_like(value)
    return value.grad


def is_trained(original: str) -> bool:
    """Return whether a tensor, by its name in the original code, is trained; the others are frozen."""
    return original not in PUBLISHED["frozen"]


def schedule(step: int, total: int) -> float:
    """Return the factor of all learning rates in a step: a linear warm-up, then a cosine without restart.

    As in the original, the cosine runs over all steps: it does not begin after the warm-up.
    """
    part_done = step / total
    if part_done < WARM_UP:
        return part_done / WARM_UP
    return 0.5 * (1.0 + math.cos(math.pi * part_done))


class ParameterGroup(NamedTuple):
    """Peak learning rate and weight decay of a parameter group."""

    rate: float
    decay: float


def group_of(original: str, rate: float, clip_scale: float) -> ParameterGroup:
    """Return a tensor's group: CLIP's tensors learn at `rate * clip_scale`, and biases do not decay."""
    peak = rate * clip_scale if original.startswith("clip.") else rate
    return ParameterGroup(peak, 0.0 if "bias" in original else WEIGHT_DECAY)


class BertAdam:
    """BERT's variant of Adam, with its state.

    Each step clips every tensor's gradient to norm 1; m <- .9 m + .1 g; v <- .98 v + .02 g^2;
    d = m / (sqrt(v) + eps) + decay p; p <- p - rate c(t) d. State and arithmetic are in the data type of the
    tensor: in float16 v is 0 for |g| < 1.2e-3, which is part of the published procedure.

    Parameters
    ----------
    parameters
        The trained tensors by name.
    groups
        Name -> group.
    total
        Steps of the whole training, for the schedule.
    """

    def __init__(
        self, parameters: Mapping[str, torch.Tensor], groups: Mapping[str, ParameterGroup], total: int
    ) -> None:
        """Begin before the first step, with all moments zero."""
        self.parameters = dict(parameters)
        self.groups = {name: groups[name] for name in parameters}
        self.total = total
        self.steps = 0  # steps done
        # First and second moments: running means of each tensor's gradient and of its square.
        self.m = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.v = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        # Taken by several threads, the first root of a process may come from a kernel that is off by
        # thousands of units in the last place (MKL 2024.2, pytorch/pytorch#188792). The root of one number is
        # taken by one thread.
        torch.ones(1).sqrt_()

    @torch.no_grad()
    def step(self) -> None:
        """Update every tensor by its gradient."""
        factor = schedule(self.steps, self.total)
        for name, value in self.parameters.items():
            gradient = value.grad
            if gradient is None:
                continue
            m = self.m[name]
            v = self.v[name]
            group = self.groups[name]
            torch.nn.utils.clip_grad_norm_(value, MAX_NORM)
            m.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            change = m / (v.sqrt() + EPSILON)
            if group.decay:
                change += group.decay * value
            value.sub_(group.rate * factor * change)
        self.steps += 1


def clip_gradients(parameters: Iterable[torch.Tensor]) -> float:
    """Scale all gradients to a global norm of at most 1; return the norm before scaling."""
    return float(torch.nn.utils.clip_grad_norm_(list(parameters), MAX_NORM))
