"""Search a store by names of classes: only where one is near the text, and likely in a clip.

A classifier knows a thousand names. A text is compared with all of them by a sentence encoder; what is near
counts for the text, as far as it is near. That is no search by free text: of words that name nothing the
classifier knows, most searches would find what merely sounds alike. So a search answers where the nearest
name is near and some clip probably shows it, names the class, and otherwise says what the nearest are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from obygaze_features.backbones.backbone import TextBackbone
from obygaze_features.errors import BackboneError
from obygaze_features.store import Group

NEAR = 0.6
"""Cosine of the nearest name from which on a text is taken to be about a class the network knows."""

SHARPNESS = 0.05
"""Difference of two cosines at which the farther class counts 1 / e as much as the nearer one."""

SHOWN = 3
"""Number of classes that a message names."""


class NearClasses(NamedTuple):
    """How near a text is to the classes of a network.

    Attributes
    ----------
    names : tuple of str
        Names of the classes, the nearest first.
    cosines : ndarray, shape [Q]
        Cosines of the text with the classes, in that order.
    shares : ndarray, shape [Q]
        Weight of each class in the score of a clip, in the network's order of the classes, which is that of
        the probabilities in the store; the weights add up to 1.
    """

    names: tuple[str, ...]
    cosines: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def is_near(self) -> bool:
        """Whether the text is near any class: whether its largest cosine is at least `NEAR`."""
        return bool(self.cosines[0] >= NEAR)

    def in_words(self) -> str:
        """List the nearest classes with their cosines."""
        pairs = zip(self.names[:SHOWN], self.cosines[:SHOWN], strict=True)
        return ", ".join(f"{name} {cosine:.2f}" for name, cosine in pairs)


def near_classes(names: tuple[str, ...], text: str, encoder: TextBackbone) -> NearClasses:
    """Compare a text with the names of a network's classes by the cosines of their vectors.

    Parameters
    ----------
    names
        Names of the classes, in the network's order.
    text
        What is searched for.
    encoder
        Encodes the text and the names.

    Raises
    ------
    BackboneError
        The encoder has no token for the text.
    """
    vectors = encoded(encoder, [text, *names])  # of length 1
    text_vector = vectors[0]
    class_vectors = vectors[1:]
    cosines = class_vectors @ text_vector  # [Q], in the network's order
    # Two cosines that differ by `SHARPNESS` get weights whose ratio is e.
    shares = softmax(cosines / SHARPNESS)
    nearest_first = np.argsort(-cosines, kind="stable")
    return NearClasses(
        names=tuple(names[class_number] for class_number in nearest_first.tolist()),
        cosines=cosines[nearest_first],
        shares=shares,
    )


def encoded(encoder: TextBackbone, texts: list[str]) -> NDArray[np.float64]:
    """Encode texts one by one as vectors of length 1, [N, D].

    Raises
    ------
    BackboneError
        The encoder has no token for a text.
    """
    vectors = []
    for text, tokens in zip(texts, encoder.tokenize(texts), strict=True):
        if not tokens.ids:
            raise BackboneError(f"{encoder.name} has no token for {text!r:.80}")
        vectors.append(encoder.encode(np.array([tokens.ids], np.int64))[0].astype(np.float64))
    matrix = np.array(vectors)
    return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def class_scores(group: Group, near: NearClasses) -> NDArray[np.float64]:
    """Score how likely each clip shows what a text is about.

    The score is the sum of the clip's class probabilities, weighted by how near each class is to the text.

    Returns
    -------
    ndarray
        [N]; NaN for clips without features.
    """
    scores: NDArray[np.float64] = group.pooled().astype(np.float64) @ near.shares
    scores[~group.usable] = np.nan
    return scores
