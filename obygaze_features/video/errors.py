"""What goes wrong with a video, in words for the person who has to mend it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from av import FFmpegError

from obygaze_features.errors import VideoError

Item = TypeVar("Item")

# FFmpegError covers broken data and early ends; PyAV answers a damaged header with the others.
UNREADABLE = (FFmpegError, AttributeError, IndexError, MemoryError, OverflowError, UnicodeDecodeError)


def guarded(items: Iterable[Item], path: Path) -> Iterator[Item]:
    """Pass items on; answer what a damaged file makes the decoder raise with a `VideoError`.

    The code that consumes the items stays outside: its own errors are not the file's.
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
