"""The space a vector lies in: only vectors of one space have cosines that mean anything."""

from obygaze_features.backbones.weights import Weights


def space_of(family: str, weights: Weights) -> str:
    """Name the space that a network maps into, `clip sha256:…`, for the provenance's field `space`.

    The weights alone decide it: the image and the text half of one file share it, whether the file came from
    the hub or a folder.
    """
    made = f"random:{weights.seed}" if weights.seed is not None else f"sha256:{weights.sha256}"
    return f"{family} {made}"
