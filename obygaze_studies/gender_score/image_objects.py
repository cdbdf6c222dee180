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

from obygaze_studies.audit_common.embeddings import Answers, Embeddings, check_same_space, unit
from obygaze_studies.audit_common.findings import Finding, Wording, audited
from obygaze_studies.audit_common.inputs import refuse_twins
from obygaze_studies.errors import AuditError

PROMPT = "a photo of a {}"

SCALE = 100.0
"""exp(logit_scale) of OpenAI's CLIPs after training, where it was clipped; stores do not hold it."""


TOP = 3
"""Objects of an image at most, as in the published captions' file."""


def needed_texts(objects: Sequence[str]) -> list[str]:
    """Put each object into the prompt; the texts need embeddings.

    Raises
    ------
    AuditError
        An object is listed twice.

    Examples
    --------
    >>> needed_texts(["umbrella"])
    ['a photo of a umbrella']
    """
    refuse_twins(objects, "the list of objects has twice:")
    return [PROMPT.format(name) for name in objects]


WORDING_OF_ANSWERS = Wording(
    name="objects",
    title="Objects of images by a classifier",
    table="Images by their most probable object",
    columns=("object", "images", "share"),
    sentence="most probable object of {images:,} of {n_images:,} images: {object}",
    source="probabilities of a classifier's classes, as the store has them",
)


@audited(WORDING_OF_ANSWERS)
def audit_answers(images: Answers, objects: Sequence[str] | None = None, *, least: float = 0.0) -> Finding:
    """List the most probable classes of every image, by the answers of a classifier in a store.

    Parameters
    ----------
    images
        Probabilities of named classes.
    objects
        Classes to list; None for all. Probabilities stay those among all classes.
    least
        Smallest probability to list.

    Raises
    ------
    AuditError
        An object is none of the classes, or is listed twice, or no image has answers.
    """
    chosen = images.names if objects is None else tuple(objects)
    refuse_twins(chosen, "the list of objects has twice:")
    if unknown := [name for name in chosen if name not in images.names]:
        raise AuditError(
            f"{images.where} has no class {unknown[0]!r} ({len(unknown)} of the {len(chosen)} objects): "
            "leave the list out for all classes"
        )
    ids = sorted(images.rows)
    if not ids:
        raise AuditError(f"{images.where} has no image with answers")
    columns = [images.names.index(name) for name in chosen]
    rows = [images.rows[name] for name in ids]
    shares = images.probabilities[np.ix_(rows, columns)]
    about = {"images": images.fingerprint, "group": images.group, "top": TOP, "least": least}
    return _listed(ids, chosen, shares, least, about | {"n_objects": len(chosen)})


@audited(
    Wording(
        name="objects",
        title="Objects of images by CLIP",
        table="Images by their most probable object",
        columns=(
            "object",
            "images",
            "share",
        ),
        sentence="most probable object of {images:,} of {n_images:,} images: {object}",
        source="CLIP as visual classifier (Sabir and Padró 2023); softmax over the objects listed",
    )
)
def audit_objects(
    images: Embeddings, texts: Embeddings, objects: Sequence[str], *, scale: float = SCALE, least: float = 0.0
) -> Finding:
    """List the most probable objects of every image, `TOP` at most: the table that `gender-score` reads.

    Equal ones come in the order of the list.

    Parameters
    ----------
    images, texts
        Of one space.
    objects
        All labels, which compete.
    scale
        By which cosines are multiplied.
    least
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
    if absent := [text for text in prompts if text not in text_ids]:
        raise AuditError(
            f"{texts.where} lacks {len(absent)} of the {len(prompts)} prompts, the first {absent[0]!r}: "
            "write the prompts with --list-texts and embed them"
        )
    labels = texts.take([text_ids[text] for text in prompts], "the objects' prompts")
    ids = sorted(images.rows)
    if not ids:
        raise AuditError(f"{images.where} has no image with features")
    shares = softmax(scale * unit(images.take(ids, "the images")) @ unit(labels).T, axis=1)
    about: dict[str, object] = {"space": images.space}
    about |= {"images": images.fingerprint, "texts": texts.fingerprint}
    about |= {"prompt": PROMPT, "scale": scale, "top": TOP, "least": least, "n_objects": len(objects)}
    return _listed(ids, objects, shares, least, about)


def _listed(
    ids: Sequence[str],
    objects: Sequence[str],
    shares: NDArray[np.float64],
    least: float,
    about: dict[str, object],
) -> Finding:
    """List the most probable objects of each image, by their probabilities [N, Q]."""
    rows = []
    for name, share in zip(ids, shares, strict=True):
        most = np.argsort(-share, kind="stable")[:TOP].tolist()
        listed = [index for index in most if share[index] >= least]
        rows += [{"image_id": name, "object": objects[index], "p_c": float(share[index])} for index in listed]
    first = Counter(objects[index] for index in shares.argmax(axis=1).tolist())
    counted = []
    for name, n in sorted(first.items(), key=lambda item: (-item[1], item[0])):
        counted.append({"object": name, "images": n, "share": n / len(ids)})
    notes = [f"{len(ids)} images, {len(objects)} objects, at most {TOP} an image"]
    if without := len(ids) - len({row["image_id"] for row in rows}):
        notes.append(f"{without} images have no object with a probability of {least:g} or more")
    said = counted[0] | {"n_images": len(ids)}
    return Finding(rows=rows, shown=counted, said=said, record=about, notes=notes)
