"""Fit ridge regressions, CAVs and bottlenecks to sums over films: the fits that all clips together give.

With N clips of features x and target t, standardised by the mean and deviation of all films, ridge regression
needs sum(z), sum(z z'), sum(z t) alone, and leaving a film out is leaving out its sums. Features are not cut
off at 5 deviations, as the zoo's own pipelines do: sums can't say where that would happen.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.ridge_tuning import PENALTIES
from obygaze_models.errors import ModelError
from obygaze_models.joint.sums import About, Sums, replace_about

Floats = NDArray[np.float64]
ALIKE = (
    "backbone",
    "features",
    "pool",
    "n_features",
    "provenance_sha256",
    "codebook",
    "target",
    "concepts",
    "at",
)
"""What must agree between labs."""


@dataclass(frozen=True, eq=False, slots=True)
class Planes:
    """Hyperplanes w z + b = 0 of standardised features, not cut off, for K targets.

    Attributes
    ----------
    mean, scale : ndarray, shape [D]
        By which features are standardised.
    weights, intercepts : ndarray, shapes [K, D] and [K]
    penalties : ndarray, shape [K]
        Weight of the squares of w in the loss.
    losses : ndarray, shape [K]
        Mean squared error on films left out, at these penalties; NaN where nothing was chosen.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    intercepts: Floats
    penalties: Floats
    losses: Floats

    def decision_function(self, X: NDArray[Any]) -> Floats:
        """Compute w z + b [N, K] for features X [N, D]."""
        values: Floats = ((X - self.mean) / self.scale) @ self.weights.T + self.intercepts
        return values

    def distances(self, X: NDArray[Any]) -> Floats:
        """Compute the signed distances (w z + b) / ||w|| [N, K]."""
        return Hyperplanes(self.weights, self.intercepts).distances((X - self.mean) / self.scale)


@dataclass(frozen=True, eq=False, slots=True)
class Bottleneck:
    """A concept bottleneck with a least-squares head: score = w v + b of standardised concept values v.

    Attributes
    ----------
    planes : Planes
        The concepts' CAVs.
    concepts : tuple of str
    value_mean, value_scale : ndarray, shape [K]
        Moments of the distances to CAVs that were fitted without the clip's film.
    weights : ndarray, shape [K]
    intercept : float
    """

    planes: Planes
    concepts: tuple[str, ...]
    value_mean: Floats
    value_scale: Floats
    weights: Floats
    intercept: float

    def decision_function(self, X: NDArray[Any]) -> Floats:
        """Compute the score [N] of features X [N, D]: near 1 for positive clips, near 0 for others."""
        values = (self.planes.distances(X) - self.value_mean) / self.value_scale
        scores: Floats = values @ self.weights + self.intercept
        return scores


@dataclass(frozen=True, eq=False, slots=True)
class _Whole:
    """Clips together: their number, mean [P] and products [P, P]."""

    n: float
    mean: Floats
    products: Floats


def _merged(counts: Floats, means: Floats, products: Floats) -> _Whole:
    """Put films together (Chan, Golub and LeVeque 1983), which is exact where means are large."""
    n = counts.sum()
    mean = counts @ means / n
    apart = means - mean
    return _Whole(float(n), mean, products.sum(axis=0) + (apart.T * counts) @ apart)


