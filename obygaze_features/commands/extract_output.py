"""Print the estimate, the outcome and the notes of `obygaze extract`."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

import obygaze_features as of
from obygaze_features.commands.store_output import growth_of, repeated_clips
from obygaze_features.manifest import counted
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.screen import table
from obygaze_features.store.format import TABLE

if TYPE_CHECKING:
    from obygaze_features.extraction import Estimate, RunReport, Stop
    from obygaze_features.extraction.doctor import Diagnosis
    from obygaze_features.extraction.texts import TextEstimate
    from obygaze_features.store import Stage
    from obygaze_features.store.journal import JournalEntry

SHOWN_REASONS = 10
"""Number of reasons for faults that are printed."""

SHOWN_REMARKS = 5
"""Number of remarks that are printed."""

NOTE = "obygaze: note: "
"""The beginning of a note on stderr."""


def estimated(estimate: "Estimate | TextEstimate", unit: str, shard: tuple[int, int]) -> Answer:
    """Return the answer of `extract --dry-run`: the estimated size of the features and the time.

    Parameters
    ----------
    estimate
        The estimate.
    unit
        The word for a row: clip or text.
    shard
        (number of the shard that is to be done, from 0; number of shards).
    """
    if estimate.n_to_do == 0:
        number, n_shards = shard
        of_shard = f" of shard {number}/{n_shards}" if n_shards > 1 else ""
        return Answer(asdict(estimate), f"nothing to do: every {unit}{of_shard} is done")

    time = "unknown: no video could be tried"
    if estimate.seconds is not None:
        time = f"about {_format_duration(estimate.seconds)}, from {estimate.tried} {unit}s tried now"
    facts = [*estimate.facts(), ("feature bytes", f"{estimate.feature_bytes:,}"), ("time", time)]
    return Answer(asdict(estimate), table(facts))


def diagnosed(findings: "Sequence[Diagnosis]") -> Answer:
    """Return the answer of `extract --check` and `doctor`: a line for each finding.

    A finding of the level `fault` would stop the work, and sets the exit code.
    """
    width = max(len(finding.about) for finding in findings)  # of the column of subjects
    lines = [f"{finding.level:6}  {finding.about:{width}}  {finding.text}" for finding in findings]
    n_faults = len([finding for finding in findings if finding.level == "fault"])
    document = {"faults": n_faults, "findings": [asdict(finding) for finding in findings]}
    return Answer(document, "\n".join(lines), code=PROBLEMS_FOUND if n_faults else 0)


class Fault(NamedTuple):
    """A clip that is not ok: failed, partial, or absent in a backbone."""

    clip_id: str
    status: str
    reason: str


def outcome(stage: "Stage", report: "RunReport", sealed: Path | None, stop: "Stop", unit: str) -> Answer:
    """Return the answer of a finished extraction: counts of clips by status, faults, and the sealed store.

    The counts are those of the whole stage, from this and earlier runs.

    Parameters
    ----------
    stage
        The staging folder.
    report
        The report of this run.
    sealed
        The sealed store; None if the stage was not sealed.
    stop
        Whether a signal stopped the run.
    unit
        The word for a row: clip or text.
    """
    entries = stage.status().values()  # an entry for each clip that was done or has failed
    counts = dict.fromkeys(("ok", "partial", "failed"), 0)
    counts |= Counter(entry.status for entry in entries)
    n_left = len(stage.clips) - len(entries)
    faults = _faults_of(entries)

    document: dict[str, object] = {
        "store": None if sealed is None else str(sealed),
        "staging": str(stage.path),
        "clips": {**counts, "left": n_left},
        "not_ok": [fault._asdict() for fault in faults],
        "run": report.record(),
        "stopped_by": None if stop.signal is None else stop.signal.name,
    }
    lines = _table_of_faults(faults, unit)
    statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
    location = " in the whole stage" if n_left else ""
    lines.append(f"{statuses}, {n_left} left to do{location}")

    if sealed is not None:
        has_done_nothing = not report.clips
        lines.append(f"nothing to do; sealed: {sealed}" if has_done_nothing else f"sealed: {sealed}")
        repeated = repeated_clips(of.open_store(sealed))
        document |= repeated.document
        lines += repeated.lines
        if stage.parent_store is not None:
            grown = growth_of(sealed, stage.parent_store.path)
            document |= grown.document
            lines += grown.lines

    if faults and sealed is not None:
        lines.append(f"list of all {unit}s with their reasons: {sealed / TABLE}")
    elif faults:
        lines.append("list of them: the same command with --json")
    return Answer(document, "\n".join(lines), _remarks_on_run(report, unit))


def _faults_of(entries: Collection["JournalEntry"]) -> list[Fault]:
    """Return the faults of clips: first all that are not ok, then the groups in which clips are absent.

    Parameters
    ----------
    entries
        Journal entries of the stage, one for each clip that was done or has failed.
    """
    not_ok = [entry for entry in entries if entry.status != "ok"]
    faults = [Fault(entry.clip_id, str(entry.status), entry.reason) for entry in not_ok]
    for entry in entries:
        for group, reason in entry.absent.items():
            faults.append(Fault(entry.clip_id, f"absent in {group}", reason))
    return faults


def _remarks_on_run(report: "RunReport", unit: str) -> list[str]:
    """Return notes on the run: the most frequent remarks on clips with their counts, and how long it took.

    Parameters
    ----------
    report
        The report of the run.
    unit
        The word for a row: clip or text.
    """
    most_common = report.remarks.most_common(SHOWN_REMARKS)
    remarks = [f"{NOTE}{counted(number, unit)}: {remark}" for remark, number in most_common]
    n_others = len(report.remarks) - SHOWN_REMARKS
    if n_others > 0:
        remarks.append(f"{NOTE}{n_others:,} other remarks: --json has all")

    has_done_something = report.clips > 0
    if has_done_something:
        remarks.append(report.sentence(unit))
    return remarks


def _table_of_faults(faults: Sequence[Fault], unit: str) -> list[str]:
    """Return a table of why clips are not ok: the number of clips and an example for each reason.

    Only the most frequent reasons have a row; a last line counts the others.
    """
    if not faults:
        return []
    clips_of_reason: dict[tuple[str, str], list[str]] = {}  # (status, reason) -> ids of clips
    for fault in faults:
        clips_of_reason.setdefault((fault.status, fault.reason), []).append(fault.clip_id)

    rows = [(len(ids), status, reason, ids[0]) for (status, reason), ids in clips_of_reason.items()]
    rows.sort(key=lambda row: -row[0])  # by the number of clips, the most first
    lines = [table(rows[:SHOWN_REASONS], [f"{unit}s", "status", "reason", "such as"])]

    other_rows = rows[SHOWN_REASONS:]
    if other_rows:
        n_others = sum(n_clips for n_clips, *_ in other_rows)
        lines.append(f"and {n_others:,} {unit}s with {len(other_rows):,} other reasons")
    return lines


def _format_duration(seconds: float) -> str:
    """Format seconds as seconds, minutes or hours, such as "90 s", "45 min" or "2.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def logs_as_notes() -> Iterator[None]:
    """Print the library's log messages, such as a lack of GPU memory, as notes."""
    logger = logging.getLogger("obygaze_features")
    handler = _NoteHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _NoteHandler(logging.Handler):
    """A log handler that prints messages as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message of a log record as a note."""
        note(record.getMessage())


def note(text: str) -> None:
    """Print a note for the user on stderr, behind the words that all notes begin with."""
    click.echo(f"{NOTE}{text}", err=True)
