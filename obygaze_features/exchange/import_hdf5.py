"""Read features stored as HDF5, a group per clip or columns of a table; links are not followed."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import h5py
import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import StoreError
from obygaze_features.exchange.array_choice import ArrayChoice
from obygaze_features.exchange.import_files import files_below
from obygaze_features.exchange.import_items import (
    DAMAGED,
    MAX_BYTES,
    FileContent,
    ImportItem,
    read_in_worker,
)
from obygaze_features.file_kinds import AGAIN, HDF5, why_not
from obygaze_features.store.records import WITHOUT_PICTURES
from obygaze_features.store.store_files import refuse_larger

MAX_CHARACTERS = 1 << 27
"""Most characters in a column of texts."""
MAX_BYTES_AT_ONCE = 1 << 24
"""Most bytes of texts that are read at once: each of them may be as long as the file."""
MAX_TEXTS_AT_ONCE = 1 << 16
"""Most texts that are read at once."""
ID_BYTES = 64
"""Bytes of memory that an id takes at least, as a Python text."""


def hdf5_items(
    path: Path, patterns: Sequence[str] = (), clips: Collection[str] = (), times: str | None = None
) -> AbstractContextManager[FileContent]:
    """Open an HDF5 file with a group or dataset for each clip, or a folder of HDF5 files, one for each clip.

    Yields path -> features, and texts on the file. The attributes `clip` and `status` of a group, which
    `store export` writes, name its clip and status. HDF5 runs in a subprocess, which damaged files may crash.

    Parameters
    ----------
    path
        The file or folder.
    patterns
        Patterns of the dataset that is a clip's features, where its group or file has several.
    clips
        Ids of clips. If a dataset of a group has one as its name, as FILM/CLIP, each dataset of the group is
        a clip. Otherwise the group is a clip, as CLIP/pooled.
    times
        Name of the dataset of times beside the features; None for `time_s`.

    Raises
    ------
    StoreError
        If it is no such file, or HDF5 crashes. Links, and datasets in other files, are never followed.
    """
    return read_in_worker("HDF5", groups_of_clips, path, tuple(patterns), frozenset(clips), times)


@contextmanager
def groups_of_clips(
    path: Path, patterns: tuple[str, ...], clips: frozenset[str], times: str | None = None
) -> Iterator[FileContent]:
    """Open HDF5 with a group or dataset for each clip in this process, which damaged files may crash.

    `hdf5_items` runs it in a subprocess for that reason; the parameters are explained there.

    Yields
    ------
    path -> features, and texts about the file: where its features are from, and as `left_out` the arrays that
    are no features. The latter is added while features are read.
    """
    if path.is_dir():
        texts_on_files: dict[str, str] = {}  # `choice` adds `left_out` when a file is read
        choice = ArrayChoice(patterns, texts_on_files, times=times)
        read_clip = partial(_read_file, choice=choice)
        yield files_below(path, (".h5", ".hdf5", ".mat"), read_clip), texts_on_files
        return

    with open_hdf5(path) as file:
        with explain_hdf5_damage(str(path)):
            if is_anndata(file):
                raise StoreError(f"{path}: is AnnData; --from table reads it")
            metadata = {name: text_of(file.attrs, name) for name in ("provenance", "backbone")}
            choice = ArrayChoice(patterns, metadata, times=times)
            items = _items_of_clips(file, path, clips, choice)
        if not items:
            raise StoreError(
                f"{path}: expected a group or dataset for each clip (CLIP/pooled); found none. "
                "One matrix with a row per clip: --from table"
            )
        yield items, metadata


def _items_of_clips(
    file: h5py.File, path: Path, clips: frozenset[str], choice: ArrayChoice
) -> dict[str, ImportItem]:
    """Return clip -> its features, which are read when they are needed, for each clip in a file.

    A clip is called by the attribute `clip` of its group or dataset, or else by its name in the file.

    `clips` are ids of clips, which tell some layouts of files apart; see `_clips_in`.
    """
    items: dict[str, ImportItem] = {}
    for node in _clips_in(file, str(path), clips, name_of_address={_address(file): "/"}):
        clip = text_of(node.attrs, "clip") or node.name.strip("/")
        noun = "group" if isinstance(node, h5py.Group) else "dataset"
        location = f"{path}, {noun} {node.name}"
        if clip in items:
            raise StoreError(f"{location}: clip {clip} is in the file twice")
        items[clip] = ImportItem(
            location,
            partial(_read_group, node, location, choice),
            status=text_of(node.attrs, "status") or "ok",
            reason=text_of(node.attrs, "reason"),
            without_pictures=text_of(node.attrs, WITHOUT_PICTURES),
        )
    return items


def _address(group: h5py.Group) -> int:
    """Return the address of a group in its file, which is the same by whatever name it is reached."""
    return int(h5py.h5o.get_info(group.id).addr)


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an untrusted HDF5 file for reading, and close it when the `with` block ends.

    Raises
    ------
    StoreError
        If it is no HDF5 file.
    """
    with explain_hdf5_damage(str(path)):
        file = h5py.File(path, "r")
    with file:  # outside of the block above, which would change errors of the caller too
        yield file


