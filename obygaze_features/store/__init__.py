"""What the features are: the on-disk format, and how it is staged, sealed, read and verified.

The files beside this one are the format. The folders follow a store's life, and each knows only what comes
before it: `staging`, `reading`, then `sharing` or `exchange`.
"""

from obygaze_features.errors import StoreError
from obygaze_features.store.clips_csv import StoredClip
from obygaze_features.store.format import SPEC_VERSION, STATUSES
from obygaze_features.store.group import Group
from obygaze_features.store.journal import JournalEntry
from obygaze_features.store.provenance import same_numerics, validate_provenance
from obygaze_features.store.records import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.seal import seal
from obygaze_features.store.stage import Stage, read_stage, staging_path
from obygaze_features.store.store import Store, open_store
from obygaze_features.store.verify import VerifyReport, verify
from obygaze_features.store.verify_content import Problem
from obygaze_features.store.writer import StageWriter

__all__ = [
    "SPEC_VERSION",
    "STATUSES",
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
