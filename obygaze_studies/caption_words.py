"""Count how often captions name the emotion that a picture is meant to show (Wolfe et al. 2023, 4.3)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from obygaze_features.store import open_store
from obygaze_features.templates import packaged
from obygaze_features.text import counted
from obygaze_studies.audit_common.embeddings import choose_group
from obygaze_studies.audit_common.findings import Finding, Wording, audited, bar_chart, series_of
from obygaze_studies.audit_common.inputs import Row, read_column_names, read_json, read_rows
from obygaze_studies.errors import AuditError

_LISTED = packaged(__package__, "caption_words.toml")
EMOTION_WORDS: Mapping[str, tuple[str, ...]] = {emotion: tuple(words) for emotion, words in _LISTED.items()}
"""The words of each emotion, as in the authors' code."""

GROUP_COLUMNS = ("emotion", "level", "condition")
"""Columns of the table of items by which images are grouped; `emotion` also names a list of words."""


@dataclass(frozen=True)
class Captions:
    """Captions with their images.

    Attributes
    ----------
    pairs
        Image id and caption, in the order of the table.
    n_unnamed : int
        Number of texts in the store that the table does not name; they are not counted anywhere.
    fingerprint : str or None
        Fingerprint of the store that the captions were read from, if they were.
    """

    pairs: tuple[tuple[str, str], ...]
    n_unnamed: int = 0
    fingerprint: str | None = None


def read_captions(path: Path, texts: Path | None = None) -> Captions:
    """Read captions from a table, or from the `text` of a store.

    Parameters
    ----------
    path
        A table with the columns image_id and caption or, with `texts`, image_id and caption_id. If there is a
        column caption_id, its ids must be unique.
    texts
        A store whose rows are captions, with the caption_id as their id.

    Raises
    ------
    AuditError
        Naming the file, the store and the caption: an id comes twice, or has no text; the rows of the store
        are not texts.
    StoreError
        There is no such store or group.
    """
    if texts is not None:
        return _captions_of_store(path, texts)
    id_columns = []
    if "caption_id" in read_column_names(path):
        id_columns = ["caption_id"]
    rows = read_rows(path, ["image_id", "caption", *id_columns], unique=id_columns)
    return Captions(tuple((row["image_id"], row["caption"]) for row in rows))


def _captions_of_store(path: Path, texts: Path) -> Captions:
    """Read captions from the text store `texts`; the table `path` names the image of each caption_id."""
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
    n_unnamed = len(text_of) - len(pairs)  # the ids of the rows are unique, and all of them have a text
    return Captions(pairs, n_unnamed=n_unnamed, fingerprint=store.fingerprint)


NonEmptyWords = Annotated[tuple[str, ...], Meta(min_length=1)]
"""One word or more."""

ListsOfWords = Annotated[dict[str, NonEmptyWords], Meta(min_length=1)]
"""Emotion -> its words, for one emotion or more."""

ImageWords = Sequence[tuple[str, ...]]
"""The listed words in each caption of an image; a word that occurs twice in a caption stands there twice."""


def tokens(caption: str) -> list[str]:
    """Split a caption as the authors' code does: without full stops and commas, at every space."""
    return caption.lower().replace(".", "").replace(",", "").split(" ")


def find_words(
    captions: Iterable[tuple[str, str]], lists: Mapping[str, Sequence[str]]
) -> dict[str, ImageWords]:
    """Find the occurrences of listed words in the captions of every image.

    Parameters
    ----------
    captions
        Image id and caption.
    lists
        Emotion -> its words.

    Returns
    -------
    Image id -> the listed words in each of its captions.
    """
    listed = set(chain.from_iterable(lists.values()))
    words_of_image: dict[str, list[tuple[str, ...]]] = {}
    for image, caption in captions:
        listed_words = tuple(word for word in tokens(caption) if word in listed)
        words_of_image.setdefault(image, []).append(listed_words)
    return dict(words_of_image)