@contextmanager
def explain_hdf5_damage(location: str) -> Iterator[None]:
    """Convert the errors that h5py raises for damaged files, within a `with` block, to a StoreError.

    h5py raises errors of many kinds for bytes that make no sense. Errors of the system, such as a missing
    file, are not converted: they have an `errno`, and those of h5py have none.

    Parameters
    ----------
    location
        What messages call the file.
    """
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        reason = why_not(Path(location), HDF5) if Path(location).exists() else DAMAGED
        raise StoreError(f"{location}: {reason}") from error
    except UnicodeError:
        raise StoreError(f"{location}: a text in it is not UTF-8: save it as such") from None
    except (RuntimeError, LookupError, OverflowError, ValueError, TypeError) as error:
        raise StoreError(f"{location}: damaged HDF5: {AGAIN}") from error


def _clips_in(
    node: h5py.Group, location: str, clips: frozenset[str], name_of_address: dict[int, str]
) -> Iterator[h5py.Group | h5py.Dataset]:
    """Yield the groups and datasets of a file that hold the features of one clip each.

    These layouts are told apart:

    - CLIP: a dataset of `node` is a clip.
    - CLIP/pooled: a group with datasets is a clip.
    - FILM/CLIP: if a dataset of a group has the name of a clip, each dataset of the group is a clip.
    - Groups without datasets are searched in the same way.

    Parameters
    ----------
    node
        A group, or the file.
    location
        What messages call the file.
    clips
        Ids of clips.
    name_of_address
        Address in the file of each group visited so far -> the name it was visited by; new ones are added. A
        group that is visited again is refused: hard links give a group many names, and a few levels of such
        groups have too many paths to visit.
    """
    for name in node:
        child_name = f"{node.name.rstrip('/')}/{name}"
        child = plain_node(node, name)
        if child is None:
            raise StoreError(f"{location}: {child_name} is a link; only plain groups are read")
        if isinstance(child, h5py.Dataset):
            yield child
            continue
        if not isinstance(child, h5py.Group):  # a named type, which holds nothing
            continue

        address = _address(child)
        if address in name_of_address:
            raise StoreError(
                f"{location}: {child_name} is the same group as {name_of_address[address]}; "
                "expected one place for every group of clips"
            )
        name_of_address[address] = child_name
        dataset_names = {key for key in child if isinstance(plain_node(child, key), h5py.Dataset)}
        holds_clips = not dataset_names.isdisjoint(clips)
        is_clip = len(dataset_names) > 0 and not holds_clips
        if is_clip:
            yield child
        else:
            yield from _clips_in(child, location, clips, name_of_address)


def plain_node(group: h5py.Group, name: str | bytes) -> object:
    """Return the group or dataset that an HDF5 group holds under a name; None if there is none, or a link.

    h5py's own `in` and `get` follow links, so they open whatever file an external link names.

    Raises
    ------
    StoreError
        If the name is bytes: h5py could not read it as UTF-8.
    """
    if isinstance(name, bytes):
        raise StoreError(f"{group.file.filename}: the name {name!r:.200} is not UTF-8")
    # h5py reads a name with "/" as a path, and "" and "." as the group itself.
    is_path = "/" in name or name in ("", ".")
    key = name.encode("utf-8", "surrogateescape")  # the bytes that h5py decoded to the name
    links = group.id.links
    if is_path or not links.exists(key):
        return None
    is_hard_link = links.get_info(key).type == h5py.h5l.TYPE_HARD
    return group[name] if is_hard_link else None


def is_anndata(file: h5py.File) -> bool:
    """Return whether a file is AnnData: its group `obs` describes the rows of X and of obsm."""
    has_obs = isinstance(plain_node(file, "obs"), h5py.Group)
    has_matrices = "X" in file or "obsm" in file
    return has_obs and has_matrices


def is_plain(node: object) -> TypeGuard[h5py.Dataset]:
    """Return whether a node of an HDF5 file is a dataset whose numbers are in this file.

    HDF5 may have them in other files, whose names a stranger may have chosen.
    """
    return isinstance(node, h5py.Dataset) and not node.external and not node.is_virtual


