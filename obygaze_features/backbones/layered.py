"""Read layers of a network in the same pass that gives its vectors.

Each block that is asked for gets a hook that averages its tokens at once over the patches of a time step (a
frame, or the few frames that a token spans), so that only one vector for each time step and layer is held.
Only patch tokens are averaged, without class tokens, registers and tokens that pass messages between frames,
so that a layer means the same in every family.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from obygaze_features.backbones.layers import Layers, LayerStack, Order
from obygaze_features.errors import BackboneError


class StoredLayer(NamedTuple):
    """A layer of a network whose vectors are stored.

    Attributes
    ----------
    number
        Number of the layer, from 1, over all stacks of blocks.
    block
        The module whose output it is.
    final_norm
        The network's final normalisation, which is applied to its tokens; None if they stay raw.
    stack
        The blocks to which it belongs.
    meaning
        What its vectors are, for the provenance.
    """

    number: int
    block: nn.Module
    final_norm: nn.Module | None
    stack: LayerStack
    meaning: str


def layer_group_fields(layers: Sequence[StoredLayer], *, with_frames: bool) -> dict[str, dict[str, Any]]:
    """Return the provenance fields of the groups in which a network's layers are stored: group -> fields.

    Only the fields that differ from those of the network's main group are returned:

    - `head`: what the network applies to its output, which is nothing (None) for a layer;
    - `layer`: the number of the layer;
    - `norm`: name of the network's final normalisation, if the layer's tokens went through it, else None;
    - `arrays`: what each array of the group holds.

    Parameters
    ----------
    layers
        The layers, each of which is a side group of its own, called by its number.
    with_frames
        Whether a group has a vector for each frame, or time step, besides that of the clip.
    """
    fields_of_groups = {}
    for layer in layers:
        arrays = {"pooled": f"{layer.meaning}, of the whole clip"}
        if with_frames:
            arrays["frames"] = f"{layer.meaning}, of one frame or step in time"
        is_normalised = layer.final_norm is not None
        group = str(layer.number)
        fields_of_groups[group] = {
            "head": None,
            "layer": str(layer.number),
            "norm": layer.stack.norm if is_normalised else None,
            "arrays": arrays,
        }
    return fields_of_groups


def find_layers(
    model: nn.Module, stacks: Sequence[LayerStack], wanted: Layers, network_name: str
) -> list[StoredLayer]:
    """Find the modules of the layers that are to be stored, in the order of their numbers.

    Parameters
    ----------
    model
        The network.
    stacks
        Where networks of its family have their blocks.
    wanted
        Which layers to store, and whether normalised.
    network_name
        The network, for messages.

    Raises
    ------
    BackboneError
        If `stacks` is empty, a layer's number is too large, or the final normalisation is wanted and the
        network has none.
    """
    # All blocks of the network in the order in which they run, each with the stack that it is in.
    blocks: list[tuple[LayerStack, nn.Module]] = []
    for stack in stacks:
        blocks += [(stack, block) for block in model.get_submodule(stack.blocks).children()]
    if not blocks:
        raise BackboneError(f"{network_name}: its layers cannot be read here; leave out --layers")

    layers = []
    for number in wanted.chosen(len(blocks), network_name):
        stack, block = blocks[number - 1]
        final_norm = _final_norm(model, stack) if wanted.norm else None
        if wanted.norm and final_norm is None:
            raise BackboneError(
                f"{network_name}: it has no final normalisation that fits {stack.unit} {number}; "
                "leave out --layer-norm"
            )
        averaged_over = "positions" if stack.order == "maps" else "patch tokens"
        meaning = f"mean over the {averaged_over} of the output of {stack.unit} {number} of {len(blocks)}"
        if final_norm is not None:
            meaning += f", after {stack.norm}"
        layers.append(StoredLayer(number, block, final_norm, stack, meaning))
    return layers


def _final_norm(model: nn.Module, stack: LayerStack) -> nn.Module | None:
    """Return the normalisation that a network applies after the last of its blocks; None if it has none.

    Some VideoMAEs lack the one that their stack names.
    """
    if not stack.norm:
        return None
    owner_path, _, name = stack.norm.rpartition(".")
    norm = getattr(model.get_submodule(owner_path), name, None)
    return norm if isinstance(norm, nn.Module) else None


class LayerHooks:
    """Forward hooks that store a result for each layer until it is fetched.

    Parameters
    ----------
    layers
        The layers.
    reduce
        Computes the result that is stored, from a layer and its tokens.
    """

    def __init__(
        self, layers: Sequence[StoredLayer], reduce: Callable[[StoredLayer, torch.Tensor], torch.Tensor]
    ) -> None:
        """Register a forward hook on the block of every layer."""
        self._reduce = reduce
        self._results: dict[int, torch.Tensor] = {}
        for layer in layers:
            layer.block.register_forward_hook(self._hook(layer))

    def take(self, layer: StoredLayer) -> torch.Tensor:
        """Return what a layer gave in the last call of the network, and drop it."""
        return self._results.pop(layer.number)

    def _hook(self, layer: StoredLayer) -> Any:
        """Return the forward hook of a layer, in the form that torch calls."""

        def hook(_block: nn.Module, _inputs: object, output: Any) -> None:
            """Store the result of the layer's tokens, which are normalised first if that is wanted."""
            tokens = output[0] if isinstance(output, tuple) else output
            if layer.final_norm is not None:
                tokens = layer.final_norm(tokens)
            self._results[layer.number] = self._reduce(layer, tokens)

        return hook


