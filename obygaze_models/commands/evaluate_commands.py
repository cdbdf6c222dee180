"""`obygaze evaluate` and `compare`: evaluate models by leave-one-movie-out, and compare two of them."""

import re
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features.io import NO_LICENCE, file_sha256, refuse_existing
from obygaze_features.options import Answer, Output
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, Json, argument, command, option
from obygaze_features.text import counted, is_address
from obygaze_models.commands.inputs import complete_model, complete_task, finish, write_page
from obygaze_models.commands.shared_options import Html, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence

    from obygaze_features.same_pictures import Shared
    from obygaze_features.store import Store
    from obygaze_models.commands.evaluate_remarks import Difference, FilmProblems, SavedModel
    from obygaze_models.commands.inputs import Modalities
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.evaluation import Run
    from obygaze_models.evaluation.experts import Experts
    from obygaze_models.models import ModelSpec
    from obygaze_models.protocol.targets import Target
    from obygaze_models.report import Report


MIN_ANNOUNCED_FOLDS = 101
"""Number of folds from which on a note says how long they will take."""

MIN_ANNOUNCED_HOURS = 0.5
"""Number of CPU hours from which on a note announces them, for models that read tokens."""

MAX_NAMED_PAIRS = 5
"""Number of pairs of similar films that are named for each store."""

MAX_TIME_DIFFERENCE_S = 1.0
"""Times of a store and a manifest may differ by this without a warning, as some tables hold whole seconds."""

Fuse = Literal["concat", "late", "max", "mean", "concepts"]
Layer = Literal["each", "chosen"]

IN_TIME = "pcbm_time"
"""The only model that --model may name with --fuse concepts: concepts are then learnt from frames."""

