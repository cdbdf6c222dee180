"""Count how often captions that name an object also name a gender.

The share of a gender g with an object o is b(o, g) = c(o, g) / (c(o, man) + c(o, woman)), where c counts the
captions that name both (Zhao et al. 2017). A caption names a gender by the words man and woman (Sabir and
Padró 2023).
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart
from obygaze_studies.audit_common.inputs import Row, refuse_unpublished
from obygaze_studies.caption_words import tokens
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.published_values import TOTALS

Gender = Literal["man", "woman"]

GENDERS: tuple[Gender, Gender] = ("man", "woman")

PLURALS = ("men", "women")
"""Words that do not count as naming a gender; captions with only these are counted separately."""

MASKS = ("[MASK]", "<MASK>")
"""What may stand in a caption in place of a gender."""

_WORD = re.compile(r"(?<![^ ])(?P<before>[.,]*)(?:man|woman)(?P<after>[.,]*)(?![^ ])", re.IGNORECASE)
"""A token that names a gender, with the full stops and commas that `tokens` removes."""

ALL_CAPTIONS = "(all captions)"
"""What stands in the column of objects in the row of all captions."""


def genders_named(caption: str) -> tuple[Gender, ...]:
    """Return the genders that a caption names by the words man and woman: none, one or both, man first."""
    words = tokens(caption)
    return tuple(gender for gender in GENDERS if gender in words)


def has_mask(caption: str) -> bool:
    """Return whether a caption has a mask, such as [MASK], in place of a gender."""
    return any(mask in caption for mask in MASKS)


def with_gender(caption: str, gender: Gender) -> str:
    """Put a gender into a caption: in place of its masks or, if it has none, of its words man and woman.

    Examples
    --------
    >>> with_gender("a [MASK] on a horse", "woman")
    'a woman on a horse'
    >>> with_gender("a man, a dog.", "woman")
    'a woman, a dog.'
    """
    if has_mask(caption):
        for mask in MASKS:
            caption = caption.replace(mask, gender)
        return caption
    # The stops and commas before and after the word stay.
    return _WORD.sub(rf"\g<before>{gender}\g<after>", caption)


def share(part: float, remainder: float) -> float | None:
    """Return the share of `part` in the sum of both numbers; None if the sum is 0."""
    total = part + remainder
    if not total:
        return None
    return part / total


def names_label(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether a caption names a label: has the label's words one directly after the other.

    Both are given as their words.

    Examples
    --------
    >>> names_label(["a", "tennis", "racket"], ["tennis", "racket"])
    True
    """
    wanted = list(label)
    return any(list(words[start : start + len(wanted)]) == wanted for start in range(len(words)))


class _Naming(NamedTuple):
    """The words of a caption that are counted.

    Attributes
    ----------
    words
        All words of the caption, among which objects are looked up.
    genders
        The genders that it names by the words man and woman.
    has_plural
        Whether it has the word men or women.
    """

    words: Sequence[str]
    genders: tuple[Gender, ...]
    has_plural: bool


