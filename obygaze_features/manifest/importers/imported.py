"""Define the result of every importer and shared helpers."""

import ast
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from obygaze_features.arguments import checked
from obygaze_features.errors import ManifestError
from obygaze_features.manifest.clip import Clip
from obygaze_features.manifest.codebook import Codebook
from obygaze_features.manifest.manifest import Manifest
from obygaze_features.manifest.spans.account import Account
from obygaze_features.manifest.text_tables import counted
from obygaze_features.text import normalised

T = TypeVar("T")

_NO_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Imported:
    """A manifest, and one line for everything that was left out, missing or read in a special way.

    Attributes
    ----------
    manifest
        The clips that were imported.
    notices
        The lines, for people.
    texts
        (clip id, text) of the clips with a text, such as subtitles.
    remainder_s
        Movie -> seconds at the end of a film that fill no window, or come after its last scene; only of whole
        films that were cut.
    accounts
        Of each file of spans, what was seen, used and left out.
    """

    manifest: Manifest
    notices: tuple[str, ...]
    texts: tuple[tuple[str, str], ...] = ()
    remainder_s: Mapping[str, float] = field(default_factory=dict)
    accounts: tuple[Account, ...] = ()


@checked
def videos_found(clips: Sequence[Clip], root: Path, folder: Path) -> str:
    """Say how many of the videos that clips name exist, and name the first that does not.

    Parameters
    ----------
    clips
        The clips, whose videos' paths are relative to `root`.
    root
        Folder of the manifest.
    folder
        Folder in which the videos were looked for; the sentence names it.
    """
    named = sorted({clip.video for clip in clips if clip.video})
    missing = [video for video in named if not (root / video).exists()]
    n_found = len(named) - len(missing)
    verb = "is" if n_found == 1 else "are"
    sentence = f"{n_found:,} of {counted(len(named), 'named video')} {verb} in {folder}"
    if not folder.is_dir():
        return f"{sentence}: there is no such folder"
    if not missing:
        return sentence
    return f"{sentence}; the first that is not is {Path(missing[0]).name}"


@checked
def text_list(cell: str) -> tuple[str, ...]:
    """Read a Python list of texts, as data frames write it; no code in the cell is run.

    Raises
    ------
    ManifestError
        If the cell is anything else.
    """
    try:
        value = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ManifestError(f"{cell[:60]!r} is not a list of texts such as ['Look', 'Body']")
    return tuple(value)


@checked
def concept_list(cell: str, codebook: Codebook) -> tuple[str, ...]:
    """Read a Python list of concepts as the codebook spells them; [''] is an empty list."""
    names = text_list(cell)
    if names == ("",):
        return ()
    return tuple(codebook.concept_spelled(name) for name in names)


@checked
def whole_number(cell: str) -> int:
    """Read an integer that is not negative.

    Raises
    ------
    ManifestError
        If the cell is anything else.
    """
    if not (cell.isascii() and cell.isdigit()):
        raise ManifestError(f"{cell!r} is not a whole number")
    return int(cell)


@checked
def file_in(source: Path, names: Sequence[str]) -> Path:
    """Find the annotation file: `source` itself, or the one of these names in the folder `source`.

    Raises
    ------
    ManifestError
        If the folder holds none of them.
    """
    if not source.is_dir():
        return source
    for name in names:
        if (source / name).is_file():
            return source / name
    raise ManifestError(f"{source}: no {' or '.join(names)} in this folder")


@lru_cache(4096)  # many clips are of few films
def slug(text: str) -> str:
    """Write a name as a part of a clip's id: letters, digits, and hyphens between them.

    Examples
    --------
    >>> slug("Léa D.")
    'Lea-D'
    """
    decomposed = normalised("NFKD", text)  # each accent becomes a sign of its own
    without_accents = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    letters_and_hyphens = _NO_LETTERS.sub("-", without_accents).strip("-")
    return letters_and_hyphens or "x"  # an id needs a letter


def consumed(items: list[T]) -> Iterator[T]:
    """Yield the items of a list in order, and remove each from the list, so that its memory can be freed."""
    items.reverse()
    while items:
        yield items.pop()


MAX_DIGITS = 18
"""Digits of a number in an id that may be equal to one of ours."""


class ClipIds:
    """Makes ids of clips that differ from each other: a stem and a number.

    Examples
    --------
    >>> ids = ClipIds()
    >>> ids.new("film", 1), ids.new("film", 1)
    ('film-0001', 'film-0002')
    """

    def __init__(self) -> None:
        """Start with no number taken."""
        # For each stem: number that is taken -> a higher one, at which the search for a free number goes on.
        # All numbers between the two are taken too. Once 1, 2 and 3 are taken, {1: 4, 2: 3, 3: 4} sends a
        # search that begins at 1 on to 4.
        self._next_to_try: dict[str, dict[int, int]] = {}

    def take(self, clip_id: str) -> None:
        """Take an id that a file gives a clip itself, so that no id is made that is equal to it.

        Only an id of the form that `new` makes, such as `film-0007`, can be equal to one.
        """
        stem, _, digits = clip_id.rpartition("-")
        is_a_number = digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
        number = int(digits) if is_a_number else 0
        has_form_of_new_ids = clip_id == f"{stem}-{number:04d}"
        if has_form_of_new_ids:
            next_to_try = self._next_to_try.setdefault(stem, {})
            next_to_try.setdefault(number, number + 1)

    def new(self, stem: str, number: int) -> str:
        """Return the first id of `stem-0007`, `stem-0008`, ... that is not taken yet.

        For example, after `new("a", 1)` was called twice, `a-0001` and `a-0002` are taken, and the search
        from 1 goes on at 3.

        `number` is tried first.
        """
        next_to_try = self._next_to_try.setdefault(stem, {})
        passed_numbers = []
        free_number = number
        while free_number in next_to_try:  # it is taken
            passed_numbers.append(free_number)
            free_number = next_to_try[free_number]
        next_to_try[free_number] = free_number + 1  # it is taken now
        # The next search from a passed number goes on behind the new one. Without this shortcut, many files
        # of one film, which all try 1, 2, 3, ..., would pass the same taken numbers again and again.
        for passed_number in passed_numbers:
            next_to_try[passed_number] = free_number + 1
        return f"{stem}-{free_number:04d}"
