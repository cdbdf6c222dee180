"""`obygaze evaluate` and `compare`: evaluate models by leave-one-movie-out, and compare two of them."""

import re
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features.io import NO_LICENCE, file_sha256, refuse_existing
from obygaze_features.options import Answer, Output
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted
from obygaze_models.commands.inputs import complete_model, complete_task, finish, write_page
from obygaze_models.commands.shared_options import Html, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from obygaze_features.same_pictures import Shared
    from obygaze_features.store import Store
    from obygaze_models.commands.inputs import Modalities
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.evaluation import Run
    from obygaze_models.models import ModelSpec
    from obygaze_models.protocol.targets import Target
    from obygaze_models.report import Report


FOLDS_SAID = 101
"""From so many folds on it is said how long they take."""

HOURS_SAID = 0.5
"""CPU hours from which on models of tokens are announced."""

MOST_NAMED = 5
"""Pairs of films that look alike that are named."""

MOST_MOVED_S = 1.0
"""Seconds by which times of a store and a manifest may differ unsaid: some round to whole seconds."""

Fuse = Literal["concat", "late", "max", "mean", "concepts"]
Layer = Literal["each", "chosen"]

SEVERAL_LAYERS = ("each", "chosen")
"""What `--layer` says in place of the number of one."""

IN_TIME = "pcbm_time"
"""The model whose bottleneck fuses modalities by concepts of their frames."""

FUSED_BY_CONCEPTS = ("concepts", "concepts_in_time")
"""Models that `--fuse concepts` makes."""


