"""Print commands and run them one after the other, for commands that consist of others."""

import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

LINE = 76
"""Length of a printed line of a command, without the backslash at its end."""


def run_command(ctx: click.Context, words: Sequence[object]) -> int:
    """Print an `obygaze` command, run it in this process, and return its exit code.

    Parameters
    ----------
    ctx
        Context of the command that is running, through which the other is found.
    words
        The command's words after `obygaze`; a path is a `Path`, so that it is never taken for an option.
    """
    click.echo("\n" + format_command(words))
    sys.stdout.flush()
    root = ctx.find_root().command  # `obygaze` itself
    arguments = [_as_argument(word) for word in words]
    # Outside the standalone mode, click raises errors, and returns the code or what the command returned.
    code = root.main(args=arguments, prog_name="obygaze", standalone_mode=False)
    return code if isinstance(code, int) else 0


def format_command(words: Sequence[object]) -> str:
    """Format an `obygaze` command for printing: quoted as for a shell, in lines that fit a terminal.

    Lines but the last end with a backslash, so that the command can be copied into a shell.
    """
    lines = ["$ obygaze"]
    for word in words:
        quoted = shlex.quote(_as_argument(word))
        is_line_full = len(lines[-1]) + len(quoted) > LINE
        if is_line_full:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {quoted}"
    return "\n".join(lines)


def _as_argument(word: object) -> str:
    """Write a word of a command; a path that begins with a dash gets ./ before it, as it is no option."""
    text = str(word)
    is_like_option = isinstance(word, Path) and text.startswith("-")
    return f"./{text}" if is_like_option else text


def remove(paths: Iterable[Path]) -> None:
    """Remove files and folders; those that do not exist are skipped."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
