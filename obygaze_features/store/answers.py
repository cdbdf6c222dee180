"""Tell which groups of a store hold the probabilities of a classifier's named classes, and which to name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from obygaze_features.arguments import checked
from obygaze_features.store.group import Group
from obygaze_features.store.store import Store

CLASSIFIER: Final = "classifier"
"""Value of the field `head` in the provenance of a group with probabilities of classes."""

LIKELY: Final = 0.1
"""Probability from which on a clip is taken to show a class."""

TIMES_USUAL: Final = 2.0
"""By how much a class must be more probable than usual to be named."""

MAX_NAMED: Final = 3
"""Classes that are named at most."""


@dataclass(frozen=True, slots=True)
class LikelyClass:
    """A class that a classifier finds more probable in a clip, or a span, than in the rest of its film.

    Attributes
    ----------
    name : str
    p : float
        Its probability there, as the classifier gives it: it was not calibrated on films.
    usual_p : float
        Its mean probability over the film.
    """

    name: str
    p: float
    usual_p: float


@checked
def classes_of(group: Group) -> tuple[str, ...]:
    """Return the class names of a group of class probabilities; an empty tuple for other groups.

    Such a group has the probabilities as its pooled vectors, and names the classes in the provenance, as the
    `features` of the `architecture`.
    """
    if group.provenance.get("head") != CLASSIFIER or "pooled" not in group.arrays:
        return ()
    architecture: Any = group.provenance.get("architecture")
    if not isinstance(architecture, dict):
        return ()

    names = architecture.get("features")
    n_probabilities = group.clip_shape("pooled")[0]
    if not isinstance(names, list) or len(names) != n_probabilities:
        return ()
    if not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


@checked
def groups_of_classes(store: Store) -> tuple[str, ...]:
    """Return the names of the groups of a store that hold probabilities of named classes."""
    return tuple(name for name in store.names if classes_of(store[name]))


@checked
def likely_classes(
    names: Sequence[str], p: NDArray[np.float64], usual_p: NDArray[np.float64]
) -> list[LikelyClass]:
    """Choose the classes to name for a passage of a film, the most probable first, at most `MAX_NAMED`.

    A class is named if its probability is at least `LIKELY`, and at least `TIMES_USUAL` times its probability
    over the film.

    Parameters
    ----------
    names
        Names of the Q classes.
    p
        Shape [Q]: their probabilities in the passage.
    usual_p
        Shape [Q]: their probabilities over the whole film.

    Examples
    --------
    >>> import numpy as np
    >>> from obygaze_features.store.answers import likely_classes
    >>> names = ["barbell", "stage", "stove"]
    >>> p, usual_p = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.1])
    >>> [likely.name for likely in likely_classes(names, p, usual_p)]
    ['barbell']
    """
    is_likely = p >= LIKELY
    is_unusual = p >= TIMES_USUAL * usual_p
    is_named = is_likely & is_unusual

    most_probable_first = np.argsort(-p, kind="stable").tolist()
    chosen = [index for index in most_probable_first if is_named[index]][:MAX_NAMED]
    return [LikelyClass(names[index], float(p[index]), float(usual_p[index])) for index in chosen]


@checked
def classifier_of(group: Group) -> str:
    """Return the name of the network whose class probabilities a group holds.

    A network that gives features too has its probabilities in a second group. The provenance of that group
    names the first one in the field `beside`.
    """
    return str(group.provenance.get("beside") or group.name)
