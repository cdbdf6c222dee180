"""Read embeddings of images or texts from a store, and check that those to compare are of one space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store import (
    Group,
    Store,
    classes_of,
    embedding_space,
    groups_of_classes,
    open_store,
)
from obygaze_features.text import composed
from obygaze_studies.audit_common.inputs import refuse_duplicates
from obygaze_studies.errors import AuditError


@dataclass(frozen=True, eq=False)
class Embeddings:
    """One vector per item, all of the same space.

    Attributes
    ----------
    where : str
        Store and group, for messages.
    space : str or None
        Model and weights that made the vectors: only vectors of the same space can be compared. None if the
        features were imported without naming it.
    vectors : float32 [N, D]
        The vectors, one per row of the store.
    rows
        Item id -> row of `vectors`; ids without features are not in it.
    fingerprint : str
        Fingerprint of the store.
    partial
        Item id -> reason, for the embeddings of a part of their item: a text that was cut, an image that was
        not read to its end.
    texts
        Item id -> its text; None if the store does not hold texts.
    """

    where: str
    space: str | None
    vectors: NDArray[np.float32]
    rows: Mapping[str, int]
    fingerprint: str
    partial: Mapping[str, str]
    texts: Mapping[str, str] | None = None

    def vectors_of(self, ids: Sequence[str], noun: str) -> NDArray[np.float64]:
        """Return the vectors of some items, [n, D], of which cosines can be computed.

        Parameters
        ----------
        ids
            Ids of the items, each once.
        noun
            Name of the set of items, for messages.

        Raises
        ------
        AuditError
            Naming `noun` and the id: there are no ids, an id comes twice, an item has no embedding, or its
            embedding has no direction (`check_vectors`).
        """
        refuse_duplicates(ids, f"{noun}: it has twice")
        for item_id in ids:
            if item_id not in self.rows:
                raise AuditError(f"{noun}: {item_id} has no embedding in {self.where}")
        rows_of_items = [self.rows[item_id] for item_id in ids]
        vectors = self.vectors[rows_of_items].astype(np.float64)
        check_vectors(vectors, noun, ids)
        return vectors

    def text_ids(self, listed: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return text -> its id among the embeddings, from a table or, without one, from the store.

        Parameters
        ----------
        listed
            Text -> id from a table, for a store that does not hold its texts. If the store holds them, table
            and store must agree. None to take the texts from the store.

        Raises
        ------
        AuditError
            There are neither texts nor a table, two ids have the same text, or the table and the store give
            different texts to an id.
        """
        if listed is None:
            return self._text_ids_of_store()
        texts_of_store = self.texts or {}
        for text, text_id in listed.items():
            text_of_store = texts_of_store.get(text_id, text)
            if text_of_store != text:
                raise AuditError(
                    f"--text-items: {text_id} is {text!r}, but {text_of_store!r} in {self.where}"
                )
        return listed

    def _text_ids_of_store(self) -> dict[str, str]:
        """Return the store's own text -> id; raise an AuditError if it has no texts, or one of them twice."""
        if self.texts is None:
            raise AuditError(
                f"{self.where} does not carry its texts: "
                "say in a CSV of text_id, text which stands behind which id (--text-items)"
            )
        refuse_duplicates(map(repr, self.texts.values()), f"{self.where}: two ids for the text")
        return {text: text_id for text_id, text in self.texts.items()}


def check_vectors(vectors: NDArray[np.float64], noun: str, ids: Sequence[str] | None = None) -> None:
    """Refuse a set of vectors [n, D] for which cosines cannot be computed.

    Parameters
    ----------
    vectors
        The vectors.
    noun
        Name of the set in messages.
    ids
        Id of each vector, for messages; by default the number of its row.

    Raises
    ------
    AuditError
        Naming the set and the id (or row): the set is empty, a value is not finite, a vector is zero.
    """
    if len(vectors) == 0:
        raise AuditError(f"{noun} is empty")
    problems = {
        "has a value that is not finite": ~np.isfinite(vectors).all(axis=1),
        "is the zero vector, which has no direction": ~vectors.any(axis=1),
    }
    for problem, has_problem in problems.items():
        if has_problem.any():
            row = int(np.flatnonzero(has_problem)[0])
            row_name = ids[row] if ids else f"row {row}"
            raise AuditError(f"{noun}: the embedding of {row_name} {problem}")


