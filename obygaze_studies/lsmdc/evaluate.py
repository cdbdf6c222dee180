"""Score all sentences against all clips of a split, shared between all processes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from obygaze_features.backbones.xclip_lsmdc_network import XClipLsmdc
from obygaze_features.backbones.xclip_lsmdc_scores import similarities
from obygaze_studies.lsmdc.arithmetic import Arithmetic, towers
from obygaze_studies.lsmdc.data import Pairs
from obygaze_studies.lsmdc.processes import Processes
from obygaze_studies.lsmdc.retrieval import measures
from obygaze_studies.lsmdc.step import embed_videos

BLOCK = 64  # sentences and clips that are scored together, as in the original


@torch.no_grad()
def evaluate(
    network: XClipLsmdc,
    pairs: Pairs,
    device: torch.device,
    *,
    processes: Processes,
    arithmetic: Arithmetic,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """Measure retrieval on a split; all processes return the same result.

    Returns
    -------
    As `retrieval.measures`: published measures have one column per sentence, tie-safe ones one per clip.
    """
    clip_ids = list(dict.fromkeys(pairs.clip_ids))
    column = {clip_id: number for number, clip_id in enumerate(clip_ids)}
    own = np.array([column[clip_id] for clip_id in pairs.clip_ids])
    rows = processes.share(len(pairs))
    columns = processes.share(len(clip_ids))
    done, total = 0, len(clip_ids[columns]) + len(pairs.ids[rows])

    def count(items: int) -> None:
        nonlocal done
        done += items
        progress(done, total)

    encoded = []
    for block in _blocks(len(clip_ids[columns])):
        with towers(arithmetic, device):
            read, mask = pairs.clips(clip_ids[columns][block])
            encoded.append(embed_videos(network, read.to(device), mask.to(device)))
        count(len(mask))
    frames, videos = (
        map(torch.cat, zip(*encoded, strict=True)) if encoded else _no_videos(network, pairs, device)
    )
    frames, videos = processes.gather(frames, len(clip_ids)), processes.gather(videos, len(clip_ids))
    scores = torch.zeros((len(pairs), len(clip_ids)), device=device)
    for block in _blocks(len(pairs.ids[rows])):
        with towers(arithmetic, device):
            ids = torch.from_numpy(pairs.ids[rows][block]).to(device)
            sentences, words = (tensor.float() for tensor in network.encode_text(ids))
        for those in _blocks(len(clip_ids)):
            scores[rows.start + block.start : rows.start + block.stop, those] = similarities(
                network, sentences=sentences, words=words, frames=frames[those], videos=videos[those]
            )["logits"]
        count(len(ids))
    processes.add_up([scores])
    return measures(scores.cpu().numpy(), own)


def _no_videos(network: XClipLsmdc, pairs: Pairs, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    embed = network.frame_position_embeddings.embedding_dim
    shape = (0, pairs.max_frames, embed)
    return torch.zeros(shape, device=device), torch.zeros((0, embed), device=device)


def _blocks(items: int) -> Iterator[slice]:
    for start in range(0, items, BLOCK):
        yield slice(start, min(start + BLOCK, items))


def text_to_video_r1(found: dict[str, Any]) -> float:
    """Return the epoch selection criterion: published text-to-video R@1, in percent."""
    value: float = found["published"]["text_to_video"]["R@1"]
    return value