def refuse_unreadable(dataset: h5py.Dataset, location: str) -> None:
    """Raise a StoreError for a dataset that cannot be read, or not safely.

    Its chunks are too large for the memory, a filter that it needs is missing, or it was not written to its
    end. `location` is what the message calls it.
    """
    _refuse_large_chunks(dataset, location)
    _refuse_missing_filters(dataset, location)
    _refuse_unwritten_chunks(dataset, location)


def _refuse_large_chunks(dataset: h5py.Dataset, location: str) -> None:
    """Raise a StoreError if a chunk of a dataset is larger than the features of a clip may be.

    To read one row, HDF5 decompresses a whole chunk into memory.
    """
    chunk_bytes = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    if chunk_bytes > MAX_BYTES:
        raise StoreError(
            f"{location}: chunks of {chunk_bytes} bytes; expected at most {MAX_BYTES}; save it with smaller "
            "chunks"
        )


def _refuse_missing_filters(dataset: h5py.Dataset, location: str) -> None:
    """Raise a StoreError for a dataset that is compressed by a filter of HDF5 that is not installed."""
    settings = dataset.id.get_create_plist()
    for position in range(settings.get_nfilters()):
        number, _, _, name = settings.get_filter(position)
        if not h5py.h5z.filter_avail(number):
            raise StoreError(
                f"{location}: compressed by a filter that is not here ({number} {name!r}): save it with gzip "
                "(h5repack -f GZIP=4)"
            )


def _refuse_unwritten_chunks(dataset: h5py.Dataset, location: str) -> None:
    """Raise a StoreError for a dataset with chunks that were never written, which HDF5 reads as zeros.

    A dataset without chunks counts as one part, which is empty until it is written.
    """
    if dataset.chunks:
        n_parts = 1
        for length, chunk_length in zip(dataset.shape, dataset.chunks, strict=True):
            n_parts *= math.ceil(length / chunk_length)
        n_written = dataset.id.get_num_chunks()
    else:
        n_parts = 1 if dataset.size else 0
        n_written = 1 if dataset.id.get_storage_size() > 0 else 0
    if n_written < n_parts:
        raise StoreError(
            f"{location}: {n_parts - n_written} of its {n_parts} chunks were never written, and would be "
            "zeros: write it again, to its end"
        )


def undo_matlab_order(array: Any, location: str, maximum: int = MAX_BYTES) -> Any:
    """Return an array with its axes in their original order, which MATLAB reverses when it writes HDF5.

    Parameters
    ----------
    array
        An HDF5 dataset, or an array. It is returned as it is, unless it is a dataset that MATLAB wrote.
    location
        What messages call it.
    maximum
        Bytes of the largest dataset that is read to transpose it.
    """
    if "MATLAB_class" not in getattr(array, "attrs", ()) or array.ndim < 2:
        return array
    refuse_larger(array.nbytes, location, maximum)
    return array[()].T


def _read_file(path: Path, choice: ArrayChoice) -> dict[str, NDArray[Any]]:
    """Read the datasets of a file of one clip that `choice` chooses: name -> array."""
    with open_hdf5(path) as file:
        return _read_group(file, str(path), choice)


def _read_group(
    node: h5py.Group | h5py.Dataset, location: str, choice: ArrayChoice
) -> dict[str, NDArray[Any]]:
    """Read the features of a clip: name -> array. Nothing is read before all of them are checked.

    Parameters
    ----------
    node
        The clip in the file: a group, whose datasets are its arrays, or a dataset, which is its only array
        and has the name "".
    location
        What messages call the clip.
    choice
        Chooses by their names which datasets are features.

    Raises
    ------
    StoreError
        A dataset holds no numbers, the datasets are too large together, or one cannot be read.
    """
    with explain_hdf5_damage(location):
        nodes = _plain_nodes(node, location)
        chosen: dict[str, h5py.Dataset] = {name: nodes[name] for name in choice.choose(location, nodes)}
        total_bytes = 0
        for name, dataset in chosen.items():
            _refuse_other_than_numbers(dataset, f"{location}: {name}" if name else location)
            total_bytes += int(dataset.size) * dataset.dtype.itemsize
            refuse_larger(total_bytes, location)
            refuse_unreadable(dataset, location)
        arrays = {}
        for name, dataset in chosen.items():
            arrays[name] = np.asarray(undo_matlab_order(dataset, location)[()])
        return arrays


