"""`obygaze task mediaeval15 labels | train | score | check`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from obygaze_features.commands import folder_for, manifest_output, videos_option, write_imported
from obygaze_features.options import PATH, Output, Result, json_option, prints_result, show
from obygaze_features.screen import table
from obygaze_studies.commands.declared import declared
from obygaze_studies.commands.output import ReportOutput, report_output, write_rows

if TYPE_CHECKING:
    from obygaze_studies.mediaeval15.run_files import Subtask


@click.command()
@declared("mediaeval15 labels")
@prints_result
def labels(scores: Path, out: Path, pivots: Path | None, force: bool) -> Result:
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
    from obygaze_studies.mediaeval15.annotations import make_labels

    made = make_labels(scores, pivots)
    table = [made.columns, *([row[column] for column in made.columns] for row in made.rows)]
    kept = write_rows(table, out, "clips", force=force)
    for clip_id, axis in made.rejected.items():
        click.echo(f"left out {clip_id}: its judgements on {axis} contradict each other", err=True)
    unknown = ", ".join(f"{number} without {axis}" for axis, number in made.unlabelled.items())
    document = {
        "file": str(out),
        "clips": len(made.rows),
        "unlabelled": made.unlabelled,
        "left_out": [*made.rejected],
    }
    return document, f"{kept} ({unknown}), {len(made.rejected)} left out"


@click.command()
@declared("mediaeval15 train")
@json_option
def train(
    manifest: Path,
    store: Path,
    subtask: "Subtask",
    name: str,
    model: str,
    seed: int,
    external: bool,
    out: Path,
    backbone: str | None,
    force: bool,
    as_json: bool,
) -> None:
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
    from obygaze_features.io import refuse_existing
    from obygaze_features.manifest import read_manifest
    from obygaze_features.store import open_store
    from obygaze_models.models import BUILTIN_MODELS, find_models
    from obygaze_studies.errors import TaskError
    from obygaze_studies.mediaeval15.run_files import RunFile, write_run
    from obygaze_studies.mediaeval15.training import load_sides, make_run

    file = RunFile(out, subtask, name)
    # Before the work, so that nobody waits for a refusal.
    refuse_existing(file.path, force=force)
    if store.suffix.lower() == ".csv" and manifest.suffix.lower() != ".csv":
        raise TaskError(f"{store} is a manifest, not a store: give MANIFEST first, then STORE")
    (spec,) = find_models([model], BUILTIN_MODELS)
    clips = read_manifest(manifest)
    sides = load_sides(open_store(store), clips, backbone=backbone)
    text, record = make_run(sides, clips, subtask, name, spec, external=external, seed=seed)
    write_run(file, text, record)
    excluded = record["excluded"]
    for exclusion in (*excluded["dev"], *excluded["test"]):
        click.echo(f"excluded {exclusion['clip_id']}: {exclusion['reason']}", err=True)
    lines = []
    for what, selected in record["selection"].items():
        chosen = "".join(f"{tried['name']}, " for tried in selected["candidates"] if tried["chosen"])
        lines.append(f"{what}: {chosen}of {selected['dev_clips']} labelled dev clips")
    missing = f", {len(excluded['test'])} missing" if excluded["test"] else ""
    lines.append(f"{file.path}: {record['test_clips']} test clips{missing}")
    show(record, lambda: "\n".join(lines), as_json=as_json)


@click.command()
@declared("mediaeval15 score")
@report_output("Folder for the numbers (CSV, JSON), the tables and the figures.", beside=False)
def score(truth: Path, runs: tuple[Path, ...], double: bool, output: ReportOutput) -> None:
    """Score runs with the official measures: average precision as in trec_eval, and accuracy.

    A run whose name ends in .csv is an affect run, any other a TREC run of violence. Beside each measure
    stands its chance level: the mean AP over all orders, or the accuracy of the most frequent class.

    \b
    Examples:
      obygaze task mediaeval15 score --truth m.csv \\
          --run runs/mediaeval15/violence-a.trec
      obygaze task mediaeval15 score --truth m.csv --run violence-a.trec \\
          --run affect-a.csv --out scores
      obygaze task mediaeval15 score --truth m.csv --run violence-a.trec \\
          --double --json
    """
    from obygaze_features.io import file_sha256
    from obygaze_studies.errors import TaskError
    from obygaze_studies.mediaeval15.annotations import read_annotations
    from obygaze_studies.mediaeval15.run_files import read_affect, read_trec
    from obygaze_studies.mediaeval15.score import make_report, score_run

    output.check()
    # Digests, and names without their folders, which differ between machines.
    inputs = [{"name": path.name, "sha256": file_sha256(path)} for path in (truth, *runs)]
    names = [path.stem for path in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TaskError(f"two runs are named {twice}: rename one, or score them apart")
    clips = read_annotations(truth)
    read: Any = {path: read_affect(path) if path.suffix == ".csv" else read_trec(path) for path in runs}
    parts = [score_run(path.stem, run, clips, double=double) for path, run in read.items()]
    rows, notices = ([one for part in parts for one in part[place]] for place in (0, 1))
    held = "double" if double else "float32"
    output.finish(make_report(rows, notices, {"inputs": inputs, "scores_held_as": held}))  # type: ignore[arg-type]


@click.command()
@declared("mediaeval15 check")
@json_option
@click.pass_context
def check(ctx: click.Context, runs: Path, truth: Path, as_json: bool) -> None:
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
    from dataclasses import asdict

    from obygaze_studies.mediaeval15.annotations import read_annotations
    from obygaze_studies.mediaeval15.score import check_runs

    checked = check_runs(runs, read_annotations(truth))
    external = {True: "yes", False: "no", None: "not said"}
    rows = [
        (run.subtask, run.name, external[run.external_data], _share(run.coverage, 1), _share(run.ties, 0))
        for run in checked.runs
    ]
    headers = ("subtask", "run", "external data", "coverage", "ties")
    show(asdict(checked), lambda: table(rows, headers), as_json=as_json)
    if not as_json:
        for finding in checked.findings:
            click.echo(f"{finding.severity}: {finding.about}: {finding.what}", err=True)
        if checked.ok:
            click.echo("no problem found: the folder keeps the rules of the task", err=True)
    ctx.exit(0 if checked.ok else 3)


def _share(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


@click.command("mediaeval15")
@click.argument("source", type=PATH)
@manifest_output
@videos_option
def import_(source: Path, videos: Path | None, output: Output) -> None:
    """Import the clips of MediaEval 2015 Affective Impact of Movies.

    SOURCE is clips.csv, or the folder that holds it: columns clip (the video's file name), movie, split (dev,
    test), and valence, arousal, violence if known. Without a column split, dev.txt and test.txt
    beside it list the movies of each side. The organisers release the data against a signed form; build this
    table from their files.

    \b
    Examples:
      obygaze manifest import mediaeval15 MediaEval --videos clips \\
          --out mediaeval15.csv
      obygaze manifest import mediaeval15 clips.csv --out mediaeval15.csv
    """
    from obygaze_studies.mediaeval15 import import_mediaeval15

    write_imported(import_mediaeval15(source, folder_for(output), videos), output)
