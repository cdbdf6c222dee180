"""Select hyperparameters and the threshold by inner folds of movies."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from obygaze_models.blas import one_blas_thread
from obygaze_models.models.binary import ABOVE_ZERO, LogitClassifier, encode_labels
from obygaze_models.models.choices import (
    Candidate,
    Choice,
    Chosen,
    EarlyStopping,
    Grid,
    candidates,
    log_loss,
)
from obygaze_models.models.estimator_scores import mean_score, refuse_without_scores, scores_of
from obygaze_models.models.inner_scores import InnerFolds, score_candidates
from obygaze_models.models.probe_search import TrainingSet, is_probe_search, search_probes
from obygaze_models.protocol.held_out import HeldOut
from obygaze_models.protocol.selection import inner_folds


@dataclass(eq=False, repr=False)
class GroupedSelection(MetaEstimatorMixin, LogitClassifier):
    """Choose a parameter of an estimator, or its epochs, and its threshold, by inner folds of movies.

    Whole movies are held out in `inner_folds` folds, so that each training clip gets a score by a model that
    was not trained on its movie. Parameter or epochs are chosen by these scores. The threshold is the one
    with the highest f1_pos on them. The chosen estimator is then fitted on all clips. Without movies
    (``groups``) nothing is chosen: the estimator is fitted as it is, and clips with a positive score are
    called positive.

    Parameters
    ----------
    estimator : estimator
        A binary classifier with ``decision_function`` or ``predict_proba``; the logit of the probability is
        then the score.
    choose : Threshold, Grid, EarlyStopping or None
        What is chosen in addition to the threshold; None, as `Threshold`, for nothing.
    inner_folds : int
        Number of inner folds; with fewer movies there are fewer.
    pass_groups : bool
        Whether the movies are also passed to the estimator's own ``fit``.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    estimator_ : estimator
        Fitted on all clips.
    threshold_ : float
        A clip is called positive if its score is at least this.
    candidates_ : tuple of Candidate
        The values that were tried; empty without movies.
    held_out_ : HeldOut
        The out-of-fold score of each training clip; with movies only.
    curves_ : tuple of Curve
        Of the inner trainings that stopped early.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> y = data.levels == "S"
    >>> model = om.GroupedSelection(LogisticRegression()).fit(data.X, y, groups=data.movies)
    >>> model.held_out_.scores.shape
    (95,)
    >>> bool(model.predict(data.X).any())
    True
    """

    estimator: Any
    choose: Choice | None = None
    _: KW_ONLY
    inner_folds: int = 4
    pass_groups: bool = False

    def get_metadata_routing(self) -> MetadataRouter:
        """Tell scikit-learn which arguments of ``fit`` to pass here, and which to pass on to the estimator.

        This selection takes ``groups`` itself; the estimator takes what it requests.
        """
        router = MetadataRouter(owner=type(self).__name__)
        router.add_self_request(self)
        fit_to_fit = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=fit_to_fit)
        return router

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, **params: Any) -> Self:
        """Choose parameter or epochs and the threshold by inner folds, then fit the estimator on all clips.

        Parameters
        ----------
        X : array-like, shape [N, ...]
            Vectors [N, D], or arrays of another shape that the estimator reads.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one.
        groups : array-like, shape [N], optional
            The movie of each clip.
        **params
            Arrays [N, ...] for the estimator's ``fit``, of which each fold gets its clips' rows.

        Raises
        ------
        ProtocolError
            The movies don't allow an inner selection.
        ValueError
            The estimator gives no scores.
        """
        # Features may have any number of dimensions; the estimator itself checks their values.
        features = check_array(X, dtype=None, ensure_2d=False, allow_nd=True, ensure_all_finite=False)
        y = check_array(column_or_1d(y, warn=True), dtype=None, ensure_2d=False, input_name="y")
        classes, labels = encode_labels(y, type(self.estimator).__name__)
        check_consistent_length(features, labels)
        refuse_without_scores(self.estimator)
        self._forget_choice()

        if groups is None:
            # Without movies nothing can be chosen.
            with one_blas_thread():
                estimator = clone(self.estimator).fit(features, labels, **params)
            return self._set_fitted(classes, estimator, tried=())

        movies = check_array(groups, ensure_2d=False, dtype=None)
        check_consistent_length(features, movies)
        folds = inner_folds(labels, movies, self.inner_folds)
        if self.pass_groups:
            params["groups"] = movies
        chosen = self._choose(InnerFolds(features, labels, folds, params))
        held_out = HeldOut(chosen.scores, labels, movies, folds, chosen.training_means)
        return self.set_chosen(chosen, classes, held_out)

    def _forget_choice(self) -> None:
        """Delete attributes of an earlier fit that the next one sets only if it is given movies."""
        for name in ("held_out_", "curves_"):
            if hasattr(self, name):
                delattr(self, name)

    def set_chosen(self, chosen: Chosen, classes: NDArray[Any], held_out: HeldOut) -> Self:
        """Set the fitted attributes from a choice that was already made.

        Parameters
        ----------
        chosen : Chosen
            With the fitted estimator.
        classes : ndarray, shape [2]
            The negative and the positive label.
        held_out : HeldOut
            Out-of-fold scores of the training clips.
        """
        # Only trainings that stop early have loss curves.
        if isinstance(self.choose, EarlyStopping):
            self.curves_ = chosen.curves
        return self._set_fitted(classes, chosen.estimator, chosen.candidates, held_out)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N]: higher for the positive class."""
        check_is_fitted(self)
        with one_blas_thread():
            return scores_of(self.estimator_, np.asarray(X))

    def _set_fitted(
        self,
        classes: NDArray[Any],
        estimator: Any,
        tried: tuple[Candidate, ...],
        held_out: HeldOut | None = None,
    ) -> Self:
        """Set the fitted attributes, and the threshold that belongs to them.

        Parameters
        ----------
        classes : ndarray, shape [2]
            The negative and the positive label.
        estimator : estimator
            Fitted on all clips.
        tried : tuple of Candidate
            The values that were tried, which become `candidates_`.
        held_out : HeldOut, optional
            Out-of-fold scores of the training clips, by which the threshold is chosen; None if there are no
            movies to hold out.
        """
        self.classes_ = classes
        self.estimator_ = estimator
        self.candidates_ = tried
        if held_out is None:
            # Clips with a positive score are called positive, as by scikit-learn's classifiers; those with a
            # score of 0 are not.
            self.threshold_ = ABOVE_ZERO
        else:
            self.held_out_ = held_out
            self.threshold_ = held_out.threshold()
        if hasattr(estimator, "n_features_in_"):
            self.n_features_in_ = estimator.n_features_in_
        return self

    # --- choosing by inner folds
    # -----------------------------------------------------------------------

    def _choose(self, inner: InnerFolds) -> Chosen:
        """Score held-out clips by inner folds, choose by the scores, and fit the choice on all clips.

        With a `Grid` the value of a parameter is chosen, with `EarlyStopping` the number of epochs; otherwise
        the scores only serve to choose the threshold. For the zoo's linear probe there is a faster search of
        the grid, which gives the same choice.
        """
        choose = self.choose
        has_faster_search = is_probe_search(self.estimator, choose) and not inner.params
        if isinstance(choose, Grid) and has_faster_search:
            all_clips = TrainingSet(rows=np.arange(len(inner.y)), inner=inner.folds)
            # One choice for each training set, of which there is one here.
            (chosen,) = search_probes(self.estimator, choose, inner.X, inner.y, [all_clips])
            return chosen

        with one_blas_thread():
            if isinstance(choose, Grid):
                chosen = self._choose_value(choose, inner)
            elif isinstance(choose, EarlyStopping):
                chosen = self._choose_epochs(choose, inner)
            else:
                chosen = self._choose_threshold_alone(inner)
            fitted_on_all = chosen.estimator.fit(inner.X, inner.y, **inner.params)
        return chosen._replace(estimator=fitted_on_all)

    def _choose_value(self, grid: Grid, inner: InnerFolds) -> Chosen:
        """Choose the parameter value of a grid with the lowest log loss on held-out clips.

        The estimator of the result is not fitted yet.
        """
        estimators = [clone(self.estimator).set_params(**{grid.parameter: value}) for value in grid.values]
        scores, training_means = score_candidates(estimators, inner, grid.parameter)
        losses = [log_loss(inner.y, logits) for logits in scores]
        best = int(np.argmin(losses))
        # Without the name of the pipeline's step: "C" of "ridgelogistic__C".
        short_name = grid.parameter.rsplit("__", maxsplit=1)[-1]
        return Chosen(
            estimator=clone(estimators[best]),
            candidates=candidates(short_name, grid.values, losses, best),
            scores=scores[best],
            training_means=training_means[best],
        )

    def _choose_threshold_alone(self, inner: InnerFolds) -> Chosen:
        """Score held-out clips, by which the threshold will be chosen; nothing else is chosen.

        The estimator of the result is not fitted yet.
        """
        scores, training_means = score_candidates([clone(self.estimator)], inner)
        return Chosen(
            estimator=clone(self.estimator),
            candidates=(),
            scores=scores[0],
            training_means=training_means[0],
        )

    def _choose_epochs(self, stopping: EarlyStopping, inner: InnerFolds) -> Chosen:
        """Choose the number of epochs: the median of those at which the inner models stopped early.

        The inner models serve only to score held-out clips and to choose the number. The estimator of the
        result, which will be trained on all clips for as many epochs, is not fitted yet.
        """
        X = inner.X
        y = inner.y
        scores = np.empty(len(y))
        training_means = np.empty(len(y))
        epochs_of_folds = []
        curves = []
        for fold, held_out in enumerate(inner.held_out_clips()):
            in_training = ~held_out
            model = self._copy_for_fold(fold)
            params = inner.params_of(in_training)
            model.fit(X[in_training], y[in_training], X_val=X[held_out], y_val=y[held_out], **params)

            # The epoch was chosen on the clips scored here, so their scores are slightly optimistic. This can
            # move the threshold, but the clips of the test fold are not among them.
            scores[held_out] = scores_of(model, X[held_out])
            training_means[held_out] = mean_score(model, X[in_training])

            # The fitted attribute that holds the number of epochs, such as `n_epochs_`.
            epochs_of_folds.append(int(getattr(model, stopping.fitted)))
            if hasattr(model, "curve_"):
                curves.append(model.curve_)

        # If the median lies between two epochs, the later one.
        n_epochs = int(np.ceil(np.median(epochs_of_folds)))
        candidate = Candidate(f"{stopping.parameter}={n_epochs}", log_loss(y, scores), chosen=True)
        return Chosen(
            estimator=clone(self.estimator).set_params(**{stopping.parameter: n_epochs}),
            candidates=(candidate,),
            scores=scores,
            training_means=training_means,
            curves=tuple(curves),
        )

    def _copy_for_fold(self, fold: int) -> Any:
        """Clone the estimator for an inner fold, with a seed derived from its own and the fold's number.

        So the models of the folds draw different random numbers. An estimator without a seed is only cloned.
        """
        model = clone(self.estimator)
        parameters = model.get_params()
        if "random_state" in parameters:
            # Folds are counted from 1 here.
            seeds = np.random.SeedSequence((parameters["random_state"], fold + 1))
            model.set_params(random_state=int(seeds.generate_state(1)[0]))
        return model
