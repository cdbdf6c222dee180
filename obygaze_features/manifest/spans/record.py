"""Define a record of another tool's file: a span, or a record that is no span, with the reason."""

import math
from collections.abc import Mapping

import msgspec


class RawSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One record as its file has it: a span, or a record that is no span, with the reason.

    Parameters
    ----------
    where
        Its place in the file, for people: `line 31`.
    start_s, end_s
        Times in seconds of the film; NaN where they cannot be read.
    text
        The text of the span: a label, a level, names of concepts, or words.
    tier
        The tier, track or category that it is on.
    cells
        What else the file says: `movie`, `media` (as it is written), `annotator`, and further columns.
    span_id, parent_ids
        Its id, and those of the records it belongs to, where a file has such.
    reason
        Why it is left out, unless its times are the reason (`fault`); "" for a span.
    is_whole_file
        Whether it is of a whole file, so that it has no times.
    is_of_model
        Whether a model wrote it, so that annotators saw its output when they labelled the file.
    role
        `levels` or `concepts`, if the file itself says what the text names; "" if the tier's role decides.
    refusal
        Why the file is refused if the tier of this record is read; "" if nothing is wrong.
    note
        What is noted in the file's account if the tier of this record is read.
    is_added_column
        Whether it comes from a column that a person added to a tool's table. It is left out unless that
        column holds labels.
    n_records
        How many records of the file it stands for: more than one for records that are no spans and differ
        only in their places (`without_repeats`).
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
    is_added_column: bool = False
    n_records: int = 1

    def fault(self) -> str:
        """Return the reason why the record is no span; "" if it is one."""
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
