"""Tell which headings of a table stand for columns of ours: by their names, and as a person says it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.names import name_hint, plain
from obygaze_features.manifest.text_tables import OUR_COLUMNS, TIMES, heading_name

FILM_COLUMNS: Final = ("movie", "video")
LABEL_COLUMNS: Final = ("level", "concepts")


@dataclass(frozen=True)
class Headings:
    """Headings of tables that a person names.

    Parameters
    ----------
    columns
        Column of ours -> the headings that stand for it. Several stand for `level` or `concepts` alone: each
        is a column of marks, or of labels, and what all say together counts.
    wide
        Headings of columns that each hold the labels of one annotator, who is called as the heading.

    Raises
    ------
    ManifestError
        A column is none of ours, several headings stand for another than `level` and `concepts`, or a heading
        is named twice.
    """

    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    wide: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, headings in self.columns.items():
            if name not in OUR_COLUMNS:
                hint = name_hint(name, OUR_COLUMNS) or f": expected one of {', '.join(OUR_COLUMNS)}"
                raise ManifestError(f"column {name!r} is none of a manifest{hint}")
            if len(headings) > 1 and name not in LABEL_COLUMNS:
                several = ", ".join(map(repr, headings))
                raise ManifestError(f"column {name!r}: one heading was expected, not {several}")
        seen = set[str]()
        for heading in self.named():
            if plain(heading) in seen:
                raise ManifestError(f"heading {heading!r} is named twice")
            seen.add(plain(heading))

    def named(self) -> list[str]:
        """List all headings that the person names."""
        named: list[str] = []
        for headings in self.columns.values():
            named += headings
        return [*named, *self.wide]

    def are_in(self, cells: Sequence[str]) -> bool:
        """Return whether a heading that the person names is among some cells."""
        present = {plain(cell) for cell in cells}
        return any(plain(heading) in present for heading in self.named())

    def is_header(self, cells: Sequence[str]) -> bool:
        """Return whether cells are the header of a table of ours: of times, or of films and labels."""
        names = {heading_name(cell) for cell in cells}
        has_times = set(map(plain, TIMES)) <= names
        has_labels = not names.isdisjoint(FILM_COLUMNS) and not names.isdisjoint(LABEL_COLUMNS)
        return has_times or has_labels or self.are_in(cells)
