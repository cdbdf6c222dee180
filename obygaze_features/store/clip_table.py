"""Hold a store's table of clips as columns, which take a tenth of the memory of a record each."""

import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from obygaze_features.store.format import ABSENT
from obygaze_features.store.records import SHA256_BYTES, Gaps, StoredClip

NO_DIGEST = bytes(SHA256_BYTES)
"""Stands for the digest of a row without features."""


@dataclass(frozen=True, eq=False, slots=True)
class ClipTable:
    """Status and origin of the N clips of a store, in the order of the rows.

    Attributes
    ----------
    clip_ids, movies, status : list of str
        Fields of `StoredClip`, by row.
    start_s, end_s : ndarray, shape [N]
        NaN of a clip that is a whole file.
    n_words : ndarray of int, shape [N]
        Words of the text that a row is the embedding of; 0 in a store of clips.
    reasons : dict of int to str
        By row, why a clip is not ok.
    absent : dict of str to dict of int to str
        By group and row, why a group has no features of a clip that others have some of.
    without_pictures_s : dict of int to tuple
        By row, the stretches in which a clip's file has no pictures: start and end in seconds.
    digests : dict of str to ndarray of bytes, shape [N]
        By `group/array`, the SHA-256 of each row; `NO_DIGEST` of rows without features.
    """

    clip_ids: list[str]
    movies: list[str]
    status: list[str]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    n_words: NDArray[np.int64]
    reasons: dict[int, str]
    absent: dict[str, dict[int, str]]
    without_pictures_s: dict[int, Gaps]
    digests: dict[str, NDArray[np.bytes_]]

    def __len__(self) -> int:
        """Return the number of clips."""
        return len(self.clip_ids)

    def describe_absence(self, row: int, group: str) -> str:
        """Return why a group has no features of the clip in a row, such as "failed: the file is empty".

        The text is the status of the clip in the group, followed by the reason if one is recorded. The status
        is `absent` if only other groups have features of the clip.
        """
        absent_reasons = self.absent.get(group, {})
        if row in absent_reasons:
            status = ABSENT
            reason = absent_reasons[row]
        else:
            status = self.status[row]
            reason = self.reasons.get(row, "")
        return f"{status}: {reason}" if reason else status


def clip_table(clips: Iterable[StoredClip]) -> ClipTable:
    """Convert the records of a store's clips to columns, which take a tenth of the memory.

    Parameters
    ----------
    clips
        The clips in the order of the rows. Each is read once and not kept.
    """
    # Columns with a value of each clip
    clip_ids: list[str] = []
    movies: list[str] = []
    status: list[str] = []
    start_s = array("d")  # NaN: the clip is a whole file
    end_s = array("d")
    n_words = array("q")
    # What few clips have, by their row
    reasons: dict[int, str] = {}
    absent: dict[str, dict[int, str]] = {}  # group -> row -> why it has no features of the clip
    without_pictures_s: dict[int, Gaps] = {}
    digests: dict[str, bytearray] = {}  # `group/array` -> the digests of all rows, one after the other

    for row, clip in enumerate(clips):
        clip_ids.append(clip.clip_id)
        movies.append(sys.intern(clip.movie))  # one text for all clips of a film
        status.append(sys.intern(clip.status))
        start_s.append(np.nan if clip.start_s is None else clip.start_s)
        end_s.append(np.nan if clip.end_s is None else clip.end_s)
        n_words.append(len(clip.text.split()) if clip.text else 0)
        if clip.reason:
            reasons[row] = clip.reason
        if clip.without_pictures_s:
            without_pictures_s[row] = clip.without_pictures_s
        for group, reason in clip.absent.items():
            absent.setdefault(group, {})[row] = reason
        for array_name, digest in clip.digests.items():
            column = digests.setdefault(array_name, bytearray())
            _fill_digests_up_to(row, column)  # for clips before this one that have none
            column.extend(bytes.fromhex(digest))

    for column in digests.values():
        _fill_digests_up_to(len(clip_ids), column)  # for the last clips
    digest_type = f"S{SHA256_BYTES}"  # numpy's type of texts of so many bytes
    return ClipTable(
        clip_ids=clip_ids,
        movies=movies,
        status=status,
        start_s=np.frombuffer(start_s, np.float64),
        end_s=np.frombuffer(end_s, np.float64),
        n_words=np.frombuffer(n_words, np.int64),
        reasons=reasons,
        absent=absent,
        without_pictures_s=without_pictures_s,
        digests={name: np.frombuffer(column, digest_type) for name, column in digests.items()},
    )


def _fill_digests_up_to(n_rows: int, column: bytearray) -> None:
    """Append empty digests (zeros) to a column of SHA-256 digests until it has `n_rows` rows.

    The column is the bytes of its rows, `SHA256_BYTES` for each.
    """
    n_missing = n_rows - len(column) // SHA256_BYTES
    column.extend(NO_DIGEST * n_missing)
