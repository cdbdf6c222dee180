"""Find objects in images with CLIP as the visual classifier (Sabir and Padró 2023, "visual context").

An image's probability of a label is the softmax, over all labels, of scaled cosines of its embedding and the
labels' text embeddings (Radford et al. 2021, section 3.1). The labels compete: the probabilities of an image
sum to 1, and some label has the largest one whether its object is there or not.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.special import softmax

from obygaze_studies.audit_common.embeddings import Embeddings, check_same_space, unit
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
    rows = [
        {"image_id": name, "object": objects[index], "p_c": float(share[index])}
        for name, share in zip(ids, shares, strict=True)
        for index in np.argsort(-share, kind="stable")[:TOP].tolist()
        if share[index] >= least
    ]
    first = Counter(objects[index] for index in shares.argmax(axis=1).tolist())
    counted = [
        {"object": name, "images": n, "share": n / len(ids)}
        for name, n in sorted(first.items(), key=lambda item: (-item[1], item[0]))
    ]
    notes = [f"{len(ids)} images, {len(objects)} objects, at most {TOP} an image"]
    if without := len(ids) - len({row["image_id"] for row in rows}):
        notes.append(f"{without} images have no object with a probability of {least:g} or more")
    about: dict[str, object] = {"space": images.space}
    about |= {"images": images.fingerprint, "texts": texts.fingerprint}
    about |= {"prompt": PROMPT, "scale": scale, "top": TOP, "least": least, "n_objects": len(objects)}
    values = counted[0] | {"n_images": len(ids)}
    return Finding(rows=rows, shown=counted, said=values, record=about, notes=notes)
