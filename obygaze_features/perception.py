"""Decide what a source can know of a film: what it perceives, beside what conveys a concept.

A source is whatever says something of clips: a backbone, a machine that answers questions, a column of
measured variables. What it cannot perceive is absent, with the reason: nobody asks the source of it, and
nothing that the source says of it counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from obygaze_features.arguments import checked
from obygaze_features.errors import ObygazeError

MODALITIES: tuple[str, ...] = ("visual", "moving", "heard", "said", "told")
"""How a film conveys something: a picture of a moment, motion, sound, words that are spoken, the story."""

IN_PICTURES = frozenset({"visual", "moving"})
"""Those of MODALITIES that pictures show, one or several."""

NOT_VISUAL = "not visual"
"""How something is conveyed of which a codebook says no more than that."""

PICTURES: tuple[str, ...] = ("visual",)
"""What is perceived by whoever gets pictures of single moments, as a vision-language model does."""

PERCEIVED_BY: Mapping[str, tuple[str, ...]] = {
    "visual": ("visual", "moving"),
    "moving": ("moving",),
    "heard": ("heard",),
    "said": ("said",),
    "told": ("said", "told"),
}
"""What is perceived by features of pictures in their order, of motion, of sound, of speech, and of texts."""

PEOPLE_FRAMES = "people_frames"
"""Column of `obygaze film variables` that says how many frames those of people come of."""

OF_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "loudness": PERCEIVED_BY["heard"],
    "speech": PERCEIVED_BY["heard"],
    "black": PICTURES,
    **dict.fromkeys(("present", "persons", "screen", "face", "height", "profile"), PICTURES),
    **dict.fromkeys(("close", "medium", "long"), PICTURES),
    PEOPLE_FRAMES: (),
} | dict.fromkeys(("cuts", "camera", "pan", "tilt", "zoom", "roll", "inliers"), PERCEIVED_BY["visual"])
"""Column of `obygaze film variables` -> what it is measured of; of nothing what is an account of others."""


@checked
def perceived(provenance: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what features perceive of a film, such as pictures or sound, by their provenance.

    Parameters
    ----------
    provenance
        Of the group of the features. It states it by the field `perceives`. Else the preset tells: that of a
        backbone that hears names a track. Features of texts have a tokenizer, and an empty preset.

    Returns
    -------
    tuple of str
        Some of MODALITIES; none where nothing tells.

    Examples
    --------
    >>> from obygaze_features.manifest import perceived
    >>> perceived({"preset": {"resize": "224"}}), perceived({"perceives": ["heard"]}), perceived({})
    (('visual', 'moving'), ('heard',), ())
    """
    stated = provenance.get("perceives")
    if isinstance(stated, Sequence) and not isinstance(stated, str):
        return tuple(name for name in MODALITIES if name in stated)
    preset = provenance.get("preset")
    # A store writes every field of a preset, each empty where no picture or sound was prepared.
    if isinstance(preset, Mapping) and any(value is not None for value in preset.values()):
        return PERCEIVED_BY["heard" if "track" in preset else "visual"]
    return PERCEIVED_BY["told"] if provenance.get("tokenizer") else ()


def why_unperceived(name: str, conveyed: str, perceives: Sequence[str]) -> str:
    """Say why a source cannot know of something; "" where it can.

    Parameters
    ----------
    name
        Of a concept or a question.
    conveyed
        One of MODALITIES: what is said can be heard too. NOT_VISUAL excludes sources that perceive pictures
        alone, "" excludes nothing.
    perceives
        Some of MODALITIES; of a source of which nobody knows it, which excludes nothing, none.

    Examples
    --------
    >>> from obygaze_features.perception import why_unperceived
    >>> why_unperceived("Voice", "heard", ["visual"])
    'Voice is heard, and what is perceived is visual'
    """
    if not perceives or not conveyed or conveyed in perceives:
        return ""
    if conveyed == "said" and "heard" in perceives:
        return ""
    if conveyed == NOT_VISUAL and not set(perceives) <= IN_PICTURES:
        return ""
    return f"{name} is {conveyed}, and what is perceived is {' and '.join(perceives)}"


@checked
def modalities_of(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Check what a source is said to perceive, and put it in the order of MODALITIES.

    Raises
    ------
    ObygazeError
        A name is none of MODALITIES, or there is none; `where` tells the place.
    """
    given = list(names)
    expected = f"expected some of {', '.join(MODALITIES)}"
    for name in given:
        if name not in MODALITIES:
            raise ObygazeError(f"{where}: perceives {name!r:.40}: {expected}")
    if not given:
        raise ObygazeError(f"{where}: perceives nothing: {expected}")
    return tuple(name for name in MODALITIES if name in given)
