"""`obygaze predict`, `explain`, `localise`: apply a model, explain a decision, look at its frames."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features import manifest as manifests
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.options import FILE, Answer
from obygaze_features.screen import probability, table
from obygaze_features.signatures import Json, argument, command, option
from obygaze_features.text import counted, rounded
from obygaze_models.commands.shared_options import Zoo

if TYPE_CHECKING:
    from obygaze_models.evaluation.localise import Localisation
    from obygaze_models.prediction.predict import Predicted

DECIMALS = {"start_s": 2, "logit": 3, "unlike": 3}
"""Column of a table of predictions -> how many decimals of its numbers are shown."""

PROBABILITIES = frozenset({"p", "p_low", "p_high"})
"""Columns of probabilities, which are written as `obygaze explain` writes them."""

SHOWN_COLUMNS = ("clip_id", "start_s", "logit", "p", "p_low", "p_high", "called", "unlike", "flags")
"""Columns of predictions that fit a terminal; the CSV file has all columns."""

ModelFile = Annotated[str, argument(type=click.STRING)]
Stores = Annotated[tuple[str, ...], argument(type=click.STRING, metavar="STORE...")]


@command()
def predict(
    model: ModelFile,
    stores: Stores,
    *,
    manifest: Annotated[
        Path | None, option("Manifest of the clips; fills the column video, which stores do not have.")
    ] = None,
    frames: Annotated[
        Path | None,
        option(
            "Also write a CSV file with one row per frame: its time, attention weight, and the "
            "concepts' values.",
            type=FILE,
        ),
    ] = None,
    zoo: Zoo = None,
    out: Annotated[
        Path | None, option("Write the scores to this CSV file instead of printing a table.", type=FILE)
    ] = None,
    force: Annotated[bool, option("Replace an earlier --out or --frames.")] = False,
    json: Json = False,
) -> Answer:
    """Score the clips of stores with MODEL, which `obygaze evaluate --save` saved.

    MODEL is a file, its URL, or a NAME or NAME@VERSION in a list of models (`obygaze model ls`).

    For each clip, report a logit, a calibrated probability with its 80 % band (the uncertainty of the
    calibration), the class called, and 'unlike', the share of training clips that are nearer to the
    training mean than this clip. If this share is above 99 %, the clip is flagged and gets no probability.
    For a model of concepts, also report each concept's value, probability and contribution to the logit.

    The stores' features must have been made like those that the model was trained on: the same backbone,
    weights, preparation, sampling and software. Nothing in a model file is executed.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --test enhn_s \\
          --save pcbm_lr
      obygaze predict run/pcbm_lr.model stores/more-films --out scores.csv
      obygaze predict run/pcbm_lr.model stores/a stores/b --json
      obygaze predict run/attention.model stores/more-films --frames frames.csv
      obygaze predict https://lab.example.org/pcbm_lr.model stores/more-films
      obygaze predict hn-linear@1.0.0 stores/more-films --zoo /share/models
    """
    from obygaze_models.commands.predict_remarks import manifest_remarks, remarks, written_remark
    from obygaze_models.prediction.predict import document, refuse_wrong_order

    refuse_wrong_order(model, stores)
    refuse_existing(out, frames, force=force)
    loaded = om.load_model(model, zoo=zoo)
    opened = [of.open_store(store) for store in stores]
    clips = None if manifest is None else manifests.read_manifest(manifest)

    # All is computed before anything is written.
    predicted = om.predict(loaded, opened, clips, progress=True)
    frame_table = None if frames is None else om.predict_frames(loaded, opened)

    lines = remarks(predicted, loaded, opened)
    if clips is not None:
        lines += manifest_remarks(predicted, opened, clips)
    if out is not None:
        predicted.write(out)
        lines.append(written_remark(predicted, loaded, str(out)))
    if frames is not None and frame_table is not None:
        write_whole(frames, str(frame_table.to_csv(index=False, lineterminator="\n")))
        lines.append(f"{counted(len(frame_table), 'frame')} in {frames}")
    # Scores that were written to a file are not printed as well, unless --json asks for them.
    prints_scores = out is None or json
    if not prints_scores:
        return Answer(document=None, remarks=lines)
    # The table is formatted only if it is shown, which it is not with --json.
    return Answer(document(predicted, loaded, opened), lambda: _predictions_table(predicted), lines)


def _predictions_table(predicted: "Predicted") -> str:
    """Format the predictions as a table, with the columns that fit a terminal."""
    columns = []
    for name in SHOWN_COLUMNS:
        values = predicted.table[name].astype(object)
        columns.append([_format_cell(name, value) for value in values])
    rows = list(zip(*columns, strict=True))
    # Numbers are aligned to the right: all columns but the first and the last.
    return table(rows, SHOWN_COLUMNS, right=range(1, len(SHOWN_COLUMNS) - 1))


def _format_cell(column: str, value: Any) -> str:
    """Format a value of a column of predictions; "" for NaN.

    A probability that would be 0.00 is "<0.01"; other numbers have the decimals of their column (`DECIMALS`).
    """
    import pandas as pd

    if pd.isna(value):
        return ""
    if column in PROBABILITIES:
        return probability(value, "<")
    if column in DECIMALS:
        return rounded(value, DECIMALS[column])
    return str(value)


@command()
def explain(
    model: ModelFile,
    stores: Stores,
    *,
    clip_id: Annotated[str, option("Id of the clip.", name="clip")],
    settings: Annotated[
        tuple[str, ...],
        option(
            "Set a concept's value to this quantile (0 to 1) of its values in the training clips, "
            "and show how the decision changes; repeatable.",
            name="set",
            metavar="CONCEPT=QUANTILE",
        ),
    ] = (),
) -> Answer:
    """Explain the decision of MODEL, which has concepts, attention or several modalities, on one clip.

    Print the decision. For a model of concepts, also print each concept's contribution to the logit, and
    the probability if only that concept were low or high among the training clips. If the store has frames,
    also print the time of each frame, with the concepts' probabilities or with its attention weight and
    contribution. For a model of several modalities, print what each modality contributes.

    \b
    Examples:
      obygaze explain run/pcbm_lr.model stores/more-films --clip tt9000007-003
      obygaze explain run/pcbm_lr.model stores/more-films \\
          --clip tt9000007-003 --set Body=0.95
      obygaze explain run/attention.model stores/more-films --clip tt9000007-003
    """
    from obygaze_models.prediction.explain import describe, parse_settings
    from obygaze_models.prediction.explain import explain as explain_clip
    from obygaze_models.prediction.predict import refuse_wrong_order
    from obygaze_models.prediction.predict import summary as summarise_card

    refuse_wrong_order(model, stores)
    quantiles = parse_settings(settings)
    loaded = om.load_model(model)
    explained = explain_clip(loaded, [of.open_store(store) for store in stores], clip_id, quantiles)
    document = {"model": summarise_card(loaded.card), **asdict(explained)}
    return Answer(document, describe(explained, loaded))


@command()
def localise(
    frames: Annotated[Path, argument()],
    manifest: Annotated[Path, argument()],
    *,
    positive: Annotated[
        tuple[str, ...], option("Level whose segments are to be found; repeatable.", metavar="LEVEL")
    ] = (),
    concept: Annotated[
        str | None, option("Concept whose segments are to be found, instead of --positive.")
    ] = None,
    score: Annotated[
        str,
        option(
            "Column of FRAMES by which frames are ranked, such as weight, contribution or Body_value.",
            metavar="COLUMN",
        ),
    ] = "weight",
) -> Answer:
    """Measure how well a model's scores of frames find the segments that people marked.

    FRAMES is a table that `obygaze predict --frames` wrote, MANIFEST has the segments. Only clips with
    frames both inside and outside of segments are measured. Two measures are printed for each annotator, as
    means over movies: the average precision of the ranking of a clip's frames, and pointing, the share of
    clips whose highest frame lies in a segment. An annotator who saw a model's score in a film (column
    seen_score) is left out of this film.

    Chance is the mean if a clip gets the scores of the movie's other clips. p tests whether the mean
    differs from chance, by circular shifts of the clips' scores within each movie. --json also has the
    numbers of each movie.

    \b
    Examples:
      obygaze predict run/attention.model stores/more --frames frames.csv
      obygaze localise frames.csv marked.csv --positive S
      obygaze localise concepts.csv marked.csv --concept Body --score Body_value
    """
    from obygaze_models.commands.annotation_tables import in_sight
    from obygaze_models.evaluation.localise import SEED, marked_segments, read_frames, trained_on
    from obygaze_models.evaluation.predictions import records

    scored = read_frames(frames)
    # Films are named in the manifest as in the table of frames, whatever the spelling there.
    clips = manifests.read_manifest(manifest).spelled_as(scored["movie"].unique())
    trained_films = trained_on(scored)  # films with the flag in the table of frames
    results: dict[str, Localisation] = {}
    document: dict[str, Any] = {}
    remarks = []
    for annotator, segments in marked_segments(clips, positive, concept).items():
        result = om.localise(scored, segments, score)
        results[annotator] = result
        document[annotator] = {
            "trained_on": trained_films,
            "measures": records(result.pooled),
            "movies": records(result.by_movie),
            "left_out": result.n_left_out,
            "without_scores": result.n_without_scores,
            "n_shifts": result.n_shifts,
            "seed": SEED,
        }
        remarks.append(f"{annotator}: {counted(result.n_left_out, 'clip')} without a boundary left out")
    remarks += in_sight(manifests.blind_labels(clips, whole_films=True), whole_films=True)
    n_without_scores = next(iter(results.values())).n_without_scores  # the same for all annotators
    if n_without_scores:
        left_out = counted(n_without_scores, "clip")
        remarks.append(f"{left_out} left out, of whose frames none has a value of {score}")
    if trained_films:
        films = ", ".join(trained_films)
        remarks.append(f"the model was trained on {films}: what it says of their frames is no prediction")
    return Answer(document, "\n".join(_localisation_lines(results)), remarks)


def _localisation_lines(results: "Mapping[str, Localisation]") -> list[str]:
    """Format the table of how well frames are ranked, followed by lines that explain its columns.

    `results` has the result for each annotator's segments.
    """
    from obygaze_models.evaluation.localise import SEED

    # The number of shifts is the same for all annotators.
    n_shifts = next(iter(results.values())).n_shifts
    explanation = [
        "above chance: the mean is larger than chance, and p is at most .05",
        "chance: mean with the scores of the movie's other clips; blank where there are none",
        f"p: two-sided, {n_shifts} shifts of the clips' scores within movies (seed {SEED})",
        "95 %: interval of the mean over movies like these, not a test against chance",
    ]
    return [*_localisation_table(results), "", *explanation]


def _localisation_table(results: "Mapping[str, Localisation]") -> list[str]:
    """Format the table of how well frames are ranked, with a row per annotator and measure.

    A cell of an interval or of chance is blank if there is none.
    """
    from obygaze_models.evaluation.predictions import records

    rows = []
    for annotator, result in results.items():
        n_movies = len(result.by_movie)
        n_clips = int(result.by_movie["n_clips"].sum())
        for record in records(result.pooled):
            measure = record["measure"].replace("_", " ")
            value = f"{record['value']:.3f}"
            interval = ""
            if record["low"] is not None:
                interval = f"[{record['low']:.3f}, {record['high']:.3f}]"
            chance = ""
            if record["chance"] is not None:
                chance = f"{record['chance']:.3f}"
            p = f"{record['p']:.3f}"
            rows.append([annotator, measure, value, interval, chance, p, n_movies, n_clips])
    headings = ["annotator", "measure", "mean", "95 %", "chance", "p", "movies", "clips"]
    return table(rows, headings, right=range(2, len(headings))).split("\n")
