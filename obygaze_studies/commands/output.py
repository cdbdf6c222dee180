"""Define the output options of the studies' commands, and write and print their reports."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from obygaze_features.io import refuse_existing
from obygaze_features.options import FILE, Answer, NewFile, Output
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import option
from obygaze_models.commands import finish as finish_report
from obygaze_models.commands import write_page

if TYPE_CHECKING:
    from obygaze_models.report import Report
    from obygaze_studies.obygaze12.paper import Redone
    from obygaze_studies.unfinished import Study

TITLE = "Tores et al., CVPR 2024, reproduced"
"""Title of a page with several tables."""

SUFFIXES = (".csv", ".json", ".md")
"""Endings of the files that an audit writes; --out names the first."""


class EndingPath(NewFile):
    """Parameter type of a file whose name must have one of some endings.

    Parameters
    ----------
    endings
        The allowed endings.
    message_end
        End of the message about another ending, after the list of the allowed ones.
    """

    def __init__(self, *endings: str, message_end: str = "") -> None:
        """Keep the allowed endings, and the end of the error message."""
        super().__init__(dir_okay=False, path_type=Path)
        self.endings = endings
        self.message_end = message_end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the value to a path; fail if its ending is not allowed."""
        if Path(value).suffix.lower() not in self.endings:
            *first_endings, last = self.endings
            allowed = f"{', '.join(first_endings)} or {last}" if first_endings else last
            self.fail(f"'{value}' should end in {allowed}{self.message_end}", param, ctx)
        return super().convert(value, param, ctx)


PICTURE = EndingPath(".pdf", ".png", ".svg")
CSV = EndingPath(SUFFIXES[0], message_end=f"; {' and '.join(SUFFIXES[1:])} files go beside it")

Html = Annotated[
    Path | None,
    option(
        "Also write the results to this file as a page; it needs no other file and no network.", type=FILE
    ),
]
Replace = Annotated[bool, option("Replace existing files.")]


@dataclass(frozen=True)
class ReportOutput(Output):
    """The options that say where a report goes, and the methods that write and print it.

    Attributes
    ----------
    figure
        File of the figure.
    beside
        Whether `out` is a CSV file, with the other formats in files of the same name; otherwise it is a
        folder.
    """

    figure: Path | None = None
    beside: bool = False

    def check(self, *other_files: Path | None) -> None:
        """Raise an error before the work starts if a file would be replaced without --force.

        Parameters
        ----------
        other_files
            Further files that the command will write; None for one that is not asked for.
        """
        from obygaze_models.report import check_folder

        files = [self.figure, self.html, *other_files]
        if self.out and self.beside:
            files += [self.out.with_suffix(suffix) for suffix in SUFFIXES]
        elif self.out:
            check_folder(self.out, force=self.force)
        refuse_existing(*files, force=self.force)
        if self.figure:
            # Raises an error before the work starts if the extra `figures` is not installed.
            import matplotlib as _  # noqa: F401, ICN001

    def run_study(self, prepare: Callable[[], "Study"]) -> Answer:
        """Make the tables of a study that takes long, and return its results as the command's answer.

        Each table is printed and written as soon as it is made; the HTML page is written at the end.

        Parameters
        ----------
        prepare
            Reads the inputs and returns the study; called after the check of the output files.
        """
        from obygaze_studies.unfinished import TRAINED_FOLDER, unfinished_folder

        self.check()
        study = prepare()
        for notice in study.notices:
            click.echo(notice, err=True)

        # Without --out there is no folder: nothing is kept, and an interrupted study begins anew.
        unfinished: AbstractContextManager[Path | None] = nullcontext()
        if self.out:
            unfinished = unfinished_folder(self.out, study.inputs, force=self.force)
        with unfinished as folder, progress_bar("training", "model") as progress:
            result = study.make(
                progress=progress,
                results_folder=folder / TRAINED_FOLDER if folder else None,
                on_report=partial(self._show_report, folder),
            )
        return self._answer(result)

    def _show_report(
        self, folder: Path | None, report: "Report", full_report: "Report | None" = None
    ) -> None:
        """Print a report, and write it to a folder, if there is one.

        If the report is a part of `full_report`, the part is printed and the full report is written.
        """
        from obygaze_models.report import plain, write_report

        if folder is not None:
            write_report(full_report or report, folder)
        if not self.json:
            click.echo(plain(report), nl=False)

    def _answer(self, result: "Report | Redone") -> Answer:
        """Write the HTML page of a study's reports, and return the command's answer.

        Each report was printed and written when it was made. So the answer has the reports only with --json,
        where nothing was printed. A study returns a single report, or (`Redone`) several of them with notes
        on those that were not made.
        """
        from obygaze_models.report import Report, document

        remark_on_folder = [f"kept in {self.out}"] if self.out else []
        if isinstance(result, Report):
            write_page(result, self.html, force=self.force)
            return Answer(document(result) if self.json else None, remarks=remark_on_folder)

        has_several = len(result.reports) > 1
        title_of_page = TITLE if has_several else ""  # a single report has a title of its own
        write_page(result.reports, self.html, title_of_page, force=self.force)
        remarks = [*result.notes, *remark_on_folder]
        if self.json:
            documents = [{"name": report.name, **document(report)} for report in result.reports]
            return Answer(documents, remarks=remarks)
        # Of several reports, the last line of the output names the file that lists them.
        last_line = str(self.path / "index.md") if has_several else ""
        return Answer(document=None, text=last_line, remarks=remarks)

    def finish(self, report: "Report") -> Answer:
        """Write a report to the files that the options name, and return the command's answer.

        The answer prints the report and names the files. Usually `finish_report` writes a folder with a file
        for each format. With `beside`, `out` is one of these files, and the others have the same name with
        other suffixes.
        """
        from obygaze_models.report import write_beside

        if not self.beside:
            return finish_report(report, self)
        write_beside(report, self.path.with_suffix(""), SUFFIXES)
        if self.figure:
            report.pictures[0].draw(self.figure)
        # Without `out`, so that `finish_report` does not write the report a second time, to a folder.
        answer = finish_report(report, replace(self, out=None))
        return replace(answer, remarks=[f"kept in {self.out}", *report.remarks])
