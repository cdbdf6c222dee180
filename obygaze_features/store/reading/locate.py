"""Finding a sealed store, and saying what is wrong with what was found instead."""

import json
import re
from pathlib import Path
from shlex import quote
from typing import Any

from obygaze_features.store.errors import StoreError
from obygaze_features.store.layout import (
    ATTRIBUTE,
    BUILDING_SUFFIX,
    FEATURES,
    PLAN,
    PULLING_SUFFIX,
    SPEC_VERSION,
    STAGING_SUFFIX,
    ZARR_METADATA,
)
from obygaze_features.store.reading.damaged import guarded, whole
from obygaze_features.store.reading.objects import Folder, Objects
from obygaze_features.store.reading.packed import ZIP_SUFFIX, open_zip
from obygaze_features.store.reading.remote import as_url, open_url

VERSIONED = re.compile(r"-(\d+)\.(\d+)\.(\d+)$")
"""How the name of a sealed store's folder ends."""


def locate(place: Path | str) -> Objects:
    """Find a sealed store by its path or URL."""
    if url := as_url(place):
        return open_url(url)
    if "://" in str(place):
        raise StoreError(
            f"{place}: expected a path, or an address that begins with https, http, s3 or hf and ://"
        )
    path = resolve(Path(place))
    return open_zip(path) if path.is_file() else Folder(path)


def resolve(path: Path) -> Path:
    """Find the folder of a sealed store by its name, with or without version; else say what is there."""
    if (path / PLAN).is_file():
        raise StoreError(f"{path}: a staging folder, not a store yet; {_what_is_left(path)}")
    if path.name.endswith(PULLING_SUFFIX):
        raise StoreError(f"{path}: a store that is being pulled, or whose pull was stopped; pull again")
    if path.name.endswith(BUILDING_SUFFIX):
        raise StoreError(f"{path}: a store that is being sealed, or whose sealing was killed; seal again")
    if (path / FEATURES).is_dir() or (path.suffix == ZIP_SUFFIX and path.is_file()):
        return path
    if versions := sealed_versions(path):
        return versions[-1]
    if path.with_name(path.name + STAGING_SUFFIX).is_dir():
        return resolve(path.with_name(path.name + STAGING_SUFFIX))
    if not path.exists():
        raise StoreError(f"{path}: no such store, nor a version of it ({path.name}-1.0.0)")
    raise StoreError(f"{path}: {_what_instead(path)}")


def _what_instead(path: Path) -> str:
    """Say why a path that exists is no store, and where one is."""
    if path.is_file():
        return "a file, not a store; expected the folder of one, or a zip that 'obygaze store pack' made"
    for folder in path.absolute().parents:
        if (folder / FEATURES).is_dir():
            return f"a part of the store {folder}; name that folder"
    inside = sorted(found.name for found in path.iterdir() if (found / FEATURES).is_dir())
    if inside:
        return f"not a store, but stores are in it; name one: {', '.join(inside)}"
    return f"not a store (no {FEATURES} in it)"


def _what_is_left(staging: Path) -> str:
    """Say what makes a store of a stage."""
    from obygaze_features.store.staging.stage import read_stage  # noqa: PLC0415 - reading stores needs no stage

    stage = read_stage(staging)
    name = staging.with_name(staging.name.removesuffix(STAGING_SUFFIX))
    if to_do := len(stage.missing()):
        return (
            f"{to_do} of {len(stage.clips)} clips are still to do: "
            f"extract into {name} again, which goes on where it was"
        )
    return f"seal it: obygaze store seal {quote(str(name))} --licence SPDX"


def sealed_versions(path: Path) -> list[Path]:
    """List the sealed stores `NAME-X.Y.Z` of a name, lowest version first."""
    found = []
    if path.parent.is_dir():
        for folder in path.parent.iterdir():
            match = VERSIONED.search(folder.name)
            if match and folder.name == path.name + match[0] and (folder / FEATURES).is_dir():
                found.append((tuple(map(int, match.groups())), folder))
    return [folder for _, folder in sorted(found)]


def check_version(store: Objects | Path) -> dict[str, Any]:
    """Read a store's attributes, before any other file is trusted; refuse a newer format."""
    objects = Folder(store) if isinstance(store, Path) else store
    file = f"{objects.where}/{FEATURES}/{ZARR_METADATA}"
    data = whole(objects, f"{FEATURES}/{ZARR_METADATA}")
    attributes: dict[str, Any] = guarded(
        file, lambda: dict(json.loads(data)["attributes"][ATTRIBUTE]), store=objects.where
    )
    version = attributes.get("spec_version")
    match = re.fullmatch(r"(\d{1,6})\.(\d{1,6})", version) if isinstance(version, str) else None
    if match is None:
        raise StoreError(f"{file}: spec_version is {version!r}, which is no format version")
    if int(match[1]) > int(SPEC_VERSION.partition(".")[0]):
        raise StoreError(
            f"{objects.where}: format {version} is newer than this obygaze reads ({SPEC_VERSION}): "
            "update obygaze"
        )
    return attributes
