"""Reproduce Figure 3: detection of each concept, against EN clips without it and against all."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from obygaze_models.dataset import Dataset
from obygaze_models.evaluation import f1_pos, permutation_pvalues
from obygaze_models.protocol import NOT_ASKED, Fold
from obygaze_models.report import Report
from obygaze_studies.audit_common.findings import bar_chart, series_of
from obygaze_studies.obygaze12.corpus import VISUAL_CONCEPTS, SourcePart, Writers, declared_block
from obygaze_studies.obygaze12.paper_folds import Negatives, concept_folds, leak_caption
from obygaze_studies.obygaze12.printed_values import PUBLISHED, trivial_f1
from obygaze_studies.obygaze12.protocol_results import CONCEPT_TASKS, NEGATIVES, PaperResults, StrictResults

N_PERMUTATIONS = 1000
"""Permutations of the test of each concept."""

ALPHA = 0.05
"""Level of significance for a star in the figure."""

NEGATIVES_TITLES: Mapping[str, str] = {Negatives.EN: "EN (solid)", Negatives.ALL: "all (hatched)"}
"""Choice of negatives -> its name in tables, with the look of its bars in the paper."""

Row = dict[str, Any]


def _format_printed(negatives: str, concept: str) -> str:
    """Write what the paper prints about a concept.

    It prints no numbers, but names some concepts as hard to separate, with all clips as negatives.
    """
    hard = negatives == "all" and concept in PUBLISHED["figures"]["figure3_hard"]
    return "no number; hard to separate" if hard else "no number"


WRITERS: Writers = {"against": NEGATIVES_TITLES.__getitem__, "printed": _format_printed}


class _Shown(NamedTuple):
    """What the figure shows under a protocol.

    Attributes
    ----------
    compared
        Column that is compared with the F1 of calling every clip positive.
    words
        How a sentence names that column.
    low, high
        Columns of the ends of the lines on the bars.
    """

    compared: str
    words: str
    low: str
    high: str


SHOWN_COLUMNS = {
    "paper": _Shown("f1_pos", "their F1 is", "f1_pos_min", "f1_pos_max"),
    "strict": _Shown("f1_pos_low", "the interval of their F1 lies", "f1_pos_low", "f1_pos_high"),
}


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 3 under the `paper` protocol, for the features of each source.

    The paper keeps, of a concept's SVMs, the one that does best in its own folds, and shows how that does on
    fold 9 (Tores et al., section 5).
    """
    corpus = results[0].corpus
    folds: list[Fold] = []
    for task in CONCEPT_TASKS:
        folds += concept_folds(corpus.manifest, *task)
    leaks = leak_caption(folds, corpus.clips)
    parts = [_part(result.source, "paper", _paper_rows(result), leaks, f": {leaks}") for result in results]
    return corpus.report("figure3", parts, {}, folds=folds)


def _part(
    source: Dataset, protocol: str, rows: Sequence[Row], note: str, caption_words: str = ""
) -> SourcePart:
    """Make the part of one source: the table and the figure of its CAVs, and a sentence.

    The sentence counts the CAVs that are better than calling every clip positive.

    Parameters
    ----------
    source
        The features of one backbone.
    protocol
        "paper" or "strict", which have different columns.
    rows
        A row for each CAV.
    note
        Note under the table.
    caption_words
        Words that the caption of the figure adds.
    """
    shown = SHOWN_COLUMNS[protocol]
    # How many CAVs are better than calling every clip positive, by the column that the protocol compares.
    n_better = sum(row[shown.compared] > row["all_positive"] for row in rows)
    answer = (
        f"{n_better} of {len(rows)} CAVs are better than calling every clip positive ({shown.words} higher)"
    )
    return SourcePart(
        source=source,
        rows=rows,
        blocks=[declared_block(source.title, ("figure3", protocol), rows, (note,), writers=WRITERS)],
        answers=[f"{source.title}: {answer}"],
        draw=_draw_chart(rows, shown.low, shown.high),
        caption_words=caption_words,
    )


