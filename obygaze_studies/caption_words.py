"""Count how often captions name the emotion that a picture is meant to show (Wolfe et al. 2023, 4.3)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from obygaze_features.store import open_store
from obygaze_features.templates import packaged
from obygaze_studies.audit_common.embeddings import choose_group
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart, series_of
from obygaze_studies.audit_common.inputs import Row, read_json, read_rows
from obygaze_studies.errors import AuditError

_LISTED = packaged(__package__, "caption_words.toml")
EMOTION_WORDS: Mapping[str, tuple[str, ...]] = {emotion: tuple(words) for emotion, words in _LISTED.items()}
"""The words of each emotion, as in the authors' code."""

GROUP = ("emotion", "level", "condition")
"""Columns of the table of items by which images are grouped; `emotion` names the list of words."""


@dataclass(frozen=True)
class Captions:
    """Captions, image by image.

    Attributes
    ----------
    pairs
        Image id and caption, in the order of the table.
    n_unnamed : int
        Texts of the store that the table does not name; they count nowhere.
    fingerprint : str or None
        Of the store.
    """

    pairs: tuple[tuple[str, str], ...]
    n_unnamed: int = 0
    fingerprint: str | None = None


def read_captions(path: Path, texts: Path | None = None) -> Captions:
    """Read captions from a table, or from the `text` of a store.

    Parameters
    ----------
    path
        A table with the columns image_id and caption or, with `texts`, image_id and caption_id. The same
        caption_id twice is refused, where there are any.
    texts
        A store whose rows are captions, by caption_id.

    Raises
    ------
    AuditError
        Naming the file, the store and the caption: an id comes twice, or has no text; the rows of the store
        are not texts.
    StoreError
        There is no such store or group.
    """
    if texts is None:
        unique = ["caption_id"] if "caption_id" in read_rows(path, ())[0] else []
        rows = read_rows(path, ["image_id", "caption", *unique], unique=unique)
        return Captions(tuple((row["image_id"], row["caption"]) for row in rows))
    store = open_store(texts)
    group = choose_group(store)
    where = f"{store.where}, group {group.name}"
    if group.text is None:
        raise AuditError(f"{where}: its rows are clips, not texts")
    text_of = dict(zip(group.clip_ids, group.text, strict=True))
    rows = read_rows(path, ["caption_id", "image_id"], unique=["caption_id"])
    for row in rows:
        if row["caption_id"] not in text_of:
            about = f"caption_id {row['caption_id']} of image {row['image_id']}"
            raise AuditError(f"{path}: {about} has no text in {where}")
    pairs = tuple((row["image_id"], text_of[row["caption_id"]]) for row in rows)
    return Captions(pairs, len(text_of) - len(pairs), store.fingerprint)


ImageWords = Sequence[tuple[str, ...]]
"""Of each caption of an image the words that are counted, as often as they occur."""


def tokens(caption: str) -> list[str]:
    """Split a caption as the authors' code does: no full stops, no commas, split at every space."""
    return caption.lower().replace(".", "").replace(",", "").split(" ")


def count_words(
    captions: Iterable[tuple[str, str]], lists: Mapping[str, Sequence[str]]
) -> dict[str, ImageWords]:
    """Find the words of all lists, image by image.

    Parameters
    ----------
    captions
        Image id and caption.
    lists
        Emotion -> its words.
    """
    listed = {word for words in lists.values() for word in words}
    words_of_image: dict[str, list[tuple[str, ...]]] = {}
    for image, caption in captions:
        words_of_image.setdefault(image, []).append(tuple(word for word in tokens(caption) if word in listed))
    return dict(words_of_image)


