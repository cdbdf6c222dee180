"""Lay out the agreement of timelines with annotators as a report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from obygaze_film.measure import ALL, NONE, PRIOR, SHIFTED, TOP, Measured
from obygaze_models.report import Block, Report, interval, number

TITLES: Mapping[str, str] = {
    "second_ap": "AP of seconds",
    "second_auc": "AUC of seconds",
    "second_f1": "F1 of seconds",
    "kappa": "kappa",
    "segment_f1_0.1": "segments, tIoU .1",
    "segment_f1_0.3": "segments, tIoU .3",
    "segment_f1_0.5": "segments, tIoU .5",
    "segment_map": "segment mAP",
    f"top{TOP}_precision": f"top {TOP} precision",
    "rate": "rate",
    "rate_error": "error of the rate",
    "rate_rank": "rank correlation of rates",
}
"""Titles of the metrics."""

RULES: Mapping[str, str] = {
    ALL: "every second",
    NONE: "no second",
    PRIOR: "share of the other films",
    SHIFTED: "the model, moved in time",
}


def measured_report(measured: Measured) -> Report:
    """Make a report: for each annotator a table of metrics and one of films, and what is left out."""
    record, summary = measured.record, measured.summary
    model = str(record.get("model", "model"))
    blocks: list[Block] = []
    for truth in dict.fromkeys(summary["truth"]):
        blocks += _blocks(str(truth), summary[summary["truth"] == truth], measured.by_film, model)
    return Report(
        name="film-agreement",
        title=f"Timelines of {model} against {', '.join(map(str, dict.fromkeys(summary['truth'])))}",
        notes=tuple(_notes(record, summary)),
        blocks=tuple(blocks),
        data=pd.concat([summary.assign(movie=""), measured.by_film], ignore_index=True),
        record=dict(record),
    )


def _blocks(truth: str, summary: pd.DataFrame, by_film: pd.DataFrame, model: str) -> Iterator[Block]:
    who = [one for one in dict.fromkeys(summary["who"]) if one != f"human: {truth}"]
    cells = {(row.who, row.metric): row for row in summary.itertuples(index=False)}
    rows = []
    for metric in dict.fromkeys(summary["metric"]):
        found: list[Any] = [cells.get((one, metric)) for one in who]
        values = ["" if cell is None else interval(cell.value, cell.low, cell.high) for cell in found]
        mine: Any = cells.get((model, metric))
        rows.append((_title(str(metric)), *values, "" if mine is None or pd.isna(mine.p) else number(mine.p)))
    headers = ("metric", *(RULES.get(one, one) for one in who), "p")
    notes = ("mean over films and its 95 % interval; p: how often the model, moved in time, does as well",)
    yield Block(f"Truth: {truth}", headers, tuple(rows), notes)
    mine = by_film[(by_film["truth"] == truth) & (by_film["who"] == model)]
    table = mine.pivot_table(index="movie", columns="metric", values="value", sort=False)
    titles = ("film", *map(_title, map(str, table.columns)))
    cells_of = [
        (str(movie), *(number(float(value)) for value in row))
        for movie, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    yield Block(f"{model}, film by film; truth: {truth}", titles, tuple(cells_of))


def _title(metric: str) -> str:
    if metric.startswith("boundary_f1_"):
        return f"boundaries, {metric.removeprefix('boundary_f1_').removesuffix('s')} s"
    return TITLES.get(metric, metric)


def _notes(record: Mapping[str, Any], summary: pd.DataFrame) -> Iterator[str]:
    positive = ", ".join(record.get("positive", ()))
    yield f"Positive: clips of level {positive}; negative: all other seconds of an annotated film."
    people = [one for one in dict.fromkeys(summary["who"]) if str(one).startswith("human: ")]
    if len(people) < 2:
        yield "One annotator only: nothing says how far people agree on these films."
    else:
        yield "'human' is another annotator, measured as the model is: a yardstick, not an upper bound."
    yield (
        "F1 of segments and boundaries: those that reach the model's threshold, matched one to one; segments "
        "that touch are one."
    )
    for what, words in (
        ("left_out", "not annotated, left out"),
        ("without_rate", "no rate (most of it unlike)"),
    ):
        films: Sequence[str] = record.get(what, ())
        if films:
            yield f"{words}: {', '.join(films)}"
