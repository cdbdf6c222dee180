"""Count genders that captions name beside objects: b(o, g) = c(o, g) / (c(o, man) + c(o, woman)).

Zhao et al. 2017; gender by the words man and woman (Sabir and Padró 2023).
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart
from obygaze_studies.audit_common.inputs import Row, refuse_twins, refuse_unknown
from obygaze_studies.caption_words import tokens
from obygaze_studies.gender_score.published_values import TOTALS

Gender = Literal["man", "woman"]

GENDERS: tuple[Gender, Gender] = ("man", "woman")

PLURALS = ("men", "women")

MASKS = ("[MASK]", "<MASK>")

_WORD = re.compile(r"(?<![^ ])([.,]*)(?:man|woman)([.,]*)(?![^ ])", re.IGNORECASE)
"""A token that names a gender, with the stops and commas that `tokens` ignores."""

ALL = "(all captions)"


def named(caption: str) -> tuple[Gender, ...]:
    """Return the genders that a caption names by the words man and woman: none, one or both."""
    words = tokens(caption)
    return tuple(gender for gender in GENDERS if gender in words)


def has_mask(caption: str) -> bool:
    """Return whether a caption has a mask in the place of a gender."""
    return any(mask in caption for mask in MASKS)


def filled(caption: str, gender: Gender) -> str:
    """Put a gender into a caption: for its masks or, where it has none, for the gender words it has."""
    if has_mask(caption):
        for mask in MASKS:
            caption = caption.replace(mask, gender)
        return caption
    return _WORD.sub(rf"\g<1>{gender}\g<2>", caption)


def share(part: float, remainder: float) -> float | None:
    """Return the part of both, or None if both are 0."""
    return part / (part + remainder) if part + remainder else None


def holds(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether a label's words stand one after the other among a caption's words."""
    return any(list(words[start : start + len(label)]) == list(label) for start in range(len(words)))


class _Naming(NamedTuple):
    """What a caption names.

    Attributes
    ----------
    words
        All of its words.
    genders
        By the words man and woman.
    has_plural
        Whether it has the word men or women.
    """

    words: Sequence[str]
    genders: tuple[Gender, ...]
    has_plural: bool


@audited(
    Wording(
        name="cooc",
        title="Genders beside objects",
        table="Captions that name a gender",
        columns=(
            "object",
            "n_captions",
            "man",
            "woman",
            "both",
            "plural_only",
            "to_man",
            "to_woman",
        ),
        sentence=(
            "of {n_captions:,} captions {man:,} name a man and {woman:,} a woman: share of man {to_man}"
        ),
        source="Zhao et al., EMNLP 2017; published: Sabir and Padró 2023, cut to two decimals",
        figure="Share of the gender beside the object; n: captions with man plus captions with woman",
    )
)
def audit_cooc(captions: Sequence[Row], objects: Sequence[str], *, model: str | None = None) -> Finding:
    """Count captions that name a gender, over all and object by object.

    A caption that names both genders counts for both; it is counted apart too, as are those with the plurals
    alone.

    Parameters
    ----------
    captions
        Rows with a caption.
    objects
        Labels, of one or several words.
    model
        A captioner of the published tables, to put its values beside.

    Raises
    ------
    AuditError
        An object is there twice or has no word, or the captioner is unknown.
    """
    refuse_unknown(model, TOTALS)
    refuse_twins(objects, "the list of objects has twice:")
    namings = [_naming(row["caption"]) for row in captions]
    rows = []
    for label in (ALL, *objects):
        beside = namings
        if label != ALL:
            words = tokens(label)
            beside = [naming for naming in namings if holds(naming.words, words)]
        rows.append(_counts(label, beside) | _printed(model, label))
    shares = {}
    published = {}
    for gender in map(str, GENDERS):
        shares[gender] = [row[f"to_{gender}"] for row in rows]
        published[gender] = [row[f"published_to_{gender}"] for row in rows]
    # A share of 1 may rest on one caption.
    labels = [f"{row['object']} (n = {row['man'] + row['woman']:,})" for row in rows]
    return Finding(
        rows=rows,
        columns=["published_to_man", "published_to_woman"] if model else [],
        record={"published_model": model},
        draw=bar_chart(
            labels=labels,
            series=shares,
            axis="share of the gender beside the object",
            published=published if model else None,
        ),
    )


def _naming(caption: str) -> _Naming:
    words = tokens(caption)
    return _Naming(words, named(caption), not set(PLURALS).isdisjoint(words))


def _counts(label: str, captions: Sequence[_Naming]) -> dict[str, Any]:
    """Count what the captions beside an object name: a row of the table, without published values."""
    man = sum("man" in caption.genders for caption in captions)
    woman = sum("woman" in caption.genders for caption in captions)
    return {
        "object": label,
        "n_captions": len(captions),
        "man": man,
        "woman": woman,
        "both": sum(len(caption.genders) == len(GENDERS) for caption in captions),
        "plural_only": sum(caption.has_plural and not caption.genders for caption in captions),
        "to_man": share(man, woman),
        "to_woman": share(woman, man),
    }


def _printed(model: str | None, label: str) -> dict[str, float | None]:
    """Return the published shares of an object, which are None without a captioner."""
    to_man: float | None
    to_woman: float | None
    if model is None:
        to_man = to_woman = None
    elif label == ALL:
        totals = TOTALS[model]["cooc"]
        to_man = share(totals["man"], totals["woman"])
        to_woman = share(totals["woman"], totals["man"])
    else:
        to_man = TOTALS[model]["object_to_man"].get(label)
        to_woman = TOTALS[model]["object_to_woman"].get(label)
    return {"published_to_man": to_man, "published_to_woman": to_woman}