@audited(
    Wording(
        name="words",
        title="Words of the intended emotion in captions",
        table="Occurrences per 1,000 captions",
        columns=(
            "emotion",
            "level",
            "condition",
            "n_images",
            "n_captions",
            "count",
            "per_1000",
            "captions_with_any",
        ),
        sentence=(
            "words of the intended emotion are most frequent where it is {emotion} "
            "({level}, {condition}): {per_1000} in 1,000 captions"
        ),
        source="Wolfe et al., FAccT 2023, section 4.3; Figure 3 there prints no numbers",
        figure="Words of the intended emotion per 1,000 captions; n: captions",
    )
)
def audit_words(
    counts: Mapping[str, ImageWords],
    items: Mapping[str, Row],
    *,
    lists: Mapping[str, Sequence[str]] = EMOTION_WORDS,
    min_total: int = 100,
    ratio: tuple[str, str] | None = None,
    read: Captions | None = None,
) -> Finding:
    """Count, by emotion, level and condition, the words of the intended emotion per 1,000 captions.

    Parameters
    ----------
    counts
        Image id -> the counted words of its captions. Images not among `items` count towards totals alone.
    items
        Image id -> the columns of `GROUP`.
    lists
        Emotion -> its words.
    min_total
        A word with fewer occurrences in all captions is left out.
    ratio
        Two conditions: the rate of the first is divided by that of the second.
    read
        Where the captions come from.

    Raises
    ------
    AuditError
        Naming the image or set: no captions, an emotion without words, a missing column, an unknown
        condition.
    """
    totals = Counter(word for image in counts.values() for caption in image for word in caption)
    frequent = {}
    for emotion, words in lists.items():
        frequent[emotion] = [word for word in words if totals[word] >= min_total]
    rows = [_row(group, images, counts, frequent) for group, images in _groups(items, counts, lists).items()]
    if ratio:
        _divide(rows, ratio)
    listed = sorted(set(chain.from_iterable(lists.values())))
    rare = [word for word in listed if totals[word] < min_total]
    strangers = sorted(set(counts) - set(items))
    notes = []
    for reason, names in (("words too rare", rare), ("images without an item", strangers)):
        if names:
            notes.append(f"{len(names)} {reason}, left out of the rates: {', '.join(names[:5])}")
    remarks = []
    if read and read.n_unnamed:
        remarks.append(f"{read.n_unnamed} texts of the store are not in --captions; they count nowhere")
    return Finding(
        rows=rows,
        columns=["ratio"] if ratio else [],
        said=max(rows, key=lambda row: row["per_1000"]),
        record={
            **({} if read is None else {"texts": read.fingerprint}),
            "lists": {emotion: list(words) for emotion, words in lists.items()},
            "min_total": min_total,
            "ratio": list(ratio) if ratio else None,
        },
        summary={
            "word_totals": {word: totals[word] for word in listed},
            "left_out_words": rare,
            "n_captions": sum(map(len, counts.values())),
            "images_without_item": strangers,
        },
        notes=notes,
        remarks=remarks,
        draw=_bars(rows),
    )


def _bars(rows: Sequence[Mapping[str, Any]]) -> Any:
    named = [{**row, "set": f"{row['emotion']} {row['level']}"} for row in rows]
    labels = list(dict.fromkeys(row["set"] for row in named))
    laid_out = partial(series_of, named, condition="condition", group="set", groups=labels)
    described = []
    for label, *sizes in zip(labels, *laid_out("n_captions", missing=0).values(), strict=True):
        n_captions = ", ".join(f"{n:,}" for n in sizes)
        described.append(f"{label}\n(n = {n_captions})")
    axis = "words of the intended emotion per 1,000 captions"
    return bar_chart(labels=described, series=laid_out("per_1000"), axis=axis)


def _groups(
    items: Mapping[str, Row], counts: Mapping[str, ImageWords], lists: Mapping[str, Sequence[str]]
) -> dict[tuple[str, ...], list[str]]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for image, row in items.items():
        if missing := [column for column in GROUP if column not in row]:
            raise AuditError(f"the table of items has no column {missing[0]}")
        if row["emotion"] not in lists:
            raise AuditError(
                f"image {image}: no list of words for the emotion {row['emotion']!r}, but for "
                f"{', '.join(lists)}; leave the image out of the items if it is meant to show none of these"
            )
        group = tuple(row[column] for column in GROUP)
        if image not in counts:
            raise AuditError(f"image {image} of {' '.join(group)} has no caption")
        groups.setdefault(group, []).append(image)
    return groups


def _row(
    group: tuple[str, ...],
    images: Sequence[str],
    counts: Mapping[str, ImageWords],
    statistics: Mapping[str, Any],
) -> dict[str, Any]:
    words = statistics[group[0]]
    captions = [caption for image in images for caption in counts[image]]
    count = sum(caption.count(word) for caption in captions for word in words)
    return dict(zip(GROUP, group, strict=True)) | {
        "n_images": len(images),
        "n_captions": len(captions),
        "count": count,
        "per_1000": 1000 * count / len(captions),
        "captions_with_any": sum(not set(words).isdisjoint(caption) for caption in captions),
        "ratio": None,
    }


def _divide(rows: list[dict[str, Any]], ratio: tuple[str, str]) -> None:
    """Put the ratio of two conditions into the rows of the first."""
    for condition in ratio:
        if condition not in {row["condition"] for row in rows}:
            raise AuditError(f"no image is of the condition {condition!r}")
    rate = {}
    for row in rows:
        rate[tuple(row[column] for column in GROUP)] = row["per_1000"]
    for row in rows:
        base = rate.get((row["emotion"], row["level"], ratio[1]))
        if row["condition"] == ratio[0] and base:
            row["ratio"] = row["per_1000"] / base


def read_lists(path: Path) -> dict[str, tuple[str, ...]]:
    """Read lists of words from a JSON object, emotion -> words in small letters.

    Raises
    ------
    AuditError
        It is no such object, a list is empty, or a word could never be found: it has capitals, spaces, full
        stops or commas.
    """
    kind = Annotated[dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]], Meta(min_length=1)]
    lists: dict[str, tuple[str, ...]] = read_json(path, kind, "object of emotion: list of words")
    for emotion, words in lists.items():
        for word in words:
            if tokens(word) != [word] or not word:
                raise AuditError(f"{path}, list {emotion}: {word!r} is not one word in small letters")
        if len(set(words)) < len(words):
            raise AuditError(f"{path}, list {emotion}: a word comes twice")
    return lists
