"""Fit linear models, CAVs and bottlenecks to sums over films: the fits that all clips together give.

For clips with features z, standardised by the mean and deviation of all films, and target t, ridge regression
needs only sum(z), sum(z z') and sum(z t), and to leave a film out is to leave out its sums. Features are not
cut off at 5 deviations, as they are in the zoo's own pipelines: sums can't tell where that would happen.

Logistic regression takes rounds: labs send gradients and curvatures at the last model, and each round is a
step of Newton's method on the loss of all clips together. Five to ten rounds end at the same minimum that one
lab with all features would find.

A clip's vector u [P] has its D features, its label, and the presence of each concept, as in `Sums`. Functions
below name targets by their columns in it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy import linalg

from obygaze_features.arguments import checked, made_by
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.ridge_tuning import PENALTIES
from obygaze_models.errors import ModelError
from obygaze_models.joint.sums import About, Sums
from obygaze_models.prediction.training_films import TrainingFilms

Floats = NDArray[np.float64]
Standard = tuple[Floats, Floats]
"""Mean and deviation [D] by which features are standardised."""

FIELDS_OF_LAB = ("provenance", "store", "movies", "left_out", "least", "licence", "label_policy")
"""Fields of sums that may differ between labs; all others must agree."""

LARGEST_LAST_CHANGE = 1e-9
"""Rounds end when the largest change of a weight is at most this share of the largest weight."""


@dataclass(frozen=True, eq=False, slots=True)
class Planes:
    """Hyperplanes w z + b = 0 for K targets, in standardised features z that are not clipped.

    Attributes
    ----------
    mean, scale : ndarray, shape [D]
        Mean and deviation by which features are standardised.
    weights : ndarray, shape [K, D]
    intercepts : ndarray, shape [K]
    penalties : ndarray, shape [K]
        Weight of the squares of w in the loss.
    losses : ndarray, shape [K]
        Mean squared error on films left out, at these penalties; NaN if the penalties were given.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    intercepts: Floats
    penalties: Floats
    losses: Floats

    def decision_function(self, X: NDArray[Any]) -> Floats:
        """Compute the value w z + b of each hyperplane for features X [N, D]: [N, K]."""
        return ((X - self.mean) / self.scale) @ self.weights.T + self.intercepts

    def distances(self, X: NDArray[Any]) -> Floats:
        """Compute the signed distances (w z + b) / ||w|| of features X [N, D] to the hyperplanes: [N, K]."""
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
        The hyperplane of the label in distances to CAVs. Distances are standardised by mean and deviation of
        the distances to CAVs that were fitted without the clip's film.
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
        The sums of all films.
    """

    sums: Sums

    @property
    def about(self) -> About:
        """The films, features and columns that the sums are of."""
        return self.sums.about

    def without(self, movies: Collection[str]) -> "Joint":
        """Return the sums without some films.

        Raises
        ------
        ModelError
            A film is not in the sums, or none is left.
        """
        sums = self.sums
        films = self.about.movies
        unknown = sorted(set(movies) - set(films))
        if unknown:
            raise ModelError(f"film {unknown[0]} is not in these sums")
        rows = [row for row, movie in enumerate(films) if movie not in movies]
        if not rows:
            raise ModelError("no film is left")
        others = Sums(
            about=structs.replace(self.about, movies=[films[row] for row in rows]),
            counts=sums.counts[rows],
            means=sums.means[rows],
            products=sums.products[rows],
            start=sums.start,
            training=None if sums.training is None else sums.training.of_films(rows),
        )
        return Joint(others)

    def learnable(self) -> tuple[str, ...]:
        """List the concepts that vary among clips whichever film is left out, so that they can be learnt."""
        counts = self.sums.counts
        # Concepts are in the columns after the features and the label.
        shares = self.sums.means[:, self.about.n_features + 1 :]  # [F, concepts]
        n_present = counts[:, None] * shares
        n_present_in_others = n_present.sum(axis=0) - n_present
        n_clips_of_others = (counts.sum() - counts)[:, None]
        # Counts are computed back from rounded means: less than half a clip counts as none.
        has_clips_with = n_present_in_others > 0.5
        has_clips_without = n_present_in_others < n_clips_of_others - 0.5
        varies = (has_clips_with & has_clips_without).all(axis=0)
        return tuple(name for name, is_varying in zip(self.about.concepts, varies, strict=True) if is_varying)

    def cav(self, *concepts: str, penalty: float | None = None) -> Planes:
        """Fit ridge CAVs of concepts, with hyperplanes midway between the mean projections of both classes.

        Parameters
        ----------
        *concepts : str
            By default all concepts that can be learnt whichever film is left out (`learnable`).
        penalty : float, optional
            Weight of the squares of w; by default it is chosen for each concept by leaving one film out at a
            time.

        Raises
        ------
        ModelError
            There is no such concept. Or all clips have it, or none has it. Or one of these becomes true when
            a film is left out to choose the penalty; or there is only one film to choose it by.
        """
        columns = [self.about.column(name) for name in concepts or self.learnable()]
        return self._ridge(columns, penalty, midway=True)

    def linear(self, *, penalty: float | None = None) -> Planes:
        """Fit a linear model of the label, by ridge regression of 1 (positive) and 0 (negative).

        The value of its hyperplane is an estimate of the label: near 1 for positive clips, near 0 for others.

        Parameters
        ----------
        penalty : float, optional
            Weight of the squares of w in the loss, 0 for least squares; by default it is chosen by leaving
            one film out at a time.

        Raises
        ------
        ModelError
            All clips have the same label. Or all have it when a film is left out to choose the penalty; or
            there is only one film to choose it by.
        """
        label_column = self.about.column()
        return self._ridge([label_column], penalty, midway=False)

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
        cavs = self.cav(*names)
        columns = [self.about.column(name) for name in names]
        n_films = len(self.sums.counts)
        n_values = len(names)
        # The sums of new vectors: a clip's distances to the CAVs, which replace its features, and its label.
        means = np.empty((n_films, n_values + 1))
        products = np.empty((n_films, n_values + 1, n_values + 1))
        with one_blas_thread():
            for row, movie in enumerate(self.about.movies):
                others = self.without([movie])
                cavs_of_others = others._solve_ridge(
                    (cavs.mean, cavs.scale), columns, cavs.penalties, midway=True
                )
                # The new vector of a clip is matrix u + shift, so mean and products follow from those of u.
                matrix, shift = self._to_distances(cavs_of_others)
                means[row] = matrix @ self.sums.means[row] + shift
                products[row] = matrix @ self.sums.products[row] @ matrix.T
        about = structs.replace(self.about, n_features=n_values, concepts=[])
        sums_of_distances = Sums(about, self.sums.counts, means, products, start={})
        head = Joint(sums_of_distances).linear()
        return Bottleneck(cavs, names, head)

    def _to_distances(self, cavs: Planes) -> tuple[Floats, Floats]:
        """Compute the affine map from a clip's vector u [P] to its distances to K CAVs and its label.

        The map is ``matrix @ u + shift``. A distance (w z + b) / ||w|| is of standardised features
        z = (x - mean) / scale, so that it is (w / scale / ||w||) x + (b - w mean / scale) / ||w||.

        Returns
        -------
        matrix : ndarray, shape [K + 1, P]
        shift : ndarray, shape [K + 1]
        """
        n_features = self.about.n_features
        n_cavs = len(cavs.weights)
        lengths = np.linalg.norm(cavs.weights, axis=1)
        lengths[lengths == 0] = 1
        matrix = np.zeros((n_cavs + 1, self.sums.means.shape[1]))
        matrix[:n_cavs, :n_features] = cavs.weights / lengths[:, None] / cavs.scale
        matrix[n_cavs, n_features] = 1  # the label stays as it is
        values_at_zero = cavs.intercepts - cavs.weights @ (cavs.mean / cavs.scale)
        return matrix, np.append(values_at_zero / lengths, 0.0)

    def film_errors(self, planes: Planes, target: str = "") -> dict[str, float]:
        """Compute the mean squared error of the first hyperplane on each film, from the film's sums.

        Parameters
        ----------
        target : str
            A concept; "" is the label.
        """
        first = replace(planes, weights=planes.weights[:1], intercepts=planes.intercepts[:1])
        columns = [self.about.column(target)]
        errors = [self._film_squared_errors(first, columns, row)[0] for row in range(len(self.about.movies))]
        means = np.array(errors) / self.sums.counts
        return dict(zip(self.about.movies, means.tolist(), strict=True))

    def lab_error(self, movies: Collection[str], penalty: float, target: str = "") -> tuple[float, float]:
        """Compute the errors of two predictions for a lab's films, both made from the other labs' films.

        The predictions are ridge regression and the share of positives. If the error of the regression is far
        above that of the share, the lab's films are of another kind, or its sums are wrong.

        Parameters
        ----------
        movies : collection of str
            The lab's films.
        penalty : float
            Weight of the squares of w.
        target : str
            A concept; "" is the label.

        Returns
        -------
        error, error_of_share : float
            Mean squared errors.

        Raises
        ------
        ModelError
            As of `linear`, for the others.
        """
        others = self.without(movies)
        columns = [self.about.column(target)]
        regression = others._ridge(columns, penalty, midway=False)
        # A hyperplane without weights predicts its intercept for every clip: the share of positives.
        share = others._moments_of_all.mean[columns]
        constant = replace(regression, weights=0 * regression.weights, intercepts=share)
        # 0 for films of other labs, so that they do not count in the means.
        counts_of_lab = self.sums.counts * np.isin(self.about.movies, list(movies))
        errors_of_regression = list(self.film_errors(regression, target).values())
        errors_of_share = list(self.film_errors(constant, target).values())
        error = float(np.average(errors_of_regression, weights=counts_of_lab))
        error_of_share = float(np.average(errors_of_share, weights=counts_of_lab))
        return error, error_of_share

    # --- arithmetic
    @cached_property
    def _moments_of_all(self) -> "_Moments":
        """Moments of all films together, combined from those of films (Chan, Golub and LeVeque 1983).

        Unlike sums of squares, this stays precise if means are large.
        """
        counts = self.sums.counts
        means = self.sums.means
        n_clips = counts.sum()
        mean = counts @ means / n_clips
        deviations = means - mean
        between_films = (deviations.T * counts) @ deviations
        return _Moments(float(n_clips), mean, self.sums.products.sum(axis=0) + between_films)

    def _mean_and_deviation(self) -> Standard:
        """Compute mean and deviation [D] of the features over all clips; a deviation of 0 becomes 1."""
        n_features = self.about.n_features
        moments = self._moments_of_all
        mean = moments.mean[:n_features]
        deviation = np.sqrt(np.diag(moments.products)[:n_features] / moments.n_clips)
        # Features are stored as float32: smaller deviations are rounding errors.
        is_constant = deviation <= 10 * np.finfo(np.float32).eps * np.abs(mean)
        return mean, np.where(is_constant, 1.0, deviation)

    def _refuse_constant(self, columns: list[int], where: str) -> None:
        """Raise if a target, given by its column, is in all clips or in none; `where` begins the message."""
        # Of the columns after the features.
        names = ["the positive class", *(f"concept {name}" for name in self.about.concepts)]
        for column in columns:
            share = self._moments_of_all.mean[column]
            if not 0 < share < 1:
                name = names[column - self.about.n_features]
                raise ModelError(f"{where}: {name} is in {'all' if share else 'none'} of the clips")

    def _ridge(self, columns: list[int], penalty: float | None, *, midway: bool) -> Planes:
        """Fit ridge regression of K targets, given by their columns.

        The penalty is the same for all targets or, if None, chosen for each by leaving films out. With
        `midway`, hyperplanes are moved midway between the mean projections of both classes.
        """
        self._refuse_constant(columns, "these sums")
        with one_blas_thread():
            standard = self._mean_and_deviation()
            if penalty is None:
                penalties, losses = self._choose_penalties(standard, columns)
            else:
                penalties = np.full(len(columns), penalty, np.float64)
                losses = np.full(len(columns), np.nan)
            return replace(self._solve_ridge(standard, columns, penalties, midway=midway), losses=losses)

    def _choose_penalties(self, standard: Standard, columns: list[int]) -> tuple[Floats, Floats]:
        """Choose the penalty of each target, given by its column, by the squared error on films left out.

        Returns
        -------
        penalties, losses : ndarray, shape [K]
            The chosen penalties, and the mean squared errors with them.
        """
        if len(self.about.movies) < 2:
            raise ModelError(
                "a penalty is chosen by leaving films out, and there is one film: give the penalty"
            )
        n_features = self.about.n_features
        moments = self._moments_of_all
        _, scale = standard
        # Penalties are in units of the mean sum of squares of standardised features in a direction; there are
        # as many directions as clips or features, whichever are fewer.
        squares = float((np.diag(moments.products)[:n_features] / scale**2).sum())
        candidates = squares / min(moments.n_clips, n_features) * np.array(PENALTIES)
        errors = np.zeros((len(PENALTIES), len(columns)))
        for row, movie in enumerate(self.about.movies):
            others = self.without([movie])
            others._refuse_constant(columns, f"without film {movie}")
            for index, penalty in enumerate(candidates):
                penalties = np.full(len(columns), penalty)
                solved = others._solve_ridge(standard, columns, penalties, midway=False)
                errors[index] += self._film_squared_errors(solved, columns, row)
        losses = errors / moments.n_clips
        return candidates[losses.argmin(axis=0)], losses.min(axis=0)

    def _solve_ridge(
        self, standard: Standard, columns: list[int], penalties: Floats, *, midway: bool
    ) -> Planes:
        """Solve ridge regression of K targets for weights and intercepts.

        Parameters
        ----------
        standard : tuple of ndarray
            Mean and deviation by which features are standardised.
        columns : list of int
            Columns of the targets.
        penalties : ndarray, shape [K]
        midway : bool
            Whether hyperplanes are moved midway between the mean projections of both classes.
        """
        n_features = self.about.n_features
        # Means of features and targets, and the sums of products of their deviations.
        n_clips, mean, products = self._moments_of_all
        centre, scale = standard
        # The same of standardised features: their means [D], products among them, and products with targets.
        z_mean = (mean[:n_features] - centre) / scale
        gram = products[:n_features, :n_features] / np.outer(scale, scale)  # [D, D]
        moments = products[:n_features, columns] / scale[:, None]  # [D, K]
        weights = np.empty((len(columns), n_features))
        for penalty in np.unique(penalties):
            has_penalty = penalties == penalty
            weights[has_penalty] = _solve_system(gram, moments[:, has_penalty], float(penalty)).T
        share = mean[columns]
        intercepts = share - weights @ z_mean
        if midway:
            # The mean of clips with the target is covariance / share away from the mean of all clips, and
            # that of the others covariance / (1 - share) to the other side.
            covariance = moments / n_clips
            middle = (covariance / share - covariance / (1 - share)) / 2 + z_mean[:, None]
            intercepts = -np.einsum("kd,dk->k", weights, middle)
        return Planes(centre, scale, weights, intercepts, penalties, np.full(len(columns), np.nan))

    def _film_squared_errors(self, planes: Planes, columns: list[int], row: int) -> Floats:
        """Compute the sum of squared errors [K] of hyperplanes on the clips of one film, from its sums.

        It is the number of clips times the squared mean error, plus the sum of squares around that mean.
        `columns` are those of the targets, `row` is the film's.
        """
        n_features = self.about.n_features
        weights = planes.weights / planes.scale
        n_clips = self.sums.counts[row]
        mean = self.sums.means[row]
        products = self.sums.products[row]
        mean_error = mean[columns] - planes.intercepts - weights @ (mean[:n_features] - planes.mean)
        target_squares = np.diag(products)[columns]
        cross_products = np.einsum("kd,dk->k", weights, products[:n_features, columns])
        prediction_squares = np.einsum("kd,de,ke->k", weights, products[:n_features, :n_features], weights)
        around_mean = target_squares - 2 * cross_products + prediction_squares
        return np.asarray(n_clips * mean_error**2 + around_mean)


class _Moments(NamedTuple):
    """Moments of all films together.

    Attributes
    ----------
    n_clips : float
    mean : ndarray, shape [P]
        Mean of the clips' vectors.
    products : ndarray, shape [P, P]
        Sum of (u - mean) (u - mean)'.
    """

    n_clips: float
    mean: Floats
    products: Floats


def _solve_system(gram: Floats, moments: Floats, penalty: float) -> Floats:
    """Solve the normal equations (gram + penalty I) w = moments of ridge regression.

    With penalty 0 the result is the least-squares solution of smallest length.
    """
    if penalty > 0:
        return linalg.solve(gram + penalty * np.eye(len(gram)), moments, assume_a="pos")
    # Eigenvalues rise, so the last one is the largest.
    eigenvalues, axes = linalg.eigh(gram)
    # Directions whose eigenvalue is only rounding get no weight.
    is_nonzero = eigenvalues > len(gram) * np.finfo(np.float64).eps * eigenvalues[-1]
    return np.asarray((axes[:, is_nonzero] / eigenvalues[is_nonzero]) @ (axes[:, is_nonzero].T @ moments))


@checked
def join(several: Sequence[Sums]) -> Joint:
    """Join the sums of several labs, such that models can be fitted to all their films.

    Raises
    ------
    ModelError
        Their features were made differently, their targets differ, or a film is in two of them.

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
    _refuse_different(several)
    movies = [movie for sums in several for movie in sums.about.movies]
    twice = sorted({movie for movie in movies if movies.count(movie) > 1})
    if twice:
        raise ModelError(f"film {twice[0]} is in two of these sums: it would count twice")
    # Sorted by film, so that the order of the labs does not matter.
    order = np.argsort(np.array(movies))
    left_out: dict[str, int] = {}
    for sums in several:
        left_out |= sums.about.left_out
    # Of fields that may differ between labs, those of the first are kept.
    first = several[0]
    about = structs.replace(
        first.about, movies=[movies[row] for row in order], left_out=dict(sorted(left_out.items()))
    )
    # The joint sums have digests of clips only if those of every lab have them.
    training = None
    trained = [sums.training for sums in several if sums.training is not None]
    if len(trained) == len(several):
        n_films = [len(sums.about.movies) for sums in several]
        training = TrainingFilms.concatenated(trained, n_films).of_films(order.tolist())
    all_sums = Sums(
        about=about,
        counts=np.concatenate([sums.counts for sums in several])[order],
        means=np.concatenate([sums.means for sums in several])[order],
        products=np.concatenate([sums.products for sums in several])[order],
        start=first.start,
        training=training,
    )
    return Joint(all_sums)


