"""Read layers of a network in the same pass that gives its vectors.

Each block that is asked for gets a hook that averages its tokens at once over the patches of a moment, so
that only one vector for each moment and layer is held. Only patch tokens are averaged, without class tokens,
registers and tokens that pass messages between frames, so that a layer means the same in every family.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from obygaze_features.backbones.layers import Layers, LayerStack, Order
from obygaze_features.errors import BackboneError


class Depth(NamedTuple):
    """A layer of a network that is read.

    Attributes
    ----------
    number
        Number of the layer, from 1, over all stacks of blocks.
    block
        The module whose output it is.
    norm
        The final normalisation that its tokens go through; None if they stay raw.
    stack
        The blocks to which it belongs.
    meaning
        What its vectors are, for the provenance.
    """

    number: int
    block: nn.Module
    norm: nn.Module | None
    stack: LayerStack
    meaning: str


def layer_groups(depths: Sequence[Depth], layers: Layers) -> dict[str, dict[str, Any]]:
    """Return side group -> provenance fields that differ from the backbone's; each layer is a side group."""
    groups = {}
    for depth in depths:
        arrays = {"pooled": f"{depth.meaning}, of the whole clip"}
        if layers.frames:
            arrays["frames"] = f"{depth.meaning}, of one frame or step in time"
        norm = depth.stack.norm if depth.norm is not None else None
        fields = {"head": None, "layer": str(depth.number), "norm": norm, "arrays": arrays}
        groups[str(depth.number)] = fields
    return groups


def depths_of(model: nn.Module, stacks: Sequence[LayerStack], layers: Layers, where: str) -> list[Depth]:
    """Return the modules of the layers that are to be stored, in order.

    Parameters
    ----------
    model
        The network.
    stacks
        Paths of the lists of blocks in networks of its family.
    layers
        Which layers to store, and whether normalised.
    where
        The network, for messages.

    Raises
    ------
    BackboneError
        If `stacks` is empty, a layer's number is too large, or the final normalisation is wanted and the
        network has none.
    """
    blocks: list[tuple[LayerStack, nn.Module]] = []
    for stack in stacks:
        blocks += [(stack, block) for block in model.get_submodule(stack.blocks).children()]
    if not blocks:
        raise BackboneError(f"{where}: its layers cannot be read here; leave out --layers")
    depths = []
    for number in layers.chosen(len(blocks), where):
        stack, block = blocks[number - 1]
        norm = _norm(model, stack) if layers.norm else None
        if layers.norm and norm is None:
            raise BackboneError(
                f"{where}: it has no final normalisation that fits {stack.unit} {number}; "
                "leave out --layer-norm"
            )
        averaged_over = "positions" if stack.order == "maps" else "patch tokens"
        meaning = f"mean over the {averaged_over} of the output of {stack.unit} {number} of {len(blocks)}"
        if norm is not None:
            meaning += f", after {stack.norm}"
        depths.append(Depth(number, block, norm, stack, meaning))
    return depths


def _norm(model: nn.Module, stack: LayerStack) -> nn.Module | None:
    """Return the final normalisation after a stack of blocks; None if there is none, as in some VideoMAEs."""
    if not stack.norm:
        return None
    owner, _, name = stack.norm.rpartition(".")
    norm = getattr(model.get_submodule(owner), name, None)
    return norm if isinstance(norm, nn.Module) else None


class LayerHooks:
    """Forward hooks that store something of each layer's output until it is fetched.

    Parameters
    ----------
    depths
        The layers.
    keep
        Computes from a layer's tokens what to store.
    """

    def __init__(self, depths: Sequence[Depth], keep: Callable[[Depth, torch.Tensor], torch.Tensor]) -> None:
        """Register a forward hook on every layer."""
        self._kept: dict[int, torch.Tensor] = {}
        for depth in depths:
            depth.block.register_forward_hook(self._hook(depth, keep))

    def take(self, depth: Depth) -> torch.Tensor:
        """Return and drop what was stored of a layer in the last call of the network."""
        return self._kept.pop(depth.number)

    def _hook(self, depth: Depth, keep: Callable[[Depth, torch.Tensor], torch.Tensor]) -> Any:
        """Return the forward hook of a layer, which stores what `keep` computes from its tokens."""

        def hook(_block: nn.Module, _inputs: object, output: Any) -> None:
            """Store what `keep` computes from the layer's tokens, normalised if the layer has a norm."""
            tokens = output[0] if isinstance(output, tuple) else output
            if depth.norm is not None:
                tokens = depth.norm(tokens)
            self._kept[depth.number] = keep(depth, tokens)

        return hook


