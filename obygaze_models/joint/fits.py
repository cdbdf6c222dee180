"""Fit linear models, CAVs and bottlenecks to sums over films: the fits that all clips together give.

With N clips of features x and target t, standardised by the mean and deviation of all films, ridge regression
needs sum(z), sum(z z'), sum(z t) alone, and leaving a film out is leaving out its sums. Features are not cut
off at 5 deviations, as the zoo's own pipelines do: sums can't say where that would happen.

Logistic regression takes rounds: labs send gradients and curvatures at the last model, and each round is a
step of Newton's method on the loss of all clips together. Five to ten rounds end at the very minimum that one
lab with all features would find.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy import linalg

from obygaze_features.arguments import checked, made_by
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.ridge_tuning import PENALTIES
from obygaze_models.errors import ModelError
from obygaze_models.joint.sums import ARRAYS, About, Sums
from obygaze_models.prediction.training_films import TrainingFilms

Floats = NDArray[np.float64]
Standard = tuple[Floats, Floats]
"""Mean and deviation [D] by which features are standardised."""

OWN = ("provenance", "store", "movies", "left_out", "least", "licence", "label_policy")
"""What may differ between labs; all else must agree."""

TOLERANCE = 1e-9
"""Largest change of a weight, against the largest weight, after which rounds have ended."""


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
        return ((X - self.mean) / self.scale) @ self.weights.T + self.intercepts

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
    head : Planes
        Of the label, in distances to CAVs, standardised by the moments of those to CAVs that were fitted
        without the clip's film.
    """

    planes: Planes
    concepts: tuple[str, ...]
    head: Planes

    def decision_function(self, X: NDArray[Any]) -> Floats:
        """Compute the score [N] of features X [N, D]: near 1 for positive clips, near 0 for others."""
        return self.head.decision_function(self.planes.distances(X))[:, 0]


