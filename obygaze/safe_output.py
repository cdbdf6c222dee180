"""Write a command's output with control characters made visible, passwords masked and long lines wrapped."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")
"""A text without characters to make visible. Most lines are, and need no import of the rules for texts."""

SECRET = re.compile(r":/\S*[@?:]|\?\S")
"""Occurs in every URL with a password or a query."""


def _wrap_line(line: str, width: int) -> str:
    """Wrap a line at spaces so that it fits the width; what follows is indented by two more characters."""
    if len(line) <= width:
        return line
    indentation = len(line) - len(line.lstrip())
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * (indentation + 2),
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Shown:
    """A stream that makes control characters visible and masks passwords in URLs before it writes.

    Parameters
    ----------
    stream
        The stream to write to.
    width
        Width in characters at which lines are wrapped; None to wrap none.

    Attributes
    ----------
    raw_stream
        The stream to write to, for progress bars, which move the cursor on purpose.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        """Keep the stream to write to, and the width of its lines."""
        self.raw_stream = stream
        self._width = width

    def write(self, text: str) -> int:
        """Write a text with control characters made visible, passwords masked and long lines wrapped.

        Returns the number of characters written, as other streams do.
        """
        may_have_control_characters = HARMLESS.fullmatch(text) is None
        may_have_password = SECRET.search(text) is not None
        if may_have_control_characters or may_have_password:
            from obygaze_features.text import masked, visible  # noqa: PLC0415 - help needs no package

            text = masked(visible(text))
        if self._width is not None:
            lines = [_wrap_line(line, self._width) for line in text.split("\n")]
            text = "\n".join(lines)
        return self.raw_stream.write(text)

    def writelines(self, lines: Sequence[str]) -> None:
        """Write texts, one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the stream, such as `flush`, so that this can stand for it."""
        return getattr(self.raw_stream, name)


@contextmanager
def safe_streams(words: Sequence[str]) -> Iterator[None]:
    """Replace stdout and stderr by `Shown` streams, which write safe text, while the block runs.

    Long lines are wrapped on terminals, but not on stdout with --json.

    Parameters
    ----------
    words
        The words of the command line.
    """
    streams_before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    terminal_width = shutil.get_terminal_size((80, 24)).columns
    for name, stream in streams_before.items():
        is_safe_already = isinstance(stream, Shown)
        if stream is None or is_safe_already:
            continue
        is_json = name == "stdout" and "--json" in words
        is_wrapped = stream.isatty() and not is_json
        setattr(sys, name, Shown(stream, terminal_width if is_wrapped else None))
    try:
        yield
    finally:
        for name, stream in streams_before.items():
            # click replaces a stream whose reader has closed it by one that is never flushed: that one stays.
            if isinstance(getattr(sys, name), Shown):
                setattr(sys, name, stream)
