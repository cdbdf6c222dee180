"""Write reports: tables with captions and figures, in formats for people and programs."""

from obygaze_features.errors import OutputError
from obygaze_models.report.pages import to_html, write_html
from obygaze_models.report.report import NOTHING, Block, Picture, Report, cell, interval, mean_sd, number
from obygaze_models.report.write import (
    CONTENTS,
    check_folder,
    document,
    latex,
    markdown,
    new_folder,
    plain,
    records,
    texts,
    to_csv,
    to_json,
    write_beside,
    write_report,
)

__all__ = [
    "CONTENTS",
    "NOTHING",
    "Block",
    "OutputError",
    "Picture",
    "Report",
    "cell",
    "check_folder",
    "document",
    "interval",
    "latex",
    "markdown",
    "mean_sd",
    "new_folder",
    "number",
    "plain",
    "records",
    "texts",
    "to_csv",
    "to_html",
    "to_json",
    "write_beside",
    "write_html",
    "write_report",
]
