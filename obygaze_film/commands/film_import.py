"""`obygaze film import`: take annotations of other tools' files into a scored film's ledger."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from obygaze_features.commands import roles_of_tiers
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.signatures import argument, command, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obygaze_film.workspace import importing


@command("import")
def import_(
    files: Annotated[tuple[Path, ...], argument(metavar="FILE...")],
    *,
    into: Annotated[Path, option("Folder of the scored film, or of several.", metavar="FOLDER")],
    annotator: Annotated[str, option("Name of the annotator, for files that name none.")] = "",
    blind: Annotated[bool, option("Declare that annotators did not see the model's score.")] = False,
    in_sight: Annotated[bool, option("Declare that annotators saw the model's score.")] = False,
    tiers: Annotated[
        tuple[str, ...],
        option(
            "Read only the tiers named so, as levels, concepts or labels of both; repeatable. See 'manifest "
            "import spans --help'.",
            name="tier",
            metavar="NAME=levels|concepts|labels",
        ),
    ] = (),
    codebook: Annotated[
        Path | None,
        option(
            "Codebook file of the levels.  [default: the codebook in the film's ledger, first one of the "
            "name of the model's, else the model's if it is built in]"
        ),
    ] = None,
) -> Answer:
    """Import annotations into the ledger of a scored film, where `film open` keeps people's decisions.

    FILEs are exports of `obygaze film export --people` that were changed in ELAN, Praat or a spreadsheet, or
    any files that `obygaze manifest import spans` reads. Annotations become decisions of their annotators.

    \b
    An annotation that        what happens
    is new                    it becomes a decision
    was changed               it replaces its annotator's own decision
    says the same             nothing changes
    was removed from a file   nothing changes: its decision stays
    was a blind judgement,    the blind one stays, and the changed one
    changed in sight of       is added beside it
    the model's scores

    A file that is imported twice changes nothing. If a tier does not say whether the model's score was in
    sight, give --blind or --in-sight.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 3 done, but annotations were left
    out, or there were none.

    \b
    Examples:
      obygaze film export scored --as eaf --people --out film.eaf
      obygaze film import film.eaf --into scored
      obygaze film import own.eaf --into scored --annotator AB --blind \\
          --tier rating=levels
    """
    from obygaze_film.timeline import found_films
    from obygaze_film.workspace.decisions import Decisions, codebook_in_ledger, codebook_of
    from obygaze_film.workspace.importing import notice_on_unused_declaration, read_annotations

    is_blind = _is_declared_blind(blind=blind, in_sight=in_sight)
    roles = roles_of_tiers(tiers)
    films = found_films([into])
    imported = _Imported()
    for folder, film in films.items():
        name_of_models_codebook = film.model().codebook
        if codebook:
            book = codebook_of(name_of_models_codebook, codebook)
        else:
            book = codebook_in_ledger(folder, name_of_models_codebook)
            if book.name != name_of_models_codebook:
                imported.notices.append(
                    f"{film.movie}: labels read under {book.name!r}, the codebook of the film's ledger; the "
                    f"model's is {name_of_models_codebook!r} (--codebook FILE gives another)"
                )
        decisions = Decisions(folder, film, book)
        for path in files:
            if len(films) == 1:
                file = read_annotations(path, book, movie=film.movie, tiers=roles, annotator=annotator)
            else:
                # The file names the film of each annotation. It is read anew by the codebook of each film.
                file = read_annotations(path, book, movie="", tiers=roles, annotator=annotator)
                file = file.of_film(film.movie)
            results = decisions.import_annotations(file, is_blind=is_blind)
            unused_declaration = notice_on_unused_declaration(file, is_blind)
            if unused_declaration:
                imported.notices.append(unused_declaration)
            imported.add(path, film.movie, file, results)
        decisions.require_tables()
        imported.notices += decisions.notices
    if not imported.documents:
        imported.notices.append("no annotation of these films is in the files")
    has_problems = imported.n_left_out > 0 or not imported.documents
    return Answer(
        {"annotators": imported.documents},
        "\n".join(imported.lines),
        list(dict.fromkeys(imported.notices)),
        code=PROBLEMS_FOUND if has_problems else 0,
    )


def _is_declared_blind(*, blind: bool, in_sight: bool) -> bool | None:
    """Return whether --blind (True) or --in-sight (False) declares how all annotators judged.

    None if neither is given: the names of the tiers then say it. To judge blindly is to judge without seeing
    the model's score.
    """
    if blind and in_sight:
        raise click.UsageError("--blind and --in-sight exclude each other")
    if blind:
        return True
    return False if in_sight else None


@dataclass
class _Imported:
    """What was imported, as the command prints it.

    Attributes
    ----------
    lines : list of str
    notices : list of str
    documents : list of dict
        For JSON output, one of each file and annotator.
    n_left_out : int
        Annotations that were left out.
    """

    lines: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    documents: list[dict[str, object]] = field(default_factory=list)
    n_left_out: int = 0

    def add(
        self,
        path: Path,
        movie: str,
        file: "importing.Annotated",
        results: "Sequence[importing.AnnotatorResult]",
    ) -> None:
        """Add what was imported of a file for one film to the lines, notices and documents that are printed.

        `results` has a result for each annotator. Annotations that were left out are counted.
        """
        from obygaze_film.workspace.importing import import_notices, summary_lines

        self.lines += summary_lines(file, results)
        self.notices += [*file.notices, *import_notices(file, results)]
        for result in results:
            self.n_left_out += result.left_out.total()
            self.documents.append({"file": str(path), "movie": movie, **result.document})
