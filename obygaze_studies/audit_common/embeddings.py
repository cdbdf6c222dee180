"""Read embeddings of images or texts from a store; those that are compared must name their space."""

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
from obygaze_studies.audit_common.inputs import refuse_twins
from obygaze_studies.errors import AuditError


@dataclass(frozen=True, eq=False)
class Embeddings:
    """One vector an item, all of one space.

    Attributes
    ----------
    where : str
        Store and group, for messages.
    space : str or None
        Model and weights that made the vectors; only vectors of one space compare. None of features that were
        imported without it.
    vectors : float32 [N, D]
    rows
        Item id -> row of `vectors`; an id without features has none.
    fingerprint : str
        Of the store.
    partial
        Item id -> why its embedding is of a part alone: a text that was cut, an image not read whole.
    texts
        Item id -> the text that it is of; None where the store carries none.
    """

    where: str
    space: str | None
    vectors: NDArray[np.float32]
    rows: Mapping[str, int]
    fingerprint: str
    partial: Mapping[str, str]
    texts: Mapping[str, str] | None = None

    def take(self, ids: Sequence[str], noun: str) -> NDArray[np.float64]:
        """Return the vectors of some items, [n, D], checked as `check_vectors` does.

        Raises
        ------
        AuditError
            Naming `noun` and the id: nothing is asked for, an id is asked for twice, an item has no
            embedding.
        """
        refuse_twins(ids, f"{noun}: it has twice")
        for name in ids:
            if name not in self.rows:
                raise AuditError(f"{noun}: {name} has no embedding in {self.where}")
        vectors = self.vectors[[self.rows[name] for name in ids]].astype(np.float64)
        check_vectors(vectors, noun, ids)
        return vectors

    def text_ids(self, listed: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """Return which text stands behind which id: text -> id.

        Parameters
        ----------
        listed
            The same, from a table, for a store that does not carry its texts; where it does, they must agree.

        Raises
        ------
        AuditError
            There are neither texts nor a table, two ids have the same text, or the table gives an id of the
            store another text.
        """
        if listed is None:
            if self.texts is None:
                raise AuditError(
                    f"{self.where} does not carry its texts: "
                    "say in a CSV of text_id, text which stands behind which id (--text-items)"
                )
            refuse_twins(map(repr, self.texts.values()), f"{self.where}: two ids for the text")
            return {text: name for name, text in self.texts.items()}
        for text, name in listed.items():
            if (self.texts or {}).get(name, text) != text:
                raise AuditError(
                    f"--text-items: {name} is {text!r}, but {(self.texts or {})[name]!r} in {self.where}"
                )
        return listed


def check_vectors(vectors: NDArray[np.float64], noun: str, ids: Sequence[str] | None = None) -> None:
    """Refuse a set of vectors with which no cosine can be taken.

    Raises
    ------
    AuditError
        Naming the set and the id (or row): the set is empty, a value is not finite, a vector is zero.
    """
    if len(vectors) == 0:
        raise AuditError(f"{noun} is empty")
    for bad, words in (
        (~np.isfinite(vectors).all(axis=1), "has a value that is not finite"),
        (~vectors.any(axis=1), "is the zero vector, which has no direction"),
    ):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise AuditError(f"{noun}: the embedding of {ids[row] if ids else f'row {row}'} {words}")


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale every row to length 1, [n, D]; largest entry first, so that no square over- or underflows."""
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    lengths: NDArray[np.float64] = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    directions: NDArray[np.float64] = scaled / lengths
    return directions


def read_embeddings(path: Path) -> Embeddings:
    """Read the pooled vectors of a store's group.

    Raises
    ------
    AuditError
        The store has several groups.
    StoreError
        There is no such store.
    """
    store = open_store(path)
    group = choose_group(store)
    where = f"{store.where}, group {group.name}"
    ids = list(map(composed, group.clip_ids))
    rows = {name: row for row, name in enumerate(ids) if group.usable[row]}
    partial = {clip.clip_id: clip.reason for clip in store.clips if clip.status == "partial"}
    texts = None if group.text is None else dict(zip(ids, group.text, strict=True))
    return Embeddings(
        where, embedding_space(group.provenance), group.pooled(), rows, store.fingerprint, partial, texts
    )


@dataclass(frozen=True, eq=False)
class Answers:
    """Probabilities of named classes, of the images of a store.

    Attributes
    ----------
    where, group
        The store with its group, for messages; the group.
    names
        Of the classes [Q].
    probabilities : ndarray, shape [N, Q]
    rows
        Image -> its row, of those that have answers.
    fingerprint
        Of the store.
    """

    where: str
    group: str
    names: tuple[str, ...]
    probabilities: NDArray[np.float64]
    rows: Mapping[str, int]
    fingerprint: str


def read_answers(path: Path) -> Answers | None:
    """Read what a classifier says of the images of a store; None where it has no such group, or several."""
    store = open_store(path)
    names = groups_of_classes(store)
    if len(names) != 1:
        return None
    group = store[names[0]]
    rows = {composed(name): row for row, name in enumerate(group.clip_ids) if group.usable[row]}
    where = f"{store.where}, group {group.name}"
    probabilities = group.pooled().astype(np.float64)
    return Answers(where, group.name, classes_of(group), probabilities, rows, store.fingerprint)


def choose_group(store: Store) -> Group:
    """Open the only group there is."""
    if len(store.backbones) != 1:
        names = ", ".join(store.names)
        raise AuditError(f"{store.where} has the groups {names}: extract one into a store of its own")
    return store[store.backbones[0]]


def check_same_space(a: Embeddings, b: Embeddings) -> None:
    """Refuse two sets of embeddings whose cosines would mean nothing.

    Raises
    ------
    AuditError
        Naming the one whose space is not known, both spaces, or both dimensions.
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
