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
        # `frames` has no rows for missing frames: count the existing ones of the clips before.
        first_frame = int(self.mask[:start].sum())
        end_frame = int(self.mask[:stop].sum())
        return Batch(self.frames[first_frame:end_frame], self.mask[start:stop], self.ids[start:stop])

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
    """Run both towers and the temporal transformer of a network, an LSMDC X-CLIP, on a batch of pairs."""
    with tower_precision(arithmetic, batch.ids.device):
        video_embeddings = embed_videos(network, batch.frames, batch.mask)
        sentences, words = network.encode_text(batch.ids)
    return PairEmbeddings(
        sentences=sentences.float(),
        words=words.float(),
        frames=video_embeddings.frames,
        videos=video_embeddings.videos,
    )


class VideoEmbeddings(NamedTuple):
    """Embeddings of B clips.

    Attributes
    ----------
    frames
        `[B, F, E]`: one vector per frame; a frame that does not exist has that of a black picture.
    videos
        `[B, E]`: one unit vector per clip.
    """

    frames: torch.Tensor
    videos: torch.Tensor


def embed_videos(network: Any, frames: torch.Tensor, mask: torch.Tensor) -> VideoEmbeddings:
    """Embed the frames of clips by CLIP, and the clips by the temporal transformer.

    A clip with fewer frames than the network takes is filled up with a picture that is zero after CLIP's
    normalisation, as in the original. This picture passes through CLIP once, for all missing frames.

    Parameters
    ----------
    network
        The LSMDC X-CLIP.
    frames, mask
        As in `Batch`: the frames that exist, uint8 `[n, h, w, 3]`, and where they belong, `[B, F]`.
    """
    pixels = _normalise(frames, mask.device)
    is_present = mask.flatten()  # [B * F]
    if bool(is_present.all()):
        vectors = _encode_pictures(network, pixels)
    else:
        filling = pixels.new_zeros((1, *pixels.shape[1:]))
        vectors_of_pictures = _encode_pictures(network, torch.cat([pixels, filling]))
        # Row of each place of the mask: the k-th existing frame has row k, the filling has the last row.
        row_if_present = is_present.cumsum(0) - 1
        row_of_filling = len(vectors_of_pictures) - 1
        vectors = vectors_of_pictures[torch.where(is_present, row_if_present, row_of_filling)]
    frame_vectors = vectors.view(*mask.shape, -1)  # [B, F, E]
    related_vectors = network.relate_frames(frame_vectors, mask)  # by the temporal transformer
    return VideoEmbeddings(frame_vectors, videos=network.video_vector(related_vectors, mask))


