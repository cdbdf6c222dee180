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
    out: Annotated[Path, option("Table to write, with the classes of each clip.")],
    pivots: Annotated[
        Path | None,
        option(
            "Table of judgements (PIVOTS) of clips without scores, with the columns clip, axis, "
            "pivot and above."
        ),
    ] = None,
    force: Replace = False,
) -> Answer:
    """Convert valence and arousal scores to classes.

    SCORES is a table with the columns clip, valence and arousal; other columns are kept. Scores lie in [-1,
    1]. A score below -0.15 becomes negative (valence) or calm (arousal), a score above 0.15 positive or
    active, any other neutral.

    PIVOTS has a row for each judgement of a clip: axis is valence or arousal, pivot is low or high, and
    above is 1 if the clip is above this pivot, else 0. A clip is compared with each pivot three times, and
    the majority counts. A clip that is above the high pivot but not above the low pivot is left out and
    reported.

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
    subtask: Annotated[
        Literal["violence", "affect"], option("Task to train for: violence, or affect (valence and arousal).")
    ],
    run: Annotated[str, option("Name of the run, which becomes a part of the file's name.")],
    model: Annotated[
        str, option("Built-in model, one of an installed package, or MODULE:FACTORY, as for `evaluate`.")
    ] = "linear",
    seed: Annotated[int, option("Seed of the model.", type=click.IntRange(0))] = 0,
    external: Annotated[
        bool,
        option(
            "Mark the run as using external data. Required for features of a pretrained backbone and for "
            "imported features, whose origin is unknown."
        ),
    ] = False,
    backbone: Annotated[
        str | None, option("Backbone whose features are read; needed if the store has several.")
    ] = None,
    out: Annotated[Path, option("Folder to write the run to.")] = Path("runs/mediaeval15"),
    force: Replace = False,
) -> Answer:
    """Train on the dev clips of MANIFEST and predict its test clips, with the features of STORE.

    The model's settings, such as the penalty of the logistic regression (linear), are chosen by inner folds
    of whole dev movies. Violence has two levels. Valence and arousal are ordered classes, with one model
    for each step between two classes.

    Write violence-NAME.trec (scores, in TREC's six columns) or affect-NAME.csv (columns clip, valence and
    arousal), and a record beside it. If a movie is both in dev and in test, the command refuses the split.
    The same command gives the same bytes.

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
            "True labels of the clips: a table with a column clip, or a manifest. If it has a "
            "column split, only test clips are scored."
        ),
    ],
    runs: Annotated[tuple[Path, ...], option("Run file to score against --truth; repeatable.", name="run")],
    out: Annotated[
        Path | None, option("Write the numbers (CSV, JSON), the tables and the figures to this folder.")
    ] = None,
    html: Html = None,
    force: Replace = False,
    json: Json = False,
) -> Answer:
    """Score runs with the official measures: average precision as in trec_eval, and accuracy.

    A run file whose name ends in .csv is read as a run of affect, any other as a TREC run of violence. The
    chance level of each measure is shown beside it: the mean average precision over all orders of the
    clips, or the accuracy of always naming the most frequent class.

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
    truth: Annotated[Path, option("Table or manifest of all clips, with the column split (dev or test).")],
) -> Answer:
    """Check a folder of runs against the rules of the task.

    These are problems, and the exit code is then 3:

    \b
    - more than five runs of a subtask, or no run without external data
    - a run without the flag external_data
    - a pretrained backbone in a run that claims to use no external data
    - a clip that comes twice, or is not in the test set
    - a score that is not finite
    - a movie both in dev and in test

    Missing clips and tied scores are only warnings.

    \b
    Examples:
      obygaze task mediaeval15 check runs/mediaeval15 --truth mediaeval15.csv
      obygaze task mediaeval15 check runs/mediaeval15 --truth mediaeval15.csv \\
            --json
    """
    from obygaze_studies.mediaeval15 import check_runs, read_annotations

    return check_runs(runs, read_annotations(truth))
