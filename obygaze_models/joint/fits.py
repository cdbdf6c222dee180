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

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from scipy import linalg

from obygaze_features.arguments import checked, made_by
from obygaze_features.manifest.identity import same_films
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.cav_fitting import Hyperplanes
from obygaze_models.concepts.ridge_tuning import PENALTIES
from obygaze_models.errors import ModelError
from obygaze_models.joint.sums import About, Sums
from obygaze_models.prediction.training_films import TrainingFilms

Floats = NDArray[np.float64]
FIELDS_THAT_MAY_DIFFER = ("provenance", "store", "movies", "left_out", "least", "licence", "label_policy")
"""Fields of sums that may differ between labs; all others must agree."""

ROUNDING_OF_FEATURES = 10 * np.finfo(np.float32).eps
"""A feature counts as constant if its deviation is at most this share of its mean: features are float32."""

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

    def first(self) -> "Planes":
        """Return the hyperplane of the first target alone."""
        return Planes(
            mean=self.mean,
            scale=self.scale,
            weights=self.weights[:1],
            intercepts=self.intercepts[:1],
            penalties=self.penalties[:1],
            losses=self.losses[:1],
        )


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
        """What the labs' sums over clips are of: their films, their features, and their columns."""
        return self.sums.about

    def without(self, movies: Collection[str]) -> "Joint":
        """Return a copy without some films.

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
        names = []
        n_clips_of_others = self.sums.counts.sum() - self.sums.counts  # without each film, [F]
        for concept in self.about.concepts:
            shares = self.sums.means[:, self.about.column(concept)]  # of each film's clips, [F]
            n_present = self.sums.counts * shares
            n_present_in_others = n_present.sum() - n_present
            # Counts are computed from means, with rounding errors: they are compared with half a clip.
            has_clips_with = n_present_in_others > 0.5
            has_clips_without = n_present_in_others < n_clips_of_others - 0.5
            if (has_clips_with & has_clips_without).all():
                names.append(concept)
        return tuple(names)

    def cav(self, *concepts: str, penalty: float | None = None) -> Planes:
        """Fit ridge CAVs (concept activation vectors) of concepts.

        The hyperplanes lie midway between the mean projections of clips with and without the concept.

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
            There is no such concept; or all clips have it, or none has it, possibly only when a film is left
            out to choose the penalty; or there is only one film to choose the penalty by.
        """
        columns = [self.about.column(name) for name in concepts or self.learnable()]
        planes = self._ridge(columns, penalty)
        return self._move_midway(planes, columns)

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
            All clips have the same label, possibly only when a film is left out to choose the penalty; or
            there is only one film to choose the penalty by.
        """
        label_column = self.about.column()
        return self._ridge([label_column], penalty)

    def bottleneck(self, *concepts: str) -> Bottleneck:
        """Fit a concept bottleneck: ridge CAVs, and ridge regression of the label on their distances.

        The head learns from distances to CAVs that were fitted without the clip's film, with the penalties
        that were chosen for the CAVs of all films. Its own penalty is chosen by leaving films out too.

        Raises
        ------
        ModelError
            As `cav` and `linear`.
        """
        names = concepts or self.learnable()
        cavs = self.cav(*names)
        columns = [self.about.column(name) for name in names]
        with one_blas_thread():
            sums_of_distances = self._sums_of_distances(cavs, columns)

        # Ridge regression of the label again. A `Joint` fits whatever features its sums are of: here, each
        # clip's features are its distances to the CAVs.
        head = Joint(sums_of_distances).linear()
        return Bottleneck(cavs, names, head)

    def _sums_of_distances(self, cavs: Planes, columns: list[int]) -> Sums:
        """Compute the sums that `gram` would return if the features were distances to cross-fitted CAVs.

        The distances of a film's clips are to CAVs that are fitted without the film, at the penalties of
        `cavs`. A clip's new vector has K distances and the label. It is an affine function of its old vector
        of features and labels, so that means and products of the new vectors follow from those of the old
        ones, without the clips.

        Parameters
        ----------
        cavs : Planes
            The CAVs of K concepts, fitted on all films.
        columns : list of int
            Columns of these concepts.
        """
        standard = _Standard(cavs.mean, cavs.scale)
        n_films = len(self.sums.counts)
        n_values = len(columns)
        means = np.empty((n_films, n_values + 1))
        products = np.empty((n_films, n_values + 1, n_values + 1))
        for row, movie in enumerate(self.about.movies):
            # CAVs of the other films, fitted as those of all films were (`cav`).
            others = self.without([movie])
            planes = others._solve_ridge(standard, columns, cavs.penalties)
            cavs_of_others = others._move_midway(planes, columns)

            # The film's own mean and products, of vectors of distances to these CAVs.
            to_distances = self._map_to_distances(cavs_of_others)
            means[row] = to_distances.of_mean(self.sums.means[row])
            products[row] = to_distances.of_products(self.sums.products[row])

        about = structs.replace(self.about, n_features=n_values, concepts=[])
        # Only rounds of logistic regression need a model to start from.
        return Sums(about, self.sums.counts, means, products, start={})

    def _map_to_distances(self, cavs: Planes) -> "_AffineMap":
        """Compute the affine map from a clip's vector u [P] to its distances to K CAVs and its label.

        The distance to a CAV w z + b = 0 of standardised features z = (x - mean) / scale is an affine map of
        the features x::

            (w z + b) / ||w|| = a x + s
            a = w / ||w|| / scale
            s = (b - w (mean / scale)) / ||w||
        """
        n_features = self.about.n_features
        label_column = self.about.column()
        lengths = np.linalg.norm(cavs.weights, axis=1)
        lengths[lengths == 0] = 1  # weights of 0 stay 0
        weights_of_features = cavs.weights / lengths[:, None] / cavs.scale  # a of each CAV, [K, D]
        values_at_zero = cavs.intercepts - cavs.weights @ (cavs.mean / cavs.scale)  # w z + b at x = 0
        shift_of_distances = values_at_zero / lengths  # s of each CAV, [K]

        n_cavs = len(cavs.weights)
        matrix = np.zeros((n_cavs + 1, self.sums.means.shape[1]))
        matrix[:n_cavs, :n_features] = weights_of_features
        # The last number is the label, which stays as it is.
        matrix[n_cavs, label_column] = 1
        shift_of_label = 0.0
        return _AffineMap(matrix, np.append(shift_of_distances, shift_of_label))

    def film_errors(self, planes: Planes, target: str = "") -> dict[str, float]:
        """Compute the mean squared error of a hyperplane on each film, from the film's sums.

        Parameters
        ----------
        planes : Planes
            The hyperplane; of several, the first.
        target : str
            A concept; "" is the label.
        """
        hyperplane = planes.first()
        column_of_target = [self.about.column(target)]
        sums_of_squares = []  # over the clips of each film
        for film in range(len(self.about.movies)):
            (sum_of_squares,) = self._film_squared_errors(hyperplane, column_of_target, film)
            sums_of_squares.append(sum_of_squares)
        n_clips_of_film = self.sums.counts
        mean_squares = np.array(sums_of_squares) / n_clips_of_film
        return dict(zip(self.about.movies, mean_squares.tolist(), strict=True))

    def lab_error(self, movies: Collection[str], penalty: float, target: str = "") -> tuple[float, float]:
        """Compute the errors of two models on a lab's films, both fitted to the other labs' films.

        One is ridge regression. The other predicts the same value for every clip: the share of positives. If
        the regression's error is far above that of the share, the lab's films are of another kind, or its
        sums are wrong.

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
            Mean squared error over the lab's clips of the regression, and of the share.

        Raises
        ------
        ModelError
            All clips of the others have the same label, or none is left.
        """
        others = self.without(movies)
        columns = [self.about.column(target)]
        regression = others._ridge(columns, penalty)

        # The second model is a hyperplane whose weights are 0: it predicts its intercept for every clip.
        share = others._moments_of_all.mean[columns]
        constant = replace(regression, weights=np.zeros_like(regression.weights), intercepts=share)

        error = self._mean_error(regression, target, movies)
        error_of_share = self._mean_error(constant, target, movies)
        return error, error_of_share

    def _mean_error(self, planes: Planes, target: str, movies: Collection[str]) -> float:
        """Compute the mean squared error of a hyperplane over all clips of some films.

        `target` is the concept that it predicts, or "" for the label.
        """
        error_of_film = self.film_errors(planes, target)
        # The mean over clips is the mean over films, weighted by their numbers of clips; other films weigh 0.
        is_selected = np.isin(self.about.movies, list(movies))
        n_clips = np.where(is_selected, self.sums.counts, 0.0)
        return float(np.average(list(error_of_film.values()), weights=n_clips))

    # --- arithmetic
    @cached_property
    def _moments_of_all(self) -> "_Moments":
        """The number, mean and products of all clips' vectors, from those of single films.

        A clip's vector u [P] has its features, its label and the presence of each concept. The products are
        the sum of (u - mean) (u - mean)' over clips, [P, P]: divided by the number of clips they would be
        the covariance. They have two parts (Chan, Golub and LeVeque 1983): those within films, around each
        film's own mean; and those between films, in which every clip counts as the mean of its film. Unlike
        sums of squares, they stay precise if means are large.
        """
        counts = self.sums.counts  # clips of each film, [F]
        means = self.sums.means
        n_clips = counts.sum()
        mean = counts @ means / n_clips
        deviations = means - mean  # of each film, [F, P]
        products_within_films = self.sums.products.sum(axis=0)
        # A film adds its number of clips times deviation deviation'.
        products_between_films = (deviations.T * counts) @ deviations
        return _Moments(float(n_clips), mean, products_within_films + products_between_films)

    def _mean_and_deviation(self) -> "_Standard":
        """Compute mean and deviation [D] of the features over all clips, from the sums over films.

        The deviation of a constant feature, which is 0 but for rounding, becomes 1.
        """
        n_features = self.about.n_features
        moments = self._moments_of_all
        mean = moments.mean[:n_features]
        deviation = np.sqrt(np.diag(moments.products)[:n_features] / moments.n_clips)
        is_constant = deviation <= ROUNDING_OF_FEATURES * np.abs(mean)
        return _Standard(mean, np.where(is_constant, 1.0, deviation))

    def _refuse_target_in_all_or_none(self, columns: list[int], location: str) -> None:
        """Raise if a target is in all clips or in none, so that it cannot be learnt.

        `columns` are those of the targets in a clip's vector; `location` begins the message, and says of
        which clips.
        """
        name_of_column = {self.about.column(): "the positive class"}
        for concept in self.about.concepts:
            name_of_column[self.about.column(concept)] = f"concept {concept}"
        for column in columns:
            share = self._moments_of_all.mean[column]
            if not 0 < share < 1:
                how_many = "all" if share else "none"
                raise ModelError(f"{location}: {name_of_column[column]} is in {how_many} of the clips")

    def _ridge(self, columns: list[int], penalty: float | None) -> Planes:
        """Fit ridge regression of K targets, given by their columns in a clip's vector.

        The targets are concepts or the label, 1 or 0. The penalty is the same for all targets or, if None,
        chosen for each by leaving films out.
        """
        self._refuse_target_in_all_or_none(columns, "these sums")
        with one_blas_thread():
            standard = self._mean_and_deviation()
            if penalty is None:
                penalties, losses = self._choose_penalties(standard, columns)
            else:
                penalties = np.full(len(columns), penalty, np.float64)
                losses = np.full(len(columns), np.nan)
            planes = self._solve_ridge(standard, columns, penalties)
        return replace(planes, losses=losses)

    def _choose_penalties(self, standard: "_Standard", columns: list[int]) -> tuple[Floats, Floats]:
        """Choose the penalty of each target, given by its column, by the squared error on films left out.

        Features are standardised by `standard`, of all films, also where a film is left out. The final model
        uses the same: penalties can be compared only between features in the same units.

        Returns
        -------
        penalties, losses : ndarray, shape [K]
            The chosen penalties, and the mean squared errors with them.
        """
        if len(self.about.movies) < 2:
            raise ModelError(
                "a penalty is chosen by leaving films out, and there is one film: give the penalty"
            )

        candidates = self._penalty_unit(standard) * np.array(PENALTIES)
        squared_errors = np.zeros((len(candidates), len(columns)))  # summed over the clips of all films
        for row, movie in enumerate(self.about.movies):
            others = self.without([movie])
            others._refuse_target_in_all_or_none(columns, f"without film {movie}")
            for index, penalty in enumerate(candidates):
                same_for_all_targets = np.full(len(columns), penalty)
                planes = others._solve_ridge(standard, columns, same_for_all_targets)
                squared_errors[index] += self._film_squared_errors(planes, columns, row)

        losses = squared_errors / self._moments_of_all.n_clips
        best = losses.argmin(axis=0)  # index of the penalty of each target, [K]
        return candidates[best], losses.min(axis=0)

    def _penalty_unit(self, standard: "_Standard") -> float:
        """Compute the unit of `PENALTIES`: the mean eigenvalue of the products of standardised features.

        The products are a matrix [D, D] of sums over clips, and ridge regression adds the penalty to each of
        its eigenvalues. These grow with the number of clips, so that a penalty has the same effect for few
        clips and for many if it is stated relative to their mean. Their sum is the trace of the matrix. If
        there are fewer clips than features, at most as many eigenvalues as clips are not 0: the mean is of
        these.
        """
        n_features = self.about.n_features
        moments = self._moments_of_all
        # The diagonal has the sum of squares of each feature, around its mean. A feature is standardised by
        # dividing it by its deviation, which divides its sum of squares by the square of that.
        sums_of_squares = np.diag(moments.products)[:n_features]
        sums_of_squares_standardised = sums_of_squares / standard.deviation**2
        trace = float(sums_of_squares_standardised.sum())
        max_nonzero_eigenvalues = min(moments.n_clips, n_features)
        return trace / max_nonzero_eigenvalues

    def _solve_ridge(self, standard: "_Standard", columns: list[int], penalties: Floats) -> Planes:
        """Solve ridge regression of K targets for weights and intercepts.

        The weights w solve (products of features + penalty) w = products of features with the target, where
        products are sums over clips of deviations from the mean, so that no intercept is in this equation.
        Targets with the same penalty are solved together. The losses of the planes that are returned are NaN,
        as no film is left out here.

        Parameters
        ----------
        standard : _Standard
            Mean and deviation by which features are standardised.
        columns : list of int
            Columns of the targets.
        penalties : ndarray, shape [K]
        """
        mean_z = self._mean_of_standardised(standard)
        n_features = self.about.n_features
        products = self._moments_of_all.products
        deviation = standard.deviation
        # Products of standardised features z among themselves [D, D], and with the targets [D, K].
        products_z = products[:n_features, :n_features] / np.outer(deviation, deviation)
        products_z_target = products[:n_features, columns] / deviation[:, None]

        weights = np.empty((len(columns), n_features))
        for penalty in np.unique(penalties):
            targets = penalties == penalty
            weights_of_targets = _solve_system(products_z, products_z_target[:, targets], float(penalty))
            weights[targets] = weights_of_targets.T

        # The mean prediction is that at the mean features. With this intercept it is the mean of the target,
        # which is the share of clips that have it.
        share = self._moments_of_all.mean[columns]
        intercepts = share - weights @ mean_z
        return Planes(
            mean=standard.mean,
            scale=deviation,
            weights=weights,
            intercepts=intercepts,
            penalties=penalties,
            losses=np.full(len(columns), np.nan),
        )

    def _move_midway(self, planes: Planes, columns: list[int]) -> Planes:
        """Move hyperplanes midway between the mean projections of clips with and without their target.

        The clips themselves are not at hand, only their sums. The mean of the clips with a target t follows
        from the covariance of features z and target: with t in {0, 1} and a share p of clips that have it,

            covariance = mean(z t) - mean(z) p = p (mean with target - mean(z))

        so that the mean with the target is covariance / p away from the mean of all clips. In the same way
        the mean without it is covariance / (1 - p) away, to the other side.

        Parameters
        ----------
        planes : Planes
            Of K targets, in D features.
        columns : list of int
            Columns of the targets in the clips' vectors, which have the D features first.
        """
        standard = _Standard(planes.mean, planes.scale)
        mean_z = self._mean_of_standardised(standard)
        moments = self._moments_of_all
        share = moments.mean[columns]  # of clips that have each target
        # Sums of products of deviations from the means. Division by the scale standardises the features.
        products_feature_target = moments.products[: self.about.n_features, columns]
        products_z_target = products_feature_target / planes.scale[:, None]
        covariance = products_z_target / moments.n_clips  # [D, K]

        # How far the mean with the target, and the mean without it, are from the mean of all clips.
        offset_of_mean_with = covariance / share
        offset_of_mean_without = -covariance / (1 - share)
        middle = (offset_of_mean_with + offset_of_mean_without) / 2 + mean_z[:, None]  # [D, K]
        # The intercept is minus the projection of the middle on the direction: a dot product for each plane.
        intercepts = -np.einsum("kd,dk->k", planes.weights, middle)
        return replace(planes, intercepts=intercepts)

    def _mean_of_standardised(self, standard: "_Standard") -> Floats:
        """Compute the mean [D] of the features over all clips, after `standard` has standardised them.

        It is 0 if `standard` was computed from the same clips. It is another number where some films are left
        out, whereas `standard` is of all.
        """
        # A clip's vector begins with its features; its label and its concepts follow.
        mean_of_features = self._moments_of_all.mean[: self.about.n_features]
        return (mean_of_features - standard.mean) / standard.deviation

    def _film_squared_errors(self, planes: Planes, columns: list[int], film: int) -> Floats:
        """Compute the sum of squared errors [K] of hyperplanes on the clips of one film, from its sums.

        The error of a clip with the target t and the features x is e = t - w x - c. The sum of its squares
        over the n clips of a film is n mean(e)^2, plus the sum of the squares of e - mean(e). As e is linear
        in t and x, e - mean(e) is dt - w dx, with the deviations dt and dx from the film's means::

            sum((dt - w dx)^2) = sum(dt dt) - 2 w sum(dx dt) + w sum(dx dx') w'

        Parameters
        ----------
        planes : Planes
        columns : list of int
            Columns of the planes' targets.
        film : int
            The film's row in the sums.
        """
        n_features = self.about.n_features
        # The planes are of standardised features (x - mean) / scale: w is their weight / scale.
        weights = planes.weights / planes.scale  # w of each plane, [K, D]
        n_clips = self.sums.counts[film]
        mean = self.sums.means[film]  # of the vectors, which have the features first and then the targets
        products = self.sums.products[film]  # sums of products of their deviations from the mean
        mean_error = mean[columns] - planes.intercepts - weights @ (mean[:n_features] - planes.mean)

        features_by_features = products[:n_features, :n_features]  # sum(dx dx'), [D, D]
        features_by_targets = products[:n_features, columns]  # sum(dx dt), [D, K]
        target_squares = np.diag(products)[columns]  # sum(dt dt), [K]
        cross_products = np.einsum("kd,dk->k", weights, features_by_targets)
        prediction_squares = np.einsum("kd,de,ke->k", weights, features_by_features, weights)
        squares_around_mean = target_squares - 2 * cross_products + prediction_squares
        return np.asarray(n_clips * mean_error**2 + squares_around_mean)


