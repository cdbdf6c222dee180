"""Print the notes, progress, plan and outcome of `obygaze train`."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from obygaze_features.options import show
from obygaze_features.screen import table
from obygaze_studies.lsmdc import Outcome, TrainingCallbacks

if TYPE_CHECKING:
    from obygaze_studies.lsmdc import LsmdcPlan


class ProgressBars(TrainingCallbacks):
    """Show notes and progress bars of a training on stderr.

    Parameters
    ----------
    quiet
        Whether to omit the bars.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bars: dict[str, tqdm[Any]] = {}

    def say(self, text: str) -> None:
        """Show a note."""
        with tqdm.external_write_mode(file=sys.stderr):
            click.echo(text, err=True)

    def measured(self, split: str, epoch: int, measures: Mapping[str, Any]) -> None:
        """Show the result of an evaluation."""
        self.say(f"{split}, epoch {epoch}: {in_words(measures)}")

    def progress(self, done: int, total: int, *, what: str, unit: str, note: str = "") -> None:
        """Update a bar."""
        bar = self._bars.get(what)
        if bar is None:
            hidden = True if self._quiet else None
            first = max(done - 1, 0)  # a resumed training does not begin at 0
            bar = self._bars[what] = tqdm(total=total, initial=first, unit=unit, desc=what, disable=hidden)
        bar.set_postfix_str(note, refresh=False)
        bar.update(done - bar.n)
        if done == total:
            bar.close()
            del self._bars[what]


def in_words(measures: Mapping[str, Any]) -> str:
    """Format the result of an evaluation as one line, with the set sizes it depends on."""
    parts = []
    for direction in ("text_to_video", "video_to_text"):
        published = measures["published"][direction]["R@1"]
        safe = measures["tie_safe"][direction]["mean"]["R@1"]
        parts.append(f"{direction.replace('_', ' ')} R@1 {published:.1f} (tie-safe {safe:.1f})")
    return f"{', '.join(parts)} among {measures['sentences']} sentences of {measures['clips']} clips"


def show_plan(plan: "LsmdcPlan", *, as_json: bool) -> None:
    """Print the plan of a training."""
    found = plan.describe()

    def listed(movies: Mapping[str, int], nothing: str = "none") -> str:
        return ", ".join(f"{title} ({n})" for title, n in movies.items()) or nothing

    rows: list[tuple[str, object]] = [
        (f"{split} sentences", f"{count:,} ({found['without_video'][split]:,} without a video)")
        for split, count in found["sentences"].items()
    ]
    rows += [
        ("of ObyGaze12 films", listed(found["movies_shared_with_obygaze12"], "none by name")),
        ("clips", f"{found['clips']:,}"),
        (
            "clips to decode",
            f"{found['clips_to_decode']:,}, at most {found['cache_bytes_at_most'] / 1e9:.1f} GB of frames",
        ),
        ("batch", f"{found['batch']} pairs, {plan.chunk} at a time"),
        ("steps", f"{found['steps']:,} ({found['steps_an_epoch']:,} an epoch)"),
    ]
    rows += [(f"excluded, {split}", listed(movies)) for split, movies in found["excluded_movies"].items()]
    if found["movies_not_found"]:
        rows.append(("excluded, not found", ", ".join(found["movies_not_found"])))
    show(found, lambda: table(rows), as_json=as_json)


def show_outcome(outcome: Outcome, out: Path, *, as_json: bool) -> None:
    """Print the outcome of a training."""
    where = f"after step {outcome.steps} of {outcome.total}" if outcome.total else "while decoding"
    text = f"stopped {where}; go on with --resume"
    if outcome.test is not None:
        text = f"{out}: epoch {outcome.best_epoch} chosen; test: {in_words(outcome.test)}"
    document = {
        "run": str(out),
        "complete": outcome.complete,
        "steps": outcome.steps,
        "of": outcome.total,
        "left_out": outcome.left_out,
        "best_epoch": outcome.best_epoch,
        "validation": outcome.epochs,
        "test": outcome.test,
    }
    show(document, lambda: text, as_json=as_json)


def is_first() -> bool:
    """Return whether this process is the one that prints."""
    return os.environ.get("RANK", "0") == "0"
