"""`obygaze manifest assign`: who annotates what."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import NewManifest
from obygaze_features.io import refuse_existing
from obygaze_features.options import Answer
from obygaze_features.screen import table
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import composed


@command()
def assign(
    manifest: Annotated[Path, argument()],
    *,
    annotators: Annotated[tuple[str, ...], option("Name of an annotator; repeatable.", name="annotator")],
    each: Annotated[int, option("Number of annotators of each film.", type=click.IntRange(1))] = 2,
    calibration: Annotated[
        int,
        option(
            "Number of films, drawn at random, that all annotators annotate (for calibration).",
            type=click.IntRange(0),
        ),
    ] = 0,
    seed: Annotated[int, option("Seed of the random draws.", type=click.IntRange(0))] = 0,
    out: NewManifest,
    force: Force = False,
) -> Answer:
    """Assign the films of MANIFEST to annotators.

    Annotators get about equal numbers of films, of about equal length in total, and pairs of annotators
    share about equally many films. The order of each annotator's films is drawn at random, with the films
    for calibration spread evenly among the others. The file written has a row for each annotator of each
    clip, without a level, and the columns calibration and order. The same seed gives the same rows.

    \b
    Examples:
      obygaze manifest assign clips.csv --annotator AB --annotator CD \\
          --annotator EF --annotator GH --each 2 --calibration 2 --out round.csv
    """
    refuse_existing(out, force=force)
    clips = manifests.read_manifest(manifest)
    assigned = manifests.assign(clips, annotators, each, calibration=calibration, seed=seed)
    written = manifests.write_manifest(assigned, out)
    n_clips = Counter(clip.annotator for clip in written)
    films_of_annotator: dict[str, list[str]] = {}
    rows = []
    for typed_name in annotators:
        annotator = composed(typed_name)
        movies = [clip.movie for clip in written if clip.annotator == annotator]
        films = list(dict.fromkeys(movies))  # in order, each once
        films_of_annotator[annotator] = films
        rows.append([annotator, len(films), f"{n_clips[annotator]:,}", ", ".join(films)])
    shown = table(rows, ["annotator", "films", "clips", "in this order"], right=[1, 2])
    document = {"manifest": str(out), "films": films_of_annotator}
    return Answer(document, f"{shown}\n\n{out}: the round")
