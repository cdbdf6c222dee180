"""`obygaze model ls`, `card`, `verify`, `push`, `pull`: lists of models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from obygaze_features.options import LOCAL, PROBLEMS_FOUND, Answer
from obygaze_features.screen import progress_bar, table
from obygaze_features.signatures import argument, command, option
from obygaze_features.untrusted import read_text
from obygaze_models.commands.shared_options import Zoo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from obygaze_models.persistence.zoo_list import Entry, Score

COLUMNS = ("model", "version", "task", "reads", "films left out, 95 % retrained", "licence")
"""Headings of the table of a list of models."""


@command()
def ls(*, zoo: Zoo = None) -> Answer:
    """List the models of a list (zoo.toml), with their scores on films that were left out of training.

    \b
    Examples:
      obygaze model ls
      obygaze model ls --zoo https://lab.example.org/models
      obygaze model ls --zoo hf://datasets/lab/models --json
    """
    import msgspec

    from obygaze_models.persistence.zoo_list import default_zoo, read_zoo

    place = zoo or default_zoo()
    entries = read_zoo(place)
    document: dict[str, Any] = {"zoo": place, "models": msgspec.to_builtins(entries)}
    return Answer(document, _models_table(entries) if entries else f"{place}: no model yet")


def _models_table(entries: "Sequence[Entry]") -> str:
    """Format the table of a list of models, a row for each, with the first of its scores."""
    rows = []
    for entry in entries:
        score = _format_score(entry.scores[0]) if entry.scores else ""
        reads = " + ".join(entry.reads)
        rows.append((entry.name, entry.version, entry.task, reads, score, entry.licence))
    return table(rows, COLUMNS)


def _format_score(score: "Score") -> str:
    """Format a score of a model in a list, such as "AUC within a film 0.71 [0.62, 0.79]".

    Without an interval it has only the title of the metric and the value.
    """
    from obygaze_models.persistence.sharing import TITLES

    title = TITLES.get(score.metric, score.metric)
    if score.low is None:
        return f"{title} {score.value:.2f}"
    return f"{title} {score.value:.2f} [{score.low:.2f}, {score.high:.2f}]"


@command()
def card(
    model: Annotated[str, argument(type=click.STRING)],
    *,
    zoo: Zoo = None,
) -> Answer:
    """Print the page of MODEL: a NAME or NAME@VERSION of a list, a file, or the URL of a file.

    The page says what the model answers, how well it does, on whom it fails, what it must not be used for,
    on what and how it was trained, and how to cite it. --json prints the metadata in the file (its card)
    and the shapes of its arrays. Nothing in the file is executed.

    \b
    Examples:
      obygaze model card words-s
      obygaze model card words-s@1.0.0 --zoo /share/models > words-s.md
      obygaze model card run/pcbm_lr.model
      obygaze model card https://lab.example.org/pcbm_lr.model --json
    """
    from msgspec import structs

    from obygaze_models.persistence.sharing import describe_model

    file, markdown_page = describe_model(model, zoo)
    # The arrays of the estimator, and the others: of its calibration and of its training clips.
    all_arrays = {**file.arrays, **file.other_arrays}
    shapes = {}
    for name, array in all_arrays.items():
        shapes[name] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    return Answer({**structs.asdict(file.card), "arrays": shapes}, markdown_page.rstrip("\n"))


@command()
def verify(*, zoo: Zoo = None) -> Answer:
    """Check every model of a list: its digest, its file, and that the list agrees with its card.

    The card is the metadata in a model's file. Exit with 3 if a model is not as listed.

    \b
    Examples:
      obygaze model verify
      obygaze model verify --zoo /share/models --json
    """
    from obygaze_models.persistence.sharing import verify_models

    lines = []
    records = []
    exit_code = 0
    for entry, problem in verify_models(zoo):
        lines.append(f"{entry.label}: {problem or 'as listed'}")
        records.append({"model": entry.label, "problem": problem})
        if problem:
            exit_code = PROBLEMS_FOUND
    return Answer({"models": records}, "\n".join(lines) or "no model yet", code=exit_code)


@command()
def push(
    model: Annotated[str, argument(type=click.STRING)],
    destination: Annotated[str, argument(type=click.STRING, metavar="ZOO")],
    *,
    name: Annotated[str, option("Name of the model in the list.")],
    version: Annotated[
        str, option("Version of the model in the list; a version can be used only once.", metavar="X.Y.Z")
    ] = "1.0.0",
    notes: Annotated[
        Path | None,
        option("Markdown file with the makers' notes, which are put first on the model's page.", type=LOCAL),
    ] = None,
) -> Answer:
    """Put the file MODEL into the list ZOO: a folder, s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME.

    The model's page is written beside the file. A model without a licence is refused. A version that is
    already in the list is never replaced.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --save linear \\
          --licence CC-BY-4.0 --out run
      obygaze model push run/linear.model /share/models --name hn-linear
      obygaze model push run/linear.model hf://datasets/lab/models \\
          --name hn-linear --version 1.1.0 --notes limits.md
    """
    from obygaze_models.persistence.sharing import push_model

    makers_notes = "" if notes is None else read_text(notes)
    entry = push_model(model, destination, name, version, notes=makers_notes)
    document = {"model": entry.label, "file": entry.file, "sha256": entry.sha256, "zoo": destination}
    summary = f"{entry.label} in {destination}: {entry.file}, {entry.octets} bytes, {entry.sha256}"
    return Answer(document, summary)


@command()
def pull(
    name: Annotated[str, argument(type=click.STRING)],
    folder: Annotated[Path, argument(type=LOCAL)] = Path("models"),
    *,
    zoo: Zoo = None,
) -> Answer:
    """Copy the model NAME or NAME@VERSION of a list into FOLDER (default: models).

    The file is checked against its digest. If the copy was stopped, the same command resumes it.

    \b
    Examples:
      obygaze model pull words-s
      obygaze model pull hn-linear@1.1.0 models \\
          --zoo https://lab.example.org/models
    """
    from obygaze_models.persistence.sharing import pull_model

    with progress_bar("pull", "B", scaled=True) as progress:
        path = pull_model(name, folder, zoo=zoo, progress=progress)
    return Answer({"file": str(path)}, str(path))
