"""Feature stores: the on-disk format, and how it is staged, sealed, read, grown and verified.

The files follow a store's life and know only what comes before them (contracts in pyproject.toml): `format`
and its parts, `stage` to `sealing`, `store` with its groups, then growth and verification. Imports, exports,
copies and merges stand on this package: `obygaze_features.exchange`. Names are imported when they are first
used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from obygaze_features.errors import StoreError
    from obygaze_features.store.format import SPEC_VERSION, STATUSES, ArrayKind
    from obygaze_features.store.group import Group
    from obygaze_features.store.journal import JournalEntry
    from obygaze_features.store.provenance import same_numerics, validate_provenance
    from obygaze_features.store.records import (
        ArraySpec,
        ClipFeatures,
        ClipResult,
        GroupSpec,
        PlannedClip,
        StoredClip,
    )
    from obygaze_features.store.sealing import seal
    from obygaze_features.store.stage import Stage, read_stage, staging_path
    from obygaze_features.store.store import Store, open_store
    from obygaze_features.store.verification import VerifyReport, verify
    from obygaze_features.store.verify_content import Problem
    from obygaze_features.store.writer import StageWriter

__all__ = [
    "SPEC_VERSION",
    "STATUSES",
    "ArrayKind",
    "ArraySpec",
    "ClipFeatures",
    "ClipResult",
    "Group",
    "GroupSpec",
    "JournalEntry",
    "PlannedClip",
    "Problem",
    "Stage",
    "StageWriter",
    "Store",
    "StoreError",
    "StoredClip",
    "VerifyReport",
    "open_store",
    "read_stage",
    "same_numerics",
    "seal",
    "staging_path",
    "validate_provenance",
    "verify",
]

_HOMES = {
    "SPEC_VERSION": "store.format",
    "STATUSES": "store.format",
    "ArrayKind": "store.format",
    "ArraySpec": "store.records",
    "ClipFeatures": "store.records",
    "ClipResult": "store.records",
    "Group": "store.group",
    "GroupSpec": "store.records",
    "JournalEntry": "store.journal",
    "PlannedClip": "store.records",
    "Problem": "store.verify_content",
    "Stage": "store.stage",
    "StageWriter": "store.writer",
    "Store": "store.store",
    "StoreError": "errors",
    "StoredClip": "store.records",
    "VerifyReport": "store.verification",
    "open_store": "store.store",
    "read_stage": "store.stage",
    "same_numerics": "store.provenance",
    "seal": "store.sealing",
    "staging_path": "store.stage",
    "validate_provenance": "store.provenance",
    "verify": "store.verification",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"obygaze_features.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
