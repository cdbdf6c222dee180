"""CRC-32C, the checksum at the end of every chunk.

fastcrc takes it twice as fast as google-crc32c, which zarr brings along (docs/decisions.md); the numbers are
the same, and a store can be read with either.
"""

import numpy as np

try:
    from fastcrc.crc32 import iscsi as crc32c
except ImportError:
    from google_crc32c import extend

    def crc32c(data: bytes | memoryview, initial: int | None = None) -> int:  # type: ignore[misc]
        """Take the checksum of bytes, going on from that of those before them."""
        return int(extend(initial or 0, np.frombuffer(data, np.uint8)))


__all__ = ["crc32c"]