@command(
    groups={
        "Options that most people need": "task test model negative positive out save seed html json",
        "What is read": "layer fuse reduce policy texts variables answers",
        "How models are trained and tested": "experts seeds seen test-seen-scores imbalance refits",
    }
)
def evaluate(
    manifest: Annotated[Path, argument()],
    stores: Annotated[tuple[Path, ...], argument(metavar="STORE[:BACKBONE]...")],
    *,
    task: Annotated[
        str | None,
        option(
            "Task to train on: a task of the manifest's codebook, concept:NAME, levels (ordered) or "
            "scale:NAME. `obygaze codebook show MANIFEST` lists them.  [default: the codebook's only task]",
            shell_complete=complete_task,
        ),
    ] = None,
    test: Annotated[
        str | None, option("Task to test on.  [default: as trained]", shell_complete=complete_task)
    ] = None,
    negative: Annotated[tuple[str, ...], option("Negative level, instead of --task; repeatable.")] = (),
    positive: Annotated[tuple[str, ...], option("Positive level, instead of --task; repeatable.")] = (),
    models: Annotated[
        tuple[str, ...],
        option(
            "Model of the zoo, of an installed package or of a module; repeatable. Baselines are always "
            "added.  [default: the whole zoo]",
            name="model",
            metavar="NAME|[NAME=]MODULE:FACTORY",
            shell_complete=complete_model,
        ),
    ] = (),
    texts: Annotated[
        Path | None,
        option(
            "Add zero-shot models: store of the texts that 'obygaze codebook texts' lists, in the space of "
            "STORE.",
            metavar="STORE",
        ),
    ] = None,
    fuse: Annotated[
        Fuse | None,
        option(
            "How features of several stores or backbones become one model. concat: joined, with a penalty "
            "each. late: a model each, their logits weighed by what held-out films tell. max, mean: the "
            "largest or mean logit. concepts: each concept learnt from what conveys it (visual=STORE "
            "heard=STORE), and a linear model of them; with --model pcbm_time, of frames. Each alone, and "
            "all but each, stand beside it."
        ),
    ] = None,
    layer: Annotated[
        str | None,
        option(
            "Layer of the network, of those that 'extract --layers' stored: its number. each: a model of "
            "each, beside what the best of so many reaches by chance. chosen: inner folds of movies choose "
            "one.",
            type=click.STRING,
            metavar="N|each|chosen",
        ),
    ] = None,
    reduce: Annotated[
        str | None,
        option(
            "Reduce tokens for models that read frames or tokens: mean (over the patches of a frame or "
            "tubelet), top:K (by norm), project:SIZE:SEED (random projection), mean+project:SIZE:SEED. The "
            "result is kept beside STORE.",
            metavar="RULE",
        ),
    ] = None,
    variables: Annotated[
        Path | None,
        option(
            "Numbers of each clip, as of 'obygaze film variables': a baseline, staging, reads them alone.",
            metavar="CSV",
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        option(
            "What a machine answered to 'obygaze codebook questions', or a store of --backbone vlm: a "
            "zero-shot model, answers, reads it.",
            metavar="JSONL|STORE",
        ),
    ] = None,
    policy: Policy = "raw",
    seed: Annotated[int, option("Random seed.", type=click.IntRange(0))] = 0,
    n_seeds: Annotated[
        int,
        option(
            "Number of consecutive seeds, from --seed on; metrics are reported as mean and SD.",
            name="seeds",
            type=click.IntRange(1),
            metavar="K",
        ),
    ] = 1,
    seen: Annotated[
        bool, option("Within-movie protocol: hold out blocks of scenes instead of whole movies.")
    ] = False,
    folds: Annotated[
        int | None,
        option(
            "Leave out whole movies in N folds of about as many clips.  [default: a fold for each movie, up "
            "to 500 movies; 20 folds above]",
            type=click.IntRange(3),
            metavar="N",
        ),
    ] = None,
    test_seen_scores: Annotated[
        bool,
        option("Test also the clips that were judged with a model's score in sight (column seen_score)."),
    ] = False,
    experts: Annotated[
        Literal["merged", "each", "soft", "noisy"] | None,
        option(
            "What is learnt of clips that are there once for each annotator. merged: one label. each: a "
            "model for each of them. soft: the share of annotators. noisy: what a clip probably is, given "
            "how often each of them is right, estimated with a model of the features. All are tested on "
            "each.  [default: merged]"
        ),
    ] = None,
    imbalance: Annotated[
        Literal["none", "weights", "subsample"],
        option(
            "Class-imbalance handling of the MLP, applied to training clips only. none: the threshold is "
            "tuned. weights: losses weigh n / (2 n_class). subsample: as many clips as the smaller class has."
        ),
    ] = "none",
    refits: Annotated[
        int | None,
        option(
            "Add p of the models named, by N refits in which films exchange their whole sequences of labels: "
            "19 or more, since no p is below 1 / (N + 1). It holds where features and labels change slowly, "
            "and takes N times the time.",
            type=click.IntRange(19),
            metavar="N",
        ),
    ] = None,
    save: Annotated[
        tuple[str, ...],
        option(
            "Retrain this model on all movies and save it as NAME.model in the run's folder, for `obygaze "
            "predict`; repeatable.",
            metavar="NAME",
            shell_complete=complete_model,
        ),
    ] = (),
    licence: Annotated[
        str | None, option("Licence of the saved models, an SPDX expression.  [default: none stated]")
    ] = None,
    out: Annotated[Path | None, option("Folder to keep the run in.  [default: nothing is kept]")] = None,
    html: Html = None,
    force: Annotated[bool, option("Replace an existing run.")] = False,
    json: Json = False,
) -> None:
    """Evaluate models on the features of STORE with the labels of MANIFEST.

    Every movie is tested once by models trained on the other movies. Penalty, depth, epochs and threshold
    are chosen by inner folds of the training movies. Printed are one row per model and whether one beats
    the baselines. With --out a folder gets predictions.csv (the source of every number), metrics.csv,
    selection.csv, run.json and all tables as report.md and .tex. The same command gives the same bytes.

    \b
    Examples:
      obygaze evaluate films.csv stores/films --task hn_s --test enhn_s
      obygaze evaluate films.csv stores/films --task hn_s --model linear \\
          --model mlp
      obygaze evaluate films.csv stores/films --negative HN --positive S
      obygaze evaluate films.csv stores/films --task concept:Body
      obygaze evaluate films.csv stores/films --task concept:Body \\
          --texts stores/thesaurus
      obygaze evaluate films.csv stores/films --task levels
      obygaze evaluate films.csv stores/films --task hn_s \\
          --model mylab.models:make
      obygaze evaluate films.csv stores/films --task hn_s --html hn_s.html
      obygaze evaluate films.csv stores/vivit --task hn_s \\
          --model attention --reduce mean
      obygaze evaluate films.csv stores/films --task hn_s --test enhn_s \\
          --save pcbm_lr --out run
      obygaze evaluate films.csv stores/films:xclip stores/films:sound --fuse late
      obygaze evaluate films.csv stores/films --task hn_s --layer each
    """
    from obygaze_models.commands.inputs import read_modalities, under_policy
    from obygaze_models.evaluation.refits import with_refits
    from obygaze_models.evaluation.run_folder import to_json
    from obygaze_models.models.registry import models_for
    from obygaze_models.prediction.final import check_can_be_saved
    from obygaze_models.protocol.targets import choose_targets
    from obygaze_models.report import plain
    from obygaze_models.report.run_tables import short_report

    # --- check the options before reading features
    _check_output(out, html, save, seen=seen, force=force)
    if refits and not (models or fuse):
        raise click.UsageError("--refits trains models again and again: name them by --model")
    for_one_store = {
        "--texts": texts,
        f"--model other than {IN_TIME}": fuse == "concepts" and models not in ((), (IN_TIME,)),
        "--reduce": reduce,
    }
    several_layers = _check_layer(layer, {"--fuse": fuse, "--reduce": reduce, "--texts": texts})
    inputs = read_modalities(manifest, stores, fuse, for_one_store)
    labelled, notices = under_policy(inputs.clips, policy)
    train, tested = choose_targets(inputs.clips.codebook, task, test, sides=(negative, positive))
    named = models or (("linear",) if fuse or several_layers else None)
    specs = models_for(train.kind, named, imbalance=imbalance)
    named_specs = specs[: len(set(models)) or 1]
    _check_models(specs, save, reduce, several_layers)

    # --- read the features, and make the models
    data = _load_features(inputs, labelled, fuse, reduce, layer)
    specs = _models_of_parts(specs, data, fuse, several_layers, in_time=bool(models))
    if several_layers:
        named_specs = [spec for spec in specs if spec.looks_at_features]
    beside = _with_tables(data, labelled, variables, answers, train)
    data = beside.data
    _announce_hours(data, {spec.reads for spec in specs})
    _announce_folds(data, folds, seen=seen)
    if texts is not None:
        specs = [*_read_texts(texts, data, train), *specs]
    saved_specs = [spec for spec in specs if spec.name in save]
    check_can_be_saved(saved_specs, data, train, licence or NO_LICENCE)

    # --- train and test
    origin = {"manifest_sha256": inputs.clips.digest(), "label_policy": policy, **beside.digests}
    run = om.evaluate(
        data,
        specs if fuse or several_layers or texts is not None else models or None,
        train,
        tested,
        seed=seed,
        n_seeds=n_seeds,
        seen=seen,
        folds=folds,
        imbalance=imbalance,
        test_seen_scores=test_seen_scores,
        experts=experts,
        origin=origin,
        progress=True,
    )
    if refits:
        names_to_refit = {*(spec.name for spec in named_specs), *FUSED_BY_CONCEPTS}
        specs_to_refit = [spec for spec in specs if spec.name in names_to_refit]
        with _announce_refits(specs_to_refit, refits) as tell:
            run = with_refits(
                run,
                data,
                specs_to_refit,
                refits,
                tell,
                task=train,
                test=tested,
                seed=seed,
                n_seeds=n_seeds,
                seen=seen,
                folds=folds,
                imbalance=imbalance,
                test_seen_scores=test_seen_scores,
                experts=experts,
            )

    # --- print and write the results
    report = om.run_report(run)
    # Printed before anything is written, so that a full disk does not lose the results.
    click.echo(to_json(run) if json else plain(short_report(run)), nl=False)
    write_page(report, html, force=force)
    alike = [*_same_pictures(inputs.stores, data)]
    kept: dict[str, Path] = {}
    if out is not None:
        kept = _write_run_folder(run, report, data, specs, save, licence or NO_LICENCE, out, force=force)
    lines = _write_remarks(run, data, specs, inputs, notices, beside.account, alike, kept, out)
    click.echo("\n".join(lines), err=True)


def _load_features(
    inputs: "Modalities", labelled: "of.Manifest", fuse: str | None, reduce: str | None, layer: str | None
) -> "Dataset":
    """Load the features that models read: of one store, one layer, all layers, or all fused modalities."""
    if fuse is not None:
        data = om.load_dataset(inputs.stores, labelled, backbone=inputs.backbones, progress=True)
        return data.named(inputs.names)
    (store,) = inputs.stores
    (backbone,) = inputs.backbones
    from obygaze_models.dataset.features import layer_groups

    if layer in SEVERAL_LAYERS:
        return om.load_layers(store, labelled, backbone=backbone)
    if layer is not None:
        groups = layer_groups(store, backbone)
        if int(layer) not in groups:
            known = ", ".join(map(str, groups))
            raise click.UsageError(f"--layer {layer}: the store has layers {known}")
        backbone = groups[int(layer)]
    return om.load_dataset(store, labelled, backbone=backbone, reduce=reduce, progress=True)


def _models_of_parts(
    specs: "Sequence[ModelSpec]",
    data: "Dataset",
    fuse: "Fuse | None",
    layers: "Layer | None",
    *,
    in_time: bool,
) -> "list[ModelSpec]":
    """Make the models that are evaluated from models of one vector per clip.

    Parameters
    ----------
    specs
        Models of vectors.
    data
        With several layers or modalities, if there are.
    fuse
        How modalities are fused, or None.
    layers
        "each" or "chosen" to make models of the layers, or None.
    in_time
        Whether concepts are learnt from frames, if modalities are fused by concepts.
    """
    if layers is not None:
        return om.layered(specs, data, layers)
    if fuse == "concepts":
        return om.fused_by_concepts(data, in_time=in_time)
    if fuse is None:
        return list(specs)
    return om.fused(specs, data, fuse)


def _write_run_folder(
    run: "Run",
    report: "Report",
    data: "Dataset",
    specs: "Sequence[ModelSpec]",
    save: "Sequence[str]",
    licence: str,
    folder: Path,
    *,
    force: bool,
) -> dict[str, Path]:
    """Write the folder of a run with its report, figures and models, and return the models' files by name."""
    from obygaze_models.evaluation.run_folder import new_run
    from obygaze_models.report import markdown
    from obygaze_models.report.write import latex

    texts = {"report.md": markdown(report), "report.tex": latex(report)}
    with new_run(run, folder, texts, force=force) as unnamed:
        for picture in report.pictures:
            picture.draw(unnamed / picture.name)
        saved = om.save_models(run, data, save, unnamed, models=specs, licence=licence)
    return {name: folder / file.name for name, file in saved.items()}


def _write_remarks(
    run: "Run",
    data: "Dataset",
    specs: "Sequence[ModelSpec]",
    inputs: "Modalities",
    notices: "Sequence[str]",
    account: "Sequence[str]",
    alike: "Sequence[tuple[Shared, Store]]",
    kept: "Mapping[str, Path]",
    out: Path | None,
) -> list[str]:
    """Write the remarks that are printed after the tables, on labels, features and saved models.

    Parameters
    ----------
    run, data, specs, inputs
        The run, and what it was made of.
    notices
        Notices on the label policy.
    account
        Notices on tables of variables and answers.
    alike
        Films whose pictures look alike, each with the store that has them.
    kept
        Name -> file of each saved model.
    out
        Folder of the run; None if it is not kept.
    """
    from obygaze_features.manifest.identity import check_identity
    from obygaze_models.commands.evaluate_remarks import remarks
    from obygaze_models.models.names import model_names
    from obygaze_models.persistence.model_file import read_model
    from obygaze_models.prediction.training_films import films_of_one_content

    reads_frames = "frames" in {spec.reads for spec in specs}
    modalities = []
    for modality, part in zip(data.modalities, data.parts, strict=True):
        modalities.append((modality, reads_frames and "frames" not in part.stored))
    differing = differing_clips(inputs.stores, inputs.clips, data)
    return remarks(
        policy=notices,
        modalities=modalities,
        noise=run.record.get("noise", {}),
        account=[*check_identity(inputs.clips), *account],
        excluded=Counter(clip["reason"] for clip in run.record["excluded"]).most_common(),
        alike=alike,
        copies=films_of_one_content(data),
        other_films=differing.films,
        other_times=differing.times,
        models=[(name, file, read_model(file).card) for name, file in kept.items()],
        n_movies=len(set(data.movies)),
        known=model_names(),
        keeps_pictures=any(part.signatures is not None for part in data.parts or (data,)),
        out=out,
    )


# --- checks before the work
# ---------------------------------------------------------------------------
def _check_output(
    out: Path | None, html: Path | None, save: "Sequence[str]", *, seen: bool, force: bool
) -> None:
    """Raise if the options for saving contradict each other, or an output exists and --force is not given."""
    from obygaze_models.evaluation.run_folder import check_free

    if seen and save:
        raise click.UsageError("--save keeps the metrics of movies not seen: leave --seen out")
    if save and out is None:
        raise click.UsageError("--save keeps models in the run's folder: give --out")
    if out is not None:
        check_free(out, force=force)
    refuse_existing(out, force=True)
    refuse_existing(html, force=force)


def _check_layer(layer: str | None, others: "Mapping[str, object]") -> "Layer | None":
    """Check the value of --layer, and return "each" or "chosen" if it is one of these, and None otherwise.

    Parameters
    ----------
    layer
        The value: the number of a layer, "each" or "chosen"; None if it was not given.
    others
        Options that cannot be combined with it -> their values.
    """
    if layer is None:
        return None
    given_options = [name for name, value in others.items() if value]
    if given_options:
        raise click.UsageError(f"{', '.join(given_options)}: not with --layer {layer}")
    if layer == "each":
        return "each"
    if layer == "chosen":
        return "chosen"
    if not re.fullmatch("[1-9][0-9]{0,3}", layer, re.ASCII):
        raise click.UsageError(f"--layer {layer}: expected the number of a layer, each or chosen")
    return None


def _check_models(
    specs: "Sequence[ModelSpec]", save: "Sequence[str]", reduce: str | None, layers: "Layer | None"
) -> None:
    """Raise if --save or --reduce do not fit the models of the evaluation.

    Models to save must be evaluated and read one layer; reduced tokens need a model that reads them.
    """
    if layers == "each" and save:
        raise click.UsageError("--save keeps a model of one layer: with --layer N, or --layer chosen")
    if layers is not None and "bank" in save:
        raise click.UsageError("--save bank: a bank of concepts reads one layer: name it, --layer N")
    names = [spec.name for spec in specs]
    for name in save:
        if name != "bank" and name not in names:
            known = ", ".join(names)
            raise click.UsageError(f"--save {name}: not among the models of this evaluation: {known}")
    if reduce and all(spec.reads == "pooled" for spec in specs):
        raise click.UsageError("--reduce is for models that read frames or tokens, such as --model attention")


# --- tables beside features and labels
# ---------------------------------------------------------------------------
class WithTables(NamedTuple):
    """A dataset with the columns that tables add to its clips.

    Attributes
    ----------
    data : Dataset
        The dataset.
    account : list of str
        Notices on which parts of the tables were used.
    digests : dict of str to str
        SHA-256 of each table, for the run's record.
    """

    data: "Dataset"
    account: list[str]
    digests: dict[str, str]


def _with_tables(
    data: "Dataset", clips: "of.Manifest", variables: Path | None, answers: Path | None, target: "Target"
) -> WithTables:
    """Add the variables of a table and the answers of a machine to a dataset, if their files are given."""
    from obygaze_models.dataset.beside import with_answers, with_variables

    account: list[str] = []
    digests: dict[str, str] = {}
    if variables is not None:
        data, lines = with_variables(data, variables, clips, target)
        account += lines
        digests["variables_sha256"] = file_sha256(variables)
    if answers is not None:
        data, lines = with_answers(data, answers, target)
        account += lines
        is_store = answers.is_dir()
        digests["answers_sha256"] = of.open_store(answers).fingerprint if is_store else file_sha256(answers)
    return WithTables(data, account, digests)


def _read_texts(path: Path, data: "Dataset", target: "Target") -> "list[ModelSpec]":
    """Make the zero-shot models of the texts in a store, for --texts."""
    from obygaze_models.concepts.texts import zero_shot_models

    if target.kind == "ordinal":
        raise click.UsageError("--texts is for two classes, and ordered levels are asked for")
    return zero_shot_models(data, of.open_store(path), target)


# --- announcements of long work
# ---------------------------------------------------------------------------
@contextmanager
def _announce_refits(specs: "Sequence[ModelSpec]", n_refits: int) -> "Iterator[Callable[[int], None]]":
    """Show a progress bar of refits; after the first one, print how long all of them will take.

    Yields a function to call with the number of refits done.
    """
    start = process_time()
    with progress_bar("training", "refit") as show:

        def tell(n_done: int) -> None:
            """Show the number of finished refits."""
            if n_done == 1:
                names = ", ".join(spec.name for spec in specs)
                cpu_s = n_refits * (process_time() - start)
                click.echo(f"note: {n_refits} refits of {names} take about {cpu_s:.0f} s of CPU", err=True)
            show(n_done, n_refits)

        yield tell


def _announce_hours(data: "Dataset", reads: "Collection[str]") -> None:
    """Print a note before the work begins if models of all tokens will take hours."""
    from obygaze_models.models.attentive import most_cpu_hours

    if "tokens" not in reads or data.reduction is not None:
        return
    n_clips, n_tokens, width = data.read("tokens", stream=True).shape
    hours = most_cpu_hours(n_clips, n_tokens, width, len(set(data.movies)))
    if hours >= HOURS_SAID:
        click.echo(
            f"note: up to {hours:.0f} CPU hours for {counted(n_clips, 'clip')} of {n_tokens} "
            "tokens, unless probes stop "
            "early; --reduce mean, or mean+project:SIZE, makes the tokens small first",
            err=True,
        )


def _announce_folds(data: "Dataset", folds: int | None, *, seen: bool) -> None:
    """Print a note before the work begins on how long many folds of whole movies will take."""
    from obygaze_models.models.probe_search import expected_cpu_s
    from obygaze_models.protocol.folds import MOVIES_ALONE, N_GROUPED

    n_movies = len(set(data.movies))
    default_folds = n_movies if n_movies <= MOVIES_ALONE else N_GROUPED
    n_folds = min(n_movies, folds or default_folds)
    if seen or n_folds < FOLDS_SAID:
        return
    minutes = expected_cpu_s(len(data.movies), data.X.shape[-1], n_folds) / 60
    one_each = ", one for each movie" if n_folds == n_movies else ""
    whole_minutes = max(round(minutes), 1)
    unit = "minute" if whole_minutes == 1 else "minutes"
    click.echo(
        f"note: {counted(n_folds, 'fold')}{one_each}: about {whole_minutes} CPU {unit} for a "
        "linear probe, and for "
        "other models as many times one training; --folds 20 leaves out movies in 20 groups",
        err=True,
    )


# --- differences between store and manifest
# ---------------------------------------------------------------------------
def _same_pictures(stores: "Sequence[Store]", data: "Dataset") -> "Iterator[tuple[Shared, Store]]":
    """Yield pairs of films whose pictures look alike, each with its store.

    Only local stores with picture signatures are searched, and `MOST_NAMED` pairs named for each.
    """
    from obygaze_features.same_pictures import duplicates, has_signatures

    for store in dict.fromkeys(stores):
        if "://" not in store.where and has_signatures(store):
            films_alike = duplicates(store, only=data.row_of.keys()).movies
            for shared in films_alike[:MOST_NAMED]:
                yield shared, store


Span = tuple[float | None, float | None]


class DifferingClips(NamedTuple):
    """Clips for which store and manifest differ.

    Attributes
    ----------
    films
        Clip id, film in the store, film in the manifest.
    times
        Clip id, span in the store, span in the manifest, in seconds.
    """

    films: list[tuple[str, str, str]]
    times: list[tuple[str, Span, Span]]


def differing_clips(stores: "Sequence[Store]", manifest: "of.Manifest", data: "Dataset") -> DifferingClips:
    """List the clips of a dataset whose film or times differ between a store and the manifest."""
    in_manifest = {clip.clip_id: clip for clip in manifest if clip.clip_id in data.row_of}
    differing = DifferingClips([], [])
    for store in stores:
        for stored in store.clips:
            clip = in_manifest.get(stored.clip_id)
            if clip is None:
                continue
            if stored.movie not in {"", clip.movie}:
                differing.films.append((clip.clip_id, stored.movie, clip.movie))
            if _is_moved(stored.start_s, clip.start_s) or _is_moved(stored.end_s, clip.end_s):
                times = (stored.start_s, stored.end_s), (clip.start_s, clip.end_s)
                differing.times.append((clip.clip_id, *times))
    return differing


def _is_moved(in_store: float | None, in_manifest: float | None) -> bool:
    """Tell whether two times, if both are known, differ by more than rounding."""
    if in_store is None or in_manifest is None:
        return False
    return abs(in_store - in_manifest) > MOST_MOVED_S


# --- compare
# ---------------------------------------------------------------------------
@command()
def compare(
    run_a: Annotated[Path, argument()],
    run_b: Annotated[Path, argument()],
    *,
    model: Annotated[str | None, option("Model of RUN_A.  [default: its first]")] = None,
    against: Annotated[str | None, option("Model of RUN_B.  [default: the same]")] = None,
    out: Annotated[Path | None, option("Folder to write the tables into.")] = None,
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Compare a model of RUN_A with one of RUN_B, paired by movie.

    Both must have been tested on the same clips and labels; the training data may differ, and so
    may stores, models and seeds. For each metric: the mean difference over movies, tested twice. The exact
    sign-flip test asks whether these trained models differ, the corrected t test whether the methods do.

    \b
    Examples:
      obygaze compare runs/xclip runs/descriptors
      obygaze compare runs/films runs/films --model pcbm_lr --against mlp
      obygaze compare runs/hard-negatives runs/easy-negatives --model mlp \\
          --out hard-against-easy --html hard-against-easy.html
    """
    a = om.side(om.read_run(run_a), model)
    b = om.side(om.read_run(run_b), against or a.model)
    output = Output(out, html, force=force, json=json)
    return finish(om.comparison_report(om.compare(a, b)), output)