@dataclass(frozen=True, eq=False)
class Joint:
    """Films of several labs together, as sums.

    Attributes
    ----------
    sums : Sums
        Of all films.
    """

    sums: Sums

    @property
    def about(self) -> About:
        """What the sums are of."""
        return self.sums.about

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {movie: row for row, movie in enumerate(self.about.movies)}

    def without(self, movies: Collection[str]) -> "Joint":
        """Leave films out.

        Raises
        ------
        ModelError
            One is not there, or none is left.
        """
        unknown = sorted(set(movies) - self._rows.keys())
        kept = [row for movie, row in self._rows.items() if movie not in movies]
        if unknown or not kept:
            raise ModelError(f"film {unknown[0]} is not in these sums" if unknown else "no film is left")
        sums, films = self.sums, [self.about.movies[row] for row in kept]
        about = replace_about(self.about, movies=films)
        return Joint(Sums(about, sums.counts[kept], sums.means[kept], sums.products[kept], sums.start))

    def learnable(self) -> tuple[str, ...]:
        """List the concepts of which there are clips with and without, whatever film is left out."""
        counts = self.sums.counts
        marked = counts[:, None] * self.sums.means[:, self.about.n_features + 1 :]
        rest, clips = marked.sum(axis=0) - marked, (counts.sum() - counts)[:, None]
        # Shares were rounded: half a clip is none.
        there = ((rest > 0.5) & (rest < clips - 0.5)).all(axis=0)
        return tuple(name for name, good in zip(self.about.concepts, there, strict=True) if good)

    def cav(self, *concepts: str, penalty: float | None = None) -> Planes:
        """Fit ridge CAVs of concepts: the hyperplane is midway between the classes' mean projections.

        Parameters
        ----------
        *concepts : str
            If none is named, all that can be learnt whatever film is left out (`learnable`).
        penalty : float, optional
            Weight of the squares of w; None is chosen for each by leaving one film out at a time.

        Raises
        ------
        ModelError
            No such concept, or it is in all clips or in none of the films, or of all but one of them.
        """
        names = concepts or self.learnable()
        unknown = [name for name in names if name not in self.about.concepts]
        if unknown:
            raise ModelError(f"no concept {unknown[0]} in these sums: {', '.join(self.about.concepts)}")
        places = [self.about.n_features + 1 + self.about.concepts.index(name) for name in names]
        return self._ridge(places, penalty, midway=True)

    def linear(self, *, penalty: float | None = None) -> Planes:
        """Fit ridge regression of the label (1 and 0) with an intercept; least squares with penalty 0.

        Raises
        ------
        ModelError
            All clips have one label, or all of all films but one.
        """
        return self._ridge([self.about.n_features], penalty, midway=False)

    def bottleneck(self, *concepts: str, penalty: float | None = None) -> Bottleneck:
        """Fit a concept bottleneck: ridge CAVs, and ridge regression of the label on their distances.

        The head learns from distances to CAVs that were fitted without the clip's film, at the penalties
        chosen on all; its own penalty is chosen by leaving films out too.

        Raises
        ------
        ModelError
            As `cav` and `linear`.
        """
        names = concepts or self.learnable()
        planes, d, sums = self.cav(*names, penalty=penalty), self.about.n_features, self.sums
        k = len(names)
        means, products = np.empty((len(sums.counts), k + 1)), np.empty((len(sums.counts), k + 1, k + 1))
        places = [d + 1 + self.about.concepts.index(name) for name in names]
        with one_blas_thread():
            for row, movie in enumerate(self.about.movies):
                rest = self.without([movie])
                left = rest._solved(planes, places, planes.penalties, midway=True)
                lengths = np.linalg.norm(left[0], axis=1)
                lengths[lengths == 0] = 1
                to_values = np.zeros((k + 1, sums.means.shape[1]))
                to_values[:k, :d] = left[0] / lengths[:, None] / planes.scale
                to_values[k, d] = 1
                shift = np.append((left[1] - left[0] @ (planes.mean / planes.scale)) / lengths, 0.0)
                means[row] = to_values @ sums.means[row] + shift
                products[row] = to_values @ sums.products[row] @ to_values.T
        about = replace_about(self.about, n_features=k, concepts=[])
        head = Joint(Sums(about, sums.counts, means, products, {})).linear()
        return Bottleneck(planes, names, head.mean, head.scale, head.weights[0], float(head.intercepts[0]))

    def film_errors(self, planes: Planes, target: str = "") -> dict[str, float]:
        """Compute the mean squared error of hyperplanes' first on each film, from its sums.

        Parameters
        ----------
        target : str
            A concept; "" is the label.
        """
        place = self.about.n_features + (1 + self.about.concepts.index(target) if target else 0)
        first = planes.weights[:1], planes.intercepts[:1]
        errors = [self._errors(planes, *first, [place], row)[0] for row in range(len(self.about.movies))]
        means = np.array(errors) / self.sums.counts
        return dict(zip(self.about.movies, means.tolist(), strict=True))

    # --- arithmetic
    def _whole(self) -> _Whole:
        return _merged(self.sums.counts, self.sums.means, self.sums.products)

    def _standard(self) -> Planes:
        """Take mean and deviation [D] of all clips; 1 for constant features."""
        d, whole = self.about.n_features, self._whole()
        deviation = np.sqrt(np.diag(whole.products)[:d] / whole.n)
        mean = whole.mean[:d]
        constant = deviation <= 10 * np.finfo(np.float32).eps * np.abs(mean)
        none = np.empty(0)
        return Planes(mean, np.where(constant, 1.0, deviation), np.empty((0, d)), none, none, none)

    def _ridge(self, places: list[int], penalty: float | None, *, midway: bool) -> Planes:
        for place in places:
            share = self._whole().mean[place]
            if not 0 < share < 1:
                raise ModelError(f"{self._name(place)} is in {'all' if share else 'none'} of the clips")
        with one_blas_thread():
            standard, losses = self._standard(), np.full(len(places), np.nan)
            if penalty is None:
                penalties, losses = self._choose(standard, places)
            else:
                penalties = np.full(len(places), float(penalty))
            weights, intercepts = self._solved(standard, places, penalties, midway=midway)
        return Planes(standard.mean, standard.scale, weights, intercepts, penalties, losses)

    def _choose(self, standard: Planes, places: list[int]) -> tuple[Floats, Floats]:
        """Choose each target's penalty [K] by the least squared error on films left out; return both."""
        if len(self.about.movies) < 2:
            raise ModelError(
                "a penalty is chosen by leaving films out, and there is one film: give the penalty"
            )
        d, whole = self.about.n_features, self._whole()
        unit = float((np.diag(whole.products)[:d] / standard.scale**2).sum()) / min(whole.n, d)
        candidates, errors = unit * np.array(PENALTIES), np.zeros((len(PENALTIES), len(places)))
        for row, movie in enumerate(self.about.movies):
            rest = self.without([movie])
            for place in places:
                if not 0 < rest._whole().mean[place] < 1:
                    raise ModelError(
                        f"without film {movie}, {self._name(place)} is in all of the clips or in none"
                    )
            for index, penalty in enumerate(candidates):
                planes = rest._solved(standard, places, np.full(len(places), penalty), midway=False)
                errors[index] += self._errors(standard, *planes, places, row)
        losses = errors / whole.n
        best = losses.argmin(axis=0)
        return candidates[best], losses.min(axis=0)

    def _solved(
        self, standard: Planes, places: list[int], penalties: Floats, *, midway: bool
    ) -> tuple[Floats, Floats]:
        """Solve for weights [K, D] and intercepts [K] in features standardised as `standard` says."""
        d, whole = self.about.n_features, self._whole()
        z_mean = (whole.mean[:d] - standard.mean) / standard.scale
        gram = whole.products[:d, :d] / np.outer(standard.scale, standard.scale)
        moments = whole.products[:d, places] / standard.scale[:, None]
        weights = np.empty((len(places), d))
        for penalty in np.unique(penalties):
            own = penalties == penalty
            weights[own] = _solve(gram, moments[:, own], float(penalty)).T
        share = whole.mean[places]
        if midway:
            apart = moments / whole.n  # of the class from the mean: share and 1 - share of it either way
            middle = (apart / share - apart / (1 - share)) / 2 + z_mean[:, None]
            return weights, -np.einsum("kd,dk->k", weights, middle)
        return weights, share - weights @ z_mean

    def _errors(
        self, standard: Planes, weights: Floats, intercepts: Floats, places: list[int], row: int
    ) -> Floats:
        """Sum the squared errors [K] of w z + b on a film."""
        d, sums = self.about.n_features, self.sums
        n, mean, products = sums.counts[row], sums.means[row], sums.products[row]
        w = weights / standard.scale
        off = mean[places] - intercepts - w @ (mean[:d] - standard.mean)
        spread = np.diag(products)[places] - 2 * np.einsum("kd,dk->k", w, products[:d, places])
        spread = spread + np.einsum("kd,de,ke->k", w, products[:d, :d], w)
        errors: Floats = n * off**2 + spread
        return errors

    def _name(self, place: int) -> str:
        first = place - self.about.n_features - 1
        return "the positive class" if first < 0 else f"concept {self.about.concepts[first]}"