def unit_vectors(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every row of [n, D], none of which is zero, to length 1."""
    # The largest entry is scaled to 1 first, so that no square overflows or underflows.
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    lengths: NDArray[np.float64] = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    directions: NDArray[np.float64] = scaled / lengths
    return directions


def read_embeddings(path: Path) -> Embeddings:
    """Read the pooled vectors of the only group of a store.

    Raises
    ------
    AuditError
        The store has several groups.
    StoreError
        There is no such store.
    """
    store = open_store(path)
    group = choose_group(store)
    texts = None
    if group.text is not None:
        texts = dict(zip(_composed_ids(group), group.text, strict=True))
    return Embeddings(
        where=f"{store.where}, group {group.name}",
        space=embedding_space(group.provenance),
        vectors=group.pooled(),
        rows=_row_of_id(group),
        fingerprint=store.fingerprint,
        partial={clip.clip_id: clip.reason for clip in store.clips if clip.status == "partial"},
        texts=texts,
    )


def _composed_ids(group: Group) -> list[str]:
    """Return the ids of a group's rows with composed accents (NFC), so that they equal those of tables."""
    return [composed(clip_id) for clip_id in group.clip_ids]


def _row_of_id(group: Group) -> dict[str, int]:
    """Return id -> row for the rows of a group that have features."""
    return {item_id: row for row, item_id in enumerate(_composed_ids(group)) if group.usable[row]}


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities of a classifier's classes for the images of a store.

    Attributes
    ----------
    where
        Store and group, for messages.
    group
        Name of the group.
    names
        Names of the Q classes.
    probabilities : ndarray, shape [N, Q]
        Probability of each class, one row per row of the store.
    rows
        Image id -> row of `probabilities`; images without answers are not in it.
    fingerprint
        Fingerprint of the store.
    """

    where: str
    group: str
    names: tuple[str, ...]
    probabilities: NDArray[np.float64]
    rows: Mapping[str, int]
    fingerprint: str


def read_answers(path: Path) -> Answers | None:
    """Read a classifier's probabilities for the images of a store.

    Returns
    -------
    The answers; None if no group of the store holds the answers of a classifier, or several do.
    """
    store = open_store(path)
    names = groups_of_classes(store)
    if len(names) != 1:
        return None
    group = store[names[0]]
    return Answers(
        where=f"{store.where}, group {group.name}",
        group=group.name,
        names=classes_of(group),
        probabilities=group.pooled().astype(np.float64),
        rows=_row_of_id(group),
        fingerprint=store.fingerprint,
    )


def choose_group(store: Store) -> Group:
    """Open the only group of a store.

    Raises
    ------
    AuditError
        The store has several groups.
    """
    if len(store.backbones) != 1:
        names = ", ".join(store.names)
        raise AuditError(f"{store.where} has the groups {names}: extract one into a store of its own")
    return store[store.backbones[0]]


def check_same_space(a: Embeddings, b: Embeddings) -> None:
    """Refuse two sets of embeddings whose cosines would mean nothing.

    Raises
    ------
    AuditError
        A space is unknown, or the spaces or dimensions differ; names the embeddings concerned.
    """
    for embeddings in (a, b):
        if embeddings.space is None:
            raise AuditError(
                f"{embeddings.where}: its provenance has no field 'space', so nothing says what its vectors "
                "compare with; import it with the space: obygaze store import ... --declared FILE, a JSON "
                'object such as {"space": "our CLIP"}, the same for images and texts'
            )
    if a.space != b.space:
        raise AuditError(
            f"embeddings of two spaces don't compare: {a.where} is of {a.space!r}, {b.where} of {b.space!r}"
        )
    width_of_a = a.vectors.shape[1]
    width_of_b = b.vectors.shape[1]
    if width_of_a != width_of_b:
        raise AuditError(
            f"embeddings of two lengths don't compare: {a.where} has {width_of_a} features, {b.where} "
            f"{width_of_b}"
        )
