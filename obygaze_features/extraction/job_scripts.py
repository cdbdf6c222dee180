"""Write the job scripts for Slurm, with what a site needs filled in."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from shlex import quote

from obygaze_features.arguments import checked
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.sbatch_options import check_option
from obygaze_features.io import NO_LICENCE, local_folder, make_folder, write_together
from obygaze_features.store.provenance import validate_licence

ARRAY = "array.sbatch"
SEAL = "seal.sbatch"
SUBMIT = "submit.sh"
RAY = "ray.sbatch"
TRAIN = "train.sbatch"
SCRIPTS = (ARRAY, SEAL, SUBMIT, RAY, TRAIN)
PLACE_FOR_SETUP = re.compile(
    r"(?m)^# ---- What your site needs.*\n(?:#(?! ---- What| -{20,}\n).*\n)*+# -{20,}\n"
)
"""The place of a script for a site's lines of shell: a heading, lines of comment, and a line of hyphens."""

PLACE_FOR_OPTIONS = re.compile(r"(?m)^##SBATCH --account=.*\n")
"""The line of a script in the place of which a site's options of sbatch are put."""


EXTRACTION_OPTIONS = frozenset({"time", "mem", "cpus-per-task", "gres", "gpus", "gpus-per-node", "nodes"})
"""Options of sbatch for jobs that extract; the others are for all jobs."""


RESERVED_OPTIONS = frozenset({"output", "error", "signal", "open-mode", "ntasks", "job-name"})
"""Options of sbatch on which the scripts rely: where their logs are, and when they are told to stop."""


