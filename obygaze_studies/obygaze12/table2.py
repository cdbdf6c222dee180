"""Reproduce Table 2 (and 5): S against EN, and against EN and HN.

Under `strict` it is also tested whether the models know more than the movie.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

import obygaze_models.evaluation as stats
from obygaze_models.models import BUILTIN_MODELS
from obygaze_models.protocol import Fold
from obygaze_models.report import NOTHING, Block, Report, interval, mean_sd, number, records
from obygaze_studies.obygaze12.corpus import METRIC_TITLES, TASKS, PaperCorpus, Part, declared
from obygaze_studies.obygaze12.paper_folds import count_leaks, head_fold, leak_caption
from obygaze_studies.obygaze12.printed_values import CELLS, TABLE2, TRIVIAL, Cell, Printed, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, cell_folds

AVERAGES: Mapping[str, Any] = {"f1_weighted": stats.f1_weighted, "f1_pos": stats.f1_pos}

CAVS = {"en": "CAVs vs EN", "all": "CAVs vs all"}

ALPHA = 0.05

CHANCE = "(chance)"

SHOWN: Mapping[str, bool] = {
    "average_precision": True,
    "f1_pos": True,
    "f1_weighted": False,
    "balanced_accuracy": False,
    "within_movie_auc": True,
}
"""Metrics of the table, and whether their intervals are in it."""


def cell_title(cell: Cell) -> str:
    """Name a cell as the papers do."""
    return f"train {TASKS[cell[0]].title}, test {TASKS[cell[1]].title}"


def model_title(model: str) -> str:
    """Name a model for people, with the negatives of its CAVs if its name has them."""
    if model == CHANCE:
        return model
    name, _, against = model.partition("|")
    title = BUILTIN_MODELS[name].title if name in BUILTIN_MODELS else name.capitalize()
    return f"{title}, {CAVS[against]}" if against else title


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 2 under the `paper` protocol: mean and SD over the eight validation folds."""
    corpus = results[0].corpus
    folds = cell_folds(corpus.manifest)
    rows_of = {cell: _paper_rows(results, cell, folds[cell]) for cell in CELLS}
    compact = {}
    for cell, rows in rows_of.items():
        compact[cell] = [
            row for row in rows if row["model"] != "mlp" or row["metric"] == papers_metric("mlp")
        ]
    part = Part(
        source=results[0].source,
        rows=[*chain.from_iterable(rows_of.values()), *corpus.if_printed(*_trivial_rows())],
        blocks=[
            compact_block(compact),
            *(_paper_block(corpus, cell, folds[cell], rows) for cell, rows in rows_of.items()),
            *corpus.if_printed(trivial_block()),
        ],
        answers=best_rows(compact),
    )
    all_folds = list(chain.from_iterable(folds.values()))
    return corpus.report("table2", [part], {"seed": results[0].seed}, folds=all_folds)


def _trivial_rows() -> list[dict[str, Any]]:
    """List the printed figures of trivial models, beside what their formula gives."""
    return [
        {
            "train": "",
            "test": row["test"],
            "model": f"{row['row']} at printed prevalence",
            "metric": row["average"],
            "ours": row["computed"],
            "printed": row["printed"],
            "printed_in": row["source"],
        }
        for row in TRIVIAL
    ]


def papers_metric(model: str) -> str:
    """Name the papers' F1 of a model in Table 2."""
    return "f1_weighted" if model == "mlp" else "f1_pos"


TRIVIAL_MODELS = ("random_half", "always_positive")
"""Baselines that stand in the papers' Table 2."""


