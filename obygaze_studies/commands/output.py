"""Declare where the results of a study's command go, and write and print its report."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from obygaze_features.io import refuse_existing
from obygaze_features.options import FILE, Answer, NewFile, Output
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import option
from obygaze_models.commands import finish, write_page

if TYPE_CHECKING:
    from obygaze_models.report import Report
    from obygaze_studies.obygaze12.paper import Redone
    from obygaze_studies.unfinished import Work

TITLE = "Tores et al., CVPR 2024, reproduced"
"""Of a page of several tables."""

SUFFIXES = (".csv", ".json", ".md")
"""Endings of the files of an audit, the one that --out names first."""


class EndingPath(NewFile):
    """Parameter type of a file whose name must have one of some endings.

    Parameters
    ----------
    endings
        What it may end in.
    words
        What follows the endings in a message.
    """

    def __init__(self, *endings: str, words: str = "") -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse other endings."""
        if Path(value).suffix.lower() not in self.endings:
            *first_endings, last = self.endings
            named = f"{', '.join(first_endings)} or {last}" if first_endings else last
            self.fail(f"'{value}' should end in {named}{self.words}", param, ctx)
        return super().convert(value, param, ctx)


PICTURE = EndingPath(".pdf", ".png", ".svg")
CSV = EndingPath(SUFFIXES[0], words=f"; {' and '.join(SUFFIXES[1:])} files go beside it")

Html = Annotated[
    Path | None,
    option("Also write the results as a page: one HTML file that loads nothing from elsewhere.", type=FILE),
]
Replace = Annotated[bool, option("Replace existing files.")]


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

    def keep(self, prepare: Callable[[], "Work"]) -> Answer:
        """Make tables that take long, printed and kept as they are made; then write the page, and answer."""
        from obygaze_models.report import plain, write_report
        from obygaze_studies.unfinished import TRAINED, unfinished_folder

        self.check()
        work = prepare()
        for notice in work.said:
            click.echo(notice, err=True)

        def show(report: "Report", full_report: "Report | None" = None) -> None:
            if folder is not None:
                write_report(full_report or report, folder)
            if not self.json:
                click.echo(plain(report), nl=False)

        unfinished = unfinished_folder(self.out, work.inputs, force=self.force) if self.out else nullcontext()
        with unfinished as folder, progress_bar("training", "model") as progress:
            trained = folder / TRAINED if folder else None
            result = work.make(progress=progress, kept=trained, made=show)
        return self._answer(result)

    def _answer(self, result: "Report | Redone") -> Answer:
        """Write the page of what was made and is printed already, and answer it."""
        from obygaze_models.report import Report, document

        content: object
        if isinstance(result, Report):
            write_page(result, self.html, force=self.force)
            content = document(result)
            index = ""
            remarks = []
        else:
            several = len(result.reports) > 1
            write_page(result.reports, self.html, TITLE if several else "", force=self.force)
            content = [{"name": report.name, **document(report)} for report in result.reports]
            index = str(self.path / "index.md") if several else ""
            remarks = [*result.notes]
        if self.out:
            remarks.append(f"kept in {self.out}")
        if self.json:
            return Answer(content, remarks=remarks)
        return Answer(None, index, remarks)

    def finish(self, report: "Report") -> Answer:
        """Write a report where it is asked for; answer it, and where it is."""
        from obygaze_models.report import write_beside

        if not self.beside:
            return finish(report, self)
        write_beside(report, self.path.with_suffix(""), SUFFIXES)
        if self.figure:
            report.pictures[0].draw(self.figure)
        return replace(
            finish(report, replace(self, out=None)), remarks=[f"kept in {self.out}", *report.remarks]
        )
