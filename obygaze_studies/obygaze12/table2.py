"""Reproduce Table 2 (and 5): classification of S clips against EN, and against EN and HN.

Under `strict`, a test also compares the perceptron with a model that knows only a clip's movie.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

import obygaze_models.evaluation as stats
from obygaze_features.text import counted
from obygaze_models.models import BUILTIN_MODELS
from obygaze_models.protocol import Fold
from obygaze_models.report import NOTHING, Block, Report, interval, mean_sd, number, records
from obygaze_studies.obygaze12.corpus import METRIC_TITLES, TASKS, PaperCorpus, SourcePart, declared_block
from obygaze_studies.obygaze12.paper_folds import count_leaks, head_fold, leak_caption
from obygaze_studies.obygaze12.printed_values import CELLS, TABLE2, TRIVIAL, Cell, Printed, trivial_f1
from obygaze_studies.obygaze12.protocol_results import PaperResults, StrictResults, cell_folds

F1_OF_AVERAGE: Mapping[str, Any] = {"f1_weighted": stats.f1_weighted, "f1_pos": stats.f1_pos}
"""The two F1 that the papers may mean: averaged over the classes, or of S."""

CAV_TITLES = {"en": "CAVs vs EN", "all": "CAVs vs all"}
"""Negatives of the CAVs, as in the name of a model -> as in its title."""

ALPHA = 0.05
"""Level of significance."""

PREVALENCE_OF_PRINTED_F1 = 0.195
"""Share of positive clips at which calling every clip positive has the printed F1 of 0.33."""

CHANCE = "(chance)"
"""What stands in the column of models in the row of chance levels."""

SHOWN_METRICS: Mapping[str, bool] = {
    "average_precision": True,
    "f1_pos": True,
    "f1_weighted": False,
    "balanced_accuracy": False,
    "within_movie_auc": True,
}
"""Metric of the table -> whether the table shows its interval."""


def cell_title(cell: Cell) -> str:
    """Write the title of a cell: its training task and its test task."""
    train, test = cell
    return f"train {TASKS[train].title}, test {TASKS[test].title}"


def model_title(model: str) -> str:
    """Write the title of a model for a table, with the negatives of its CAVs if its name has them.

    The name of a bottleneck is joined with its negatives by "|". The row of chance levels keeps its name.
    """
    if model == CHANCE:
        return model
    name, *negatives = model.split("|")  # such as "pcbm_dt|en", or "mlp"
    title = BUILTIN_MODELS[name].title if name in BUILTIN_MODELS else name.capitalize()
    if not negatives:
        return title
    return f"{title}, {CAV_TITLES[negatives[0]]}"


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Table 2 under the `paper` protocol: mean and SD over the eight validation folds.

    The report begins with a table in the form of the papers' Table 2; a table of each of its cells follows.
    `results` are those of each source, all of the same corpus.
    """
    corpus = results[0].corpus
    folds = cell_folds(corpus.manifest)
    rows_of = {cell: _paper_rows(results, cell, folds[cell]) for cell in CELLS}

    # The table in the papers' form has only the kind of F1 that they print of a model.
    rows_in_papers_form = {}
    for cell, rows in rows_of.items():
        rows_in_papers_form[cell] = [row for row in rows if _has_papers_metric(row)]
    blocks = [compact_block(rows_in_papers_form)]
    blocks += [_paper_block(corpus, cell, folds[cell], rows) for cell, rows in rows_of.items()]

    # The papers' numbers of trivial models, if they are of these clips
    all_rows = list(chain.from_iterable(rows_of.values()))
    if corpus.has_printed_numbers:
        blocks.append(trivial_block())
        all_rows += _trivial_rows()

    # Reports have a part for each source. Here all sources are compared in each table, so that one part,
    # under the name of the first source, has the rows of all.
    part = SourcePart(
        source=results[0].source,
        rows=all_rows,
        blocks=blocks,
        answers=best_rows(rows_in_papers_form),
    )
    all_folds = list(chain.from_iterable(folds.values()))
    return corpus.report("table2", [part], {"seed": results[0].seed}, folds=all_folds)


