"""Choose which columns of a table are features: those that are asked for, or one numbered series."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Final, Literal, NamedTuple

from obygaze_features.errors import StoreError
from obygaze_features.text import first_few

ColumnKind = Literal["number", "list", "other"]

LEAVE_OUT: Final = "!"
"""First character of a pattern of columns that are no features."""

SHOWN: Final = 8
"""Columns that a message names at most."""

_NUMBERED = re.compile(r"(.*\D|)(\d{1,9})", re.DOTALL)
"""A name that ends in a number; the groups are what is before it, and the number."""


def choose_columns(
    path: Path | str,
    names: Sequence[str],
    kind_of: Callable[[str], ColumnKind],
    patterns: Sequence[str] = (),
    no_features: Collection[str] = (),
) -> list[str]:
    """Return the names of the columns that hold features.

    With patterns, these are the columns that match one. Without, they are one column of lists or one numbered
    series (f0, f1, ...; 0, 1, ...; from 0 or 1 on, at least two, none missing) in the order of its numbers.
    The table may then have no other column of numbers, because that could be a label; such columns have to be
    left out by name.

    Parameters
    ----------
    path
        The table, for messages.
    names
        The columns, in the table's order.
    kind_of
        Returns what a column holds: numbers, lists of numbers, or anything else.
    patterns
        Shell patterns of columns; one that begins with `!` leaves columns out.
    no_features
        Columns that are no features whatever they hold: ids, labels, what manifests have.

    Raises
    ------
    StoreError
        Naming the columns of numbers that are neither asked for nor left out, patterns that match nothing,
        and names that two columns have.

    Examples
    --------
    >>> kinds = {"f0": "number", "f1": "number", "label": "number", "title": "other"}
    >>> choose_columns(Path("a.csv"), [*kinds], kinds.get, ["!label"])
    ['f0', 'f1']
    >>> choose_columns(Path("a.csv"), [*kinds], kinds.get, ["f[0-9]*", "label"])
    ['f0', 'f1', 'label']
    """
    possible = [name for name in names if name not in no_features]
    _refuse_equal_names(path, possible)
    _refuse_patterns_without_match(path, possible, patterns)

    wanted_patterns = [pattern for pattern in patterns if not pattern.startswith(LEAVE_OUT)]
    left_out = set(matching(possible, patterns_to_leave_out(patterns)))
    candidates = [name for name in possible if name not in left_out]
    if wanted_patterns:
        return matching(candidates, wanted_patterns)

    # Without patterns, the columns must leave no doubt: one column of lists or one series, and no other
    # column of numbers.
    possible_features = _find_possible_features(candidates, kind_of)
    lists_and_series = possible_features.feature_sets
    other_numbers = possible_features.other_numbers
    if not lists_and_series and not other_numbers:
        raise StoreError(f"{path}: no column of features beside the ids; found {first_few(names, SHOWN)}")
    is_clear = len(lists_and_series) == 1 and not other_numbers
    if not is_clear:
        raise _ambiguous_features(path, lists_and_series, other_numbers)
    return lists_and_series[0]


def patterns_to_leave_out(patterns: Sequence[str]) -> list[str]:
    """Return the patterns that leave columns out, without the `!` with which they begin.

    Examples
    --------
    >>> patterns_to_leave_out(["f[0-9]*", "!label"])
    ['label']
    """
    return [pattern.removeprefix(LEAVE_OUT) for pattern in patterns if pattern.startswith(LEAVE_OUT)]


class _PossibleFeatures(NamedTuple):
    """The columns of a table that may be its features.

    Attributes
    ----------
    feature_sets
        Each numbered series of columns, then each column of lists by itself.
    other_numbers
        All other columns of numbers, which may be features or labels.
    """

    feature_sets: list[list[str]]
    other_numbers: list[str]


def _refuse_equal_names(path: Path | str, names: Sequence[str]) -> None:
    """Raise a StoreError if two columns have the same name."""
    for name, n_columns in Counter(names).items():
        if n_columns > 1:
            raise StoreError(f"{path}: two columns are called {name!r}; give each a name of its own")


def _refuse_patterns_without_match(path: Path | str, names: Sequence[str], patterns: Sequence[str]) -> None:
    """Raise a StoreError if a pattern of the user matches no column, as a mistyped one does.

    Parameters
    ----------
    path
        The table, for messages.
    names
        The columns that may be features.
    patterns
        Shell patterns; one that begins with `!` leaves columns out.
    """
    for pattern in patterns:
        if not matching(names, [pattern.removeprefix(LEAVE_OUT)]):
            raise StoreError(
                f"{path}: --columns {pattern!r} matches no column that may be a feature; "
                f"found {first_few(names, SHOWN)}"
            )


def _find_possible_features(
    candidates: Sequence[str], kind_of: Callable[[str], ColumnKind]
) -> _PossibleFeatures:
    """Find the numbered series, the columns of lists and the other columns of numbers of a table.

    A series counts if at least one of its columns holds numbers; one of texts, such as name1 and name2, does
    not.
    """
    feature_sets = []
    in_series = set[str]()
    for columns in _numbered_series(candidates):
        if any(kind_of(name) == "number" for name in columns):
            feature_sets.append(list(columns))
            in_series.update(columns)
    other_numbers = []
    for name in candidates:
        if name in in_series:
            continue
        kind = kind_of(name)
        if kind == "list":
            feature_sets.append([name])
        elif kind == "number":
            other_numbers.append(name)
    return _PossibleFeatures(feature_sets, other_numbers)


def _ambiguous_features(
    path: Path | str, feature_sets: Sequence[Sequence[str]], numbers: Sequence[str]
) -> StoreError:
    """Return the error for columns among which features cannot be told from labels.

    `feature_sets` are series of columns, and columns of lists; `numbers` are other columns of numbers.
    """
    shown = []
    series_patterns = []
    for columns in feature_sets:
        if len(columns) == 1:
            shown.append(columns[0])
        else:
            shown.append(f"{columns[0]} to {columns[-1]}")
            prefix = columns[0].rstrip("0123456789")
            series_patterns.append(f"{escape(prefix)}[0-9]*")  # 'f*' would take 'fps' and 'fold', too
    pattern = series_patterns[0] if series_patterns else "NAME"
    return StoreError(
        f"{path}: cannot tell features from labels among {first_few([*shown, *numbers], SHOWN)}: name the "
        f"features (--columns '{pattern}'), or leave out what is none (--columns '!NAME')"
    )


def matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that match at least one of the shell patterns."""
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _numbered_series(names: Sequence[str]) -> list[list[str]]:
    """Find series of columns whose names differ in their numbers only: from 0 or 1 on, none missing.

    Examples are f0, f1, f2. A series has at least two columns, and is returned in the order of its numbers.
    """
    numbered: dict[str, dict[int, str]] = {}  # prefix -> number -> name
    doubtful_prefixes = set()
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            continue
        prefix = match[1]
        number = int(match[2])
        name_of_number = numbered.setdefault(prefix, {})
        if number in name_of_number:  # f1 and f01
            doubtful_prefixes.add(prefix)
        name_of_number[number] = name

    series = []
    for prefix, name_of_number in numbered.items():
        first = min(name_of_number)
        last = max(name_of_number)
        is_complete = first in {0, 1} and last - first == len(name_of_number) - 1
        if len(name_of_number) > 1 and is_complete and prefix not in doubtful_prefixes:
            series.append([name_of_number[number] for number in sorted(name_of_number)])
    return series
