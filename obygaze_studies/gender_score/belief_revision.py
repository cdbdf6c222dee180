"""Compute the Gender Score: how far an image's objects revise a caption's prior (Sabir & Padró, 2023)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from obygaze_features.io import file_sha256
from obygaze_studies.audit_common.embeddings import Embeddings, unit_vectors
from obygaze_studies.audit_common.inputs import Row, read_column_names, read_rows
from obygaze_studies.errors import AuditError, regarding

Similarity = Callable[[str, str], float | str]
"""Function from a text and a label to their cosine, or to a message that says why there is none."""


def revise(prior: float, similarity: float, confidence: float) -> float:
    """Revise the belief in a caption g by an object c that was found in its image.

    The revised belief is P(g|c) = P(g)^alpha, with alpha = ((1 - sim) / (1 + sim))^(1 - P(c)) (Sabir and
    Padró 2023). Oddly, a confident object moves the prior less: with P(c) = 1, alpha is 1, and the belief
    stays.

    Parameters
    ----------
    prior
        P(g) of the caption, above 0, up to 1: the mean probability of its tokens.
    similarity
        Cosine of the caption's and the object label's sentence embeddings, above -1, up to 1.
    confidence
        P(c) of the object, 0 to 1.

    Raises
    ------
    AuditError
        A value is out of its range.
    """
    if not 0 < prior <= 1:
        raise AuditError(f"the prior P(g) should be above 0 and at most 1, found {prior}")
    if not 0 <= confidence <= 1:
        raise AuditError(f"the confidence P(c) should be from 0 to 1, found {confidence}")
    if not -1 < similarity <= 1 + 1e-6:
        raise AuditError(f"the similarity should be above -1 and at most 1, found {similarity}")
    similarity = min(similarity, 1.0)  # a cosine of equal vectors may exceed 1 by rounding
    exponent: float = ((1 - similarity) / (1 + similarity)) ** (1 - confidence)
    revised: float = prior**exponent
    return revised


@dataclass(frozen=True)
class Detected:
    """An object that a classifier found in an image: its label, and the confidence P(c)."""

    label: str
    confidence: float


@dataclass(frozen=True)
class Scorer:
    """Computes revised beliefs from priors and similarities.

    Attributes
    ----------
    priors
        Text -> P(g), the mean probability of its tokens under a language model.
    similarity
        Function that returns the cosine of a text and a label.
    """

    priors: Mapping[str, float]
    similarity: Similarity

    def revised(self, text: str, detected: Detected) -> tuple[float, float]:
        """Revise the belief in a text by an object that was detected in its image.

        Returns
        -------
        The similarity of the text and the object, and the revised belief: a probability.

        Raises
        ------
        AuditError
            The prior or the similarity is missing, or a value is out of its range.
        """
        if text not in self.priors:
            raise AuditError(f"no prior for {text!r}")
        similarity = self.similarity(text, detected.label)
        if isinstance(similarity, str):
            reason = similarity  # why there is no similarity
            raise AuditError(reason)
        with regarding(AuditError, f"{text!r} with {detected.label!r}"):
            return similarity, revise(self.priors[text], similarity, detected.confidence)


def join_objects(objects: Sequence[Detected]) -> tuple[Detected, ...]:
    """Join the objects of an image into one: their labels with spaces between, and their mean confidence.

    Returns a tuple of this one object; an empty one without objects.
    """
    if not objects:
        return ()
    all_labels = " ".join(detected.label for detected in objects)
    mean_confidence = math.fsum(detected.confidence for detected in objects) / len(objects)
    return (Detected(all_labels, mean_confidence),)


def embedded_similarity(texts: Embeddings, text_ids: Mapping[str, str]) -> Similarity:
    """Return a function that computes similarities from a text store's sentence embeddings.

    The function takes a text and a label. It returns their cosine, or a message if one has no embedding.

    Parameters
    ----------
    texts
        The embeddings.
    text_ids
        Text -> its id among the embeddings.
    """

    def why_missing(text: str) -> str:
        """Return the reason why a text has no embedding, or "" if it has one."""
        if text not in text_ids:
            return f"the table of texts has no {text!r}"
        if text_ids[text] not in texts.rows:
            return f"{text_ids[text]} has no embedding in {texts.where}"
        return ""

    def direction(text: str) -> NDArray[np.float64]:
        """Return the unit vector of a text."""
        return unit_vectors(texts.vectors_of([text_ids[text]], f"text {text!r}"))

    def similarity(text: str, label: str) -> float | str:
        """Return the cosine similarity of a text and a label, or why one of them has no embedding."""
        missing = why_missing(text) or why_missing(label)
        if missing:
            return missing
        return float((direction(text) * direction(label)).sum())

    return similarity


def listed_similarity(rows: Sequence[Row]) -> Similarity:
    """Return a function that looks similarities up in rows with the columns text, object, sim.

    The function takes a text and a label. It returns their similarity, or a message if no row has them.
    """
    similarity_of = {(row["text"], row["object"]): row["sim"] for row in rows}

    def similarity(text: str, label: str) -> float | str:
        """Return the similarity of a text and a label, or a message that the rows have none."""
        listed: float | str = similarity_of.get((text, label), f"no similarity of {text!r} and {label!r}")
        return listed

    return similarity


def read_priors(path: Path) -> dict[str, float]:
    """Read the priors of texts from a table with the columns text, lm_mean: text -> prior.

    The prior P(g) is the mean probability of a text's tokens under a language model.
    """
    rows = read_rows(path, ["text", "lm_mean"], unique=["text"], numbers=["lm_mean"])
    return {row["text"]: row["lm_mean"] for row in rows}


KNOWN_HEADINGS: Mapping[str, tuple[str, ...]] = {
    "image_id": ("image_id", "image", "file", "file_name", "filename"),
    "object": ("object", "label", "class", "class_name", "category", "name"),
    "p_c": ("p_c", "score", "confidence", "conf", "probability", "prob"),
}
"""Our name of a column -> the headings that it may have in a table, the preferred one first."""


def read_objects(path: Path) -> tuple[Row, ...]:
    """Read the objects that a classifier or a detector found, as rows of image_id, object, p_c.

    The file may have other usual headings, such as `image`, `label` and `score`.

    Raises
    ------
    AuditError
        A column is missing under all of its names, a cell is empty, or a confidence is not a number.
    """
    headings_of_file = read_column_names(path)
    heading_of_column = {}
    for column, known_headings in KNOWN_HEADINGS.items():  # the preferred heading first
        headings = [heading for heading in known_headings if heading in headings_of_file]
        if not headings:
            raise AuditError(f"{path}: no column {column}, nor one of {', '.join(known_headings[1:])}")
        heading_of_column[column] = headings[0]
    rows = read_rows(path, list(heading_of_column.values()), numbers=[heading_of_column["p_c"]])
    return tuple({column: row[heading] for column, heading in heading_of_column.items()} for row in rows)


def objects_by_image(rows: Sequence[Row]) -> dict[str, tuple[Detected, ...]]:
    """Group objects by image, from rows with image_id, object, p_c.

    An object that an image has several times is kept once, with its largest confidence.
    """
    confidences_of_image: dict[str, dict[str, float]] = {}
    for row in rows:
        confidences = confidences_of_image.setdefault(row["image_id"], {})
        label = row["object"]
        if label not in confidences or row["p_c"] > confidences[label]:
            confidences[label] = row["p_c"]
    objects_of_image = {}
    for image, confidences in confidences_of_image.items():
        objects_of_image[image] = tuple(Detected(label, p) for label, p in confidences.items())
    return objects_of_image


def read_similarities(path: Path) -> Sequence[Row]:
    """Read a table of similarities, with a row for each pair of a text and a label: text, object, sim."""
    return read_rows(path, ["text", "object", "sim"], unique=["text", "object"], numbers=["sim"])


def scorer_of(
    lm: Path, texts: Embeddings | None, text_items: Mapping[str, str] | None, sims: Sequence[Row]
) -> tuple[Scorer, dict[str, object]]:
    """Make the scorer of an audit from its inputs.

    A scorer revises the belief in a caption by an object that is seen. It needs the belief before, a prior
    that a language model gives, and how similar caption and object are. Similarities are computed from
    embeddings of the texts, or read from a table.

    Parameters
    ----------
    lm
        Table of the priors, by a language model.
    texts
        Embeddings that similarities are computed from; None to take them from `sims`.
    text_items
        Text -> its id, for embeddings whose store does not hold the texts.
    sims
        Rows of similarities, used without `texts`.

    Returns
    -------
    scorer, origin
        The scorer, and the record of where priors and similarities come from: the digest of the table, and of
        embeddings the space, the store and the number of texts that were cut.
    """
    origin: dict[str, object]
    if texts is None:
        similarity = listed_similarity(sims)
        origin = {"space": None, "texts": None, "n_partial": None}
    else:
        similarity = embedded_similarity(texts, texts.text_ids(text_items))
        origin = {"space": texts.space, "texts": texts.fingerprint, "n_partial": len(texts.partial)}
    origin["priors_sha256"] = file_sha256(lm)
    return Scorer(read_priors(lm), similarity), origin
