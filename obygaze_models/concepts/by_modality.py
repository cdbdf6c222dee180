"""Learn each concept from the modality that conveys it, and decide by the concepts of all modalities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from obygaze_features.arguments import checked
from obygaze_features.manifest import PERCEIVED_BY, Codebook, perceived, why_unperceived
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.time_bank import TimeBank
from obygaze_models.dataset.dataset import Dataset, Modality
from obygaze_models.errors import ModelError
from obygaze_models.models.binary import LogitClassifier
from obygaze_models.models.fusion import FusedClassifier, sets_of_modalities
from obygaze_models.models.modality_penalties import PenaltyPerModality
from obygaze_models.models.modality_sets import Columns, has_modality
from obygaze_models.models.scaling import CLIP
from obygaze_models.models.spec import ModelSpec

MIN_MOVIES_TO_LEARN = 2
"""A concept must be present in so many movies, and absent in so many others, to be learnt."""

MIN_MOVIES_TO_EVALUATE = 3
"""The same for an evaluation, which leaves one movie out: `MIN_MOVIES_TO_LEARN` of each are left."""


@checked
def fused_by_concepts(data: Dataset, *, in_time: bool = False) -> list[ModelSpec]:
    """Make models that decide by concepts, each concept learnt from the modality that conveys it.

    Parameters
    ----------
    data : Dataset
        With several modalities. A concept is visual, heard, or told in words. A modality that is called
        ``visual``, ``heard`` or ``told`` conveys concepts of that kind. What another modality conveys is
        stated in the provenance of its features.
    in_time : bool
        Whether concepts are learnt from frames, with presence and position (`TimeBank`), not from vectors.

    Returns
    -------
    list of ModelSpec
        One model of all modalities, called ``concepts`` or ``concepts_in_time``; one of each modality alone;
        and, with three or more modalities, one without each.

    Raises
    ------
    ModelError
        There are not two modalities with different names; or it is unknown what a modality perceives; or no
        concept that a modality conveys is present and absent in enough movies.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.dataset import Modality
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> # Two modalities, as load_dataset([LEFT, RIGHT], manifest) gives them.
    >>> provenance = {**data.group.provenance, "perceives": ["visual"]}
    >>> left = Modality(
    ...     name="left",
    ...     store=data.store,
    ...     backbone="toy",
    ...     features="pooled",
    ...     pool="as stored",
    ...     start=0,
    ...     stop=4,
    ...     missing=0,
    ...     provenance=provenance,
    ... )
    >>> right = replace(left, name="right", start=4, stop=8)
    >>> data = replace(data, modalities=(left, right))
    >>> [spec.name for spec in om.fused_by_concepts(data)]
    ['concepts', 'concepts:left', 'concepts:right']
    """
    concepts = [_learnable_concepts(data, modality) for modality in data.modalities]
    columns = [slice(modality.start, modality.stop) for modality in data.modalities]
    name = "concepts_in_time" if in_time else "concepts"
    title = "Concepts in time" if in_time else "Concepts"

    specs = []
    for modality_set in sets_of_modalities(data):
        indices = modality_set.pattern  # of the modalities in the set
        columns_of_set = tuple(columns[index] for index in indices)
        concepts_of_set = tuple(concepts[index] for index in indices)
        spec = ModelSpec(
            f"{name}{modality_set.suffix}",  # such as "concepts:left"; of all modalities "concepts"
            f"{title} of {modality_set.title}",
            partial(_make_concepts_by_modality, columns_of_set, concepts_of_set),
            choose=None,
            reads="frames" if in_time else "pooled",
            uses=("groups", "present", "unlabelled"),
        )
        specs.append(spec)
    return specs


def _learnable_concepts(data: Dataset, modality: Modality) -> tuple[str, ...]:
    """List the concepts that a modality perceives and that are present and absent in enough movies.

    Raises
    ------
    ModelError
        There are none; the message says why.
    """
    # What the modality perceives: kinds of concepts, such as "heard".
    if modality.name in PERCEIVED_BY:
        # A modality that is named after a kind of concepts perceives that kind, whatever its provenance says.
        perceives = PERCEIVED_BY[modality.name]
    else:
        perceives = perceived(modality.provenance)

    # Only clips that have the modality count.
    clips = has_modality(data.X, slice(modality.start, modality.stop))
    movies = data.movies[clips]
    learnable = []
    for concept in _perceived_concepts(data.codebook, perceives):
        is_marked = data.labels.has(concept)[clips]
        # In more movies than fits need, since an evaluation leaves one out.
        if _is_learnable(is_marked, movies, MIN_MOVIES_TO_EVALUATE):
            learnable.append(concept)

    if not learnable:
        raise ModelError(
            f"modality {modality.name}: {_explain_no_concepts(perceives, movies, data.codebook)}"
        )
    return tuple(learnable)


def _perceived_concepts(codebook: Codebook, perceives: Sequence[str]) -> list[str]:
    """List the concepts of a codebook that a modality perceives.

    `perceives` are the kinds of concepts that it perceives, such as "heard". If they are unknown (empty), the
    list is empty too. Concepts of unknown kind are left out.
    """
    if not perceives:
        return []
    names = []
    for concept in codebook.concepts:
        has_kind = bool(concept.conveyed)
        can_be_perceived = not why_unperceived(concept, perceives)
        if has_kind and can_be_perceived:
            names.append(concept.name)
    return names


def _explain_no_concepts(perceives: Sequence[str], movies: NDArray[np.str_], codebook: Codebook) -> str:
    """Write the reason why no concept can be learnt from a modality.

    Parameters
    ----------
    perceives : sequence of str
        The kinds of concepts that the modality perceives; empty if they are unknown.
    movies : ndarray of str
        The movies that have the modality.
    codebook : Codebook
    """
    if perceives:
        return (
            f"no concept that is {' or '.join(perceives)} is there and absent in {MIN_MOVIES_TO_EVALUATE} "
            f"movies each, of the {len(np.unique(movies))} that have this modality"
        )
    kinds = {concept.conveyed for concept in codebook.concepts} - {""}
    names = ", ".join(f"{kind}=STORE" for kind in sorted(kinds))
    return f"nobody knows what its store perceives: name it, {names}"


def _make_concepts_by_modality(
    columns: Columns, concepts: tuple[tuple[str, ...], ...], seed: int
) -> "ConceptsByModality":
    """Make the unfitted classifier of some modalities; it draws nothing, so the seed is not used."""
    del seed
    return ConceptsByModality(columns, concepts)


@dataclass(eq=False, repr=False)
class ConceptsByModality(LogitClassifier):
    """Classify clips by concepts, each learnt from one modality; concepts of absent modalities are masked.

    Parameters
    ----------
    columns : tuple of slice
        The modalities' columns in X, of vectors [N, D] or of frames [N, F, D].
    concepts : tuple of tuple of str
        For each modality, the concepts that are learnt from it.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
    banks_ : list of (slice, ConceptBank)
        For each modality from which a concept could be learnt: its columns in X, and the fitted bank, of
        ridge CAVs for vectors or of directions for frames.
    head_ : FusedClassifier
        Decides by the concepts' values; trained on cross-fitted values.
    threshold_ : float
    """

    columns: Columns
    concepts: tuple[tuple[str, ...], ...]

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike, *, present: pd.DataFrame) -> Self:
        """Fit a bank of CAVs on each modality, then the head on their cross-fitted values.

        Parameters
        ----------
        X : array-like, shape [N, D] or [N, F, D]
            NaN in the columns of a modality that a clip lacks.
        y, groups : array-like, shape [N]
            The label and the movie of each clip. Clips with the label -1 are not in the task: only concepts
            are learnt from them.
        present : DataFrame, shape [N, K]
            Presence of each concept, its name as the column.

        Raises
        ------
        ModelError
            No concept is present in two movies and absent in two others.
        """
        features = np.asarray(X)
        labels = np.asarray(y)
        movies = np.asarray(groups)
        values_of_banks = self._fit_banks(features, movies, present)

        # The head reads the values of all banks side by side, and fuses them like modalities.
        all_values = np.concatenate(values_of_banks, axis=1)
        widths = [values.shape[1] for values in values_of_banks]
        self.head_ = FusedClassifier(PenaltyPerModality(), _columns_of_widths(widths))
        in_task = labels >= 0
        self.head_.fit(all_values[in_task], labels[in_task], groups=movies[in_task])
        self.classes_ = self.head_.classes_
        self.threshold_ = self.head_.threshold_
        return self

    def _fit_banks(
        self, features: NDArray[Any], movies: NDArray[np.str_], present: pd.DataFrame
    ) -> list[NDArray[np.float64]]:
        """Fit a bank on each modality, and return each bank's cross-fitted values of all clips, [N, V].

        The banks are kept, as `banks_`. Each is fitted on the clips that have its modality; the values of
        other clips are NaN. A modality none of whose concepts can be learnt gets no bank.
        """
        self.banks_ = []
        values_of_banks = []
        for columns, concepts in zip(self.columns, self.concepts, strict=True):
            clips = has_modality(features, columns)
            features_of_modality = features[clips][..., columns]
            bank = _fit_bank(features_of_modality, movies[clips], present[clips], concepts)
            if bank is not None:
                self.banks_.append((columns, bank))
                values_of_banks.append(_spread_to_all_clips(bank.held_out_values_, clips))
        if not values_of_banks:
            raise ModelError("no concept that the modalities convey is marked in enough movies to be learnt")
        return values_of_banks

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the concepts of its modalities; a clip without any gets the mean score."""
        check_is_fitted(self)
        features = np.asarray(X)
        values_of_banks = []
        for columns, bank in self.banks_:
            clips = has_modality(features, columns)
            if clips.any():
                values = bank.transform(features[clips][..., columns])
            else:
                # `transform` needs at least one clip. A bank has a mean for each value that it computes.
                values = np.empty((0, len(bank.mean_)))
            values_of_banks.append(_spread_to_all_clips(values, clips))
        return self.head_.decision_function(np.concatenate(values_of_banks, axis=1))


