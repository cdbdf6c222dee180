"""Print the progress, estimate and outcome of `obygaze extract`."""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.screen import table
from obygaze_features.store.format import TABLE

if TYPE_CHECKING:
    from obygaze_features.extraction import Estimate, RunReport, Stop
    from obygaze_features.extraction.texts import TextEstimate
    from obygaze_features.store import Stage

SHOWN_REASONS = 10
SHOWN_REMARKS = 5


def show_estimate(what: "Estimate | TextEstimate", *, as_json: bool, unit: str) -> None:
    """Print the estimate of a dry run; `unit` is the word for a row: clip or text."""
    if as_json:
        click.echo(json.dumps(asdict(what)))
        return
    if not what.feature_bytes:
        click.echo(f"nothing to do: every {unit} is done")
        return
    time = "unknown: no video could be tried"
    if what.seconds is not None:
        time = f"about {_duration(what.seconds)}, from {what.tried} {unit}s tried now"
    click.echo(table([*what.facts(), ("feature bytes", f"{what.feature_bytes:,}"), ("time", time)]))


def show_outcome(
    stage: "Stage",
    report: "RunReport",
    sealed: Path | None,
    stop: "Stop",
    *,
    as_json: bool,
    unit: str = "clip",
) -> None:
    """Print the outcome of the clips in this and earlier runs; `unit` is the word for a row."""
    entries = stage.status()
    counts = dict.fromkeys(("ok", "partial", "failed"), 0)
    counts |= Counter(entry.status for entry in entries.values())
    left = len(stage.clips) - len(entries)
    at_fault = [(e.clip_id, e.status, e.reason) for e in entries.values() if e.status != "ok"]
    if as_json:
        document = {
            "store": None if sealed is None else str(sealed),
            "staging": str(stage.path),
            "clips": {**counts, "left": left},
            "not_ok": [
                {"clip_id": clip, "status": status, "reason": reason} for clip, status, reason in at_fault
            ],
            "run": report.record(),
            "stopped_by": None if stop.signal is None else stop.signal.name,
        }
        click.echo(json.dumps(document))
    else:
        if at_fault:
            _show_reasons(at_fault, unit)
        click.echo(
            f"{counts['ok']} ok, {counts['partial']} partial, {counts['failed']} failed, {left} left to do"
        )
        for remark, clips in report.remarks.most_common(SHOWN_REMARKS):
            note(f"{clips:,} {unit}{'' if clips == 1 else 's'}: {remark}")
        if len(report.remarks) > SHOWN_REMARKS:
            note(f"{len(report.remarks) - SHOWN_REMARKS:,} other remarks: --json has all")
        if report.clips:
            click.echo(report.sentence(unit), err=True)
        if sealed is not None:
            click.echo(f"sealed: {sealed}" if report.clips else f"nothing to do; sealed: {sealed}")
            if at_fault:
                click.echo(f"list of all {unit}s with their reasons: {sealed / TABLE}")
        elif at_fault:
            click.echo("list of them: the same command with --json")
    if stop():
        click.echo(
            f"obygaze: stopped; {left} {unit}s are left. Run the same command again to go on.", err=True
        )


def _show_reasons(at_fault: Sequence[tuple[str, str, str]], unit: str) -> None:
    """Print how many clips have which reason; the rarest reasons of many are summed up."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for clip, status, reason in at_fault:
        groups[status, reason].append(clip)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    rows = [(len(clips), *why, clips[0]) for why, clips in ordered]
    click.echo(table(rows[:SHOWN_REASONS], [f"{unit}s", "status", "reason", "such as"]))
    if rest := rows[SHOWN_REASONS:]:
        others = sum(clips for clips, *_ in rest)
        click.echo(f"and {others:,} {unit}s with {len(rest):,} other reasons")


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
    click.echo(f"obygaze: note: {text}", err=True)
