"""Reproduce Figure 3: detection of each concept, against EN clips without it and against all."""

from collections.abc import Callable, Mapping, Sequence
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
    is_named_as_hard = negatives == "all" and concept in PUBLISHED["figures"]["figure3_hard"]
    return "no number; hard to separate" if is_named_as_hard else "no number"


WRITERS: Writers = {"against": NEGATIVES_TITLES.__getitem__, "printed": _format_printed}
"""Functions that write the cells of the figure's table, by the names that captions.toml has for them."""


class _ShownColumns(NamedTuple):
    """Which columns of the rows the figure and its answer show under a protocol.

    Attributes
    ----------
    compared
        Column that is compared with the F1 of calling every clip positive.
    compared_in_words
        The answer's words for that column: "... are better (their F1 is higher)".
    line_low, line_high
        Columns of the ends of the lines on the bars.
    """

    compared: str
    compared_in_words: str
    line_low: str
    line_high: str


SHOWN_COLUMNS = {
    "paper": _ShownColumns("f1_pos", "their F1 is", line_low="f1_pos_min", line_high="f1_pos_max"),
    "strict": _ShownColumns(
        "f1_pos_low", "the interval of their F1 lies", line_low="f1_pos_low", line_high="f1_pos_high"
    ),
}
"""Protocol -> the columns."""


def paper_report(results: Sequence[PaperResults]) -> Report:
    """Reproduce Figure 3 under the `paper` protocol, for the features of each source.

    Of each concept, the paper trains an SVM in each of several folds, and keeps the one with the best result
    on its own fold's test clips. The figure shows how this one does on fold 9, which no SVM is trained on
    (Tores et al., section 5).
    """
    corpus = results[0].corpus
    folds: list[Fold] = []  # of all concepts and choices of negatives
    for concept, negatives in CONCEPT_TASKS:
        folds += concept_folds(corpus.manifest, concept, negatives)

    leaks = leak_caption(folds, corpus.first_source)
    parts = []
    for result in results:
        rows = _paper_rows(result)  # a row for each concept and choice of negatives
        # The table and the figure's caption both say which clips the folds leak.
        parts.append(_part(result.source, "paper", rows, note=leaks, caption_words=f": {leaks}"))
    return corpus.report("figure3", parts, record={}, folds=folds)


