"""Tell which groups of a store hold the probabilities of a classifier's named classes."""

from typing import Any, Final

from obygaze_features.arguments import checked
from obygaze_features.store.group import Group
from obygaze_features.store.store import Store

CLASSIFIER: Final = "classifier"
"""Value of the field `head` in the provenance of a group with probabilities of classes."""


@checked
def classes_of(group: Group) -> tuple[str, ...]:
    """Return the names of the classes whose probabilities a group's pooled features are, or ()."""
    provenance = group.provenance
    architecture: Any = provenance.get("architecture")
    names = architecture.get("features") if isinstance(architecture, dict) else None
    if provenance.get("head") != CLASSIFIER or not isinstance(names, list) or "pooled" not in group.arrays:
        return ()
    has_name_for_each = len(names) == group.clip_shape("pooled")[0]
    are_texts = all(isinstance(name, str) for name in names)
    return tuple(names) if has_name_for_each and are_texts else ()


@checked
def groups_of_classes(store: Store) -> tuple[str, ...]:
    """List the groups of a store that have probabilities of named classes."""
    return tuple(name for name in store.names if classes_of(store[name]))
