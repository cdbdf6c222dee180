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
from obygaze_features.text import counted
from obygaze_models.blas import one_blas_thread
from obygaze_models.concepts.in_time import ConceptsUnlabelled
from obygaze_models.concepts.time_bank import TimeBank
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
        """Return the number of texts and the digest of their vectors: a short text for a run's record."""
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).tobytes()).hexdigest()
        return f"{counted(len(self.texts), 'text')}, vectors sha256:{digest[:16]}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the vectors."""
        return np.array(self.vectors, dtype, copy=copy)


class WithoutLabels(BinaryClassifier):
    """Base class of models that learn nothing: their scores do not depend on the clips fitted on.

    Attributes
    ----------
    classes_ : ndarray, shape [2]
        The negative and the positive label.
    n_features_in_ : int
        D.
    threshold_ : float
        A clip is called positive if its score is above 0; `GroupedSelection` chooses another threshold.
    """

    threshold_ = ABOVE_ZERO

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the two labels of y [N] and the number of features of X [N, D]; nothing else is learnt."""
        _, labels = validate_data(self, X, y, dtype=(np.float64, np.float32))
        self.classes_, _ = encode_labels(labels, type(self).__name__)
        return self


class GivenScore(WithoutLabels):
    """Score clips by their only feature, which is a probability: a vision-language model's answer."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the score [N] of each clip: its probability less 0.5. X [N, 1] holds the probabilities."""
        check_is_fitted(self)
        probabilities = validate_data(self, X, dtype=np.float64, reset=False)[:, 0]
        return np.asarray(probabilities - 0.5)


class TextSimilarity(WithoutLabels):
    """Score clips by the cosine with the nearest of some texts.

    A clip shows a concept if it shows one of its instances: the nearest text counts, not the mean of all.

    Parameters
    ----------
    texts : TextVectors
        In the space of the features.
    """

    def __init__(self, texts: TextVectors) -> None:
        self.texts = texts

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the two labels of y [N] and the number of features of X [N, D]; nothing else is learnt.

        Raises
        ------
        ConceptError
            The vectors of the texts have another number of values than those of the clips.
        """
        super().fit(X, y)
        width = self.texts.vectors.shape[1]
        if self.n_features_in_ != width:
            raise ConceptError(f"the texts have {width} values, the clips {self.n_features_in_}")
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the cosine [N] of each clip of X [N, D] with the text that is nearest to it."""
        check_is_fitted(self)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        with one_blas_thread():
            cosines = normalize(features) @ self.texts.vectors.T  # [N, M]
        nearest: NDArray[np.float64] = cosines.max(axis=1)
        return nearest


def read_concept_texts(texts: Store, data: Dataset) -> Mapping[tuple[str, TextKind], TextVectors]:
    """Read the vectors of the codebook's texts of visual concepts from a store of texts.

    Parameters
    ----------
    texts : Store
        Of texts that were embedded with the model of the clips.
    data : Dataset

    Returns
    -------
    mapping
        (concept, kind of text) -> its texts. A concept without instances has no entry of the kind
        "instances".

    Raises
    ------
    ConceptError
        The clips' features are not pooled vectors in an embedding space with texts; or the store has no group
        of texts in that space; or a text of the codebook is not in it.
    """
    if data.group is not None and data.features != "pooled":
        raise ConceptError(f"texts compare with pooled vectors, and these features are {data.features}")
    group_name, stored = read_texts(texts, data.backbone, data.group)
    row_of_text = {text: row for row, text in enumerate(stored.texts)}

    texts_of_concept: dict[tuple[str, TextKind], list[str]] = {}
    for item in concept_texts(data.codebook):
        if item.text not in row_of_text:
            raise ConceptError(
                f"{texts.where}, group {group_name}: has no text {clipped(item.text)!r} ({item.text_id}); "
                "write the list with `obygaze codebook texts` and extract it"
            )
        texts_of_concept.setdefault((item.concept, item.kind), []).append(item.text)

    vectors_of_concept = {}
    for concept_and_kind, its_texts in texts_of_concept.items():
        rows = [row_of_text[text] for text in its_texts]
        vectors_of_concept[concept_and_kind] = TextVectors(tuple(its_texts), stored.vectors[rows])
    return vectors_of_concept


def read_texts(texts: Store, backbone: str, group: Group | None) -> tuple[str, TextVectors]:
    """Read the group of a store of texts that is in the same embedding space as the clips.

    Parameters
    ----------
    texts : Store
    backbone : str
        Name of the clips' backbone, for messages.
    group : Group, optional
        The clips' group of features; None for features that are of no store.

    Returns
    -------
    name : str
        Name of the group of texts.
    vectors : TextVectors
        Its texts, each listed once, as unit vectors. They are in the reverse order of the group's rows.

    Raises
    ------
    ConceptError
        The clips' features are in no embedding space, or the store has no texts in theirs.
    """
    space_of_clips = None if group is None else embedding_space(group.provenance)
    if space_of_clips is None:
        raise ConceptError(f"the features {backbone} name no space, so nothing says which texts compare")

    spaces = {name: embedding_space(texts[name].provenance) for name in texts.names}
    comparable = [name for name, space in spaces.items() if space == space_of_clips]
    if not comparable:
        listed = ", ".join(f"{name} {space!r}" for name, space in spaces.items())
        raise ConceptError(
            f"texts and clips of different weights do not compare: {texts.where} has {listed}, "
            f"the clips are of {space_of_clips!r}"
        )
    name = comparable[0]
    group_of_texts = texts[name]
    if group_of_texts.text is None:
        raise ConceptError(f"{texts.where}, group {name}: holds clips, not texts")

    # A text that is stored more than once has the vector of its first row. Rows are gone through from the
    # last to the first, so that the first one is what remains.
    row_of_text: dict[str, int] = {}
    for row in reversed(np.flatnonzero(group_of_texts.usable).tolist()):
        row_of_text[group_of_texts.text[row]] = row
    vectors = normalize(group_of_texts.pooled().astype(np.float64))
    rows = list(row_of_text.values())
    return name, TextVectors(tuple(row_of_text), vectors[rows])