class _Standard(NamedTuple):
    """How features are standardised: z = (x - mean) / deviation.

    Attributes
    ----------
    mean, deviation : ndarray, shape [D]
        A constant feature has the deviation 1.
    """

    mean: Floats
    deviation: Floats


class _AffineMap(NamedTuple):
    """A map from vectors u [P] to vectors ``matrix @ u + shift``.

    Attributes
    ----------
    matrix : ndarray, shape [K, P]
    shift : ndarray, shape [K]
    """

    matrix: Floats
    shift: Floats

    def of_mean(self, mean: Floats) -> Floats:
        """Compute the mean of the new vectors, from the mean [P] of the old ones."""
        return np.asarray(self.matrix @ mean + self.shift)

    def of_products(self, products: Floats) -> Floats:
        """Compute the sum of products of the mapped vectors' deviations from their mean.

        A mapped vector is the matrix times the vector, plus a shift, which cancels out in deviations. So it
        follows from `products` [P, P], the same sum of the vectors before.
        """
        return np.asarray(self.matrix @ products @ self.matrix.T)


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


def _solve_system(products: Floats, products_with_targets: Floats, penalty: float) -> Floats:
    """Solve the normal equations (products + penalty I) w = products_with_targets of ridge regression.

    Without a penalty they may have many solutions. The result is then the solution of smallest length, by the
    pseudo-inverse of the products: their inverse along their axes (eigenvectors), except for axes along which
    features do not vary.
    """
    if penalty > 0:
        penalised = products + penalty * np.eye(len(products))
        return linalg.solve(penalised, products_with_targets, assume_a="pos")

    eigenvalues, axes = linalg.eigh(products)  # eigenvalues rise
    largest_rounding_error = len(products) * np.finfo(np.float64).eps * eigenvalues[-1]
    varies = eigenvalues > largest_rounding_error
    axes = axes[:, varies]
    coordinates = axes.T @ products_with_targets
    return np.asarray((axes / eigenvalues[varies]) @ coordinates)


