"""Define the heads that turn the last activations into an embedding, with their gradients.

Stored activations and the head's weights are enough for Grad-CAM: neither the network nor autograd is needed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from obygaze_models.errors import AuditError

Array = NDArray[np.float64]


class Head(Protocol):
    """From the activations [C, h, w] of an image to its embedding [D], and back."""

    @property
    def n_channels(self) -> int:
        """Channels C that it takes."""

    def embed(self, acts: Array) -> Array:
        """Return the embedding [D]."""

    def backward(self, acts: Array, towards: Array) -> Array:
        """Return the gradient [C, h, w] of a score whose gradient at the embedding is `towards` [D]."""


@dataclass(frozen=True, eq=False)
class Linear:
    """Global average pooling, then a linear map.

    Attributes
    ----------
    weight : float64 [D, C]
    bias : float64 [D]
    """

    weight: Array
    bias: Array

    @property
    def n_channels(self) -> int:
        """Channels C that it takes."""
        return int(self.weight.shape[1])

    def embed(self, acts: Array) -> Array:
        """Return the embedding [D]."""
        embedding: Array = self.weight @ acts.mean(axis=(1, 2)) + self.bias
        return embedding

    def backward(self, acts: Array, towards: Array) -> Array:
        """Every place has the same gradient: W^T g / (h w)."""
        _, h, w = acts.shape
        return np.broadcast_to((self.weight.T @ towards / (h * w))[:, None, None], acts.shape)


@dataclass(frozen=True, eq=False)
class AttentionPool:
    """CLIP's attention pooling: the mean of all places asks all places (Radford et al., ICML 2021, 2.3).

    Attributes
    ----------
    positions : float64 [1 + h w, C]
        Added to the mean, which comes first, and to the places, row by row.
    q, k, v : float64 [C, C], with q_bias, k_bias, v_bias [C]
    c : float64 [D, C], with c_bias [D]
        Output projection.
    heads : int
    """

    positions: Array
    q: Array
    k: Array
    v: Array
    c: Array
    q_bias: Array
    k_bias: Array
    v_bias: Array
    c_bias: Array
    heads: int

    @property
    def n_channels(self) -> int:
        """Channels C that it takes."""
        return int(self.positions.shape[1])

    def embed(self, acts: Array) -> Array:
        """Return the embedding [D]."""
        _, _, v, attention, _ = self._attend(acts)
        embedding: Array = self.c @ np.einsum("hl,lhe->he", attention, v).ravel() + self.c_bias
        return embedding

    def backward(self, acts: Array, towards: Array) -> Array:
        """Go back through the output, the softmax, and all three projections; every place feeds the mean."""
        q, k, v, attention, scale = self._attend(acts)
        at_heads = (self.c.T @ towards).reshape(self.heads, -1)
        at_attention = np.einsum("he,lhe->hl", at_heads, v)
        at_v = np.einsum("hl,he->lhe", attention, at_heads)
        at_logits = attention * (at_attention - (attention * at_attention).sum(axis=1, keepdims=True))
        at_q = scale * np.einsum("hl,lhe->he", at_logits, k).ravel()
        at_k = scale * np.einsum("hl,he->lhe", at_logits, q)
        n = len(at_v)
        at_tokens = at_k.reshape(n, -1) @ self.k + at_v.reshape(n, -1) @ self.v
        at_tokens[0] += at_q @ self.q
        at_places: Array = (at_tokens[1:] + at_tokens[0] / (n - 1)).T.reshape(acts.shape)
        return at_places

    def _attend(self, acts: Array) -> tuple[Array, Array, Array, Array, float]:
        """Give q [heads, E], k and v [1 + h w, heads, E], the attention [heads, 1 + h w], and its scale."""
        places = acts.reshape(len(acts), -1).T
        if len(places) + 1 != len(self.positions):
            raise AuditError(
                f"the attention pool has positions for {len(self.positions) - 1} places, "
                f"the activations have {len(places)}"
            )
        tokens = np.vstack([places.mean(axis=0), places]) + self.positions
        q = (self.q @ tokens[0] + self.q_bias).reshape(self.heads, -1)
        k = (tokens @ self.k.T + self.k_bias).reshape(len(tokens), self.heads, -1)
        v = (tokens @ self.v.T + self.v_bias).reshape(len(tokens), self.heads, -1)
        scale = float(q.shape[1] ** -0.5)
        logits = scale * np.einsum("he,lhe->hl", q, k)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return q, k, v, weights / weights.sum(axis=1, keepdims=True), scale


@dataclass(frozen=True, eq=False)
class SpacedHead:
    """A head and the space that its embeddings are of."""

    head: Head
    space: str


LINEAR = ("weight",)
ATTENTION = ("positional_embedding", "q_weight", "k_weight", "v_weight", "c_weight", "heads")


def read_head(path: Path) -> SpacedHead:
    """Read a head from an .npz file.

    It has the text `space`, and either `weight` [D, C] for average pooling and a linear map, or
    `positional_embedding` [1 + h w, C], `q_weight`, `k_weight`, `v_weight` [C, C], `c_weight` [D, C] and the
    number `heads` for attention pooling; biases (`bias`; `q_bias` ...) are 0 where they are left out.

    Raises
    ------
    AuditError
        Naming the array that is missing, of a wrong shape, or not finite.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, AttributeError) as error:
        raise AuditError(f"{path} is not an .npz file of plain arrays: {error}") from error
    space = arrays.pop("space", None)
    if space is None or space.dtype.kind != "U" or space.ndim:
        raise AuditError(f"{path}: expected one text `space`, the space that the head's embeddings are of")
    kind = next((names for names in (LINEAR, ATTENTION) if set(names) <= set(arrays)), None)
    if kind is None:
        raise AuditError(f"{path}: expected the arrays {', '.join(LINEAR)}, or {', '.join(ATTENTION)}")
    found = {name: array.astype(np.float64) for name, array in arrays.items()}
    for name, array in found.items():
        if not np.isfinite(array).all():
            raise AuditError(f"{path}: {name} has a value that is not finite")
    return SpacedHead(_linear(path, found) if kind is LINEAR else _attention(path, found), str(space))