def _normalise(frames: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Normalise frames, uint8 `[n, h, w, 3]`, as CLIP does, to float32 `[n, 3, h, w]`."""
    # The constants are computed in float64 and rounded to float32 once.
    scale = torch.tensor(PIXELS.scale, dtype=torch.float64).float().to(device).view(3, 1, 1)
    shift = torch.tensor(PIXELS.shift, dtype=torch.float64).float().to(device).view(3, 1, 1)
    return frames.permute(0, 3, 1, 2).float() * scale + shift


def _encode_pictures(network: Any, pixels: torch.Tensor) -> torch.Tensor:
    """Embed normalised pictures `[n, 3, h, w]` by CLIP, to `[n, E]`."""
    clips_of_one_frame = pixels.unsqueeze(1)
    vectors: torch.Tensor = network.encode_frames(clips_of_one_frame)[:, 0]
    return vectors


@checked
def similarities(
    network: Any, *, sentences: torch.Tensor, words: torch.Tensor, frames: torch.Tensor, videos: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Score every caption against every video, each score times exp(logit_scale).

    X-CLIP (Ma et al. 2022, section 3) compares texts and videos at four pairs of grains, and each by cosines:
    video with sentence, video with words, sentence with frames, and frames with words. Cosines of several
    words or frames are summed up by attention (`attend`), with a trained matrix of their own.

    Parameters
    ----------
    network
        The LSMDC X-CLIP, for its matrices.
    sentences, words
        `[N, E]` and `[N, W, E]`, as `encode_text` gives them.
    frames
        `[B, F, E]`, as `encode_frames` gives them, before the temporal transformer; padded frames take part.
    videos
        `[B, E]`, as `video_vector` gives it.

    Returns
    -------
    `video_sentence`, `video_word`, `sentence_frame`, `frame_word` and their mean `logits`, each `[N, B]`.
    """
    # In einsum: n sentences, w words, b videos, f frames, e and d the axis of the embeddings.
    sentences = normalize(sentences, dim=-1)
    words = normalize(words, dim=-1)
    frames = normalize(frames, dim=-1)  # `videos` are unit vectors already

    video_sentence = sentences @ network.global_mat_weight @ videos.T

    words_of_video = torch.einsum("nwe,be->nbw", words, videos)
    video_word = attend(words_of_video, network.word_logit_weight)

    frames_of_sentence = torch.einsum("ne,bfe->nbf", sentences, frames)
    sentence_frame = attend(frames_of_sentence, network.frame_logit_weight)

    # Cosines of words and frames are summed up over both, in both orders, and the two results are averaged.
    # `attend` sums up the last axis. Each of the four sums has a matrix of its own, named by the axis that
    # goes: "2" is that of the second sum.
    words_and_frames = torch.einsum("nwe,ed,bfd->nbwf", words, network.local_mat_weight, frames)
    frames_and_words = words_and_frames.transpose(2, 3)  # [N, B, F, W]
    by_frame = attend(frames_and_words, network.word_mat_weight)  # [N, B, F]: words are summed up
    words_first = attend(by_frame, network.frame_mat_weight2)  # [N, B]: then frames
    by_word = attend(words_and_frames, network.frame_mat_weight)  # [N, B, W]: frames are summed up
    frames_first = attend(by_word, network.word_mat_weight2)  # [N, B]: then words
    frame_word = (words_first + frames_first) / 2

    scores = {
        "video_sentence": video_sentence,
        "video_word": video_word,
        "sentence_frame": sentence_frame,
        "frame_word": frame_word,
    }
    scores["logits"] = torch.stack(list(scores.values())).mean(dim=0)
    scale = network.logit_scale.exp()
    return {name: score * scale for name, score in scores.items()}


def attend(similarity: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """Sum up similarities along their last axis, weighted by attention: sum_i (softmax(x / 0.01) M)_i x_i.

    So the largest similarities, such as those of the words that fit a frame best, decide on the sum. Source:
    Ma et al. 2022, attention over similarity matrix.

    Parameters
    ----------
    similarity
        x, `[..., K]`.
    matrix
        M, `[K, K]`; an identity matrix before training.

    Returns
    -------
    `[...]`.
    """
    attention = (similarity / TEMPERATURE).softmax(dim=-1) @ matrix
    return (attention * similarity).sum(dim=-1)


def contrastive_loss(network: Any, embeddings: PairEmbeddings) -> torch.Tensor:
    """Return the symmetric contrastive loss of a batch of pairs, in which caption i belongs to video i.

    It is the mean of two cross entropies: of finding each caption's video among all videos, and each video's
    caption among all captions.
    """
    logits = similarities(network, **embeddings._asdict())["logits"]  # [captions, videos]
    matches = torch.arange(len(logits), device=logits.device)
    loss_of_captions = cross_entropy(logits, matches)
    loss_of_videos = cross_entropy(logits.T, matches)
    return (loss_of_captions + loss_of_videos) / 2


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
    # The activations of a single chunk are kept for the backward pass; those of several would need too much
    # memory, so that each of several chunks is embedded twice.
    holds_activations = len(chunks) == 1
    with torch.set_grad_enabled(holds_activations):
        embeddings_of_chunks = [embed(network, part, arithmetic) for part in chunks]
    result = _differentiate_loss(network, embeddings_of_chunks, n_items, processes)

    for number, part in enumerate(chunks):
        embeddings = embeddings_of_chunks[number]
        if not holds_activations:
            embeddings = embed(network, part, arithmetic)
        first_row = number * chunk_size
        rows = slice(first_row, first_row + len(part))
        torch.autograd.backward(embeddings, [gradient[rows] for gradient in result.gradients])

    _combine_gradients(trained, size, processes, gather_share)
    return float(result.loss)


class _DifferentiatedLoss(NamedTuple):
    """The loss of the whole batch, and its gradients by the embeddings of this process's pairs.

    `gradients` are in the order of the fields of `PairEmbeddings`.
    """

    loss: torch.Tensor
    gradients: list[torch.Tensor]


def _differentiate_loss(
    network: Any, embeddings_of_chunks: Iterable[PairEmbeddings], n_items: int, processes: Processes
) -> _DifferentiatedLoss:
    """Compute the loss of the whole batch, and differentiate it by the embeddings.

    The towers, which computed the embeddings, get no gradient yet: their chunks are too large to be kept, and
    are computed again for it. What scores embeddings (`LsmdcFormat.matrices` and logit_scale) gets its
    gradient here.

    Parameters
    ----------
    network
        The LSMDC X-CLIP.
    embeddings_of_chunks
        Embeddings of this process's pairs, chunk by chunk.
    n_items
        Number of pairs in the whole batch.
    processes
        The processes that share the batch.
    """
    # For each kind of embedding, the chunks of this process as one tensor
    embeddings_here = [torch.cat(tensors) for tensors in zip(*embeddings_of_chunks, strict=True)]
    # The gathered embeddings do not know how they were computed: the backward pass ends at them.
    gathered = [processes.gather(value, n_items).requires_grad_() for value in embeddings_here]
    loss = contrastive_loss(network, PairEmbeddings(*gathered))
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not type it
    # Of the gradients by the embeddings of the whole batch, those of this process's pairs
    pairs_here = processes.share(n_items)
    gradients = [value.grad[pairs_here] for value in gathered if value.grad is not None]
    return _DifferentiatedLoss(loss.detach(), gradients)


def _combine_gradients(
    trained: Mapping[str, torch.Tensor], size: LsmdcFormat, processes: Processes, gather_share: float
) -> None:
    """Give all processes the gradient of the whole batch, in place.

    Each process computes embeddings of its part of the batch, by two towers. Then all embeddings are gathered
    in every process, and scored there by matrices and a scale. So two kinds of tensors are treated apart:

    - the towers: a process has the gradient of its part, and the whole gradient is the sum over processes.
      The published code divides it by the number of processes, which `gather_share` reproduces;
    - the matrices and the scale: every process has their whole gradient already.

    Parameters
    ----------
    trained
        The trained tensors by name, whose gradients are changed.
    size, processes, gather_share
        As in `compute_gradients`.
    """
    names_after_gather = (*size.matrices(), "logit_scale")
    gradients_of_towers = [
        _gradient(value) for name, value in trained.items() if name not in names_after_gather
    ]
    processes.sum_in_place(gradients_of_towers)
    for gradient in gradients_of_towers:
        gradient.mul_(gather_share)
    # All take the gradients of the first process: those of others may differ by rounding, and the processes
    # would drift apart.
    processes.copy_from_first(_gradient(trained[name]) for name in names_after_gather)


def _gradient(value: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a tensor; one without a gradient first gets one of zeros."""
    if value.grad is None:
        value.grad = torch.zeros_like(value)
    return value.grad


def is_trained(original_name: str) -> bool:
    """Return whether a tensor is trained, by its name in the original code, which freezes some layers."""
    return original_name not in PUBLISHED["frozen"]


def schedule(step: int, total: int) -> float:
    """Return the factor by which all learning rates are multiplied in a step: linear warm-up, then a cosine.

    As in the original, the cosine is counted from step 0 and not from the end of the warm-up, so that the
    factor falls from 1 to 0.98 where the warm-up ends.
    """
    part_done = step / total
    if part_done < WARM_UP:
        return part_done / WARM_UP
    return 0.5 * (1.0 + math.cos(math.pi * part_done))


class ParameterGroup(NamedTuple):
    """Peak learning rate and weight decay of a parameter group."""

    rate: float
    decay: float


def group_of(original_name: str, rate: float, clip_scale: float) -> ParameterGroup:
    """Return the group of a tensor, by its name in the original code.

    CLIP's tensors learn at `rate * clip_scale`, all others at `rate`. Biases do not decay.
    """
    is_of_clip = original_name.startswith("clip.")
    is_bias = "bias" in original_name
    return ParameterGroup(
        rate=rate * clip_scale if is_of_clip else rate, decay=0.0 if is_bias else WEIGHT_DECAY
    )


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
        """Begin before the first step, with all moments zero; the class describes the parameters."""
        self.parameters = dict(parameters)
        self.groups = {name: groups[name] for name in parameters}
        self.total = total
        self.steps = 0  # steps done
        # First and second moments: running means of each tensor's gradient and of its square.
        self.m = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.v = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        # Take a first square root in one thread (that of one number) before `step` takes any in several: if a
        # process's first root is taken by several threads, MKL 2024.2 may choose a kernel that is off by
        # thousands of units in the last place (pytorch/pytorch#188792).
        torch.ones(1).sqrt_()

    @torch.no_grad()
    def step(self) -> None:
        """Update every tensor by its gradient, without bias correction of the moments.

        As in the original, each tensor's gradient is clipped here, after the clipping of all gradients
        together (`clip_gradients`).
        """
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