def _plain_nodes(node: h5py.Group | h5py.Dataset, location: str) -> dict[str, Any]:
    """Return the datasets and groups in a group by name, or a dataset itself by the name "".

    Groups beside datasets are returned too, and refused only if they are chosen as features. `location` is
    what messages call the group or dataset.

    Raises
    ------
    StoreError
        One of them is a link, or a dataset whose numbers are in another file.
    """
    nodes: dict[str, Any] = {"": node}
    if isinstance(node, h5py.Group):
        nodes = {name: plain_node(node, name) for name in node}
    for name, child in nodes.items():
        if not is_plain(child) and not isinstance(child, h5py.Group):
            raise StoreError(f"{location}: {name} is not a plain dataset of this file")
    return nodes


def _refuse_other_than_numbers(node: h5py.Group | h5py.Dataset, location: str) -> None:
    """Raise a StoreError if a node is a group, or a dataset without values, or one of no numbers."""
    if not is_plain(node):
        raise StoreError(f"{location} holds {getattr(node, 'dtype', 'a group')}, expected numbers")
    has_values = node.shape is not None  # HDF5 has datasets with a type and no values
    holds_numbers = node.dtype.kind in "fiu"
    if not has_values or not holds_numbers:
        raise StoreError(f"{location} holds {node.dtype}, expected numbers")


def text_of(attributes: Mapping[str, Any], name: str) -> str:
    """Read a text attribute; empty if there is none, or it is of another type."""
    value = attributes.get(name, "")
    return value if isinstance(value, str) else ""


def read_column(node: object, path: Path) -> NDArray[Any]:
    """Read a column of texts or numbers, [N].

    A categorical column of AnnData is a group of codes and categories. It becomes the categories themselves;
    the code -1, for a missing one, becomes "".

    Raises
    ------
    StoreError
        If the node is no such column, lies in another file, or takes more memory than one clip may.
    """
    if not isinstance(node, h5py.Group):
        return _plain_column(node, path)
    codes = _plain_column(plain_node(node, "codes"), path)
    categories = _plain_column(plain_node(node, "categories"), path).astype(object)
    are_valid_codes = codes.dtype.kind in "iu" and ((codes >= -1) & (codes < len(categories))).all()
    if not are_valid_codes:
        raise StoreError(
            f"{path}: {node.name}: its codes are not the numbers of its {len(categories)} categories"
        )
    categories_and_none = np.append(categories, "")  # the index -1 takes the last one
    return np.asarray(categories_and_none[codes])


def _plain_column(node: object, path: Path) -> NDArray[Any]:
    """Read a column of texts or numbers, [N], from a dataset.

    Raises
    ------
    StoreError
        The node is anything else, lies in another file, or takes too much memory.
    """
    if not is_plain(node) or node.ndim != 1:
        raise StoreError(f"{path}: the ids are no plain list of texts")
    # A text takes at least `ID_BYTES` of memory, however short it is.
    bytes_per_item = max(ID_BYTES, node.dtype.itemsize)
    refuse_larger(int(node.size) * bytes_per_item, str(path))
    refuse_unreadable(node, f"{path}, {node.name}")
    string_type = h5py.check_string_dtype(node.dtype)  # None: it holds no texts
    if string_type is not None:
        # A text without a fixed length may be as long as the file.
        longest_bytes = string_type.length or node.file.id.get_filesize()
        return _read_texts(node, path, longest_bytes)
    holds_python_objects = node.dtype.kind == "O"
    if holds_python_objects:
        raise StoreError(f"{path}: {node.name} holds lists or references; expected texts or numbers")
    return np.asarray(node[()])


def _read_texts(dataset: h5py.Dataset, path: Path, longest_bytes: int) -> NDArray[Any]:
    """Read a column of texts in batches, so that memory stays bounded.

    A stranger may have made the file. In HDF5, texts without a fixed length are references to their bytes, so
    that a small file may hold thousands of references to one text that is as long as the file.

    Parameters
    ----------
    dataset
        The column.
    path
        The file, for messages.
    longest_bytes
        The most that one text may have: its fixed length, or the length of the file.

    Raises
    ------
    StoreError
        The texts together have too many characters for a column of ids.
    """
    n_at_once = max(1, min(MAX_TEXTS_AT_ONCE, MAX_BYTES_AT_ONCE // longest_bytes))
    texts: list[str] = []
    n_characters = 0
    for start in range(0, len(dataset), n_at_once):
        batch = dataset.asstr()[start : start + n_at_once].tolist()
        n_characters += sum(len(text) for text in batch)
        if n_characters > MAX_CHARACTERS:
            raise StoreError(
                f"{path}: {dataset.name} has more than {MAX_CHARACTERS} characters; expected ids"
            )
        texts += batch
    return np.array(texts, dtype=object)