def _solve(gram: Floats, moments: Floats, penalty: float) -> Floats:
    """Solve (gram + penalty I) w = moments; with penalty 0 for the shortest w of those that solve it best."""
    if penalty > 0:
        solved: Floats = linalg.solve(gram + penalty * np.eye(len(gram)), moments, assume_a="pos")
        return solved
    sizes, axes = linalg.eigh(gram)
    real = sizes > len(gram) * np.finfo(np.float64).eps * sizes[-1]
    shortest: Floats = (axes[:, real] / sizes[real]) @ (axes[:, real].T @ moments)
    return shortest


def join(several: Sequence[Sums]) -> Joint:
    """Put the sums of several labs together.

    Raises
    ------
    ModelError
        Their features were made differently, they ask for something else, or a film is in two of them.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> films, more = (
    ...     om.load_dataset(of.open_store(f"stores/{name}"), of.read_manifest(f"{name}.csv"))
    ...     for name in ("films", "more")
    ... )
    >>> joint = om.join([om.gram(films, "hn_s", least=5), om.gram(more, "hn_s", least=5)])
    >>> len(joint.about.movies), joint.linear().weights.shape
    (12, (1, 8))
    """
    first = several[0].about
    for other in several[1:]:
        for name in ALIKE:
            if getattr(other.about, name) != getattr(first, name):
                raise ModelError(
                    f"these sums can't be joined: {name} is {getattr(first, name)!s:.80} in one, "
                    f"{getattr(other.about, name)!s:.80} in another"
                )
        if any(not np.array_equal(other.start[name], each) for name, each in several[0].start.items()):
            raise ModelError("these sums can't be joined: their losses are at different models")
    movies = [movie for sums in several for movie in sums.about.movies]
    if twice := sorted({movie for movie in movies if movies.count(movie) > 1}):
        raise ModelError(f"film {twice[0]} is in two of these sums: it would count twice")
    # In the order of films, so that the labs' order changes no byte.
    order = np.argsort(np.array(movies))
    left_out = {movie: n for sums in several for movie, n in sums.about.left_out.items()}
    about = replace_about(
        first, movies=[movies[place] for place in order], left_out=dict(sorted(left_out.items()))
    )
    counts = np.concatenate([sums.counts for sums in several])[order]
    means = np.concatenate([sums.means for sums in several])[order]
    products = np.concatenate([sums.products for sums in several])[order]
    return Joint(Sums(about, counts, means, products, several[0].start))
