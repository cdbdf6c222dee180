"""Define the errors meant for users; their messages are one line that names the problem and what to do.

Any other exception is a bug and keeps its traceback.
"""

import errno
import sys
from pathlib import Path


class ObygazeError(ValueError):
    """Base of all errors meant for users; the command prints the message in place of a traceback.

    Examples
    --------
    >>> from obygaze_features import ObygazeError, open_store
    >>> try:
    ...     open_store("stores/nothing")
    ... except ObygazeError as error:
    ...     print(error)
    stores/nothing: no such store, nor a version of it (nothing-1.0.0)
    """


class ArgumentError(ObygazeError):
    """A function was given a value of a type that it does not take; the message has a call that is right."""


class OutputError(ObygazeError):
    """A file or folder cannot be written where it was asked for."""


class InputError(ObygazeError):
    """A file that was given is no regular file, or larger than such a file may be."""


class LinkError(InputError):
    """A file of a folder that a stranger sent is a link."""


class ManifestError(ObygazeError):
    """A manifest, or annotations to import, cannot be used.

    Parameters
    ----------
    message
        What is wrong. It may quote a cell of any length, so that a very long one is cut in the middle.
    column
        The manifest column at fault; empty if there is none.
    """

    def __init__(self, message: str, column: str = "") -> None:
        """Hold the message, shortened so that people can read it, and the column.

        Of a message of 2,000 characters or more, the first 1,200 and the last 600 are kept: a long cell is
        quoted between what is said before and behind it.
        """
        if len(message) >= 2000:
            beginning = message[:1200]
            end = message[-600:]
            message = f"{beginning} ... {end}"
        super().__init__(message)
        self.column = column


class VideoError(ObygazeError):
    """A video that cannot give the frames asked for.

    Parameters
    ----------
    reason
        A short sentence without the file's name, e.g. "the file is empty (0 bytes)".
    path
        The file, where there is one.
    """

    def __init__(self, reason: str, path: str | Path | None = None) -> None:
        """Hold the reason as a sentence, and the file if it is known."""
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def __str__(self) -> str:
        return self.reason if self.path is None else f"{self.path}: {self.reason}"


class ShotError(ObygazeError):
    """Shots cannot be looked for: a package is missing, or is another one than expected."""


class BackboneError(ObygazeError):
    """A backbone cannot be loaded, or was given frames it does not take."""


class ExtractError(ObygazeError):
    """An extraction cannot start, or must not go on."""


class WorkerError(ObygazeError):
    """Work cannot be sent to worker processes, or they died again and again without giving a result."""


class StoreError(ObygazeError):
    """A store or stage cannot be written, sealed, opened or trusted."""


class InterruptedTransferError(StoreError):
    """A server could not be reached, or stopped in the middle: trying again may help."""


class NoRangesError(StoreError):
    """A server does not support range requests."""


class FileEndsError(StoreError):
    """A file on a server ends before the part that is asked for: it was cut short, or is another one."""


class SearchError(ObygazeError):
    """Clips cannot be ranked by a text: the two do not compare, or there is nothing to rank."""


WHAT_TO_DO = {
    errno.ENOSPC: "the disk is full: make room there (obygaze doctor PATH says how much is free)",
    errno.EDQUOT: "your quota there is used up: make room, or have it raised",
    errno.EROFS: "that file system can only be read: choose another place",
    errno.ESTALE: "its file system was mounted anew, or it was removed on another machine",
    errno.EIO: "the disk or its server fails: look into the system's log",
}
"""Number of an error of the system -> what it means, and what to do."""


def system_error_line(error: OSError) -> str:
    """Return a one-line message for an error of the system: the path, what went wrong, and what to do.

    Parameters
    ----------
    error
        The error, whose `filename` is the file or None.

    Examples
    --------
    >>> system_error_line(FileNotFoundError(errno.ENOENT, "No such file or directory", "films.csv"))
    'films.csv: No such file or directory'
    """
    line = f"{error.filename or 'input/output'}: {error.strerror or error}"
    if error.errno not in WHAT_TO_DO:
        return line
    return f"{line}: {WHAT_TO_DO[error.errno]}, then run the same command again"


def first_line(error: BaseException | str, longest: int | None = None) -> str:
    r"""Return the first line of an error's message, or the error's type if the message is empty.

    Parameters
    ----------
    error
        An error, often of another library.
    longest
        Number of characters to keep; None for all.

    Examples
    --------
    >>> first_line(ValueError("not a whole file\nat byte 12")), first_line(EOFError())
    ('not a whole file', 'EOFError')
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text[:longest]


def install_command(requirement: str) -> str:
    """Return the command that adds a package, or an extra of obygaze, to this environment.

    Environments of pipx and uv may have no pip. `uv tool install` is not used, because it would remove the
    extras that are installed.

    Parameters
    ----------
    requirement
        What to install, such as "obygaze[xlsx]".
    """
    is_made_by_pipx = Path(sys.prefix, "pipx_metadata.json").is_file()
    config = Path(sys.prefix, "pyvenv.cfg")
    if is_made_by_pipx:
        command = "pipx inject obygaze"
    elif config.is_file() and "\nuv = " in config.read_text(encoding="utf-8", errors="replace"):
        command = f'uv pip install --python "{sys.executable}"'
    else:
        command = "pip install"
    return f'{command} "{requirement}"'  # double quotes: cmd.exe of Windows knows no others
