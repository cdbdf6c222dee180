"""The one way in which rows and documents become bytes, so that equal content has equal digests."""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_bytes(values: NDArray[Any]) -> bytes:
    """Give a row's bytes as they are digested and stored: little-endian, C order."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def digest(data: bytes) -> str:
    """Give the SHA-256 of a row's bytes."""
    return hashlib.sha256(data).hexdigest()


def json_bytes(document: object) -> bytes:
    """Write a JSON document for people to read, the same bytes every time."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
