"""MObyGaze's tables: each modality and all of them, labels of each expert, merged and shared, film by film.

The code of the corpus's papers on several modalities is not public, so no number of theirs stands beside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import obygaze_models as om
from obygaze_features.arguments import checked
from obygaze_features.manifest import Manifest
from obygaze_features.screen import Progress
from obygaze_features.store import Store
from obygaze_models.commands import read_named
from obygaze_models.dataset import Dataset, join_modalities
from obygaze_models.evaluation import METRICS, Run
from obygaze_models.report import Block, Report, interval, number
from obygaze_studies.unfinished import Work, kept_result

RULES = ("merged", "each", "soft")
SHOWN = ("auc", "average_precision")
BESIDE = ("length", "other_expert")
"""What stands beside the models once a table: the clips' length alone, and the other annotator."""


@checked
def mobygaze_report(
    manifest: Manifest,
    stores: Mapping[str, tuple[Store, str | None]],
    *,
    task: str = "",
    models: Sequence[str] = ("linear", "mlp"),
    rules: Sequence[str] = RULES,
    bags: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    kept: Path | None = None,
    made: Callable[[Report, Report], None] = lambda *_: None,
) -> Report:
    """Evaluate models of every modality, and of all, on the labels of every annotator.

    Parameters
    ----------
    manifest : Manifest
        Segments or windows, once for each annotator.
    stores : mapping of str to (Store, str or None)
        Modality -> its store and backbone: of the same clips, or of windows of films, where clips are bags.
    task : str
        As `evaluate` takes it; "" for the codebook's only task.
    models : sequence of str
        Models of vectors; and ``attention``, over the frames of each modality that has them.
    rules : sequence of str
        What is learnt of annotators' labels, as `evaluate` takes it.
    bags : bool
        Whether clips are bags of the stores' windows (`load_bags`); attention is then over windows.
    kept : path, optional
        Folder to keep runs in, and to read those that an earlier call with the same arguments kept.
    made : callable, optional
        Called when the tables of a rule are made, with these and with all that there are.

    Raises
    ------
    DatasetError, ModelError, ProtocolError
        As `evaluate` and `fused` do.
    """
    load = om.load_bags if bags else om.load_dataset
    modalities = {}
    for name, (store, backbone) in stores.items():
        modalities[name] = load(store, manifest, backbone=backbone)
    datasets = modalities
    if len(modalities) > 1:
        names = [store.name for store, _ in stores.values()]
        joined = join_modalities(names, list(modalities.values()), manifest).named(list(modalities))
        datasets = {"": joined, **modalities}
    fingerprints = {name: store.fingerprint for name, (store, _) in stores.items()}
    rows: list[pd.DataFrame] = []
    for rule in rules:
        settings = {"task": task, "experts": rule, "seed": seed, "progress": progress}
        rows_of_rule: list[pd.DataFrame] = []
        record: dict[str, Any] = {}
        for modality, run in _runs(datasets, models, kept, **settings):
            record = {key: run.record[key] for key in ("codebook", "train", "clips", "versions")}
            rows_of_rule.append(_rows(run, rule, modality, shown=[*models, *BESIDE]))
        rows += rows_of_rule
        report = _report(rows, {**record, "modalities": fingerprints})
        made(_report(rows_of_rule, report.record), report)
    return report


def work(
    manifest: Path,
    stores: Sequence[str],
    *,
    task: str,
    models: Sequence[str],
    rules: Sequence[str],
    bags: bool,
    seed: int,
) -> Work:
    """Prepare the tables; settings as for `mobygaze_report`."""
    clips, named = read_named(manifest, stores)
    settings: dict[str, Any] = {"task": task, "models": models, "rules": rules, "bags": bags, "seed": seed}

    def make(made: Callable[..., None], **more: Any) -> Report:
        report = mobygaze_report(clips, named, **settings, **more, made=made)
        if len(rules) > 1:
            made(report)
        return report

    read = {name: (store.fingerprint, backbone) for name, (store, backbone) in named.items()}
    return Work({"manifest": clips.digest(), "stores": read, **settings}, make)


