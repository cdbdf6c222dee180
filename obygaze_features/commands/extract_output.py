"""Tell the estimate, the outcome and the notes of `obygaze extract`."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.manifest import counted
from obygaze_features.options import Answer
from obygaze_features.screen import table
from obygaze_features.store.format import TABLE

if TYPE_CHECKING:
    from obygaze_features.extraction import Estimate, RunReport, Stop
    from obygaze_features.extraction.texts import TextEstimate
    from obygaze_features.store import Stage

SHOWN_REASONS = 10
SHOWN_REMARKS = 5
NOTE = "obygaze: note: "


def estimated(what: "Estimate | TextEstimate", unit: str) -> Answer:
    """Answer with the estimate of a dry run; `unit` is the word for a row: clip or text."""
    if not what.feature_bytes:
        return Answer(asdict(what), f"nothing to do: every {unit} is done")
    time = "unknown: no video could be tried"
    if what.seconds is not None:
        time = f"about {_duration(what.seconds)}, from {what.tried} {unit}s tried now"
    facts = [*what.facts(), ("feature bytes", f"{what.feature_bytes:,}"), ("time", time)]
    return Answer(asdict(what), table(facts))


def outcome(stage: "Stage", report: "RunReport", sealed: Path | None, stop: "Stop", unit: str) -> Answer:
    """Answer with the outcome of the clips in this and earlier runs; `unit` is the word for a row."""
    clips = stage.status().values()
    counts = dict.fromkeys(("ok", "partial", "failed"), 0)
    counts |= Counter(clip.status for clip in clips)
    left = len(stage.clips) - len(clips)
    at_fault = [(each.clip_id, (str(each.status), each.reason)) for each in clips if each.status != "ok"]
    at_fault += [(e.clip_id, (f"absent in {name}", why)) for e in clips for name, why in e.absent.items()]
    document = {
        "store": None if sealed is None else str(sealed),
        "staging": str(stage.path),
        "clips": {**counts, "left": left},
        "not_ok": [{"clip_id": clip, "status": why[0], "reason": why[1]} for clip, why in at_fault],
        "run": report.record(),
        "stopped_by": None if stop.signal is None else stop.signal.name,
    }
    lines = _reasons(at_fault, unit) if at_fault else []
    lines += [f"{', '.join(f'{number} {status}' for status, number in counts.items())}, {left} left to do"]
    if sealed is not None:
        lines += [f"sealed: {sealed}" if report.clips else f"nothing to do; sealed: {sealed}"]
    if at_fault:
        place = f"list of all {unit}s with their reasons: {sealed / TABLE}" if sealed else ""
        lines += [place or "list of them: the same command with --json"]
    remarks = report.remarks.most_common(SHOWN_REMARKS)
    told = [f"{NOTE}{counted(n, unit)}: {remark}" for remark, n in remarks]
    if len(report.remarks) > SHOWN_REMARKS:
        told += [f"{NOTE}{len(report.remarks) - SHOWN_REMARKS:,} other remarks: --json has all"]
    told += [report.sentence(unit)] if report.clips else []
    return Answer(document, "\n".join(lines), told)


def _reasons(at_fault: Sequence[tuple[str, tuple[str, str]]], unit: str) -> list[str]:
    """Tell how many clips have which reason; the rarest reasons of many are summed up."""
    first = {why: clip for clip, why in reversed(at_fault)}
    counts = Counter(why for _, why in at_fault).most_common()
    rows = [(clips, *why, first[why]) for why, clips in counts]
    shown = table(rows[:SHOWN_REASONS], [f"{unit}s", "status", "reason", "such as"])
    rest = rows[SHOWN_REASONS:]
    others = sum(clips for clips, *_ in rest)
    return [shown, *([f"and {others:,} {unit}s with {len(rest):,} other reasons"] if rest else [])]


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextmanager
def logs_as_notes() -> Iterator[None]:
    """Print the library's log messages, such as a lack of GPU memory, as notes."""
    logger, handler = logging.getLogger("obygaze_features"), _Notes()
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
