"""Read features of a file, or a member of a tar, per clip: .npy, .npz and what torch saved."""

import io
import math
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_items import MAX_BYTES, Arrays, FileContent, ImportItem
from obygaze_features.file_kinds import HEAD_BYTES, NPY, NPZ, file_kind, why_not
from obygaze_features.store.store_files import NOT_ARRAYS, refuse_larger
from obygaze_features.torch_files import load_torch
from obygaze_features.untrusted import open_regular

WHY_NO_OBJECTS = (
    "it holds Python objects, which are never unpickled; np.asarray(ids, str) makes texts of ids, "
    "np.savez(FILE, **arrays) saves a dict of arrays"
)
WHY_NO_MORE_BYTES = (
    "more bytes behind its array, such as of another numpy.save: save each array in a file of its own"
)
MAX_SUFFIXES = 5
"""Suffixes of other files that a message names at most."""
ARRAY_SUFFIXES = (".npy", ".npz")
TORCH_SUFFIXES = (".pth", ".pt", ".safetensors")


def files_below(
    folder: Path, suffixes: tuple[str, ...], read: Callable[[Path], Arrays]
) -> dict[str, ImportItem]:
    """Find the files with some suffixes in a folder and below it.

    Parameters
    ----------
    folder
        The folder.
    suffixes
        The suffixes, in small letters.
    read
        Reads the features of a file.

    Returns
    -------
    dict
        Path relative to the folder, without suffix and with "/" -> its features.

    Raises
    ------
    StoreError
        There is no folder, or no such file in it.
    """
    _refuse_other_than_folder_of_files(folder, suffixes)
    items: dict[str, ImportItem] = {}
    for path in walk(folder, suffixes):
        key = path.relative_to(folder).with_suffix("").as_posix()
        _add_item(items, key, ImportItem(str(path), partial(read, path)))
    if not items:
        hint = _other_suffixes_in(folder)
        raise StoreError(f"{folder}: no file {' or '.join(suffixes)} in it or below{hint}")
    return items


