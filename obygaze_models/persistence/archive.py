"""Write and read the container of a model: a zip of one JSON card and uncompressed NumPy arrays.

It is also what NumPy calls an npz, so that ``numpy.load`` opens it. Files are untrusted: nothing in them is
unpickled or unpacked to disk, and their sizes are checked before memory is taken.
"""

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from obygaze_features.file_kinds import why_not
from obygaze_features.schema import one_of
from obygaze_features.store.store_files import NOT_ARRAYS
from obygaze_models.errors import ModelError

CARD = "card.json"
"""Name of the member with the card."""
ARRAY_SUFFIX = ".npy"
"""End of the names of the members with arrays."""
MAX_FILE = 256 << 20
"""Largest file of a model, in bytes."""
MAX_CARD = 4 << 20
"""Largest card, in bytes."""
MAX_MEMBERS = 256
"""Most members of a file."""
DTYPES = ("<f4", "<f8", "<i8", "|u1")
"""Data types of arrays: floats, int64 and bytes, little-endian."""

_MEMBER_SIGNATURE = b"PK\x01\x02"
"""The bytes with which each entry in a zip's list of members begins."""

_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The time that every member states, so that bytes do not depend on the clock: the earliest of a zip."""

_UNIX = 3
"""A zip's number for Unix, which every member states, so that bytes do not depend on the operating system."""

_PERMISSIONS = 0o644 << 16
"""Permissions of every member, in the bits of a zip that Unix uses for them: all may read it."""


class ArrayEntry(msgspec.Struct):
    """Data type and shape of an array, as the card lists them."""

    dtype: Annotated[str, one_of(*DTYPES)]
    shape: Annotated[tuple[Annotated[int, Meta(ge=1, le=MAX_FILE)], ...], Meta(min_length=1, max_length=8)]


def pack_archive(card: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Pack a card and arrays into the bytes of a model file; the same content gives the same bytes.

    The card gets a list of the arrays with their types, which must be among `DTYPES`, and shapes.
    """
    list_of_arrays = {}
    for name, array in arrays.items():
        list_of_arrays[name] = {"dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape)}
    full_card = {**card, "arrays": list_of_arrays}
    text = json.dumps(full_card, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    members = {CARD: text.encode("utf-8")}
    for name, array in sorted(arrays.items()):
        members[name + ARRAY_SUFFIX] = _npy_bytes(array)
    return _zip_bytes(members)


def _npy_bytes(array: NDArray[Any]) -> bytes:
    """Return the content of an npy file of an array, little-endian on every machine."""
    little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    file = io.BytesIO()
    np.lib.format.write_array(file, little_endian, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def _zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """Return an uncompressed zip of members, name -> content, with the same metadata on every machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, _FIXED_TIME)
            member.create_system = _UNIX
            member.external_attr = _PERMISSIONS
            archive.writestr(member, data)
    return buffer.getvalue()


