"""Order the samples of an epoch."""

import torch

from obygaze_studies.errors import TrainError

ORDER_SEED = 0  # default of torch's DistributedSampler, which the original keeps


def steps_of_an_epoch(samples: int, batch: int) -> int:
    """Count the full batches of an epoch; the remaining samples are dropped.

    Raises
    ------
    TrainError
        If there is no full batch.
    """
    if samples < batch:
        raise TrainError(
            f"--batch {batch} is more than the {samples} training sentences there are: "
            "not one step could be done"
        )
    return samples // batch


def epoch_order(samples: int, epoch: int) -> list[int]:
    """Permute an epoch's samples as torch's DistributedSampler does; step k takes the k-th batch."""
    generator = torch.Generator().manual_seed(ORDER_SEED + epoch)
    order: list[int] = torch.randperm(samples, generator=generator).tolist()
    return order