@audited(
    Wording(  # texts of the report; what stands in braces is filled from the finding's `sentence_values`
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
    """Count the words of the intended emotion per 1,000 captions, by emotion, level and condition.

    The images are meant to show an emotion, at a level and in a condition, and their captions are searched
    for words of this emotion. There is a row for each group of images (`GROUP_COLUMNS`), with the counts and
    rates of such words (`_rates`).

    Parameters
    ----------
    counts
        Image id -> the listed words in each of its captions. Images that are not among `items` count only
        towards the totals of words.
    items
        Image id -> the columns of `GROUP_COLUMNS`.
    lists
        Emotion -> its words.
    min_total
        A word with fewer occurrences in all captions is left out.
    ratio
        Two conditions: the rate of the first is divided by that of the second.
    read
        The captions as they were read, for the record of their store.

    Raises
    ------
    AuditError
        Naming the image or set: no captions, an emotion without words, a missing column, an unknown
        condition.
    """
    # Rare words are left out, since the rate of a word that hardly occurs is chance.
    totals = _totals_of_words(counts)
    frequent_words = {}
    for emotion, words in lists.items():
        frequent_words[emotion] = [word for word in words if totals[word] >= min_total]

    # Count in the captions of each group of images the words of its own emotion.
    rows: list[dict[str, Any]] = []
    for group, images in _images_by_group(items, counts, lists).items():
        group_columns = dict(zip(GROUP_COLUMNS, group, strict=True))
        captions = list(chain.from_iterable(counts[image] for image in images))
        rates = _rates(captions, frequent_words[group_columns["emotion"]])
        rows.append({**group_columns, "n_images": len(images), **rates})
    if ratio:
        rows = _with_ratios(rows, ratio)

    # What is reported beside the rows
    listed_words = sorted(set(chain.from_iterable(lists.values())))
    rare_words = [word for word in listed_words if totals[word] < min_total]
    images_without_item = sorted(set(counts) - set(items))
    record: dict[str, object] = {
        "lists": {emotion: list(words) for emotion, words in lists.items()},
        "min_total": min_total,
        "ratio": list(ratio) if ratio else None,
    }
    if read is not None:
        record = {"texts": read.fingerprint, **record}
    row_of_highest_rate = max(rows, key=lambda row: row["per_1000"])  # the sentence is on this group
    return Finding(
        rows=rows,
        columns=["ratio"] if ratio else [],
        sentence_values=row_of_highest_rate,
        record=record,
        summary={
            "word_totals": {word: totals[word] for word in listed_words},
            "left_out_words": rare_words,
            "n_captions": sum(map(len, counts.values())),
            "images_without_item": images_without_item,
        },
        notes=[
            *_note_on_left_out("words too rare", rare_words),
            *_note_on_left_out("images without an item", images_without_item),
        ],
        remarks=_remarks_on_unnamed_texts(read),
        draw=_rates_chart(rows),
    )


def _totals_of_words(counts: Mapping[str, ImageWords]) -> Counter[str]:
    """Count every listed word in the captions of all images: word -> occurrences."""
    totals: Counter[str] = Counter()
    for words_of_captions in counts.values():
        totals.update(chain.from_iterable(words_of_captions))
    return totals


def _remarks_on_unnamed_texts(captions: Captions | None) -> list[str]:
    """Write a remark that counts the texts of the store that the table does not name; none without any."""
    if captions is None or not captions.n_unnamed:
        return []
    texts = counted(captions.n_unnamed, "text")
    return [f"not in --captions, and counted nowhere: {texts} of the store"]


def _note_on_left_out(reason: str, names: Sequence[str]) -> list[str]:
    """Write a note that counts what is left out for a reason and names the first five; none if nothing is."""
    if not names:
        return []
    return [f"{len(names)} {reason}, left out of the rates: {', '.join(names[:5])}"]


def _rates_chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Make a chart of the rates: for each emotion and level a group of bars, one bar for each condition.

    The label of a group also gives the number of captions of each condition.
    """
    rows_with_label = [{**row, "label": f"{row['emotion']} {row['level']}"} for row in rows]
    labels = list(dict.fromkeys(row["label"] for row in rows_with_label))  # each once, in order
    places: dict[str, Any] = {"condition": "condition", "group": "label", "groups": labels}
    rates = series_of(rows_with_label, "per_1000", **places)
    n_captions = series_of(rows_with_label, "n_captions", **places, missing=0)
    labels_with_sizes = []
    for index, label in enumerate(labels):
        sizes = ", ".join(f"{n_of_condition[index]:,}" for n_of_condition in n_captions.values())
        labels_with_sizes.append(f"{label}\n(n = {sizes})")
    axis = "words of the intended emotion per 1,000 captions"
    return bar_chart(labels=labels_with_sizes, series=rates, axis=axis)


def _images_by_group(
    items: Mapping[str, Row], counts: Mapping[str, ImageWords], lists: Mapping[str, Sequence[str]]
) -> dict[tuple[str, ...], list[str]]:
    """Group the images by the values of `GROUP_COLUMNS`: values -> image ids.

    Raises
    ------
    AuditError
        A column of `GROUP_COLUMNS` is missing, an emotion has no list of words, or an image has no caption.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for image, row in items.items():
        _check_group_columns(image, row, lists)
        group = tuple(row[column] for column in GROUP_COLUMNS)
        if image not in counts:
            raise AuditError(f"image {image} of {' '.join(group)} has no caption")
        groups.setdefault(group, []).append(image)
    return groups


def _check_group_columns(image: str, row: Row, lists: Mapping[str, Sequence[str]]) -> None:
    """Raise an AuditError if an image lacks a column of `GROUP_COLUMNS`, or its emotion a list of words."""
    for column in GROUP_COLUMNS:
        if column not in row:
            raise AuditError(f"the table of items has no column {column}")
    if row["emotion"] not in lists:
        raise AuditError(
            f"image {image}: no list of words for the emotion {row['emotion']!r}, but for "
            f"{', '.join(lists)}; leave the image out of the items if it is meant to show none of these"
        )


def _rates(captions: Sequence[tuple[str, ...]], words: Sequence[str]) -> dict[str, Any]:
    """Count the words of the intended emotion in the captions of a group of images, and compute their rate.

    Returns the columns of the group's row: n_captions, count (of occurrences), per_1000 (their rate),
    captions_with_any, and ratio, which is None here: `_with_ratios` computes it from the rates of all groups.

    Parameters
    ----------
    captions
        The listed words that occur in each caption of the group.
    words
        The words of the intended emotion, whose occurrences are counted.
    """
    count = 0
    captions_with_any = 0
    for caption_words in captions:
        occurrences = sum(caption_words.count(word) for word in words)
        count += occurrences
        if occurrences:
            captions_with_any += 1
    return {
        "n_captions": len(captions),
        "count": count,
        "per_1000": 1000 * count / len(captions),
        "captions_with_any": captions_with_any,
        "ratio": None,
    }


def _with_ratios(rows: Sequence[dict[str, Any]], conditions: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the rows with the column `ratio` filled in those of the first of two conditions.

    It is the row's rate divided by that of the second condition, for the same emotion and level. It stays
    None if that rate is 0 or missing.

    Raises
    ------
    AuditError
        No row is of one of the conditions.
    """
    for condition in conditions:
        if condition not in {row["condition"] for row in rows}:
            raise AuditError(f"no image is of the condition {condition!r}")

    numerator, denominator = conditions
    rate_of_group = {}
    for row in rows:
        rate_of_group[row["emotion"], row["level"], row["condition"]] = row["per_1000"]

    rows_with_ratios = []
    for row in rows:
        divisor = rate_of_group.get((row["emotion"], row["level"], denominator))
        if row["condition"] == numerator and divisor:
            ratio = row["per_1000"] / divisor
            rows_with_ratios.append({**row, "ratio": ratio})
        else:
            rows_with_ratios.append(row)
    return rows_with_ratios


def read_lists(path: Path) -> dict[str, tuple[str, ...]]:
    """Read lists of words from a JSON object, emotion -> words in lower case.

    Raises
    ------
    AuditError
        The file holds no such object, a list is empty, a word comes twice, or a word could never be found
        because it has capitals, spaces, full stops or commas.
    """
    lists: dict[str, tuple[str, ...]] = read_json(path, ListsOfWords, "object of emotion: list of words")
    for emotion, words in lists.items():
        for word in words:
            # Captions are split by `tokens`: a word that it changes or splits would never be found in them.
            is_token = bool(word) and tokens(word) == [word]
            if not is_token:
                raise AuditError(f"{path}, list {emotion}: {word!r} is not one word in small letters")
        if len(set(words)) < len(words):
            raise AuditError(f"{path}, list {emotion}: a word comes twice")
    return lists
