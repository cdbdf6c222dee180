"""Learn each concept from the modality that conveys it, and decide by the concepts of all modalities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from obygaze_features.arguments import checked
from obygaze_features.manifest import PERCEIVED_BY, Codebook, perceived, why_unperceived
from obygaze_models.concepts.bank import ConceptBank
from obygaze_models.concepts.in_time import TimeBank
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.models.binary import LogitClassifier
from obygaze_models.models.fusion import FusedClassifier, subsets
from obygaze_models.models.modality_penalties import PenaltyPerModality
from obygaze_models.models.modality_sets import Columns, has_modality
from obygaze_models.models.scaling import CLIP
from obygaze_models.models.spec import ModelSpec

FEWEST_MOVIES = 3
"""Movies in which a concept is there, and absent, so that it is in two whatever movie is left out."""


@checked
def fused_by_concepts(data: Dataset, *, in_time: bool = False) -> list[ModelSpec]:
    """Make the models of concepts that are each learnt from the modality that conveys them.

    Parameters
    ----------
    data : Dataset
        Of several modalities. What each perceives its name tells, where that is one of MODALITIES, such as
        ``visual``, ``heard`` or ``told``; else its backbone's provenance (`perceived`).
    in_time : bool
        Whether concepts are found in frames, each with its presence and position (`TimeBank`).

    Returns
    -------
    list of ModelSpec
        ``concepts`` (or ``concepts_in_time``) of all modalities; of each alone; and of three or more, of all
        but each.

    Raises
    ------
    ModelError
        There are not two modalities of different names, nobody knows what one perceives, or no concept that
        it conveys is marked in enough movies.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> from obygaze_models.dataset import Modality
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> halves = (("left", 0, 4), ("right", 4, 8))  # as load_dataset([A, B], manifest) gives them
    >>> own = (data.store, "toy", "pooled", "as stored")
    >>> parts = [Modality(name, *own, *ends, 0, data.group.provenance) for name, *ends in halves]
    >>> data = replace(data, modalities=tuple(parts))
    >>> [spec.name for spec in om.fused_by_concepts(data)]
    ['concepts', 'concepts:left', 'concepts:right']
    """
    named: list[tuple[str, ...]] = []
    for modality in data.modalities:
        perceives = PERCEIVED_BY.get(modality.name) or perceived(modality.provenance)
        own = _conveyed_by(data.codebook, perceives)
        there = has_modality(data.X, slice(modality.start, modality.stop))
        movies = data.movies[there]
        marked = [name for name in own if _is_learnable(data.labels.has(name)[there], movies, FEWEST_MOVIES)]
        if not marked:
            raise ModelError(f"modality {modality.name}: {_why_none(perceives, movies, data.codebook)}")
        named.append(tuple(marked))
    columns = [slice(modality.start, modality.stop) for modality in data.modalities]
    return [
        ModelSpec(
            f"concepts{'_in_time' * in_time}{suffix}",
            f"Concepts{' in time' * in_time} of {what}",
            partial(_make, tuple(columns[k] for k in chosen), tuple(named[k] for k in chosen)),
            choose=None,
            reads="frames" if in_time else "pooled",
            uses=("groups", "present", "unlabelled"),
        )
        for suffix, what, chosen in subsets(data)
    ]


def _conveyed_by(codebook: Codebook, perceives: Sequence[str]) -> list[str]:
    """List the concepts that a modality conveys; none where nobody knows what it perceives."""
    if not perceives:
        return []
    said = [concept for concept in codebook.concepts if concept.conveyed]
    return [concept.name for concept in said if not why_unperceived(concept, perceives)]


def _why_none(perceives: Sequence[str], movies: NDArray[np.str_], codebook: Codebook) -> str:
    """Say why no concept can be learnt from a modality, which some movies have."""
    if perceives:
        return (
            f"no concept that is {' or '.join(perceives)} is there and absent in {FEWEST_MOVIES} movies "
            f"each, of the {len(np.unique(movies))} that have this modality"
        )
    conveyed = {concept.conveyed for concept in codebook.concepts} - {""}
    names = ", ".join(f"{word}=STORE" for word in sorted(conveyed))
    return f"nobody knows what its store perceives: name it, {names}"


def _make(columns: Columns, concepts: tuple[tuple[str, ...], ...], seed: int) -> "ConceptsByModality":
    del seed
    return ConceptsByModality(columns, concepts)


@dataclass(eq=False, repr=False)
class ConceptsByModality(LogitClassifier):
    """Classify clips by concepts, each learnt from one modality; those that a clip lacks are masked.

    Parameters
    ----------
    columns : tuple of slice
        The modalities' columns in X, of vectors [N, D] or of frames [N, F, D].
    concepts : tuple of tuple of str
        The concepts that are learnt from each.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
    banks_ : list of (slice, ConceptBank)
        The columns of the modalities of which a concept could be learnt, and ridge CAVs, or directions of
        frames.
    head_ : FusedClassifier
        Of the concepts' values; trained on those of CAVs that were not trained on the clip's movie.
    threshold_ : float
    """

    columns: Columns
    concepts: tuple[tuple[str, ...], ...]

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike, *, present: pd.DataFrame) -> Self:
        """Fit CAVs, then the head; clips with the label -1 are not in the task and teach concepts alone.

        Raises
        ------
        ModelError
            No concept is there and absent in two movies each.
        """
        features, codes, movies = np.asarray(X), np.asarray(y), np.asarray(groups)
        self.banks_, values = [], []
        for own, names in zip(self.columns, self.concepts, strict=True):
            there = has_modality(features, own)
            marked = present[[name for name in names if name in present]].to_numpy()[there] == 1
            known = [k for k, column in enumerate(marked.T) if _is_learnable(column, movies[there])]
            if known:
                bank = TimeBank() if features.ndim == 3 else ConceptBank("ridge", C=None, clip=CLIP)
                bank.fit(features[there][..., own], marked[:, known], groups=movies[there])
                self.banks_.append((own, bank))
                values.append(_spread(bank.rescale(bank.cross_distances_), there))
        if not values:
            raise ModelError("no concept that the modalities convey is marked in enough movies to be learnt")
        ends = np.cumsum([0, *(value.shape[1] for value in values)]).tolist()
        places = tuple(map(slice, ends, ends[1:]))
        in_task = codes >= 0
        self.head_ = FusedClassifier(PenaltyPerModality(), places)
        self.head_.fit(np.concatenate(values, axis=1)[in_task], codes[in_task], groups=movies[in_task])
        self.classes_, self.threshold_ = self.head_.classes_, self.head_.threshold_
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Score each clip [N] by the concepts of the modalities that it has; without any as the mean."""
        check_is_fitted(self)
        features, values = np.asarray(X), []
        for own, bank in self.banks_:
            there = has_modality(features, own)
            known = bank.transform(features[there][..., own]) if there.any() else bank.mean_[None][:0]
            values.append(_spread(known, there))
        return self.head_.decision_function(np.concatenate(values, axis=1))


def _spread(values: NDArray[np.float64], there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Lay values of the clips that are `there` [N] out among all clips: [N, K], NaN for the others."""
    among = np.full((len(there), values.shape[1]), np.nan)
    among[there] = values
    return among


def _is_learnable(marked: NDArray[np.bool_], movies: NDArray[np.str_], fewest: int = 2) -> bool:
    """Return whether a concept is there, and absent, in some number of movies."""
    return all(len(np.unique(movies[own])) >= fewest for own in (marked, ~marked))
