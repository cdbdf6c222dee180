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
            "What this machine is for.  [default: extract where PATH or a backbone is given, else a list of "
            "what it is ready for]",
            name="for",
        ),
    ] = None,
    names: Annotated[
        tuple[str, ...],
        option(
            "Backbone that is to run here: its weights must be in the cache; repeatable.",
            name="backbone",
            type=click.STRING,
            metavar="NAME",
            shell_complete=completed(lambda _: of.backbone_names()),
        ),
    ] = (),
    device: Annotated[
        str | None,
        option(
            "Device that networks are to run on: a GPU that is not there is a fault.",
            metavar="auto|cpu|cuda[:N]",
            envvar="OBYGAZE_DEVICE",
        ),
    ] = None,
) -> Answer:
    """Examine this machine and, at PATH, the place of a store, before long work.

    Prints one line per finding. laptop: the install that evaluates stores. extract and film: also GPUs and
    their memory, weights in the cache, usable cores. share: what sends stores to servers. At PATH also
    whether it can be written to, locks, free space and inodes. Run it on the node that is to do the work,
    such as with srun.

    \b
    Exit codes: 0 nothing is in the way, or no use was named,
      3 the work would fail (a line begins with 'fault').

    \b
    Examples:
      obygaze doctor                            what this machine is ready for
      obygaze doctor --for laptop
      obygaze doctor stores/films               an extraction into that place
      srun --gres=gpu:1 obygaze doctor /scratch/stores/films --backbone xclip \\
          --device cuda
    """
    from obygaze_features.extraction.doctor import examine

    return diagnosed(examine(path, use, backbones=names, device=device))
