"""Choose which columns of a table are features: those that are asked for, or one numbered series."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Final, Literal

from obygaze_features.errors import StoreError
from obygaze_features.text import first_few

ColumnKind = Literal["number", "list", "other"]

LEAVE_OUT: Final = "!"
"""Before a pattern of columns that are no features."""

SHOWN: Final = 8
"""Columns that a message names."""

_NUMBERED = re.compile(r"(.*\D|)(\d{1,9})", re.DOTALL)


def choose_columns(
    path: Path | str,
    names: Sequence[str],
    kind_of: Callable[[str], ColumnKind],
    patterns: Sequence[str] = (),
    never: Collection[str] = (),
) -> list[str]:
    """Return the names of the columns that are features; a label that holds numbers must not be one of them.

    With patterns, the columns that match one. Without, one column of lists or one numbered series (f0, f1,
    ...; 0, 1, ...; from 0 or 1 on, at least two, none missing) in the order of its numbers, if every other
    column of numbers is left out by name.

    Parameters
    ----------
    names
        The columns, in the table's order.
    kind_of
        What a column holds: numbers, lists of numbers, or anything else.
    patterns
        Shell patterns of columns; one that begins with `!` leaves columns out.
    never
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
    candidates = [name for name in names if name not in never]
    if twice := next((name for name, n in Counter(candidates).items() if n > 1), None):
        raise StoreError(f"{path}: two columns are called {twice!r}; give each a name of its own")
    chosen_patterns = [pattern for pattern in patterns if not pattern.startswith(LEAVE_OUT)]
    for pattern in patterns:
        if not _matching(candidates, [pattern.removeprefix(LEAVE_OUT)]):
            raise StoreError(
                f"{path}: --columns {pattern!r} matches no column that may be a feature; "
                f"found {first_few(candidates, SHOWN)}"
            )
    left_out = _matching(candidates, [pattern[1:] for pattern in patterns if pattern.startswith(LEAVE_OUT)])
    candidates = [name for name in candidates if name not in set(left_out)]
    if chosen_patterns:
        return _matching(candidates, chosen_patterns)
    series = [columns for columns in _series(candidates) if "number" in map(kind_of, columns)]
    within = {name for columns in series for name in columns}
    kinds = {name: kind_of(name) for name in candidates if name not in within}
    groups = [*series, *([name] for name, kind in kinds.items() if kind == "list")]
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    if not groups and not numbers:
        raise StoreError(f"{path}: no column of features beside the ids; found {first_few(names, SHOWN)}")
    if len(groups) == 1 and not numbers:
        return groups[0]
    shown = [group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups]
    # 'f*' would take 'fps' and 'fold', too.
    stems = [f"{escape(group[0].rstrip('0123456789'))}[0-9]*" for group in groups if len(group) > 1]
    named = stems[0] if stems else "NAME"
    raise StoreError(
        f"{path}: cannot tell features from labels among {first_few([*shown, *numbers], SHOWN)}: name the "
        f"features (--columns '{named}'), or leave out what is none (--columns '!NAME')"
    )


def _matching(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if _is_one_of(name, patterns)]


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _series(names: Sequence[str]) -> list[list[str]]:
    """Find series of columns that are called alike but for their numbers: from 0 or 1, none missing."""
    numbered: dict[str, dict[int, str]] = {}
    doubtful = set()
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            prefix = match[1]
            number = int(match[2])
            if number in numbered.setdefault(prefix, {}):  # f1 and f01
                doubtful.add(prefix)
            numbered[prefix][number] = name
    series = []
    for prefix, members in numbered.items():
        first = min(members)
        is_complete = first in {0, 1} and max(members) - first == len(members) - 1
        if len(members) > 1 and is_complete and prefix not in doubtful:
            series.append([members[number] for number in sorted(members)])
    return series
