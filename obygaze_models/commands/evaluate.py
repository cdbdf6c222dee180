"""`obygaze evaluate`: probes and baselines, one movie left out at a time."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from obygaze_features.manifest import LabelPolicy, Manifest
    from obygaze_features.store import Group
    from obygaze_models.dataset import Dataset, Features, Pool
    from obygaze_models.experiments.evaluate import Run
    from obygaze_models.probes import Imbalance
    from obygaze_models.protocol import Task


@click.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--task", "train", default="hn_s", show_default=True, help="Task to train on: en_s, hn_s or enhn_s."
)
@click.option("--test", help="Task to test on.  [default: the task trained on]")
@click.option("--backbone", help="Which of the store's backbones; needed when it has several.")
@click.option(
    "--features",
    type=click.Choice(["pooled", "frames", "tokens"]),
    help="Which array to read.  [default: the first of these that is stored]",
)
@click.option(
    "--pool",
    type=click.Choice(["max", "mean"]),
    help="How frames or tokens become one vector a clip; max is the paper's.  [default: max]",
)
@click.option(
    "--policy",
    type=click.Choice(["raw", "paper", "released"]),
    default="raw",
    show_default=True,
    help="How labels are read. raw: as the manifest says; only ObyGaze12's manifest is meant for the others. "
    "paper: a clip without a visual concept becomes EN, as in the published numbers. released: clips whose "
    "concepts are all non-visual are left out, as in the released split files.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of every draw.")
@click.option(
    "--seeds",
    "n_seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="K",
    help="Train with K seeds from --seed on, all at once; metrics are means over them, their spread beside.",
)
@click.option(
    "--seen",
    is_flag=True,
    help="Test blocks of scenes by models that know the rest of their movies, to see how much that helps.",
)
@click.option(
    "--imbalance",
    type=click.Choice(["none", "weights", "subsample"]),
    default="none",
    show_default=True,
    help="What the probe does about the larger class in the clips it is trained on, never in others. none: "
    "nothing, its threshold is tuned. weights: losses weigh n / (2 n_class), scikit-learn's 'balanced'. "
    "subsample: as many clips drawn as the smaller class has.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder of the run.  [default: runs/STORE-VERSION-TASK-TEST-POLICY-seedN-DIGEST in the current "
    "folder; the digest stands for the store's content, the features read, the manifest and --imbalance]",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    help="Train the probe once more, on all movies, and save it in this file, for `obygaze predict`.",
)
@click.option("--force", is_flag=True, help="Replace a run, and a saved model, that are there already.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the record and the metrics as one JSON document."
)
def evaluate(
    store: Path,
    manifest: Path,
    train: str,
    test: str | None,
    backbone: str | None,
    features: "Features | None",
    pool: "Pool | None",
    policy: str,
    seed: int,
    n_seeds: int,
    seen: bool,
    imbalance: "Imbalance",
    out: Path | None,
    save: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Evaluate the MLP probe and the baselines on the features of STORE with the levels of MANIFEST.

    Every movie is tested once, by models trained on the other movies; threshold and epoch are chosen by an
    inner loop over the training movies. The tasks are en_s (EN vs S), hn_s (HN vs S) and enhn_s ((EN u HN) vs
    S); NS clips are left out. The run folder gets predictions.csv (the one source of every number),
    metrics.csv, metrics.json and inner_curves.csv; with several seeds also seeds.csv. The same command gives
    the same bytes.

    \b
    Examples:
      obygaze evaluate stores/films films.csv --task hn_s --test enhn_s
      obygaze evaluate stores/obygaze12-xclip obygaze12.csv --task hn_s --policy paper --json
      obygaze evaluate stores/films films.csv --features frames --pool mean --out runs/films-mean
      obygaze evaluate stores/films films.csv --seeds 5
      obygaze evaluate stores/films films.csv --imbalance weights
      obygaze evaluate stores/films films.csv --save models/films.model
    """
    from tqdm import tqdm

    from obygaze_features.manifest import LabelPolicy, apply_policy, read_manifest
    from obygaze_features.store import open_store
    from obygaze_models.dataset import load_dataset
    from obygaze_models.experiments.evaluate import evaluate as run_evaluation
    from obygaze_models.experiments.result_table import caption, result_tables
    from obygaze_models.experiments.run_folder import run_name, to_json, write_run
    from obygaze_models.protocol import find_task

    train_task, test_task = find_task(train), find_task(test or train)
    if manifest.is_dir():
        raise click.UsageError(f"the order is STORE MANIFEST; {manifest} is a folder, not a manifest")
    if seen and save is not None:
        raise click.UsageError(
            "--save keeps the metrics of movies not seen beside the model: leave --seen out"
        )
    clips = read_manifest(manifest)
    opened = open_store(store)
    labelled = apply_policy(clips, LabelPolicy(policy))
    _notice_policy(clips, labelled, LabelPolicy(policy))
    data = load_dataset(
        opened,
        labelled,
        train_task,
        test_task,
        backbone=backbone,
        features=features,
        pool=pool or "max",
    )
    if pool and data.features == "pooled":
        raise click.UsageError(
            "--pool is for frames and tokens; this would read pooled features, pooled when extracted"
        )
    digest = clips.digest()
    stem = [opened.name, *([data.backbone] if len(opened.names) > 1 else []), opened.version]
    seeds = f"seed{seed}" if n_seeds == 1 else f"seeds{seed}to{seed + n_seeds - 1}"
    tasks = [train_task.name, test_task.name, *(["seen"] if seen else [])]
    tasks += [] if imbalance == "none" else [imbalance]
    name = run_name(data, *stem, *tasks, policy, seeds, manifest=digest, imbalance=imbalance)
    folder = out or Path("runs") / name
    _check_free(folder, save, force=force)
    origin = {"manifest_sha256": digest, "label_policy": policy}
    with tqdm(desc="training", unit="model", leave=False, disable=None) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        run = run_evaluation(
            data,
            train_task,
            test_task,
            seed=seed,
            n_seeds=n_seeds,
            seen=seen,
            imbalance=imbalance,
            origin=origin,
            progress=progress,
        )
    write_run(run, folder, force=force)
    if as_json:
        click.echo(to_json(run), nl=False)
    else:
        for title, table in result_tables(run):
            click.echo(f"{title}\n{table}\n")
        for line in caption(run, f"train {train_task.title}, test {test_task.title}"):
            click.echo(line)
        for exclusion in data.excluded:
            click.echo(f"excluded {exclusion.clip_id}: {exclusion.reason}", err=True)
    click.echo(f"run kept in {folder}", err=True)
    if save is not None:
        _save_model(save, data, train_task, run, opened[data.backbone])
        click.echo(f"model of all {len(set(data.movies))} movies kept in {save}", err=True)


