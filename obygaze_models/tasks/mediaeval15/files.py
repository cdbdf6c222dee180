"""Writing a file whole or not at all, and finding the line that is wrong."""

import os
from pathlib import Path

from obygaze_models.errors import TaskError


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        partial.replace(path)
    except OSError as error:
        # The user knows the file by its own name.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def read_lines(path: Path) -> list[str]:
    """Read a UTF-8 file's lines.

    Raises
    ------
    TaskError
        The file is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
