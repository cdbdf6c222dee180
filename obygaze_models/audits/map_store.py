"""Keeping saliency maps in a Zarr group."""

import json
import os
import shutil
from pathlib import Path

import zarr

from obygaze_models.audits.errors import AuditError
from obygaze_models.audits.regions import SIDE
from obygaze_models.audits.saliency import Maps


def check_maps_free(path: Path, *, force: bool) -> None:
    """Refuse to replace maps unless forced, and whatever is not maps always.

    Raises
    ------
    AuditError
        Naming the folder.
    """
    if not path.exists():
        return
    if not _holds_maps(path):
        raise AuditError(f"{path} holds something else than saliency maps: choose another --out")
    if not force:
        raise AuditError(f"{path} exists already: give --force to replace it, or another --out")


def _holds_maps(path: Path) -> bool:
    try:
        found = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
        return set(found["attributes"]) == {"pairs", "groups"}
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write_maps(maps: Maps, path: Path) -> None:
    """Write maps to a new Zarr group (format 3), all of it or nothing; one that is there is replaced.

    Arrays: `raw` [pair, y, x], `mean_raw` and `mean_stretched` [group, y, x], float32. Attributes: `pairs`
    and `groups`, in the order of the rows.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        group = zarr.open_group(str(partial), mode="w", zarr_format=3)
        group.update_attributes({"pairs": [dict(pair) for pair in maps.pairs], "groups": list(maps.groups)})
        for name, first, values in (
            ("raw", "pair", maps.raw),
            ("mean_raw", "group", maps.mean_raw),
            ("mean_stretched", "group", maps.mean_stretched),
        ):
            array = group.create_array(
                name,
                shape=values.shape,
                dtype="float32",
                chunks=(1, SIDE, SIDE),
                dimension_names=(first, "y", "x"),
            )
            array[...] = values
        if path.exists():
            shutil.rmtree(path)
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