class WithLayers(nn.Module):
    """A network of clips that also returns vectors of its layers.

    Besides the arrays of the network it returns, for layer 8, `8/pooled`, [D], and perhaps `8/frames`, [S,
    D].

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and returns arrays by name.
    depths
        The layers.
    frames
        Whether to return a vector for each moment too.
    prefix
        Number of tokens before the patch tokens, which are left out.
    n_moments
        Number of moments of a clip, S: its frames, or its steps in time.
    """

    def __init__(
        self, network: nn.Module, depths: Sequence[Depth], *, frames: bool, prefix: int, n_moments: int
    ) -> None:
        """Register hooks, so that a call stores the tokens of each layer averaged over patches."""
        super().__init__()
        self.network = network
        self._depths = depths
        self._frames = frames

        def keep(depth: Depth, tokens: torch.Tensor) -> torch.Tensor:
            """Average a layer's tokens over the patches of each moment."""
            return average_patches(tokens, depth.stack.order, prefix, n_moments)

        self._hooks = LayerHooks(depths, keep)

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`, and add the mean of each layer over a clip and each moment."""
        results = dict(self.network(pixels))
        for depth in self._depths:
            moments = group_by_clip(self._hooks.take(depth), depth.stack.order, len(pixels))
            results[f"{depth.number}/pooled"] = moments.mean(dim=1)
            if self._frames:
                results[f"{depth.number}/frames"] = moments
        return results


def average_patches(tokens: torch.Tensor, order: Order, prefix: int, n_moments: int) -> torch.Tensor:
    """Average the tokens of a layer over the patches of each moment, in float32.

    Parameters
    ----------
    tokens
        `[N, T, D]`, or with several axes of positions in place of T; for the order `maps`, `[N, D, h, w]`.
    order
        What the axes N and T stand for.
    prefix
        Number of tokens before the patch tokens.
    n_moments
        Number of moments of a clip, S.

    Returns
    -------
    torch.Tensor
        For the orders `frames` and `maps`, `[N, D]` with a row for each frame; for `time first` and `place
        first`, `[N, S, D]`; for `clips of places`, the tokens `[N, S, D]` themselves, whose rows are still
        positions.
    """
    if order == "maps":
        return tokens.flatten(2).float().mean(dim=2)
    patches = tokens.flatten(1, -2)[:, prefix:].float()  # [N, patches of all moments, D]
    if order == "frames":
        return patches.mean(dim=1)
    if order == "time first":
        return patches.reshape(len(patches), n_moments, -1, patches.shape[-1]).mean(dim=2)
    if order == "place first":
        return patches.reshape(len(patches), -1, n_moments, patches.shape[-1]).mean(dim=1)
    return patches


def group_by_clip(vectors: torch.Tensor, order: Order, n_clips: int) -> torch.Tensor:
    """Reshape a layer's vectors to one row for each moment of each clip, `[B, S, D]`.

    Parameters
    ----------
    vectors
        What `average_patches` returned for a batch.
    order
        The same order as there.
    n_clips
        Number of clips of the batch, B.
    """
    width = vectors.shape[-1]
    if order in ("frames", "maps"):  # [B S, D]
        return vectors.reshape(n_clips, -1, width)
    if order == "clips of places":  # [B positions, S, D]
        by_clip = vectors.reshape(n_clips, -1, *vectors.shape[1:])
        return by_clip.mean(dim=1)
    return vectors