def _has_papers_metric(row: Mapping[str, Any]) -> bool:
    """Return whether a row shows the kind of F1 that the papers print for its model.

    The perceptron has a row for each kind, and the papers print only one of them. Trivial models have rows of
    both kinds in the papers.
    """
    if row["model"] != "mlp":
        return True
    metric: str = row["metric"]
    return metric == papers_metric("mlp")


def _trivial_rows() -> list[dict[str, Any]]:
    """List the papers' F1 of trivial models beside the F1 that follows from the share of positive clips.

    A trivial model calls clips positive at random, or all of them. Its F1 needs no clips: it is a formula of
    the share of positives, which the papers print (`trivial_f1`). The rows have the columns of the data.
    """
    rows = []
    for trivial in TRIVIAL:
        row = {
            "train": "",
            "test": trivial["test"],
            "model": f"{trivial['row']} at printed prevalence",  # its row in the papers' table
            "metric": trivial["average"],  # the F1 of positives, or the mean of both classes by their clips
            "ours": trivial["computed"],
            "printed": trivial["printed"],
            "printed_in": trivial["source"],
        }
        rows.append(row)
    return rows


def papers_metric(model: str) -> str:
    """Return which F1 the papers print of a model in Table 2."""
    return "f1_weighted" if model == "mlp" else "f1_pos"


TRIVIAL_MODELS = ("random_half", "always_positive")
"""Baselines that stand in the papers' Table 2."""


