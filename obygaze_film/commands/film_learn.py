"""`obygaze film learn`: train the model of scored films anew, with what people judged in them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import obygaze_features as of
import obygaze_film
from obygaze_features.io import NO_LICENCE, refuse_existing
from obygaze_features.options import PATH, Output, output
from obygaze_film.commands.film_score import folders, judged_option
from obygaze_models.commands import finish, read_inputs, under_policy

POLICIES = click.Choice(["raw", "paper", "released"])


@click.command()
@folders
@click.option("--manifest", type=PATH, required=True, help="Manifest of the corpus that the model is from.")
@click.option("--store", type=PATH, required=True, help="Store of the corpus.")
@click.option("--windows", type=PATH, multiple=True, help="Store of films' windows.  [default: found near]")
@judged_option
@click.option("--save", "key", metavar="MODEL", help="Model of the films to train.  [default: the first]")
@click.option("--policy", type=POLICIES, default="raw", help="Label policy of the corpus, as of `evaluate`.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed.")
@click.option("--licence", default=NO_LICENCE, help="Licence of the model, an SPDX expression.")
@output("Folder of the model, the joined manifest and both runs.", required=True, html=True, json=True)
def learn(
    folders: tuple[Path, ...],
    manifest: Path,
    store: Path,
    windows: tuple[Path, ...],
    judged: tuple[Path, ...],
    licence: str,
    output: Output,
    **how: Any,
) -> None:
    """Train the model of scored films anew, on its corpus and on what people judged in the films.

    Judgements (judgements.csv and passages.csv in the FOLDERs, and --judged) become clips with the features
    of the windows in them. The model is evaluated strictly before and after: a film is left out whole
    with its judgements, and those made in sight of the score are trained on and never tested. --out gets the
    model, manifest.csv (the corpus and the judged clips) and the runs `before` and `after`.

    \b
    Examples:
      obygaze film learn scored --manifest films.csv --store stores/films \\
          --out learnt
      obygaze film learn scored/* --manifest films.csv --store stores/films \\
          --judged blind.csv --save pcbm_lr --out learnt
    """
    from obygaze_features.screen import progress_bar
    from obygaze_film.learning import learning_report, stores_near
    from obygaze_film.scored_files import JUDGEMENTS, PASSAGES, judged_files
    from obygaze_film.timeline import found_films
    from obygaze_models.report import new_folder, write_report

    refuse_existing(output.html, force=output.force)
    films = found_films(folders)
    clips, (corpus,) = read_inputs(manifest, [store])
    files = judged_files(films, JUDGEMENTS, PASSAGES)
    imported = obygaze_film.import_judgements([*files, *judged], clips.root, clips.codebook)
    labelled, notices = under_policy(clips, how["policy"])
    stores = [of.open_store(path) for path in windows]
    stores += [found for folder, film in films.items() for found in stores_near(folder, film)]
    with new_folder(output.path, force=output.force) as folder:
        with progress_bar("training", "model") as progress:
            learnt = obygaze_film.learn_from_judgements(
                [*films.values()], imported.manifest, stores, labelled, corpus, progress=progress, **how
            )
        report = learning_report(replace(learnt, notes=(*imported.notices, *notices, *learnt.notes)))
        write_report(report, folder)
        name = learnt.write(folder, [*films.values()], stores, licence)
    finish(report, replace(output, out=None))
    kept = f"model kept in {output.path / name}; the films as it scores them: {output.path / 'scored'}"
    click.echo(kept, err=True)
