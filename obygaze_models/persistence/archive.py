"""Write and read the container of a model: a zip of one JSON card and uncompressed arrays.

It is also what NumPy calls an npz, so that ``numpy.load`` opens it; we do not open it that way. Files are
untrusted: what a member must be, to the byte of its header, follows from the card's list of arrays, and the
sizes of all members together can't exceed the file's.
"""

import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import first_line
from obygaze_models.errors import ModelError

CARD = "card.json"
ARRAY_SUFFIX = ".npy"
MAX_FILE = 256 << 20
MAX_CARD = 4 << 20
MAX_MEMBERS = 64
MAX_DEPTH = 16
MAX_DIMENSIONS = 8
DTYPES = ("<f4", "<f8", "<i8", "|u1")

_MEMBER = b"PK\x01\x02"
"""What an entry of a zip's list of members starts with: counted before `zipfile` makes objects of them."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_WRITTEN = {
    "create_version": 20,
    "extract_version": 20,
    "create_system": 3,
    "flag_bits": 0,
    "date_time": _EPOCH,
    "external_attr": 0o644 << 16,
}
"""Fields of every member, which are not needed to read it."""
_DAMAGED = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    OverflowError,
    struct.error,
)
"""What `zipfile` raises for bytes that are not what they should be."""


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of a C-ordered array in NumPy's format 1.0, whose text is part of our format.

    It is written here, and not by NumPy, so that a file's bytes do not change when NumPy's padding does.
    """
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + (text.ljust(length - 1) + "\n").encode("ascii")