def _report(rows: Sequence[pd.DataFrame], record: Mapping[str, Any]) -> Report:
    data = pd.concat(rows, ignore_index=True).drop_duplicates(
        ["tested_on", "features", "labels", "model", "metric"]
    )
    return Report(
        name="mobygaze",
        title=f"MObyGaze: {record['train']['title']}",
        notes=(
            "Every film is tested by models trained on the others: means over films, with 95 % intervals.",
            "all: late fusion of the modalities; -MODALITY: all but it.",
            "A clip that lacks a modality is scored by a model of the others.",
            "Numbers of the corpus's papers on several modalities are not public.",
        ),
        blocks=tuple(_block(str(test), own) for test, own in data.groupby("tested_on", sort=False)),
        data=data,
        record=record,
    )


def _runs(
    datasets: Mapping[str, Dataset], models: Sequence[str], kept: Path | None, **settings: Any
) -> Iterator[tuple[str, Run]]:
    """Evaluate models of vectors on all modalities (""), then attention on each that has frames."""
    of_vectors = [name for name in models if name != "attention"]
    for name, data in datasets.items():
        is_all = not name
        groups = []
        if of_vectors and (is_all or len(datasets) == 1):
            groups.append(of_vectors)
        if not is_all and "attention" in models and _has_frames(data):
            groups.append(["attention"])
        for place, group in enumerate(groups):
            compute = partial(_evaluated, data, group, settings, fuse=is_all)
            yield name, kept_result(kept, f"{settings['experts']}-{name or 'all'}-{place}", compute)


def _evaluated(data: Dataset, models: Sequence[str], settings: Mapping[str, Any], *, fuse: bool) -> Run:
    return om.evaluate(data, om.fused(models, data, "late") if fuse else models, **settings)


def _has_frames(data: Dataset) -> bool:
    return data.bags is not None or (data.group is not None and "frames" in data.group.arrays)


def _rows(run: Run, rule: str, modality: str, shown: Sequence[str]) -> pd.DataFrame:
    """Tell features, labels and model apart in the rows of the models shown, of one modality or all ("")."""
    table = run.metrics[run.metrics["metric"].isin(SHOWN)].copy()
    parts = table["model"].str.extract(r"^(?P<model>[^:@]+)(?::(?P<features>[^@]+))?(?:@(?P<by>.+))?$")
    table = table.assign(
        model=parts["model"],
        features=parts["features"].fillna(modality or "all"),
        labels=rule if rule != "each" else ("of " + parts["by"].fillna("")),
        tested_on=table["task"].str.partition(">")[2],
    )
    beside = table["model"].isin(BESIDE)
    table.loc[beside, ["features", "labels"]] = ""
    columns = ["tested_on", "features", "labels", "model", "metric", "movie_mean", "movie_low", "movie_high"]
    return table.loc[table["model"].isin(shown), [*columns, "movie_chance", "n_movies"]]


def _block(test: str, rows: pd.DataFrame) -> Block:
    """Show the models of a test, those that stand beside them last, and chance."""
    cells: list[tuple[str, ...]] = []
    in_order = rows.assign(is_beside=rows["model"].isin(BESIDE)).sort_values("is_beside", kind="stable")
    for keys, metrics in in_order.groupby(["features", "labels", "model"], sort=False):
        by_metric = metrics.set_index("metric").to_dict(orient="index")
        intervals = []
        for metric in SHOWN:
            values = by_metric[metric]
            intervals.append(interval(values["movie_mean"], values["movie_low"], values["movie_high"]))
        cells.append((*map(str, keys), *intervals))
    chance = rows.drop_duplicates("metric").set_index("metric")["movie_chance"].to_dict()
    cells.append(("", "", "(chance)", *(number(chance[metric]) for metric in SHOWN)))
    titles = (f"{METRICS['auc'].title} [95 %]", "AUC-PR [95 %]")
    n_films = int(rows["n_movies"].iloc[0])
    headers = ("features", "labels", "model", *titles)
    return Block(f"{test}: by film, mean of {n_films}", headers, tuple(cells))