def unpack_archive(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the card and the arrays of a model file, without checking what they mean.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        Name of the file in messages.

    Raises
    ------
    ModelError
        The bytes are no model file; or the file is damaged; or the card does not list the arrays in it.
    """
    # Members are counted before `zipfile` makes objects of them, which would take memory.
    n_members = data.count(_MEMBER_SIGNATURE)
    if n_members > MAX_MEMBERS:
        raise ModelError(f"{name}: it has more members than any model ({MAX_MEMBERS})")

    # A whole model file causes no warning of `zipfile` or numpy: one is an error here.
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, warnings.catch_warnings(action="error"):
            return _read_members(archive, len(data))
    except (*NOT_ARRAYS, Warning) as error:
        raise _not_a_model_file(data, name, error) from None


def _not_a_model_file(data: bytes, name: str, error: Exception) -> ModelError:
    """Make the error on bytes that are no model file, given what reading them raised.

    `name` is the name of the file for the message, which says what the bytes are, or which part is damaged.

    Examples
    --------
    >>> print(_not_a_model_file(b"PK...", "film.model", ModelError("two cards")))
    film.model: not a whole model file (two cards); get it again, or train it again
    """
    is_zip = data.startswith(b"PK")
    if not is_zip:
        return ModelError(f"{name}: not a whole model file: {why_not(data, 'a model file')}")
    # Only errors of this module say something that users understand.
    reason = "its zip, card or arrays are damaged or cut short"
    if isinstance(error, ModelError):
        reason = str(error)
    return ModelError(f"{name}: not a whole model file ({reason}); get it again, or train it again")


def _read_members(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read card and arrays from an open archive of `size` bytes, which must list exactly these arrays."""
    _check_members(archive, size)
    card = msgspec.json.decode(archive.read(CARD), type=dict[str, Any])
    entries = msgspec.convert(card.get("arrays"), dict[str, ArrayEntry])
    expected_names = [CARD, *(label + ARRAY_SUFFIX for label in entries)]
    if sorted(archive.namelist()) != sorted(expected_names):
        raise ModelError("the card does not list the arrays that there are")
    arrays = {}
    for label, entry in entries.items():
        arrays[label] = _read_array(archive.read(label + ARRAY_SUFFIX), entry)
    for label, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"array {label!r} holds values that are not finite")
    return card, arrays


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise if an archive of `size` bytes has no card, or could take up more memory than its own size."""
    if CARD not in archive.namelist():
        raise ModelError(f"a zip without {CARD}, which every model's has")
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ModelError("a member is compressed; a model's are stored as they are")
    # Members are stored as they are, so that together they cannot be larger than the file.
    declared_size = sum(member.file_size for member in members)
    if declared_size > size or archive.getinfo(CARD).file_size > MAX_CARD:
        raise ModelError("its members claim more bytes than the file has, or its card is too large")


def _read_array(data: bytes, entry: ArrayEntry) -> NDArray[Any]:
    """Read the bytes of an npy file, which must have the data type and shape that the card lists.

    The header is only compared with the card: `numpy.load` would allocate whatever a header claims.
    """
    dtype = np.dtype(entry.dtype)
    file = io.BytesIO(data)
    np.lib.format.read_magic(file)
    shape_in_file, is_fortran_order, dtype_in_file = np.lib.format.read_array_header_1_0(file)
    if shape_in_file != entry.shape or is_fortran_order or dtype_in_file != dtype:
        raise ModelError("an array is not what the card says of it")
    # The values follow the header.
    values = np.frombuffer(data, dtype, offset=file.tell()).reshape(entry.shape)
    # They are little-endian; computations use the machine's own byte order.
    return values.astype(dtype.newbyteorder("="))


def check_arrays(arrays: Mapping[str, NDArray[Any]], **shapes: tuple[int, ...]) -> None:
    """Raise unless arrays have exactly these names and shapes and hold floats, and scales are above 0.

    An array is a scale if its name ends with "scale"; features are divided by it.

    Parameters
    ----------
    arrays : mapping of str to ndarray
    **shapes
        Name of each expected array -> its shape.

    Raises
    ------
    ModelError
        An array is wrong, missing or not expected; the message names the first.

    Examples
    --------
    >>> check_arrays({"mean": np.zeros(2)}, mean=(2,), scale=(2,))
    Traceback (most recent call last):
    obygaze_models.errors.ModelError: the array 'scale' is missing
    """
    differing_names = sorted(arrays.keys() ^ shapes.keys())
    if differing_names:
        name = differing_names[0]
        problem = "missing" if name in shapes else "one too many"
        raise ModelError(f"the array {name!r} is {problem}")
    for label, shape in shapes.items():
        array = arrays[label]
        if array.shape != shape or array.dtype.kind != "f":
            description = f"found {array.dtype} {list(array.shape)}"
            raise ModelError(f"the array {label} should be floats of shape {list(shape)}; {description}")
        if label.endswith("scale") and not (array > 0).all():
            raise ModelError(f"the array {label} holds values that are not above 0")
