"""Which files of a store a partial copy has."""

from collections.abc import Collection, Iterable

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import FEATURE_ARRAYS, PAYLOAD, block_rows
from obygaze_features.store.reading.listing import chunk_of
from obygaze_features.store.table import StoredClip

CUT_BY_CLIPS = ("frames", "tokens")
"""The arrays that `clips` leaves parts out of; the others are small, and come whole."""


def wanted_files(
    names: Iterable[str],
    table: tuple[StoredClip, ...],
    arrays: Collection[str] | None,
    clips: Collection[str] | None,
) -> set[str]:
    """Choose the files that hold some arrays' rows of some clips, and all that describes them.

    Parameters
    ----------
    names
        All files of the store.
    arrays
        Feature arrays to have; None for all.
    clips
        Ids of the clips whose frames and tokens to have, with those that share a chunk; None for all.

    Raises
    ------
    StoreError
        If an array or a clip is not in the store.
    """
    names = list(names)
    rows = {clip.clip_id: row for row, clip in enumerate(table)}
    chunks = {name: chunk for name in names if (chunk := chunk_of(name))}
    there = [array for array in FEATURE_ARRAYS if any(chunk[1] == array for chunk in chunks.values())]
    if unknown := sorted(set(arrays or ()) - set(there)):
        raise StoreError(f"the store has no array {unknown[0]}, but {', '.join(there)}")
    if unknown := sorted(set(clips or ()) - rows.keys()):
        raise StoreError(f"the store has no clip {unknown[0]} ({len(unknown)} of the clips asked for)")

    def is_wanted(name: str) -> bool:
        if name not in chunks:
            return True
        _, array, number = chunks[name]
        if arrays is not None and array in FEATURE_ARRAYS and array not in arrays:
            return False
        return clips is None or array not in CUT_BY_CLIPS or number in numbers[array]

    numbers = {
        array: {rows[clip] // block_rows(array, len(table)) for clip in clips or ()} for array in CUT_BY_CLIPS
    }
    return {name for name in names if is_wanted(name) or not name.startswith(f"{PAYLOAD}/")}
