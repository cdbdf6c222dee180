"""`obygaze train xclip-lsmdc`: train X-CLIP on LSMDC, starting from CLIP."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import click

from obygaze_features.options import LOCAL, Answer
from obygaze_features.signatures import command, option


def parse_factor(value: str | Fraction) -> Fraction:
    """Parse a factor that is written as a number or as a fraction such as 1/4.

    Raises
    ------
    ValueError
        It is neither, or too large for a float. Click makes a usage error of a ValueError.
    """
    try:
        factor = Fraction(value)
        float(factor)  # raises an OverflowError if the factor is too large: training needs it as a float
    except (ZeroDivisionError, OverflowError):
        raise ValueError(value) from None
    return factor


@command("xclip-lsmdc")
def xclip_lsmdc(
    *,
    clip: Annotated[
        str,
        option(
            "Weights of the CLIP to start from: repository[@revision], folder or file.", metavar="WEIGHTS"
        ),
    ],
    annotations: Annotated[Path, option("Folder of LSMDC16's three annotation files.", type=LOCAL)],
    videos: Annotated[Path, option("Folder of LSMDC's clips, searched recursively.", type=LOCAL)],
    out: Annotated[Path, option("Folder to write the run to.", type=LOCAL)],
    batch: Annotated[
        int | None,
        option(
            "Number of video-text pairs per step, over all processes.  [default: 300 for patches "
            "of 32 pixels, 80 for patches of 16]",
            type=click.IntRange(1),
        ),
    ] = None,
    epochs: Annotated[int, option("Number of passes over the training data.", type=click.IntRange(1))] = 5,
    gather_share: Annotated[
        Fraction,
        option(
            "Factor of the gradients of the two encoders: 1/4 as published with 4 GPUs, 1 for the "
            "true gradient.",
            type=parse_factor,
            metavar="FRACTION",
        ),
    ] = Fraction(1, 4),
    arithmetic: Annotated[
        Literal["float32", "bfloat16", "published"],
        option("Precision. published: CLIP's weights and the optimiser's moments in float16."),
    ] = "float32",
    chunk: Annotated[
        int | None,
        option(
            "Number of pairs per process whose activations are in memory at a time.  [default: a "
            "quarter of the batch]",
            type=click.IntRange(1),
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        option(
            "Folder for the decoded frames, which several runs may share.  [default: OUT/cache]", type=LOCAL
        ),
    ] = None,
    exclude_movies: Annotated[
        Path | None,
        option(
            "File with titles of films, one per line, to exclude from training and validation.",
            type=LOCAL,
        ),
    ] = None,
    resume: Annotated[bool, option("Resume the run in OUT, or start one if there is none.")] = False,
    workers: Annotated[
        int | None,
        option(
            "Number of decoding processes.  [default: the usable cores]",
            type=click.IntRange(1),
            envvar="OBYGAZE_WORKERS",
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        option("Device of the network; with torchrun each process uses its own GPU."),
    ] = "auto",
) -> Answer:
    """Train X-CLIP on LSMDC (Ma et al., ACM MM 2022), starting from CLIP.

    Frames are decoded once into a cache. The run can be killed at any time; with --resume the same command
    resumes from the last saved state, and gives the same bytes. Start it with torchrun to use several GPUs;
    their number changes only rounding. The weights of every epoch are written to OUT, the best as
    model.safetensors, with the metrics and a model card.

    \b
    Exit codes: 0 done, 1 error, 2 usage, 130 or 143 stopped (state saved).

    \b
    Examples:
      obygaze train xclip-lsmdc --clip openai/clip-vit-base-patch32 \\
            --annotations lsmdc/annotations --videos lsmdc/videos \\
            --out runs/lsmdc
      torchrun --nproc-per-node 4 -m obygaze train xclip-lsmdc \\
            --clip openai/clip-vit-base-patch16 \\
            --annotations lsmdc/annotations --videos lsmdc/videos \\
            --out runs/lsmdc --resume
      obygaze extract films.csv stores/films --backbone xclip-lsmdc \\
            --weights runs/lsmdc
    """
    from obygaze_studies.lsmdc import LsmdcSettings, run

    settings = LsmdcSettings(
        clip=clip,
        annotations=annotations,
        videos=videos,
        out=out,
        batch=batch,
        epochs=epochs,
        gather_share=float(gather_share),
        arithmetic=arithmetic,
        chunk=chunk,
        cache=cache,
        exclude_movies=exclude_movies,
        resume=resume,
        workers=workers,
        device=device,
    )
    return run.xclip_lsmdc(settings)
