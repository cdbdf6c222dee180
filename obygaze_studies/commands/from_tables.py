"""Make the commands that audits.toml and tasks.toml declare."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import click
import msgspec

from obygaze_features.commands import folder_for, write_imported
from obygaze_features.io import refuse_existing
from obygaze_features.options import EXISTING, PATH, Answer, Name, Number, Output, answers, joined, parameter
from obygaze_features.templates import packaged
from obygaze_models.commands import complete_task
from obygaze_studies.audits import Audit, Option, resolve, tasks
from obygaze_studies.commands.output import CSV, PICTURE, ReportOutput

REPORTS = ("beside", "folder", "kept")
"""Kinds of output of which the entry says what `--out` is."""
FINDINGS = "obygaze_studies.audit_common.findings"
"""Is loaded by a command's work alone: pandas is slow."""


def __getattr__(name: str) -> click.Command:
    """Return the command whose words end so, the shortest; `obygaze.cli` asks for it as an attribute."""
    ending = {words: f"_{re.sub('[- ]', '_', words)}" for words in tasks()}
    found = sorted((words for words in tasks() if ending[words].endswith(f"_{name}")), key=len)
    if not found:
        raise AttributeError(name)
    return made(found[0], tasks()[found[0]])


class Declared(click.Group):
    """A command for each entry whose words begin with those of the group, made when it is asked for."""

    def __init__(self, *arguments: Any, words: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        parted = {key.rpartition(" "): each for key, each in tasks().items()}
        self.entries = {name: each for (group, _, name), each in parted.items() if group == words}
        self.words = words

    def list_commands(self, _: click.Context) -> list[str]:
        """List the entries in the order of the table."""
        return list(self.entries)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of an entry."""
        entry = self.entries.get(cmd_name)
        return made(f"{self.words} {cmd_name}", entry) if entry else None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their whole summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.entries.items()])


@click.group(cls=Declared, words="paper")
def paper() -> None:
    """Reproduce tables and figures of Tores et al., CVPR 2024.

    \b
    Examples:
      obygaze paper all obygaze12.csv stores/xclip --out paper
      obygaze paper table2 obygaze12.csv stores/xclip --out table2
    """


@click.group("mediaeval15", cls=Declared, words="task mediaeval15")
def task_mediaeval15() -> None:
    """Run MediaEval 2015 Affective Impact of Movies.

    \b
    Examples:
      obygaze task mediaeval15 check --help
    """


def made(words: str, entry: Audit) -> click.Command:
    """Make the command of an entry from its declaration."""
    command: Callable[..., Any] = partial(_import if entry.output == "manifest" else _run, entry)
    command.__name__, command.__doc__ = words, None
    run = answers(command)
    for option in reversed([*entry.options, *_outputs(entry)]):
        run = declare(option, needed=option.needed and not (option.after or entry.commands))(run)
    help_text = f"{entry.summary}\n\n{entry.help}\n\b\nExamples:\n{_examples(words, entry)}"
    name = words.rsplit(maxsplit=1)[-1]
    if not entry.commands:
        return click.command(name, help=help_text)(run)
    group = click.group(name, help=help_text, invoke_without_command=True)(run)
    for below in entry.commands:
        group.add_command(made(f"{words} {below}", tasks()[f"{words} {below}"]))
    return group


# --- options
# ---------------------------------------------------------------------------
def _outputs(entry: Audit) -> list[Option]:
    """Return the options of a command's output: of its kind, with what the entry says of `--out`."""
    starts = bool(entry.lists or entry.commands)  # these need less than the audit
    needed = entry.required or (entry.output == "beside" and not starts)
    lists = packaged("obygaze_studies", "commands.toml")
    rows = msgspec.convert(joined(lists, [f"output {entry.output}"]), list[Option])
    own = {"out": {"help": entry.out, "required": needed}} if entry.output in REPORTS else {}
    kept = (row for row in rows if row.name != "figure" or entry.figure)
    return [msgspec.structs.replace(row, **own.get(row.name, {})) for row in kept]


def share(text: str) -> float:
    """Parse a factor, as a number or a fraction such as 1/4."""
    try:
        return float(Fraction(text))
    except (ZeroDivisionError, OverflowError):
        raise ValueError(text) from None  # which click words


def numbers(text: str) -> list[float]:
    """Parse numbers joined by commas."""
    try:
        return [Number().convert(part, None, None) for part in text.split(",")]
    except click.BadParameter:
        raise click.BadParameter(f"numbers joined by commas are expected, not {text!r}") from None


def declare(option: Option, *, needed: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the parameter of an input, by default a path, or of a setting, of further types."""
    read = PATH if option.folder or option.read == "store" else EXISTING
    kinds: dict[str, dict[str, Any]] = {
        "pair": {"nargs": 2},
        "span": {"nargs": 2, "type": Number(0)},
        "share": {"type": share},
        "numbers": {"type": numbers},
        "task": {"type": Name(), "shell_complete": complete_task},
        "picture": {"type": PICTURE},
        "csv": {"type": CSV},
    }
    if option.argument:
        return parameter(option, option.key)
    kinds |= {"": {"type": read}} if option.read else {"text": {"type": Name()}}
    return parameter(option, option.key, kinds, required=needed)


# --- what commands do
# ---------------------------------------------------------------------------
def _examples(words: str, entry: Audit) -> str:
    lines = [*entry.before, *(f"obygaze {words} {more}" for more in entry.examples), *entry.after]
    return "\n".join(f"  {line}" for text in lines for line in text.replace("\n", "\n  ").split("\n"))


def _run(entry: Audit, *, output: Output, figure: Path | None = None, **given: Any) -> Answer | None:
    if click.get_current_context().invoked_subcommand is not None:
        return None
    given |= {"out": output.out, "html": output.html, "force": output.force}
    written = ReportOutput(**asdict(output), figure=figure, beside=entry.output == "beside")
    if listed := given.pop("list_texts", None):
        return _list_texts(entry, given, listed, force=output.force)
    _check(entry, given)
    if entry.output == "kept":
        read = {option.to or option.key: given[option.key] for option in entry.options}
        return written.keep(partial(resolve(entry.function), entry.name.split()[-1], **read))
    if entry.output != "printed":
        asked = [given[name] for name in entry.draws if given[name]]
        written.check(*asked, *([output.path] if written.beside else []))
    drawn = {"list_texts", "pictures", *entry.draws}
    read = _read([option for option in entry.options if option.key not in drawn], given)
    found = entry.find(**read)
    if isinstance(found, Answer):
        return found
    report = resolve(f"{FINDINGS}:report")(entry, found)
    for name, draw in entry.draws.items():
        if given[name]:
            resolve(draw)(report, read, given["pictures"], given[name])
            click.echo(f"pictures kept in {given[name]}", err=True)
    return written.finish(report)


def _list_texts(entry: Audit, given: dict[str, Any], path: Path, *, force: bool) -> Answer:
    wanted = signature(resolve(entry.lists)).parameters
    texts = resolve(entry.lists)(**_read([o for o in entry.options if (o.to or o.key) in wanted], given))
    rows = [("text_id", "text"), *((f"t{number:06}", text) for number, text in enumerate(texts))]
    return Answer(None, remarks=[resolve(f"{FINDINGS}:write_rows")(rows, path, "texts", force=force)])


def _import(
    entry: Audit, *, source: Path, output: Output, videos: Path | None, texts: Path | None = None, **how: Any
) -> Answer:
    refuse_existing(texts, force=output.force)
    imported = entry.find(source=source, root=folder_for(output), videos=videos, **how)
    answer, left = write_imported(imported, output), len(imported.texts)
    if texts is None:
        said = f"left out {left:,} subtitles: --texts keeps them"
        return replace(answer, remarks=[said] * bool(left))
    rows = [("text_id", "text"), *imported.texts]
    said = resolve(f"{FINDINGS}:write_rows")(rows, texts, "subtitles", force=output.force)
    return replace(answer, text=f"{answer.text}\n{said}", remarks=[said] * output.json)


def _check(entry: Audit, given: dict[str, Any]) -> None:
    """Refuse options that do not go together, as click does."""
    for option in entry.options:
        if option.needed and given[option.key] is None:
            raise click.UsageError(f"Missing option '--{option.name}'.")
    for group in entry.apart:
        if len(several := [f"--{name}" for name in group if given[name]]) > 1:
            raise click.UsageError(f"{' and '.join(several)} cannot be combined: give one.")
    for name, wanted in entry.needs.items():
        for words in wanted if given[name] else ():
            others = [each.partition("=") for each in words.split("|")]
            if not any(given[other] and value in ("", given[other]) for other, _, value in others):
                named = " or ".join(f"--{each.replace('=', ' ')}" for each in words.split("|"))
                raise click.UsageError(f"--{name} goes with {named}: give both.")
    if entry.one_of and sum(given[name] is not None for name in entry.one_of) != 1:
        raise click.UsageError(f"Give either {' or '.join(f'--{name}' for name in entry.one_of)}.")


def _read(options: Sequence[Option], given: dict[str, Any]) -> dict[str, Any]:
    """Read what options name; print a note where embeddings are of a part alone."""
    read = {option.to or option.key: option.value(given[option.key]) for option in options}
    for embedded in read.values():
        if partial_rows := getattr(embedded, "partial", None):
            name, reason = next(iter(partial_rows.items()))
            n = f"{len(partial_rows)} of {len(embedded.rows)} embeddings"
            click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)
    return read
