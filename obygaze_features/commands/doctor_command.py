"""`obygaze doctor`: find problems of this machine before hours go into the work."""

from pathlib import Path
from typing import Annotated

import click

import obygaze_features as of
from obygaze_features.commands.extract_output import diagnosed
from obygaze_features.extraction.uses import Use
from obygaze_features.options import Answer, completed
from obygaze_features.signatures import argument, command, option


@command()
def doctor(
    path: Annotated[Path | None, argument()] = None,
    *,
    use: Annotated[
        Use | None,
        option(
            "Work that this machine should be able to do.  [default: extract if PATH or a backbone "
            "is given, else print for what it is ready]",
            name="for",
        ),
    ] = None,
    names: Annotated[
        tuple[str, ...],
        option(
            "Backbone that should run here; its weights must be in the cache; repeatable.",
            name="backbone",
            type=click.STRING,
            metavar="NAME",
            shell_complete=completed(lambda _: of.backbone_names()),
        ),
    ] = (),
    device: Annotated[
        str | None,
        option(
            "Device that networks should run on; a GPU that is missing is a fault.",
            metavar="auto|cpu|cuda[:N]",
            envvar="OBYGAZE_DEVICE",
        ),
    ] = None,
) -> Answer:
    """Check before long work whether this machine, and PATH as the place of a store, are ready for it.

    Print one line per finding. With --for, check what this use needs:

    \b
    laptop   what is installed to evaluate stores
    extract  also GPUs and their memory, weights in the cache, usable cores
    film     the same, for whole films
    share    what is installed to send stores to servers

    At PATH, also check write permission, locks, free space and free inodes. On a cluster, run it on the
    node that will do the work, for instance with srun.

    \b
    Exit codes: 0 nothing is in the way, or no use was named,
      3 the work would fail (a line begins with 'fault').

    \b
    Examples:
      obygaze doctor                          # what this machine is ready for
      obygaze doctor --for laptop
      obygaze doctor stores/films             # an extraction into that place
      srun --gres=gpu:1 obygaze doctor /scratch/stores/films --backbone xclip \\
          --device cuda
    """
    from obygaze_features.extraction.doctor import examine

    return diagnosed(examine(path, use, backbones=names, device=device))
