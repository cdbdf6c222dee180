"""`obygaze manifest assign`: who annotates what."""

from collections import Counter
from collections.abc import Sequence
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
    clips_in_round = manifests.write_manifest(assigned, out)

    # The names as `assign` writes them: é is one character, also if it was typed as e and an accent.
    names = [composed(annotator) for annotator in annotators]
    films_of_annotator = _films_in_order(clips_in_round, names)
    n_clips = Counter(clip.annotator for clip in clips_in_round)
    rows = []
    for annotator, films in films_of_annotator.items():
        rows.append([annotator, len(films), f"{n_clips[annotator]:,}", ", ".join(films)])
    shown = table(rows, ["annotator", "films", "clips", "in this order"], right=[1, 2])
    document = {"manifest": str(out), "films": films_of_annotator}
    return Answer(document, f"{shown}\n\n{out}: the round")


def _films_in_order(clips: "manifests.Manifest", annotators: Sequence[str]) -> dict[str, list[str]]:
    """Return annotator -> the films that they annotate, in their order.

    Parameters
    ----------
    clips
        The clips, with a row for each annotator of a clip, sorted by the order of the annotator's films.
    annotators
        Names of all annotators.
    """
    films_of_annotator: dict[str, list[str]] = {annotator: [] for annotator in annotators}
    for clip in clips:
        films = films_of_annotator[clip.annotator]
        if clip.movie not in films:
            films.append(clip.movie)
    return films_of_annotator
