"""Read features of a file, or a member of a tar, per clip: .npy, .npz and what torch saved."""

import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from obygaze_features.door import open_regular
from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_items import MOST_BYTES, NOT_NPY, Arrays, ImportItem, refuse_giants
from obygaze_features.file_kinds import NPY, NPZ, what, why_not
from obygaze_features.torch_files import load_torch

OBJECTS = "it holds Python objects, which are never unpickled"
Read = Callable[[Path], Arrays | NDArray[Any]]


def files_below(folder: Path, suffixes: tuple[str, ...], read: Read) -> dict[str, ImportItem]:
    """Find every file with a suffix: path without it, relative, with '/' -> its features."""
    if not folder.is_dir():
        kind = what(folder)
        raise StoreError(
            f"{folder}: {f'this is {kind.name}: {kind.remedy}' if kind.remedy else 'is a file'}; "
            f"--from {suffixes[0][1:]} reads a folder with a file per clip. "
            "One matrix with a row per clip: --from table --ids FILE"
        )
    items: dict[str, ImportItem] = {}
    for path in _walk(folder, suffixes):
        key = path.relative_to(folder).with_suffix("").as_posix()
        _add(items, key, ImportItem(str(path), partial(_by_name, read, path)))
    if not items:
        others = sorted({path.suffix for path in folder.rglob("*") if path.suffix and path.is_file()})
        found = f"; it has {', '.join(others[:5])} (choose another --from)" if others else ""
        raise StoreError(f"{folder}: no file {' or '.join(suffixes)} in it or below{found}")
    return items


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix in suffixes and path.is_file():
                yield path


def _add(items: dict[str, ImportItem], key: str, item: ImportItem) -> None:
    if key in items:
        raise StoreError(f"{items[key].where} and {item.where}: both are of {key!r}; remove one")
    items[key] = item


def _by_name(read: Read, path: Path) -> Arrays:
    found = read(path)
    return found if isinstance(found, Mapping) else {"": found}


def array_files(source: Path, choice: ArrayChoice) -> dict[str, ImportItem]:
    """Find the .npy and .npz files of a folder, or of a tar or a folder of tars: a file per clip."""
    tars = [source] if source.is_file() and what(source).name == "a tar archive" else []
    if source.is_dir() and not any(_walk(source, (".npy", ".npz"))):
        tars = list(_walk(source, (".tar",)))
    if not tars:
        return files_below(source, (".npy", ".npz"), partial(_read_arrays, choice=choice))
    items: dict[str, ImportItem] = {}
    for path in tars:
        for key, item in _tar_items(path, choice):
            _add(items, key, item)
    if not items:
        raise StoreError(f"{source}: no .npy or .npz file in it")
    return items


def _tar_items(path: Path, choice: ArrayChoice) -> Iterator[tuple[str, ImportItem]]:
    others = set()
    try:
        with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                name, _, suffix = member.name.removeprefix("./").rpartition(".")
                if member.isfile() and not member.issparse() and suffix in {"npy", "npz"}:
                    where = f"{path}, {member.name}"
                    refuse_giants(member.size, where)
                    place = member.offset_data, member.size
                    yield name, ImportItem(where, partial(_read_member, path, place, where, choice))
                elif member.isfile():
                    others.add(f".{suffix}")
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        raise StoreError(f"{path}: {why_not(path, 'a tar archive')}") from None
    if others:
        choice.about["left_out"] = f"files of the tar that hold no arrays: {', '.join(sorted(others))}"


def _read_member(path: Path, place: tuple[int, int], where: str, choice: ArrayChoice) -> Arrays:
    with open_regular(path) as file:
        file.seek(place[0])
        data = file.read(place[1])
    if what(data).name == NPZ:
        return read_npz(io.BytesIO(data), where, choice)
    with _naming_npy(where, data):
        return {"": np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)}


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order and data type of a .npy file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def _read_arrays(path: Path, choice: ArrayChoice) -> Arrays | NDArray[Any]:
    if path.suffix == ".npy":
        return read_npy(path)
    with open_regular(path) as file:
        return read_npz(file, str(path), choice)


def read_npz(file: IO[bytes], where: str, choice: ArrayChoice) -> Arrays:
    """Read the chosen arrays of a .npz file of one clip; others, such as pickled ones, are not touched."""
    with open_npz(file, where, MOST_BYTES) as (headers, load):
        return {name: load(name) for name in choice(where, headers)}


