"""`obygaze film import`: take annotations of other tools' files into a scored film's ledger."""

from pathlib import Path
from typing import Annotated

import click

from obygaze_features.commands import roles_of_tiers
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.signatures import argument, command, option


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
            "Codebook file of the levels.  [default: the codebook in the film's ledger, else the model's if "
            "it is built in]"
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
    from obygaze_film.workspace.importing import import_notices, read_annotations, summary_lines

    if blind and in_sight:
        raise click.UsageError("--blind and --in-sight exclude each other")
    is_blind = None  # nothing is declared: each tier says how people judged
    if blind:
        is_blind = True
    elif in_sight:
        is_blind = False
    roles = roles_of_tiers(tiers)
    films = found_films([into])
    lines: list[str] = []
    notices: list[str] = []
    documents: list[dict[str, object]] = []
    n_left_out = 0
    for folder, film in films.items():
        name = film.model().codebook
        book = codebook_of(name, codebook) if codebook else codebook_in_ledger(folder, name)
        decisions = Decisions(folder, film, book)
        for path in files:
            if len(films) == 1:
                file = read_annotations(path, book, movie=film.movie, tiers=roles, annotator=annotator)
            else:  # the file names the film of each annotation
                file = read_annotations(path, book, movie="", tiers=roles, annotator=annotator)
                file = file.of_film(film.movie)
            results = decisions.import_annotations(file, is_blind=is_blind)
            lines += summary_lines(file, results)
            notices += [*file.notices, *import_notices(file, results)]
            for result in results:  # one for each annotator
                n_left_out += result.left_out.total()
                documents.append({"file": str(path), "movie": film.movie, **result.document})
        notices += decisions.notices
    if not documents:
        notices.append("no annotation of these films is in the files")
    code = PROBLEMS_FOUND if n_left_out or not documents else 0
    return Answer({"annotators": documents}, "\n".join(lines), list(dict.fromkeys(notices)), code)
