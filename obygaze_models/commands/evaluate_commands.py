"""`obygaze evaluate` and `compare`: evaluate models by leave-one-movie-out, and compare two of them."""

from collections import Counter
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Literal

import click

import obygaze_features as of
import obygaze_models as om
from obygaze_features.io import NO_LICENCE, file_sha256, refuse_existing
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import progress_bar
from obygaze_models.commands.inputs import complete_model, complete_task, finish, write_page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from obygaze_features.same_pictures import Shared
    from obygaze_features.store import Store
    from obygaze_models.dataset.dataset import Dataset
    from obygaze_models.evaluation import Run
    from obygaze_models.models import ModelSpec
    from obygaze_models.models.fusion import How
    from obygaze_models.protocol.targets import Target


HOURS_SAID = 0.5
"""CPU hours from which on models of tokens are announced."""

MOST_NAMED = 5
"""Pairs of films that look alike that are named."""

MOST_MOVED_S = 1.0
"""Seconds by which times of a store and a manifest may differ unsaid: some round to whole seconds."""

IN_TIME = "pcbm_time"
"""The model whose bottleneck fuses modalities by concepts of their frames."""


@declared(
    __package__,
    "evaluate",
    task={"shell_complete": complete_task},
    test={"shell_complete": complete_task},
    models={"shell_complete": complete_model},
    save={"shell_complete": complete_model},
)
def evaluate(
    manifest: Path,
    stores: tuple[Path, ...],
    fuse: "How | Literal['concepts'] | None",
    task: str | None,
    test: str | None,
    negative: tuple[str, ...],
    positive: tuple[str, ...],
    models: tuple[str, ...],
    texts: Path | None,
    reduce: str | None,
    policy: str,
    variables: Path | None,
    answers: Path | None,
    save: tuple[str, ...],
    licence: str | None,
    refits: int | None,
    output: Output,
    **chosen: Any,
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
    """
    from obygaze_features.manifest.spans.names import of_one_film
    from obygaze_models.commands.evaluate_remarks import remarks
    from obygaze_models.commands.inputs import read_modalities, under_policy
    from obygaze_models.evaluation.run_folder import new_run, to_json
    from obygaze_models.models.names import model_names
    from obygaze_models.models.registry import models_for
    from obygaze_models.persistence.model_file import read_model
    from obygaze_models.prediction.final import check_can_be_saved
    from obygaze_models.protocol.targets import choose_targets
    from obygaze_models.report import markdown, plain
    from obygaze_models.report.run_tables import short_report
    from obygaze_models.report.write import latex

    _check_output(output, save, seen=chosen["seen"])
    if refits and not (models or fuse):
        raise click.UsageError("--refits trains models again and again: name them by --model")
    alone = {
        "--texts": texts,
        f"--model other than {IN_TIME}": fuse == "concepts" and models not in ((), (IN_TIME,)),
        "--reduce": reduce,
    }
    clips, source, backbone, titles = read_modalities(manifest, stores, fuse, alone)
    labelled, notices = under_policy(clips, policy)
    train, tested = choose_targets(clips.codebook, task, test, sides=(negative, positive))
    specs = models_for(train.kind, models or (("linear",) if fuse else None), imbalance=chosen["imbalance"])
    first = [spec.name for spec in specs[: len({*models}) or 1]]
    _check_models(specs, save, reduce)
    data = om.load_dataset(source, labelled, backbone=backbone, reduce=reduce, progress=True).named(titles)
    if fuse is not None:
        specs = (
            om.fused_by_concepts(data, in_time=bool(models))
            if fuse == "concepts"
            else om.fused(specs, data, fuse)
        )
    data, account, measured = _with_tables(data, labelled, variables, answers, train)
    _announce_hours(data, {spec.reads for spec in specs})
    if texts is not None:
        specs = [*_read_texts(texts, data, train), *specs]
    check_can_be_saved([spec for spec in specs if spec.name in save], data, train, licence or NO_LICENCE)
    run = om.evaluate(
        data,
        specs if fuse or texts is not None else models or None,
        train,
        tested,
        origin={"manifest_sha256": clips.digest(), "label_policy": policy, **measured},
        progress=True,
        **chosen,
    )
    if refits:
        asked = [spec for spec in specs if spec.name in {*first, "concepts", "concepts_in_time"}]
        run = _with_refits(run, data, asked, refits, task=train, test=tested, **chosen)
    report = om.run_report(run)
    # Before anything is written: a full disk takes no result away.
    click.echo(to_json(run) if output.json else plain(short_report(run)), nl=False)
    write_page(report, output.html, force=output.force)
    kept: dict[str, Path] = {}
    alike = [*_same_pictures(source, data)]
    if output.out is not None:
        files = {"report.md": markdown(report), "report.tex": latex(report)}
        with new_run(run, output.out, files, force=output.force) as unnamed:
            kept = om.save_models(run, data, save, unnamed, models=specs, licence=licence or NO_LICENCE)
        kept = {name: output.out / file.name for name, file in kept.items()}
    other_films, other_times = _said_otherwise(source, clips, data)
    said = remarks(
        policy=notices,
        modalities=[
            (each, "frames" in {spec.reads for spec in specs} and "frames" not in part.stored)
            for each, part in zip(data.modalities, data.parts, strict=True)
        ],
        noise=run.record.get("noise", {}),
        account=[*of_one_film(data.movies.tolist()), *account],
        excluded=Counter(clip["reason"] for clip in run.record["excluded"]).most_common(),
        alike=alike,
        other_films=other_films,
        other_times=other_times,
        models=[(name, file, read_model(file).card) for name, file in kept.items()],
        n_movies=len(set(data.movies)),
        known=model_names(),
        out=output.out,
    )
    click.echo("\n".join(said), err=True)


def _check_output(output: Output, save: "Sequence[str]", *, seen: bool) -> None:
    """Refuse to save what can't be, and places that are taken, before the work begins."""
    from obygaze_models.evaluation.run_folder import check_free

    if seen and save:
        raise click.UsageError("--save keeps the metrics of movies not seen: leave --seen out")
    if save and output.out is None:
        raise click.UsageError("--save keeps models in the run's folder: give --out")
    if output.out is not None:
        check_free(output.out, force=output.force)
    refuse_existing(output.out, force=True)
    refuse_existing(output.html, force=output.force)


def _with_refits(run: "Run", data: "Dataset", specs: "Sequence[ModelSpec]", n: int, **how: Any) -> "Run":
    """Add p by refits, and say what they take once the first is done."""
    from obygaze_models.evaluation.evaluate import with_refits

    start = process_time()
    with progress_bar("training", "refit") as show:

        def each(done: int) -> None:
            if done == 1:
                names, took = ", ".join(spec.name for spec in specs), n * (process_time() - start)
                click.echo(f"note: {n} refits of {names} take about {took:.0f} s of CPU", err=True)
            show(done, n)

        return with_refits(run, data, specs, n, each, **how)


def _with_tables(
    data: "Dataset", clips: "of.Manifest", variables: Path | None, answers: Path | None, target: "Target"
) -> "tuple[Dataset, Sequence[str], Mapping[str, str]]":
    """Add variables and a machine's answers, if there are any, with what is said of them and recorded."""
    from obygaze_models.dataset.beside import with_answers, with_variables

    said: list[str] = []
    recorded: dict[str, str] = {}
    if variables is not None:
        data, said = with_variables(data, variables, clips)
        recorded["variables_sha256"] = file_sha256(variables)
    if answers is not None:
        data, more = with_answers(data, answers, target)
        digest = of.open_store(answers).fingerprint if answers.is_dir() else file_sha256(answers)
        said, recorded["answers_sha256"] = [*said, *more], digest
    return data, said, recorded


def _announce_hours(data: "Dataset", reads: "Collection[str]") -> None:
    """Say before it begins that models of all tokens take hours."""
    from obygaze_models.models.attentive import most_cpu_hours

    if "tokens" not in reads or data.reduction is not None:
        return
    n_clips, n_tokens, width = data.read("tokens", stream=True).shape
    hours = most_cpu_hours(n_clips, n_tokens, width, len(set(data.movies)))
    if hours >= HOURS_SAID:
        click.echo(
            f"note: up to {hours:.0f} CPU hours for {n_clips} clips of {n_tokens} tokens, unless probes stop "
            "early; --reduce mean, or mean+project:SIZE, makes the tokens small first",
            err=True,
        )


def _same_pictures(source: "Store | list[Store]", data: "Dataset") -> "Iterator[tuple[Shared, Store]]":
    """Find films that look alike, where the store has the frames that tell."""
    from obygaze_features.same_pictures import duplicates, has_signatures

    stores = [source] if isinstance(source, of.Store) else source
    for store in dict.fromkeys(stores):
        if "://" not in store.where and has_signatures(store):
            found = duplicates(store, only=data.row_of.keys()).movies[:MOST_NAMED]
            yield from ((shared, store) for shared in found)


def _said_otherwise(
    source: "Store | list[Store]", manifest: "of.Manifest", data: "Dataset"
) -> "tuple[list[tuple[str, object, object]], list[tuple[str, object, object]]]":
    """List the clips that a store has of another film or other times, with what it and the manifest say."""
    own = {clip.clip_id: clip for clip in manifest if clip.clip_id in data.row_of}
    stores = [source] if isinstance(source, of.Store) else source
    pairs = [(clip, own[clip.clip_id]) for store in stores for clip in store.clips if clip.clip_id in own]
    spans = [(c.clip_id, (there.start_s, there.end_s), (c.start_s, c.end_s)) for there, c in pairs]
    return (
        [(c.clip_id, there.movie, c.movie) for there, c in pairs if there.movie not in {"", c.movie}],
        [(clip, there, here) for clip, there, here in spans if any(map(_is_moved, there, here))],
    )


def _is_moved(there: float | None, here: float | None) -> bool:
    return there is not None and here is not None and abs(there - here) > MOST_MOVED_S


def _check_models(specs: "Sequence[ModelSpec]", save: "Sequence[str]", reduce: str | None) -> None:
    """Refuse to save what isn't evaluated, and to reduce tokens that no model reads."""
    unknown = [name for name in save if name not in {"bank", *(spec.name for spec in specs)}]
    if unknown:
        known = ", ".join(spec.name for spec in specs)
        raise click.UsageError(f"--save {unknown[0]}: not among the models of this evaluation: {known}")
    if reduce and all(spec.reads == "pooled" for spec in specs):
        raise click.UsageError("--reduce is for models that read frames or tokens, such as --model attention")


def _read_texts(path: Path, data: "Dataset", target: "Target") -> "list[ModelSpec]":
    """Make the zero-shot models of a store of texts."""
    from obygaze_models.concepts.texts import zero_shot_models

    if target.kind == "ordinal":
        raise click.UsageError("--texts is for two classes, and ordered levels are asked for")
    return zero_shot_models(data, of.open_store(path), target)


@declared(__package__, "compare")
def compare(run_a: Path, run_b: Path, model: str | None, against: str | None, output: Output) -> Answer:
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
    return finish(
        om.comparison_report(om.compare(a, om.side(om.read_run(run_b), against or a.model))), output
    )
