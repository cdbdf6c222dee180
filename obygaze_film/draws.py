"""Draw windows of a film in proportion to their content, and say with what chance each was drawn."""

from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

Sampling = Literal["successive", "sequential-poisson"]
"""Method by which windows are drawn at random, in proportion to their content."""

SUCCESSIVE: Final[Sampling] = "successive"
"""Each next window is drawn in proportion to content among those left: in the order of -log(u) / content.

Successive sampling (Hájek 1981, Sampling from a Finite Population, chapter 9; Rosén 1997, Journal of
Statistical Planning and Inference 62)."""

SEQUENTIAL_POISSON: Final[Sampling] = "sequential-poisson"
"""Windows are drawn in the order of u / content (Ohlsson 1998, Journal of Official Statistics 14(2)).

The method of earlier versions, and of windows that name none. The first n windows are nearly a draw in
proportion to content; those late in the order are not."""

LAW = "law"
"""Column of windows that were drawn: the method of sampling."""

SEED = "seed"
"""Column of windows that were drawn: the seed of the random numbers."""

MIN_S: Final = 1e-9
"""Seconds of content below which a window has none, but for rounding."""


class Draw(msgspec.Struct, frozen=True):
    """The draw of a film's windows, as it is written down: whoever has it can put them in the same order.

    Attributes
    ----------
    sampling
        `SUCCESSIVE` or `SEQUENTIAL_POISSON`: ``law`` where it is written down.
    seed
        Of the random numbers, with the film's name.
    movie
        Name of the film.
    content
        Of each window [C] the seconds that were neither black nor credits when it was drawn.

    Examples
    --------
    >>> draw = Draw(sampling="successive", seed=0, movie="tt0000001", content=(46.0, 46.0, 0.0, 20.0))
    >>> draw.order()
    [0, 1, 3]
    >>> msgspec.json.decode(msgspec.json.encode(draw), type=Draw) == draw
    True
    """

    sampling: Sampling = msgspec.field(name="law")
    seed: Annotated[int, msgspec.Meta(ge=0)]
    movie: str
    content: tuple[Annotated[float, msgspec.Meta(ge=0)], ...]

    def order(self) -> list[int]:
        """Put the windows with content in the order of the draw (`random_order`)."""
        return random_order(np.array(self.content), self.movie, self.seed, self.sampling)


def random_order(content: Floats, name: str, seed: int, sampling: Sampling = SUCCESSIVE) -> list[int]:
    """Put the windows that have content in a random order, of which the first n are a random sample of n.

    Each window has a random number u between 0 and 1, fixed by seed, name and window. The windows are sorted
    by -log(u) / content (`SUCCESSIVE`) or u / content (`SEQUENTIAL_POISSON`), the lowest first. With
    `SUCCESSIVE`, each next window is one of those left with a chance in proportion to its content.

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds of each window that can be judged.
    name : str
        Of the film: each name has an order of its own.
    seed : int
    sampling : str
        Method of sampling.

    Returns
    -------
    list of int
        Indices of the windows.
    """
    rng = np.random.default_rng([seed, *name.encode("utf-8")])
    u = rng.random(len(content))
    u = np.maximum(u, np.finfo(np.float64).tiny)  # 0 has no logarithm
    random_keys = -np.log(u) if sampling == SUCCESSIVE else u
    sort_keys = random_keys / np.maximum(content, MIN_S)  # windows with more content tend to come first
    order = np.argsort(sort_keys, kind="stable").tolist()
    return [window for window in order if content[window] > 0]


def inclusion_chances(content: Floats, n: int, sampling: Sampling = SUCCESSIVE) -> Floats:
    """Compute the chance of each window [C] to be among the first n of its film's order.

    - Successive sampling: a window is among the first n if its -log(u) / content is below a threshold, which
      is nearly the same number t in every draw. The chance of that is 1 - exp(-content t). So t is the number
      for which these chances add up to n (Rosén 1997).
    - Sequential Poisson sampling: chances are proportional to content, and at most 1.

    Parameters
    ----------
    content : ndarray, shape [C]
        Seconds of each window that can be judged.
    n : int
        At most the number of windows with content.
    sampling : str

    Examples
    --------
    >>> inclusion_chances(np.array([46.0, 46.0, 23.0, 0.0]), 2).round(2).tolist()
    [0.75, 0.75, 0.5, 0.0]
    """
    if sampling == SEQUENTIAL_POISSON:
        return _proportional(content, n)
    has_content = content > 0
    if n >= has_content.sum():
        return has_content.astype(np.float64)

    from scipy.optimize import brentq  # noqa: PLC0415 - slow, and films are opened without it

    def chances(log_t: float) -> Floats:
        """Compute the chances by a threshold; expm1(x) is exp(x) - 1 without loss of digits near 0."""
        return np.asarray(-np.expm1(-content * np.exp(log_t)))

    def excess(log_t: float) -> float:
        """Compute by how much the chances add up to more than n."""
        return float(chances(log_t).sum()) - n

    # Bracket the root. Where t = n / sum of content, the chances add up to n at most, as 1 - exp(-x) <= x.
    min_log_t = float(np.log(n / content.sum()))
    below = min_log_t - 1  # a little lower, as rounding may bring the sum above n
    above = min_log_t + 1
    while excess(above) < 0:
        above += 1
    return chances(brentq(excess, below, above, xtol=1e-13))


def _proportional(content: Floats, n: int) -> Floats:
    """Compute chances [C] that are proportional to content [C], at most 1, and add up to n.

    Windows that would have a chance above 1 are certain (1), and the others share what is left of n. This is
    repeated until no chance is above 1.
    """
    is_certain = np.zeros(len(content), dtype=np.bool_)
    while True:
        # The windows that are not certain share what is left of n, each in proportion to its seconds.
        uncertain_s = content[~is_certain].sum()
        chance_per_s = 0.0
        if uncertain_s > 0:
            chance_per_s = (n - is_certain.sum()) / uncertain_s
        is_newly_certain = ~is_certain & (chance_per_s * content >= 1)
        if not is_newly_certain.any():
            return np.where(is_certain, 1.0, chance_per_s * content)
        is_certain |= is_newly_certain
