"""`obygaze train`: re-train a backbone."""

from fractions import Fraction
from typing import Any

import click

from obygaze_features.options import LOCAL, json_option, site


def share(text: str) -> float:
    """Parse a factor, as a number or a fraction such as 1/4."""
    try:
        return float(Fraction(text))
    except ZeroDivisionError:
        raise ValueError(text) from None  # which click words


@click.command("xclip-lsmdc")
@click.option(
    "--clip",
    required=True,
    metavar="WEIGHTS",
    help="CLIP to start from: repository[@revision], folder or file.",
)
@click.option("--annotations", type=LOCAL, required=True, help="Folder of LSMDC16's three annotation files.")
@click.option("--videos", type=LOCAL, required=True, help="Folder of LSMDC's clips, searched recursively.")
@click.option("--out", type=LOCAL, required=True, help="Folder of the run.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    help="Pairs per step, over all processes.  [default: 300 for patches of 32 pixels, 80 for 16]",
)
@click.option("--epochs", type=click.IntRange(1), default=5, show_default=True, help="Passes over the data.")
@click.option(
    "--gather-share",
    type=share,
    default="1/4",
    show_default=True,
    help="Factor on the towers' gradients: 1/4 as published with 4 GPUs, 1 for the true gradient.",
)
@click.option(
    "--arithmetic",
    type=click.Choice(["float32", "bfloat16", "published"]),
    default="float32",
    show_default=True,
    help="'published' keeps CLIP's weights and moments in float16.",
)
@click.option(
    "--chunk",
    type=click.IntRange(1),
    help="Pairs per process whose activations are held in memory.  [default: a quarter of the batch]",
)
@click.option(
    "--cache", type=LOCAL, help="Folder of decoded frames; runs may share it.  [default: OUT/cache]"
)
@click.option(
    "--exclude-movies",
    type=LOCAL,
    help="File of film titles to exclude from training and validation, one per line.",
)
@click.option("--resume", is_flag=True, help="Resume the run in OUT, or start one if there is none.")
@click.option(
    "--save-every", type=click.IntRange(1), default=200, show_default=True, help="Steps between saved states."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Number of decoding processes.  [default: the usable cores]",
    **site("WORKERS"),
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Device of the network; with torchrun each process uses its own GPU.",
)
@click.option(
    "--dry-run", is_flag=True, help="Check all inputs except the videos' content and print the plan."
)
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
    with stop_on_signals() as stop:
        outcome = train(settings, watch=ProgressBars(quiet=as_json), stopped=stop)
    if is_first():
        show_outcome(outcome, settings.out, as_json=as_json)
    if stop() and not outcome.complete:
        click.get_current_context().exit(stop.exit_code)