def _refuse_other_than_folder_of_files(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise a StoreError if a path is no folder that may have a file of another tool for each clip.

    It may be a single file, such as a matrix of all clips. Or it is a folder of a kind that is known, such as
    a store. The message says which option or command reads it.

    Parameters
    ----------
    path
        The path.
    suffixes
        Suffixes of the files that are expected in the folder; the message names the first one's format.
    """
    kind = file_kind(path)
    is_of_another_kind = kind.remedy != ""  # what to do with a file or folder of this kind
    if path.is_dir() and not is_of_another_kind:
        return
    problem = f"this is {kind.name}: {kind.remedy}" if is_of_another_kind else "is a file"
    format_name = suffixes[0].removeprefix(".")
    option_for_frames = _array_option(path)
    raise StoreError(
        f"{path}: {problem}; --from {format_name} reads a folder with a file per clip. "
        f"One matrix with a row per clip: --from table --ids FILE{option_for_frames}"
    )


def _other_suffixes_in(folder: Path) -> str:
    """Return a hint for a message: the suffixes of the files in a folder and below it; "" if it has none."""
    suffixes = sorted({path.suffix for path in folder.rglob("*") if path.suffix and path.is_file()})
    if not suffixes:
        return ""
    return f"; it has {', '.join(suffixes[:MAX_SUFFIXES])} (choose another --from)"


def _array_option(path: Path) -> str:
    """Return the option, for a message, with which a .npy file of all clips is read.

    It is " --array frames" if the array has three axes or more, [clip, T, D]; else "".
    """
    is_npy_file = path.suffix.lower() == ".npy" and path.is_file()
    if is_npy_file and map_npy(path).ndim >= 3:
        return " --array frames"
    return ""


def walk(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files with some suffixes in a folder and below it, sorted by path.

    Links to folders are followed, after all real folders, and no folder is searched twice. A link that leads
    nowhere counts as a file, so that its clip is not lost silently.
    """
    files = []
    folders = [folder]  # the last one is entered next
    entered = set[str]()  # real paths
    while folders:
        current = folders.pop()
        real_path = os.path.realpath(current)
        if real_path in entered:
            continue
        entered.add(real_path)
        for path in current.iterdir():
            if path.is_dir():
                if path.is_symlink():
                    folders.insert(0, path)
                else:
                    folders.append(path)
            elif path.suffix.lower() in suffixes:
                leads_nowhere = not path.exists()
                if path.is_file() or leads_nowhere:  # not a pipe, for example
                    files.append(path)
    return sorted(files)


def _add_item(items: dict[str, ImportItem], key: str, item: ImportItem) -> None:
    """Add a clip's features to `items` under its key; raise a StoreError if the key is there already."""
    if key in items:
        raise StoreError(f"{items[key].where} and {item.where}: both are of {key!r}; remove one")
    items[key] = item


def array_files(source: Path, choice: ArrayChoice) -> dict[str, ImportItem]:
    """Find the .npy and .npz files, one for each clip, in a folder, a tar, or a folder of tars.

    Parameters
    ----------
    source
        The folder or tar.
    choice
        Chooses which arrays of a file are read.

    Returns
    -------
    dict
        Path without suffix, relative to the folder or as the tar has it -> features.

    Raises
    ------
    StoreError
        There is no such file, or a clip has two.
    """
    is_tar = source.is_file() and file_kind(source).name == "a tar archive"
    tars: list[Path] = []
    if is_tar:
        tars = [source]
    elif source.is_dir() and not walk(source, ARRAY_SUFFIXES):
        tars = walk(source, (".tar",))
    if not tars:

        def read(path: Path) -> Arrays:
            """Read the features in a file of one clip."""
            return _read_file(path, str(path), choice)

        return files_below(source, ARRAY_SUFFIXES, read)
    items: dict[str, ImportItem] = {}
    for path in tars:
        for key, item in _tar_items(path, choice):
            _add_item(items, key, item)
    if not items:
        raise StoreError(f"{source}: no .npy or .npz file in it")
    return items


def _tar_items(path: Path, choice: ArrayChoice) -> Iterator[tuple[str, ImportItem]]:
    """Yield the .npy and .npz files in a tar: the path of each without suffix, and its features.

    When all are yielded, the suffixes of other files are noted in `choice.about`, which the import reports.

    Raises
    ------
    StoreError
        It is no tar, or one of these files is a link or has holes, so that it cannot be read in place.
    """
    try:
        with open_regular(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
            members = archive.getmembers()
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        raise StoreError(f"{path}: {why_not(path, 'a tar archive')}") from None
    suffixes_left_out = set()
    for member in members:
        name, _, suffix = member.name.removeprefix("./").rpartition(".")
        location = f"{path}, {member.name}"
        holds_arrays = f".{suffix.lower()}" in ARRAY_SUFFIXES
        if not holds_arrays:
            if not member.isdir():
                suffixes_left_out.add(f".{suffix}")
            continue
        can_be_read_in_place = member.isfile() and not member.issparse()
        if not can_be_read_in_place:
            raise StoreError(f"{location}: a link, or with holes: make the tar of whole files (cp -rL)")
        refuse_larger(member.size, location)
        part_of_tar = (member.offset_data, member.size)
        yield name, ImportItem(location, partial(_read_file, path, location, choice, part_of_tar))
    if suffixes_left_out:
        choice.about["left_out"] = (
            f"files of the tar that hold no arrays: {', '.join(sorted(suffixes_left_out))}"
        )


def _read_file(
    path: Path, location: str, choice: ArrayChoice, part_of_tar: tuple[int, int] | None = None
) -> Arrays:
    """Read the array of a .npy file, or the chosen arrays of a .npz: name -> array.

    The array of a .npy file has the name "". Other arrays of a .npz, such as pickled ones, are not read.

    `part_of_tar` is, for a file in a tar, the byte at which it begins, and its size.
    """
    with open_regular(path) as file:
        content: IO[bytes] = file
        if part_of_tar is not None:
            start, size = part_of_tar
            file.seek(start)
            content = io.BytesIO(file.read(size))
        if location.lower().endswith(".npy"):
            arrays = {"": _read_array(content, location)}
            return {name: arrays[name] for name in choice.choose(location, arrays)}
        with open_npz(content, location) as (headers, load):
            return {name: load(name) for name in choice.choose(location, headers)}


def map_npy(path: Path) -> NDArray[Any]:
    """Map the array of a .npy file into memory; nothing is unpickled.

    Raises
    ------
    StoreError
        If it is not such a file, holds Python objects, or has bytes behind the array.
    """
    with open_regular(path) as file, _explained_errors(str(path), file, NPY):
        header = _read_header(file)
        _refuse_objects(header, str(path))
        order: Literal["C", "F"] = "F" if header.is_fortran else "C"
        values = np.memmap(file, header.dtype, "r", file.tell(), header.shape, order)
        end_of_array = values.offset + values.nbytes
        end_of_file = file.seek(0, io.SEEK_END)
        if end_of_array < end_of_file:
            raise StoreError(f"{path}: {WHY_NO_MORE_BYTES}")
        return values


def _read_array(file: IO[bytes], location: str, maximum: int = MAX_BYTES) -> NDArray[Any]:
    """Read the array of a .npy file.

    Raises
    ------
    StoreError
        If it holds Python objects, has more than `maximum` bytes, or if more bytes follow.
    """
    with _explained_errors(location, file, NPY):
        header = _read_header(file)
        _refuse_objects(header, location)
        size = math.prod(header.shape) * header.dtype.itemsize  # negative in a damaged header
        refuse_larger(size, location, maximum)
        values = np.frombuffer(file.read(max(size, 0)), header.dtype)
        if file.read(1):
            raise StoreError(f"{location}: {WHY_NO_MORE_BYTES}")
        if header.is_fortran:  # stored column by column
            return values.reshape(header.shape[::-1]).T
        return values.reshape(header.shape)


class _NpyHeader(NamedTuple):
    """The header of a .npy file; `is_fortran` says whether its array is stored column by column."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]


def _read_header(file: IO[bytes]) -> _NpyHeader:
    """Read the header of a .npy file that is open at its beginning; the file is then at the first number."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return _NpyHeader(*read(file))


def _refuse_objects(header: _NpyHeader, location: str) -> None:
    """Raise a StoreError if a .npy file holds Python objects, which would have to be unpickled."""
    if header.dtype.hasobject:
        raise StoreError(f"{location}: {WHY_NO_OBJECTS}")


@contextmanager
def _explained_errors(location: str, file: IO[bytes], kind: str) -> Iterator[None]:
    """Replace an error of NumPy or zipfile in the block by one that says what is wrong with the file."""
    try:
        yield
    except StoreError:
        raise
    except NOT_ARRAYS as error:  # whatever NumPy, zipfile and zlib raise for other or damaged files
        file.seek(0)
        first_bytes = file.read(HEAD_BYTES)
        raise StoreError(f"{location}: {why_not(first_bytes, kind)}") from error


@contextmanager
def open_npz(
    file: IO[bytes], location: str, maximum: int = MAX_BYTES
) -> Iterator[tuple[dict[str, Any], Callable[[str], NDArray[Any]]]]:
    """Open a .npz file without loading its arrays.

    Parameters
    ----------
    file
        The file.
    location
        What messages call it.
    maximum
        Bytes of the largest array that is loaded.

    Yields
    ------
    dict
        Name -> description of the array, with `dtype`, `ndim` and `shape`; None for a member that is no .npy
        file.
    Callable
        Loads an array, given its name.

    Raises
    ------
    StoreError
        If it is no such file, or an array is there twice, is too large or would be unpickled.
    """
    with _explained_errors(location, file, NPZ):
        archive = zipfile.ZipFile(file)
        headers = _read_headers(archive, file.seek(0, io.SEEK_END), location)

    def load(name: str) -> NDArray[Any]:
        """Read the array of one member."""
        with _explained_errors(f"{location}, {name}", file, NPZ), archive.open(f"{name}.npy") as member:
            return _read_array(member, f"{location}, {name}", maximum)

    with archive:
        yield headers, load


def _read_headers(archive: zipfile.ZipFile, archive_bytes: int, location: str) -> dict[str, Any]:
    """Read the headers of the arrays in a .npz file: name -> `dtype`, `ndim` and `shape`.

    None stands for a member that is no .npy file.

    A member that claims more bytes than the whole file, `archive_bytes`, is refused, because zipfile
    allocates as much memory.
    """
    headers = dict[str, Any]()
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        refuse_larger(info.compress_size, f"{location}, {name}", archive_bytes)
        if name in headers:
            raise StoreError(f"{location}, {name}: is in it twice; remove one")
        if info.filename.endswith(".npy"):
            with archive.open(info) as member:
                header = _read_header(member)
            ndim = len(header.shape)
            headers[name] = SimpleNamespace(dtype=header.dtype, ndim=ndim, shape=header.shape)
        elif not info.is_dir():
            headers[name] = None
    return headers


@contextmanager
def npz_clips(path: Path, choice: ArrayChoice) -> Iterator[FileContent]:
    """Open a .npz file that has one array for each clip, named by the clip.

    Yields two dictionaries: clip -> its features, and texts on the file.

    Parameters
    ----------
    path
        The file.
    choice
        Says which array of a clip is read. Here a clip has one, without a name.
    """
    with open_regular(path) as file, open_npz(file, str(path)) as (headers, load):

        def read(clip: str) -> Arrays:
            """Read the only array of a clip, if the choice takes it.

            The array's name in this file is that of the clip. As the only array of a clip it needs no name,
            like that of a .npy file.
            """
            no_name = ""
            chosen_names = choice.choose(path, {no_name: headers[clip]})
            return {name: load(clip) for name in chosen_names}

        items: dict[str, ImportItem] = {}
        for clip, header in headers.items():
            is_array = header is not None  # other files in the .npz have no header
            if is_array:
                items[clip] = ImportItem(f"{path}, {clip}", partial(read, clip))
        yield items, choice.about


# --- what torch saved
# ---------------------------------------------------------------------------
def torch_files(source: Path, choice: ArrayChoice) -> dict[str, ImportItem]:
    """Find the .pth, .pt and .safetensors files of a folder, or the clips of a dict in one file.

    Parameters
    ----------
    source
        The folder or file.
    choice
        Chooses which tensors of a clip are read.

    Returns
    -------
    dict
        Path without suffix, relative to the folder, or key of the dict -> features.

    Raises
    ------
    StoreError
        There is no such file, or the one file holds no dict.
    """
    if source.is_dir():

        def read(path: Path) -> Arrays:
            """Read the features in a file of one clip."""
            content = _load_torch_file(path)
            return _convert_tensors(content, str(path), choice)

        return files_below(source, TORCH_SUFFIXES, read)
    clips = _load_torch_file(source)
    if not isinstance(clips, dict):
        raise StoreError(
            f"{source}: expected a dict with a tensor per clip, or a folder with a file per clip"
        )
    items: dict[str, ImportItem] = {}
    for name, value in clips.items():
        location = f"{source}, {name}"
        _add_item(items, str(name), ImportItem(location, partial(_convert_tensors, value, location, choice)))
    return items


def _load_torch_file(path: Path) -> Any:
    """Load a file that torch saved; only tensors and plain values are unpickled, never code.

    Raises
    ------
    StoreError
        It is no such file, or too large.
    """
    refuse_larger(path.stat().st_size, str(path))
    return load_torch(path, StoreError)


def _convert_tensors(content: Any, location: str, choice: ArrayChoice) -> Arrays:
    """Convert the chosen tensors of a clip to arrays.

    `content` is a dict of tensors, or one tensor, whose name is then "".
    """
    if isinstance(content, dict):
        tensors = {str(name): value for name, value in content.items()}
    else:
        tensors = {"": content}
    descriptions = {name: _describe_tensor(value) for name, value in tensors.items()}
    arrays = {}
    for name in choice.choose(location, descriptions):
        arrays[name] = _tensor_to_array(tensors[name], f"{location}, {name}" if name else location)
    return arrays


def _describe_tensor(value: Any) -> Any:
    """Return a description of a tensor, as `ArrayChoice` needs it; None for a value that is no tensor.

    It has `ndim`, and a `dtype` that tells only whether the numbers are real or whole. PyTorch need not be
    imported for it.
    """
    if not hasattr(value, "ndim"):
        return None
    is_real = hasattr(value, "is_floating_point") and value.is_floating_point()
    return SimpleNamespace(dtype=np.dtype("f4" if is_real else "i8"), ndim=value.ndim)


def _tensor_to_array(tensor: Any, location: str) -> NDArray[Any]:
    """Convert a dense tensor on the CPU to an array.

    Bfloat16, which NumPy lacks, becomes float32 without loss.

    Raises
    ------
    StoreError
        If it is no such tensor, holds neither real numbers nor integers, or is too large.
    """
    if not hasattr(tensor, "is_floating_point"):
        raise StoreError(f"{location}: holds a {type(tensor).__name__}; expected one tensor")
    kind = str(tensor.dtype).removeprefix("torch.")
    if str(tensor.layout) != "torch.strided":
        raise StoreError(f"{location}: a sparse tensor; expected a plain one (tensor.to_dense())")
    are_floats = kind in {"float64", "float32", "float16", "bfloat16"}
    are_integers = kind.startswith(("int", "uint8"))
    if not are_floats and not are_integers:
        raise StoreError(
            f"{location}: holds {kind}; save it as float32, of quantised values with their scales applied"
        )
    is_on_cpu = str(tensor.device) == "cpu"  # not on "meta", for example, where tensors have no values
    if tensor.is_nested or not is_on_cpu:
        raise StoreError(f"{location}: a tensor that is nested or has no values; save a plain one of the CPU")
    refuse_larger(tensor.numel() * tensor.element_size(), location)
    # PyTorch may only note that numbers are to be conjugated or negated; NumPy needs it done.
    plain = tensor.detach().resolve_conj().resolve_neg()
    if kind == "bfloat16":
        plain = plain.float()
    values: NDArray[Any] = plain.contiguous().numpy()
    return values