class WithLayers(nn.Module):
    """A network of clips that also returns vectors of its layers.

    Besides the arrays of the network it returns, for layer 8, `8/pooled` [B, D], and `8/frames` [B, S, D] if
    `with_frames`.

    Parameters
    ----------
    network
        Takes clips `[B, F, 3, h, w]`, and returns arrays by name.
    layers
        The layers.
    with_frames
        Whether to return a vector for each time step too.
    n_prefix_tokens
        Number of tokens before the patch tokens, such as a class token, which are left out.
    n_time_steps
        Number of time steps of a clip, S: its frames, or fewer where a token spans several frames.
    """

    def __init__(
        self,
        network: nn.Module,
        layers: Sequence[StoredLayer],
        *,
        with_frames: bool,
        n_prefix_tokens: int,
        n_time_steps: int,
    ) -> None:
        """Register hooks, so that a call stores the tokens of each layer averaged over patches."""
        super().__init__()
        self.network = network
        self._layers = layers
        self._with_frames = with_frames
        self._n_prefix_tokens = n_prefix_tokens
        self._n_time_steps = n_time_steps
        self._hooks = LayerHooks(layers, self._average)

    def _average(self, layer: StoredLayer, tokens: torch.Tensor) -> torch.Tensor:
        """Average a layer's tokens over the patches of each time step; the hooks of the layers call this."""
        return average_patches(tokens, layer.stack.order, self._n_prefix_tokens, self._n_time_steps)

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`, and add the mean of each layer over a clip.

        Of layer 8 it is `8/pooled` [B, D]. With `with_frames`, the mean over each of S time steps is added
        too, `8/frames` [B, S, D].
        """
        results = dict(self.network(pixels))
        for layer in self._layers:
            averages = self._hooks.take(layer)
            by_time_step = group_by_clip(averages, layer.stack.order, len(pixels))  # [B, S, D]
            results[f"{layer.number}/pooled"] = by_time_step.mean(dim=1)
            if self._with_frames:
                results[f"{layer.number}/frames"] = by_time_step
        return results


def average_patches(
    tokens: torch.Tensor, order: Order, n_prefix_tokens: int, n_time_steps: int
) -> torch.Tensor:
    """Average the tokens of a layer over the patches of each time step, in float32.

    The shapes of tokens and result depend on the order of the tokens. For B clips of S time steps (frames, or
    the few frames that a token spans) and P positions of patches they are:

    ================  ===========================================  ============
    order             tokens                                       result
    ================  ===========================================  ============
    `frames`          [B S, P, D]                                  [B S, D]
    `maps`            [B S, D, h, w]                               [B S, D]
    `time first`      [B, S P, D], one time step after the other   [B, S, D]
    `position first`  [B, P S, D], one position after the other    [B, S, D]
    `positions`       [B P, S, D]                                  [B P, S, D]
    ================  ===========================================  ============

    The positions of the last order lie in different rows, which `group_by_clip` averages.

    Parameters
    ----------
    tokens
        As above, where P may be several axes. Tokens other than those of patches come before them on the
        second axis.
    order
        How the tokens are ordered.
    n_prefix_tokens
        Number of tokens before the patch tokens.
    n_time_steps
        Number of time steps of a clip, S.
    """
    if order == "maps":
        return tokens.flatten(2).float().mean(dim=2)
    patches = tokens.flatten(1, -2)[:, n_prefix_tokens:].float()  # [rows, patches, D]
    n_rows, _, width = patches.shape
    if order == "frames":
        return patches.mean(dim=1)
    if order == "time first":
        return patches.reshape(n_rows, n_time_steps, -1, width).mean(dim=2)
    if order == "position first":
        return patches.reshape(n_rows, -1, n_time_steps, width).mean(dim=1)
    return patches  # of the order `positions`


def group_by_clip(vectors: torch.Tensor, order: Order, n_clips: int) -> torch.Tensor:
    """Reshape a layer's vectors to one for each time step of each clip, `[B, S, D]`.

    `average_patches` has averaged the vectors of a time step over the patches of its picture, where one row
    of the network's batch has all of them. It has not for networks whose rows are single positions of patches
    (the order `positions`): their rows are averaged here.

    Parameters
    ----------
    vectors
        What `average_patches` returned for a batch of B clips of S time steps.
    order
        How the network orders its tokens. Its rows are frames of clips (`frames`, `maps`), positions of
        patches of clips (`positions`), or whole clips.
    n_clips
        Number of clips of the batch, B.
    """
    width = vectors.shape[-1]
    rows_are_frames = order in ("frames", "maps")
    if rows_are_frames:  # [B S, D]
        return vectors.reshape(n_clips, -1, width)
    rows_are_positions = order == "positions"
    if rows_are_positions:  # [B P, S, D]
        by_clip = vectors.reshape(n_clips, -1, *vectors.shape[1:])  # [B, P, S, D]
        return by_clip.mean(dim=1)
    return vectors  # rows are clips: [B, S, D] already
