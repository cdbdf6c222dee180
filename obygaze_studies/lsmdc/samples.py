"""Choose the training samples (captions with frames of their clips), order them, and read them in batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.frame_cache import CachedClip, FrameCache
from obygaze_studies.lsmdc.lsmdc16 import Caption
from obygaze_studies.lsmdc.step import Batch

N_READERS = 4
"""Number of threads that read the next batches while the network computes."""

N_BATCHES_AHEAD = 2
"""Number of batches that are read ahead."""

NO_VIDEO = "no video of this name"

ORDER_SEED = 0
"""Seed of the order of samples: the default of torch's DistributedSampler, which the original uses."""


@dataclass(frozen=True)
class Pairs:
    """Sentences of one split with their clips; sample i is sentence i in file order.

    Parameters
    ----------
    clip_ids
        `[N]`: clip id of each sentence.
    token_ids
        `[N, W]`: tokens of the sentences.
    cache
        The cache that holds the frames.
    max_frames
        Number of frames that the network takes.
    """

    clip_ids: tuple[str, ...]
    token_ids: NDArray[np.int64]
    cache: FrameCache
    max_frames: int

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.clip_ids)

    def batch(self, samples: Sequence[int]) -> Batch:
        """Read the frames and tokens of some samples."""
        frames, mask = self.read_clips([self.clip_ids[sample] for sample in samples])
        return Batch(frames, mask, torch.from_numpy(self.token_ids[list(samples)]))

    def read_clips(self, clip_ids: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Read the frames of B clips.

        Returns
        -------
        frames, mask
            As in `Batch`: the n frames of all clips, concatenated to uint8 `[n, h, w, 3]`; and bool
            `[B, max_frames]`, which of the places of a clip's frames are filled.
        """
        frames_of_clips = [self.cache.read(clip_id) for clip_id in clip_ids]
        mask = torch.zeros((len(frames_of_clips), self.max_frames), dtype=torch.bool)
        for index, frames in enumerate(frames_of_clips):
            mask[index, : len(frames)] = True
        return torch.from_numpy(np.concatenate(frames_of_clips)), mask

    def batches(self, samples_of_batches: Iterable[Sequence[int]]) -> Iterator[Batch]:
        """Yield batches in order, and read the next ones ahead in threads.

        `samples_of_batches` has the numbers of the samples of each batch.
        """
        with ThreadPoolExecutor(N_READERS) as readers:
            being_read = []  # the results of the threads, in the order of the batches
            for samples in samples_of_batches:
                being_read.append(readers.submit(self.batch, samples))
                if len(being_read) > N_BATCHES_AHEAD:
                    yield being_read.pop(0).result()
            while being_read:
                yield being_read.pop(0).result()


class LeftOut(NamedTuple):
    """A sentence that is left out, or a damaged clip, which is used all the same.

    Attributes
    ----------
    split, line
        Split and line of the sentence; "" for a damaged clip.
    clip_id
        The clip.
    left_out
        "yes" for a sentence, "no" for a damaged clip.
    reason
        Why the sentence is left out, or what is damaged.
    """

    split: str
    line: str
    clip_id: str
    left_out: str
    reason: str


def choose_samples(
    captions: Mapping[str, Sequence[Caption]], entries: Mapping[str, CachedClip]
) -> tuple[dict[str, tuple[Caption, ...]], list[LeftOut]]:
    """Choose the sentences whose clips can be read.

    Parameters
    ----------
    captions
        Split -> its sentences.
    entries
        Clip id -> the cache's record of the clip.

    Returns
    -------
    chosen, rows
        Split -> the chosen sentences; and a row for each other sentence, then one for each damaged clip.

    Raises
    ------
    TrainError
        No sentence of a split has a clip that can be read.
    """
    chosen: dict[str, tuple[Caption, ...]] = {}
    rows: list[LeftOut] = []
    readable = {clip_id for clip_id, entry in entries.items() if entry.frames}
    for split, captions_of_split in captions.items():
        chosen[split] = tuple(caption for caption in captions_of_split if caption.clip_id in readable)
        left_out = [caption for caption in captions_of_split if caption.clip_id not in readable]
        rows += [_row_of_unreadable(split, caption, entries.get(caption.clip_id)) for caption in left_out]
        if not chosen[split]:
            last = f"line {rows[-1].line}, {rows[-1].clip_id}: {rows[-1].reason}"
            raise TrainError(f"not one {split} sentence has a video that can be read ({last})")

    for clip_id in sorted(readable):
        note = entries[clip_id].note
        if note:
            row = LeftOut(split="", line="", clip_id=clip_id, left_out="no", reason=f"damaged: {note}")
            rows.append(row)
    return chosen, rows


def _row_of_unreadable(split: str, caption: Caption, entry: CachedClip | None) -> LeftOut:
    """Make the row of a sentence that is left out, as its clip cannot be read.

    `entry` is the cache's record of the clip; None if there is no video of it.
    """
    reason = f"unreadable: {entry.note}" if entry else NO_VIDEO
    return LeftOut(
        split=split, line=str(caption.line), clip_id=caption.clip_id, left_out="yes", reason=reason
    )


def steps_of_an_epoch(samples: int, batch: int) -> int:
    """Count the full batches of an epoch; the remaining samples are dropped.

    Raises
    ------
    TrainError
        If there is no full batch.
    """
    refuse_too_few_samples(samples, batch)
    return samples // batch


def refuse_too_few_samples(samples: int, batch: int) -> None:
    """Raise a TrainError if there are fewer training samples than one batch has."""
    if samples < batch:
        raise TrainError(
            f"--batch {batch} is more than the {samples} training sentences there are: "
            "not one step could be done"
        )


def epoch_order(samples: int, epoch: int) -> list[int]:
    """Return the order of an epoch's samples, as torch's DistributedSampler shuffles them.

    Step k of the epoch takes the k-th batch of this order. `samples` is their number, and `epoch` is counted
    from 0: each epoch has another order, which is the same in every run.
    """
    generator = torch.Generator().manual_seed(ORDER_SEED + epoch)
    order: list[int] = torch.randperm(samples, generator=generator).tolist()
    return order
