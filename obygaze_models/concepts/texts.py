"""Read the texts of concepts as vectors, and score clips by them without any label (zero-shot)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from obygaze_features.manifest import concept_texts
from obygaze_features.store import Group, Store
from obygaze_features.store.provenance import clipped, embedding_space
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.in_time import ConceptsUnlabelled, TimeBank
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ConceptError
from obygaze_models.models.binary import ABOVE_ZERO, BinaryClassifier, encode_labels
from obygaze_models.models.spec import ModelSpec
from obygaze_models.protocol.targets import Target, find_target

TextKind = Literal["definition", "instances"]
TEXT_KINDS: tuple[TextKind, ...] = ("definition", "instances")


@dataclass(frozen=True, eq=False)
class TextVectors:
    """Texts as unit vectors.

    Attributes
    ----------
    texts : tuple of str, length M
    vectors : ndarray of float64, shape [M, D]
    """

    texts: tuple[str, ...]
    vectors: NDArray[np.float64]

    def __repr__(self) -> str:
        """Name the number of texts and the digest of their vectors, for records."""
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).tobytes()).hexdigest()
        return f"{len(self.texts)} texts, vectors sha256:{digest[:16]}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors."""
        return np.array(self.vectors, dtype, copy=copy)


class WithoutLabels(BinaryClassifier):
    """Base class of models that score clips as they are; of labels only the names are kept.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D.
    threshold_ : float
        A clip is called positive when its score is above 0; `GroupedSelection` chooses around this.
    """

    threshold_ = ABOVE_ZERO

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the two labels of y [N]; of X [N, D] only the width is used."""
        _, labels = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, _ = encode_labels(labels, type(self).__name__)
        return self


class GivenScore(WithoutLabels):
    """Score clips by their one feature, as it is: a probability that a machine answered."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the feature of X [N, 1] less a half [N]."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False)[:, 0] - 0.5)