FUSED_BY_CONCEPTS = ("concepts", "concepts_in_time")
"""Names of the models of all modalities that --fuse concepts makes."""


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
            "Built-in model (docs/models.md), or one of an installed package or of a module; repeatable. "
            "Baselines are always added.  [default: the built-in models that the task suits]",
            name="model",
            metavar="NAME|[NAME=]MODULE:FACTORY",
            shell_complete=complete_model,
        ),
    ] = (),
    texts: Annotated[
        Path | None,
        option(
            "Add zero-shot models, which compare clips with texts of concepts: store of the texts "
            "that 'obygaze codebook texts' lists, encoded by the network of STORE.",
            metavar="STORE",
        ),
    ] = None,
    fuse: Annotated[
        Fuse | None,
        option(
            "How to combine the features of several stores or backbones (modalities). concat: join "
            "the features, with a penalty for each modality. late: one model for each, with "
            "weights of the logits from held-out films. max, mean: the largest or mean logit of "
            "these models. concepts: learn each concept from the modality that conveys it "
            "(visual=STORE heard=STORE), and read the concepts with a linear model; with --model "
            "pcbm_time, learn them from frames. Each modality alone, and all but one, are "
            "evaluated too."
        ),
    ] = None,
    layer: Annotated[
        str | None,
        option(
            "Number of a layer that 'extract --layers' stored. each: evaluate one model for each "
            "layer; also print what the best of so many layers reaches by chance. chosen: choose "
            "one layer by inner folds of movies.",
            type=click.STRING,
            metavar="N|each|chosen",
        ),
    ] = None,
    reduce: Annotated[
        str | None,
        option(
            "Reduce tokens for models that read frames or tokens: mean (over the patches of a "
            "frame or tubelet), top:K (the K of largest norm), project:SIZE:SEED (random "
            "projection), mean+project:SIZE:SEED. The result is saved next to STORE.",
            metavar="RULE",
        ),
    ] = None,
    variables: Annotated[
        Path | None,
        option(
            "Table with numbers of each clip, such as 'obygaze film variables' writes. Adds the "
            "baseline 'staging', which reads only these numbers.",
            metavar="CSV",
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        option(
            "A machine's answers to the questions of 'obygaze codebook questions', or a store that "
            "'extract --backbone vlm' made. Adds the zero-shot model 'answers'.",
            metavar="JSONL|STORE",
        ),
    ] = None,
    policy: Policy = "raw",
    seed: Annotated[int, option("Random seed.", type=click.IntRange(0))] = 0,
    n_seeds: Annotated[
        int,
        option(
            "Repeat with K consecutive seeds, from --seed on; metrics are reported as mean and SD.",
            name="seeds",
            type=click.IntRange(1),
            metavar="K",
        ),
    ] = 1,
    seen: Annotated[
        bool,
        option(
            "Hold out blocks of scenes instead of whole movies, so that a model is tested on "
            "movies that it was trained on."
        ),
    ] = False,
    folds: Annotated[
        int | None,
        option(
            "Test whole movies in N folds with about equal numbers of clips.  [default: one fold "
            "for each movie; 20 folds for more than 500 movies]",
            type=click.IntRange(3),
            metavar="N",
        ),
    ] = None,
    test_seen_scores: Annotated[
        bool,
        option(
            "Test also on clips whose annotators saw a model's score when they judged them (column "
            "seen_score). By default these clips are only trained on."
        ),
    ] = False,
    experts: Annotated[
        Literal["merged", "each", "soft", "noisy"] | None,
        option(
            "How to train on the labels of several annotators. merged: on one label for each clip. "
            "each: one model for each annotator. soft: on the share of annotators who call the "
            "clip positive. noisy: on the probable label, given how often each annotator is right, "
            "which is estimated together with a model of the features. All models are tested on "
            "each annotator's labels.  [default: merged]"
        ),
    ] = None,
    imbalance: Annotated[
        Literal["none", "weights", "subsample"],
        option(
            "Class-imbalance handling of the MLP, applied to training clips only. none: only the "
            "threshold is tuned. weights: the loss of a clip is weighted by n / (2 n_class). "
            "subsample: of the larger class, take as many clips as the smaller class has."
        ),
    ] = "none",
    refits: Annotated[
        int | None,
        option(
            "Test the models named with --model by a permutation test: train them again N times, "
            "with the sequences of labels of whole films exchanged. The test is valid also if "
            "features and labels change slowly over a film. It takes N times as long as the "
            "evaluation. The smallest p is 1 / (N + 1), so that N is at least 19.",
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
    out: Annotated[Path | None, option("Folder to write the run to.  [default: no file is written]")] = None,
    html: Html = None,
    force: Annotated[bool, option("Replace an existing run.")] = False,
    json: Json = False,
) -> None:
    """Evaluate models on the features of STORE with the labels of MANIFEST.

    Every movie is tested once, by models trained on the other movies. The models' settings (penalty, depth,
    epochs, threshold) are chosen by inner folds of the training movies. The command prints one row per
    model, and whether a model beats the baselines.

    With --out, write a folder: predictions.csv (from which every number is computed), metrics.csv,
    selection.csv (the chosen settings), run.json, and all tables as report.md and .tex. The same command
    gives the same bytes.

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
    from obygaze_features.manifest.identity import check_identity
    from obygaze_models.commands.evaluate_remarks import remarks
    from obygaze_models.commands.inputs import read_modalities, under_policy
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
    _check_layer(layer, {"--fuse": fuse, "--reduce": reduce, "--texts": texts})
    several_layers = _several_layers(layer)
    inputs = read_modalities(manifest, stores, fuse, _options_not_with_fuse(fuse, models, texts, reduce))
    labelled, policy_notes = under_policy(inputs.manifest, policy)
    target, tested_target = choose_targets(inputs.manifest.codebook, task, test, sides=(negative, positive))
    # The base models are those of --model. With --fuse or several layers, the models to evaluate are made of
    # them: one for each set of modalities, or for each layer. Otherwise they are evaluated themselves.
    base_names = _base_model_names(models, for_layers_or_modalities=bool(fuse or several_layers))
    base_specs = models_for(target.kind, base_names, imbalance=imbalance)
    _check_saved_models(base_specs, save, several_layers, experts, _annotators_of(labelled))
    _check_reduce(base_specs, reduce)

    # --- read the features, and make the models
    features = _load_features(inputs, labelled, fuse, reduce, layer)
    specs = _models_to_evaluate(base_specs, features, fuse, several_layers, in_time=bool(models))
    specs_to_refit = _specs_to_refit(base_names or (), base_specs, specs, fuse, several_layers)
    # Variables and answers of tables are read beside the features.
    data, table_notes, digests = _with_tables(features, labelled, variables, answers, target)
    _announce_hours(data, {spec.reads for spec in specs})
    _announce_folds(data, folds, seen=seen)
    if texts is not None:
        zero_shot_specs = _read_texts(texts, data, target)
        specs = [*zero_shot_specs, *specs]
    check_can_be_saved(_specs_to_save(specs, save), data, target, licence or NO_LICENCE)

    # --- train and test
    # Refits are evaluated with the same settings.
    settings: dict[str, Any] = {
        "task": target,
        "test": tested_target,
        "seed": seed,
        "n_seeds": n_seeds,
        "seen": seen,
        "folds": folds,
        "imbalance": imbalance,
        "test_seen_scores": test_seen_scores,
        "experts": experts,
    }
    # `om.evaluate` finds models by their names, and the whole zoo for None. Models that were made here, of
    # layers, modalities or texts, have no name in the zoo: these it gets as specs.
    has_new_models = bool(fuse or several_layers or texts is not None)
    names_in_zoo = models or None
    models_to_evaluate = specs if has_new_models else names_in_zoo
    origin = {"manifest_sha256": inputs.manifest.digest(), "label_policy": policy, **digests}
    run = om.evaluate(data, models_to_evaluate, **settings, origin=origin, progress=True)
    if refits:
        run = _refit(run, data, specs_to_refit, refits, settings)

    # --- print and write the results
    report = om.run_report(run)
    # Printed before anything is written, so that a full disk does not lose the results.
    click.echo(to_json(run) if json else plain(short_report(run)), nl=False)
    write_page(report, html, force=force)
    film_problems = _film_problems(inputs, data)
    model_files: dict[str, Path] = {}
    if out is not None:
        model_files = _write_run_folder(run, report, data, save, licence or NO_LICENCE, out, force=force)
    lines = remarks(
        run,
        data,
        specs,
        policy_notes=policy_notes,
        other_notes=[*check_identity(inputs.manifest), *table_notes],
        film_problems=film_problems,
        saved_models=_read_saved_models(model_files),
        out=out,
    )
    click.echo("\n".join(lines), err=True)


def _options_not_with_fuse(
    fuse: "Fuse | None", models: tuple[str, ...], texts: Path | None, reduce: str | None
) -> dict[str, object]:
    """Return the options that cannot be combined with --fuse, with their values: false if not used.

    --fuse concepts makes models of its own, of one vector per clip or, with --model pcbm_time, of frames. It
    refuses every other --model.
    """
    names_other_models = fuse == "concepts" and models not in ((), (IN_TIME,))
    return {"--texts": texts, f"--model other than {IN_TIME}": names_other_models, "--reduce": reduce}


def _base_model_names(models: "Sequence[str]", *, for_layers_or_modalities: bool) -> "Sequence[str] | None":
    """Return the names of the base models: those of --model or, by default, None for the whole zoo.

    If models of layers or modalities are made of the base models, the default is the linear probe alone.
    """
    if models:
        return models
    if for_layers_or_modalities:
        return ("linear",)
    return None


def _load_features(
    inputs: "Modalities", labelled: "of.Manifest", fuse: str | None, reduce: str | None, layer: str | None
) -> "Dataset":
    """Load the features that models read: of one store, one layer, all layers, or all fused modalities.

    Parameters
    ----------
    inputs
        The stores, each with its backbone and the name of the modality.
    labelled
        The manifest under the label policy.
    fuse, reduce, layer
        Values of the options --fuse, --reduce and --layer; None if they are not given.
    """
    if fuse is not None:
        data = om.load_dataset(inputs.stores, labelled, backbone=inputs.backbones, progress=True)
        # A modality is called as in NAME=STORE; without NAME it keeps the name of its backbone.
        return data.named(inputs.names)
    # Without --fuse there is one store.
    store = inputs.stores[0]
    backbone = inputs.backbones[0]
    if _several_layers(layer):
        return om.load_layers(store, labelled, backbone=backbone)
    if layer is not None:
        backbone = _group_of_layer(store, backbone, int(layer))
    return om.load_dataset(store, labelled, backbone=backbone, reduce=reduce, progress=True)


def _group_of_layer(store: "Store", backbone: str | None, layer: int) -> str:
    """Return the name of the group in a store that holds a layer of a backbone, such as "xclip.8".

    `layer` is the number given by --layer; a store without it is a usage error, which lists its layers.
    `backbone` is None for the only backbone of the store.
    """
    from obygaze_models.dataset.features import layer_groups

    groups = layer_groups(store, backbone)
    if layer not in groups:
        known = ", ".join(map(str, groups))
        raise click.UsageError(f"--layer {layer}: the store has layers {known}")
    return groups[layer]


def _models_to_evaluate(
    specs: "Sequence[ModelSpec]",
    data: "Dataset",
    fuse: "Fuse | None",
    layers: "Layer | None",
    *,
    in_time: bool,
) -> "list[ModelSpec]":
    """Make the models that are evaluated: of layers with --layer, of modalities with --fuse, or as given.

    Parameters
    ----------
    specs
        Models that read one vector per clip.
    data
        The dataset, with a part for each layer or modality if there are several.
    fuse
        How modalities are fused; None for one modality.
    layers
        "each" or "chosen" to make models of the layers, or None.
    in_time
        Whether concepts are learnt from frames, if modalities are fused by concepts.
    """
    if layers is not None:
        return om.layered(specs, data, layers)
    if fuse is None:
        return list(specs)
    if fuse == "concepts":
        return om.fused_by_concepts(data, in_time=in_time)
    return om.fused(specs, data, fuse)


def _specs_to_refit(
    base_names: "Sequence[str]",
    base_specs: "Sequence[ModelSpec]",
    specs: "Sequence[ModelSpec]",
    fuse: "Fuse | None",
    layers: "Layer | None",
) -> "list[ModelSpec]":
    """Select the models that --refits tests: those that the user asked for, without the baselines.

    With several modalities or layers, what is evaluated is made of the requested models, under other names:

    - of layers, all models that read features are made of the requested ones;
    - with --fuse concepts, the fused models have names of their own;
    - else the model of all modalities has the name of the requested model, such as "linear", and those of one
      modality, or of all but one, which only are compared with it, have others.

    Parameters
    ----------
    base_names
        Names of the requested models. A name may stand twice, and may be `MODULE:FACTORY`.
    base_specs
        The requested models in the order of their names, each once, and after them the baselines.
    specs
        The models that are evaluated, and baselines.
    fuse
        How modalities are fused; None for one modality.
    layers
        "each" or "chosen" if models read several layers, else None.
    """
    if layers is not None:
        return [spec for spec in specs if spec.looks_at_features]
    if fuse == "concepts":
        return [spec for spec in specs if spec.name in FUSED_BY_CONCEPTS]
    # The requested names may not be those of the specs, such as MODULE:FACTORY: the specs are counted off.
    n_requested = len(set(base_names))
    requested_names = [spec.name for spec in base_specs[:n_requested]]
    return [spec for spec in specs if spec.name in requested_names]


def _refit(
    run: "Run",
    data: "Dataset",
    specs: "Sequence[ModelSpec]",
    n_refits: int,
    settings: "Mapping[str, Any]",
) -> "Run":
    """Return a run with the p of the permutation test of --refits, which trains models `n_refits` times.

    In each refit the films exchange their sequences of labels. `specs` are the models that are tested, and
    `settings` those of the evaluation. Progress is shown.
    """
    from obygaze_models.evaluation.refits import with_refits

    with _announce_refits(specs, n_refits) as show_refit:
        return with_refits(run, data, specs, n_refits, show_refit, **settings)


def _write_run_folder(
    run: "Run",
    report: "Report",
    data: "Dataset",
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
    # The folder gets its name when everything is in it.
    with new_run(run, folder, texts, force=force) as temporary_folder:
        for picture in report.pictures:
            picture.draw(temporary_folder / picture.name)
        saved = om.save_models(run, data, save, temporary_folder, licence=licence)
    return {name: folder / file.name for name, file in saved.items()}


def _film_problems(inputs: "Modalities", data: "Dataset") -> "FilmProblems":
    """Find signs that films of a dataset have wrong names or times, or are in the data twice.

    A film that is there under two names would be trained on and tested, so that results are too good. The
    signs are similar pictures, equal or nearly equal features, and clips for which store and manifest differ.
    """
    from obygaze_models.commands.evaluate_remarks import FilmProblems
    from obygaze_models.dataset.near_copies import nearly_equal_films
    from obygaze_models.prediction.training_films import SAME_FILM_SHARE, films_with_equal_clips

    equal_films = films_with_equal_clips(data)
    are_warned_of = {(film, other) for film, other, share in equal_films if share > SAME_FILM_SHARE}
    near_films = [pair for pair in nearly_equal_films(data) if pair[:2] not in are_warned_of]
    differing = differing_clips(inputs.stores, inputs.manifest, data.row_of)
    return FilmProblems(
        similar_films=list(_similar_films(inputs.stores, data)),
        equal_films=equal_films,
        near_films=near_films,
        other_films=differing.films,
        other_times=differing.times,
    )


def _read_saved_models(model_files: "Mapping[str, Path]") -> "list[SavedModel]":
    """Read the cards of saved models (name -> file) back from their files, which hold what was saved."""
    from obygaze_models.commands.evaluate_remarks import SavedModel
    from obygaze_models.persistence.model_file import read_model

    return [SavedModel(name, file, read_model(file).card) for name, file in model_files.items()]


# --- checks before the work
# ---------------------------------------------------------------------------
def _check_output(
    out: Path | None, html: Path | None, save: "Sequence[str]", *, seen: bool, force: bool
) -> None:
    """Raise if the options for saving contradict each other, or an output can't be written.

    An output can't be written if it exists and --force is not given, or if its folder is read-only.
    """
    from obygaze_models.evaluation.run_folder import check_free

    # With --seen a model is tested on movies that it was trained on, which says nothing of other movies.
    if seen and save:
        raise click.UsageError("--save keeps the metrics of movies not seen: leave --seen out")
    if save and out is None:
        raise click.UsageError("--save keeps models in the run's folder: give --out")
    if out is not None:
        check_free(out, force=force)
        _check_writable(out)
    refuse_existing(html, force=force)


def _check_writable(path: Path) -> None:
    """Raise if nothing may be written where a path is, before hours of work whose result goes there."""
    # With force=True an existing path is no error, so that only the check of its folder is left.
    refuse_existing(path, force=True)


def _check_layer(layer: str | None, conflicting_options: "Mapping[str, object]") -> None:
    """Raise if the value of --layer is invalid, or an option is used that cannot be combined with --layer.

    Parameters
    ----------
    layer
        The value; valid are the number of a layer, "each" and "chosen". None if it was not given.
    conflicting_options
        Options that cannot be combined with it -> their values.
    """
    if layer is None:
        return
    used_options = [name for name, value in conflicting_options.items() if value]
    if used_options:
        raise click.UsageError(f"{', '.join(used_options)}: not with --layer {layer}")
    is_number = re.fullmatch("[1-9][0-9]{0,3}", layer, re.ASCII)
    if not is_number and not _several_layers(layer):
        raise click.UsageError(f"--layer {layer}: expected the number of a layer, each or chosen")


def _several_layers(layer: str | None) -> "Layer | None":
    """Return the value of --layer if it stands for several layers ("each" or "chosen"), else None."""
    if layer == "each":
        return "each"
    if layer == "chosen":
        return "chosen"
    return None


def _annotators_of(manifest: "of.Manifest") -> list[str]:
    """List the annotators of a manifest by name; with --experts each, every model is trained for each."""
    return sorted({clip.annotator for clip in manifest if clip.annotator})


def _check_saved_models(
    specs: "Sequence[ModelSpec]",
    save: "Sequence[str]",
    layers: "Layer | None",
    experts: "Experts | None",
    annotators: "Sequence[str]",
) -> None:
    """Raise if a model of --save is not among the models of the evaluation, or reads several layers.

    An evaluation can take hours, so that a misspelt name is refused before it, not after. The model "bank",
    of the directions of all concepts, can be saved without being evaluated.

    Parameters
    ----------
    specs
        The models of the evaluation.
    save
        Values of --save.
    layers
        "each" or "chosen" if models read several layers, else None.
    experts
        The value of --experts: on which labels of several annotators models are trained.
    annotators
        Names of the annotators.
    """
    if layers == "each" and save:
        raise click.UsageError("--save keeps a model of one layer: with --layer N, or --layer chosen")
    if layers is not None and "bank" in save:
        raise click.UsageError("--save bank: a bank of concepts reads one layer: name it, --layer N")
    # With --experts each there is a model for each annotator, such as linear@AB.
    names = [spec.name for spec in specs]
    if experts == "each":
        names = [f"{spec.name}@{annotator}" for spec in specs for annotator in annotators]
    trains_on_several_labels = experts in {"soft", "noisy"}
    for name in save:
        if name == "bank":
            continue
        if trains_on_several_labels:
            raise click.UsageError(
                f"--save {name}: not with --experts {experts}, which trains on several labels of a clip, and "
                "no file keeps such a model: --experts merged or each"
            )
        if name not in names:
            known = ", ".join(names)
            raise click.UsageError(f"--save {name}: not among the models of this evaluation: {known}")


def _specs_to_save(specs: "Sequence[ModelSpec]", save: "Sequence[str]") -> "list[ModelSpec]":
    """Select the models that --save names, also for the labels of one annotator, as NAME@ANNOTATOR."""
    from obygaze_models.models.names import name_in_zoo

    names = {name_in_zoo(name) for name in save}
    return [spec for spec in specs if spec.name in names]


def _check_reduce(specs: "Sequence[ModelSpec]", reduce: str | None) -> None:
    """Raise if tokens are to be reduced (--reduce) although no model reads frames or tokens.

    Other models read one vector per clip, the array "pooled", which has no tokens.
    """
    if reduce and all(spec.reads == "pooled" for spec in specs):
        raise click.UsageError("--reduce is for models that read frames or tokens, such as --model attention")


# --- tables of variables and answers
# ---------------------------------------------------------------------------
class WithTables(NamedTuple):
    """A dataset to which tables have added variables or answers of its clips.

    Attributes
    ----------
    data : Dataset
        The dataset.
    notes : list of str
        Notes on which parts of the tables were used.
    digests : dict of str to str
        SHA-256 of each table, for the run's record.
    """

    data: "Dataset"
    notes: list[str]
    digests: dict[str, str]


def _with_tables(
    data: "Dataset", manifest: "of.Manifest", variables: Path | None, answers: Path | None, target: "Target"
) -> WithTables:
    """Add the variables of a table and the answers of a machine to a dataset, if their files are given.

    `target` is what models are trained on, which decides which answers are used.
    """
    from obygaze_features.store.store import names_store
    from obygaze_models.dataset.variables_and_answers import with_answers, with_variables

    notes: list[str] = []
    digests: dict[str, str] = {}
    if variables is not None:
        data, notes_of_variables = with_variables(data, variables, manifest, target)
        notes += notes_of_variables
        digests["variables_sha256"] = file_sha256(variables)
    if answers is not None:
        data, notes_of_answers = with_answers(data, answers, target)
        notes += notes_of_answers
        if names_store(answers):
            digests["answers_sha256"] = of.open_store(answers).fingerprint
        else:
            digests["answers_sha256"] = file_sha256(answers)
    return WithTables(data, notes, digests)


def _read_texts(path: Path, data: "Dataset", target: "Target") -> "list[ModelSpec]":
    """Make the zero-shot models of --texts, which score a clip by its similarity with texts of concepts.

    `path` is a store of texts that were encoded by the network of the clips' features. Ordered levels are a
    usage error: similarity tells two classes apart.
    """
    from obygaze_models.concepts.texts import zero_shot_models

    if target.kind == "ordinal":
        raise click.UsageError("--texts is for two classes, and ordered levels are asked for")
    return zero_shot_models(data, of.open_store(path), target)


# --- announcements of long work
# ---------------------------------------------------------------------------
@contextmanager
def _announce_refits(specs: "Sequence[ModelSpec]", n_refits: int) -> "Iterator[Callable[[int], None]]":
    """Show a progress bar of refits; after the first one, print how long all of them will take.

    Yields a function to call after each refit, with the number of refits done.
    """
    names = ", ".join(spec.name for spec in specs)
    start_s = process_time()
    with progress_bar("training", "refit") as show_progress:

        def show_refit(n_done: int) -> None:
            """Show the number of finished refits."""
            if n_done == 1:
                cpu_s_of_first = process_time() - start_s
                cpu_s = n_refits * cpu_s_of_first
                click.echo(f"note: {n_refits} refits of {names} take about {cpu_s:.0f} s of CPU", err=True)
            show_progress(n_done, n_refits)

        yield show_refit


def _announce_hours(data: "Dataset", reads: "Collection[str]") -> None:
    """Print a note before the work begins if models of all tokens will take hours.

    `reads` are the arrays that the models read: "pooled", "frames", "tokens".
    """
    from obygaze_models.models.attentive import most_cpu_hours

    reads_all_tokens = "tokens" in reads and data.reduction is None
    if not reads_all_tokens:
        return
    # Streamed, so that only the shape is read.
    n_clips, n_tokens, width = data.read("tokens", stream=True).shape
    hours = most_cpu_hours(n_clips, n_tokens, width, len(set(data.movies)))
    if hours >= MIN_ANNOUNCED_HOURS:
        click.echo(
            f"note: up to {hours:.0f} CPU hours for {counted(n_clips, 'clip')} of {n_tokens} tokens, unless "
            "probes stop early; --reduce mean, or mean+project:SIZE, makes the tokens small first",
            err=True,
        )


def _announce_folds(data: "Dataset", folds: int | None, *, seen: bool) -> None:
    """Print a note before the work begins on how long many folds of whole movies will take.

    `folds` is the value of --folds. With --seen (`seen`) movies are not held out, and nothing is printed.
    """
    from obygaze_models.models.probe_search import expected_cpu_s

    n_movies = len(set(data.movies))
    n_folds = _number_of_folds(n_movies, folds)
    if seen or n_folds < MIN_ANNOUNCED_FOLDS:
        return
    one_each = ", one for each movie" if n_folds == n_movies else ""
    cpu_s = expected_cpu_s(len(data.movies), data.X.shape[-1], n_folds)
    minutes = max(round(cpu_s / 60), 1)
    unit = "minute" if minutes == 1 else "minutes"
    click.echo(
        f"note: {counted(n_folds, 'fold')}{one_each}: about {minutes} CPU {unit} for a linear probe, and for "
        "other models as many times one training; --folds 20 leaves out movies in 20 groups",
        err=True,
    )


def _number_of_folds(n_movies: int, requested: int | None) -> int:
    """Return the number of folds of whole movies: as requested, or the default, but not more than movies.

    The default is a fold for each movie or, for many movies, a fixed number of groups of movies.
    """
    from obygaze_models.protocol.folds import MAX_SINGLE_MOVIE_FOLDS, N_GROUPED_FOLDS

    if requested is not None:
        return min(requested, n_movies)
    if n_movies <= MAX_SINGLE_MOVIE_FOLDS:
        return n_movies
    return min(N_GROUPED_FOLDS, n_movies)


# --- differences between store and manifest
# ---------------------------------------------------------------------------
def _similar_films(stores: "Sequence[Store]", data: "Dataset") -> "Iterator[tuple[Shared, Store]]":
    """Yield pairs of films whose pictures are similar, each with the store that has them.

    Only local stores with picture signatures are searched. At most `MAX_NAMED_PAIRS` pairs of each store are
    yielded.
    """
    from obygaze_features.same_pictures import duplicates, has_signatures

    for store in dict.fromkeys(stores):
        is_local = not is_address(store.where)
        if is_local and has_signatures(store):
            clip_ids = data.row_of.keys()
            similar_films = duplicates(store, only=clip_ids).movies
            for shared in similar_films[:MAX_NAMED_PAIRS]:
                yield shared, store


class DifferingClips(NamedTuple):
    """Clips for which store and manifest differ.

    Attributes
    ----------
    films
        Clips with another film in the store than in the manifest.
    times
        Clips with other times. A value is a span: start and end in seconds, None if unknown.
    """

    films: "list[Difference]"
    times: "list[Difference]"


def differing_clips(
    stores: "Sequence[Store]", manifest: "of.Manifest", clip_ids: "Container[str]"
) -> DifferingClips:
    """List the clips, of those given by their ids, whose film or times differ in a store and a manifest."""
    from obygaze_models.commands.evaluate_remarks import Difference

    clips_in_manifest = {clip.clip_id: clip for clip in manifest if clip.clip_id in clip_ids}
    other_films = []
    other_times = []
    for store in stores:
        for stored in store.clips:
            clip = clips_in_manifest.get(stored.clip_id)
            if clip is None:
                continue
            if _is_of_other_film(stored.movie, clip.movie):
                other_films.append(Difference(clip.clip_id, stored.movie, clip.movie))
            if _is_moved(stored.start_s, clip.start_s) or _is_moved(stored.end_s, clip.end_s):
                span_in_store = (stored.start_s, stored.end_s)
                span_in_manifest = (clip.start_s, clip.end_s)
                other_times.append(Difference(clip.clip_id, span_in_store, span_in_manifest))
    return DifferingClips(other_films, other_times)


def _is_of_other_film(in_store: str, in_manifest: str) -> bool:
    """Tell whether two names of a clip's film are of different films; a store may not know the film ("")."""
    from obygaze_features.manifest.identity import same_films

    if in_store in ("", in_manifest):
        return False
    return not same_films([in_manifest, in_store])  # one in another spelling


def _is_moved(in_store: float | None, in_manifest: float | None) -> bool:
    """Tell whether two times of a clip, in seconds, are known and differ by more than rounding.

    A difference of up to `MAX_TIME_DIFFERENCE_S`, a second, is rounding, as some tables hold whole seconds.
    """
    if in_store is None or in_manifest is None:
        return False
    return abs(in_store - in_manifest) > MAX_TIME_DIFFERENCE_S


# --- compare
# ---------------------------------------------------------------------------
@command()
def compare(
    run_a: Annotated[Path, argument()],
    run_b: Annotated[Path, argument()],
    *,
    model: Annotated[
        str | None, option("Name of the model of RUN_A.  [default: the first in its predictions.csv]")
    ] = None,
    against: Annotated[
        str | None, option("Name of the model of RUN_B.  [default: the name of the model of RUN_A]")
    ] = None,
    out: Annotated[Path | None, option("Write the tables to this folder.")] = None,
    html: Html = None,
    force: Force = False,
    json: Json = False,
) -> Answer:
    """Compare a model of RUN_A with a model of RUN_B, paired by movie.

    A run is the folder that `obygaze evaluate --out` wrote. Both models must have been tested on the same
    clips and labels. Their training data, stores and seeds may differ.

    For each metric, print the mean difference over movies and the p of two tests. The exact sign-flip test
    asks whether these two trained models differ. The corrected t test asks whether the two methods differ,
    that is, whether models trained anew would differ too.

    \b
    Examples:
      obygaze compare runs/xclip runs/descriptors
      obygaze compare runs/films runs/films --model pcbm_lr --against mlp
      obygaze compare runs/hard-negatives runs/easy-negatives --model mlp \\
          --out hard-against-easy --html hard-against-easy.html
    """
    # Each side is a model with its scores in the run.
    side_a = om.side(om.read_run(run_a), model)
    side_b = om.side(om.read_run(run_b), against or side_a.model)
    report = om.comparison_report(om.compare(side_a, side_b))
    return finish(report, Output(out, html, force=force, json=json))
