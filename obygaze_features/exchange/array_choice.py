"""Choose which arrays of a file are a clip's features, by the rule for the columns of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import ColumnKind, choose_columns
from obygaze_features.store.format import FEATURE_ARRAYS, TIME_ARRAYS

FORMAT_NAMES = (*FEATURE_ARRAYS, *TIME_ARRAYS)
"""Names of arrays that the format itself uses, such as `pooled` and `time_s`."""


@dataclass
class ArrayChoice:
    """The rule by which the features in the files of one source are chosen; it is called with each file.

    It keeps the names that it chose in the last file, and those of all arrays that were left out.

    Attributes
    ----------
    patterns
        Shell patterns of the wanted names; `!PATTERN` leaves out.
    about
        Texts about the source; `left_out` there names the arrays that were left out.
    axes
        Axes before those of one clip's features: 1 where arrays have a row per clip.
    times
        Name of the array that holds the times of frames; it is chosen beside the features.
    """

    patterns: tuple[str, ...] = ()
    about: dict[str, str] = field(default_factory=dict)
    axes: int = 0
    times: str | None = None
    _last_chosen: list[str] | None = None
    _left_out: set[str] = field(default_factory=set)

    def __call__(self, where: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Return the names of the arrays of a file that are features, followed by those that are times.

        Features are the arrays that match the patterns. Without patterns, they are the arrays with names of
        the format (`pooled`, `frames`, `tokens`), or else the only array of real numbers.

        Parameters
        ----------
        where
            The file or group, for messages.
        arrays
            Name -> array, or a description of it with `dtype` and `ndim`. Objects without these, such as
            groups of HDF5, are never features.

        Raises
        ------
        StoreError
            If it is not clear which arrays are features; the message names them.
        """
        times = []
        others = {}
        for name, array in arrays.items():
            if self._is_of_times(name, array):
                times.append(name)
            else:
                others[name] = array
        if not others:  # all are times: then these are what the file has
            return self._choose(where, arrays)
        return [*self._choose(where, others), *times]

    def _choose(self, where: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Choose the features among the arrays of a file, and note which arrays are left out."""
        names = list(arrays)
        if names == [""] and not self.patterns:  # the only array of a .npy file, which has no name
            return names
        format_names = [name for name in names if name in FORMAT_NAMES and _n_axes(arrays[name]) > self.axes]
        has_format_features = not set(format_names).isdisjoint(FEATURE_ARRAYS)
        if self.patterns:
            chosen = self._choose_as_columns(where, arrays)
        elif has_format_features:
            chosen = format_names
        elif len(names) == 1:
            chosen = names
        else:
            chosen = self._choose_as_columns(where, arrays)
        self._refuse_several(where, arrays, chosen)
        is_guessed = not self.patterns and not has_format_features
        if is_guessed and not self.axes:
            self._refuse_other_guess(where, chosen)
        self._last_chosen = chosen
        self._note_left_out(set(names).difference(chosen))
        return chosen

    def _choose_as_columns(self, where: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Choose the features by the patterns, or, without patterns, by the rule for columns of a table."""
        return choose_columns(
            where, list(arrays), lambda name: column_kind(arrays, name, self.axes), self.patterns
        )

    def _refuse_several(self, where: Path | str, arrays: Mapping[str, Any], chosen: list[str]) -> None:
        """Refuse several arrays of features, unless all have names of the format, or all are columns."""
        have_format_names = set(chosen) <= set(FORMAT_NAMES)
        are_columns = self.axes > 0 and all(_n_axes(arrays[name]) == self.axes for name in chosen)
        if len(chosen) > 1 and not have_format_names and not are_columns:
            raise StoreError(
                f"{where}: a clip has one array of features; name one of {', '.join(chosen)} (--key)"
            )

    def _refuse_other_guess(self, where: Path | str, chosen: list[str]) -> None:
        """Refuse names that were guessed for one clip's file and differ from those of the file before."""
        if self._last_chosen not in (None, chosen):
            raise StoreError(
                f"{where}: its features would be {', '.join(chosen)}, and other clips' are "
                f"{', '.join(self._last_chosen or ())}: name them (--columns)"
            )

    def _note_left_out(self, names: set[str]) -> None:
        """Add names to those of the arrays left out so far, and list all of these in `about["left_out"]`."""
        if not names <= self._left_out:
            self._left_out |= names
            self.about["left_out"] = f"arrays that are no features: {', '.join(sorted(self._left_out))}"

    def _is_of_times(self, name: str, array: Any) -> bool:
        """Return whether an array holds the times of frames, or their indices."""
        if name == self.times:
            return True
        return name in TIME_ARRAYS and _n_axes(array) > self.axes


def _n_axes(array: Any) -> int:
    """Return the number of axes of an array; 0 for an object that is no array."""
    return getattr(array, "ndim", 0)


def column_kind(arrays: Mapping[str, Any], name: str, axes: int) -> ColumnKind:
    """Return what an array holds, as `choose_columns` asks for each column of a table.

    "list" means a vector for each row; "number" one number for each row, in a file without vectors; "other"
    that the array holds no features. Arrays of whole numbers are "other" if any array has real numbers.

    Parameters
    ----------
    arrays
        All arrays of the file.
    name
        The array.
    axes
        Number of axes before those of one clip's features: 1 if an array has a row for each clip.
    """
    dtype_kinds = {}
    for key, array in arrays.items():
        dtype = getattr(array, "dtype", None)
        dtype_kinds[key] = getattr(dtype, "kind", "-")
    feature_kinds = "f" if "f" in dtype_kinds.values() else "iu"
    vectors = [key for key, kind in dtype_kinds.items() if kind in feature_kinds and arrays[key].ndim > axes]
    if name in vectors:
        return "list"
    may_be_column = axes > 0 and not vectors
    if may_be_column and dtype_kinds[name] in "fiu" and arrays[name].ndim == axes:
        return "number"
    return "other"