def _check_free(folder: Path, save: Path | None, *, force: bool) -> None:
    """Refuse what is taken before the work, so that nobody waits for it."""
    from obygaze_models.experiments.run_folder import RunError, check_free

    check_free(folder, force=force)
    if save is not None and save.exists() and not force:
        raise RunError(f"{save} exists already: give --force to replace it, or another file with --save")


def _save_model(path: Path, data: "Dataset", train: "Task", run: "Run", group: "Group") -> None:
    from obygaze_models.experiments.final_model import train_final
    from obygaze_models.persistence import write_model

    write_model(path, *train_final(data, train, run, group))


def _notice_policy(clips: "Manifest", labelled: "Manifest", policy: "LabelPolicy") -> None:
    """Say on stderr how many labels the policy changed or, under raw, the paper's would change."""
    from obygaze_features.manifest import LabelPolicy, apply_policy, policies_of

    if policy is not LabelPolicy.RAW:
        changed = _changed(clips, labelled)
        click.echo(
            f"label policy {policy}: {changed} clips changed level, {len(clips) - len(labelled)} left out",
            err=True,
        )
    elif LabelPolicy.PAPER in policies_of(clips.codebook) and any(clip.concepts for clip in clips):
        changed = _changed(clips, apply_policy(clips, LabelPolicy.PAPER))
        if changed:
            click.echo(
                "label policy raw: levels as annotated; --policy paper, which published ObyGaze12 numbers "
                f"use, would make EN of {changed} clips without a visual concept",
                err=True,
            )


def _changed(before: "Manifest", after: "Manifest") -> int:
    level = {clip.clip_id: clip.level for clip in before}
    return sum(clip.level != level[clip.clip_id] for clip in after)