def _linear(path: Path, found: dict[str, Array]) -> Linear:
    weight = found["weight"]
    if weight.ndim != 2:
        raise AuditError(f"{path}: weight should be [D, C], found {list(weight.shape)}")
    return Linear(weight, _shaped(path, found, "bias", (len(weight),)))


def _attention(path: Path, found: dict[str, Array]) -> AttentionPool:
    positions, c = found["positional_embedding"], found["c_weight"]
    if positions.ndim != 2 or c.ndim != 2:
        raise AuditError(f"{path}: positional_embedding and c_weight should have two dimensions")
    n_channels, heads = positions.shape[1], found["heads"]
    if heads.ndim or heads < 1 or heads % 1 or n_channels % int(heads):
        raise AuditError(f"{path}: heads should be one whole number that divides {n_channels}, found {heads}")
    square, row = (n_channels, n_channels), (n_channels,)
    return AttentionPool(
        positions,
        q=_shaped(path, found, "q_weight", square),
        k=_shaped(path, found, "k_weight", square),
        v=_shaped(path, found, "v_weight", square),
        c=_shaped(path, found, "c_weight", (len(c), n_channels)),
        q_bias=_shaped(path, found, "q_bias", row),
        k_bias=_shaped(path, found, "k_bias", row),
        v_bias=_shaped(path, found, "v_bias", row),
        c_bias=_shaped(path, found, "c_bias", (len(c),)),
        heads=int(heads),
    )


def _shaped(path: Path, found: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    """Return an array of the shape that it must have; a bias that is left out is 0."""
    array = found.get(name, np.zeros(shape) if name.endswith("bias") else None)
    if array is None or array.shape != shape:
        size = "nothing" if array is None else list(array.shape)
        raise AuditError(f"{path}: {name} should be {list(shape)}, found {size}")
    return array