class TextSimilarity(WithoutLabels):
    """Score clips by the cosine with the nearest of some texts.

    A clip shows a concept if it shows one of its instances, hence the nearest text and not their mean.

    Parameters
    ----------
    texts : TextVectors
        In the space of the features.
    """

    def __init__(self, texts: TextVectors) -> None:
        self.texts = texts

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the two labels of y [N]; of X [N, D] only the width is used.

        Raises
        ------
        ConceptError
            The texts have another width.
        """
        super().fit(X, y)
        width = self.texts.vectors.shape[1]
        if self.n_features_in_ != width:
            raise ConceptError(f"the texts have {width} values, the clips {self.n_features_in_}")
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute for each clip of X [N, D] the largest cosine with a text [N]."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        with one_blas_thread():
            nearest: NDArray[np.float64] = (normalize(features) @ self.texts.vectors.T).max(axis=1)
        return nearest


def read_concept_texts(texts: Store, data: Dataset) -> Mapping[tuple[str, TextKind], TextVectors]:
    """Find the texts of the codebook's visual concepts in a store of texts of the clips' space.

    Returns
    -------
    mapping
        (concept, kind) -> its texts; a concept without instances has no such entry.

    Raises
    ------
    ConceptError
        The clips' vectors are not those that texts compare with, the store has no group of their space, or it
        lacks a text.
    """
    if data.group is not None and data.features != "pooled":
        raise ConceptError(f"texts compare with pooled vectors, and these features are {data.features}")
    name, known = read_texts(texts, data.backbone, data.group)
    row_of, pooled = {text: row for row, text in enumerate(known.texts)}, known.vectors
    chosen: dict[tuple[str, TextKind], list[str]] = {}
    for item in concept_texts(data.codebook):
        if item.text not in row_of:
            raise ConceptError(
                f"{texts.where}, group {name}: has no text {clipped(item.text)!r} ({item.text_id}); "
                "write the list with `obygaze codebook texts` and extract it"
            )
        chosen.setdefault((item.concept, item.kind), []).append(item.text)
    return {
        key: TextVectors(tuple(own_texts), pooled[[row_of[text] for text in own_texts]])
        for key, own_texts in chosen.items()
    }


def read_texts(texts: Store, backbone: str, group: Group | None) -> tuple[str, TextVectors]:
    """Find the group of a store of texts that compares with a group of clips: its name, and what it has.

    Raises
    ------
    ConceptError
        The clips' vectors are not those that texts compare with, or the store has no texts of their space.
    """
    wanted = None if group is None else embedding_space(group.provenance)
    if wanted is None:
        raise ConceptError(f"the features {backbone} name no space, so nothing says which texts compare")
    spaces = {name: embedding_space(texts[name].provenance) for name in texts.names}
    name = next((name for name, space in spaces.items() if space == wanted), None)
    if name is None:
        shown = ", ".join(f"{name} {space!r}" for name, space in spaces.items())
        raise ConceptError(
            f"texts and clips of different weights do not compare: {texts.where} has {shown}, "
            f"the clips are of {wanted!r}"
        )
    stored = texts[name]
    if stored.text is None:
        raise ConceptError(f"{texts.where}, group {name}: holds clips, not texts")
    usable = np.flatnonzero(stored.usable)
    row_of = {stored.text[row]: row for row in usable[::-1]}
    pooled = normalize(stored.pooled().astype(np.float64))
    return name, TextVectors(tuple(row_of), pooled[list(row_of.values())])


def zero_shot_models(data: Dataset, texts: Store, task: str | Target) -> list[ModelSpec]:
    """Make the models that score clips by the texts of a codebook, for `evaluate`.

    For a concept its own texts; for levels those of all visual concepts, so that a clip scores high that
    shows any of them. Only the threshold is chosen by labels, on movies left out, as for every model. Where
    the store has frames, a bottleneck learns from the task's labels how to decide by when and how strongly
    each concept's texts are there; it needs no labels of concepts.

    Parameters
    ----------
    data : Dataset
        Of pooled vectors.
    texts : Store
        With the texts that `obygaze codebook texts` lists.
    task : str or Target

    Returns
    -------
    list of ModelSpec
        ``zero_shot_definition`` and, where there are any, ``zero_shot_instances``; of frames
        ``pcbm_time_definition`` and ``pcbm_time_instances``.

    Raises
    ------
    ConceptError
        Texts and clips do not compare, or a text is missing.
    """
    target = find_target(task, data.codebook) if isinstance(task, str) else task
    vectors_of = read_concept_texts(texts, data)
    common = np.vstack([each.vectors for each in vectors_of.values()]).mean(axis=0)
    has_frames = data.group is not None and "frames" in data.group.arrays
    specs = []
    for kind in TEXT_KINDS:
        of_kind = {
            concept: vectors
            for (concept, what), vectors in vectors_of.items()
            if what == kind and target.concept in {"", concept}
        }
        if of_kind:
            every = [vectors.vectors for vectors in of_kind.values()]
            texts_of_all = tuple(text for vectors in of_kind.values() for text in vectors.texts)
            specs.append(_spec(kind, TextVectors(texts_of_all, np.vstack(every))))
            if has_frames:
                means = np.array([vectors.mean(axis=0) - common for vectors in every])
                specs.append(_in_time(kind, TextVectors(tuple(of_kind), means)))
    return specs


def _spec(kind: TextKind, texts: TextVectors) -> ModelSpec:
    return ModelSpec(f"zero_shot_{kind}", f"Zero-shot, {kind}", lambda _: TextSimilarity(texts))


def _in_time(kind: TextKind, directions: TextVectors) -> ModelSpec:
    """Make the bottleneck of frames whose concepts are the means of texts, less what all texts share."""

    def make(seed: int) -> ConceptsUnlabelled:
        bank = TimeBank(concepts=directions.texts, directions=directions, random_state=seed)
        return ConceptsUnlabelled(bank=bank, random_state=seed)

    title = f"PCBM in time, concepts of texts, {kind}"
    return ModelSpec(f"pcbm_time_{kind}", title, make, None, "frames", ("groups", "unlabelled"))