def _part(
    source: Dataset, protocol: str, rows: Sequence[Row], note: str, caption_words: str = ""
) -> SourcePart:
    """Make the part of one source: the table and the figure of its CAVs, and an answer.

    The answer is how many CAVs are better than calling every clip positive: by their F1 under the protocol
    `paper`, and by the lower end of its interval under `strict`.

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
    columns = SHOWN_COLUMNS[protocol]
    n_better = sum(row[columns.compared] > row["all_positive"] for row in rows)
    answer = (
        f"{n_better} of {len(rows)} CAVs are better than calling every clip positive "
        f"({columns.compared_in_words} higher)"
    )
    # The headings and columns of the table stand in captions.toml, under `figure3` and the protocol.
    table = declared_block(
        source.title, rows, notes=(note,), columns_of=("figure3", protocol), writers=WRITERS
    )

    return SourcePart(
        source=source,
        rows=rows,
        blocks=[table],
        answers=[f"{source.title}: {answer}"],
        draw=_draw_chart(rows, columns.line_low, columns.line_high),
        caption_words=caption_words,
    )


def _draw_chart(rows: Sequence[Row], low: str, high: str) -> Callable[[Path], None]:
    """Return a function that draws a pair of bars for each concept, as in the paper.

    A concept has a bar for each choice of negatives: its F1. A mark beside it, where other figures have the
    published value, is the F1 of calling every clip positive. Where the rows have p-values, significant bars
    get a star.

    Parameters
    ----------
    rows
        A row for each concept and choice of negatives.
    low, high
        Columns of the ends of the line on each bar.
    """
    rows_with_titles = [row | {"against": f"against {NEGATIVES_TITLES[row['negatives']]}"} for row in rows]

    def bars_of(column: str) -> dict[str, Any]:
        """Return the values of a column for the chart: such as "against EN" -> a value per concept."""
        return series_of(
            rows_with_titles,
            column,
            condition="against",  # bars of one colour
            group="concept",  # bars side by side
            groups=VISUAL_CONCEPTS,
        )

    starred = {}  # title of the negatives -> whether the bar of each concept gets a star
    if "p_holm" in rows[0]:
        for against, p_values in bars_of("p_holm").items():
            starred[against] = [p < ALPHA for p in p_values]

    return bar_chart(
        labels=VISUAL_CONCEPTS,
        series=bars_of("f1_pos"),
        axis="F1 of the clips with the concept",
        published=bars_of("all_positive"),
        published_label="every clip called positive",
        intervals=(bars_of(low), bars_of(high)),
        starred=starred,
    )


def _paper_rows(result: PaperResults) -> list[Row]:
    """List the F1 of the CAVs of one source under `paper`: a row per concept and choice of negatives.

    Nine CAVs were fitted for each, each validated on another fold and all tested on fold 9, and the one that
    is best on its validation fold was elected (`fit_concepts`). `f1_pos` is that of the elected CAV, and
    `f1_pos_min` and `f1_pos_max` are the range of all nine, on the test clips.
    """
    fitted = result.concepts
    table = fitted.predictions.table.assign(called=fitted.predictions.called)
    rows: list[Row] = []
    for concept, negatives in CONCEPT_TASKS:  # all concepts with each choice of negatives
        predictions = table[table["task"] == f"{concept}|{negatives}"]
        f1_of_fold = {}  # validation fold -> F1 of its CAV on the test clips
        for fold, rows_of_fold in predictions.groupby("fold"):
            f1_of_fold[fold] = f1_pos(rows_of_fold["label"].to_numpy(), rows_of_fold["called"].to_numpy())

        elected = fitted.elected[concept, negatives]  # the number of a fold
        tested_clips = predictions[predictions["fold"] == elected]
        prevalence = float(tested_clips["label"].mean())

        rows.append(
            {
                "features": result.source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": f1_of_fold[elected],
                "f1_pos_min": min(f1_of_fold.values()),
                "f1_pos_max": max(f1_of_fold.values()),
                "elected": elected,
                "n_test": len(tested_clips),
                "positives": int(tested_clips["label"].sum()),
                "all_positive": trivial_f1(prevalence, called=1.0, average="f1_pos"),
            }
        )
    return rows


def strict_report(results: Sequence[StrictResults]) -> Report:
    """Reproduce Figure 3 of the paper, the F1 of its CAVs, under the protocol `strict`.

    F1 is pooled over movies, each tested by CAVs that were learnt without it, with intervals and permutation
    tests. Each source of features has its part. A note lists the concepts that cannot be learnt, as too few
    movies have clips of both classes: this is the same for all sources, as they have the same clips.
    """
    first_result = results[0]
    targets = first_result.concept_targets
    undefined = []
    for concept, negatives in CONCEPT_TASKS:
        if (concept, negatives) not in targets:
            undefined.append(f"{concept} against {NEGATIVES_TITLES[negatives]}")

    notes = []
    if undefined:
        notes.append(f"undefined, in too few movies to leave one out: {', '.join(undefined)}")
    parts = [_strict_part(result) for result in results]
    return first_result.corpus.report("figure3", parts, {"n_permutations": N_PERMUTATIONS}, notes=notes)


def _strict_part(result: StrictResults) -> SourcePart:
    """Make the table and the figure of one source's CAVs under `strict`, and say how many beat all positive.

    Each concept has a CAV against clips of the level EN, and one against all clips without the concept.
    """
    rows: list[Row] = []
    for negatives in NEGATIVES:
        rows += _strict_rows(result, negatives)
    return _part(result.source, "strict", rows, note="no clip or movie is on two sides")


def _strict_rows(result: StrictResults, negatives: Negatives) -> list[Row]:
    """List the CAVs of one source and choice of negatives under `strict`, with their permutation tests.

    Metrics are pooled over movies. The columns `auc_low` and `auc_high` are the interval of
    `within_movie_auc`, which is the AUC to trust; `lag1` is the permutation test's measure of how alike
    neighbouring clips are.
    """
    runs = {concept: run for (concept, against), run in result.concepts.items() if against is negatives}
    if not runs:
        return []

    # Whether each clip has each concept: 1 or 0; NaN for clips that are neither positives nor negatives.
    targets = [result.concept_targets[concept, negatives] for concept in runs]
    codes = np.column_stack([target.of(result.source.labels) for target in targets])  # [N, concepts]
    presences = np.where(codes == NOT_ASKED, np.nan, codes)
    tests = permutation_pvalues(
        result.source.X,
        presences,
        result.source.movies,
        n_permutations=N_PERMUTATIONS,
        seed=result.seed,
    )

    rows: list[Row] = []
    for index, (concept, run) in enumerate(runs.items()):  # in the order of the tests
        metrics_of_cav = run.metrics[run.metrics["model"] == "cav"]
        metrics = metrics_of_cav.set_index("metric").to_dict(orient="index")  # name -> columns
        f1 = metrics["f1_pos"]
        within_movie_auc = metrics["within_movie_auc"]

        rows.append(
            {
                "features": result.source.title,
                "concept": concept,
                "negatives": str(negatives),
                "f1_pos": f1["pooled"],
                "f1_pos_low": f1["pooled_low"],
                "f1_pos_high": f1["pooled_high"],
                "auc": metrics["auc"]["pooled"],
                "within_movie_auc": within_movie_auc["pooled"],
                "auc_low": within_movie_auc["pooled_low"],
                "auc_high": within_movie_auc["pooled_high"],
                "all_positive": trivial_f1(f1["prevalence"], called=1.0, average="f1_pos"),
                "p": float(tests.p[index]),
                "p_holm": float(tests.p_holm[index]),
                "lag1": float(tests.lag1[index]),
                "n_clips": f1["n_clips"],
                "positives": int((codes[:, index] == 1).sum()),
            }
        )
    return rows
