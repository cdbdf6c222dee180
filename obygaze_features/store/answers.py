"""Tell which groups of a store hold the probabilities of a classifier's named classes."""

from typing import Any, Final

from obygaze_features.arguments import checked
from obygaze_features.store.group import Group
from obygaze_features.store.store import Store

CLASSIFIER: Final = "classifier"
"""What the provenance of such a group calls its head."""


@checked
def classes_of(group: Group) -> tuple[str, ...]:
    """Return the names of the classes whose probabilities are a group's `pooled`; none if it has others."""
    provenance = group.provenance
    architecture: Any = provenance.get("architecture")
    names = architecture.get("features") if isinstance(architecture, dict) else None
    if provenance.get("head") != CLASSIFIER or not isinstance(names, list) or "pooled" not in group.arrays:
        return ()
    is_whole = len(names) == group.clip_shape("pooled")[0] and all(isinstance(name, str) for name in names)
    return tuple(names) if is_whole else ()


@checked
def groups_of_classes(store: Store) -> tuple[str, ...]:
    """List the groups of a store that have probabilities of named classes."""
    return tuple(name for name in store.names if classes_of(store[name]))
