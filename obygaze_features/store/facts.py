"""Collect what a store's card and its croissant.json say of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from obygaze_features.store.format import TEXTS
from obygaze_features.text import counted, visible


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
        Of every backbone: its name, its provenance, and a line on each of its arrays.
    absent
        Backbone -> number of clips that only other backbones have features of.
    """

    about: Mapping[str, Any]
    counts: Mapping[str, int]
    groups: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]]
    absent: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of rows: clips or texts."""
        return sum(self.counts.values())

    @property
    def rows(self) -> str:
        """What the rows of the store are, in the plural: "clips" or "texts"."""
        for _name, provenance, _arrays in self.groups:
            if provenance["sampling"]["policy"] == TEXTS:
                return "texts"
        return "clips"

    @property
    def counted_rows(self) -> str:
        """Number of rows in words, such as "96 clips" or "1 text"."""
        return counted(self.total, self.rows.removesuffix("s"))


def limits(facts: Facts) -> list[str]:
    """Return sentences on the limits of a store's features.

    They say how many clips have none, in which groups further clips have none, and which groups are of random
    weights or were imported, so that their origin was not observed.

    Parameters
    ----------
    facts
        What is known of the store; `facts.absent` counts the further clips by group.
    """
    counts = facts.counts
    n_without = counts["failed"] + counts["missing"]
    sentences = [
        f"{n_without} of {facts.counted_rows} have no features, {counts['partial']} were read in part."
    ]
    for name, n_absent in facts.absent.items():
        if n_absent:
            sentences.append(f"{visible(name, line_breaks=False)} has none of {n_absent} others.")

    for name, provenance, _ in facts.groups:
        shown = visible(name, line_breaks=False)
        if provenance.get("untrained"):
            sentences.append(f"{shown} is of random weights: its features mean nothing.")
        if provenance.get("imported"):
            sentences.append(f"{shown} is imported: its origin is as declared, not observed.")
    return sentences
