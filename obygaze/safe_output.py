"""Write what the command prints: odd characters visible, secrets of URLs left out, long lines wrapped."""

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

HARMLESS = re.compile(r"[\t\n\x20-\x7e]*")
"""Needs no look at the rule of texts, which would cost an import: help pages, most lines."""
SECRET = re.compile(r":/\S*[@?:]|\?\S")
"""Is in every URL with a password or a query."""


def _broken(line: str, width: int) -> str:
    """Break a line that is too long at blanks."""
    if len(line) <= width:
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * (len(line) - len(line.lstrip()) + 2),
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Shown:
    """A stream that shows characters which a terminal would obey as escapes, and no password of a URL.

    Attributes
    ----------
    unescaped
        The stream below, for what moves the cursor on purpose: progress bars.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        self.unescaped = stream
        self._width = width

    def write(self, text: str) -> int:
        """Write a text, its odd characters visible, its long lines wrapped at blanks."""
        if HARMLESS.fullmatch(text) is None or SECRET.search(text) is not None:
            from obygaze_features.text import masked, visible  # noqa: PLC0415 - help needs no package

            text = masked(visible(text))
        if self._width is not None:
            text = "\n".join(_broken(line, self._width) for line in text.split("\n"))
        return self.unescaped.write(text)

    def writelines(self, lines: Sequence[str]) -> None:
        """Write texts, one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream."""
        return getattr(self.unescaped, name)


@contextmanager
def shown(words: Sequence[str]) -> Iterator[None]:
    """Escape everything that is written to stdout and stderr; wrap long lines on terminals, except JSON."""
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    width = shutil.get_terminal_size((80, 24)).columns
    for name, stream in before.items():
        if stream is not None and not isinstance(stream, Shown):
            wraps = stream.isatty() and not (name == "stdout" and "--json" in words)
            setattr(sys, name, Shown(stream, width if wraps else None))
    try:
        yield
    finally:
        for name, stream in before.items():
            if isinstance(getattr(sys, name), Shown):  # else its reader has left: click flushes it no more
                setattr(sys, name, stream)
