"""Define a record of another tool's file: a span, or why it is none."""

import math
from collections.abc import Mapping

import msgspec


class RawSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record as its file has it: a span, or why it is none.

    Parameters
    ----------
    where
        Its place in the file, for people: `line 31`.
    start_s, end_s
        Times in seconds of the film; NaN where they cannot be read.
    text
        What is said of the span: a label, a level, names of concepts, words.
    tier
        The tier, track or category that it is on.
    cells
        What else the file says: `movie`, `media` (as it is written), `annotator`, and further columns.
    span_id, parent_ids
        Its id, and those of the records it belongs to, where a file has such.
    reason
        Why it is left out, beyond what its times say; "" for a span.
    is_whole_file
        Whether it is of a whole file, so that it has no times.
    is_of_model
        Whether a model wrote it, so that what people wrote beside it was in its sight.
    role
        `levels` or `concepts`, where the file says which of them the text names; else its tier tells.
    refusal
        Why the file is refused if the tier of this record is read; "" where nothing is wrong.
    note
        What is to be said of the file if the tier of this record is read.
    is_beside
        Whether it is of a column that a person added to those of a tool: no span where that is not of labels.
    n_records
        How many records of the file it stands for: of very many that are no spans, those that differ in their
        places alone are one.
    """

    where: str
    start_s: float = math.nan
    end_s: float = math.nan
    text: str = ""
    tier: str = ""
    cells: Mapping[str, str] = msgspec.field(default_factory=dict)
    span_id: str = ""
    parent_ids: tuple[str, ...] = ()
    reason: str = ""
    is_whole_file: bool = False
    is_of_model: bool = False
    role: str = ""
    refusal: str = ""
    note: str = ""
    is_beside: bool = False
    n_records: int = 1

    def fault(self) -> str:
        """Say why it can be no span; "" if it is one."""
        if self.reason or self.is_whole_file:
            return self.reason
        if math.isnan(self.start_s + self.end_s):
            return "its times cannot be read"
        if min(self.start_s, self.end_s) < 0:
            return "a time below zero"
        if self.start_s == self.end_s:
            return "it has no length"
        if self.start_s > self.end_s:
            return "it ends before it starts"
        return ""
