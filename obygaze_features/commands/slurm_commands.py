"""`obygaze slurm init`: write job scripts for a site's Slurm."""

from pathlib import Path
from typing import Annotated

import click

from obygaze_features import extraction
from obygaze_features.options import LOCAL, Answer
from obygaze_features.signatures import argument, command, option


@command()
def init(
    folder: Annotated[Path, argument(type=LOCAL)],
    *,
    licence: Annotated[
        str,
        option(
            "Licence of the features: an SPDX expression such as CC-BY-4.0, or NOASSERTION.",
            envvar="OBYGAZE_LICENCE",
        ),
    ],
    tasks: Annotated[
        int,
        option(
            "Number of tasks of the job array; each extracts a share of the clips.", type=click.IntRange(1)
        ),
    ] = 8,
    sbatch: Annotated[
        tuple[str, ...],
        option(
            "Option of sbatch that your site asks for, such as account=film or time=08:00:00; repeatable.",
            type=click.STRING,
            metavar="NAME=VALUE",
        ),
    ] = (),
    setup: Annotated[
        tuple[str, ...],
        option(
            "Shell command that every job runs first, such as 'module load cuda'; repeatable.",
            type=click.STRING,
        ),
    ] = (),
) -> Answer:
    """Write job scripts for Slurm into FOLDER, with your site's options filled in.

    `submit.sh` submits a job array that extracts the clips, and a job that seals the store once every task
    has ended. A task that reaches its time limit is queued again and resumes where it stopped. The scripts
    use this installation, and look for weights in your cache on this machine.

    \b
    Examples:
      obygaze slurm init jobs --licence CC-BY-4.0 --sbatch account=film \\
          --sbatch partition=gpu
      obygaze slurm init jobs --licence CC-BY-4.0 --tasks 16 \\
          --sbatch time=08:00:00 --sbatch gres=gpu:a100:1 \\
          --setup "module load cuda"
      jobs/submit.sh films.csv stores/films --backbone xclip
    """
    options = dict(_parse_sbatch_option(text) for text in sbatch)
    site = extraction.Site(licence=licence, tasks=tasks, sbatch=options, setup=setup)
    paths = extraction.write_job_scripts(folder, site)
    names = [str(path) for path in paths]
    submit_script = next(path for path in paths if path.suffix == ".sh")
    remark = f"{submit_script} MANIFEST STORE --backbone NAME submits all of it"
    return Answer({"scripts": names}, "\n".join(names), [remark])


def _parse_sbatch_option(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE, an option of sbatch, into name and value; hyphens before the name are dropped."""
    name, equals, value = text.lstrip("-").partition("=")
    if not equals:
        raise click.BadParameter(f"'{text}' is not NAME=VALUE, as in account=film", param_hint="'--sbatch'")
    return name, value
