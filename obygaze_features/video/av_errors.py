"""Define the errors of reading videos."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from av import FFmpegError

from obygaze_features.errors import VideoError

Item = TypeVar("Item")

# FFmpegError covers broken data and early ends; PyAV raises the others for a damaged header.
UNREADABLE = (FFmpegError, AttributeError, IndexError, MemoryError, OverflowError, UnicodeDecodeError)


def guarded(items: Iterable[Item], path: Path) -> Iterator[Item]:
    """Yield the items; convert decoder errors caused by a damaged file to `VideoError`.

    Errors raised by the code that consumes the items are not converted.
    """
    iterator = iter(items)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        except UNREADABLE as error:
            raise VideoError("the file is damaged: its pictures cannot be read", path) from error
        yield item
