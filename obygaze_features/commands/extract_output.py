"""Tell the estimate, the outcome and the notes of `obygaze extract`."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from obygaze_features.commands.store_output import growth_of
from obygaze_features.manifest import counted
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.screen import table
from obygaze_features.store.format import TABLE

if TYPE_CHECKING:
    from obygaze_features.extraction import Estimate, RunReport, Stop
    from obygaze_features.extraction.doctor import Diagnosis
    from obygaze_features.extraction.texts import TextEstimate
    from obygaze_features.store import Stage

SHOWN_REASONS = 10
SHOWN_REMARKS = 5
NOTE = "obygaze: note: "


def estimated(estimate: "Estimate | TextEstimate", unit: str) -> Answer:
    """Answer with the estimate of a dry run; `unit` is the word for a row: clip or text."""
    if not estimate.feature_bytes:
        return Answer(asdict(estimate), f"nothing to do: every {unit} is done")
    time = "unknown: no video could be tried"
    if estimate.seconds is not None:
        time = f"about {_duration(estimate.seconds)}, from {estimate.tried} {unit}s tried now"
    facts = [*estimate.facts(), ("feature bytes", f"{estimate.feature_bytes:,}"), ("time", time)]
    return Answer(asdict(estimate), table(facts))


def diagnosed(findings: "Sequence[Diagnosis]") -> Answer:
    """Answer with what was examined, a line each; a fault is a problem found."""
    n_faults = sum(finding.level == "fault" for finding in findings)
    width = max(len(finding.about) for finding in findings)
    lines = [f"{finding.level:6}  {finding.about:{width}}  {finding.text}" for finding in findings]
    document = {"faults": n_faults, "findings": [asdict(finding) for finding in findings]}
    return Answer(document, "\n".join(lines), code=PROBLEMS_FOUND if n_faults else 0)


class Fault(NamedTuple):
    """A clip that is not ok: failed, partial, or absent in a backbone."""

    clip_id: str
    status: str
    reason: str


def outcome(stage: "Stage", report: "RunReport", sealed: Path | None, stop: "Stop", unit: str) -> Answer:
    """Answer with the outcome of the clips in this and earlier runs; `unit` is the word for a row."""
    entries = stage.status().values()
    counts = dict.fromkeys(("ok", "partial", "failed"), 0)
    counts |= Counter(entry.status for entry in entries)
    n_left = len(stage.clips) - len(entries)
    faults = [
        Fault(entry.clip_id, str(entry.status), entry.reason) for entry in entries if entry.status != "ok"
    ]
    for entry in entries:
        faults += [Fault(entry.clip_id, f"absent in {name}", why) for name, why in entry.absent.items()]
    document: dict[str, object] = {
        "store": None if sealed is None else str(sealed),
        "staging": str(stage.path),
        "clips": {**counts, "left": n_left},
        "not_ok": [fault._asdict() for fault in faults],
        "run": report.record(),
        "stopped_by": None if stop.signal is None else stop.signal.name,
    }
    done = ", ".join(f"{number} {status}" for status, number in counts.items())
    lines = [
        *_fault_lines(faults, unit),
        f"{done}, {n_left} left to do in the whole stage" if n_left else f"{done}, 0 left to do",
    ]
    if sealed is not None:
        lines.append(f"sealed: {sealed}" if report.clips else f"nothing to do; sealed: {sealed}")
        if stage.grows is not None:
            grown = growth_of(sealed, stage.grows.path)
            document |= grown.document
            lines += grown.lines
    if faults and sealed is not None:
        lines.append(f"list of all {unit}s with their reasons: {sealed / TABLE}")
    elif faults:
        lines.append("list of them: the same command with --json")
    return Answer(document, "\n".join(lines), _remarks(report, unit))


def _remarks(report: "RunReport", unit: str) -> list[str]:
    """Say what was noted of most clips, and how long the run took."""
    remarks = [
        f"{NOTE}{counted(number, unit)}: {remark}"
        for remark, number in report.remarks.most_common(SHOWN_REMARKS)
    ]
    if len(report.remarks) > SHOWN_REMARKS:
        remarks.append(f"{NOTE}{len(report.remarks) - SHOWN_REMARKS:,} other remarks: --json has all")
    if report.clips:
        remarks.append(report.sentence(unit))
    return remarks


def _fault_lines(faults: Sequence[Fault], unit: str) -> list[str]:
    """Tell how many clips have which reason; the rarest reasons of many are summed up."""
    if not faults:
        return []
    example: dict[tuple[str, str], str] = {}
    for fault in faults:
        example.setdefault((fault.status, fault.reason), fault.clip_id)
    counts = Counter((fault.status, fault.reason) for fault in faults)
    rows = [
        (number, status, reason, example[status, reason]) for (status, reason), number in counts.most_common()
    ]
    lines = [table(rows[:SHOWN_REASONS], [f"{unit}s", "status", "reason", "such as"])]
    if further := rows[SHOWN_REASONS:]:
        n_others = sum(row[0] for row in further)
        lines.append(f"and {n_others:,} {unit}s with {len(further):,} other reasons")
    return lines


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def logs_as_notes() -> Iterator[None]:
    """Print the library's log messages, such as a lack of GPU memory, as notes."""
    logger = logging.getLogger("obygaze_features")
    handler = _Notes()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def note(text: str) -> None:
    """Print a note on stderr."""
    click.echo(f"{NOTE}{text}", err=True)
