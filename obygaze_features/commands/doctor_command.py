"""`obygaze doctor`: find problems of this machine that would make a long extraction fail."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.signatures import argument, command


@command()
def doctor(
    path: Annotated[Path | None, argument()] = None,
) -> Answer:
    """Examine this machine and, at PATH, the place of a store, before a long extraction.

    Prints one line per finding: versions and extras, GPUs and their memory, weights in the cache, usable
    cores; at PATH also whether it can be written to, locks, free space and inodes. Run it on the node that is
    to extract, such as with srun.

    \b
    Exit codes: 0 nothing is in the way,
      3 an extraction would fail (a line begins with 'fault').

    \b
    Examples:
      obygaze doctor
      obygaze doctor stores/films
      srun --gres=gpu:1 obygaze doctor /scratch/stores/films --json
    """
    from obygaze_features.extraction.doctor import examine

    findings = examine(path)
    n_faults = sum(finding.level == "fault" for finding in findings)
    width = max(len(finding.about) for finding in findings)
    lines = [f"{finding.level:5}  {finding.about:{width}}  {finding.text}" for finding in findings]
    document = {"faults": n_faults, "findings": [asdict(finding) for finding in findings]}
    return Answer(document, "\n".join(lines), code=PROBLEMS_FOUND if n_faults else 0)
