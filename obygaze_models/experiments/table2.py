"""Table 2 (and 5): telling S from EN, and from EN and HN, by models trained on easy or on hard negatives."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from obygaze_models.evaluation import Predictions, holm, sign_flip, smallest_p, t_interval
from obygaze_models.evaluation.metrics import f1_pos, f1_weighted
from obygaze_models.experiments import captions
from obygaze_models.experiments.compare import by_film
from obygaze_models.experiments.evaluate import MODELS
from obygaze_models.experiments.paper_protocol import cell_folds
from obygaze_models.experiments.published import (
    BOTTLENECKS,
    CELLS,
    PROBES,
    TRIVIAL,
    Average,
    Printed,
    trivial_f1,
)
from obygaze_models.experiments.results import PaperResults, StrictResults
from obygaze_models.protocol import TASKS
from obygaze_models.protocol.paper import Fold, count_leaks, head_fold, leak_caption
from obygaze_models.report import Block, Report, interval, mean_sd, number
from obygaze_models.report.format import NOTHING
from obygaze_models.report.write import records

Cell = tuple[str, str]
AVERAGES: Mapping[Average, Any] = {"f1_weighted": f1_weighted, "f1_pos": f1_pos}
TITLE = "Table 2"


def cell_title(cell: Cell) -> str:
    """Name a cell as the papers do."""
    return f"train {TASKS[cell[0]].title}, test {TASKS[cell[1]].title}"


# --- paper ---------------------------------------------------------------------------------------------


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Redo Table 2 under the `paper` protocol: mean and SD over the eight validation folds."""
    material = results[0].material
    folds = cell_folds(material)
    rows = [row for cell in CELLS for row in _paper_rows(results, cell, folds[cell])]
    blocks = [
        _paper_block(
            cell,
            folds[cell],
            head_fold(material.manifest, TASKS[cell[0]], TASKS[cell[1]]),
            [row for row in rows if row["cell"] == cell],
        )
        for cell in CELLS
    ]
    data = pd.DataFrame([_numbers(row) for row in rows])
    trivial = [
        {
            "train": "",
            "test": one.test,
            "model": f"{one.row} at printed prevalence",
            "metric": one.average,
            "ours": one.computed,
            "printed": one.printed.mean,
            "printed_in": one.printed.source,
        }
        for one in TRIVIAL
    ]
    return Report(
        name="table2-paper",
        title=f"{TITLE}, paper protocol",
        notes=(
            *captions.paper_notes(material, [fold for own in folds.values() for fold in own]),
            (
                "mlp: mean (SD) over eight validation folds on one test fold; the SD is of the draw of "
                "training "
                "clips, not of the test clips"
            ),
            (
                "the printed F1 of the perceptron is support-weighted, that of the PCBM rows is the "
                "positive class's; "
                "f1_weighted and f1_pos are not to be compared"
            ),
            (
                "pcbm_*|en: CAVs against EN clips, which the papers say; |all: against EN, and S and HN "
                "without the "
                "concept, which the original code's stored results used"
            ),
            (
                "random and all positive: expected F1 at the prevalence of the released test side, which is "
                "not the "
                "printed 23 % and 19 %"
            ),
        ),
        blocks=(*blocks, trivial_block()),
        data=pd.concat([data, pd.DataFrame(trivial)], ignore_index=True),
        record=material.record() | {"protocol": "paper", "seed": results[0].seed},
    )


def trivial_block() -> Block:
    """Show all eight trivial figures of the two papers beside what their formula gives."""
    rows = tuple(
        (
            one.row,
            TASKS[one.test].title,
            one.average,
            number(one.computed),
            str(one.printed),
            one.printed.source,
            one.verdict,
        )
        for one in TRIVIAL
    )
    agree = sum(one.verdict.startswith("agrees") for one in TRIVIAL)
    return Block(
        "trivial rows at the printed prevalences, 23 % and 19 %",
        ("row", "test", "metric", "computed", "printed", "printed in", ""),
        rows,
        (
            (
                f"{agree} of {len(TRIVIAL)} come out as printed; 0.33 would need 19.5 % positive clips "
                f"({trivial_f1(0.195, 1.0, 'f1_pos'):.3f})"
            ),
        ),
    )