@contextmanager
def open_npz(
    file: IO[bytes], where: str, most: int
) -> Iterator[tuple[dict[str, Any], Callable[[str], NDArray[Any]]]]:
    """Yield what the arrays of a .npz file are, by name, and a function that loads one of up to `most` bytes.

    Raises
    ------
    StoreError
        If it is no such file, or an array is too large or would be unpickled.
    """

    def load(name: str) -> NDArray[Any]:
        header = headers[name]
        if header.dtype.hasobject:
            raise StoreError(f"{where}, {name}: {OBJECTS}; of ids, np.asarray(ids, str) makes texts")
        size = int(np.prod([float(n) for n in header.shape])) * header.dtype.itemsize
        refuse_giants(size, f"{where}, {name}", most)
        return np.asarray(archive[name])

    try:
        whole = file.seek(0, io.SEEK_END)
        with np.lib.npyio.NpzFile(file, allow_pickle=False) as archive, zipfile.ZipFile(file) as members:
            headers = {}
            for name, member in zip(archive.files, members.infolist(), strict=True):
                refuse_giants(member.compress_size, f"{where}, {name}", whole)  # zipfile allocates that much
                with members.open(member) as opened:
                    shape, _, dtype = _header(opened)
                headers[name] = SimpleNamespace(dtype=dtype, ndim=len(shape), shape=shape)
            yield headers, load
    except StoreError:
        raise
    except (*NOT_NPY, OSError, OverflowError, zipfile.BadZipFile, NotImplementedError):
        file.seek(0)
        raise StoreError(f"{where}: {why_not(file.read(1 << 16), NPZ)}") from None


def map_npy(path: Path) -> NDArray[Any]:
    """Map a .npy file; nothing is unpickled.

    Raises
    ------
    StoreError
        If it is not such a file.
    """
    with _naming_npy(str(path), path):
        return np.lib.format.open_memmap(path, mode="r")


@contextmanager
def _naming_npy(where: str, found: Path | bytes) -> Iterator[None]:
    """Say why a .npy file cannot be read."""
    try:
        yield
    except NOT_NPY as error:
        reason = OBJECTS if "object" in str(error).lower() else why_not(found, NPY)
        raise StoreError(f"{where}: {reason}") from error


def read_npy(path: Path) -> NDArray[Any]:
    """Read a .npy file that is no larger than the features of a clip may be."""
    mapped = map_npy(path)
    refuse_giants(mapped.nbytes, str(path))
    return np.array(mapped)


# --- what torch saved
# ---------------------------------------------------------------------------
def torch_files(source: Path, choice: ArrayChoice) -> dict[str, ImportItem]:
    """Find the .pth and .pt files of a folder, or the clips of a dict in one file."""
    if source.is_dir():
        return files_below(source, (".pth", ".pt"), partial(read_pth, choice=choice))
    clips = _unpickled(source)
    if not isinstance(clips, dict):
        raise StoreError(
            f"{source}: expected a dict with a tensor per clip, or a folder with a file per clip"
        )
    return {
        str(name): ImportItem(f"{source}, {name}", partial(_plain, value, f"{source}, {name}", choice))
        for name, value in clips.items()
    }


def read_pth(path: Path, choice: ArrayChoice) -> Arrays:
    """Read the tensor, or the chosen ones of a dict, that torch saved; unpickles nothing else."""
    return _plain(_unpickled(path), str(path), choice)


def _unpickled(path: Path) -> Any:
    refuse_giants(path.stat().st_size, str(path))
    return load_torch(path, StoreError)


def _plain(found: Any, where: str, choice: ArrayChoice) -> Arrays:
    """Make arrays of dense tensors; bfloat16, which numpy lacks, becomes float32, without a loss."""
    if isinstance(found, dict):
        tensors = {str(name): value for name, value in found.items()}
        kinds = {name: _described(value) for name, value in tensors.items()}
        return {name: _array(tensors[name], f"{where}, {name}") for name in choice(where, kinds)}
    return {"": _array(found, where)}


def _described(value: Any) -> Any:
    real = getattr(value, "is_floating_point", bool)()
    return (
        SimpleNamespace(dtype=np.dtype("f4" if real else "i8"), ndim=value.ndim)
        if hasattr(value, "ndim")
        else None
    )


def _array(tensor: Any, where: str) -> NDArray[Any]:
    if not hasattr(tensor, "is_floating_point"):
        raise StoreError(f"{where}: holds a {type(tensor).__name__}; expected one tensor")
    kind = str(tensor.dtype).removeprefix("torch.")
    if str(tensor.layout) != "torch.strided":
        raise StoreError(f"{where}: a sparse tensor; expected a plain one (tensor.to_dense())")
    if kind not in {"float64", "float32", "float16", "bfloat16"} and not kind.startswith(("int", "uint8")):
        raise StoreError(
            f"{where}: holds {kind}; save it as float32, of quantised values with their scales applied"
        )
    if tensor.is_nested or str(tensor.device) != "cpu":
        raise StoreError(f"{where}: a tensor that is nested or has no values; save a plain one of the CPU")
    refuse_giants(tensor.numel() * tensor.element_size(), where)
    plain = tensor.detach().resolve_conj().resolve_neg()
    values: NDArray[Any] = (plain.float() if kind == "bfloat16" else plain).contiguous().numpy()
    return values
