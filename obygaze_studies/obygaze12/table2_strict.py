"""Reproduce Table 2 (and 5) under `strict`, and test whether the models know more than the movie."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from obygaze_models.evaluation import compare, holm, saved, side, smallest_p
from obygaze_models.models import BUILTIN_MODELS
from obygaze_models.report import NOTHING, Block, Report, interval, number, records
from obygaze_studies.obygaze12.printed_values import BOTTLENECKS, CELLS, PROBES, Cell, printed_name
from obygaze_studies.obygaze12.strict_protocol import StrictResults
from obygaze_studies.obygaze12.table2 import METRIC_TITLES, TITLE, cell_title, model_title

STRICT_PRINTED = (
    "printed: published F1 (perceptron support-weighted, PCBM positive-class) under the published protocol, "
    "on seen films; not comparable"
)
ALPHA = 0.05

SHOWN: Mapping[str, bool] = {
    "average_precision": True,
    "f1_pos": True,
    "f1_weighted": False,
    "balanced_accuracy": False,
    "within_movie_auc": True,
}
"""Metrics of the table, and whether their intervals are in it."""


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Table 2 under `strict`: pooled over movies, with intervals, against the baselines."""
    corpus = results[0].corpus
    summary = pd.concat(
        [run.metrics.assign(features=one.source.title) for one in results for run in one.runs.values()],
        ignore_index=True,
    )
    known = movie_knowledge(results)
    first = next(iter(results[0].runs.values()))
    missing = [
        f"{model_title(model)} left out: {why}" for model, why in first.record["models_left_out"].items()
    ]
    return Report(
        name="table2-strict",
        title=f"{TITLE}, strict protocol",
        notes=(
            *corpus.strict_notes(),
            (
                "pooled over all out-of-fold predictions; intervals: "
                "jackknife over movies, of these trained models on movies like these"
            ),
            (
                "AP compares scores of different folds, which come from different models: where movies "
                "differ it can fall below chance for that reason alone; within-movie AUC cannot"
            ),
            "random directions, shuffled concepts: the same head on directions that know no concept",
            *missing,
            *([STRICT_PRINTED] if corpus.printed else []),
        ),
        blocks=(*(_strict_block(results, summary, cell) for cell in CELLS), _knowledge_block(known)),
        data=summary,
        record=corpus.record()
        | {
            "protocol": "strict",
            "seed": results[0].seed,
            "models": first.record["models"],
            "movie_knowledge": records(known),
        },
    )


def _strict_block(results: Sequence[StrictResults], summary: pd.DataFrame, cell: Cell) -> Block:
    corpus = results[0].corpus
    part = summary[summary["task"] == ">".join(cell)]
    rows: list[tuple[str, ...]] = []
    for one in results:
        own = part[part["features"] == one.source.title]
        for name, metrics in own.groupby("model", sort=False):
            model, looks = str(name), BUILTIN_MODELS[str(name)].looks_at_features
            # A baseline is the same whatever the features.
            if not looks and one is not results[0]:
                continue
            by = metrics.set_index("metric").to_dict(orient="index")
            features = one.source.title if looks else NOTHING
            shown = (_shown(by[metric], wide) for metric, wide in SHOWN.items())
            rows.append(
                (model_title(model), features, *shown, _printed(model, corpus.printed_row(one.source), cell))
            )
    chance = part.drop_duplicates("metric").set_index("metric")["pooled_chance"]
    levels = (number(float(chance[metric])) for metric in SHOWN)
    rows.append(("(chance)", NOTHING, *levels, NOTHING))
    titles = (METRIC_TITLES[metric] + " [95 %]" * wide for metric, wide in SHOWN.items())
    headers: tuple[str, ...] = ("model", "features", *titles, "printed")
    if not corpus.printed:
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    first = part.iloc[0]
    undefined = int(part.loc[part["metric"] == "within_movie_auc", "n_undefined"].iloc[0])
    one_class = f"; movies of one class, not in within-movie AUC: {undefined}" if undefined else ""
    note = (
        f"{first['n_clips']} test clips, prevalence {first['prevalence']:.3f}; "
        f"no clip or movie is on two sides{one_class}"
    )
    return Block(cell_title(cell), headers, tuple(rows), (note,))


def _shown(row: Mapping[Any, Any], wide: bool) -> str:
    if not wide:
        return number(row["pooled"])
    return interval(row["pooled"], row["pooled_low"], row["pooled_high"])


def _printed(model: str, printed_row: str | None, cell: Cell) -> str:
    if printed_row is None:
        return NOTHING
    if model == "mlp":
        return str(PROBES[printed_row][cell])
    if printed_row == "X-CLIP" and model in {"pcbm_dt", "pcbm_lr"}:
        return str(BOTTLENECKS[printed_name(model)][cell])
    return NOTHING


def movie_knowledge(results: Sequence[StrictResults]) -> pd.DataFrame:
    """Compare each perceptron with `MoviePrior`, which uses a clip's movie only.

    By movie, AUC, of which the prior has 0.5: any excess is knowledge of clips.
    """
    rows = []
    for one in results:
        for cell in CELLS:
            task, run = ">".join(cell), saved(one.runs[cell[0]])
            found = compare(side(run, "mlp", task), side(run, "movie_prior", task)).metrics
            auc = found.set_index("metric").loc["auc"]
            kept = {name: auc[name] for name in ("difference", "low", "high", "p", "n_movies")}
            rows.append({"features": one.source.title, "task": task, **kept})
    table = pd.DataFrame(rows).assign(p_holm=lambda known: holm(known["p"]))
    return table.assign(told_apart=(table["p_holm"] < ALPHA) & (table["difference"] > 0))


def _verdict(row: Mapping[Any, Any], n_tests: int) -> str:
    if row["told_apart"]:
        return "knows more than the movie"
    # Holm multiplies the smallest of p-values by their number.
    few = smallest_p(int(row["n_movies"])) * n_tests >= ALPHA
    return f"{'too few movies to tell; ' if few else ''}NOT told apart from knowing the movie alone"


def _knowledge_block(known: pd.DataFrame) -> Block:
    rows = tuple(
        (
            cell_title(tuple(row["task"].split(">"))),
            row["features"],
            interval(row["difference"], row["low"], row["high"], signed=True),
            number(row["p"], 4),
            number(row["p_holm"], 4),
            _verdict(row, len(known)),
        )
        for row in known.to_dict(orient="records")
    )
    return Block(
        "does the perceptron know more than the movie? MLP minus movie prior",
        ("task", "features", "within-movie AUC [95 %]", "p", "p (Holm)", "verdict"),
        rows,
        (f"exact sign-flip test over movies; Holm over the {len(rows)} rows",),
    )