@checked
def join(several: Sequence[Sums]) -> Joint:
    """Join the sums of several labs, so that models can be fitted to all their films.

    Films are sorted by name, so that the order of the labs does not matter. Where descriptions may differ
    between labs (`FIELDS_THAT_MAY_DIFFER`), that of the first is kept.

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
    if not several:
        raise ModelError("no sums are given: expected those of one lab or more, as in [read_sums(PATH)]")
    _refuse_different(several)
    movies = [movie for sums in several for movie in sums.about.movies]
    _refuse_films_in_two(movies)
    order = np.argsort(np.array(movies))

    left_out: dict[str, int] = {}
    for sums in several:
        left_out |= sums.about.left_out
    first = several[0]
    about = structs.replace(
        first.about, movies=[movies[row] for row in order], left_out=dict(sorted(left_out.items()))
    )
    digests = _join_digests(several)

    all_sums = Sums(
        about=about,
        counts=np.concatenate([sums.counts for sums in several])[order],
        means=np.concatenate([sums.means for sums in several])[order],
        products=np.concatenate([sums.products for sums in several])[order],
        start=first.start,
        training=None if digests is None else digests.of_films(order.tolist()),
    )
    return Joint(all_sums)


def _refuse_films_in_two(movies: Sequence[str]) -> None:
    """Raise if a film is in the sums of two labs, in any spelling; `movies` lists the films of all."""
    n_sums_of_film = Counter(movies)
    in_two = sorted(movie for movie, n_sums in n_sums_of_film.items() if n_sums > 1)
    if in_two:
        raise ModelError(f"film {in_two[0]} is in two of these sums: it would count twice")
    for movie, earlier_name in same_films(movies):
        raise ModelError(f"film {movie} is in two of these sums, as {earlier_name} too: it would count twice")


def _join_digests(several: Sequence[Sums]) -> TrainingFilms | None:
    """Join the digests of the labs' clips, in the order of the labs; None if those of a lab are missing."""
    digests = []
    for sums in several:
        if sums.training is None:
            return None
        digests.append(sums.training)
    n_films = [len(sums.about.movies) for sums in several]
    return TrainingFilms.concatenated(digests, n_films)


