"""Match the concepts of a codebook with what a source perceives."""

from collections.abc import Sequence

from obygaze_features import perception
from obygaze_features.arguments import checked
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.codebook_parts import Concept
from obygaze_features.perception import (
    MODALITIES,
    OF_VARIABLES,
    PERCEIVED_BY,
    PICTURES,
    modalities_of,
    perceived,
)

__all__ = [
    "MODALITIES",
    "OF_VARIABLES",
    "PERCEIVED_BY",
    "PICTURES",
    "modalities_of",
    "perceived",
    "unperceived",
    "why_unperceived",
]


@checked
def why_unperceived(concept: Concept, perceives: Sequence[str]) -> str:
    """Say why a source, such as a model, cannot perceive a concept; "" if it can.

    If `perceives` is empty, the source is taken to perceive all concepts. A concept with `visual = false` and
    no modality cannot be perceived by sources that perceive only pictures.

    Parameters
    ----------
    concept
        A concept of a codebook.
    perceives
        Which of MODALITIES the source perceives, such as `["visual"]` for pictures.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook, why_unperceived
    >>> codebook = builtin_codebook("obygaze12")
    >>> why_unperceived(codebook.concept("Voice"), ["visual"])
    'Voice is heard, and what is perceived is visual'
    >>> why_unperceived(codebook.concept("Body"), ["visual"])
    ''
    """
    conveyed = concept.conveyed or perception.NOT_VISUAL
    return perception.why_unperceived(concept.name, conveyed, perceives)


@checked
def unperceived(codebook: Codebook, perceives: Sequence[str]) -> dict[str, str]:
    """List the concepts that a source cannot perceive, each with the reason, in canonical order.

    Examples
    --------
    >>> from obygaze_features.manifest import builtin_codebook, unperceived
    >>> list(unperceived(builtin_codebook("obygaze12"), ["visual"]))
    ['Speech', 'Voice', 'Soundtrack', 'Narratology']
    """
    reasons = {concept.name: why_unperceived(concept, perceives) for concept in codebook.concepts}
    return {name: reason for name, reason in reasons.items() if reason}
