"""`obygaze model ls, card, verify, push, pull`: share models in lists."""

from pathlib import Path
from typing import Any

import click

from obygaze_features.door import read_text
from obygaze_features.options import LOCAL, PROBLEMS_FOUND, Result, json_option, prints_result, show, site
from obygaze_features.screen import progress_bar, table

zoo_option = click.option(
    "--zoo",
    metavar="PLACE",
    **site("ZOO"),
    help="Folder or URL (http, https, s3, hf) with the list zoo.toml.  [default: the models shipped]",
)


@click.command("ls")
@zoo_option
@prints_result
def ls(zoo: str | None) -> Result:
    """List the models of a list, with how well each did on films left out.

    \b
    Examples:
      obygaze model ls
      obygaze model ls --zoo https://lab.example.org/models
      obygaze model ls --zoo hf://datasets/lab/models --json
    """
    import msgspec

    from obygaze_models.persistence.sharing import TITLES
    from obygaze_models.persistence.zoo_list import Score, default_zoo, read_zoo

    def shown(score: Score) -> str:
        held = "" if score.low is None else f" [{score.low:.2f}, {score.high:.2f}]"
        return f"{TITLES.get(score.metric, score.metric)} {score.value:.2f}{held}"

    place = zoo or default_zoo()
    entries = read_zoo(place)
    rows = []
    for entry in entries:
        score = shown(entry.scores[0]) if entry.scores else ""
        reads = " + ".join(entry.reads)
        rows.append((entry.name, entry.version, entry.task, reads, score, entry.licence))
    text = table(rows, ("model", "version", "task", "reads", "films left out, 95 % retrained", "licence"))
    document: dict[str, Any] = {"zoo": place, "models": msgspec.to_builtins(entries)}
    return document, text if rows else f"{place}: no model yet"


@click.command()
@click.argument("model")
@zoo_option
@prints_result
def card(model: str, zoo: str | None) -> Result:
    """Print the page of MODEL: a NAME or NAME@VERSION of a list, a file, or a URL of one.

    It says what the model answers, how well and on whom it fails, what it must not be used for, what it was
    trained on and how, and how to cite it. --json gives the file's card with the shapes of its arrays.
    Nothing in the file is executed.

    \b
    Examples:
      obygaze model card words-s
      obygaze model card words-s@1.0.0 --zoo /share/models > words-s.md
      obygaze model card run/pcbm_lr.model
      obygaze model card https://lab.example.org/pcbm_lr.model --json
    """
    from msgspec import structs

    from obygaze_models.persistence.sharing import describe_model

    file, page = describe_model(model, zoo)
    arrays = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape)}
        for name, array in {**file.arrays, **file.about}.items()
    }
    return {**structs.asdict(file.card), "arrays": arrays}, page.rstrip("\n")


@click.command()
@zoo_option
@json_option
def verify(zoo: str | None, as_json: bool) -> None:
    """Read every model of a list: its digest, its file, and whether the list says what its card says.

    Exits with 3 if a model is not what is listed.

    \b
    Examples:
      obygaze model verify
      obygaze model verify --zoo /share/models --json
    """
    from obygaze_models.persistence.sharing import verify_models

    found = verify_models(zoo)
    document = [{"model": each.entry.label, "problem": each.problem} for each in found]
    lines = [f"{each.entry.label}: {each.problem or 'as listed'}" for each in found]
    show({"models": document}, lambda: "\n".join(lines) or "no model yet", as_json=as_json)
    if any(each.problem for each in found):
        click.get_current_context().exit(PROBLEMS_FOUND)


@click.command()
@click.argument("model")
@click.argument("destination", metavar="ZOO")
@click.option("--name", required=True, help="Name of the model in the list.")
@click.option(
    "--version", default="1.0.0", show_default=True, metavar="X.Y.Z", help="A new one for each file."
)
@click.option("--notes", type=LOCAL, help="Markdown file with what its makers say of it, first on its page.")
@prints_result
def push(model: str, destination: str, name: str, version: str, notes: Path | None) -> Result:
    """Put the file MODEL into the list ZOO: a folder, s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME.

    The model's page is written beside it. A model without a licence is refused, and a version that is there
    is never replaced.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --save linear \\
          --licence CC-BY-4.0 --out run
      obygaze model push run/linear.model /share/models --name hn-linear
      obygaze model push run/linear.model hf://datasets/lab/models \\
          --name hn-linear --version 1.1.0 --notes limits.md
    """
    from obygaze_models.persistence.sharing import push_model

    said = "" if notes is None else read_text(notes)
    entry = push_model(model, destination, name, version, notes=said)
    document = {"model": entry.label, "file": entry.file, "sha256": entry.sha256, "zoo": destination}
    return document, f"{entry.label} in {destination}: {entry.file}, {entry.octets} bytes, {entry.sha256}"


@click.command()
@click.argument("name")
@click.argument("folder", type=LOCAL, default="models")
@zoo_option
@prints_result
def pull(name: str, folder: Path, zoo: str | None) -> Result:
    """Copy the model NAME or NAME@VERSION of a list into FOLDER (default: models).

    The file is checked against its digest; a stopped copy resumes.

    \b
    Examples:
      obygaze model pull words-s
      obygaze model pull hn-linear@1.1.0 models \\
          --zoo https://lab.example.org/models
    """
    from obygaze_models.persistence.sharing import pull_model

    with progress_bar("pull", "B", scaled=True) as progress:
        path = pull_model(name, folder, zoo=zoo, progress=progress)
    return {"file": str(path)}, str(path)
