"""Print the notes, progress, plan and outcome of `obygaze train`."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

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

    def decoding(self, done: int, total: int) -> None:
        """Update the decoding bar."""
        self._move("decoding", "clip", done, total)

    def step(self, done: int, total: int, loss: float) -> None:
        """Update the training bar."""
        self._move("training", "step", done, total, f"loss {loss:.3f}")

    def evaluating(self, split: str, done: int, total: int) -> None:
        """Update the evaluation bar."""
        self._move(split, "item", done, total)

    def measured(self, split: str, epoch: int, measures: Mapping[str, Any]) -> None:
        """Show the result of an evaluation."""
        self.say(f"{split}, epoch {epoch}: {in_words(measures)}")

    def _move(self, name: str, unit: str, done: int, total: int, postfix: str = "") -> None:
        bar = self._bars.get(name)
        if bar is None:
            hidden = True if self._quiet else None
            first = max(done - 1, 0)  # a resumed training does not begin at 0
            bar = self._bars[name] = tqdm(total=total, initial=first, unit=unit, desc=name, disable=hidden)
        bar.set_postfix_str(postfix, refresh=False)
        bar.update(done - bar.n)
        if done == total:
            bar.close()
            del self._bars[name]


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
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    rows: list[tuple[str, object]] = [
        (f"{split} sentences", f"{count:,} ({found['without_video'][split]:,} without a video)")
        for split, count in found["sentences"].items()
    ]
    shared = found["movies_shared_with_obygaze12"]
    rows += [
        ("of ObyGaze12 films", ", ".join(f"{title} ({n})" for title, n in shared.items()) or "none by name"),
        ("clips", f"{found['clips']:,}"),
        (
            "clips to decode",
            f"{found['clips_to_decode']:,}, at most {found['cache_bytes_at_most'] / 1e9:.1f} GB of frames",
        ),
        ("batch", f"{found['batch']} pairs, {plan.chunk} at a time"),
        ("steps", f"{found['steps']:,} ({found['steps_an_epoch']:,} an epoch)"),
    ]
    for split, movies in found["excluded_movies"].items():
        rows.append(
            (f"excluded, {split}", ", ".join(f"{title} ({n})" for title, n in movies.items()) or "none")
        )
    if found["movies_not_found"]:
        rows.append(("excluded, not found", ", ".join(found["movies_not_found"])))
    click.echo(table(rows))


def show_outcome(outcome: Outcome, out: Path, *, as_json: bool) -> None:
    """Print the outcome of a training."""
    if as_json:
        click.echo(
            json.dumps(
                {
                    "run": str(out),
                    "complete": outcome.complete,
                    "steps": outcome.steps,
                    "of": outcome.total,
                    "left_out": outcome.left_out,
                    "best_epoch": outcome.best_epoch,
                    "validation": outcome.epochs,
                    "test": outcome.test,
                },
                indent=2,
            )
        )
    elif outcome.test is None:
        where = f"after step {outcome.steps} of {outcome.total}" if outcome.total else "while decoding"
        click.echo(f"stopped {where}; go on with --resume")
    else:
        click.echo(f"{out}: epoch {outcome.best_epoch} chosen; test: {in_words(outcome.test)}")


def is_first() -> bool:
    """Return whether this process is the one that prints."""
    return os.environ.get("RANK", "0") == "0"
