"""`obygaze doctor`: find problems of this machine before hours go into the work."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from obygaze_features.extraction.uses import Use
from obygaze_features.options import PROBLEMS_FOUND, Answer
from obygaze_features.signatures import argument, command, option


@command()
def doctor(
    path: Annotated[Path | None, argument()] = None,
    *,
    use: Annotated[
        Use | None,
        option(
            "What this machine is for.  [default: extract where PATH is given, else a list of what it is "
            "ready for]",
            name="for",
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
      srun --gres=gpu:1 obygaze doctor /scratch/stores/films --json
    """
    from obygaze_features.extraction.doctor import examine

    findings = examine(path, use)
    n_faults = sum(finding.level == "fault" for finding in findings)
    width = max(len(finding.about) for finding in findings)
    lines = [f"{finding.level:6}  {finding.about:{width}}  {finding.text}" for finding in findings]
    document = {"faults": n_faults, "findings": [asdict(finding) for finding in findings]}
    return Answer(document, "\n".join(lines), code=PROBLEMS_FOUND if n_faults else 0)
