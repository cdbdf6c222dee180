"""Find objects in images with CLIP as the visual classifier (Sabir and Padró 2023, "visual context").

An image's probability of a label is the softmax, over all labels, of scaled cosines of its embedding and the
labels' text embeddings (Radford et al. 2021, section 3.1). The labels compete: the probabilities of an image
sum to 1, and some label has the largest one whether its object is there or not.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from obygaze_features.text import counted
from obygaze_studies.audit_common.embeddings import Answers, Embeddings, check_same_space, unit_vectors
from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import refuse_duplicates
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import words_of_objects

PROMPT = "a photo of a {}"
"""Text that is embedded for an object."""

SCALE = 100.0
"""Factor of the cosines: exp(logit_scale) of OpenAI's CLIPs, which training clips at 100. Stores do not hold
it."""


MAX_OBJECTS = 3
"""Largest number of objects that are listed for an image, as in the file of the published captions."""


def needed_texts(objects: Sequence[str]) -> list[str]:
    """List the texts that need embeddings: the prompt of each object.

    Raises
    ------
    AuditError
        An object is listed twice, also in upper and in lower case.

    Examples
    --------
    >>> needed_texts(["umbrella"])
    ['a photo of a umbrella']
    """
    words_of_objects(objects)  # refuses an object that is listed twice
    return [PROMPT.format(name) for name in objects]


WORDING_OF_ANSWERS = Wording(
    name="objects",
    title="Objects of images by a classifier",
    table="Images by their most probable object",
    columns=("object", "images", "share"),
    sentence="most probable object of {images:,} of {n_images:image}: {object}",
    source="probabilities of a classifier's classes, as the store has them",
)


@audited(WORDING_OF_ANSWERS)
def audit_answers(images: Answers, objects: Sequence[str] | None = None, *, minimum: float = 0.0) -> Finding:
    """List the most probable objects of every image, by the answers of a classifier.

    Parameters
    ----------
    images
        The classifier's probabilities of its classes.
    objects
        Classes to list; None for all. Probabilities are among all classes in both cases.
    minimum
        Smallest probability to list.

    Raises
    ------
    AuditError
        An object is not one of the classes, or is listed twice, or no image has answers.
    """
    if objects is None:
        listed_objects = images.names
        refuse_duplicates(listed_objects, "the list of objects has twice:")
    else:
        listed_objects = tuple(objects)
        words_of_objects(listed_objects)  # refuses an object that is listed twice
    unknown = [name for name in listed_objects if name not in images.names]
    if unknown:
        raise AuditError(
            f"{images.where} has no class {unknown[0]!r} "
            f"({len(unknown)} of the {counted(len(listed_objects), 'object')}): leave the "
            "list out for all classes"
        )

    ids = sorted(images.rows)
    if not ids:
        raise AuditError(f"{images.where} has no image with answers")

    rows_of_images = [images.rows[image_id] for image_id in ids]
    columns_of_objects = [images.names.index(name) for name in listed_objects]
    # [images, listed objects]
    probabilities = images.probabilities[np.ix_(rows_of_images, columns_of_objects)]

    record: dict[str, object] = {
        "images": images.fingerprint,
        "group": images.group,
        "top": MAX_OBJECTS,
        "least": minimum,
        "n_objects": len(listed_objects),
    }
    return _most_probable(ids, listed_objects, probabilities, minimum=minimum, record=record)


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding
        name="objects",
        title="Objects of images by CLIP",
        table="Images by their most probable object",
        columns=(
            "object",
            "images",
            "share",
        ),
        sentence="most probable object of {images:,} of {n_images:image}: {object}",
        source="CLIP as visual classifier (Sabir and Padró 2023); softmax over the objects listed",
    )
)
def audit_objects(
    images: Embeddings,
    texts: Embeddings,
    objects: Sequence[str],
    *,
    scale: float = SCALE,
    minimum: float = 0.0,
) -> Finding:
    """List the most probable objects of every image, at most three, for the audit `gender-score`.

    CLIP is the classifier: the probabilities of an image are the softmax, over the objects, of the scaled
    cosines of its embedding and the embeddings of the objects' prompts, such as "a photo of a umbrella".
    Objects of equal probability are in the order of `objects`.

    Parameters
    ----------
    images
        Embeddings of the images.
    texts
        Embeddings of the objects' prompts, in the space of the images.
    objects
        The labels, which compete: an image's probabilities sum to 1 over them.
    scale
        Factor of the cosines: 100 for the CLIPs of OpenAI, which were trained with it.
    minimum
        Smallest probability to list.

    Raises
    ------
    AuditError
        The spaces differ, a prompt has no embedding, or fewer than two objects are listed.
    """
    check_same_space(images, texts)
    if len(objects) < 2:
        raise AuditError("at least two objects are needed: their probabilities are relative to each other")

    prompts = needed_texts(objects)
    text_ids = texts.text_ids()
    absent = [text for text in prompts if text not in text_ids]
    if absent:
        raise AuditError(
            f"{texts.where} lacks {len(absent)} of the {len(prompts)} prompts, the first {absent[0]!r}: "
            "write the prompts with --list-texts and embed them"
        )
    prompt_vectors = texts.vectors_of([text_ids[text] for text in prompts], "the objects' prompts")

    ids = sorted(images.rows)
    if not ids:
        raise AuditError(f"{images.where} has no image with features")
    image_vectors = unit_vectors(images.vectors_of(ids, "the images"))

    logits = scale * image_vectors @ unit_vectors(prompt_vectors).T  # [images, objects]
    probabilities = softmax(logits, axis=1)

    record: dict[str, object] = {
        "space": images.space,
        "images": images.fingerprint,
        "texts": texts.fingerprint,
        "prompt": PROMPT,
        "scale": scale,
        "top": MAX_OBJECTS,
        "least": minimum,
        "n_objects": len(objects),
    }
    return _most_probable(ids, objects, probabilities, minimum=minimum, record=record)


def _most_probable(
    ids: Sequence[str],
    objects: Sequence[str],
    probabilities: NDArray[np.float64],
    *,
    minimum: float,
    record: dict[str, object],
) -> Finding:
    """Return the finding of the audit: the most probable objects of each image, and how often each is first.

    Parameters
    ----------
    ids
        The N images.
    objects
        The Q objects.
    probabilities : ndarray, shape [N, Q]
        Probability of each object in each image.
    minimum
        Smallest probability to list.
    record
        Inputs and options, for the report.
    """
    rows = _rows_of_images(ids, objects, probabilities, minimum)
    object_rows = _rows_of_objects(objects, probabilities)
    n_images = counted(len(ids), "image")
    n_objects = counted(len(objects), "object")
    notes = [f"{n_images}, {n_objects}, at most {MAX_OBJECTS} an image"]
    n_without_object = len(ids) - len({row["image_id"] for row in rows})
    if n_without_object:
        notes.append(
            f"{counted(n_without_object, 'image has', 'images have')} no object with a probability "
            f"of {minimum:g} or more"
        )
    sentence_values = object_rows[0] | {"n_images": len(ids)}
    return Finding(
        rows=rows, table_rows=object_rows, sentence_values=sentence_values, record=record, notes=notes
    )


def _rows_of_images(
    ids: Sequence[str], objects: Sequence[str], probabilities: NDArray[np.float64], minimum: float
) -> list[dict[str, object]]:
    """List the most probable objects of each image, at most three, the most probable first.

    Objects with a probability below `minimum` are left out, so an image may have no row. `probabilities` is
    [images, objects].
    """
    rows: list[dict[str, object]] = []
    for image_id, p_of_objects in zip(ids, probabilities, strict=True):
        most_probable = np.argsort(-p_of_objects, kind="stable")[:MAX_OBJECTS].tolist()
        for index in most_probable:
            p = float(p_of_objects[index])
            if p >= minimum:
                rows.append({"image_id": image_id, "object": objects[index], "p_c": p})
    return rows


def _rows_of_objects(objects: Sequence[str], probabilities: NDArray[np.float64]) -> list[dict[str, object]]:
    """Count, for each object, the images whose most probable object it is; return a row for each such object.

    The most frequent object comes first; objects of equal numbers are in the order of their names.
    `probabilities` is [images, objects].
    """
    n_images_of_object = Counter(objects[index] for index in probabilities.argmax(axis=1).tolist())
    rows: list[dict[str, object]] = []
    for name, count in sorted(n_images_of_object.items(), key=lambda item: (-item[1], item[0])):
        rows.append({"object": name, "images": count, "share": count / len(probabilities)})
    return rows