def _refuse_different(several: Sequence[Sums]) -> None:
    """Raise if labs' sums can't be joined: features or targets differ, or losses are at different models."""
    first = several[0]
    fields_that_agree = [name for name in About.__struct_fields__ if name not in FIELDS_THAT_MAY_DIFFER]
    for other in several[1:]:
        for name in fields_that_agree:
            value = getattr(first.about, name)
            other_value = getattr(other.about, name)
            if other_value != value:
                raise ModelError(
                    f"these sums can't be joined: {name} is {value!s:.80} in one, "
                    f"{other_value!s:.80} in another"
                )
        # Derivatives of losses can be added only if they are at the same model (`start`).
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
        """Whether the fit has converged: another round would hardly change a weight."""
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
    # Half ||w||^2 has the gradient w and the curvature 1; the intercept is not penalised.
    penalty_factors = np.append(np.ones(len(weights)), 0.0)
    with one_blas_thread():
        # The derivatives of the log losses at this model are summed over the films of all labs.
        gradient = penalty_factors * old_weights + C * sums.gradients.sum(axis=0)
        curvature = np.diag(penalty_factors) + C * sums.curvatures.sum(axis=0)
        new_weights = old_weights - linalg.solve(curvature, gradient, assume_a="pos")

    planes = Planes(
        mean=sums.start["start_mean"],
        scale=sums.start["start_scale"],
        weights=new_weights[None, :-1],
        intercepts=new_weights[-1:],
        penalties=np.full(1, 1 / C),
        losses=np.full(1, np.nan),
    )
    return FitStep(planes, _relative_change(old_weights, new_weights))


def _relative_change(old_weights: Floats, new_weights: Floats) -> float:
    """Return the largest change of a weight, as a share of the largest new weight."""
    largest_change = np.abs(new_weights - old_weights).max()
    # At least the smallest float, so that weights that are all 0 do not lead to a division by 0.
    largest_weight = max(np.abs(new_weights).max(), np.finfo(np.float64).tiny)
    return float(largest_change / largest_weight)
