"""What the features are: the on-disk format, and how it is staged, sealed, read and verified.

The files beside this one are the format. The folders follow a store's life, and each knows only what comes
before it: `staging`, `reading`, then `sharing` or `exchange`.
"""

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import SPEC_VERSION, STATUSES
from obygaze_features.store.provenance import same_numerics, validate_provenance
from obygaze_features.store.reading.group import Group
from obygaze_features.store.reading.store import Store, open_store
from obygaze_features.store.reading.verify import verify
from obygaze_features.store.reading.verify_report import Problem, VerifyReport
from obygaze_features.store.staging.journal import JournalEntry
from obygaze_features.store.staging.seal import seal
from obygaze_features.store.staging.stage import Stage, read_stage, staging_path
from obygaze_features.store.staging.values import ArraySpec, ClipFeatures, ClipResult, GroupSpec, PlannedClip
from obygaze_features.store.staging.writer import StageWriter
from obygaze_features.store.table import StoredClip

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
