"""`obygaze train`: re-train a backbone."""

from contextlib import ExitStack
from typing import Any

import click

from obygaze_features.options import json_option
from obygaze_studies.commands.declared import declared


@click.command("xclip-lsmdc")
@declared("train xclip-lsmdc")
@json_option
def xclip_lsmdc(dry_run: bool, as_json: bool, **options: Any) -> None:
    """Train X-CLIP on LSMDC (Ma et al., ACM MM 2022), starting from CLIP.

    Frames are decoded once into a cache. The run can be killed at any time and resumes (--resume) from the
    last saved state, to the same bytes. With torchrun it uses several GPUs; their number changes only
    rounding. OUT gets the weights of every epoch, the best as model.safetensors, the metrics and a card.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 130 or 143 stopped (state saved).

    \b
    Examples:
      obygaze train xclip-lsmdc --clip openai/clip-vit-base-patch32 \\
          --annotations lsmdc/annotations --videos lsmdc/videos \\
          --out runs/lsmdc --dry-run
      torchrun --nproc-per-node 4 -m obygaze train xclip-lsmdc \\
          --clip openai/clip-vit-base-patch16 \\
          --annotations lsmdc/annotations --videos lsmdc/videos \\
          --out runs/lsmdc --resume
      obygaze extract films.csv stores/films --backbone xclip-lsmdc \\
          --weights runs/lsmdc
    """
    from obygaze_features.extraction import stop_on_signals
    from obygaze_studies.commands.train_output import ProgressBars, is_first, show_outcome, show_plan
    from obygaze_studies.lsmdc import LsmdcSettings, make_plan, train

    settings = LsmdcSettings(**options)
    if dry_run:
        show_plan(make_plan(settings), as_json=as_json)
        return
    with stop_on_signals() as stop, ExitStack() as bars:
        outcome = train(settings, watch=ProgressBars(bars, quiet=as_json), stopped=stop)
    if is_first():
        show_outcome(outcome, settings.out, as_json=as_json)
    if stop() and not outcome.complete:
        click.get_current_context().exit(stop.exit_code)
