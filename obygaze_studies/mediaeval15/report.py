"""Turn scored runs into tables and figures."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from obygaze_models.report import Block, Picture, Report, number
from obygaze_studies.mediaeval15.score import PUBLISHED, Scored

SHOWN = ("map", "P_10", "P_100", "recall_100", "Rprec", "accuracy_all", "accuracy_returned", "coverage")
"""Measures of the printed table; the CSV has all."""

HEADERS = ("run", "on", "measure", "value", "chance", "published")


def shown_rows(table: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """Lay out the measures that people look at first."""
    return tuple(
        (
            str(row["run"]),
            str(row["on"]),
            str(row["measure"]),
            number(row["value"], 4),
            number(None if pd.isna(row["chance"]) else row["chance"], 4),
            number(None if pd.isna(row["published"]) else row["published"]),
        )
        for row in table.to_dict(orient="records")
        if row["measure"] in SHOWN
    )


def make_report(scored: Scored, record: Mapping[str, object]) -> Report:
    """Make the report of scored runs: a table, precision and recall, confusion matrices."""
    pictures = []
    if scored.curves:

        def curves(path: Path) -> None:
            from obygaze_studies.mediaeval15.curves import draw_curves  # noqa: PLC0415 - slow

            draw_curves(scored.curves, path)

        caption = "Precision and recall; dotted, the share of relevant clips"
        pictures.append(Picture("precision_recall", caption, curves))
    if scored.confusions:

        def matrices(path: Path) -> None:
            from obygaze_studies.mediaeval15.curves import draw_confusions  # noqa: PLC0415 - slow

            draw_confusions(scored.confusions, path)

        caption = "Clips of each true class by the class they are called"
        pictures.append(Picture("confusion", caption, matrices))
    notes = [
        "map: average precision as trec_eval computes it, ties by file name; official for violence",
        "accuracy_all: share of all clips called correctly; official for affect where coverage is 1",
        "chance: mean AP over all orders of the clips; accuracy of the most frequent class",
    ]
    shown = scored.table.dropna(subset=["published"])[["on", "measure"]].itertuples(index=False, name=None)
    for on, measure in dict.fromkeys(shown):
        notes.append(f"published {measure} of {on}: {PUBLISHED[on, measure][1]}")
    return Report(
        name="scores",
        title="MediaEval 2015 Affective Impact of Movies",
        notes=(*notes, *scored.notices),
        blocks=(Block("Measures", HEADERS, shown_rows(scored.table)),),
        data=scored.table,
        record=record,
        pictures=tuple(pictures),
    )
