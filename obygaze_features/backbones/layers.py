"""Define which layers of a network are stored besides its vectors, and where a family of networks has them.

A layer is the output of one block of a network, in the order in which blocks run, from 1: what transformers
calls `hidden_states[1]`, `hidden_states[2]` and so on, before any final normalisation.
"""

import re
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from obygaze_features.errors import BackboneError

ALL = "all"
"""The word for every layer."""

Order = Literal["frames", "maps", "time first", "position first", "positions"]
"""What the rows of a block's output are, and the tokens of a row.

`frames`: a row is a frame, its tokens are the positions in it. `maps`: a row is a frame, a map of channels by
rows by columns, as convolutions give it. `time first`: a row is a clip, its tokens are all positions of the
first time step, then those of the second. `position first`: a row is a clip, its tokens are all time steps of
the first position, then those of the second. `positions`: a row is one position of a clip, its tokens are its
time steps.
"""


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers of a network that are stored, each as a group of its own.

    Parameters
    ----------
    numbers
        Numbers of the layers, from 1; empty is every layer.
    norm
        Whether the tokens of each layer go through the network's own final normalisation; else they are raw.
    frames
        Whether a vector for each frame, or step in time, is stored besides the vector of the clip.

    Examples
    --------
    >>> from obygaze_features.backbones import Layers
    >>> Layers.parse("4,8,12").numbers
    (4, 8, 12)
    >>> Layers.parse("all").chosen(3, "this network")
    (1, 2, 3)
    """

    numbers: tuple[int, ...] = ()
    norm: bool = False
    frames: bool = False

    @classmethod
    def parse(cls, text: str, *, norm: bool = False, frames: bool = False) -> "Layers":
        """Read numbers of layers from text: `4,8,12`, or `all`.

        Parameters
        ----------
        text
            The numbers, in any order.
        norm, frames
            As in `Layers`.

        Raises
        ------
        BackboneError
            If the text has something else, or a number twice.
        """
        if text.strip() == ALL:
            return cls((), norm, frames)  # no numbers stand for every layer
        words = [word.strip() for word in text.split(",")]
        if not all(re.fullmatch(r"[1-9][0-9]{0,3}", word, re.ASCII) for word in words):
            raise BackboneError(f"layers {text!r}: expected numbers from 1, such as 4,8,12, or {ALL}")
        numbers = sorted({int(word) for word in words})
        if len(numbers) < len(words):
            raise BackboneError(f"layers {text!r}: a number stands twice")
        return cls(tuple(numbers), norm, frames)

    @classmethod
    def of(cls, layers: object) -> "Layers | None":
        """Convert the option `layers` of a backbone, which may be `Layers`, text such as `4,8,12`, or None.

        Raises
        ------
        BackboneError
            If it is anything else.
        """
        if layers is None or isinstance(layers, Layers):
            return layers
        if isinstance(layers, str):
            return cls.parse(layers)
        raise BackboneError(f"layers: expected Layers(...), or text such as 4,8,12; found {layers!r:.40}")

    def chosen(self, n_layers: int, where: str) -> tuple[int, ...]:
        """Return the numbers of the layers to store, of a network with `n_layers` layers.

        Parameters
        ----------
        n_layers
            Number of layers of the network.
        where
            The network, for messages.

        Raises
        ------
        BackboneError
            If the network has fewer layers than one of the numbers.
        """
        if not self.numbers:  # stands for every layer
            return tuple(range(1, n_layers + 1))
        beyond = [number for number in self.numbers if number > n_layers]
        if beyond:
            raise BackboneError(f"{where} has layers 1 to {n_layers}, and none of number {beyond[0]}")
        return self.numbers


class LayerStack(Struct, frozen=True, forbid_unknown_fields=True):
    """Blocks of a network that run one after the other; `networks.toml` lists those of each family.

    Parameters
    ----------
    blocks
        Dotted name of the list of blocks, in the network.
    norm
        Dotted name of the normalisation that the network applies after the last of them; empty without.
    order
        How the tokens of a block's output lie.
    unit
        What one of them is called: a block, a residual block, or a stage of blocks.
    """

    blocks: str
    norm: str = ""
    order: Order = "frames"
    unit: str = "block"
