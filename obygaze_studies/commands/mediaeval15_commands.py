"""`obygaze task mediaeval15 labels | train | score | check`: MediaEval 2015 Affective Impact of Movies."""

from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import Answer
from obygaze_features.signatures import Json, argument, command, option
from obygaze_studies.commands.output import Html, Replace, ReportOutput


@command()
def labels(
    scores: Annotated[Path, argument()],
    *,
    out: Annotated[Path, option("Table to write.")],
    pivots: Annotated[
        Path | None, option("Table of judgements of clips without scores: clip, axis, pivot, above.")
    ] = None,
    force: Replace = False,
) -> Answer:
    """Convert valence and arousal scores to classes.

    SCORES is a table with columns clip, valence, arousal; others are kept. Scores in [-1, 1] below -0.15 are
    negative or calm, above 0.15 positive or active, the rest neutral. PIVOTS has one row per judgement: axis
    is valence or arousal, pivot low or high, above 0 or 1; three of each, the majority counts. A clip above
    the high pivot and not above the low is left out and reported.

    \b
    Examples:
      obygaze task mediaeval15 labels scores.csv --out clips.csv
      obygaze task mediaeval15 labels scores.csv --pivots judgements.csv \\
            --out clips.csv
    """
    from obygaze_studies.mediaeval15 import annotations

    return annotations.write_labels(scores, out, pivots=pivots, force=force)


@command()
def train(
    manifest: Annotated[Path, argument()],
    store: Annotated[Path, argument()],
    *,
    subtask: Annotated[Literal["violence", "affect"], option("")],
    run: Annotated[str, option("Name of the run.")],
    model: Annotated[
        str, option("Model of the zoo, an installed one, or MODULE:FACTORY, as in `obygaze evaluate`.")
    ] = "linear",
    seed: Annotated[int, option("Seed of the model.", type=click.IntRange(0))] = 0,
    external: Annotated[
        bool,
        option(
            "Mark the run as using external data. Required for features of a pretrained backbone and for "
            "imported features, whose origin is unknown."
        ),
    ] = False,
    backbone: Annotated[str | None, option("Backbone to read; needed if the store has several.")] = None,
    out: Annotated[Path, option("Folder of runs.")] = Path("runs/mediaeval15"),
    force: Replace = False,
) -> Answer:
    """Train on the dev clips of MANIFEST and predict its test clips, with the features of STORE.

    Takes any model of the zoo; its hyper-parameters, such as the penalty of the logistic regression (linear),
    are chosen on inner folds of whole dev movies. Violence is a task of two levels; valence and arousal are
    ordered classes, one model per step. Writes violence-NAME.trec (scores, TREC's six columns) or
    affect-NAME.csv (clip, valence, arousal), and a record beside it. A split with a movie on both sides is
    refused. The same command gives the same bytes.

    \b
    Examples:
      obygaze task mediaeval15 train m.csv stores/descriptors \\
            --subtask violence --run descriptors
      obygaze task mediaeval15 train m.csv stores/xclip --subtask affect \\
            --run xclip --external
      obygaze task mediaeval15 train m.csv stores/xclip --subtask violence \\
            --run mlp --model mlp --external
    """
    from obygaze_features.manifest import read_manifest
    from obygaze_features.store import open_store
    from obygaze_studies.mediaeval15 import training

    return training.train(
        read_manifest(manifest),
        open_store(store),
        subtask,
        run,
        model=model,
        out=out,
        backbone=backbone,
        force=force,
        external=external,
        seed=seed,
    )


@command()
def score(
    *,
    truth: Annotated[
        Path,
        option(
            "Clips with their labels: a table with a column clip, or a manifest. If it has a column split, "
            "only test clips count."
        ),
    ],
    runs: Annotated[tuple[Path, ...], option("Run file to score against --truth.", name="run")],
    out: Annotated[
        Path | None, option("Folder for the numbers (CSV, JSON), the tables and the figures.")
    ] = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Score runs with the official measures: average precision as in trec_eval, and accuracy.

    A run whose name ends in .csv is an affect run, any other a TREC run of violence. Beside each measure
    stands its chance level: the mean AP over all orders, or the accuracy of the most frequent class.

    \b
    Examples:
      obygaze task mediaeval15 score --truth m.csv \\
            --run runs/mediaeval15/violence-a.trec
      obygaze task mediaeval15 score --truth m.csv --run violence-a.trec \\
            --run affect-a.csv --out scores
    """
    from obygaze_studies.mediaeval15.score import score_report

    output = ReportOutput(out, html, force=force, json=json)
    output.check()
    return output.finish(score_report(truth, runs))


@command()
def check(
    runs: Annotated[Path, argument()],
    *,
    truth: Annotated[Path, option("Table or manifest of all clips with their split.")],
) -> Answer:
    """Check a folder of runs against the rules of the task.

    Problems: more than five runs of a subtask, a run without the flag external_data, no run without external
    data, a pretrained backbone in a run that claims none, a clip twice or none of the test's, a score that is
    not finite, a movie in dev and in test.
    Warnings: missing clips, ties. Exit code 3 if there is a problem.

    \b
    Examples:
      obygaze task mediaeval15 check runs/mediaeval15 --truth mediaeval15.csv
      obygaze task mediaeval15 check runs/mediaeval15 --truth mediaeval15.csv \\
            --json
    """
    from obygaze_studies.mediaeval15 import check_runs, read_annotations

    return check_runs(runs, read_annotations(truth))