def compact_block(rows: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> Block:
    """Lay out F1 as the papers' Table 2 does: a row for each model, a column for each cell.

    Rows have ``model``, ``features``, ``metric``, ``ours`` and ``_cell``, the printed number as text.
    """
    texts: dict[tuple[str, str, str], dict[Cell, str]] = {}
    any_printed = False
    for cell, rows_of_cell in rows.items():
        for row in rows_of_cell:
            text = NOTHING if np.isnan(row["ours"]) else number(row["ours"])
            if row["_cell"] != NOTHING:
                any_printed = True
                text += f" ({row['_cell']})"
            name = (model_title(row["model"]), row["features"], METRIC_TITLES[row["metric"]])
            texts.setdefault(name, {})[cell] = text
    lines = []
    for name, text_of_cell in texts.items():
        lines.append((*name, *(text_of_cell.get(cell, NOTHING) for cell in CELLS)))
    return Block(
        "Table 2: F1 by training and test task",
        ("model", "features", "metric", *(">".join(cell) for cell in CELLS)),
        tuple(lines),
        ("in brackets: printed",) if any_printed else (),
    )


def best_rows(rows: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Name the concept model with the highest F1 in each cell, beside calling all its clips positive."""
    answers = []
    for cell, rows_of_cell in rows.items():
        heads = [row for row in rows_of_cell if row["features"] != NOTHING and row["metric"] == "f1_pos"]
        defined = [row for row in heads if not np.isnan(row["ours"])]
        if defined:
            best = max(defined, key=lambda row: float(row["ours"]))
            trivial = trivial_f1(best["prevalence"], 1.0, "f1_pos")
            answers.append(
                f"{'>'.join(cell)}: highest {METRIC_TITLES['f1_pos']} {number(best['ours'])}, "
                f"{model_title(best['model'])} on {best['features']}; "
                f"calling all positive has {number(trivial)}"
            )
    return answers


def trivial_block() -> Block:
    """Show all eight trivial figures of the two papers beside what their formula gives."""
    agree = sum(row["verdict"] != "DIFFERS" for row in TRIVIAL)
    note = (
        f"{agree} of {len(TRIVIAL)} come out as printed; "
        f"0.33 would need 19.5 % positive clips ({trivial_f1(0.195, 1.0, 'f1_pos'):.3f})"
    )
    title = "trivial rows at the printed prevalences, 23 % and 19 %"
    return declared(title, ("table2", "trivial"), TRIVIAL, [note], writers={"task": _test_title})


def _test_title(task: str) -> str:
    return TASKS[task].title


def _paper_rows(results: Sequence[PaperResults], cell: Cell, folds: Sequence[Fold]) -> list[dict[str, Any]]:
    """List what is measured and printed of the perceptron, of the bottlenecks and of trivial models."""
    corpus = results[0].corpus
    head = head_fold(corpus.manifest, TASKS[cell[0]], TASKS[cell[1]])
    # Of two files, and so of different clips.
    tested = {
        "mlp": _tested(results[0].classifiers, cell, folds, corpus),
        "pcbm": _tested(results[0].heads.predictions, cell, [head], corpus),
    }
    rows = []
    for kind, about in tested.items():
        for result in results:
            rows += _measured_rows(result, kind, cell, about)
        for (model, backbone), printed in TABLE2.items():
            if model.startswith(kind) and corpus.printed and backbone not in corpus.printed_rows:
                row = _cell_row(None, printed[cell])
                row |= {"model": model, "features": f"{backbone} (printed only)"}
                rows.append(row | {"metric": papers_metric(model)} | about)
    for trivial in TRIVIAL:
        if trivial["test"] == cell[1]:
            f1 = trivial_f1(tested["mlp"]["prevalence"], trivial["called"], trivial["average"])
            beside = Printed(trivial["source"], trivial["printed"]) if corpus.printed else None
            row = _cell_row([f1], beside)
            row |= {"model": trivial["row"].lower(), "features": NOTHING}
            rows.append(row | {"metric": trivial["average"]} | tested["mlp"])
    return [{"train": cell[0], "test": cell[1]} | row for row in rows]


def _tested(
    predictions: stats.Predictions, cell: Cell, folds: Sequence[Fold], corpus: PaperCorpus
) -> dict[str, float]:
    """Count the clips that models of a kind are tested on in a cell, and those of them seen in training."""
    table = predictions.table
    labels = table[table["task"] == ">".join(cell)].drop_duplicates("clip_id")["label"]
    in_training = [count_leaks(fold, corpus.clips)[0] for fold in folds]
    return {
        "n_test": len(labels),
        "prevalence": float(labels.mean()),
        "test_in_training_min": min(in_training),
        "test_in_training_max": max(in_training),
    }


def _measured_rows(
    result: PaperResults, kind: str, cell: Cell, about: dict[str, float]
) -> list[dict[str, Any]]:
    """List what is measured of a source's models of a kind, beside what is printed of them."""
    predictions = result.classifiers if kind == "mlp" else result.heads.predictions
    backbone = result.corpus.printed_row(result.source)
    rows = []
    for model in predictions.table["model"].unique():
        name = model.partition("|")[0]
        values = by_fold(predictions, model, ">".join(cell))
        for metric in AVERAGES if kind == "mlp" else ("f1_pos",):
            printed = None
            if metric == papers_metric(name):
                printed = TABLE2.get((name, backbone), {}).get(cell)
            row = _cell_row(values[metric].tolist(), printed)
            rows.append(row | {"model": model, "features": result.source.title, "metric": metric} | about)
    return rows


def _cell_row(values: Sequence[float] | None, printed: Printed | None) -> dict[str, Any]:
    """Make a row of a cell: what is measured in folds, None where nothing is, and what is printed."""
    ours = ours_sd = mean = sd = stats.NAN
    source = ""
    if values:
        ours = float(np.mean(values))
    if values and len(values) > 1:
        ours_sd = float(np.std(values))
    if printed:
        mean = printed.mean
        sd = stats.NAN if printed.sd is None else printed.sd
        source = printed.source
    return {
        # The columns of the data, in their order; those of the cell, the model and its clips are added.
        "model": "",
        "features": "",
        "metric": "",
        "ours": ours,
        "ours_sd": ours_sd,
        "n_folds": len(values or []),
        "printed": mean,
        "printed_sd": sd,
        "printed_in": source,
        # What the table shows in place of these numbers:
        "_ours": NOTHING if values is None else mean_sd(values),
        "_cell": str(printed or NOTHING),
    }


def by_fold(predictions: stats.Predictions, model: str, task: str) -> pd.DataFrame:
    """Compute both F1 of each fold of a model on a task."""
    table = predictions.table.assign(called=predictions.called)
    part = table[(table["model"] == model) & (table["task"] == task)]
    rows = []
    for _, fold in part.groupby("fold"):
        labels = fold["label"].to_numpy()
        called = fold["called"].to_numpy()
        rows.append({name: f1(labels, called) for name, f1 in AVERAGES.items()})
    return pd.DataFrame(rows)


def _paper_block(
    corpus: PaperCorpus, cell: Cell, folds: Sequence[Fold], rows: Sequence[Mapping[str, Any]]
) -> Block:
    leaks = leak_caption([head_fold(corpus.manifest, TASKS[cell[0]], TASKS[cell[1]])], corpus.clips)
    values = {
        row["model"].partition("_")[0]: f"{row['n_test']} test clips, prevalence {row['prevalence']:.3f}"
        for row in rows
    }
    return declared(
        cell_title(cell),
        ("table2", "paper"),
        rows,
        (
            f"MLP, random, all positive: {values['mlp']}; {leak_caption(folds, corpus.clips)}",
            f"PCBM: {values['pcbm']}; {leaks}; its CAVs are fitted on its training clips",
        ),
        writers={"model": model_title},
    )


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 2 under `strict`: pooled over movies, with intervals, against the baselines."""
    corpus = results[0].corpus
    metrics = []
    for result in results:
        metrics += [run.metrics.assign(features=result.source.title) for run in result.runs.values()]
    summary = pd.concat(metrics, ignore_index=True)
    knowledge = movie_knowledge(results)
    rows_of = {cell: _strict_rows(results, summary, cell) for cell in CELLS}
    compact = {cell: list(filter(_looks_or_trivial, rows)) for cell, rows in rows_of.items()}
    first = next(iter(results[0].runs.values()))
    left_out = [
        f"{model_title(model)} left out: {why}" for model, why in first.record["models_left_out"].items()
    ]
    part = Part(
        source=results[0].source,
        rows=summary.to_dict(orient="records"),
        blocks=[
            compact_block(compact),
            *(_strict_block(summary, cell, rows) for cell, rows in rows_of.items()),
            _knowledge_block(knowledge),
        ],
        answers=best_rows(compact),
    )
    record = {
        "seed": results[0].seed,
        "models": first.record["models"],
        "movie_knowledge": records(knowledge),
    }
    return corpus.report("table2", [part], record, notes=left_out)


def _looks_or_trivial(row: Mapping[str, Any]) -> bool:
    return row["features"] != NOTHING or row["model"] in TRIVIAL_MODELS


def _strict_rows(results: Sequence[StrictResults], summary: pd.DataFrame, cell: Cell) -> list[dict[str, Any]]:
    """List the models of a cell, with the columns of `compact_block` and a text of each metric shown.

    A baseline is listed once: it is the same whatever the features.
    """
    part = summary[summary["task"] == ">".join(cell)]
    rows: list[dict[str, Any]] = []
    for result in results:
        backbone = result.corpus.printed_row(result.source)
        for name, table in part[part["features"] == result.source.title].groupby("model", sort=False):
            model = str(name)
            looks_at_features = BUILTIN_MODELS[model].looks_at_features
            if not looks_at_features and result is not results[0]:
                continue
            metrics = table.set_index("metric").to_dict(orient="index")
            metric = papers_metric(model)
            row: dict[str, Any] = {
                "model": model,
                "features": result.source.title if looks_at_features else NOTHING,
                "metric": metric,
                "ours": metrics[metric]["pooled"],
                "prevalence": metrics[metric]["prevalence"],
                "_cell": str(TABLE2.get((model, backbone), {}).get(cell, NOTHING)),
            }
            row |= {shown: _shown(metrics[shown], with_interval) for shown, with_interval in SHOWN.items()}
            rows.append(row)
    return rows


def _strict_block(summary: pd.DataFrame, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> Block:
    part = summary[summary["task"] == ">".join(cell)]
    chance = part.drop_duplicates("metric").set_index("metric")["pooled_chance"]
    levels = {metric: number(float(chance[metric])) for metric in SHOWN}
    first = part.iloc[0]
    note = (
        f"{first['n_clips']} test clips, prevalence {first['prevalence']:.3f}; "
        "no clip or movie is on two sides"
    )
    n_undefined = int(part.loc[part["metric"] == "within_movie_auc", "n_undefined"].iloc[0])
    if n_undefined:
        note += f"; movies of one class, not in within-movie AUC: {n_undefined}"
    return declared(
        cell_title(cell),
        ("table2", "strict"),
        [*rows, {"model": CHANCE, "features": NOTHING, **levels, "_cell": NOTHING}],
        [note],
        writers={"model": model_title},
    )


def _shown(row: Mapping[Any, Any], with_interval: bool) -> str:
    if not with_interval:
        return number(row["pooled"])
    return interval(row["pooled"], row["pooled_low"], row["pooled_high"])


def movie_knowledge(results: Sequence[StrictResults]) -> pd.DataFrame:
    """Compare each perceptron with `MoviePrior`, which uses a clip's movie only.

    By movie, AUC, of which the prior has 0.5: any excess is knowledge of clips.
    """
    rows = []
    for result, cell in product(results, CELLS):
        task = ">".join(cell)
        run = stats.saved(result.runs[cell[0]])
        compared = stats.compare(stats.side(run, "mlp", task), stats.side(run, "movie_prior", task)).metrics
        auc = compared.set_index("metric").loc["auc"]
        columns = {name: auc[name] for name in ("difference", "low", "high", "p", "n_movies")}
        rows.append({"features": result.source.title, "task": task, **columns})
    table = pd.DataFrame(rows).assign(p_holm=lambda known: stats.holm(known["p"]))
    return table.assign(told_apart=(table["p_holm"] < ALPHA) & (table["difference"] > 0))


def _knowledge_block(knowledge: pd.DataFrame) -> Block:
    rows = knowledge.to_dict(orient="records")

    def verdict(told_apart: bool, n_movies: float) -> str:
        if told_apart:
            return "knows more than the movie"
        # Holm multiplies the smallest of p-values by their number.
        few = stats.smallest_p(int(n_movies)) * len(rows) >= ALPHA
        return f"{'too few movies to tell; ' if few else ''}NOT told apart from knowing the movie alone"

    return declared(
        "does the perceptron know more than the movie? MLP minus movie prior",
        ("table2", "knowledge"),
        rows,
        (f"exact sign-flip test over movies; Holm over the {len(rows)} rows",),
        writers={"cell": lambda task: cell_title(tuple(task.split(">"))), "verdict": verdict},
    )