def _fit_bank(
    X: NDArray[Any], movies: NDArray[np.str_], present: pd.DataFrame, concepts: Sequence[str]
) -> ConceptBank | None:
    """Fit a bank on one modality; None if none of its concepts is marked in enough movies.

    Parameters
    ----------
    X : ndarray, shape [n, D] or [n, F, D]
        Vectors or frames of the clips that have the modality.
    movies : ndarray of str, shape [n]
    present : DataFrame, shape [n, K]
        Presence of each concept, its name as the column.
    concepts : sequence of str
        The concepts to learn, as far as they are columns of `present`.
    """
    marks = []  # for each learnable concept, whether it is marked in each clip [n]
    for concept in concepts:
        if concept not in present:
            continue
        is_marked = present[concept].to_numpy() == 1
        if _is_learnable(is_marked, movies, MIN_MOVIES_TO_LEARN):
            marks.append(is_marked)
    if not marks:
        return None

    has_frames = X.ndim == 3
    bank = TimeBank() if has_frames else ConceptBank("ridge", C=None, clip=CLIP)
    bank.fit(X, np.column_stack(marks), groups=movies)
    bank.set_moments(bank.held_out_distances_)
    return bank


def _spread_to_all_clips(values: NDArray[np.float64], clips: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return an array [N, K] with the values [n, K] in the rows that `clips` [N] marks, and NaN in others."""
    all_values = np.full((len(clips), values.shape[1]), np.nan)
    all_values[clips] = values
    return all_values


def _columns_of_widths(widths: Sequence[int]) -> Columns:
    """Return the columns, as slices, of arrays with these widths when they are joined side by side."""
    columns = []
    start = 0
    for width in widths:
        columns.append(slice(start, start + width))
        start += width
    return tuple(columns)


def _is_learnable(is_marked: NDArray[np.bool_], movies: NDArray[np.str_], min_movies: int) -> bool:
    """Tell whether clips of at least `min_movies` movies have a concept, and clips of as many lack it.

    `is_marked` [N] says of each clip whether it has the concept, `movies` [N] are the clips' movies.
    """
    movies_with = np.unique(movies[is_marked])
    movies_without = np.unique(movies[~is_marked])
    return len(movies_with) >= min_movies and len(movies_without) >= min_movies
