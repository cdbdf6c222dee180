"""What people look at: tables with captions and figures, kept in formats for people and programs."""

from obygaze_features.errors import OutputError
from obygaze_models.report.folder import CONTENTS, new_folder
from obygaze_models.report.format import interval, mean_sd, number
from obygaze_models.report.plain import plain
from obygaze_models.report.report import Block, Picture, Report
from obygaze_models.report.write import markdown, write_report

__all__ = [
    "CONTENTS",
    "Block",
    "OutputError",
    "Picture",
    "Report",
    "interval",
    "markdown",
    "mean_sd",
    "new_folder",
    "number",
    "plain",
    "write_report",
]