GPU_DEVICE_TEXT = "OBYGAZE_DEVICE:-cuda"
"""Words of the scripts that run networks on a GPU."""
CPU_DEVICE_TEXT = "OBYGAZE_DEVICE:-cpu"
"""Words in their place at a site whose jobs ask for no GPU."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What a computing site with Slurm asks of a job.

    Parameters
    ----------
    licence
        SPDX expression of the features' licence, under which the last job seals the store.
    tasks
        Tasks of the job array, each with one GPU and a share of the clips.
    sbatch
        Options of sbatch by their long names: `account`, `partition`, `time`, ... Those that are not given
        stay as the scripts have them.
    setup
        Lines of shell that make `obygaze` run on a node, such as `module load python/3.12`.

    Raises
    ------
    StoreError
        If the licence is no SPDX expression.
    ExtractError
        If an option or a line holds a line break, or there is no task.
    """

    licence: str
    tasks: int = 8
    sbatch: Mapping[str, str] = field(default_factory=dict)
    setup: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse values that the job scripts or sbatch would not accept."""
        validate_licence(self.licence)
        if self.tasks < 1:
            raise ExtractError(f"{self.tasks} tasks: expected at least 1")
        for name, value in self.sbatch.items():
            _refuse_sbatch_option(name, value)
        for line in self.setup:
            if "\n" in line:
                raise ExtractError(f"--setup {line!r}: expected one line; give the option once a line")

    @property
    def has_gpus(self) -> bool:
        """Whether jobs that extract request a GPU, as they do unless `gres` names another resource."""
        if "gpus" in self.sbatch or "gpus-per-node" in self.sbatch:
            return True
        gres = self.sbatch.get("gres")  # generic resources, such as gpu:a100:1
        return gres is None or "gpu" in gres

    def directives(self, *, extracts: bool) -> dict[str, str]:
        """Return the options of sbatch for a job; those for extraction only if it extracts features.

        Parameters
        ----------
        extracts
            Whether the job extracts features.
        """
        if extracts:
            return dict(self.sbatch)
        return {name: value for name, value in self.sbatch.items() if name not in EXTRACTION_OPTIONS}


def _refuse_sbatch_option(name: str, value: str) -> None:
    """Refuse an option of sbatch that the job scripts set themselves, or that sbatch would not accept."""
    is_long_option = re.fullmatch(r"[a-z][a-z-]*", name) is not None
    is_one_word = re.fullmatch(r"[^\s#]+", value) is not None
    if not is_long_option or not is_one_word:
        raise ExtractError(
            f"--sbatch {name}={value!r}: expected a long option and one word, as in account=film"
        )
    if name in RESERVED_OPTIONS:
        raise ExtractError(f"--sbatch {name}: the scripts stand on their own value; change it in them")
    if name == "array":
        raise ExtractError("--sbatch array: the tasks are numbered from 0; --tasks says how many there are")
    check_option(name, value)


@checked
def write_job_scripts(folder: Path | str, site: Site) -> tuple[Path, ...]:
    """Write the job scripts for Slurm into a folder.

    `submit.sh` submits the job array `array.sbatch` and, after it, `seal.sbatch`. `ray.sbatch` extracts on
    several nodes in one job, `train.sbatch` trains a backbone.

    Parameters
    ----------
    folder
        Made if it is not there. Scripts in it are not replaced.

    Returns
    -------
    tuple of Path
        The scripts.

    Raises
    ------
    ExtractError
        If a script is there already.

    Examples
    --------
    >>> from obygaze_features.extraction import Site, write_job_scripts
    >>> site = Site(licence="CC-BY-4.0", sbatch={"partition": "gpu"})
    >>> [path.name for path in write_job_scripts("jobs", site)]
    ['array.sbatch', 'seal.sbatch', 'submit.sh', 'ray.sbatch', 'train.sbatch']
    """
    folder = local_folder(folder)
    paths = tuple(folder / name for name in SCRIPTS)
    for path in paths:
        if path.exists():
            raise ExtractError(f"{path}: there already, and you may have changed it; choose another folder")

    make_folder(folder)
    write_together({path: script_for_site(path.name, site).encode() for path in paths})
    (folder / SUBMIT).chmod(0o755)
    return paths


def script_for_site(name: str, site: Site) -> str:
    """Return the text of a job script, with the options, set-up lines and licence of a site filled in.

    Parameters
    ----------
    name
        File name of the script, such as `array.sbatch`; templates of all scripts are in this package.
    site
        What the computing site asks of a job.
    """
    script = files("obygaze_features").joinpath("job_scripts", name).read_text(encoding="utf-8")
    setup = [*site.setup, *environment_lines()]

    if name == SUBMIT:
        # This script submits the jobs and is no job itself: it gets no options of sbatch. In its template
        # stands an array of the shell with the options of the job that seals, `(--licence NOASSERTION) `.
        licence_in_template = f"(--licence {NO_LICENCE}) "
        licence_of_site = f"(--licence {quote(site.licence)}) "
        return _with_setup(script.replace(licence_in_template, licence_of_site), setup)

    # The templates are written for nodes with GPUs.
    if not site.has_gpus:
        script = script.replace(GPU_DEVICE_TEXT, CPU_DEVICE_TEXT)
    extracts = name in (ARRAY, RAY)  # the others need no GPU and little time
    directives = site.directives(extracts=extracts)  # options of sbatch, as lines #SBATCH
    if name == ARRAY:
        directives["array"] = f"0-{site.tasks - 1}"
    return _with_setup(_with_directives(script, directives), setup)


def environment_lines() -> list[str]:
    """Return lines of shell by which a node uses this installation, and weights of this machine's cache.

    Variables that are set already where a script runs are kept.
    """
    folder_of_python = Path(sys.executable).parent
    lines = [f"export PATH={quote(str(folder_of_python))}:$PATH"]
    try:
        from huggingface_hub import constants  # noqa: PLC0415 - an extra
    except ImportError:
        return lines

    # In the shell: true if one of the two variables that say where the cache is has a value.
    cache_is_set = '[ -n "${HF_HUB_CACHE:-}${HF_HOME:-}" ]'
    lines += [
        f"{cache_is_set} || export HF_HUB_CACHE={quote(constants.HF_HUB_CACHE)}",
        "export HF_HUB_OFFLINE=${HF_HUB_OFFLINE:-1}  # every task loads what was fetched before",
    ]
    return lines


def _with_directives(script: str, directives: Mapping[str, str]) -> str:
    """Set options of sbatch in a job script, as in `#SBATCH --time=08:00:00`; return the script.

    An option that the script has is set in its line, and a comment behind it stays in its column if there is
    room. The others get lines at `PLACE_FOR_OPTIONS`.

    Parameters
    ----------
    script
        Text of the script.
    directives
        Long name of an option -> its value.
    """
    added_lines = ""
    for name, value in directives.items():
        directive = f"#SBATCH --{name}={value}"
        existing = re.search(rf"(?m)^#SBATCH --{name}=\S+(?P<blanks> *)", script)
        if existing is None:
            added_lines += f"{directive}\n"
            continue
        old_directive = existing[0]  # with the blanks behind it
        is_followed_by_comment = existing["blanks"] != ""
        if is_followed_by_comment:
            # As wide as the old one, so that the comment stays in its column; with one blank at least.
            directive = directive.ljust(len(old_directive) - 1) + " "
        script = script.replace(old_directive, directive, 1)

    if not added_lines:
        return script
    return PLACE_FOR_OPTIONS.sub(lambda _: added_lines, script)


def _with_setup(script: str, lines: Sequence[str]) -> str:
    """Return a job script with a site's own lines of shell in the place that the template has for them.

    The heading of the place stays; the comments below it are replaced.

    Parameters
    ----------
    script
        Text of the script.
    lines
        The site's lines, such as `module load python/3.12`.
    """
    setup = "".join(f"{line}\n" for line in lines)

    def with_heading(place: re.Match[str]) -> str:
        """Return the heading of the place, and the site's lines."""
        heading = place[0].splitlines()[0]
        return f"{heading}\n{setup}"

    return PLACE_FOR_SETUP.sub(with_heading, script)