@made_by("join([SUMS, SUMS])")
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

    def without(self, movies: Collection[str]) -> "Joint":
        """Leave films out.

        Raises
        ------
        ModelError
            One is not there, or none is left.
        """
        sums, films = self.sums, self.about.movies
        unknown = sorted(set(movies) - set(films))
        kept = [row for row, movie in enumerate(films) if movie not in movies]
        if unknown or not kept:
            raise ModelError(f"film {unknown[0]} is not in these sums" if unknown else "no film is left")
        about = structs.replace(self.about, movies=[films[row] for row in kept])
        arrays = sums.counts[kept], sums.means[kept], sums.products[kept]
        training = None if sums.training is None else sums.training.of_films(kept)
        return Joint(Sums(about, *arrays, sums.start, training))

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
        places = [self.about.column(name) for name in concepts or self.learnable()]
        return self._ridge(places, penalty, midway=True)

    def linear(self, *, penalty: float | None = None) -> Planes:
        """Fit ridge regression of the label (1 and 0) with an intercept; least squares with penalty 0.

        Raises
        ------
        ModelError
            All clips have one label, or all of all films but one.
        """
        return self._ridge([self.about.column()], penalty, midway=False)

    def bottleneck(self, *concepts: str) -> Bottleneck:
        """Fit a concept bottleneck: ridge CAVs, and ridge regression of the label on their distances.

        The head learns from distances to CAVs that were fitted without the clip's film, at the penalties
        chosen on all; its own penalty is chosen by leaving films out too.

        Raises
        ------
        ModelError
            As `cav` and `linear`.
        """
        names = concepts or self.learnable()
        planes, sums, d, k = self.cav(*names), self.sums, self.about.n_features, len(names)
        standard, places = (planes.mean, planes.scale), [self.about.column(name) for name in names]
        means, products = np.empty((len(sums.counts), k + 1)), np.empty((len(sums.counts), k + 1, k + 1))
        with one_blas_thread():
            for row, movie in enumerate(self.about.movies):
                rest = self.without([movie])
                fitted = rest._solved(standard, places, planes.penalties, midway=True)
                lengths = np.linalg.norm(fitted.weights, axis=1)
                lengths[lengths == 0] = 1
                to_values = np.zeros((k + 1, sums.means.shape[1]))
                to_values[:k, :d] = fitted.weights / lengths[:, None] / planes.scale
                to_values[k, d] = 1
                at_zero = fitted.intercepts - fitted.weights @ (planes.mean / planes.scale)
                shift = np.append(at_zero / lengths, 0.0)
                means[row] = to_values @ sums.means[row] + shift
                products[row] = to_values @ sums.products[row] @ to_values.T
        about = structs.replace(self.about, n_features=k, concepts=[])
        return Bottleneck(planes, names, Joint(Sums(about, sums.counts, means, products, {})).linear())

    def film_errors(self, planes: Planes, target: str = "") -> dict[str, float]:
        """Compute the mean squared error of hyperplanes' first on each film, from its sums.

        Parameters
        ----------
        target : str
            A concept; "" is the label.
        """
        first = replace(planes, weights=planes.weights[:1], intercepts=planes.intercepts[:1])
        places = [self.about.column(target)]
        errors = [self._errors(first, places, row)[0] for row in range(len(self.about.movies))]
        means = np.array(errors) / self.sums.counts
        return dict(zip(self.about.movies, means.tolist(), strict=True))

    def lab_error(self, movies: Collection[str], penalty: float, target: str = "") -> tuple[float, float]:
        """Compute the squared error on a lab's films of ridge regression on all others, and of their share.

        A lab whose error is far above that of the share has other films, or has given other sums than these.

        Raises
        ------
        ModelError
            As of `linear`, for the others.
        """
        rest, places = self.without(movies), [self.about.column(target)]
        planes = rest._ridge(places, penalty, midway=False)
        share = replace(planes, weights=0 * planes.weights, intercepts=rest._whole[1][places])
        own = np.isin(self.about.movies, list(movies))
        found, known = (
            float(np.average([*self.film_errors(each, target).values()], weights=self.sums.counts * own))
            for each in (planes, share)
        )
        return found, known

    # --- arithmetic
    @cached_property
    def _whole(self) -> tuple[float, Floats, Floats]:
        """Put films together: number of clips, mean [P] and products [P, P].

        As Chan, Golub and LeVeque (1983) do, which is exact where means are large.
        """
        counts, means = self.sums.counts, self.sums.means
        n = counts.sum()
        mean = counts @ means / n
        apart = means - mean
        return float(n), mean, self.sums.products.sum(axis=0) + (apart.T * counts) @ apart

    def _standard(self) -> Standard:
        """Compute mean and deviation of all clips; 1 for constant features."""
        d, (n, mean, products) = self.about.n_features, self._whole
        deviation = np.sqrt(np.diag(products)[:d] / n)
        constant = deviation <= 10 * np.finfo(np.float32).eps * np.abs(mean[:d])
        return mean[:d], np.where(constant, 1.0, deviation)

    def _refuse_constant(self, places: list[int], where: str) -> None:
        """Refuse targets that are in all clips or in none."""
        _, mean, _ = self._whole
        names = ["the positive class", *(f"concept {name}" for name in self.about.concepts)]
        for place in places:
            if not 0 < mean[place] < 1:
                named = names[place - self.about.n_features]
                raise ModelError(f"{where}: {named} is in {'all' if mean[place] else 'none'} of the clips")

    def _ridge(self, places: list[int], penalty: float | None, *, midway: bool) -> Planes:
        self._refuse_constant(places, "these sums")
        with one_blas_thread():
            standard, given = self._standard(), np.full(len(places), penalty, np.float64)
            penalties, losses = self._choose(standard, places) if penalty is None else (given, given * np.nan)
            return replace(self._solved(standard, places, penalties, midway=midway), losses=losses)

    def _choose(self, standard: Standard, places: list[int]) -> tuple[Floats, Floats]:
        """Choose each target's penalty [K] by the least squared error on films left out; return both."""
        if len(self.about.movies) < 2:
            raise ModelError(
                "a penalty is chosen by leaving films out, and there is one film: give the penalty"
            )
        d, (n, _, products), (_, scale) = self.about.n_features, self._whole, standard
        unit = float((np.diag(products)[:d] / scale**2).sum()) / min(n, d)
        candidates, errors = unit * np.array(PENALTIES), np.zeros((len(PENALTIES), len(places)))
        for row, movie in enumerate(self.about.movies):
            rest = self.without([movie])
            rest._refuse_constant(places, f"without film {movie}")
            for index, penalty in enumerate(candidates):
                solved = rest._solved(standard, places, np.full(len(places), penalty), midway=False)
                errors[index] += self._errors(solved, places, row)
        losses = errors / n
        return candidates[losses.argmin(axis=0)], losses.min(axis=0)

    def _solved(self, standard: Standard, places: list[int], penalties: Floats, *, midway: bool) -> Planes:
        """Solve for weights and intercepts in features standardised as `standard` says."""
        d, (n, mean, products), (centre, scale) = self.about.n_features, self._whole, standard
        z_mean = (mean[:d] - centre) / scale
        gram = products[:d, :d] / np.outer(scale, scale)
        moments = products[:d, places] / scale[:, None]
        weights = np.empty((len(places), d))
        for penalty in np.unique(penalties):
            own = penalties == penalty
            weights[own] = _solve(gram, moments[:, own], float(penalty)).T
        share = mean[places]
        intercepts = share - weights @ z_mean
        if midway:
            apart = moments / n  # of the class from the mean: share and 1 - share of it either way
            middle = (apart / share - apart / (1 - share)) / 2 + z_mean[:, None]
            intercepts = -np.einsum("kd,dk->k", weights, middle)
        return Planes(centre, scale, weights, intercepts, penalties, np.full(len(places), np.nan))

    def _errors(self, planes: Planes, places: list[int], row: int) -> Floats:
        """Sum the squared errors [K] of w z + b on a film."""
        d, w = self.about.n_features, planes.weights / planes.scale
        n, mean, products = self.sums.counts[row], self.sums.means[row], self.sums.products[row]
        off = mean[places] - planes.intercepts - w @ (mean[:d] - planes.mean)
        spread = np.diag(products)[places] - 2 * np.einsum("kd,dk->k", w, products[:d, places])
        spread = spread + np.einsum("kd,de,ke->k", w, products[:d, :d], w)
        return np.asarray(n * off**2 + spread)


