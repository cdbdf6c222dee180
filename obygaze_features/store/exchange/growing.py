"""A store that grows: the next version names its parent, and may only do what its number allows."""

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import DONE
from obygaze_features.store.reading.store import Store
from obygaze_features.store.staging.journal import is_done
from obygaze_features.store.staging.stage import Stage


def check_growth(parent: Store, stage: Stage, version: str) -> str:
    """Check that sealing a stage as this version continues a store; return the store's fingerprint.

    Raises
    ------
    StoreError
        If the version is not higher than the parent's, a clip of the parent is gone, or a row of it would
        change although the major version does not.
    """
    numbers, before = _numbers(version), _numbers(parent.version)
    if numbers <= before:
        raise StoreError(
            f"{parent.where}: version {version} does not follow {parent.version}; choose a higher one"
        )
    if gone := [clip.clip_id for clip in parent.clips if clip.clip_id not in stage.rows]:
        raise StoreError(f"{stage.path}: clip {gone[0]} of {parent.where} is not planned: it is no parent")
    if numbers[0] == before[0]:
        _check_rows(parent, stage)
    return parent.fingerprint


def _check_rows(parent: Store, stage: Stage) -> None:
    found = stage.status()
    for clip in parent.clips:
        if stage.clips[stage.rows[clip.clip_id]].text != clip.text:
            raise StoreError(
                f"{stage.path}: the text of {clip.clip_id} is not what it is in {parent.where}; only another "
                "major version may change it"
            )
        if clip.status not in DONE:
            continue
        entry = found.get(clip.clip_id)
        if entry is None or not is_done(entry):
            raise StoreError(
                f"{stage.path}: clip {clip.clip_id} has features in {parent.where} and none here; only "
                "another major version may take them away"
            )
        for name, digest in clip.digests.items():
            if entry.digests.get(name) != digest:
                raise StoreError(
                    f"{stage.path}: clip {clip.clip_id}, array {name} is not what it is in {parent.where}; "
                    "only another major version may change a row"
                )


def _numbers(version: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, version.split(".")))
    except ValueError:
        raise StoreError(f"store version {version!r}: expected three numbers such as 1.0.0") from None
