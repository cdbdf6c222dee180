"""Reproduce Figure 3: detection of each concept, against EN clips without it and against all."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import f1_pos, permutation_pvalues
from obygaze_models.protocol import NOT_ASKED
from obygaze_models.report import Report
from obygaze_studies.audit_common.findings import bar_chart, series_of
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, Part, Writers, declared
from obygaze_studies.obygaze12.paper_folds import Negatives, concept_folds, leak_caption
from obygaze_studies.obygaze12.printed_values import PUBLISHED, trivial_f1
from obygaze_studies.obygaze12.protocol_results import CONCEPT_TASKS, NEGATIVES, PaperResults, StrictResults

N_PERMUTATIONS = 1000

ALPHA = 0.05

AGAINST: Mapping[str, str] = {Negatives.EN: "EN (solid)", Negatives.ALL: "all (hatched)"}
"""Negatives of the solid and of the hatched bars."""

Row = dict[str, Any]


def _printed(negatives: str, concept: str) -> str:
    hard = negatives == "all" and concept in PUBLISHED["figures"]["figure3_hard"]
    return "no number; hard to separate" if hard else "no number"


WRITERS: Writers = {"against": AGAINST.__getitem__, "printed": _printed}


SHOWN = {
    "paper": ("f1_pos", "their F1 is", "f1_pos_min", "f1_pos_max"),
    "strict": ("f1_pos_low", "the interval of their F1 lies", "f1_pos_low", "f1_pos_high"),
}
"""What is compared with calling every clip positive, as it is said, and the ends of the lines."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 3 under the `paper` protocol: the elected SVM of each concept on fold 9."""
    corpus = results[0].corpus
    folds = [fold for task in CONCEPT_TASKS for fold in concept_folds(corpus.manifest, *task)]
    leaks = leak_caption(folds, corpus.clips)
    parts = [_part(result.source, "paper", _paper_rows(result), leaks, f": {leaks}") for result in results]
    return corpus.report("figure3", parts, {}, folds=folds)


def _part(source: Dataset, protocol: str, rows: Sequence[Row], note: str, drawn: str = "") -> Part:
    """Show and draw the CAVs of a source; count those that are better than calling every clip positive."""
    value, title, *ends = SHOWN[protocol]
    above = sum(row[value] > row["all_positive"] for row in rows)
    better = f"{above} of {len(rows)} CAVs are better than calling every clip positive ({title} higher)"
    return Part(
        source=source,
        rows=rows,
        blocks=[declared(source.title, ("figure3", protocol), rows, (note,), writers=WRITERS)],
        answers=[f"{source.title}: {better}"],
        draw=_drawn(rows, *ends),
        drawn=drawn,
    )


def _drawn(rows: Sequence[Row], low: str, high: str) -> Callable[[Path], None]:
    """Draw a pair of bars a concept, as printed."""
    named = [row | {"against": f"against {AGAINST[row['negatives']]}"} for row in rows]
    laid_out = partial(series_of, named, condition="against", group="concept", groups=VISUAL_CONCEPTS)
    tested = laid_out("p_holm") if "p_holm" in named[0] else {}
    return bar_chart(
        labels=VISUAL_CONCEPTS,
        series=laid_out("f1_pos"),
        axis="F1 of the clips with the concept",
        published=laid_out("all_positive"),
        marked="every clip called positive",
        ends=(laid_out(low), laid_out(high)),
        starred={against: np.less(values, ALPHA).tolist() for against, values in tested.items()},
    )


def _paper_rows(result: PaperResults) -> list[Row]:
    source = result.source
    fitted = result.concepts
    table = fitted.predictions.table.assign(called=fitted.predictions.called)
    rows: list[Row] = []
    for concept, negatives in CONCEPT_TASKS:
        part = table[table["task"] == f"{concept}|{negatives}"]
        values = [
            f1_pos(fold["label"].to_numpy(), fold["called"].to_numpy()) for _, fold in part.groupby("fold")
        ]
        elected = fitted.elected[concept, negatives]
        first = part[part["fold"] == elected]
        rows.append(
            {
                "features": source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": values[elected],
                "f1_pos_min": min(values),
                "f1_pos_max": max(values),
                "elected": elected,
                "n_test": len(first),
                "positives": int(first["label"].sum()),
                "all_positive": trivial_f1(float(first["label"].mean()), 1.0, "f1_pos"),
            }
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 3 under `strict`: pooled over movies, with intervals and permutation tests."""
    targets = results[0].concept_targets
    absent = [
        f"{concept} against {AGAINST[negatives]}"
        for concept, negatives in CONCEPT_TASKS
        if (concept, negatives) not in targets
    ]
    return results[0].corpus.report(
        "figure3",
        [_strict_part(result) for result in results],
        {"n_permutations": N_PERMUTATIONS},
        notes=[f"undefined, in too few movies to leave one out: {', '.join(absent)}"] if absent else [],
    )


def _strict_part(result: StrictResults) -> Part:
    rows = [row for negatives in NEGATIVES for row in _strict_rows(result, negatives)]
    return _part(result.source, "strict", rows, "no clip or movie is on two sides")


def _strict_rows(result: StrictResults, negatives: Negatives) -> list[Row]:
    runs = {concept: run for (concept, against), run in result.concepts.items() if against is negatives}
    if not runs:
        return []
    codes = np.column_stack(
        [result.concept_targets[concept, negatives].of(result.source.labels) for concept in runs]
    )
    tested = permutation_pvalues(
        result.source.X,
        np.where(codes == NOT_ASKED, np.nan, codes),
        result.source.movies,
        n_permutations=N_PERMUTATIONS,
        seed=result.seed,
    )
    rows: list[Row] = []
    for index, (concept, run) in enumerate(runs.items()):
        metrics = run.metrics[run.metrics["model"] == "cav"].set_index("metric").to_dict(orient="index")
        f1 = metrics["f1_pos"]
        within = metrics["within_movie_auc"]
        ends = ("", "_low", "_high")
        rows.append(
            {"features": result.source.title, "concept": concept, "negatives": str(negatives)}
            | {f"f1_pos{end}": f1[f"pooled{end}"] for end in ends}
            | {"auc": metrics["auc"]["pooled"], "within_movie_auc": within["pooled"]}
            | {f"auc{end}": within[f"pooled{end}"] for end in ends[1:]}
            | {"all_positive": trivial_f1(f1["prevalence"], 1.0, "f1_pos")}
            | {name: float(getattr(tested, name)[index]) for name in ("p", "p_holm", "lag1")}
            | {"n_clips": f1["n_clips"], "positives": int((codes[:, index] == 1).sum())}
        )
    return rows
