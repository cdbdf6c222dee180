"""Read LSMDC16: sentences, the videos of the clips, and the films, some of which ObyGaze12 has as well.

If a backbone is trained on captions of a film and later extracts features of the same film, no label leaks,
but the film is not unseen (docs/leak.md).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from obygaze_features.templates import packaged
from obygaze_features.text import counted
from obygaze_features.untrusted import read_bytes
from obygaze_studies.audit_common.inputs import read_text
from obygaze_studies.errors import TrainError
from obygaze_studies.obygaze12.printed_values import MOVIES

PUBLISHED: Mapping[str, Any] = packaged(__package__, "published.toml")

FILES: Mapping[str, str] = PUBLISHED["files"]
"""Split -> name of its file."""

FIELDS = "clip id, start and end aligned, start and end extracted, sentence"
"""The fields of a line, for messages."""

N_FIELDS = 6
"""Number of fields of a line."""

OBYGAZE12 = tuple(sorted(MOVIES.values()))
"""Titles of ObyGaze12's films."""

_CLIP_ID = re.compile(r"(?:\d+_)?(?P<movie>.+?)(?:_\d\d\.\d\d\.\d\d\.\d{3}-\d\d\.\d\d\.\d\d\.\d{3})?")
"""A clip id: a number, the film, and the times of start and end."""


@dataclass(frozen=True, slots=True)
class Caption:
    """One sentence of one clip, with its line in the file; a clip may have several, and each is a sample."""

    clip_id: str
    sentence: str
    line: int


def read_annotations(folder: Path) -> dict[str, tuple[Caption, ...]]:
    """Read the three files of LSMDC16, split by split.

    Raises
    ------
    TrainError
        If a line is malformed.
    """
    return {split: read_captions(folder / name) for split, name in FILES.items()}


def read_captions(path: Path) -> tuple[Caption, ...]:
    """Read one file of LSMDC16: no header, six fields separated by TABs, UTF-8.

    Raises
    ------
    TrainError
        If a line does not have six fields; the message names it.
    """
    captions = []
    lines = read_bytes(path).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        where = f"{path} line {number}"
        try:
            values = line.decode().strip().split("\t")
        except UnicodeDecodeError:
            raise TrainError(f"{where}: not UTF-8; convert the file, e.g. with iconv -t UTF-8") from None
        if len(values) != N_FIELDS:
            raise TrainError(
                f"{where}: expected {N_FIELDS} fields separated by TABs ({FIELDS}), found {len(values)}"
            )
        clip_id, *_, sentence = values
        # Files are named by clip ids, so that these must be usable as names.
        if not clip_id or "/" in clip_id or clip_id.startswith("."):
            raise TrainError(f"{where}: {clip_id!r} is not a clip id")
        captions.append(Caption(clip_id, sentence, number))
    return tuple(captions)


def find_videos(folder: Path, clip_ids: Iterable[str]) -> dict[str, Path]:
    """Find the videos of clips below a folder: a file's name without its last extension is the clip id.

    Returns
    -------
    Clip id -> file, for the clips found.

    Raises
    ------
    TrainError
        If it has no video of any clip, or two files have the same clip id.
    """
    wanted = set(clip_ids)
    videos: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        clip_id = path.stem
        is_side_file = path.suffix.lower() in PUBLISHED["side_files"]  # such as subtitles
        if clip_id not in wanted or is_side_file or not path.is_file():
            continue
        if clip_id in videos:
            raise TrainError(f"{videos[clip_id]} and {path}: two files of one clip id; keep one of them")
        videos[clip_id] = path
    if wanted and not videos:
        raise TrainError(
            f"{folder}: there is no video of any of the {counted(len(wanted), 'clip')}, such "
            f"as {min(wanted)}.avi; "
            "--videos names the folder of the clips, whose files are named by their ids"
        )
    return videos


def movie_of(clip_id: str) -> str:
    """Extract the film's name from a clip id, as spelt between the number and the time stamps.

    Examples
    --------
    >>> movie_of("1004_Juno_00.01.02.345-00.01.05.678")
    'Juno'
    """
    match = _CLIP_ID.fullmatch(clip_id)
    return match["movie"] if match else clip_id


def movie_key(title: str) -> str:
    """Normalise a film's title, so that spellings of different data sets compare equal.

    The result is in lower case, has words only, `and` for `&`, and no article at the beginning.

    Examples
    --------
    >>> movie_key("Crazy, Stupid, Love.") == movie_key("Crazy_Stupid_Love")
    True
    >>> movie_key("UGLY_TRUTH") == movie_key("The Ugly Truth")
    True
    """
    spelt_out = title.casefold().replace("&", " and ").replace("'", "")
    words = re.sub(r"[\W_]+", " ", spelt_out).strip()
    # A title that is only an article, such as "A", stays.
    return re.sub(r"^(the|an|a) (?=.)", "", words)


def count_movies(captions: Iterable[Caption], titles: Iterable[str]) -> dict[str, int]:
    """Count the sentences of each film: title -> number, without the titles that have no sentences."""
    n_sentences_of_key = Counter(movie_key(movie_of(caption.clip_id)) for caption in captions)
    n_sentences_of_title = {}
    for title in titles:
        n_sentences = n_sentences_of_key[movie_key(title)]
        if n_sentences:
            n_sentences_of_title[title] = n_sentences
    return n_sentences_of_title


def read_titles(path: Path) -> tuple[str, ...]:
    """Read film titles, one per line; empty lines and lines that begin with # are skipped.

    Raises
    ------
    AuditError, TrainError
        If the file is not UTF-8, or names no film.
    """
    lines = (line.strip() for line in read_text(path).splitlines())
    titles = tuple(line for line in lines if line and not line.startswith("#"))
    if not titles:
        raise TrainError(f"{path}: names no film; expected one title per line")
    return titles


def exclude(
    captions: Mapping[str, Sequence[Caption]], titles: Sequence[str]
) -> tuple[dict[str, tuple[Caption, ...]], dict[str, dict[str, int]]]:
    """Leave films out of training and validation; the test set is kept, since nothing is selected on it.

    Parameters
    ----------
    captions
        Split ("training", "validation", "test") -> its sentences.
    titles
        Titles of the films to leave out, in any spelling (`movie_key`).

    Returns
    -------
    captions, counts
        Split -> sentences kept; split -> title -> sentences left out, where there are any.
    """
    keys = {movie_key(title) for title in titles}

    def is_excluded(caption: Caption) -> bool:
        """Return whether a caption is of an excluded film."""
        return movie_key(movie_of(caption.clip_id)) in keys

    remaining = {}
    counts = {}
    for split, captions_of_split in captions.items():
        if split == "test":
            remaining[split] = tuple(captions_of_split)
        else:
            remaining[split] = tuple(caption for caption in captions_of_split if not is_excluded(caption))
            counts[split] = count_movies(captions_of_split, titles)
    return remaining, counts
