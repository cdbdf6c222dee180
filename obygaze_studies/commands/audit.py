"""`obygaze audit NAME`: one command for each entry of the table of audits."""

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import click

from obygaze_features.options import PATH, Result, prints_result
from obygaze_studies.audits import Audit, Option, audits, resolve
from obygaze_studies.commands.declared import parameter
from obygaze_studies.commands.output import ReportOutput, report_output, write_rows


class Audits(click.Group):
    """A command for each entry of the table, made when it is asked for."""

    def list_commands(self, _: click.Context) -> list[str]:
        """List the audits in the order of the table."""
        return list(audits())

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of an audit."""
        known = audits().get(cmd_name)
        return audit_command(known) if known else None


@click.group(cls=Audits)
def audit() -> None:
    """Audit embeddings, captions and saliency for bias.

    \b
    Examples:
      obygaze audit alpha --ratings ratings.csv --out alpha.csv
    """


def audit_command(audit: Audit) -> click.Command:
    """Make the command of an audit from its declaration."""
    starts = bool(audit.lists or audit.commands)  # these need less than the audit
    command: Callable[..., Any] = partial(_run, audit)
    command.__name__, command.__doc__ = audit.name, None
    declared = report_output(audit.out, required=not starts, beside=True, figure=bool(audit.figure))
    run = declared(command)
    for option in reversed(audit.options):
        run = parameter(option, required=option.needed and not (option.after or audit.commands))(run)
    help_text = f"{audit.summary}\n{audit.help}\n\b\nExamples:\n{_examples(audit)}"
    if not audit.commands:
        return click.command(audit.name, help=help_text)(run)
    group = click.group(audit.name, help=help_text, invoke_without_command=True)(run)
    for name in audit.commands:
        group.add_command(globals()[name])
    return group


def _examples(audit: Audit) -> str:
    lines = [*audit.before, *(f"obygaze audit {audit.name} {words}" for words in audit.examples)]
    return "\n".join(f"  {line}" for words in lines for line in words.replace("\n", "\n  ").split("\n"))


def _run(audit: Audit, *, output: ReportOutput, **given: Any) -> None:
    if click.get_current_context().invoked_subcommand is not None:
        return
    listed = given.pop("list_texts", None)
    if listed:
        wanted = signature(resolve(audit.lists)).parameters
        asked = [option for option in audit.options if (option.to or option.key) in wanted]
        texts = resolve(audit.lists)(**_read(asked, given))
        rows = [("text_id", "text"), *((f"t{number:06}", text) for number, text in enumerate(texts))]
        click.echo(write_rows(rows, listed, "texts", force=output.force), err=True)
        return
    _check(audit, given)
    output.check(*audit.paths(given), *([] if output.out else [output.path]))
    inputs = [
        option for option in audit.options if option.key not in {"list_texts", "pictures", *audit.draws}
    ]
    read = _read(inputs, given)
    found = audit.find(**read)
    report = resolve("obygaze_studies.audit_common.findings:report")(audit, found)
    for name, draw in audit.draws.items():
        if given[name]:
            resolve(draw)(report, read, given["pictures"], given[name])
            click.echo(f"pictures kept in {given[name]}", err=True)
    output.finish(report)
    for remark in getattr(found, "remarks", ()):
        click.echo(remark, err=True)


def _check(audit: Audit, given: dict[str, Any]) -> None:
    """Refuse options that do not go together, as click does."""
    for option in audit.options:
        if option.needed and given[option.key] is None:
            raise click.UsageError(f"Missing option '--{option.name}'.")
    for name, wanted in audit.needs.items():
        for other, _, value in (each.partition("=") for each in wanted):
            if given[name] and (not given[other] or (value and given[other] != value)):
                raise click.UsageError(
                    f"--{name} goes with --{other}{f' {value}' if value else ''}: give both."
                )
    if audit.one_of and sum(given[name] is not None for name in audit.one_of) != 1:
        raise click.UsageError(f"Give either {' or '.join(f'--{name}' for name in audit.one_of)}.")


def _read(options: Sequence[Option], given: dict[str, Any]) -> dict[str, Any]:
    """Read what options name; print a note where embeddings are of a part alone."""
    read = {option.to or option.key: option.value(given[option.key]) for option in options}
    for embedded in read.values():
        if partial_rows := getattr(embedded, "partial", None):
            name, reason = next(iter(partial_rows.items()))
            n = f"{len(partial_rows)} of {len(embedded.rows)} embeddings"
            click.echo(f"{embedded.where}: {n} are partial, such as {name}: {reason}", err=True)
    return read


@click.command()
@click.option(
    "--variant", type=click.Choice(["code", "paper"]), default="code", help="Wording.", show_default=True
)
@click.option("--out", type=PATH, required=True, help="CSV file: text_id, text, list.")
@click.option("--force", is_flag=True, help="Replace existing files.")
@prints_result
def prompts(variant: str, out: Path, force: bool) -> Result:
    """Write the prompts of the paper's tests, as input of `obygaze extract`.

    \b
    Examples:
      obygaze audit eat prompts --out prompts.csv
      obygaze audit eat prompts --variant paper --out prompts-paper.csv
    """
    from obygaze_studies.eat.eat_tests import prompt_rows

    rows = prompt_rows(variant)
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    return {"file": str(out), "prompts": len(rows)}, write_rows(table, out, "prompts", force=force)
