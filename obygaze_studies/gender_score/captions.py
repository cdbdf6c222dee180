"""Read captions of images from a table, or from a text store with a table that assigns them to images."""

from dataclasses import dataclass
from pathlib import Path

from obygaze_features.store import open_store
from obygaze_studies.audits.embeddings import choose_group
from obygaze_studies.audits.tables import columns, read_rows
from obygaze_studies.errors import AuditError


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


def read_captions(path: Path, texts: Path | None = None, backbone: str | None = None) -> Captions:
    """Read captions from a table, or from the `text` of a store.

    Parameters
    ----------
    path
        A table with the columns image_id and caption or, with `texts`, image_id and caption_id. The same
        caption_id twice is refused, where there are any.
    texts
        A store whose rows are captions, by caption_id.
    backbone
        Which of its groups; needed when it has several.

    Raises
    ------
    AuditError
        Naming the file, the store and the caption: an id comes twice, or has no text; the rows of the store
        are not texts.
    StoreError
        There is no such store or group.
    """
    if texts is None:
        unique = ["caption_id"] if "caption_id" in columns(path) else []
        rows = read_rows(path, ["image_id", "caption", *unique], unique=unique)
        return Captions(tuple((row["image_id"], row["caption"]) for row in rows))
    store = open_store(texts)
    group = choose_group(store, backbone)
    if group.text is None:
        raise AuditError(f"{store.where}, group {group.name}: its rows are clips, not texts")
    known = dict(zip(group.clip_ids, group.text, strict=True))
    rows = read_rows(path, ["caption_id", "image_id"], unique=["caption_id"])
    for row in rows:
        if row["caption_id"] not in known:
            raise AuditError(
                f"{path}: caption_id {row['caption_id']} of image "
                f"{row['image_id']} has no text in {store.where}, group {group.name}"
            )
    pairs = tuple((row["image_id"], known[row["caption_id"]]) for row in rows)
    return Captions(pairs, len(known) - len(pairs), store.fingerprint)
