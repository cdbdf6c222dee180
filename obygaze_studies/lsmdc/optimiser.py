"""Implement the optimiser of X-CLIP's training: BERT's variant of Adam, with four parameter groups.

It has no bias correction, epsilon outside the root, decoupled weight decay multiplied by the rate, and a
linear warm-up with a cosine decay. As in the original, only names with `bias` are exempt from weight decay:
layer norms, logit_scale and the identity matrices decay too.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch

BETA1, BETA2, EPS = 0.9, 0.98, 1e-6
DECAY = 0.2
WARM_UP = 0.1
MAX_NORM = 1.0
LARGEST_SCALE = math.log(100)

FROZEN = (
    "clip.token_embedding.weight",
    "clip.positional_embedding",
    "clip.visual.positional_embedding",
    "clip.visual.class_embedding",
    "clip.visual.conv1.weight",
    "clip.visual.ln_pre.weight",
    "clip.visual.ln_pre.bias",
)
"""What the original freezes (`freeze_layer_num 0`), by its names."""


def is_trained(original: str) -> bool:
    """Return whether a tensor is trained."""
    return original not in FROZEN


def group_of(original: str) -> int:
    """Return a tensor's group: 0 CLIP, 1 other (both decayed); 2 and 3 their biases (not decayed)."""
    return 2 * ("bias" in original) + (not original.startswith("clip."))


def schedule(step: int, total: int) -> float:
    """Return the factor of every rate in step 0, 1, ...: a linear warm-up, then a cosine without restart."""
    x = step / total
    return x / WARM_UP if x < WARM_UP else 0.5 * (1.0 + math.cos(math.pi * x))


@dataclass(frozen=True, slots=True)
class Group:
    """Peak learning rate and weight decay of a parameter group."""

    rate: float
    decay: float


def groups(rate: float, clip_scale: float) -> tuple[Group, Group, Group, Group]:
    """Make the four groups: CLIP's tensors learn at `rate * clip_scale`."""
    clip = rate * clip_scale
    return Group(clip, DECAY), Group(rate, DECAY), Group(clip, 0.0), Group(rate, 0.0)


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
        self, parameters: Mapping[str, torch.Tensor], groups: Mapping[str, Group], total: int
    ) -> None:
        self.parameters = dict(parameters)
        self.groups = {name: groups[name] for name in parameters}
        self.total = total
        self.steps = 0
        self.m = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.v = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        # Taken by several threads, the first root of a process may come from a kernel that is off by
        # thousands of units in the last place (MKL 2024.2, pytorch/pytorch#188792). One number takes one.
        torch.ones(1).sqrt_()

    @torch.no_grad()
    def step(self) -> None:
        """Update every tensor by its gradient."""
        factor = schedule(self.steps, self.total)
        for name, value in self.parameters.items():
            gradient, m, v, group = value.grad, self.m[name], self.v[name], self.groups[name]
            if gradient is None:
                continue
            torch.nn.utils.clip_grad_norm_(value, MAX_NORM)
            m.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            change = m / (v.sqrt() + EPS)
            if group.decay:
                change += group.decay * value
            value.sub_(group.rate * factor * change)
        self.steps += 1


def clip_gradients(parameters: Iterable[torch.Tensor]) -> float:
    """Scale all gradients to a global norm of at most 1; return the norm before scaling."""
    return float(torch.nn.utils.clip_grad_norm_(list(parameters), MAX_NORM))