def _paper_rows(results: Sequence[PaperResults], cell: Cell, folds: Sequence[Fold]) -> list[dict[str, Any]]:
    task = ">".join(cell)
    leaks = [count_leaks(fold) for fold in folds]
    shared = {
        "cell": cell,
        "leak_min": min(leak.in_training for leak in leaks),
        "leak_max": max(leak.in_training for leak in leaks),
    }
    rows: list[dict[str, Any]] = []
    for one in results:
        printed = PROBES.get(one.source.printed_row or "", {}).get(cell)
        values = by_fold(one.classifiers, "mlp", task)
        for average in AVERAGES:
            shown = printed if average == "f1_weighted" else None
            rows.append(_row("mlp", one.source.title, average, values[average].tolist(), shown))
    rows += [
        _row("mlp", f"{name} (printed only)", "f1_weighted", None, row[cell])
        for name, row in PROBES.items()
        if name not in {one.source.printed_row for one in results}
    ]
    for one in results:
        on_xclip = one.source.printed_row == "X-CLIP"
        for model in dict.fromkeys(one.heads.predictions.table["model"]):
            values = by_fold(one.heads.predictions, model, task)
            printed = BOTTLENECKS[_printed_name(model)][cell] if on_xclip else None
            rows.append(_row(model, one.source.title, "f1_pos", values["f1_pos"].tolist(), printed))
    if not any(one.source.printed_row == "X-CLIP" for one in results):
        rows += [
            _row(model.lower(), "X-CLIP (printed only)", "f1_pos", None, row[cell])
            for model, row in BOTTLENECKS.items()
        ]
    tested = results[0].classifiers.table
    side = tested[tested["task"] == task].drop_duplicates("clip_id")["label"]
    for trivial in TRIVIAL:
        if trivial.test == cell[1]:
            ours = trivial_f1(float(side.mean()), trivial.called, trivial.average)
            rows.append(_row(trivial.row.lower(), NOTHING, trivial.average, [ours], trivial.printed))
    counts = {"n_test": len(side), "prevalence": float(side.mean())}
    return [row | shared | counts for row in rows]


def _printed_name(model: str) -> str:
    return "PCBM-DT" if model.startswith("pcbm_dt") else "PCBM-LR"


def _row(
    model: str, source: str, metric: str, values: list[float] | None, printed: Printed | None
) -> dict[str, Any]:
    return {"model": model, "features": source, "metric": metric, "values": values, "printed": printed}


def by_fold(predictions: Predictions, model: str, task: str) -> pd.DataFrame:
    """Compute both F1 of each fold of a model on a task."""
    table = predictions.table.assign(called=predictions.called)
    part = table[(table["model"] == model) & (table["task"] == task)]
    return pd.DataFrame(
        [
            {name: f1(rows["label"].to_numpy(), rows["called"].to_numpy()) for name, f1 in AVERAGES.items()}
            for _, rows in part.groupby("fold")
        ]
    )


def _numbers(row: Mapping[str, Any]) -> dict[str, object]:
    values, printed = row["values"], row["printed"]
    return {
        "train": row["cell"][0],
        "test": row["cell"][1],
        "model": row["model"],
        "features": row["features"],
        "metric": row["metric"],
        "ours": float(np.mean(values)) if values else float("nan"),
        "ours_sd": float(np.std(values)) if values and len(values) > 1 else float("nan"),
        "n_folds": len(values or []),
        "printed": printed.mean if printed else float("nan"),
        "printed_sd": printed.sd if printed and printed.sd is not None else float("nan"),
        "printed_in": printed.source if printed else "",
        "n_test": row["n_test"],
        "prevalence": row["prevalence"],
        "test_in_training_min": row["leak_min"],
        "test_in_training_max": row["leak_max"],
    }


def _paper_block(cell: Cell, folds: Sequence[Fold], head: Fold, rows: Sequence[Mapping[str, Any]]) -> Block:
    cells = tuple(
        (
            row["model"],
            row["features"],
            row["metric"],
            NOTHING if row["values"] is None else mean_sd(row["values"]),
            str(row["printed"] or NOTHING),
            row["printed"].source if row["printed"] else "",
        )
        for row in rows
    )
    first = rows[0]
    return Block(
        cell_title(cell),
        ("model", "features", "metric", "ours", "printed", "printed in"),
        cells,
        (
            f"mlp: {leak_caption(folds)}",
            f"pcbm: {leak_caption([head])}; its CAVs are fitted on its training clips",
            f"{first['n_test']} test clips, prevalence {first['prevalence']:.3f}",
        ),
    )


# --- strict --------------------------------------------------------------------------------------------

ALPHA = 0.05

BASELINES = tuple(name for name in MODELS if name != "mlp")
"""They look at no feature: shown once, whatever the number of sources."""

