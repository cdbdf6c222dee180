"""Print the notes, progress, plan and outcome of `obygaze train`."""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from tqdm import tqdm

from obygaze_features.options import show
from obygaze_features.screen import ShowProgress, progress_bar, table
from obygaze_studies.lsmdc import Outcome, TrainingCallbacks
from obygaze_studies.lsmdc.retrieval import in_words

if TYPE_CHECKING:
    from obygaze_studies.lsmdc import LsmdcPlan


class ProgressBars(TrainingCallbacks):
    """Show notes and progress bars of a training on stderr.

    Parameters
    ----------
    bars
        Closes them.
    quiet
        Whether to omit the bars.
    """

    def __init__(self, bars: ExitStack, *, quiet: bool) -> None:
        self._open: Callable[[str, str], AbstractContextManager[ShowProgress]] = (
            (lambda *_: nullcontext(lambda *_: None)) if quiet else progress_bar
        )
        self._bars = bars
        self._shown: dict[str, ShowProgress] = {}

    def say(self, text: str) -> None:
        """Show a note."""
        with tqdm.external_write_mode(file=sys.stderr):
            click.echo(text, err=True)

    def progress(self, done: int, total: int, *, what: str, unit: str, note: str = "") -> None:
        """Update a bar."""
        if what not in self._shown:
            self._shown[what] = self._bars.enter_context(self._open(what, unit))
        self._shown[what](done, total, note)


def show_plan(plan: "LsmdcPlan", *, as_json: bool) -> None:
    """Print the plan of a training."""
    found = plan.describe()
    show(
        found,
        lambda: table([(name.replace("_", " "), _words(value)) for name, value in found.items()]),
        as_json=as_json,
    )


def _words(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    named = [f"{name} {_words(of)}" for name, of in value.items()] if isinstance(value, Mapping) else value
    return ", ".join(named) or "none"


def show_outcome(outcome: Outcome, out: Path, *, as_json: bool) -> None:
    """Print the outcome of a training."""
    where = f"after step {outcome.steps} of {outcome.total}" if outcome.total else "while decoding"
    text = f"stopped {where}; go on with --resume"
    if outcome.test is not None:
        text = f"{out}: epoch {outcome.best_epoch} chosen; test: {in_words(outcome.test)}"
    show({"run": str(out), "complete": outcome.complete, **asdict(outcome)}, lambda: text, as_json=as_json)


def is_first() -> bool:
    """Return whether this process is the one that prints."""
    return os.environ.get("RANK", "0") == "0"
