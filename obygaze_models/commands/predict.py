"""`obygaze predict`: a saved model on the features of a store."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from obygaze_models.experiments.predict import Scored
    from obygaze_models.persistence import Card


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("store", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write a CSV file in place of the printed table."
)
@click.option("--force", is_flag=True, help="Replace an earlier --out.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def predict(model: Path, store: Path, out: Path | None, force: bool, as_json: bool) -> None:
    """Score the clips of STORE with MODEL, a file that `obygaze evaluate --save` left.

    The store's features must have been made as those that the model was trained on: the same backbone,
    weights, preparation, sampling, software. Clips unlike any that it was trained on are counted. What a
    model file holds is never executed.

    \b
    Examples:
      obygaze evaluate stores/films films.csv --task hn_s --save models/films-hn_s.model
      obygaze predict models/films-hn_s.model stores/more-films
      obygaze predict models/films-hn_s.model stores/more-films --out scores.csv
    """
    import json

    from tabulate import tabulate

    from obygaze_features.store import open_store
    from obygaze_models.experiments.predict import document, write_scores
    from obygaze_models.experiments.predict import predict as score
    from obygaze_models.persistence import ModelError, read_model

    if model.is_dir():
        raise ModelError(f"{model} is a folder, not the file of a model; the order is MODEL STORE")
    if out is not None and out.exists() and not force:
        raise ModelError(f"{out} exists already: give --force to replace it, or another --out")
    found = read_model(model)
    opened = open_store(store)
    scored = score(found, opened)
    card, table = found.card, scored.table
    if out is not None:
        write_scores(scored, out)
    if as_json:
        click.echo(json.dumps(document(scored, card, opened), indent=2, ensure_ascii=False, allow_nan=False))
    elif out is None:
        click.echo(tabulate(table.to_dict("list"), headers="keys", tablefmt="simple", floatfmt=".4f"))
    for notice in _notices(scored, card):
        click.echo(notice, err=True)
    if out is not None:
        click.echo(f"scores kept in {out}", err=True)


def _notices(scored: "Scored", card: "Card") -> list[str]:
    """Say what was trained and called, and which scores are not to be relied on."""
    table = scored.table
    trained = f"{card.n_clips} clips of {len(card.movies)} movies ({card.label_policy} labels)"
    called = f"{int(table['called'].sum())} of {len(table)} clips called positive"
    notices = [f"{card.estimator} trained for {card.train_task} on {trained}: {called}"]
    seen = int(table["movie_trained_on"].sum())
    if seen:
        notices.append(
            f"{seen} clips are of movies that the model was trained on: their scores are no predictions"
        )
    if scored.n_partial:
        notices.append(f"{scored.n_partial} clips are partial: a part of their video could not be read")
    if scored.n_beyond:
        notices.append(
            f"{scored.n_beyond} of {len(table)} clips lie farther from the mean of the clips trained on than "
            "any of these did: what the model says of them is a guess"
        )
    elif scored.n_beyond is None:
        notices.append("an older model file: it doesn't say how far the clips that it was trained on reach")
    return notices + [f"excluded {clip.clip_id}: {clip.reason}" for clip in scored.excluded]
