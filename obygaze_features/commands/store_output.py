"""Share summaries between the `obygaze store` commands."""

from collections import Counter
from pathlib import Path

import obygaze_features as of
from obygaze_features import store as stores
from obygaze_features.options import Answer


def fingerprint(path: Path) -> str:
    """Read the fingerprint of the store at a path."""
    return of.open_store(path).fingerprint


def sealed_result(path: Path, **more: object) -> Answer:
    """Return what a newly made store holds, and what else is known of it."""
    from obygaze_features.store.records import absent_counts

    store = of.open_store(path)
    statuses = Counter(clip.status for clip in store.clips)
    counts = [f"{statuses[status]:,} {status}" for status in stores.STATUSES if statuses[status]]
    counts += [f"{n_absent:,} absent in {name}" for name, n_absent in absent_counts(store.clips).items()]
    document = {
        "store": str(path),
        "clips": statuses,
        "groups": store.names,
        "fingerprint": store.fingerprint,
        **more,
    }
    clips = f"{len(store.clips)} clips of {', '.join(store.names)} ({', '.join(counts)})"
    return Answer(document, f"{path}: {clips}, fingerprint {store.fingerprint}")
