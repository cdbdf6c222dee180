"""Choose which arrays of a file are a clip's features, by the rule for the columns of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from obygaze_features.errors import StoreError
from obygaze_features.exchange.columns import ColumnKind, choose_columns
from obygaze_features.store.format import FEATURE_ARRAYS, TIME_ARRAYS

KNOWN = (*FEATURE_ARRAYS, *TIME_ARRAYS)


@dataclass
class ArrayChoice:
    """The arrays that are asked for in every file of one clip, and those left out so far.

    Attributes
    ----------
    asked
        Shell patterns of names; `!PATTERN` leaves out.
    about
        Texts about the source; `left_out` there names the arrays that were left out.
    axes
        Axes before those of one clip's features: 1 where arrays have a row per clip.
    times
        Name of the array that holds the times of frames; it is chosen beside the features.
    """

    asked: tuple[str, ...] = ()
    about: dict[str, str] = field(default_factory=dict)
    axes: int = 0
    times: str | None = None
    _first: list[str] | None = None
    _left_out: set[str] = field(default_factory=set)

    def __call__(self, where: Path | str, arrays: Mapping[str, Any]) -> list[str]:
        """Return the names of the features: asked for, the format's own, or the only array of real numbers.

        Parameters
        ----------
        where
            The file or group, for messages.
        arrays
            Name -> what has a `dtype` and an `ndim`; anything without is no array.

        Raises
        ------
        StoreError
            Naming the arrays among which features cannot be told.
        """
        beside = [name for name in arrays if self._says_where_frames_are(name, arrays[name])]
        if beside and len(beside) < len(arrays):
            features = {name: array for name, array in arrays.items() if name not in beside}
            return [*self(where, features), *beside]
        names = list(arrays)
        if names == [""] and not self.asked:  # one array, which has no name
            return names
        usual = [name for name in names if name in KNOWN and getattr(arrays[name], "ndim", 0) > self.axes]
        has_usual = not set(usual).isdisjoint(FEATURE_ARRAYS)
        if not self.asked and has_usual:
            chosen = usual
        elif self.asked or len(names) != 1:
            chosen = choose_columns(where, names, lambda name: kind_of(arrays, name, self.axes), self.asked)
        else:
            chosen = names
        columns = self.axes and all(getattr(arrays[name], "ndim", 0) == self.axes for name in chosen)
        if len(chosen) > 1 and not set(chosen) <= set(KNOWN) and not columns:
            raise StoreError(
                f"{where}: a clip has one array of features; name one of {', '.join(chosen)} (--key)"
            )
        if not (self.asked or has_usual or self.axes or self._first in (None, chosen)):
            raise StoreError(
                f"{where}: its features would be {', '.join(chosen)}, and other clips' are "
                f"{', '.join(self._first or ())}: name them (--columns)"
            )
        self._first = chosen
        if left_out := set(names).difference(chosen) - self._left_out:
            self._left_out |= left_out
            self.about["left_out"] = f"arrays that are no features: {', '.join(sorted(self._left_out))}"
        return chosen

    def _says_where_frames_are(self, name: str, array: Any) -> bool:
        """Return whether an array holds the times of frames, or their indices."""
        return name == self.times or (name in TIME_ARRAYS and getattr(array, "ndim", 0) > self.axes)


def kind_of(arrays: Mapping[str, Any], name: str, axes: int) -> ColumnKind:
    """Tell an array that may be features from others; whole numbers may where no array has real ones."""
    kinds = {key: getattr(getattr(array, "dtype", None), "kind", "-") for key, array in arrays.items()}
    real = "f" if "f" in kinds.values() else "iu"
    vectors = [key for key, kind in kinds.items() if kind in real and arrays[key].ndim > axes]
    if name in vectors:
        return "list"
    return (
        "number" if axes and not vectors and kinds[name] in "fiu" and arrays[name].ndim == axes else "other"
    )