def pack_archive(card: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Write card and arrays (of `DTYPES`): the same content, the same bytes."""
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n"
    members = {CARD: text.encode("utf-8")}
    for name, array in sorted(arrays.items()):
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        members[name + ARRAY_SUFFIX] = npy_header(little.dtype.str, little.shape) + little.tobytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.create_system = 3  # else it tells the operating system
            member.external_attr = 0o644 << 16
            archive.writestr(member, data)
    return buffer.getvalue()


def unpack_archive(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read card and arrays, checking all there is to check without knowing what they mean.

    Parameters
    ----------
    data : bytes
        The whole file.
    name : str
        What to call it in messages.

    Raises
    ------
    ModelError
        It is no such file, or anything in it is not exactly as `pack_archive` writes it.
    """
    if data.count(_MEMBER) > MAX_MEMBERS:
        _refuse(name, f"it has more members than any model ({MAX_MEMBERS})")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _members(archive, len(data), name)
            as_written = _is_as_written(archive, len(data))
    except ModelError:
        raise
    except _DAMAGED as error:
        raise ModelError(
            f"{name}: not a whole model file ({first_line(error, 200)}); get it anew or train it again"
        ) from error
    card = _parse_card(members.pop(CARD), name)
    arrays = _arrays(card, members, name)
    if not as_written:
        _refuse(
            name, "its zip is not as a model's is written: bytes between or behind its members, other fields"
        )
    return card, arrays


def _is_as_written(archive: zipfile.ZipFile, size: int) -> bool:
    """Whether members lie one behind the other, with the fields that all have, and nothing else."""
    offset = 0
    for member in archive.infolist():
        fields = {field: getattr(member, field) for field in _WRITTEN}
        if fields != _WRITTEN or member.extra or member.comment or member.header_offset != offset:
            return False
        offset += 30 + len(member.filename) + member.file_size
    listed = sum(46 + len(member.filename) for member in archive.infolist())
    return offset == archive.start_dir and size == offset + listed + 22


def _members(archive: zipfile.ZipFile, size: int, name: str) -> dict[str, bytes]:
    """Read the members: stored as they are, each once, together no larger than the file."""
    members = archive.infolist()
    seen: set[str] = set()
    for member in members:
        label = member.filename
        if (
            not label.isascii()
            or not label.replace("_", "").replace(".", "").isalnum()
            or label.startswith(".")
        ):
            _refuse(name, f"the member {label!r} has no name that a model's member may have")
        if label in seen:
            _refuse(name, f"it has two members {label!r}")
        seen.add(label)
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            _refuse(name, f"the member {label!r} is compressed; a model's are stored as they are")
        if member.flag_bits & 0x1:
            _refuse(name, f"the member {label!r} is encrypted")
    if CARD not in seen:
        _refuse(name, f"it has no {CARD}: is this a model of obygaze?")
    if archive.getinfo(CARD).file_size > MAX_CARD:
        _refuse(name, f"its card is {archive.getinfo(CARD).file_size} bytes, more than any card ({MAX_CARD})")
    total = sum(member.file_size for member in members)
    if total > size:
        _refuse(name, f"its members claim {total} bytes, more than the file's {size}")
    return {member.filename: archive.read(member) for member in members}


def _parse_card(text: bytes, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            _refuse(name, f"its card has the field {next(k for k in keys if keys.count(k) > 1)!r} twice")
        return dict(pairs)

    def no_constant(word: str) -> NoReturn:
        _refuse(name, f"its card holds {word}, which is not JSON")

    try:
        card = json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: its card is not JSON ({first_line(error, 200)})") from error
    if not isinstance(card, dict):
        _refuse(name, f"its card is not an object but {type(card).__name__}")
    _check_values(card, name)
    return card


def _check_values(card: dict[str, Any], name: str) -> None:
    """Refuse JSON that is valid but unusable: endless nesting, infinite numbers, lone surrogates."""
    level: list[Any] = [card]
    for _ in range(MAX_DEPTH):
        for value in level:
            if isinstance(value, float) and not math.isfinite(value):
                _refuse(name, "its card holds a number too large for a float")
            if isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value):
                _refuse(name, f"its card holds text that is not Unicode, {value!r:.80}")
        inner = [value for value in level if isinstance(value, dict | list)]
        level = [
            item
            for value in inner
            for item in ((*value, *value.values()) if isinstance(value, dict) else value)
        ]
        if not level:
            return
    _refuse(name, f"its card is nested more than {MAX_DEPTH} deep")


def _arrays(card: dict[str, Any], members: dict[str, bytes], name: str) -> dict[str, NDArray[Any]]:
    """Take the arrays that the card lists, each exactly as listed, and nothing else."""
    listed = card.get("arrays")
    if not isinstance(listed, dict) or not all(isinstance(entry, dict) for entry in listed.values()):
        _refuse(name, "its card does not list its arrays")
    strange = {label + ARRAY_SUFFIX for label in listed}.symmetric_difference(members)
    if strange:
        _refuse(name, f"the card and the members disagree about {min(strange)!r}")
    arrays = {}
    for label, entry in listed.items():
        dtype, shape = entry.get("dtype"), entry.get("shape")
        if dtype not in DTYPES:
            _refuse(name, f"array {label!r} has the dtype {dtype!r}; expected one of {', '.join(DTYPES)}")
        if not (
            isinstance(shape, list)
            and 0 < len(shape) <= MAX_DIMENSIONS
            and all(type(length) is int and 0 < length <= MAX_FILE for length in shape)
        ):
            _refuse(
                name,
                f"array {label!r} has the shape {str(shape)[:80]}; expected 1 to {MAX_DIMENSIONS} lengths, "
                "above 0",
            )
        data, header = members[label + ARRAY_SUFFIX], npy_header(dtype, tuple(shape))
        expected = len(header) + int(np.dtype(dtype).itemsize) * _product(shape)
        if len(data) != expected:
            _refuse(
                name,
                f"array {label!r} of shape {shape} should take {expected} bytes, but has {len(data)}",
            )
        if not data.startswith(header):
            _refuse(name, f"the header of array {label!r} is not that of {dtype} {shape}")
        native = np.dtype(dtype).newbyteorder("=")
        array = np.frombuffer(data, dtype, offset=len(header)).reshape(shape).astype(native)
        if not np.isfinite(array).all():
            _refuse(name, f"array {label!r} holds values that are not finite")
        arrays[label] = array
    return arrays


def _product(shape: list[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _refuse(name: str, why: str) -> NoReturn:
    raise ModelError(f"{name}: {why}")
