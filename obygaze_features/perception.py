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

SHOWN_BY_PICTURES = frozenset({"visual", "moving"})
"""Those of MODALITIES that one picture or a sequence of pictures shows."""

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
"""Kind of features -> what they perceive: "visual" are of pictures in their order, "told" of texts."""

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
    """Return which modalities of a film some features were computed from, by their provenance.

    Parameters
    ----------
    provenance
        Provenance of the group of features. The first of these that it has decides:

        1. the field `perceives`, which states the modalities;
        2. a preset: of sound if it has a track, else of pictures;
        3. a tokenizer: the features are of texts.

    Returns
    -------
    tuple of str
        Some of MODALITIES; empty if the provenance does not show them.

    Examples
    --------
    >>> from obygaze_features.manifest import perceived
    >>> perceived({"preset": {"resize": "224"}}), perceived({"perceives": ["heard"]}), perceived({})
    (('visual', 'moving'), ('heard',), ())
    """
    stated_modalities = provenance.get("perceives")
    if isinstance(stated_modalities, Sequence) and not isinstance(stated_modalities, str):
        return tuple(name for name in MODALITIES if name in stated_modalities)

    preset = provenance.get("preset")  # how pictures or sound were prepared for the network
    # A store writes all fields of a preset, each empty where no picture or sound was prepared.
    if isinstance(preset, Mapping) and any(value is not None for value in preset.values()):
        is_of_sound = "track" in preset
        return PERCEIVED_BY["heard"] if is_of_sound else PERCEIVED_BY["visual"]

    is_of_texts = bool(provenance.get("tokenizer"))
    return PERCEIVED_BY["told"] if is_of_texts else ()


def why_unperceived(name: str, conveyed: str, perceives: Sequence[str]) -> str:
    """Return why a source cannot perceive a concept, because the film conveys it otherwise; "" if it can.

    A source can perceive

    - a concept of one of its modalities;
    - what is said, if it hears;
    - a concept of NOT_VISUAL, if it perceives more than pictures;
    - any concept, if one of the modalities is not known.

    Parameters
    ----------
    name
        Name of the concept or question, for the message.
    conveyed
        How the film conveys it: one of MODALITIES; NOT_VISUAL if a source that perceives only pictures cannot
        know of it; "" if that is not known.
    perceives
        What the source perceives: some of MODALITIES; empty if that is not known.

    Examples
    --------
    >>> from obygaze_features.perception import why_unperceived
    >>> why_unperceived("Voice", "heard", ["visual"])
    'Voice is heard, and what is perceived is visual'
    """
    is_unknown = not perceives or not conveyed
    if is_unknown or conveyed in perceives:
        return ""
    if conveyed == "said" and "heard" in perceives:
        return ""
    perceives_only_pictures = set(perceives) <= SHOWN_BY_PICTURES
    if conveyed == NOT_VISUAL and not perceives_only_pictures:
        return ""
    return f"{name} is {conveyed}, and what is perceived is {' and '.join(perceives)}"


@checked
def modalities_of(names: Iterable[str], where: str) -> tuple[str, ...]:
    """Check names of modalities, and return them in the order of MODALITIES, each once.

    Parameters
    ----------
    names
        Modalities that a source perceives.
    where
        Where the names come from, for messages.

    Raises
    ------
    ObygazeError
        A name is none of MODALITIES, or there are no names.
    """
    modalities = list(names)
    expected = f"expected some of {', '.join(MODALITIES)}"
    for name in modalities:
        if name not in MODALITIES:
            raise ObygazeError(f"{where}: perceives {name!r:.40}: {expected}")
    if not modalities:
        raise ObygazeError(f"{where}: perceives nothing: {expected}")
    return tuple(name for name in MODALITIES if name in modalities)