def _draw_chart(rows: Sequence[Row], low: str, high: str) -> Callable[[Path], None]:
    """Return a function that draws a pair of bars for each concept, as in the paper.

    Parameters
    ----------
    low, high
        Columns of the ends of the line on each bar.
    """
    rows_with_titles = [row | {"against": f"against {NEGATIVES_TITLES[row['negatives']]}"} for row in rows]
    values_by_negatives = partial(
        series_of, rows_with_titles, condition="against", group="concept", groups=VISUAL_CONCEPTS
    )
    p_values = values_by_negatives("p_holm") if "p_holm" in rows[0] else {}
    return bar_chart(
        labels=VISUAL_CONCEPTS,
        series=values_by_negatives("f1_pos"),
        axis="F1 of the clips with the concept",
        published=values_by_negatives("all_positive"),
        published_label="every clip called positive",
        intervals=(values_by_negatives(low), values_by_negatives(high)),
        starred={against: np.less(values, ALPHA).tolist() for against, values in p_values.items()},
    )


def _paper_rows(result: PaperResults) -> list[Row]:
    """List the F1 of the CAVs of one source under `paper`: a row per concept and choice of negatives.

    `f1_pos` is that of the elected CAV, `f1_pos_min` and `f1_pos_max` are the range of all nine.
    """
    source = result.source
    fitted = result.concepts
    table = fitted.predictions.table.assign(called=fitted.predictions.called)
    rows: list[Row] = []
    for concept, negatives in CONCEPT_TASKS:
        part = table[table["task"] == f"{concept}|{negatives}"]
        f1_of_folds = []
        for _, fold in part.groupby("fold"):
            f1_of_folds.append(f1_pos(fold["label"].to_numpy(), fold["called"].to_numpy()))
        elected = fitted.elected[concept, negatives]
        tested_clips = part[part["fold"] == elected]
        rows.append(
            {
                "features": source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": f1_of_folds[elected],
                "f1_pos_min": min(f1_of_folds),
                "f1_pos_max": max(f1_of_folds),
                "elected": elected,
                "n_test": len(tested_clips),
                "positives": int(tested_clips["label"].sum()),
                "all_positive": trivial_f1(float(tested_clips["label"].mean()), 1.0, "f1_pos"),
            }
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 3 under `strict`: pooled over movies, with intervals and permutation tests."""
    targets = results[0].concept_targets
    undefined = []
    for concept, negatives in CONCEPT_TASKS:
        if (concept, negatives) not in targets:
            undefined.append(f"{concept} against {NEGATIVES_TITLES[negatives]}")
    notes = []
    if undefined:
        notes.append(f"undefined, in too few movies to leave one out: {', '.join(undefined)}")
    parts = [_strict_part(result) for result in results]
    return results[0].corpus.report("figure3", parts, {"n_permutations": N_PERMUTATIONS}, notes=notes)


def _strict_part(result: StrictResults) -> SourcePart:
    """Make the part of one source under `strict`."""
    rows: list[Row] = []
    for negatives in NEGATIVES:
        rows += _strict_rows(result, negatives)
    return _part(result.source, "strict", rows, "no clip or movie is on two sides")


def _strict_rows(result: StrictResults, negatives: Negatives) -> list[Row]:
    """List the CAVs of one source and choice of negatives under `strict`, with their permutation tests."""
    runs = {concept: run for (concept, against), run in result.concepts.items() if against is negatives}
    if not runs:
        return []
    targets = [result.concept_targets[concept, negatives] for concept in runs]
    codes = np.column_stack([target.of(result.source.labels) for target in targets])  # [N, concepts]
    permutation_tests = permutation_pvalues(
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
        rows.append(
            {
                "features": result.source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": f1["pooled"],
                "f1_pos_low": f1["pooled_low"],
                "f1_pos_high": f1["pooled_high"],
                "auc": metrics["auc"]["pooled"],
                "within_movie_auc": within["pooled"],
                "auc_low": within["pooled_low"],
                "auc_high": within["pooled_high"],
                "all_positive": trivial_f1(f1["prevalence"], 1.0, "f1_pos"),
                "p": float(permutation_tests.p[index]),
                "p_holm": float(permutation_tests.p_holm[index]),
                "lag1": float(permutation_tests.lag1[index]),
                "n_clips": f1["n_clips"],
                "positives": int((codes[:, index] == 1).sum()),
            }
        )
    return rows