def zero_shot_models(data: Dataset, texts: Store, task: str | Target) -> list[ModelSpec]:
    """Make models that score clips by their similarity to the texts of a codebook, for `evaluate`.

    For each kind of text, definitions and instances of concepts, there are up to two models:

    - one that scores a clip by the nearest text: of the concept, if the target is a concept, or of any visual
      concept, if the target are levels. Labels choose the threshold only, on movies left out;
    - if the clips have frames, a bottleneck. Its concepts are directions of the texts, which need no labels
      of concepts. It learns from the task's labels how to decide by when and how strongly they are matched.

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
        Texts and clips are not in the same embedding space, or a text is missing; or the target is a concept
        without texts, as it is not visual.
    """
    target = find_target(task, data.codebook) if isinstance(task, str) else task
    texts_by_concept_and_kind = read_concept_texts(texts, data)
    concepts_with_texts = {concept for concept, _ in texts_by_concept_and_kind}
    if target.concept and target.concept not in concepts_with_texts:
        raise ConceptError(
            f"{target.concept} is not visual, so that no text of it compares with pictures: the codebook has "
            f"texts of {', '.join(sorted(concepts_with_texts))}; leave out --texts"
        )

    # What all texts have in common does not tell concepts apart: the bottleneck's directions are without it.
    all_vectors = [text_vectors.vectors for text_vectors in texts_by_concept_and_kind.values()]
    mean_of_texts = np.vstack(all_vectors).mean(axis=0)

    has_frames = data.group is not None and "frames" in data.group.arrays
    specs = []
    for kind in TEXT_KINDS:
        vectors_of_concept = _texts_for_target(texts_by_concept_and_kind, kind, target)
        if not vectors_of_concept:
            continue
        specs.append(_zero_shot_spec(kind, _all_texts(vectors_of_concept)))
        if has_frames:
            directions = _concept_directions(vectors_of_concept, mean_of_texts)
            specs.append(_text_bottleneck_spec(kind, directions))
    return specs


def _texts_for_target(
    texts_by_concept_and_kind: Mapping[tuple[str, TextKind], TextVectors], kind: TextKind, target: Target
) -> dict[str, TextVectors]:
    """Select the texts of one kind that a target is scored by, for each concept.

    If the target is a concept, they are the texts of this concept; for levels, those of all concepts.
    """
    vectors_of_concept = {}
    for (concept, kind_of_texts), text_vectors in texts_by_concept_and_kind.items():
        is_in_target = not target.concept or target.concept == concept
        if kind_of_texts == kind and is_in_target:
            vectors_of_concept[concept] = text_vectors
    return vectors_of_concept


def _concept_directions(
    vectors_of_concept: Mapping[str, TextVectors], mean_of_texts: NDArray[np.float64]
) -> TextVectors:
    """Compute a direction for each concept: the mean vector of its texts, less that of all texts [D].

    The result has the concepts' names in place of texts.
    """
    means = [text_vectors.vectors.mean(axis=0) for text_vectors in vectors_of_concept.values()]
    return TextVectors(tuple(vectors_of_concept), np.array(means) - mean_of_texts)


def _all_texts(vectors_of_concept: Mapping[str, TextVectors]) -> TextVectors:
    """Join the texts of several concepts, and their vectors, into one list of texts."""
    texts: list[str] = []
    for vectors in vectors_of_concept.values():
        texts += vectors.texts
    return TextVectors(tuple(texts), np.vstack([vectors.vectors for vectors in vectors_of_concept.values()]))


def _zero_shot_spec(kind: TextKind, texts: TextVectors) -> ModelSpec:
    """Make the spec of the model that scores clips by the nearest of these texts.

    `kind` says what the texts are, the definitions of concepts or their instances, and names the model.
    """
    return ModelSpec(f"zero_shot_{kind}", f"Zero-shot, {kind}", lambda _: TextSimilarity(texts))


def _text_bottleneck_spec(kind: TextKind, directions: TextVectors) -> ModelSpec:
    """Describe a concept bottleneck on frames that learns its concepts from texts, without labels of them.

    How much of a concept a frame has is read along the direction of the concept's texts in a space that
    pictures and texts share. Only the classifier that decides by the concepts is trained.

    Parameters
    ----------
    kind : {"definition", "instances"}
        The texts of each concept: its definition, or what it lists as instances. It names the model.
    directions : TextVectors
        A direction for each concept, with the concept's name in place of a text.
    """

    def make(seed: int) -> ConceptsUnlabelled:
        """Make the unfitted estimator with a seed."""
        bank = TimeBank(concepts=directions.texts, directions=directions, random_state=seed)
        return ConceptsUnlabelled(bank=bank, random_state=seed)

    return ModelSpec(
        f"pcbm_time_{kind}",
        f"PCBM in time, concepts of texts, {kind}",
        make,
        choose=None,
        reads="frames",
        uses=("groups", "unlabelled"),
    )
