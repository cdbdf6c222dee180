"""Declare where the results of a study's command go, and write and print its report."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.io import refuse_existing
from obygaze_features.options import PATH, Output, output, show
from obygaze_features.screen import progress_bar
from obygaze_models.commands import finish, write_page

if TYPE_CHECKING:
    from obygaze_models.report import Report
    from obygaze_studies.unfinished import Work

TITLE = "Tores et al., CVPR 2024, reproduced"
"""Of a page of several tables."""

SUFFIXES = (".csv", ".json", ".md")
"""Endings of the files of an audit, the one that --out names first."""


class EndingPath(click.Path):
    """Parameter type of a file whose name must have one of some endings.

    Parameters
    ----------
    endings
        What it may end in.
    words
        What follows the endings in a message.
    """

    def __init__(self, *endings: str, words: str = "") -> None:
        super().__init__(path_type=Path)
        self.endings, self.words = endings, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse other endings."""
        if Path(value).suffix.lower() not in self.endings:
            *others, last = self.endings
            named = f"{', '.join(others)} or {last}" if others else last
            self.fail(f"'{value}' should end in {named}{self.words}", param, ctx)
        return super().convert(value, param, ctx)


PICTURE = EndingPath(".pdf", ".png", ".svg")


@dataclass(frozen=True)
class ReportOutput(Output):
    """Where a report goes: a CSV with other formats beside it or a folder, a figure, a page, the terminal."""

    figure: Path | None = None
    beside: bool = False

    def check(self, *more: Path) -> None:
        """Refuse to replace files before the work starts."""
        from obygaze_models.report import check_folder

        files = [self.figure, self.html, *more]
        if self.out and self.beside:
            files += [self.out.with_suffix(suffix) for suffix in SUFFIXES]
        elif self.out:
            check_folder(self.out, force=self.force)
        refuse_existing(*files, force=self.force)
        if self.figure:
            import matplotlib as _  # noqa: F401, ICN001 - missing without the extra `figures`

    def keep(self, prepare: Callable[[], "Work"]) -> None:
        """Make tables that take long, printed and kept as they are made; then write the page and the JSON."""
        from obygaze_models.report import document, plain, to_json, write_report
        from obygaze_studies.unfinished import TRAINED, unfinished_folder

        self.check()
        work = prepare()
        for line in work.said:
            click.echo(line, err=True)

        def made(report: "Report", whole: "Report | None" = None) -> None:
            if folder is not None:
                write_report(whole or report, folder)
            if not self.as_json:
                click.echo(plain(report), nl=False)

        unfinished = unfinished_folder(self.out, work.inputs, force=self.force) if self.out else nullcontext()
        with unfinished as folder, progress_bar("training", "model") as progress:
            found = work.make(progress=progress, kept=folder and folder / TRAINED, made=made)
        reports = getattr(found, "reports", found)
        several = reports is not found and len(reports) > 1
        write_page(reports, self.html, TITLE if several else "", force=self.force)
        if self.as_json and reports is found:
            click.echo(to_json(found), nl=False)
        elif self.as_json:
            show([{"name": report.name, **document(report)} for report in reports], str, as_json=True)
        notes = [*getattr(found, "notes", ()), *([f"kept in {self.out}"] if self.out else [])]
        for note in notes:
            click.echo(note, err=True)
        if several and not self.as_json:
            click.echo(self.path / "index.md")

    def finish(self, report: "Report") -> None:
        """Write a report where it is asked for, print it, and say where it is."""
        from obygaze_models.report import plain, to_json, write_beside

        if not self.beside:
            finish(report, self)
            return
        write_beside(report, self.path.with_suffix(""), SUFFIXES)
        if self.figure:
            report.pictures[0].draw(self.figure)
        write_page(report, self.html, force=self.force)
        click.echo(to_json(report) if self.as_json else plain(report), nl=False)
        click.echo(f"kept in {self.out}", err=True)


def report_output(
    out_help: str, *, required: bool = False, beside: bool = False, figure: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the options of a command's output, and hand it over as its argument `output`."""
    csv = EndingPath(SUFFIXES[0], words=f"; {' and '.join(SUFFIXES[1:])} files go beside it")
    force = "Replace existing files."
    declared = output(
        out_help, kind=csv if beside else PATH, required=required, force=force, html=True, json=True
    )

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*, output: Output, figure: Path | None = None, **given: Any) -> Any:
            return command(output=ReportOutput(**asdict(output), figure=figure, beside=beside), **given)

        if figure:
            shown = "Figure of the results to draw (.pdf, .png or .svg)."
            run = click.option("--figure", type=PICTURE, help=shown)(run)
        return declared(run)

    return declare