def compact_block(rows: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> Block:
    """Make a table of F1 in the form of the papers' Table 2: a row for each model, a column for each cell.

    Parameters
    ----------
    rows
        Cell -> rows with ``model``, ``features``, ``metric``, ``ours`` and ``_printed_text``, the printed
        number as text.
    """
    # Model, features and metric of a line -> the text of each cell of Table 2, such as "0.512 (0.50)".
    texts_of_line: dict[tuple[str, str, str], dict[Cell, str]] = {}
    any_printed = False
    for cell, rows_of_cell in rows.items():
        for row in rows_of_cell:
            text = NOTHING if np.isnan(row["ours"]) else number(row["ours"])
            if row["_printed_text"] != NOTHING:
                any_printed = True
                text += f" ({row['_printed_text']})"
            names = (model_title(row["model"]), row["features"], METRIC_TITLES[row["metric"]])
            texts_of_line.setdefault(names, {})[cell] = text

    lines = []
    for names, text_of_cell in texts_of_line.items():
        texts = [text_of_cell.get(cell, NOTHING) for cell in CELLS]
        lines.append((*names, *texts))
    return Block(
        "Table 2: F1 by training and test task",
        ("model", "features", "metric", *(">".join(cell) for cell in CELLS)),
        tuple(lines),
        ("in brackets: printed",) if any_printed else (),
    )


def best_rows(rows: Mapping[Cell, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Write for each cell of Table 2 which concept model has the highest F1, and the F1 of a trivial one.

    The trivial model calls every clip positive. Nothing is written for a cell without a defined F1.

    Parameters
    ----------
    rows
        Cell -> rows with ``model``, ``features``, ``metric`` and ``ours``, the measured F1 or NaN. Rows of
        concept models also have ``prevalence``, the share of positives among the test clips.
    """
    answers = []
    for cell, rows_of_cell in rows.items():
        defined = [row for row in rows_of_cell if _is_concept_model(row) and not np.isnan(row["ours"])]
        if not defined:
            continue

        best = max(defined, key=lambda row: float(row["ours"]))
        f1_of_all_positive = trivial_f1(best["prevalence"], called=1.0, average="f1_pos")
        answers.append(
            f"{'>'.join(cell)}: highest {METRIC_TITLES['f1_pos']} {number(best['ours'])}, "
            f"{model_title(best['model'])} on {best['features']}; "
            f"calling all positive has {number(f1_of_all_positive)}"
        )
    return answers


def _is_concept_model(row: Mapping[str, Any]) -> bool:
    """Return whether a row of Table 2 is of a concept model.

    A row does not say what its model is, but it is told by two cells, as in the papers' table:

    - concept models read features, and their metric is the F1 of S (`f1_pos`);
    - the perceptron reads features, and its metric is the weighted F1;
    - trivial models, which call clips positive at random, or all of them, read none.
    """
    reads_features: bool = row["features"] != NOTHING
    return reads_features and row["metric"] == "f1_pos"


def trivial_block() -> Block:
    """Make the table of the papers' eight numbers of trivial models with the values computed by formula.

    One of them disagrees: the papers print 0.33 as the F1 of calling every clip positive, and a prevalence of
    19 %, at which it is 0.32. The note says at which prevalence it would be 0.33.
    """
    n_agreeing = sum(row["verdict"] != "DIFFERS" for row in TRIVIAL)
    f1_if_so = trivial_f1(PREVALENCE_OF_PRINTED_F1, called=1.0, average="f1_pos")
    note = (
        f"{n_agreeing} of {len(TRIVIAL)} come out as printed; "
        f"0.33 would need {100 * PREVALENCE_OF_PRINTED_F1:.1f} % positive clips ({f1_if_so:.3f})"
    )
    title = "trivial rows at the printed prevalences, 23 % and 19 %"
    return declared_block(
        title, TRIVIAL, [note], columns_of=("table2", "trivial"), writers={"task": _test_title}
    )


def _test_title(task: str) -> str:
    """Write the title of a test task."""
    return TASKS[task].title


def _paper_rows(results: Sequence[PaperResults], cell: Cell, folds: Sequence[Fold]) -> list[dict[str, Any]]:
    """List the rows of a cell of Table 2: measured and printed F1 of the perceptron, bottlenecks and others.

    Of some features the papers print numbers that are not measured here: they have rows too. Last come
    trivial models, such as one that calls every clip positive.

    Parameters
    ----------
    results
        The results of each source.
    cell
        Training task and test task.
    folds
        The folds of the perceptron for these tasks.
    """
    corpus = results[0].corpus
    train, test = cell

    # The perceptron and the bottlenecks are tested on different clips: the paper has other folds for either.
    fold_of_head = head_fold(corpus.manifest, train=TASKS[train], test=TASKS[test])
    test_counts_of_kind = {
        "mlp": _count_tested(results[0].classifiers, cell, folds, corpus),
        "pcbm": _count_tested(results[0].heads.predictions, cell, [fold_of_head], corpus),
    }

    rows = []
    for kind, test_counts in test_counts_of_kind.items():
        for result in results:
            rows += _measured_rows(result, kind, cell, test_counts)
        if corpus.has_printed_numbers:
            rows += _printed_only_rows(corpus, kind, cell, test_counts)
    rows += _trivial_rows_of_test(corpus, test, test_counts_of_kind["mlp"])
    return [{"train": train, "test": test} | row for row in rows]


def _printed_only_rows(
    corpus: PaperCorpus, kind: str, cell: Cell, test_counts: dict[str, float]
) -> list[dict[str, Any]]:
    """List the printed F1 of a cell for backbones of which no source is given.

    The parameters are those of `_measured_rows`.
    """
    rows = []
    # Each entry holds the numbers that the papers print of a model and a backbone: cell -> number.
    for (model, backbone), printed in TABLE2.items():
        is_of_kind = model.startswith(kind)
        if is_of_kind and backbone not in corpus.printed_backbones:
            names = {
                "model": model,
                "features": f"{backbone} (printed only)",
                "metric": papers_metric(model),
            }
            rows.append(names | _number_columns(values=None, printed=printed[cell]) | test_counts)
    return rows


def _trivial_rows_of_test(
    corpus: PaperCorpus, test: str, test_counts: dict[str, float]
) -> list[dict[str, Any]]:
    """List the F1 of trivial models on a test task, computed at the prevalence of its test clips.

    `test_counts` describes these clips (`_count_tested`): their number, the share of S, which is the
    prevalence, and how many are seen in training. Each row has these numbers too.
    """
    rows = []
    for trivial in TRIVIAL:  # each is a number that the papers print of a trivial model
        if trivial["test"] != test:
            continue
        model = trivial["row"].lower()  # the row of the papers' table, such as "random"
        kind_of_f1 = trivial["average"]
        share_called_positive = trivial["called"]
        f1 = trivial_f1(test_counts["prevalence"], share_called_positive, kind_of_f1)
        printed = Printed(trivial["source"], trivial["printed"]) if corpus.has_printed_numbers else None
        names = {"model": model, "features": NOTHING, "metric": kind_of_f1}
        rows.append(names | _number_columns([f1], printed) | test_counts)
    return rows


def _count_tested(
    predictions: stats.Predictions, cell: Cell, folds: Sequence[Fold], corpus: PaperCorpus
) -> dict[str, float]:
    """Describe the test clips of a cell: their number, the share of S, and how many are seen in training.

    Parameters
    ----------
    predictions
        Predictions of the models that are tested on them.
    folds
        The folds of these models; their numbers of test clips seen in training may differ.
    """
    table = predictions.table
    labels = table[table["task"] == ">".join(cell)].drop_duplicates("clip_id")["label"]
    in_training = [count_leaks(fold, corpus.first_source).in_training for fold in folds]
    return {
        "n_test": len(labels),
        "prevalence": float(labels.mean()),
        "test_in_training_min": min(in_training),
        "test_in_training_max": max(in_training),
    }


def _measured_rows(
    result: PaperResults, kind: str, cell: Cell, test_counts: dict[str, float]
) -> list[dict[str, Any]]:
    """List the measured F1 of a source's models in a cell of Table 2, each with the number that papers print.

    The perceptron has two rows, as it is not certain which of two kinds of F1 the papers print: the printed
    number stands beside the likely kind. A bottleneck has one row.

    Parameters
    ----------
    result
        The results of the source.
    kind
        "mlp" for the perceptron, "pcbm" for the bottlenecks.
    cell
        Training task and test task.
    test_counts
        As `_count_tested` returns them.
    """
    if kind == "mlp":
        predictions = result.classifiers
        metrics = list(F1_OF_AVERAGE)  # names of both kinds of F1
    else:
        predictions = result.heads.predictions
        metrics = ["f1_pos"]

    backbone = result.corpus.printed_backbone(result.source)
    task = ">".join(cell)  # such as `en_s>enhn_s`: training task and test task
    rows = []
    for model in predictions.table["model"].unique():
        # A bottleneck is named with the negatives of its CAVs, such as `pcbm_dt|en`.
        name_without_negatives = model.split("|", maxsplit=1)[0]
        values = f1_by_fold(predictions, model, task)
        for metric in metrics:
            printed = None
            if metric == papers_metric(name_without_negatives):
                printed = _printed_number(name_without_negatives, backbone, cell)
            names = {"model": model, "features": result.source.title, "metric": metric}
            rows.append(names | _number_columns(values[metric].tolist(), printed) | test_counts)
    return rows


def _printed_number(model: str, backbone: str | None, cell: Cell) -> Printed | None:
    """Return the number that the papers print of a model in a cell; None if they print none.

    `backbone` is the papers' name of its features; None if they have none.
    """
    numbers_of_model = TABLE2.get((model, backbone), {})
    return numbers_of_model.get(cell)


def _number_columns(values: Sequence[float] | None, printed: Printed | None) -> dict[str, Any]:
    """Make the columns of a row that hold a measured and a printed number.

    Parameters
    ----------
    values
        The measured values, one per fold; None if nothing is measured.
    printed
        The printed number; None if there is none.
    """
    measured_columns: dict[str, Any] = {"ours": stats.NAN, "ours_sd": stats.NAN, "n_folds": 0}
    if values:
        sd = float(np.std(values)) if len(values) > 1 else stats.NAN
        measured_columns = {"ours": float(np.mean(values)), "ours_sd": sd, "n_folds": len(values)}

    printed_columns: dict[str, Any] = {"printed": stats.NAN, "printed_sd": stats.NAN, "printed_in": ""}
    if printed:
        sd = stats.NAN if printed.sd is None else printed.sd
        printed_columns = {"printed": printed.mean, "printed_sd": sd, "printed_in": printed.source}

    # The texts that the table shows for these numbers.
    shown_texts = {
        "_ours_text": NOTHING if values is None else mean_sd(values),
        "_printed_text": NOTHING if printed is None else str(printed),
    }
    return measured_columns | printed_columns | shown_texts


def f1_by_fold(predictions: stats.Predictions, model: str, task: str) -> pd.DataFrame:
    """Compute two kinds of F1 of a model on a task in each fold: a row per fold, a column per F1.

    They are the F1 of the positive class (`f1_pos`), and the mean over classes (`f1_weighted`).
    """
    table = predictions.table.assign(called=predictions.called)
    part = table[(table["model"] == model) & (table["task"] == task)]
    rows = []
    for _, fold in part.groupby("fold"):
        labels = fold["label"].to_numpy()
        predicted = fold["called"].to_numpy()
        rows.append({name: f1(labels, predicted) for name, f1 in F1_OF_AVERAGE.items()})
    return pd.DataFrame(rows)


def _paper_block(
    corpus: PaperCorpus, cell: Cell, folds: Sequence[Fold], rows: Sequence[Mapping[str, Any]]
) -> Block:
    """Make the table of a cell of Table 2 under the `paper` protocol, with notes on test clips and leaks.

    There are two notes, as two sets of folds are used: the perceptron has several, and trivial models are
    computed at the prevalence of its test clips; a bottleneck's head has one fold of its own.

    Parameters
    ----------
    corpus
        The clips and features.
    cell
        Training task and test task.
    folds
        The folds of the perceptron.
    rows
        The cell's rows, as `_paper_rows` makes them.
    """
    train, test = cell
    fold_of_head = head_fold(corpus.manifest, train=TASKS[train], test=TASKS[test])
    leaks_of_head = leak_caption([fold_of_head], corpus.first_source)
    leaks_of_mlp = leak_caption(folds, corpus.first_source)
    notes = (
        f"MLP, random, all positive: {_describe_tested(rows, 'mlp')}; {leaks_of_mlp}",
        f"PCBM: {_describe_tested(rows, 'pcbm')}; {leaks_of_head}; its CAVs are fitted on its training clips",
    )
    return declared_block(
        cell_title(cell),
        rows,
        notes,
        columns_of=("table2", "paper"),
        writers={"model": model_title},  # how the column of models is written
    )


def _describe_tested(rows: Sequence[Mapping[str, Any]], kind: str) -> str:
    """Describe the test clips of a kind of model ("mlp" or "pcbm"), by the first row of such a model."""
    row = next(row for row in rows if row["model"].startswith(kind))
    return f"{counted(row['n_test'], 'test clip')}, prevalence {row['prevalence']:.3f}"


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 2 under `strict`: metrics pooled over movies, with intervals and baselines.

    The report begins with a table in the form of the papers' Table 2. A table of each of its cells follows,
    and the test whether the perceptron knows more than a clip's movie.
    """
    corpus = results[0].corpus
    metrics = []
    for result in results:
        metrics += [run.metrics.assign(features=result.source.title) for run in result.runs.values()]
    summary = pd.concat(metrics, ignore_index=True)
    knowledge = movie_knowledge(results)

    # A cell of Table 2 is a training and a test task. The table in the papers' form has their models only.
    rows_of = {cell: _strict_rows(results, summary, cell) for cell in CELLS}
    rows_in_papers_form = {}
    for cell, rows in rows_of.items():
        rows_in_papers_form[cell] = [row for row in rows if _is_in_papers_table(row)]
    blocks = [compact_block(rows_in_papers_form)]
    blocks += [_strict_block(summary, cell, rows) for cell, rows in rows_of.items()]
    blocks.append(_knowledge_block(knowledge))

    first_run = next(iter(results[0].runs.values()))  # all runs have the same models
    left_out = []
    for model, reason in first_run.record["models_left_out"].items():
        left_out.append(f"{model_title(model)} left out: {reason}")

    # Reports have a part for each source. Here all sources are compared in each table, so that one part,
    # under the name of the first source, has the rows of all.
    part = SourcePart(
        source=results[0].source,
        rows=summary.to_dict(orient="records"),
        blocks=blocks,
        answers=best_rows(rows_in_papers_form),
    )
    record = {
        "seed": results[0].seed,
        "models": first_run.record["models"],
        "movie_knowledge": records(knowledge),
    }
    return corpus.report("table2", [part], record, notes=left_out)


def _is_in_papers_table(row: Mapping[str, Any]) -> bool:
    """Return whether the papers' Table 2 has such a row: a model of features, or one of their baselines.

    Rows of models that read no features have a dash in place of the features.
    """
    return row["features"] != NOTHING or row["model"] in TRIVIAL_MODELS


def _strict_rows(results: Sequence[StrictResults], summary: pd.DataFrame, cell: Cell) -> list[dict[str, Any]]:
    """List the rows of a cell, one per source and model; a baseline has one row, as it reads no features.

    A row has the columns of `compact_block`, and the metrics of `SHOWN_METRICS` as text.
    """
    summary_of_cell = summary[summary["task"] == ">".join(cell)]
    rows: list[dict[str, Any]] = []
    for result in results:
        is_first_source = result is results[0]
        summary_of_source = summary_of_cell[summary_of_cell["features"] == result.source.title]
        for name, summary_of_model in summary_of_source.groupby("model", sort=False):
            model = str(name)
            reads_features = BUILTIN_MODELS[model].looks_at_features  # no baseline does
            if reads_features or is_first_source:  # a baseline has the same numbers in all sources
                metrics = summary_of_model.set_index("metric").to_dict(orient="index")
                rows.append(_strict_row(result, cell, model, metrics))
    return rows


def _strict_row(
    result: StrictResults, cell: Cell, model: str, metrics: Mapping[Any, Mapping[Any, Any]]
) -> dict[str, Any]:
    """Make the row of a model in a cell of Table 2 (a training and a test task).

    The column `ours` has the kind of F1 that the papers print of the model, and `_printed_text` their number;
    where they print none, or the model reads no features, a dash stands in the column. Columns that begin
    with "_" are texts for the table, and no data.

    Parameters
    ----------
    result
        The results of a source.
    cell
        Training task and test task.
    model
        Name of the model.
    metrics
        The model's rows of the run's metrics: name of a metric -> columns, such as `pooled`.
    """
    metric = papers_metric(model)
    reads_features = BUILTIN_MODELS[model].looks_at_features
    backbone = result.corpus.printed_backbone(result.source)  # the papers' name of the features
    printed = _printed_number(model, backbone, cell)
    row: dict[str, Any] = {
        "model": model,
        "features": result.source.title if reads_features else NOTHING,
        "metric": metric,
        "ours": metrics[metric]["pooled"],
        "prevalence": metrics[metric]["prevalence"],
        "_printed_text": NOTHING if printed is None else str(printed),
    }
    for shown_metric, with_interval in SHOWN_METRICS.items():
        row[shown_metric] = _format_metric(metrics[shown_metric], with_interval)
    return row


def _strict_block(summary: pd.DataFrame, cell: Cell, rows: Sequence[Mapping[str, Any]]) -> Block:
    """Make the table of a cell under `strict`, with the chance levels in its last row.

    Parameters
    ----------
    summary
        The metrics of all sources, models and tasks, a row each.
    cell
        Training task and test task.
    rows
        The cell's rows, as `_strict_rows` makes them.
    """
    summary_of_cell = summary[summary["task"] == ">".join(cell)]
    # Chance levels, clips and movies depend on the test clips alone: those of the first model are those of
    # all models.
    of_first_model = summary_of_cell.drop_duplicates("metric").set_index("metric")
    chance = of_first_model["pooled_chance"]
    chance_levels = {metric: number(float(chance[metric])) for metric in SHOWN_METRICS}
    # The papers print no chance levels: a dash stands in the column of printed numbers.
    chance_row = {"model": CHANCE, "features": NOTHING, **chance_levels, "_printed_text": NOTHING}

    first_row = summary_of_cell.iloc[0]
    note = (
        f"{counted(first_row['n_clips'], 'test clip')}, prevalence {first_row['prevalence']:.3f}; "
        "no clip or movie is on two sides"
    )
    n_undefined = int(of_first_model["n_undefined"]["within_movie_auc"])
    if n_undefined:
        note += f"; movies of one class, not in within-movie AUC: {n_undefined}"
    return declared_block(
        cell_title(cell),
        [*rows, chance_row],
        [note],
        columns_of=("table2", "strict"),
        writers={"model": model_title},  # how the column of models is written
    )


def _format_metric(row: Mapping[Any, Any], with_interval: bool) -> str:
    """Format a metric that is pooled over movies, with its interval if asked.

    `row` is the metric's row of a run: its value is `pooled`, with an interval from `pooled_low` to
    `pooled_high`.
    """
    if not with_interval:
        return number(row["pooled"])
    return interval(row["pooled"], row["pooled_low"], row["pooled_high"])


def movie_knowledge(results: Sequence[StrictResults]) -> pd.DataFrame:
    """Test whether each perceptron has a higher AUC than `MoviePrior`, which knows only a clip's movie.

    There is a test for each source and cell of Table 2. `compare` computes the AUC within each movie, where
    the prior has 0.5, as it gives all clips of a movie one score: what the perceptron has above it is
    knowledge of the clips.
    """
    rows = []
    for result, (train, test) in product(results, CELLS):
        task = f"{train}>{test}"
        run = stats.saved(result.runs[train])  # the models trained on this task
        perceptron = stats.side(run, "mlp", task)
        movie_prior = stats.side(run, "movie_prior", task)
        comparison = stats.compare(perceptron, movie_prior)
        auc = comparison.metrics.set_index("metric").loc["auc"]
        columns = {name: auc[name] for name in ("difference", "low", "high", "p", "n_movies")}
        rows.append({"features": result.source.title, "task": task, **columns})

    table = pd.DataFrame(rows)
    table["p_holm"] = stats.holm(table["p"])
    # Whether the test tells the perceptron apart from the prior, as the better one.
    table["told_apart"] = (table["p_holm"] < ALPHA) & (table["difference"] > 0)
    return table


def _knowledge_block(knowledge: pd.DataFrame) -> Block:
    """Make the table of `movie_knowledge`, with a verdict in words in each row."""
    rows = knowledge.to_dict(orient="records")
    n_tests = len(rows)

    def verdict(told_apart: bool, n_movies: float) -> str:
        """Say whether a model knows more than the movie of a clip, or why this cannot be decided.

        `reports.block` calls it with the values of two columns of a row, as captions.toml declares.

        Parameters
        ----------
        told_apart
            Whether the test finds the model better than the movie prior, which knows a clip's movie alone.
        n_movies
            Movies in the test.
        """
        if told_apart:
            return "knows more than the movie"

        not_told_apart = "NOT told apart from knowing the movie alone"
        # Holm multiplies the smallest p by the number of tests. If even the smallest p that the test can give
        # for so few movies is then not significant, no result could have been.
        smallest_adjusted_p = stats.smallest_p(int(n_movies)) * n_tests
        if smallest_adjusted_p >= ALPHA:
            return f"too few movies to tell; {not_told_apart}"
        return not_told_apart

    return declared_block(
        "does the perceptron know more than the movie? MLP minus movie prior",
        rows,
        (f"exact sign-flip test over movies; Holm over the {counted(n_tests, 'row')}",),
        columns_of=("table2", "knowledge"),
        writers={"cell": _title_of_task, "verdict": verdict},
    )


def _title_of_task(task: str) -> str:
    """Write the title of the cell of a task in the table of predictions, such as "hn_s>en_s"."""
    train, test = task.split(">")
    return cell_title((train, test))