def _refuse_different(several: Sequence[Sums]) -> None:
    """Raise if sums can't be joined: of different features or targets, or losses at different models."""
    first = several[0]
    shared_fields = [name for name in About.__struct_fields__ if name not in FIELDS_OF_LAB]
    for other in several[1:]:
        for name in shared_fields:
            value = getattr(first.about, name)
            other_value = getattr(other.about, name)
            if other_value != value:
                raise ModelError(
                    f"these sums can't be joined: {name} is {value!s:.80} in one, "
                    f"{other_value!s:.80} in another"
                )
        if any(not np.array_equal(other.start[name], array) for name, array in first.start.items()):
            raise ModelError("these sums can't be joined: their losses are at different models")


# --- rounds
# ---------------------------------------------------------------------------
@dataclass(frozen=True, eq=False, slots=True)
class FitStep:
    """The result of a round.

    Attributes
    ----------
    planes : Planes
        The new model.
    change : float
        The largest change of a weight, as a share of the largest weight.
    """

    planes: Planes
    change: float

    @property
    def is_last(self) -> bool:
        """Whether rounds have ended: another one would hardly change a weight."""
        return self.change <= LARGEST_LAST_CHANGE


@checked
def newton_step(joint: Joint, C: float = 1.0) -> FitStep:
    """Take a step of Newton's method for joint logistic regression, from gradients and curvatures of labs.

    The step goes from the model at which these were computed towards the minimum of half ||w||^2 plus C times
    the sum of log losses.

    Parameters
    ----------
    joint : Joint
        Sums that `gram(..., at=model)` returned.
    C : float
        Inverse strength of the penalty, as in scikit-learn; the same in all rounds.

    Raises
    ------
    ModelError
        The sums are not gradients and curvatures.

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
    if not joint.about.holds_derivatives:
        raise ModelError("these sums are not at a model, as rounds need them: obygaze model sums --at MODEL")
    weights = sums.start["start_weights"]
    intercept = sums.start["start_intercept"]
    old_weights: Floats = np.append(weights, intercept)
    is_penalised = np.append(np.ones(len(weights)), 0.0)  # the intercept is not
    with one_blas_thread():
        # Sums with derivatives hold films' gradients in `means`, and curvatures in `products`.
        gradient = is_penalised * old_weights + C * sums.means.sum(axis=0)
        curvature = np.diag(is_penalised) + C * sums.products.sum(axis=0)
        new_weights = old_weights - linalg.solve(curvature, gradient, assume_a="pos")
    # Not 0, to divide by it.
    largest_weight = max(np.abs(new_weights).max(), np.finfo(np.float64).tiny)
    change = float(np.abs(new_weights - old_weights).max() / largest_weight)
    planes = Planes(
        mean=sums.start["start_mean"],
        scale=sums.start["start_scale"],
        weights=new_weights[None, :-1],
        intercepts=new_weights[-1:],
        penalties=np.full(1, 1 / C),
        losses=np.full(1, np.nan),
    )
    return FitStep(planes, change)
