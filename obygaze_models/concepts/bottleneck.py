"""Fit the post-hoc concept bottleneck: features to concepts, then concepts to the label."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from obygaze_features.manifest.spans.names import suggestion
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.bank import ConceptBank, crossfit
from obygaze_models.concepts.cav_fitting import Floats
from obygaze_models.concepts.control_bank import ControlBank, Directions
from obygaze_models.concepts.explanations import Contribution, Explanation, tree_path
from obygaze_models.concepts.head_scores import additive_parts, head_scores, sum_by_concept
from obygaze_models.concepts.heads import ConceptHead, HeadName, choice_for_head, make_head
from obygaze_models.errors import ConceptError
from obygaze_models.models.binary import LogitClassifier, encode_labels, validated_rows
from obygaze_models.models.grouped_selection import GroupedSelection
from obygaze_models.models.linear import PENALTIES, linear_probe
from obygaze_models.models.parameters import Positive, Seed
from obygaze_models.models.scaling import CLIP
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.selection import inner_folds

USUAL_QUANTILES = (np.arange(20) + 0.5) / 20
"""Quantiles of a concept's values in the training clips that stand for all of them, where a tree decides."""


@dataclass(eq=False, repr=False)
class ConceptBottleneck(LogitClassifier):
    """Classify clips by their concept values only (Yuksekgonul et al., ICLR 2023).

    With presences of concepts, `fit` learns a `ConceptBank` first. The head is fitted on cross-fitted values:
    each training clip's signed distances to CAVs that were learnt without its movie's inner fold, less their
    mean and over their deviation. On the clips that a CAV was fitted on its values are optimistic. Without
    presences and a bank, the columns of X are taken for concept values, and the head is fitted on them as
    they are.

    With movies, `GroupedSelection` chooses the head's one hyper-parameter and the threshold. Without, the
    middle candidate is taken and clips with a positive logit are called positive.

    Parameters
    ----------
    head : {"logistic", "elastic_net", "tree"} or estimator
        Or a linear model or tree of scikit-learn, taken as it is.
    bank : ConceptBank, optional
        How CAVs are learnt. A default one when not given.
    residual : bool
        Whether to add to the logit a linear term in the features, fitted on what the head leaves.
    residual_C : float
        Inverse strength of its penalty.
    inner_folds : int
        Inner folds of movies; fewer where there are fewer movies.
    random_state : int
        Seed of the tree and of the elastic net's solver.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D.
    concepts_ : tuple of str
    bank_ : ConceptBank or None
        Fitted on all training clips.
    head_ : estimator
    residual_ : Residual or None
    train_values_ : ndarray of float64, shape [N, K]
        The concept values that the head was fitted on, of the clips in the task: each by a bank fitted
        without its movie. A bottleneck read from a file has their quantiles at equal steps instead.
    centre_ : ndarray, shape [K]
        Mean of `train_values_`.
    threshold_ : float
        A clip is called positive if its logit is at least this.
    candidates_ : tuple of Candidate
        What inner folds tried; empty without movies.
    held_out_ : HeldOut
        With movies only: the inner out-of-fold logit of each training clip of the task.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> present = data.present[["Body", "Clothing"]]
    >>> sexualised = data.levels == "S"
    >>> model = om.ConceptBottleneck().fit(data.X, sexualised, groups=data.movies, present=present)
    >>> model.concepts_
    ('Body', 'Clothing')
    >>> clip = data.X[1:2]
    >>> base, contributions, residual = model.contributions(clip)
    >>> bool(abs(base + contributions.sum() + residual[0] - model.decision_function(clip)[0]) < 1e-9)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "present": True}

    # 1 for a clip that is a vector [D]; 2 in subclasses, which read frames [F, D].
    _n_axes_of_clip: ClassVar[int] = 1
    _default_bank: ClassVar[type[ConceptBank]] = ConceptBank

    head: HeadName | BaseEstimator = "logistic"
    _: KW_ONLY
    bank: ConceptBank | None = None
    residual: bool = False
    residual_C: Positive = 0.01  # noqa: N815  as scikit-learn spells it
    inner_folds: Annotated[int, Interval(Integral, 2, None, closed="left")] = 4
    random_state: Seed = 0

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None, *, present: ArrayLike | None = None
    ) -> Self:
        """Learn the concepts, and fit the head on their cross-fitted values.

        Parameters
        ----------
        X : array-like, shape [N, D]
            Features; or, without `present`, concept values.
        y : array-like, shape [N]
            Two labels; the second in sorted order is the positive one. Clips with a third label, -1, are not
            in the task, and only the concepts are learnt from them. (scikit-learn marks unlabelled samples
            by -1.)
        groups : array-like, shape [N], optional
            The movie of each clip; needed with `present`.
        present : array-like or DataFrame, shape [N, K], optional
            Presence of each concept, as `ConceptBank` takes it; a data frame's columns name the concepts.

        Raises
        ------
        ConceptError
            Presences are given without movies; or a residual is wanted without presences; or without some
            inner fold, all clips have or all lack a concept, which the message names.
        """
        self._validate_params()
        features, labels = self._check_training(X, y)
        in_task = _is_in_task(labels)
        self.classes_, binary_labels = encode_labels(labels[in_task], type(self).__name__)

        movies = None
        movies_in_task = None
        folds = None
        if groups is not None:
            movies = check_array(groups, ensure_2d=False, dtype=None)
            check_consistent_length(features, movies)
            movies_in_task = movies[in_task]
            folds_in_task = inner_folds(binary_labels, movies_in_task, self.inner_folds)
            folds = _assign_all_folds(movies, in_task, folds_in_task)

        with one_blas_thread():
            # Concepts are learnt from all clips, the head from those in the task.
            values = self._learn_concepts(features, present, movies, folds)
            self.train_values_ = values[in_task]
            # Contributions of a linear head are counted from here.
            self.centre_ = self.train_values_.mean(axis=0)
            selection = self._fit_head(self.train_values_, features[in_task], binary_labels, movies_in_task)
        self._set_head(selection)
        return self

    def _set_head(self, selection: GroupedSelection) -> None:
        """Set the attributes of the fitted head, its residual and its threshold.

        They are those that `GroupedSelection` found for a `ConceptHead`.
        """
        tuned: ConceptHead = selection.estimator_
        self.head_ = tuned.estimator_
        self.residual_ = tuned.residual_
        self.threshold_ = selection.threshold_
        self.candidates_ = selection.candidates_
        # Without movies, the selection has no held-out scores. Those of an earlier fit are removed.
        self.__dict__.pop("held_out_", None)
        if hasattr(selection, "held_out_"):
            self.held_out_ = selection.held_out_

    def concept_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the value [N, K] of each clip of X [N, D] on each concept."""
        check_is_fitted(self)
        values = self._concept_values(self._check_features(X))
        # A bank in time gives two values of each concept: the K presences, then the K positions.
        return values[:, : len(self.concepts_)]

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the logit [N] of each clip of X [N, D]."""
        check_is_fitted(self)
        features = self._check_features(X)
        return self._logits(features, self._concept_values(features))

    def explain(self, X: ArrayLike) -> Explanation:
        """Decompose the score of one clip, X [D] or [1, D], into what each concept adds to the base.

        Raises
        ------
        ConceptError
            There is more than one clip.
        """
        check_is_fitted(self)
        # Only a clip without an axis of clips is made an array: a data frame keeps the names of its columns,
        # which scikit-learn compares.
        clips = X
        is_single_clip = np.ndim(X) == self._n_axes_of_clip
        if is_single_clip:
            clips = np.asarray(X)[None]  # [1, D]
        features = self._check_features(clips)
        if len(features) != 1:
            raise ConceptError(f"explain takes one clip at a time: found {len(features)}")

        residual = 0.0
        if self.residual_ is not None:
            residual = float(self.residual_.scores(features)[0])
        values_of_clips = self._concept_values(features)
        # `centre_` is the usual value of each concept, at which it contributes 0.
        base, contributions_of_clips = additive_parts(self.head_, values_of_clips, self.centre_)
        (values,) = values_of_clips
        (contributions,) = contributions_of_clips
        return Explanation(
            score=base + float(contributions.sum()) + residual,
            threshold=self.threshold_,
            base=base,
            contributions=self._contributions_of_concepts(values, contributions),
            residual=residual,
            path=tree_path(self.head_, values, self.concepts_),
        )

    def _contributions_of_concepts(
        self, values: NDArray[np.float64], contributions: NDArray[np.float64]
    ) -> tuple[Contribution, ...]:
        """Make the rows of an explanation: a clip's value on each concept, and what it adds to the logit.

        Values are compared with those of the training clips: as a percentile, and, for a linear head, with
        their mean, from which contributions are counted.

        Parameters
        ----------
        values : ndarray, shape [K], or [2 K] for concepts in time
            How much of each concept there is, then, for concepts in time, their positions.
        contributions : ndarray, of the same shape
            What each value adds to the logit.
        """
        is_lower_or_equal = self.train_values_ <= values  # [N, values]
        percentiles = is_lower_or_equal.mean(axis=0) * 100
        is_linear = hasattr(self.head_, "coef_")
        n_concepts = len(self.concepts_)
        has_positions = len(values) == 2 * n_concepts

        rows = []
        for index, concept in enumerate(self.concepts_):
            row = Contribution(
                concept=concept,
                value=float(values[index]),
                percentile=float(percentiles[index]),
                contribution=float(contributions[index]),
                usual=float(self.centre_[index]) if is_linear else None,
            )
            if has_positions:
                row = self._with_position(row, values, contributions, n_concepts + index)
            rows.append(row)
        return tuple(rows)

    def _with_position(
        self,
        of_presence: Contribution,
        values: NDArray[np.float64],
        contributions: NDArray[np.float64],
        column: int,
    ) -> Contribution:
        """Return what a concept in time contributes: by how strongly it is present, and by where in the clip.

        Such a concept has two values, its presence and its position, each with a contribution to the logit.

        Parameters
        ----------
        of_presence : Contribution
            The concept's contribution by its presence alone.
        values, contributions : ndarray, shape [2 K]
            Of all concepts: first their presences, then their positions.
        column : int
            Where the concept's position is among these.
        """
        position_contribution = float(contributions[column])
        contribution = of_presence.contribution + position_contribution
        has_usual_values = of_presence.usual is not None  # a tree's contributions do not start from these
        if not has_usual_values:
            return replace(of_presence, contribution=contribution)
        return replace(
            of_presence,
            contribution=contribution,
            position=float(values[column]),
            usual_position=float(self.centre_[column]),
            position_contribution=position_contribution,
        )

    def intervene(self, X: ArrayLike, quantiles: Mapping[str, float]) -> NDArray[np.float64]:
        """Compute the logit [N] of each clip with the values of some concepts replaced.

        Parameters
        ----------
        X : array-like, shape [N, D]
        quantiles : mapping of str to float
            For each concept to set, the quantile (0 to 1) of `train_values_` to set it to. Other concepts,
            and the residual, stay as they are.

        Raises
        ------
        ConceptError
            A concept is unknown, or a quantile outside 0 to 1.
        """
        check_is_fitted(self)
        features = self._check_features(X)
        values = self._concept_values(features).copy()
        for concept, quantile in quantiles.items():
            if concept not in self.concepts_:
                raise ConceptError(f"unknown concept {concept!r}{suggestion(concept, self.concepts_)}")
            if not 0 <= quantile <= 1:
                raise ConceptError(f"concept {concept}: a quantile is between 0 and 1, found {quantile}")
            column = self.concepts_.index(concept)
            values[:, column] = np.quantile(self.train_values_[:, column], quantile)
        return self._logits(features, values)

    def logits_at_usual(self, X: ArrayLike, concept: str) -> NDArray[np.float64]:
        """Compute the logits [N, Q] that clips would have if one concept were as it usually is.

        With a linear head that is at its mean over the training clips, where it contributes 0: Q is 1. A
        tree's score jumps at thresholds, so that the score at the mean says little of usual scores: the
        concept is set to Q quantiles of the training clips' values in turn, which stand for all of them.

        Parameters
        ----------
        X : array-like, shape [N, D]
        concept : str
        """
        check_is_fitted(self)
        features = self._check_features(X)
        values = self._concept_values(features)
        # The columns hold the values of all K concepts and then, for concepts in time, their K positions. So
        # the columns of one concept are K apart.
        n_concepts = len(self.concepts_)
        columns = np.arange(self.concepts_.index(concept), values.shape[1], n_concepts)
        has_linear_head = hasattr(self.head_, "coef_")
        if has_linear_head:
            usual_values = self.centre_[None, columns]
        else:
            usual_values = np.quantile(self.train_values_[:, columns], USUAL_QUANTILES, axis=0)

        logits = []
        for usual in usual_values:
            values_at_usual = values.copy()
            values_at_usual[:, columns] = usual
            logits.append(self._logits(features, values_at_usual))
        return np.stack(logits, axis=1)

    def contributions(self, X: ArrayLike) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Decompose the logits of clips X [N, D] into base, contributions of concepts, and residual.

        Returns
        -------
        base : float
            The logit of the mean training clip (linear head), or of the tree's root.
        contributions : ndarray, shape [N, K]
            Of each concept: the sum over its values, if the bank gives several.
        residual : ndarray, shape [N]
            The contribution of the residual. Base, contributions and residual add up to the logit.
        """
        check_is_fitted(self)
        features = self._check_features(X)
        residual = np.zeros(len(features))
        if self.residual_ is not None:
            residual = self.residual_.scores(features)

        values = self._concept_values(features)  # [N, K], or several values of each concept
        base, contributions_of_values = additive_parts(self.head_, values, self.centre_)
        contributions = sum_by_concept(contributions_of_values, len(self.concepts_))
        return base, contributions, residual

    def _check_training(self, X: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[Any]]:
        """Validate features X [N, D] and labels y [N] to fit on, and return both as arrays."""
        features, labels = validate_data(self, X, y, dtype=(np.float64, np.float32))
        return features, np.asarray(labels)

    def _check_features(self, X: ArrayLike) -> Floats:
        """Validate features X [N, D] to score, and return them as an array."""
        return validated_rows(self, X, np.float64, np.float32)

    def _learn_concepts(
        self, X: Floats, present: Any, movies: NDArray[Any] | None, folds: NDArray[np.int64] | None
    ) -> NDArray[np.float64]:
        """Fit the concept bank, and return the cross-fitted concept values [N, K] of the training clips.

        The bank and the names of its concepts are kept, as `bank_` and `concepts_`. If there is neither a
        bank nor presences to fit one on, there is nothing to learn: the features are the concept values.

        Parameters
        ----------
        X : ndarray, shape [N, D]
        present : array-like, DataFrame or None
            As `fit` takes it.
        movies : ndarray, shape [N], optional
        folds : ndarray of int, shape [N], optional
            The inner fold that holds each clip out.
        """
        if present is None and self.bank is None:
            return self._use_features_as_concepts(X)
        if movies is None or folds is None:
            raise ConceptError("concepts are cross-fitted by movie: give the movies (groups)")

        unfitted_bank = self._make_bank(present)
        presences = _check_presences(present, X)
        bank: Any = clone(unfitted_bank).fit(X, presences, groups=movies)
        # Some banks cross-fit as part of their own fit: `TimeBank`, and a bank that chooses its penalties.
        # Others are cross-fitted here.
        is_cross_fitted = hasattr(bank, "held_out_distances_")
        if not is_cross_fitted:
            bank.held_out_distances_ = crossfit(unfitted_bank, X, presences, folds)

        # Concept values are distances, standardised by the mean and deviation of cross-fitted distances:
        # distances of the clips that a CAV was fitted on are larger than those of new clips. Once the bank
        # has these moments, it gives the values of the cross-fitted distances.
        bank.set_moments(bank.held_out_distances_)
        cross_fitted_values = np.asarray(bank.held_out_values_)
        self.bank_ = bank
        self.concepts_ = tuple(bank.concepts_.tolist())
        return cross_fitted_values

    def _use_features_as_concepts(self, X: Floats) -> NDArray[np.float64]:
        """Use the columns of X [N, K] as concepts, without a bank, and return them as concept values.

        The concepts get the names of the columns, or numbers (`concepts_`).
        """
        if self.residual:
            raise ConceptError("a residual needs features beside the concepts: give `present`")
        numbered_names = [f"concept{number}" for number in range(self.n_features_in_)]
        # The names of the columns, if X was a data frame.
        names = getattr(self, "feature_names_in_", numbered_names)
        self.bank_ = None
        self.concepts_ = tuple(str(name) for name in names)
        return X.astype(np.float64)

    def _make_bank(self, present: Any) -> Any:
        """Make the unfitted bank: a copy of the parameter `bank`, or the default one.

        If the bank names no concepts, it gets the names of the columns of `present`, if this is a data frame.
        """
        bank = self._default_bank() if self.bank is None else clone(self.bank)
        if hasattr(present, "columns") and bank.concepts is None:
            bank.set_params(concepts=[str(name) for name in present.columns])
        return bank

    def _fit_head(
        self,
        values: NDArray[np.float64],
        features: Floats,
        labels: NDArray[np.int64],
        movies: NDArray[Any] | None,
    ) -> GroupedSelection:
        """Tune and fit the head, and the residual if there is one, on clips that are in the task.

        The head scores clips by their concept values. The residual is a linear term of the features, for what
        the head leaves unexplained.

        Parameters
        ----------
        values : ndarray, shape [n, K]
            Concept values of the training clips in the task.
        features : ndarray, shape [n, D]
        labels : ndarray of int, shape [n]
            0 or 1.
        movies : ndarray, shape [n], optional
        """
        residual_C = None  # without a residual
        inputs = values
        if self.residual:
            residual_C = self.residual_C
            # A `ConceptHead` reads concept values in its first columns, and features in the others.
            inputs = np.hstack([values, features])
        head = ConceptHead(
            make_head(self.head, self.random_state), n_concepts=values.shape[1], residual_C=residual_C
        )
        selection = GroupedSelection(head, choice_for_head(self.head), inner_folds=self.inner_folds)
        return selection.fit(inputs, labels, movies)

    def _concept_values(self, X: Floats) -> NDArray[np.float64]:
        """Compute the concept values of clips X [N, D]: [N, K], or [N, V K] if a concept has V values.

        The first K columns are the first value of each concept, the next K the second value, and so on.
        """
        if self.bank_ is None:
            return X.astype(np.float64)
        values: NDArray[np.float64] = self.bank_.transform(X)
        return values

    def _logits(self, X: Floats, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute logits [N] from concept values [N, K] and, for the residual, features X [N, D]."""
        with one_blas_thread():
            scores: NDArray[np.float64] = head_scores(self.head_, values)
            if self.residual_ is not None:
                scores = scores + self.residual_.scores(X)
        return scores


def _check_presences(present: Any, X: Floats) -> Any:
    """Validate the presences of concepts in the clips of X, and return them as an array [N, K].

    None, for a bank that learns without presences (such as one of texts), stays None.
    """
    if present is None:
        return None
    checked = check_array(present, ensure_2d=False, ensure_all_finite="allow-nan", dtype=np.float64)
    check_consistent_length(X, checked)
    return checked.reshape(len(checked), -1)


def _is_in_task(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Mark the clips [N] that are in the task: all but those with the label -1, if it is a third label.

    By scikit-learn's convention -1 means unlabelled. With only two labels, as -1 and 1, it is a class.
    """
    are_numbers = labels.dtype.kind in "if"
    if are_numbers and np.unique(labels).size > 2:
        return np.asarray(labels != -1)
    return np.ones(len(labels), dtype=np.bool_)


def _assign_all_folds(
    movies: NDArray[Any], in_task: NDArray[np.bool_], folds_in_task: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Assign every clip [N] to the inner fold of its movie, from the folds of the clips in the task.

    Clips that are not in the task need a fold too, since concepts are learnt from them. Movies without any
    clip in the task get the first fold, 0.

    Parameters
    ----------
    movies : ndarray, shape [N]
        The movie of each clip.
    in_task : ndarray of bool, shape [N]
    folds_in_task : ndarray of int, shape [number of clips in the task]
    """
    fold_of_movie = dict(zip(movies[in_task].tolist(), folds_in_task.tolist(), strict=True))
    return np.array([fold_of_movie.get(movie, 0) for movie in movies.tolist()], dtype=np.int64)


def _bottleneck_spec(
    name: str, title: str, head: HeadName = "logistic", control: Directions | None = None
) -> ModelSpec:
    """Make the spec of a concept bottleneck: a model that decides by values of concepts, with this head.

    A control has the same head, but its values are along directions that know nothing of the concepts:
    `control` says which, "shuffled" (learnt from presences that are shuffled among clips) or "random". A
    bottleneck that is not better than its controls owes nothing to the concepts.
    """

    def make(seed: int) -> ConceptBottleneck:
        """Make the unfitted estimator with a seed."""
        if control is None:
            bank = ConceptBank("ridge", C=None, clip=CLIP)  # inner folds choose C, for each concept
        else:
            bank = ControlBank(clip=CLIP, directions=control, random_state=seed)
        return ConceptBottleneck(head, bank=bank, random_state=seed)

    return ModelSpec(
        name,
        title,
        make,
        # The bottleneck chooses its parameters itself, by its own inner folds.
        choose=None,
        uses=("groups", "present", "unlabelled"),
        kinds=("levels", "ordinal"),
        control=control is not None,
    )


SPECS = (
    _bottleneck_spec("pcbm_lr", "PCBM-LR"),
    _bottleneck_spec("pcbm_dt", "PCBM-DT", "tree"),
    _bottleneck_spec("pcbm_lr_random", "PCBM-LR, random directions", control="random"),
    _bottleneck_spec("pcbm_lr_shuffled", "PCBM-LR, shuffled concepts", control="shuffled"),
    ModelSpec(
        "concept_labels",
        "Concept labels",
        lambda _: linear_probe(),
        choose=PENALTIES,
        reads="present",
        kinds=(),
        control=True,
    ),
)