@audited(
    Wording(  # texts of the report
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
        # Filled from the first row, of all captions. `{man:names a man|name a man}` is the number with one of
        # two texts, for 1 and for all other numbers.
        sentence=(
            "of {n_captions:caption} {man:names a man|name a man} and {woman:,} a woman: "
            "share of man {to_man}"
        ),
        source="Zhao et al., EMNLP 2017; published: Sabir and Padró 2023, cut to two decimals",
        figure="Share of the gender beside the object; n: captions with man plus captions with woman",
    )
)
def audit_cooc(captions: Sequence[Row], objects: Sequence[str], *, model: str | None = None) -> Finding:
    """Count the captions that name a gender, among all captions and among those that name each object.

    A caption that names both genders counts for both, and is also counted in a column of its own, as are
    captions that have only the plurals.

    Parameters
    ----------
    captions
        Rows with a column `caption`.
    objects
        Labels of one or several words, in upper or lower case: captions are counted without it.
    model
        A captioner of the published tables, whose values are shown next to ours.

    Raises
    ------
    AuditError
        An object is listed twice, also in upper and in lower case, or the captioner is unknown.
    """
    refuse_unpublished(model, TOTALS)
    words_of_object = words_of_objects(objects)
    # A row for all captions, and one for those that name each object
    namings = [_naming(row["caption"]) for row in captions]  # of each caption: its words, and which genders
    rows = [_counts(ALL_CAPTIONS, namings) | _published_shares(model, ALL_CAPTIONS)]
    for label, words in words_of_object.items():
        captions_with_object = [naming for naming in namings if names_label(naming.words, words)]
        rows.append(_counts(label, captions_with_object) | _published_shares(model, " ".join(words)))

    shares: dict[str, list[float | None]] = {}
    published: dict[str, list[float | None]] = {}
    for gender in GENDERS:
        shares[gender] = [row[f"to_{gender}"] for row in rows]
        published[gender] = [row[f"published_to_{gender}"] for row in rows]
    # The number of captions is shown because a share of 1 may rest on a single one.
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


def words_of_objects(objects: Sequence[str]) -> dict[str, list[str]]:
    """Return object -> its words as they are looked up in captions, in lower case.

    Raises
    ------
    AuditError
        Two objects have the same words: they are one, of which the same captions would be counted twice.
    """
    words_of_object: dict[str, list[str]] = {}
    object_of_words: dict[tuple[str, ...], str] = {}
    for label in objects:
        words = tokens(label)
        earlier = object_of_words.get(tuple(words))
        if earlier is not None:
            spelling = "" if earlier == label else f", also as {label!r}"
            raise AuditError(f"the list of objects has twice: {earlier}{spelling}")
        object_of_words[tuple(words)] = label
        words_of_object[label] = words
    return words_of_object


def _naming(caption: str) -> _Naming:
    """Split a caption into words, and find the genders that it names, and whether it has "men" or "women"."""
    words = tokens(caption)
    has_plural = any(plural in words for plural in PLURALS)
    return _Naming(words, genders_named(caption), has_plural)


def _counts(label: str, captions: Sequence[_Naming]) -> dict[str, Any]:
    """Make the row of an object: how many of the captions that name it also name each gender, and shares."""
    n_with_man = sum("man" in caption.genders for caption in captions)
    n_with_woman = sum("woman" in caption.genders for caption in captions)
    return {
        "object": label,
        "n_captions": len(captions),
        "man": n_with_man,
        "woman": n_with_woman,
        "both": sum(len(caption.genders) == len(GENDERS) for caption in captions),
        "plural_only": sum(caption.has_plural and not caption.genders for caption in captions),
        "to_man": share(n_with_man, n_with_woman),
        "to_woman": share(n_with_woman, n_with_man),
    }


def _published_shares(model: str | None, label: str) -> dict[str, float | None]:
    """Return the published shares of both genders beside an object, as columns of its row.

    For each captioner, `TOTALS` has what Sabir and Padró print: the numbers of captions with man and with
    woman (`cooc`), from which the shares in all captions are computed, and of a few objects the shares
    themselves (`object_to_man`, `object_to_woman`).

    Parameters
    ----------
    model
        The captioner. Without one, the shares are None.
    label
        The object in lower case, or `ALL_CAPTIONS`. The shares of an object that is not printed are None.
    """
    to_man: float | None = None
    to_woman: float | None = None
    if model is not None and label == ALL_CAPTIONS:
        n_captions_with = TOTALS[model]["cooc"]
        to_man = share(n_captions_with["man"], n_captions_with["woman"])
        to_woman = share(n_captions_with["woman"], n_captions_with["man"])
    elif model is not None:
        to_man = TOTALS[model]["object_to_man"].get(label)
        to_woman = TOTALS[model]["object_to_woman"].get(label)
    return {"published_to_man": to_man, "published_to_woman": to_woman}
