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

REAL = "f"
WHOLE = frozenset({"i", "u"})
"""NumPy's letters for kinds of numbers: real ones, and whole ones with and without a sign."""


@dataclass
class ArrayChoice:
    """The rule by which the features in the files of one source are chosen; `choose` is called for each file.

    It keeps the names that it chose in the last file, and those of all arrays that were left out.

    Attributes
    ----------
    patterns
        Shell patterns of the wanted names; `!PATTERN` leaves out.
    about
        Texts about the source; `left_out` there names the arrays that were left out.
    n_leading_axes
        Number of axes before those of one clip's features: 0 in a file of one clip, 1 where arrays have a row
        for each clip.
    times
        Name of the array that holds the times of frames; it is chosen beside the features.
    """

    patterns: tuple[str, ...] = ()
    about: dict[str, str] = field(default_factory=dict)
    n_leading_axes: int = 0
    times: str | None = None
    _last_chosen: list[str] | None = None
    _left_out: set[str] = field(default_factory=set)

    def choose(self, location: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Return the names of the arrays of a file that are features, followed by those that are times.

        The names of all other arrays are added to `about["left_out"]`.

        Features are the arrays that match the patterns. Without patterns, they are the arrays with names of
        the format (`pooled`, `frames`, `tokens`), or else the only array of real numbers. If the file has
        only arrays of times, features are chosen among these.

        Parameters
        ----------
        location
            The file or group, for messages.
        arrays
            Name -> array, or a description of it with `dtype` and `ndim`. Objects without these, such as
            groups of HDF5, are never features.

        Raises
        ------
        StoreError
            If it is not clear which arrays are features; the message names them.
        """
        times = [name for name, array in arrays.items() if self._is_of_times(name, array)]
        others = {name: array for name, array in arrays.items() if name not in times}
        if not others:
            return self._choose_features(location, arrays)
        return [*self._choose_features(location, others), *times]

    def _choose_features(self, location: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Choose the features among the arrays of a file, and note which arrays are left out.

        The first of these rules that applies decides: the patterns, names of the format, the only array of
        the file, the rule for columns of a table. The last two are guesses, which must be the same for the
        files of all clips. Chosen and left-out names are kept in this object.

        `arrays` is name -> array or its description, without arrays of times.
        """
        is_array_without_name = list(arrays) == [""]  # that of a .npy file
        if is_array_without_name and not self.patterns:
            return [""]
        format_names = self._names_of_format(arrays)
        is_guess = not self.patterns and not format_names
        if format_names and not self.patterns:
            chosen = format_names
        elif is_guess and len(arrays) == 1:
            chosen = list(arrays)
        else:  # by the patterns; without any, by the rule for columns of a table
            chosen = self._choose_as_columns(location, arrays)

        self._refuse_several(location, arrays, chosen)
        has_one_file_per_clip = self.n_leading_axes == 0
        if is_guess and has_one_file_per_clip:
            self._refuse_other_guess(location, chosen)

        self._last_chosen = chosen
        self._note_left_out(arrays.keys() - set(chosen))
        return chosen

    def _names_of_format(self, arrays: Mapping[str, Any]) -> list[str]:
        """Return the arrays whose names are those of the store format, such as `pooled` and `time_s`.

        Without an array of features among them the list is empty: times alone say nothing of features.
        """
        names = []
        for name, array in arrays.items():
            has_axes_of_features = _n_axes(array) > self.n_leading_axes
            if name in FORMAT_NAMES and has_axes_of_features:
                names.append(name)
        has_features = any(name in FEATURE_ARRAYS for name in names)
        return names if has_features else []

    def _choose_as_columns(self, location: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Choose the features by the patterns, or, without patterns, by the rule for columns of a table.

        By this rule, features are one column of vectors, or one numbered series of columns.
        """

        def kind_of(name: str) -> ColumnKind:
            """Return what an array of the file holds, in the words for columns of a table."""
            return kind_of_array(arrays, name, self.n_leading_axes)

        return choose_columns(location, list(arrays), kind_of, self.patterns)

    def _refuse_several(self, location: Path | str, arrays: Mapping[str, Any], chosen: list[str]) -> None:
        """Raise a StoreError if several arrays were chosen as features of a clip, which has one.

        Several are allowed if all have names of the store format, such as `frames` and `pooled`; or if each
        has one number for each clip ([N]), as columns of a table have, which make up one vector.
        """
        have_names_of_format = set(chosen) <= set(FORMAT_NAMES)
        if len(chosen) == 1 or have_names_of_format:
            return
        arrays_have_row_per_clip = self.n_leading_axes > 0
        # Behind the axis of clips nothing is left: no vector, but a single number.
        have_number_per_clip = all(_n_axes(arrays[name]) == self.n_leading_axes for name in chosen)
        if arrays_have_row_per_clip and have_number_per_clip:
            return
        raise StoreError(
            f"{location}: a clip has one array of features; name one of {', '.join(chosen)} (--key)"
        )

    def _refuse_other_guess(self, location: Path | str, chosen: list[str]) -> None:
        """Raise a StoreError if a guess for one clip's file differs from the guess for the file before.

        The clips would have features of different kinds.
        """
        if self._last_chosen is None or self._last_chosen == chosen:
            return
        raise StoreError(
            f"{location}: its features would be {', '.join(chosen)}, and other clips' are "
            f"{', '.join(self._last_chosen)}: name them (--columns)"
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
        return name in TIME_ARRAYS and _n_axes(array) > self.n_leading_axes


def _n_axes(array: Any) -> int:
    """Return the number of axes of an array; 0 for an object that is no array."""
    return getattr(array, "ndim", 0)


def kind_of_array(arrays: Mapping[str, Any], name: str, n_leading_axes: int) -> ColumnKind:
    """Return what an array holds, in the words that `choose_columns` has for the columns of a table.

    - "list": a vector, or an array of more axes, for each clip. Whole numbers may be labels, so they count
      only in a file without any real numbers.
    - "number": one number for each clip. Such arrays count only in a file that has no vectors, in which they
      are the columns of one matrix, and whose arrays have a row for each clip.
    - "other": no features.

    Parameters
    ----------
    arrays
        All arrays of the file.
    name
        The array.
    n_leading_axes
        Number of axes before those of one clip's features: 1 if an array has a row for each clip, [N].
    """
    # NumPy's letter for the kind of numbers of each array
    dtype_kinds = {key: _dtype_kind(array) for key, array in arrays.items()}
    has_real_numbers = REAL in dtype_kinds.values()
    kinds_of_features = {REAL} if has_real_numbers else WHOLE
    names_of_vectors = []
    for key, dtype_kind in dtype_kinds.items():
        may_be_features = dtype_kind in kinds_of_features
        if may_be_features and arrays[key].ndim > n_leading_axes:  # a vector or more for each clip
            names_of_vectors.append(key)
    if name in names_of_vectors:
        return "list"

    single_numbers_count = n_leading_axes > 0 and not names_of_vectors
    holds_numbers = dtype_kinds[name] in {REAL, *WHOLE}
    has_number_per_clip = holds_numbers and arrays[name].ndim == n_leading_axes
    return "number" if single_numbers_count and has_number_per_clip else "other"


def _dtype_kind(array: Any) -> str:
    """Return NumPy's letter for the kind of numbers in an array: "f" (`REAL`), "i" or "u" (`WHOLE`), ...

    "-" for what is no array, such as a group of HDF5: it has no data type, or one without such a letter.

    Examples
    --------
    >>> import numpy as np
    >>> _dtype_kind(np.zeros(3, np.float32))
    'f'
    >>> _dtype_kind("no array")
    '-'
    """
    dtype = getattr(array, "dtype", None)
    letter = getattr(dtype, "kind", "-")  # None, where there is no data type, has none
    return str(letter)
