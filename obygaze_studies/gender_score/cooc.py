"""Count genders that captions name beside objects: b(o, g) = c(o, g) / (c(o, man) + c(o, woman)).

Zhao et al. 2017; gender by the words man and woman (Sabir and Padró 2023).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from obygaze_models.report import Picture, Report, cell
from obygaze_studies.audit_common.audit_tables import audit_report, drawn_by, read_text, refuse_twins, table
from obygaze_studies.caption_words import tokens
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.published_values import TOTALS, Totals

Gender = Literal["man", "woman"]

GENDERS: tuple[Gender, Gender] = ("man", "woman")

PLURALS = ("men", "women")

MASKS = ("[MASK]", "<MASK>")

_WORD = re.compile(r"(?<![^ ])([.,]*)(?:man|woman)([.,]*)(?![^ ])", re.IGNORECASE)
"""A token that names a gender, with the stops and commas that `tokens` ignores."""

ALL = "(all captions)"

PICTURED = "share of the gender beside the object"


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


def share(part: float, rest: float) -> float | None:
    """Return the part of both, or None if both are 0."""
    return part / (part + rest) if part + rest else None


def holds(words: Sequence[str], label: Sequence[str]) -> bool:
    """Return whether a label's words stand one after the other among a caption's words."""
    return any(list(words[start : start + len(label)]) == list(label) for start in range(len(words)))


def audit_cooc(captions: Sequence[str], objects: Sequence[str], *, model: str | None = None) -> Report:
    """Count captions that name a gender, over all and object by object.

    A caption that names both genders counts for both; it is counted apart too, as are those with the plurals
    alone.

    Parameters
    ----------
    captions
        Texts.
    objects
        Labels, of one or several words.
    model
        A captioner of the published tables, to put its values beside.

    Raises
    ------
    AuditError
        An object is there twice or has no word, or the captioner is unknown.
    """
    if model is not None and model not in TOTALS:
        raise AuditError(f"no published values of {model!r}, but of {', '.join(TOTALS)}")
    refuse_twins(objects, "the list of objects has twice:")
    words = [tokens(caption) for caption in captions]
    genders = [named(caption) for caption in captions]
    rows: list[dict[str, Any]] = []
    for label in (ALL, *objects):
        parts = [] if label == ALL else tokens(label)
        chosen = [
            index for index, caption_words in enumerate(words) if not parts or holds(caption_words, parts)
        ]
        man, woman = (sum(gender in genders[index] for index in chosen) for gender in GENDERS)
        plural = [index for index in chosen if not genders[index] and set(PLURALS) & set(words[index])]
        rows.append(
            {
                "object": label,
                "n_captions": len(chosen),
                "man": man,
                "woman": woman,
                "both": sum(len(genders[index]) == 2 for index in chosen),
                "plural_only": len(plural),
                "to_man": share(man, woman),
                "to_woman": share(woman, man),
                **_printed(TOTALS[model] if model else None, label),
            }
        )
    record: Mapping[str, object] = {
        "published_model": model,
        "source": "Zhao et al., EMNLP 2017; published: Sabir and Padró 2023, cut to two decimals",
    }

    shares, printed = (
        {str(gender): [row[f"{before}to_{gender}"] for row in rows] for gender in GENDERS}
        for before in ("", "published_")
    )
    # A share of 1 may rest on one caption.
    labels = [f"{row['object']} (n = {row['man'] + row['woman']:,})" for row in rows]
    published = printed if model else None
    bars = drawn_by("draw_bars", labels=labels, series=shares, axis=PICTURED, published=published)
    columns = ["object", "n_captions", "man", "woman", "both", "plural_only", "to_man", "to_woman"]
    columns += ["published_to_man", "published_to_woman"] if model else []
    shown = table("Captions that name a gender", rows, columns)
    picture = Picture("cooc", f"{PICTURED.capitalize()}; n: captions with man plus captions with woman", bars)
    every = rows[0]
    answer = f"of {every['n_captions']:,} captions {every['man']:,} name a man and {every['woman']:,} a woman"
    answer += f": share of man {cell(every['to_man'])}"
    return audit_report(
        "cooc", "Genders beside objects", rows, [shown], record, answer=answer, picture=picture
    )


def _printed(totals: Totals | None, label: str) -> dict[str, object]:
    to_man = to_woman = None
    if totals and label == ALL:
        man, woman = totals.cooc["man"], totals.cooc["woman"]
        to_man, to_woman = share(man, woman), share(woman, man)
    elif totals:
        to_man, to_woman = totals.object_to_man.get(label), totals.object_to_woman.get(label)
    return {"published_to_man": to_man, "published_to_woman": to_woman}


def read_objects_list(path: Path) -> tuple[str, ...]:
    """Read labels, one a line; empty lines are passed over.

    Raises
    ------
    AuditError
        There is none, or the file is a table.
    """
    labels = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    if not labels:
        raise AuditError(f"{path} lists no object")
    if "," in labels[0]:
        raise AuditError(f"{path}: begins with {labels[0][:60]!r}, as a table; expected an object per line")
    return labels
