"""Define the value objects `TextBackbone` and `Tokens`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text.

    Parameters
    ----------
    ids
        The tokens that go in, begin and end tokens and padding included.
    found
        How many tokens the text has, begin and end tokens included, before it was cut or padded.
    limit
        Maximum number of tokens of the network.
    """

    ids: tuple[int, ...]
    found: int
    limit: int

    @property
    def is_cut(self) -> bool:
        """Whether the text is longer than the network takes."""
        return self.found > self.limit


@dataclass(frozen=True)
class TextBackbone:
    """A frozen network that turns a text into one vector.

    Parameters
    ----------
    name
        What the group in the store is called.
    width
        Length of a vector.
    tokenize
        Turns texts into tokens, cut at the limit.
    encode
        Turns tokens of one length, int64 `[B, L]`, into vectors, float32 `[B, width]`. Batches need no
        padding, so other texts affect a result only through the matrix library.
    provenance
        Everything needed to reproduce the numbers: `space`, hub, architecture, tokenizer, compute.
    libraries
        Distributions besides numpy whose versions affect the numbers.
    """

    name: str
    width: int
    tokenize: Callable[[Sequence[str]], list[Tokens]]
    encode: Callable[[NDArray[np.int64]], NDArray[np.float32]]
    provenance: Mapping[str, Any]
    libraries: tuple[str, ...] = ()
