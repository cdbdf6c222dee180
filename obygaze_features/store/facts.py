"""State what a store's card and its croissant.json say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from obygaze_features.store.format import TEXTS


@dataclass(frozen=True)
class Facts:
    """The content of a card.

    Attributes
    ----------
    about
        The store's attributes: licence, citation, corpus, parent.
    counts
        Status -> number of clips.
    groups
        (name, provenance, lines that describe its arrays) of every backbone.
    absent
        Backbone -> clips that it has no features of, and others have.
    """

    about: Mapping[str, Any]
    counts: Mapping[str, int]
    groups: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]]
    absent: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of clips."""
        return sum(self.counts.values())

    @property
    def rows(self) -> str:
        """Name of the rows: clips or texts."""
        texts = any(provenance["sampling"]["policy"] == TEXTS for _, provenance, _ in self.groups)
        return TEXTS if texts else "clips"
