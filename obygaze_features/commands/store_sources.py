"""Read the inputs of `obygaze store import`: clip names from a manifest, torch tensors, declarations."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from obygaze_features.exchange.import_sources import Piece
    from obygaze_features.manifest import Manifest

_FIELD = re.compile(r"\{(\w*)\}")


def names_of(manifest: "Manifest", pattern: str) -> dict[str, str]:
    """Build the clips' names from a pattern such as {movie}/{video}; returns clip id -> name.

    A clip without a value for the pattern (no video is known) has no name and so no features.

    Raises
    ------
    click.UsageError
        If the manifest has no such column, or no clip has a name.
    """
    fields = _FIELD.findall(pattern)
    names = {}
    for clip in manifest:
        known = {"clip_id": clip.clip_id, "movie": clip.movie, "video": _stem(clip.video), **clip.extras}
        for field in fields:
            if field not in known:
                raise click.BadParameter(
                    f"{{{field}}}: expected one of {', '.join(known)}", param_hint="--pattern"
                )
        if all(known[field] for field in fields):
            names[clip.clip_id] = _filled(pattern, known)
    if len(manifest) and not names:
        raise click.UsageError(f"no clip of the manifest has a name by {pattern}; choose another --pattern")
    return names


def _filled(pattern: str, known: "Mapping[str, str]") -> str:
    return _FIELD.sub(lambda field: known[field[1]], pattern)


def _stem(video: str) -> str:
    return PurePosixPath(video.replace("\\", "/")).stem


def read_declared(path: Path | None) -> dict[str, object]:
    """Read the declared provenance: one JSON object."""
    return {} if path is None else parse_declared(path.read_text(encoding="utf-8"), str(path))


def parse_declared(text: str, where: str) -> dict[str, object]:
    """Parse a declaration; `where` names it in messages."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{where}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise click.UsageError(f"{where}: expected one JSON object of provenance fields")
    return found


@contextmanager
def open_source(
    source: Path, kind: str, ids: str | None
) -> Iterator[tuple[Mapping[str, "Piece"], dict[str, str]]]:
    """Open the source; yield name -> features and the provenance the file states."""
    from obygaze_features.exchange.import_hdf5 import hdf5_pieces
    from obygaze_features.exchange.import_sources import files_below, read_npy
    from obygaze_features.exchange.import_tables import table_pieces

    if ids is not None and kind != "table":
        raise click.UsageError(f"--ids is for --from table; the files of --from {kind} are named after clips")
    if kind == "hdf5":
        with hdf5_pieces(source) as found:
            yield found
    elif kind == "table":
        with table_pieces(source, ids) as table:
            yield table
    else:
        yield files_below(source, f".{kind}", read_npy if kind == "npy" else read_pth), {}


def read_pth(path: Path) -> "NDArray[Any]":
    """Read one tensor saved by torch; unpickles nothing else.

    bfloat16, which numpy lacks, becomes float32, which holds every one of its values.
    """
    import torch

    from obygaze_features.errors import StoreError
    from obygaze_features.exchange.import_sources import refuse_giants

    refuse_giants(path.stat().st_size, str(path))
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch lets any of them out of damaged bytes
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise StoreError(f"{path}: not a tensor that can be read without unpickling ({reason})") from error
    if not isinstance(found, torch.Tensor):
        raise StoreError(f"{path}: holds a {type(found).__name__}; expected one tensor")
    if found.layout != torch.strided:
        raise StoreError(f"{path}: a sparse tensor; expected a plain one")
    refuse_giants(found.numel() * found.element_size(), str(path))
    plain = found.detach()
    values: NDArray[Any] = (plain.float() if plain.dtype == torch.bfloat16 else plain).contiguous().numpy()
    return values