SHOWN: Mapping[str, tuple[str, bool]] = {
    "AP [95 %]": ("average_precision", True),
    "f1_pos [95 %]": ("f1_pos", True),
    "f1_weighted": ("f1_weighted", False),
    "balanced_accuracy": ("balanced_accuracy", False),
    "within_movie_auc [95 %]": ("within_movie_auc", True),
}


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Redo Table 2 under the `strict` protocol: pooled over films, with intervals, against the baselines."""
    material = results[0].material
    summary = pd.concat([one.summary.assign(features=one.source.title) for one in results], ignore_index=True)
    known = film_knowledge(results)
    missing = (
        []
        if results[0].has_concepts
        else ["no concept is marked in enough films to leave some out: the PCBM rows are not made"]
    )
    return Report(
        name="table2-strict",
        title=f"{TITLE}, strict protocol",
        notes=(
            *captions.strict_notes(material),
            captions.IMBALANCE["none"],
            "pooled over all out-of-fold clips; intervals: jackknife over films, of these trained models",
            (
                "pcbm: ridge CAVs of the training films, cross-fitted; the last two rows are the same "
                "head on "
                "directions that know no concept"
            ),
            (
                "printed: published F1 (perceptron support-weighted, PCBM positive-class) under the "
                "published "
                "protocol, on seen films; not comparable"
            ),
            *missing,
        ),
        blocks=(*(_strict_block(results, summary, cell) for cell in CELLS), _knowledge_block(known)),
        data=summary,
        record=material.record()
        | {"protocol": "strict", "seed": results[0].seed, "film_knowledge": records(known)},
    )


def _strict_block(results: Sequence[StrictResults], summary: pd.DataFrame, cell: Cell) -> Block:
    part = summary[summary["task"] == ">".join(cell)]
    rows: list[tuple[str, ...]] = []
    for one in results:
        own = part[part["features"] == one.source.title]
        if one is not results[0]:
            own = own[~own["model"].isin(BASELINES)]
        for model, metrics in own.groupby("model", sort=False):
            by = metrics.set_index("metric").to_dict(orient="index")
            rows.append(
                (
                    str(model),
                    one.source.title if str(model) not in BASELINES else NOTHING,
                    *(_shown(by[name], wide) for name, wide in SHOWN.values()),
                    _printed(str(model), one.source.printed_row, cell),
                )
            )
    constants = part.drop_duplicates("metric").set_index("metric")["best_constant"]
    rows.append(
        ("(best constant)", NOTHING, *(number(float(constants[name])) for name, _ in SHOWN.values()), NOTHING)
    )
    first = part.iloc[0]
    undefined = int(part.loc[part["metric"] == "within_movie_auc", "n_undefined"].iloc[0])
    one_class = f"; films of one class, not in within_movie_auc: {undefined}" if undefined else ""
    return Block(
        cell_title(cell),
        ("model", "features", *SHOWN, "printed"),
        tuple(rows),
        (
            (
                f"{first['n_clips']} test clips, prevalence {first['prevalence']:.3f}; no clip or film is "
                f"on two sides{one_class}"
            ),
        ),
    )


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
        return str(BOTTLENECKS[_printed_name(model)][cell])
    return NOTHING


def film_knowledge(results: Sequence[StrictResults]) -> pd.DataFrame:
    """Compare each probe with `MoviePrior`, which knows a clip's film and nothing else.

    By film, within-movie AUC, of which the prior has 0.5: what is left is knowledge of clips.
    """
    rows = []
    for one in results:
        for cell in CELLS:
            task = ">".join(cell)
            values = {}
            for model in ("mlp", "movie_prior"):
                table = one.classifiers.table
                part = Predictions(table[(table["task"] == task) & (table["model"] == model)])
                films = by_film(part)
                values[model] = films[films["metric"] == "auc"]["value"].to_numpy()
            difference = values["mlp"] - values["movie_prior"]
            found, test = t_interval(difference), sign_flip(difference)
            rows.append(
                {
                    "features": one.source.title,
                    "task": task,
                    "difference": found.mean,
                    "low": found.low,
                    "high": found.high,
                    "p": test.p,
                    "n_movies": test.n_pairs,
                }
            )
    table = pd.DataFrame(rows).assign(p_holm=lambda found: holm(found["p"]))
    return table.assign(told_apart=(table["p_holm"] < ALPHA) & (table["difference"] > 0))


def _verdict(row: Mapping[Any, Any], n_tests: int) -> str:
    if row["told_apart"]:
        return "knows more than the film"
    # Holm multiplies the smallest of p-values by their number.
    few = smallest_p(int(row["n_movies"])) * n_tests >= ALPHA
    return f"{'too few films to tell; ' if few else ''}NOT told apart from knowing the film alone"


def _knowledge_block(known: pd.DataFrame) -> Block:
    rows = tuple(
        (
            row["task"],
            row["features"],
            interval(row["difference"], row["low"], row["high"], signed=True),
            number(row["p"], 4),
            number(row["p_holm"], 4),
            _verdict(row, len(known)),
        )
        for row in known.to_dict(orient="records")
    )
    return Block(
        "does the probe know more than the film? mlp less movie_prior",
        ("task", "features", "within_movie_auc by film [95 %]", "p", "p (Holm)", "verdict"),
        rows,
        (f"exact sign-flip test over films; Holm over the {len(rows)} rows",),
    )
