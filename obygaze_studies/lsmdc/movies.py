"""Find the films of LSMDC's clips, and their overlap with ObyGaze12.

A backbone trained on captions of a film later extracts features of the same film. No label leaks, but the
film is not unseen (docs/leak.md).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from obygaze_studies.errors import TrainError
from obygaze_studies.lsmdc.caption_list import Caption

OBYGAZE12 = (
    "As Good as It Gets",
    "Crazy, Stupid, Love",
    "Gone Girl",
    "Juno",
    "Marley and Me",
    "Meet the Parents",
    "Pulp Fiction",
    "Silver Linings Playbook",
    "Sleepless in Seattle",
    "The Help",
    "The Ugly Truth",
    "Up in the Air",
)
"""Titles of ObyGaze12's films."""

_CLIP_ID = re.compile(r"(?:\d+_)?(?P<movie>.+?)(?:_\d\d\.\d\d\.\d\d\.\d{3}-\d\d\.\d\d\.\d\d\.\d{3})?")
_ARTICLE = re.compile(r"(the|an|a) (.+)")


def movie_of(clip_id: str) -> str:
    """Extract the film's name from a clip id, as spelt between the number and the time stamps.

    Examples
    --------
    >>> movie_of("1004_Juno_00.01.02.345-00.01.05.678")
    'Juno'
    """
    found = _CLIP_ID.fullmatch(clip_id)
    return found["movie"] if found else clip_id


def movie_key(title: str) -> str:
    """Normalise a title: lower case, words only, `&` as and, no leading article.

    Examples
    --------
    >>> movie_key("Crazy, Stupid, Love.") == movie_key("Crazy_Stupid_Love")
    True
    >>> movie_key("UGLY_TRUTH") == movie_key("The Ugly Truth")
    True
    """
    words = re.sub(r"[\W_]+", " ", title.casefold().replace("&", " and ").replace("'", "")).strip()
    article = _ARTICLE.fullmatch(words)
    return article[2] if article else words


def count_movies(captions: Iterable[Caption], titles: Iterable[str]) -> dict[str, int]:
    """Count the sentences per title; titles without sentences are omitted."""
    found = Counter(movie_key(movie_of(caption.clip_id)) for caption in captions)
    return {title: found[movie_key(title)] for title in titles if found[movie_key(title)]}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Films that are left out of training and validation.

    Parameters
    ----------
    titles
        Titles as spelt in the file.
    sentences
        Split -> title -> sentences left out; titles without clips are omitted.
    """

    titles: tuple[str, ...] = ()
    sentences: Mapping[str, Mapping[str, int]] | None = None

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Return the titles without clips."""
        found = {title for titles in (self.sentences or {}).values() for title in titles}
        return tuple(title for title in self.titles if title not in found)


def read_titles(path: Path) -> tuple[str, ...]:
    """Read film titles, one per line; empty lines and lines that begin with # are skipped.

    Raises
    ------
    TrainError
        If the file is missing, is not UTF-8, or names no film.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise TrainError(
            f"{path}: there is no such file; --exclude-movies names a file with one title per line"
        ) from None
    except UnicodeDecodeError:
        raise TrainError(f"{path}: not UTF-8") from None
    titles = tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))
    if not titles:
        raise TrainError(f"{path}: names no film; expected one title per line")
    return titles


def exclude(
    captions: Mapping[str, Sequence[Caption]], titles: Sequence[str]
) -> tuple[dict[str, tuple[Caption, ...]], Exclusion]:
    """Leave films out of training and validation; the test set is kept, since nothing is selected on it."""
    keys = {movie_key(title) for title in titles}
    splits = [split for split in captions if split != "test"]
    left = {split: tuple(of) for split, of in captions.items()}
    for split in splits:
        left[split] = tuple(c for c in captions[split] if movie_key(movie_of(c.clip_id)) not in keys)
    counts = {split: count_movies(captions[split], titles) for split in splits}
    return left, Exclusion(tuple(titles), counts)