def _solve(gram: Floats, moments: Floats, penalty: float) -> Floats:
    """Solve (gram + penalty I) w = moments; with penalty 0 for the shortest w of those that solve it best."""
    if penalty > 0:
        return linalg.solve(gram + penalty * np.eye(len(gram)), moments, assume_a="pos")
    sizes, axes = linalg.eigh(gram)
    real = sizes > len(gram) * np.finfo(np.float64).eps * sizes[-1]
    return np.asarray((axes[:, real] / sizes[real]) @ (axes[:, real].T @ moments))


@checked
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
        for name in (name for name in About.__struct_fields__ if name not in OWN):
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
    about = structs.replace(
        first, movies=[movies[place] for place in order], left_out=dict(sorted(left_out.items()))
    )
    counts, means, products = (
        np.concatenate([getattr(sums, name) for sums in several])[order] for name in ARRAYS
    )
    trained = [sums.training for sums in several if sums.training is not None]
    training = None
    if len(trained) == len(several):
        n_films = [len(sums.about.movies) for sums in several]
        training = TrainingFilms.concatenated(trained, n_films).of_films(order.tolist())
    return Joint(Sums(about, counts, means, products, several[0].start, training))


# --- rounds
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, slots=True)
class FitStep:
    """The model after a round, and the largest change of a weight against the largest weight."""

    planes: Planes
    change: float

    @property
    def is_last(self) -> bool:
        """Whether another round would change nothing that counts."""
        return self.change <= TOLERANCE


@checked
def newton_step(joint: Joint, C: float = 1.0) -> FitStep:
    """Make the next model of gradients and curvatures at the last: of half ||w||^2 + C sum of log losses.

    Parameters
    ----------
    joint : Joint
        Of sums that `gram(..., at=model)` gave.
    C : float
        Inverse strength of the penalty, as in scikit-learn; the same in all rounds.

    Raises
    ------
    ModelError
        The sums are of squares.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> first = om.join([om.gram(data, "hn_s", least=5)])
    >>> om.save_joint(first, first.linear(), "round-0.model")
    >>> at = om.load_model("round-0.model")
    >>> om.newton_step(om.join([om.gram(data, "hn_s", least=5, at=at)]), C=0.1).is_last
    False
    """
    sums = joint.sums
    if joint.about.at != "losses":
        raise ModelError("these sums are of squares: rounds need sums at a model (obygaze model sums --at)")
    w, b = sums.start["start_weights"], float(sums.start["start_intercept"][0])
    penalised = np.append(np.ones(len(w)), 0.0)
    now: Floats = np.append(w, b)
    with one_blas_thread():
        gradient = penalised * now + C * sums.means.sum(axis=0)
        curvature = np.diag(penalised) + C * sums.products.sum(axis=0)
        after = now - linalg.solve(curvature, gradient, assume_a="pos")
    change = float(np.abs(after - now).max() / max(np.abs(after).max(), np.finfo(np.float64).tiny))
    standard = sums.start["start_mean"], sums.start["start_scale"]
    planes = Planes(*standard, after[None, :-1], after[-1:], np.full(1, 1 / C), np.full(1, np.nan))
    return FitStep(planes, change)
